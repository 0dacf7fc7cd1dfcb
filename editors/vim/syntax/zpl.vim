" Syntax of ZPL. Words as in grammar/ZplLexer.g4, types as in graph/types.h; a test compares.
if exists("b:current_syntax")
  finish
endif

syn match   zplFunction  "\<\h\w*\ze\s*("
syn match   zplField     "\(|\s*\)\@<=\h\w*\ze\s*=[^=]"
syn match   zplOperator  "->\|==\|!=\|<=\|>=\|//\|[|<>=+*/%?-]"
syn match   zplNumber    "\<\d[0-9_]*\(\.\d[0-9_]*\)\?\([eE][+-]\?\d\+\)\?\>"
" After a dot they are ordinary names.
syn match   zplMember    "\.\s*\h\w*"hs=s+1
syn match   zplMethod    "\.\s*\h\w*\ze\s*("hs=s+1
syn keyword zplKeyword   zpl pipeline let fn stream import enum
" `test` is a word only where the name of a test follows.
syn match   zplKeyword   "\<test\ze\s\+\""
syn keyword zplControl   filter select drop if else
syn keyword zplLogic     and or not
syn keyword zplBoolean   true false
syn keyword zplType      bool u8 u16 i8 i16 i32 i64 f16 bf16 f32 f64 str path bytes int float box list
syn match   zplEscape    "\\\(u{\x\+}\|.\)" contained
syn region  zplHole      start="{" end="}" contained contains=TOP
syn region  zplString    start=+"+ end=+"+ oneline contains=zplEscape,zplHole
syn match   zplRaw       +\<r"[^"]*"+
syn match   zplComment   "#.*$" contains=@Spell

hi def link zplFunction Function
hi def link zplMethod   Function
hi def link zplField    Identifier
hi def link zplOperator Operator
hi def link zplNumber   Number
hi def link zplKeyword  Keyword
hi def link zplControl  Statement
hi def link zplLogic    Operator
hi def link zplBoolean  Boolean
hi def link zplType     Type
hi def link zplEscape   SpecialChar
hi def link zplHole     Special
hi def link zplString   String
hi def link zplRaw      String
hi def link zplComment  Comment

let b:current_syntax = "zpl"
