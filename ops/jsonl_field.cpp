// jsonl_columns jsonl_field: what `jsonl` assigns to its fields.
#include <fmt/format.h>

#include <cstring>

#include "ops/json_text.h"
#include "ops/row_source.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

bool split(const Attrs& attrs, std::string_view row, std::vector<std::string_view>& texts, std::string& error) {
  const int64_t most = attrs.integer("max_line_bytes");
  if (row == kGoneRow) {
    error = gone_row_message();
    return false;
  }
  if (row.size() > static_cast<size_t>(most)) {
    error = fmt::format("the line is longer than {} bytes: raise `max_line_bytes`", most);
    return false;
  }
  return split_json_line(row, attrs.get<std::vector<std::string>>("keys"), texts, error);
}

Value define_columns(DefineCall& call) {
  const Value& row = call.arg(0);
  if (row.any_failed()) return forward(row);
  std::vector<std::string_view> texts;
  std::string error;
  if (!split(call.expr().attrs, row.string_items()[0], texts, error))
    return Value::failed(call.failure(row.string_items()[0] == kGoneRow ? "R0406" : "R0403", error));
  Value out(Elem::Bytes, {static_cast<int64_t>(texts.size())});
  for (size_t i = 0; i < texts.size(); ++i) out.mutable_string_items()[i] = texts[i];
  return out;
}

bool run_columns(NativeCall& call) {
  thread_local std::vector<std::string_view> texts;
  thread_local std::string error;
  if (!split(call.expr->attrs, text_of(call.inputs[0]), texts, error)) return false;
  const int64_t shape[] = {static_cast<int64_t>(texts.size())};
  if (!place_output(call, shape)) return false;
  // Views into the row, which the chunk keeps.
  for (size_t i = 0; i < texts.size(); ++i)
    static_cast<StringRef*>(call.output->data)[i] = {texts[i].data(), texts[i].size()};
  return true;
}

void infer_columns(InferCall& call) {
  call.result = Type::tensor(Elem::Bytes,
                             {Dim::of(static_cast<int64_t>(call.attrs.get<std::vector<std::string>>("keys").size()))});
}

// ---- one field

struct Wanted {
  enum class Part : uint8_t { Value, Missing, Lengths } part;
  int64_t index, level;
  const std::string& path;
  Elem elem;
  const std::vector<int64_t>& shape;
  bool lists;
  explicit Wanted(const Attrs& attrs)
      : part(attrs.text("part") == "value"     ? Part::Value
             : attrs.text("part") == "missing" ? Part::Missing
                                               : Part::Lengths),
        index(attrs.integer("index")),
        level(attrs.integer("level")),
        path(attrs.text("name")),
        elem(attrs.get<Elem>("type")),
        shape(attrs.get<std::vector<int64_t>>("shape")),
        lists(path.find("[]") != std::string::npos) {}
  // The whole value may be missing: the first `?` stands before all lists.
  bool whole_may_miss() const { return path.find('?') < path.find("[]"); }
};

// The shape and the content of the result, from a leaf that was read.
std::vector<int64_t> shape_of_leaf(const Wanted& wanted, const JsonLeaf& leaf) {
  if (wanted.part == Wanted::Part::Missing) return {leaf.elements};
  if (wanted.part == Wanted::Part::Lengths)
    return {static_cast<int64_t>(leaf.lengths[static_cast<size_t>(wanted.level)].size())};
  std::vector<int64_t> shape = leaf.shape;
  if (wanted.lists) shape.insert(shape.begin(), leaf.elements);
  return shape;
}

const void* bytes_of_leaf(const Wanted& wanted, const JsonLeaf& leaf) {
  if (wanted.part == Wanted::Part::Missing) return leaf.missing.data();
  if (wanted.part == Wanted::Part::Lengths) return leaf.lengths[static_cast<size_t>(wanted.level)].data();
  return leaf.data.data();
}

Elem elem_of(const Wanted& wanted) {
  return wanted.part == Wanted::Part::Missing   ? Elem::Bool
         : wanted.part == Wanted::Part::Lengths ? Elem::I64
                                                : wanted.elem;
}

bool read(const Wanted& wanted, std::string_view text, JsonLeaf& leaf, std::string& error) {
  return read_json_leaf(text, wanted.path, wanted.elem, wanted.shape, leaf, error);
}

Value define_field(DefineCall& call) {
  const Value& columns = call.arg(0);
  if (columns.any_failed()) return forward(columns);
  const Wanted wanted(call.expr().attrs);
  const std::string& text = columns.string_items()[static_cast<size_t>(wanted.index)];
  if (wanted.part == Wanted::Part::Missing && wanted.whole_may_miss() && text != kNoObject && text != kLacking)
    return Value::scalar(Scalar::of_bool(text.empty()));
  JsonLeaf leaf;
  std::string error;
  if (!read(wanted, text, leaf, error)) return Value::failed(call.failure("R0404", error));
  Value out(elem_of(wanted), shape_of_leaf(wanted, leaf));
  if (is_string(out.elem())) {
    out.mutable_string_items() = std::move(leaf.strings);
  } else if (!out.bytes().empty()) {
    std::memcpy(out.mutable_bytes().data(), bytes_of_leaf(wanted, leaf), out.bytes().size());
  }
  return out;
}

bool run_field(NativeCall& call) {
  const Wanted wanted(call.expr->attrs);
  const std::string_view text = text_of(call.inputs[0], wanted.index);
  if (text == kNoObject || text == kLacking) return false;
  thread_local std::string error;
  if (wanted.part == Wanted::Part::Missing && wanted.whole_may_miss()) {
    if (!place_output(call, {})) return false;
    *static_cast<uint8_t*>(call.output->data) = text.empty();
    return true;
  }
  if (wanted.part == Wanted::Part::Value && !wanted.lists && wanted.shape.empty() && !text.empty() && text != "null") {
    thread_local std::string storage;
    JsonScalar scalar;
    if (!read_json_scalar(text, wanted.elem, scalar, storage, error) || !place_output(call, {})) return false;
    if (is_string(wanted.elem)) {
      // A view into the row where nothing was unescaped.
      *static_cast<StringRef*>(call.output->data) = scalar.s.data() == storage.data() && !scalar.s.empty()
                                                        ? store_string(call, scalar.s)
                                                        : StringRef{scalar.s.data(), scalar.s.size()};
      return true;
    }
    Value value(wanted.elem, {});
    value.set(0,
              is_float(wanted.elem) ? Scalar::of_float(wanted.elem, scalar.f) : Scalar{wanted.elem, scalar.i, 0, {}});
    std::memcpy(call.output->data, value.bytes().data(), value.bytes().size());
    return true;
  }
  thread_local JsonLeaf leaf;
  if (!read(wanted, text, leaf, error)) return false;
  const std::vector<int64_t> shape = shape_of_leaf(wanted, leaf);
  if (!place_output(call, shape)) return false;
  if (is_string(call.output->elem)) {
    for (size_t i = 0; i < leaf.strings.size(); ++i)
      static_cast<StringRef*>(call.output->data)[i] = store_string(call, leaf.strings[i]);
  } else if (const size_t bytes = call.output->byte_size()) {
    std::memcpy(call.output->data, bytes_of_leaf(wanted, leaf), bytes);
  }
  return true;
}

void infer_field(InferCall& call) {
  const Wanted wanted(call.attrs);
  call.result = Type::scalar(elem_of(wanted));
  if (wanted.part == Wanted::Part::Missing) {
    if (!wanted.whole_may_miss()) call.result.shape = {varying_dim()};
    return;
  }
  if (wanted.lists || wanted.part == Wanted::Part::Lengths) call.result.shape = {varying_dim()};
  if (wanted.part == Wanted::Part::Lengths) return;
  for (int64_t extent : wanted.shape) call.result.shape.push_back(extent < 0 ? Dim::unknown() : Dim::of(extent));
}

}  // namespace

ZEPHON_OP_DEF(JsonlColumns) = {
    .name = "jsonl_columns",
    .cls = OpClass::Opaque,
    .signature = "row: bytes, keys: strings, max_line_bytes: int = 8388608 >= 1 -> bytes[?]",
    .summary = "The JSON texts that stand at `keys` in a line that holds one object.",
    .prose =
        "What `jsonl` splits its lines with, once for all fields. The whole line must be JSON and UTF-8; a declared "
        "key "
        "that stands twice fails. The text is empty where the key or a parent is absent or null.",
    .example = "jsonl(\"examples/data/reviews.jsonl\", schema={text: str})",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 300, .ns_per_element = 20, .ns_per_input_byte = 1},
    .define = {.tensor = define_columns},
    .kernel = {.native = run_columns},
    .infer = infer_columns,
};

ZEPHON_OP_DEF(JsonlField) = {
    .name = "jsonl_field",
    .cls = OpClass::Opaque,
    .signature =
        "columns: bytes[n], index: int >= 0, name: string, type: elem, shape: ints, part: enum(value, missing, "
        "lengths) "
        "= value, level: int = 0 >= 0 -> T",
    .summary = "The value at one path of a line of JSON, read as `type`.",
    .prose =
        "What `jsonl` assigns to its fields. `part=missing` says what is missing of it, `part=lengths` how long its "
        "lists "
        "of depth `level` are. Fails where a key that is not optional is absent or null, and where a value is not of "
        "the type: integers have no point and no exponent and must fit, and a string is no number.",
    .example = "jsonl(\"examples/data/reviews.jsonl\", schema={stars: i64})",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 60, .ns_per_element = 20},
    .define = {.tensor = define_field},
    .kernel = {.native = run_field},
    .infer = infer_field,
};

}  // namespace zephon
