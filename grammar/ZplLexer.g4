// Words of ZPL. ASCII only outside strings and comments: Unicode classes cost milliseconds at every start.
// What cannot be a word still becomes a token (FOREIGN, UNTERMINATED, SINGLE_QUOTED, BAD), so that parse_zpl.cpp can
// say what was meant.
lexer grammar ZplLexer;

ZPL      : 'zpl' ;
PIPELINE : 'pipeline' ;
LET      : 'let' ;
FN       : 'fn' ;
STREAM   : 'stream' ;
IMPORT   : 'import' ;
FILTER   : 'filter' ;
SELECT   : 'select' ;
DROP     : 'drop' ;
IF       : 'if' ;
ELSE     : 'else' ;
ENUM     : 'enum' ;
AND      : 'and' ;
OR       : 'or' ;
NOT      : 'not' ;
TRUE     : 'true' ;
FALSE    : 'false' ;

// Checked afterwards, so that `3px` and `1__0` are called bad numbers.
NUMBER   : DIGIT WORD* ( '.' DIGIT WORD* )?
         | DIGIT ( DIGIT | '_' )* ( '.' DIGIT ( DIGIT | '_' )* )? [eE] [+\-] DIGIT WORD* ;
NAME     : ( LETTER | '_' ) WORD* ;

// One token each: escapes and holes are read afterwards, with places mapped (frontend/parse_zpl.cpp). A hole may hold
// strings, whose own holes hold none: regular, so that no text makes the lexer slow.
RAW_STRING    : 'r"' ~["\r\n]* '"' ;
STRING        : '"' ( '\\' ~[\r\n] | HOLE | ~["\\\r\n] )* '"' ;
// `test` is no word of the language (`enum(train, test)`): it opens a test where the test's name follows.
TEST          : 'test' [ \t]+ '"' ( '\\' ~[\r\n] | ~["\\\r\n] )* '"' ;
UNTERMINATED  : 'r'? '"' ( '\\' ~[\r\n] | ~["\\\r\n] )* '\\'? ;
SINGLE_QUOTED : '\'' ~['\r\n]* '\'' ;

ARROW    : '->' ;
EQUAL    : '==' ;
UNEQUAL  : '!=' ;
LESS_EQ  : '<=' ;
GREATER_EQ  : '>=' ;
LESS     : '<' ;
GREATER     : '>' ;
ASSIGN   : '=' ;
BAR      : '|' ;
FLOOR_DIV: '//' ;
DIV      : '/' ;
MOD      : '%' ;
MUL      : '*' ;
PLUS     : '+' ;
MINUS    : '-' ;
DOT      : '.' ;
COMMA    : ',' ;
COLON    : ':' ;
QUESTION : '?' ;
LPAREN   : '(' ;
RPAREN   : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE   : '{' ;
RBRACE   : '}' ;

// Spellings of other languages.
FOREIGN  : '&&' | '||' | '&' | '!' | '**' | ';' | '=>' | '^' | '|>' | ':=' | '+=' | '-=' | '*=' | '/=' ;

COMMENT  : '#' ~[\r\n]* -> channel(HIDDEN) ;
SPACE    : [ \t\r\n]+ -> skip ;
BAD      : . ;

fragment HOLE   : '{' ( INNER | '{' ( INNER | ~["{}\r\n] )* '}' | ~["{}\r\n] )* '}' ;
fragment INNER  : '"' ( '\\' ~[\r\n] | ~["\\\r\n] )* '"' ;
fragment DIGIT  : [0-9] ;
fragment LETTER : [a-zA-Z] ;
fragment WORD   : [a-zA-Z0-9_] ;
