// The program as written: what ZPL and YAML both become. Values own their children and copy deeply; every node has the
// place it came from. Nothing here is resolved: names are texts, numbers are literals as typed, `x.f(y)` is a call
// whose first operand is `x`. How a thing was spelled is kept where a person chose it (parentheses, literals,
// comments): frontend/print.h writes programs from here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/diag/span.h"

namespace zephon {
struct StreamType;
}

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
  bool group = false;  // stands in parentheses
  uint32_t depth = 1;  // of the tree below, at most kMaxDepth
  Span span;
  std::string text;
  Span text_span;  // of the called name, the member, the sign
  std::vector<Expr> operands;
  std::vector<Name> names;  // of a call: parallel to operands, an empty text where the argument is positional
  std::vector<std::string> pieces;
  std::vector<SchemaField> fields;
  std::string literal;  // a number or string as ZPL spells it: 50_000, "a\t{x}", r"a\t"
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
    Value,   // no type, but a literal in its place, `dims[0]`: padding={tokens: -1}
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

// What a test gives for one field, one value for each sample (Absent where the sample says nothing). `types` are those
// that the values take. `partial`: what is not given is left out; else it is missing where it may be.
struct GivenSamples {
  std::vector<Expr> samples;
  std::shared_ptr<const StreamType> types;
  bool partial = false;
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
  std::shared_ptr<const GivenSamples> given;  // of an Assign, in place of `expr`; only a test that is compiled has it
  Span then_block, else_block;  // of an If: the braces and what they hold; none where there is no `else`
};

// A source and its steps. The source is a call, or the name of a stream (a Member where it is imported: `aug.web`).
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

struct Import {
  Name alias;
  Span span;
  Expr path;  // a string without holes
};

struct Let {
  Name name;
  Span span;
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
  Span span;
  std::optional<Type> contract;
  Pipe pipe;
};

struct TestField {
  Name name;
  Expr value;
};
struct TestSample {
  Span span;
  std::vector<TestField> fields;
};
// `params: {size: 8}`, `input: {x: 3}`, `expect: [{y: 10}, {y: 11}]`, `expect: [10, 11]`, `check f(3) == 10`,
// `fails "overflow"`.
struct TestEntry {
  Name key;
  Span span;
  bool list = false;  // samples in brackets
  std::vector<TestSample> samples;
  std::optional<Expr> values;  // of expect, instead of samples: a list of what the only field holds
  std::optional<Expr> expr;    // of check and fails
};
// An example that `zephonc test` runs.
struct Test {
  std::string name;
  std::string literal;  // the name as ZPL spells it, with its quotes
  Span span, name_span, block;
  std::optional<Name> of;  // the pipeline or stream under test
  std::vector<TestEntry> entries;

  const TestEntry* find(std::string_view key) const {
    for (const TestEntry& entry : entries)
      if (entry.key.text == key) return &entry;
    return nullptr;
  }
};

struct Declarations {
  std::vector<Import> imports;
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
  Span block;  // the braces and what they hold; none for a bare pipeline
};

// From `#` to the end of the line, without it.
struct Comment {
  Span span;
  std::string text;
};

struct File {
  FileId file;
  Span header;  // `zpl 1`; none where it is left out
  Declarations declarations;
  std::vector<Pipeline> pipelines;
  std::vector<Test> tests;
  std::vector<Comment> comments;  // in the order of the text
};

}  // namespace zephon::ast
