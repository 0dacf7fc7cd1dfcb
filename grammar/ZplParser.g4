// Sentences of ZPL. Every choice is decided by the next token (LL(1)): fast from a cold start, and clear in its errors.
// What this form lets through too much (`f(1 = 2)`, `a < b < c`, `x,,y`) is refused by frontend/parse_zpl.cpp.
parser grammar ZplParser;
options { tokenVocab = ZplLexer; }

file : header? declaration* ( pipe test* )? EOF ;

// Entry points for text inside the YAML form and inside the holes of strings.
expressionEntry : expr EOF ;
stepEntry       : step EOF ;
typeEntry       : type EOF ;
sourceEntry     : source EOF ;

header : ZPL NUMBER ;

declaration
  : PIPELINE NAME parameters? ( ARROW type )? LBRACE declaration* pipe RBRACE  # PipelineDeclaration
  | LET NAME ASSIGN expr                                                       # LetDeclaration
  | FN NAME parameters ASSIGN expr                                             # FunctionDeclaration
  | STREAM NAME ( ARROW type )? ASSIGN pipe                                    # StreamDeclaration
  | IMPORT STRING NAME NAME                                                    # ImportDeclaration
  | test                                                                       # TestDeclaration
  ;

// Samples in, samples out, and conditions: `input: {x: 3}`, `expect: [{y: 10}]`, `check f(3) == 10`. What opens a
// brace is a sample wherever it can be one; a record inside of a sample is a schema that holds values.
test        : TEST ( NAME NAME )? LBRACE testEntry* RBRACE ;
testEntry   : NAME ( COLON testSamples | expr ) ;
testSamples : testSample | LBRACKET ( testItem ( COMMA testItem? )* )? RBRACKET ;
testItem    : testSample | expr ;
testSample  : LBRACE ( testField ( COMMA testField? )* )? RBRACE ;
testField   : NAME COLON expr ;

parameters : LPAREN ( parameter ( COMMA parameter? )* )? RPAREN ;
parameter  : NAME ( COLON type )? ( ASSIGN expr )? ;

type     : typeName QUESTION? ;
typeName
  : NAME typeSuffix?                                           # NamedType
  | ENUM LPAREN NAME ( COMMA NAME )* RPAREN                    # EnumType
  | schema                                                     # RecordType
  ;
typeSuffix
  : LBRACKET ( expr ( COMMA expr )* )? RBRACKET                # Dimensions
  | LESS type GREATER                                             # TypeArgument
  ;
schema      : LBRACE ( schemaField ( COMMA schemaField? )* )? RBRACE ;
schemaField : NAME COLON ( type | literal ) ;
literal     : MINUS* NUMBER | STRING | RAW_STRING | TRUE | FALSE | list ;

pipe   : source ( BAR step )* ;
source : NAME ( DOT NAME )? callArguments? ;

step
  : NAME ( ASSIGN expr | callArguments )?
  | FILTER expr
  | SELECT NAME ( COMMA NAME )*
  | DROP NAME ( COMMA NAME )*
  | IF expr block elseBranch*
  ;
elseBranch : ELSE ( IF expr )? block ;
block      : LBRACE ( BAR? step ( BAR step )* )? RBRACE ;

callArguments : LPAREN ( argument ( COMMA argument? )* )? RPAREN ;
argument      : expr ( ASSIGN expr )? ;

// One rule for all signs, so that a name is two rules deep and not ten. Which binds tighter is in
// frontend/parse_zpl.cpp: from loose to tight `or`; `and`; `not`; comparisons; `+ -`; `* / // %`; a minus in front.
expr    : NOT* operand ( ( ( OR | AND ) NOT* | ( EQUAL | UNEQUAL | LESS | LESS_EQ | GREATER | GREATER_EQ
                                               | PLUS | MINUS | MUL | DIV | FLOOR_DIV | MOD ) ) operand )* ;
operand : MINUS* ( NUMBER | STRING | RAW_STRING | TRUE | FALSE | NAME callArguments?
                 | LPAREN expr RPAREN | list | schema ) suffix* ;
list    : LBRACKET ( expr ( COMMA expr? )* )? RBRACKET ;
suffix  : DOT member callArguments? | LBRACKET subscript ( COMMA subscript )* RBRACKET ;
// After a dot, words of the language are ordinary names.
member    : NAME | FILTER | SELECT | DROP | STREAM | PIPELINE | ENUM | IMPORT | LET | FN | ZPL ;
subscript : expr slice? | slice ;
slice     : COLON expr? ( COLON expr? )? ;
