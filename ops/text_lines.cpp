// Lines of text files: the source, and the operator that makes text of them.
#include <fmt/format.h>

#include "ops/files_in_turn.h"
#include "ops/row_source.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  std::vector<std::string> paths = matching_files(node, context, node.attrs.text("glob"), failure);
  if (paths.empty()) return nullptr;
  auto source = std::make_unique<RowSource>("lines", "line", std::move(paths),
                                            static_cast<uint64_t>(node.attrs.integer("max_line_bytes")), next_line,
                                            files_at_a_time(node));
  if (!source->open(node, nullptr, failure)) return nullptr;
  const std::vector<uint64_t> rows = source->row_counts();
  return files_in_turn(std::move(source), rows, node);
}

void infer(const Node& node, std::span<const StreamType>, StreamType& out, std::string& error) {
  error = files_in_turn_problem(node);
  out = {};
  out.fields = {
      {"$row", Type::scalar(Elem::Bytes)}, {"path", Type::scalar(Elem::Path)}, {"line", Type::scalar(Elem::I64)}};
}

Value define_text(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return forward(argument);
  std::string row = argument.at(0).s;
  const int64_t max = call.expr().attrs.integer("max_line_bytes");
  if (row == kGoneRow) return Value::failed(call.failure("R0406", std::string(gone_row_message())));
  if (row.size() > static_cast<uint64_t>(max))
    return Value::failed(call.failure("R0403", fmt::format("the line is longer than {} bytes (max_line_bytes)", max)));
  if (const auto bad = find_invalid_utf8(row))
    return Value::failed(call.failure(kBadText, fmt::format("the line is not UTF-8 from byte {} on", *bad)));
  return Value::scalar(Scalar::of_string(Elem::Str, std::move(row)));
}

bool run_text(NativeCall& call) {
  const std::string_view row = text_of(call.inputs[0]);
  if (row == kGoneRow || row.size() > static_cast<uint64_t>(call.expr->attrs.integer("max_line_bytes")) ||
      find_invalid_utf8(row) || !place_output(call, {}))
    return false;
  *static_cast<StringRef*>(call.output->data) = {row.data(), row.size()};
  return true;
}

}  // namespace

ZEPHON_OP_DEF(TextLines) = {
    .name = "text_lines",
    .cls = OpClass::Source,
    .signature =
        "glob: string, max_line_bytes: int = 1048576 >= 1, cycle_length: int? >= 1, block_length: int = 1 >= 1 -> "
        "stream",
    .summary = "One sample for each line of the files that match: fields `path`, `line` (from 1) and `text`.",
    .prose =
        "With `cycle_length` so many files are read side by side, `block_length` lines of each in turn, as "
        "`interleave` "
        "does with streams. Lines end in LF or CR LF; the last one need not. Empty lines are samples; a byte order "
        "mark is skipped. Files "
        "in gzip (several members too) or Zstandard form (several frames too) are told by their first bytes and read "
        "as what they hold. Every file is read once before the run, to count its lines; a damaged compressed file ends "
        "the run before it begins; a line that is not UTF-8 or "
        "longer than `max_line_bytes` fails its sample, where `text` is needed. `shuffle()` is cheap on plain files; "
        "on "
        "compressed ones each line is found from the nearest place where the stream can be entered (about every 1/128 "
        "of a gzip file, each frame of a Zstandard one): there `shuffle(buffer_size=n)` is faster.",
    .example = "text_lines(\"examples/data/*.csv\") | take(3)",
    .implicit = "text = line_text(row, max_line_bytes)",
    .kernel = {.open = open},
    .infer_stream = infer,
};

ZEPHON_OP_DEF(LineText) = {
    .name = "line_text",
    .cls = OpClass::Opaque,
    .signature = "row: bytes, max_line_bytes: int = 1048576 >= 1 -> str",
    .summary = "A line of a file as text.",
    .prose = "What `text_lines` assigns to `text`. Fails where the line is not UTF-8, or too long.",
    .example = "text_lines(\"examples/data/*.csv\") | take(3)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 40, .ns_per_element = 0, .ns_per_input_byte = 0.1},
    .define = {.tensor = define_text},
    .kernel = {.native = run_text},
};

}  // namespace zephon
