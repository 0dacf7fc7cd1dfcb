#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "ops/csv_row.h"
#include "ops/file_io.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

constexpr size_t kBlock = 64 << 10;       // bytes read at once
constexpr size_t kMostEntries = 1 << 20;  // of the row index: 8 MB

// Reads a file forward, block by block, from any offset.
class Cursor {
 public:
  explicit Cursor(const InputFile& file) : file_(&file) {}
  void seek(uint64_t offset) { at_ = offset; }
  uint64_t offset() const { return at_; }
  // False at the end of the file, or where it cannot be read (then error() is set).
  bool get(char& c) {
    if (at_ < begin_ || at_ >= begin_ + have_) {
      if (!fill()) return false;
    }
    c = block_[at_++ - begin_];
    return true;
  }
  int error() const { return error_; }

 private:
  bool fill() {
    if (block_.empty()) block_.resize(kBlock);
    begin_ = at_;
    const int64_t n = file_->read_at(begin_, block_.data(), block_.size());
    have_ = n > 0 ? static_cast<size_t>(n) : 0;
    if (n < 0) error_ = static_cast<int>(-n);
    return n > 0;
  }

  const InputFile* file_;
  std::vector<char> block_;
  uint64_t at_ = 0, begin_ = 0;
  size_t have_ = 0;
  int error_ = 0;
};

// Moves past one row and appends its bytes, without line end, to `row` (at most max + 1 of them: enough to see that it
// is too long). False at the end of the file. A quote that does not close within max bytes is no quote: the row then
// ends at its first line end, and the rows behind it are read as usual. One missing quote costs one row, not the rest
// of the file.
bool next_row(Cursor& cursor, uint64_t max, std::string* row) {
  const uint64_t begin = cursor.offset();
  CsvState state = CsvState::FieldBegin;
  uint64_t length = 0, first_end = 0;  // offset just behind the first line end inside quotes
  char c = 0;
  auto cut_at_first_end = [&] {
    if (row) row->resize(std::min<size_t>(row->size(), row->find('\n')));
    cursor.seek(first_end);
  };
  for (;;) {
    if (!cursor.get(c)) {
      if (state == CsvState::Quoted && first_end) cut_at_first_end();
      break;
    }
    if (c == '\n') {
      if (state != CsvState::Quoted) break;
      if (!first_end) first_end = cursor.offset();
    }
    if (row && length <= max) row->push_back(c);
    ++length;
    state = next_state(state, c);
    if (state == CsvState::Quoted && length > max && first_end) {
      cut_at_first_end();
      break;
    }
  }
  if (row && row->size() <= max + 1 && row->ends_with('\r')) row->pop_back();
  return cursor.offset() > begin;
}

class CsvSource final : public Source {
 public:
  CsvSource(const Node& node, std::string path)
      : path_(std::move(path)), max_(static_cast<uint64_t>(node.attrs.integer("max_line_bytes"))) {
    static std::atomic<uint64_t> made{0};
    serial_ = ++made;
  }

  // Reads the header and indexes the rows.
  bool open(const Node& node, Failure& failure) {
    if (const int error = file_.open(path_)) {
      failure = cannot_read(path_, error, node.origin);
      return false;
    }
    Cursor cursor(file_);
    skip_byte_order_mark(cursor);
    if (node.attrs.flag("header") && !check_header(node, cursor, failure)) return false;
    // Offsets of every stride-th row. When there are too many, every other one goes: the index stays bounded.
    for (uint64_t offset = cursor.offset(); next_row(cursor, max_, nullptr); offset = cursor.offset(), ++rows_) {
      if (rows_ % stride_ != 0) continue;
      if (index_.size() == kMostEntries) {
        for (size_t i = 0; i < index_.size() / 2; ++i) index_[i] = index_[2 * i];
        index_.resize(index_.size() / 2);
        stride_ *= 2;
        if (rows_ % stride_ != 0) continue;
      }
      index_.push_back(offset);
    }
    if (cursor.error()) {
      failure = cannot_read(path_, cursor.error(), node.origin);
      return false;
    }
    return true;
  }

  uint64_t size() const override { return rows_; }

  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    // Rows are mostly read in order: each thread goes on where it stood.
    struct Place {
      uint64_t serial = 0, next = 0;
      std::unique_ptr<Cursor> cursor;
      std::string row;
    };
    thread_local Place place;
    if (place.serial != serial_) {
      place.cursor = std::make_unique<Cursor>(file_);
      place.serial = serial_;
      place.next = UINT64_MAX;
    }
    if (place.next > position || position / stride_ > place.next / stride_) {
      place.next = position - position % stride_;
      place.cursor->seek(index_[place.next / stride_]);
    }
    for (; place.next < position; ++place.next) next_row(*place.cursor, max_, nullptr);
    place.row.clear();
    next_row(*place.cursor, max_, &place.row);
    ++place.next;
    auto* bytes = static_cast<char*>(allocator.alloc(place.row.size() + 1));
    std::memcpy(bytes, place.row.data(), place.row.size());
    TensorRef& row = columns[0];
    if (!row.data) row.data = allocator.alloc(sizeof(StringRef));
    row.rank = 0;
    row.elem = Elem::Bytes;
    *static_cast<StringRef*>(row.data) = {bytes, place.row.size()};
  }
  std::string describe(uint64_t position) const override {
    return fmt::format("{}, row {}", shown_path(path_), position + 1);
  }
  std::string fingerprint() const override { return fmt::format("csv {} {:016x}", rows_, file_fingerprint(path_)); }

 private:
  static void skip_byte_order_mark(Cursor& cursor) {
    for (const char expected : {'\xef', '\xbb', '\xbf'}) {
      char c = 0;
      if (!cursor.get(c) || c != expected) return cursor.seek(0);
    }
  }

  bool check_header(const Node& node, Cursor& cursor, Failure& failure) {
    const Schema& schema = node.attrs.get<Schema>("columns");
    auto bad = [&](std::string message) {
      failure = {"R0402", std::move(message), node.origin};
      return false;
    };
    std::string row, error;
    if (!next_row(cursor, max_, &row)) {
      if (cursor.error()) {
        failure = cannot_read(path_, cursor.error(), node.origin);
        return false;
      }
      return bad(fmt::format("`{}` is empty, and should begin with the names of its columns", shown_path(path_)));
    }
    if (row.size() > max_)
      return bad(fmt::format("the header of `{}` is longer than {} bytes", shown_path(path_), max_));
    const auto names = split_row(row, error);
    if (!names) return bad(fmt::format("the header of `{}` is broken: {}", shown_path(path_), error));
    for (size_t i = 0; i < std::min(names->size(), schema.columns.size()); ++i) {
      if ((*names)[i] != schema.columns[i].name)
        return bad(fmt::format("column {} of `{}` is `{}`, the program declares `{}`", i + 1, shown_path(path_),
                               shown_path((*names)[i]), schema.columns[i].name));
    }
    if (names->size() != schema.columns.size())
      return bad(fmt::format("`{}` has {} columns, the program declares {}", shown_path(path_), names->size(),
                             schema.columns.size()));
    return true;
  }

  std::string path_;
  uint64_t max_;
  uint64_t serial_ = 0;  // tells sources apart in a thread's place, where an address may be used again
  InputFile file_;
  uint64_t rows_ = 0;
  uint64_t stride_ = 1;
  std::vector<uint64_t> index_;  // [i]: offset of row i * stride_
};

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  auto source = std::make_unique<CsvSource>(node, resolve_path(context.base_dir, node.attrs.text("path")));
  if (!source->open(node, failure)) return nullptr;
  return source;
}

void infer(const Node& node, std::span<const StreamType>, StreamType& out, std::string& error) {
  out = {};
  out.fields = {{"$row", Type::scalar(Elem::Bytes)}};
  for (const Field& column : node.attrs.get<Schema>("columns").columns)
    if (!column.type.is_scalar()) error = fmt::format("column `{}` must be a scalar", column.name);
}

}  // namespace

ZEPHON_OP_DEF(Csv) = {
    .name = "csv",
    .cls = OpClass::Source,
    .signature = "path: string, columns: schema, header: bool = true, max_line_bytes: int = 1048576 >= 1 -> stream",
    .summary = "One sample for each row of a comma-separated table, with the declared columns as fields.",
    .prose =
        "The format is RFC 4180; lines may end in LF or CR LF, and a byte order mark is skipped. `columns` declares "
        "all columns in the order of the file, and must agree with the header. Nothing is guessed: a row with "
        "another number of fields, a text that is not of its type, broken quotes or more than `max_line_bytes` fail "
        "the sample, where that column is needed. A quote that never closes costs its own line only.",
    .example = "csv(\"examples/data/ecg.csv\", columns={millivolt: f32})",
    .implicit_column = "csv_field",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
