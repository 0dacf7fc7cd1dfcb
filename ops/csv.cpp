#include <fmt/format.h>

#include <algorithm>

#include "graph/leaf_path.h"
#include "ops/csv_row.h"
#include "ops/row_source.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

// A quote that does not close within `max` bytes is no quote: the row then ends at its first line end, and the rows
// behind it are read as usual. One missing quote costs one row, not the rest of the file.
bool read_row(ContentReader& content, uint64_t max, std::string& row) {
  row.clear();
  CsvState state = CsvState::FieldBegin;
  uint64_t length = 0, first_end = 0;  // bytes up to and with the first line end inside quotes
  auto cut_at_first_end = [&] {
    const size_t end = row.find('\n');
    if (end < row.size()) {
      content.unread(std::string_view(row).substr(end + 1));
      row.resize(end);
    }
    if (row.ends_with('\r')) row.pop_back();
    return true;
  };
  for (;;) {
    const std::string_view piece = content.peek();
    if (piece.empty()) break;
    size_t at = 0;
    for (; at < piece.size(); ++at) {
      const char c = piece[at];
      if (c == '\n') {
        if (state != CsvState::Quoted) {
          content.skip(at + 1);
          if (length == row.size() && row.ends_with('\r')) row.pop_back();
          return true;
        }
        if (!first_end) first_end = length + 1;
      }
      // Of what is too long, enough to see it, and all up to where the row may be cut.
      if (length <= max + 1) row.push_back(c);
      ++length;
      state = next_state(state, c);
      if (state == CsvState::Quoted && length > max && first_end) {
        content.skip(at + 1);
        return cut_at_first_end();
      }
    }
    content.skip(at);
  }
  if (state == CsvState::Quoted && first_end) return cut_at_first_end();
  if (length == row.size() && row.ends_with('\r')) row.pop_back();
  return length > 0;
}

// Blank lines at the end are no rows.
bool next_row(ContentReader& content, uint64_t max, std::string& row) {
  if (!read_row(content, max, row)) return false;
  if (!row.empty()) return true;
  std::string blank;
  for (std::string_view piece = content.peek(); !piece.empty(); piece = content.peek()) {
    const size_t size = std::min(piece.find_first_not_of("\r\n"), piece.size());
    const bool more = size < piece.size();
    blank += piece.substr(0, size);
    content.skip(size);
    if (!more) continue;
    if (!blank.empty()) content.unread(blank);
    return true;
  }
  return false;
}

bool check_header(const Node& node, ContentReader& content, const std::string& path, Failure& failure) {
  const Schema& schema = node.attrs.get<Schema>("columns");
  const auto max = static_cast<uint64_t>(node.attrs.integer("max_line_bytes"));
  auto bad = [&](std::string message) {
    failure = {"R0402", std::move(message), node.origin};
    return false;
  };
  std::string row, error;
  if (!next_row(content, max, row))
    return bad(fmt::format("`{}` is empty, and should begin with the names of its columns", shown_file(path)));
  if (row.size() > max) return bad(fmt::format("the header of `{}` is longer than {} bytes", shown_file(path), max));
  const auto names = split_row(row, error);
  if (!names) return bad(fmt::format("the header of `{}` is broken: {}", shown_file(path), error));
  for (size_t i = 0; i < std::min(names->size(), schema.columns.size()); ++i) {
    const std::string declared = LeafPath::parse(schema.columns[i].name).field();
    if ((*names)[i] != declared)
      return bad(fmt::format("column {} of `{}` is `{}`, the program declares `{}`", i + 1, shown_file(path),
                             shown_path((*names)[i]), declared));
  }
  if (names->size() != schema.columns.size())
    return bad(fmt::format("`{}` has {} columns, the program declares {}", shown_file(path), names->size(),
                           schema.columns.size()));
  return true;
}

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  std::vector<std::string> paths = {resolve_path(context.base_dir, node.attrs.text("path"))};
  auto source = std::make_unique<RowSource>("csv", "row", std::move(paths),
                                            static_cast<uint64_t>(node.attrs.integer("max_line_bytes")), next_row);
  RowSource::Header header;
  if (node.attrs.flag("header")) {
    header = [&](ContentReader& content, const std::string& path, Failure& f) {
      return check_header(node, content, path, f);
    };
  }
  if (!source->open(node, header, failure)) return nullptr;
  return source;
}

void infer(const Node& node, std::span<const StreamType>, StreamType& out, std::string& error) {
  out = {};
  out.fields = {{"$row", Type::scalar(Elem::Bytes)}};
  for (const Field& column : node.attrs.get<Schema>("columns").columns)
    if (!column.type.is_scalar() || column.name.find_first_of(".[") != std::string::npos)
      error = fmt::format("column `{}` must be a scalar", LeafPath::parse(column.name).field());
}

}  // namespace

ZEPHON_OP_DEF(Csv) = {
    .name = "csv",
    .cls = OpClass::Source,
    .signature = "path: string, columns: schema, header: bool = true, max_line_bytes: int = 1048576 >= 1 -> stream",
    .summary = "One sample for each row of a comma-separated table, with the declared columns as fields.",
    .prose =
        "The format is RFC 4180; lines may end in LF or CR LF, and a byte order mark is skipped. A file in gzip or "
        "Zstandard form is read as what it holds. `columns` declares "
        "all columns in the order of the file, and must agree with the header. Nothing is guessed: a row with "
        "another number of fields, a text that is not of its type, broken quotes or more than `max_line_bytes` fail "
        "the sample, where that column is needed. Of a column `T?` an empty text is a missing value. A quote that "
        "never closes costs its own line only. "
        "Blank lines at the end of the file are no rows; one before the end is a row of one empty field. A number too "
        "close to 0 for its type rounds to it; one too large is not of the type.",
    .example = "csv(\"examples/data/ecg.csv\", columns={millivolt: f32})",
    .implicit_column = "csv_field",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
