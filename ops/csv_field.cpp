#include <fmt/format.h>

#include <cstring>

#include "graph/leaf_path.h"
#include "graph/op_def.h"
#include "ops/csv_row.h"
#include "ops/row_source.h"

namespace zephon {
namespace {

// A column `T?` is missing where its text is empty.
struct Part {
  bool optional, asks_missing;
  explicit Part(const Attrs& attrs)
      : optional(attrs.text("name").ends_with('?')), asks_missing(attrs.text("part") == "missing") {}
};

Value define(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return Value::failed(*argument.failure());
  const std::string row = argument.at(0).s;
  const Attrs& attrs = call.expr().attrs;
  if (row == kGoneRow) return Value::failed(call.failure("R0406", std::string(gone_row_message())));
  if (row.size() > static_cast<size_t>(attrs.integer("max_line_bytes"))) {
    return Value::failed(call.failure(
        "R0403", fmt::format("the row is longer than {} bytes (max_line_bytes)", attrs.integer("max_line_bytes"))));
  }
  std::string error;
  const auto fields = split_row(row, error);
  if (!fields) return Value::failed(call.failure("R0403", error));
  const auto count = static_cast<size_t>(attrs.integer("count"));
  if (row.empty() && count > 1)
    return Value::failed(
        call.failure("R0403", fmt::format("a blank line, where the program declares {} fields", count)));
  if (fields->size() != count) {
    return Value::failed(
        call.failure("R0403", fmt::format("the row has {} fields, the program declares {}", fields->size(), count)));
  }
  const std::string& text = (*fields)[static_cast<size_t>(attrs.integer("index"))];
  const Part part(attrs);
  if (part.asks_missing) return Value::scalar(Scalar::of_bool(text.empty()));
  if (text.empty() && part.optional) return Value(attrs.get<Elem>("type"), {});
  const auto scalar = parse_element(attrs.get<Elem>("type"), text, error);
  if (!scalar) {
    if (text.empty()) error += "; if it may be empty, declare its type with a `?`";
    const std::string name = LeafPath::parse(attrs.text("name")).field();
    return Value::failed(call.failure("R0404", fmt::format("column `{}` {}", name, error)));
  }
  return Value::scalar(*scalar);
}

// One walk over the bytes; copies only fields with doubled quotes.
bool run(NativeCall& call) {
  const Attrs& attrs = call.expr->attrs;
  const std::string_view row = static_cast<const StringRef*>(call.inputs[0].data)->view();
  if (row == kGoneRow || row.size() > static_cast<size_t>(attrs.integer("max_line_bytes"))) return false;
  const int64_t wanted = attrs.integer("index");
  std::string_view text;
  bool doubled = false;
  int64_t field = 0;
  size_t at = 0;
  for (;; ++field) {
    std::string_view content;
    bool has_doubled = false;
    if (at < row.size() && row[at] == '"') {
      const size_t begin = ++at;
      for (;;) {
        at = row.find('"', at);
        if (at == std::string_view::npos) return false;
        if (at + 1 >= row.size() || row[at + 1] != '"') break;
        has_doubled = true;
        at += 2;
      }
      content = row.substr(begin, at - begin);
      ++at;
      if (at < row.size() && row[at] != ',') return false;
    } else {
      const size_t end = std::min(row.find(',', at), row.size());
      content = row.substr(at, end - at);
      if (content.find('"') != std::string_view::npos) return false;
      at = end;
    }
    if (field == wanted) {
      text = content;
      doubled = has_doubled;
    }
    if (at >= row.size()) break;
    ++at;
  }
  if (field + 1 != attrs.integer("count")) return false;
  if (doubled) {
    auto* copy = static_cast<char*>(call.alloc(text.size()));
    size_t n = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      copy[n++] = text[i];
      if (text[i] == '"') ++i;
    }
    text = {copy, n};
  }
  const Elem elem = attrs.get<Elem>("type");
  TensorRef& out = *call.output;
  const Part part(attrs);
  if (part.asks_missing || (part.optional && text.empty() && !is_string(elem))) {
    const size_t size = part.asks_missing ? 1 : elem_size(elem);
    if (!out.data) out.data = call.alloc(size);
    out.rank = 0;
    std::memset(out.data, part.asks_missing && text.empty(), size);
    return true;
  }
  if (!out.data) out.data = call.alloc(elem_size(elem));
  out.rank = 0;
  if (is_string(elem)) {
    if (elem == Elem::Str && find_invalid_utf8(text)) return false;
    *static_cast<StringRef*>(out.data) = {text.data(), text.size()};
    return true;
  }
  std::string error;
  const auto scalar = parse_element(elem, text, error);
  if (!scalar) return false;
  Value value(elem, {});
  value.set(0, *scalar);
  std::memcpy(out.data, value.bytes().data(), value.bytes().size());
  return true;
}

void infer(InferCall& call) {
  call.result = Type::scalar(call.attrs.text("part") == "missing" ? Elem::Bool : call.attrs.get<Elem>("type"));
}

}  // namespace

ZEPHON_OP_DEF(CsvField) = {
    .name = "csv_field",
    .cls = OpClass::Opaque,
    .signature =
        "row: bytes, index: int >= 0, name: string, type: elem, count: int >= 1, "
        "max_line_bytes: int = 1048576 >= 1, part: enum(value, missing) = value -> T",
    .summary = "Field `index` of a row of a table that has `count` fields, read as `type`.",
    .prose =
        "What `csv` assigns to its columns. Fails where the row does not have `count` fields, has broken quotes or is "
        "too long, and where the text is not of the type. Numbers are decimal, with a point and without spaces; "
        "floats may be nan or inf; bool is true, false, True, False, 0 or 1; `str` must be UTF-8. Where `name` ends "
        "with `?` an empty text is a missing value; `part=missing` says so.",
    .example = "csv(\"examples/data/ecg.csv\", columns={millivolt: f32})",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 200, .ns_per_element = 0},
    .define = {.tensor = define},
    .kernel = {.native = run},
    .infer = infer,
};

}  // namespace zephon
