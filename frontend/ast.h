// The program as written: what ZPL and YAML both become. Values own their children and copy deeply; every node has the
// place it came from. Nothing here is resolved: names are texts, numbers are literals as typed, `x.f(y)` is a call
// whose first operand is `x`. A node of a later version of the language (import) has its place in the
// syntax already and is refused by parse_zpl.cpp.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/diag/span.h"

namespace zephon::ast {

struct Name {
  std::string text;
  Span span;
};

struct SchemaField;

struct Expr {
  enum class Kind : uint8_t {
    Absent,  // a bound that a slice leaves out
    Number,  // `text` as typed, without underscores
    String,  // `pieces`, with the `operands` between them (the holes): pieces.size() == operands.size() + 1
    Bool,    // `text` is "true" or "false"
    Name,    // `text`
    Call,    // `text` of `operands`, named ones with `names[i]`; for `x.f(y)` `method` is set and operands[0] is x
    Member,  // operands[0] . `text`
    Index,   // operands[0] [ operands[1], ... ]: expressions or slices
    Slice,   // operands[0] : operands[1] : operands[2], each may be absent
    Unary,   // `text` is "-" or "not"
    Binary,  // `text` is the sign, or "and", "or"
    List,
    Schema,  // `fields`: names with types, as an argument of a source
  };
  Kind kind = Kind::Absent;
  bool method = false;
  uint32_t depth = 1;  // of the tree below, at most kMaxDepth
  Span span;
  std::string text;
  Span text_span;  // of the called name, the member, the sign
  std::vector<Expr> operands;
  std::vector<Name> names;  // of a call: parallel to operands, an empty text where the argument is positional
  std::vector<std::string> pieces;
  std::vector<SchemaField> fields;
};

// Brackets nest at most this deep, and no tree of an expression is deeper than kMaxDepth (a long sum is a deep tree).
inline constexpr uint32_t kMaxNesting = 200;
inline constexpr uint32_t kMaxDepth = 1000;

struct Type {
  enum class Kind : uint8_t {
    Named,   // `name`, with `dims` where `tensor` is set: f32, f32[3, h, w]
    Enum,    // enum(`values`)
    Record,  // {`fields`}
    Batch,   // batch<`fields[0].type`>
    List,    // list<`fields[0].type`>
  };
  Kind kind = Kind::Named;
  bool tensor = false;
  bool optional = false;  // `?` behind it
  Span span;
  std::string name;
  std::vector<Expr> dims;
  std::vector<Name> values;
  std::vector<SchemaField> fields;
};

struct SchemaField {
  Name name;
  Type type;
};

struct Step {
  enum class Kind : uint8_t {
    Assign,  // `name` = `expr`
    Filter,  // `expr`
    Select,  // `fields`
    Drop,    // `fields`
    If,      // `expr`, known before the run: `then` or `otherwise`
    Call,    // a dataset operator: `expr` is the call
  };
  Kind kind = Kind::Call;
  Span span;
  Name name;  // of the field, or the word that opens the step
  Expr expr;
  std::vector<Name> fields;
  std::vector<Step> then;
  std::vector<Step> otherwise;
};

// A source and its steps. The source is a call, or the name of a stream.
struct Pipe {
  Span span;
  Expr source;
  std::vector<Step> steps;
};

struct Parameter {
  Name name;
  std::optional<Type> type;
  std::optional<Expr> default_value;
};

struct Let {
  Name name;
  Expr value;
};

struct Function {
  Name name;
  Span span;
  std::vector<Parameter> parameters;
  Expr body;
};

struct Stream {
  Name name;
  Pipe pipe;
};

struct Declarations {
  std::vector<Let> lets;
  std::vector<Function> functions;
  std::vector<Stream> streams;
};

struct Pipeline {
  Name name;  // empty for a bare pipeline
  Span span;
  std::vector<Parameter> parameters;
  std::optional<Type> contract;
  Declarations declarations;
  Pipe pipe;
};

struct File {
  FileId file;
  Declarations declarations;
  std::vector<Pipeline> pipelines;  // one, in this version
};

}  // namespace zephon::ast
