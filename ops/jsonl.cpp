#include "ops/files_in_turn.h"
#include "ops/row_source.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  std::vector<std::string> paths = matching_files(node, context, node.attrs.text("path"), failure);
  if (paths.empty()) return nullptr;
  auto source = std::make_unique<RowSource>("jsonl", "line", std::move(paths),
                                            static_cast<uint64_t>(node.attrs.integer("max_line_bytes")), next_line,
                                            files_at_a_time(node));
  if (!source->open(node, nullptr, failure)) return nullptr;
  const std::vector<uint64_t> rows = source->row_counts();
  return files_in_turn(std::move(source), rows, node);
}

void infer(const Node& node, std::span<const StreamType>, StreamType& out, std::string& error) {
  out = {};
  out.fields = {{"$row", Type::scalar(Elem::Bytes)}};
  if (node.attrs.get<Schema>("schema").columns.empty()) error = "the schema names no field";
  if (error.empty()) error = files_in_turn_problem(node);
}

}  // namespace

ZEPHON_OP_DEF(Jsonl) = {
    .name = "jsonl",
    .cls = OpClass::Source,
    .signature =
        "path: string, schema: schema, max_line_bytes: int = 8388608 >= 1, cycle_length: int? >= 1, block_length: int "
        "= 1 >= 1 -> stream",
    .summary =
        "One sample for each line of the files that match, a JSON object, with the fields that the schema declares.",
    .prose =
        "Files in order of their paths, lines in order; with `cycle_length` so many files are read side by side, "
        "`block_length` lines of each in turn, as `interleave` does with streams. A byte order mark is skipped, lines "
        "may end in LF or CR LF, "
        "and "
        "the content may be compressed with gzip or Zstandard. Only declared keys are looked at, and each is read only "
        "where its field is needed. `T?` may be missing or null; `list<T>` has any length, `T[3]` exactly three "
        "values; `{...}` is an object, whose fields are named `x.y`. A missing parent makes a field missing if the "
        "field "
        "or the parent is optional, else it fails. A line that is no JSON or too long fails all of its fields.",
    .example = "jsonl(\"examples/data/reviews.jsonl\", schema={text: str, stars: i64, author: {name: str?}})",
    .implicit_column = "jsonl_field",
    .implicit_columns = "jsonl_columns",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
