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
// brace is a sample wherever it can be one.
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
literal     : MINUS* NUMBER | STRING | RAW_STRING | TRUE | FALSE ;

pipe   : source ( BAR step )* ;
source : NAME ( DOT NAME )? callArguments? ;

step
  : NAME ( ASSIGN expr | callArguments )?                      # AssignOrCallStep
  | FILTER expr                                                # FilterStep
  | SELECT NAME ( COMMA NAME )*                                # SelectStep
  | DROP NAME ( COMMA NAME )*                                  # DropStep
  | IF expr block elseBranch*                                  # IfStep
  ;
elseBranch : ELSE ( IF expr )? block ;
block      : LBRACE ( BAR? step ( BAR step )* )? RBRACE ;

callArguments : LPAREN ( argument ( COMMA argument? )* )? RPAREN ;
argument      : expr ( ASSIGN expr )? ;

expr           : andExpr ( OR andExpr )* ;
andExpr        : notExpr ( AND notExpr )* ;
notExpr        : NOT* comparison ;
comparison     : sum ( comparisonSign sum )* ;
comparisonSign : EQUAL | UNEQUAL | LESS | LESS_EQ | GREATER | GREATER_EQ ;
sum            : product ( sumSign product )* ;
sumSign        : PLUS | MINUS ;
product        : negation ( productSign negation )* ;
productSign    : MUL | DIV | FLOOR_DIV | MOD ;
negation         : MINUS* postfix ;
postfix        : primary suffix* ;
suffix
  : DOT member callArguments?                                  # MemberSuffix
  | LBRACKET subscript ( COMMA subscript )* RBRACKET           # IndexSuffix
  ;
// After a dot, words of the language are ordinary names.
member    : NAME | FILTER | SELECT | DROP | STREAM | PIPELINE | ENUM | IMPORT | LET | FN | ZPL ;
subscript : expr slice? | slice ;
slice     : COLON expr? ( COLON expr? )? ;
primary
  : NUMBER                                                     # NumberExpr
  | STRING                                                     # StringExpr
  | RAW_STRING                                                 # RawStringExpr
  | ( TRUE | FALSE )                                           # BoolExpr
  | NAME callArguments?                                        # NameExpr
  | LPAREN expr RPAREN                                         # GroupExpr
  | LBRACKET ( expr ( COMMA expr? )* )? RBRACKET               # ListExpr
  | schema                                                     # SchemaExpr
  ;
