#include "ops/row_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/identity.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

constexpr uint64_t kMostEntries = 1 << 20;  // of the row index: 8 MB
constexpr size_t kMostIdle = 4;             // readers kept open for each file that is being read,
constexpr size_t kMostOpen = 256;           // and of all together

void skip_byte_order_mark(ContentReader& content) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  std::string seen;
  for (; seen.size() < kMark.size() && kMark.starts_with(seen) && !content.peek().empty(); content.skip(1))
    seen += content.peek()[0];
  if (seen != kMark) content.unread(seen);
}

}  // namespace

bool next_line(ContentReader& content, uint64_t max, std::string& row) {
  row.clear();
  bool any = false, whole = true;
  for (;;) {
    const std::string_view piece = content.peek();
    if (piece.empty()) break;
    any = true;
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    const size_t room = static_cast<size_t>(std::min<uint64_t>(max + 2 - row.size(), part.size()));
    row.append(part.substr(0, room));
    whole = whole && room == part.size();
    content.skip(end == std::string_view::npos ? piece.size() : end + 1);
    if (end != std::string_view::npos) break;
  }
  if (whole && row.ends_with('\r')) row.pop_back();
  return any;
}

bool RowSource::open(const Node& node, const Header& header, Failure& failure) {
  files_.resize(paths_.size());
  for (size_t f = 0; f < paths_.size(); ++f) {
    File& file = files_[f];
    file.first_row = rows_;
    Reader reader;
    if (const int error = reader.content.open(paths_[f])) {
      failure = cannot_read(paths_[f], error, node.origin);
      return false;
    }
    file.status = reader.content.status();
    reader.content.survey(&file.restarts);
    auto damaged = [&] {
      failure = {"R0406", fmt::format("`{}` {}", shown_file(paths_[f]), reader.content.error()), node.origin};
      return false;
    };
    skip_byte_order_mark(reader.content);
    if (header && !header(reader.content, paths_[f], failure)) {
      return reader.content.error().empty() ? false : damaged();
    }
    uint64_t rows = 0;
    for (uint64_t offset = reader.content.offset(); next_(reader.content, max_, reader.row);
         offset = reader.content.offset(), ++rows) {
      if (rows % stride_ != 0) continue;
      if (entries_ >= std::max<uint64_t>(kMostEntries, 2 * files_.size())) {
        thin_out();
        if (rows % stride_ != 0) continue;
      }
      file.index.push_back(offset);
      ++entries_;
    }
    if (!reader.content.error().empty()) return damaged();
    rows_ += rows;
  }
  return true;
}

// Every other entry goes: the index stays bounded.
void RowSource::thin_out() {
  entries_ = 0;
  for (File& file : files_) {
    for (size_t i = 0; 2 * i < file.index.size(); ++i) file.index[i] = file.index[2 * i];
    file.index.resize((file.index.size() + 1) / 2);
    entries_ += file.index.size();
  }
  stride_ *= 2;
}

size_t RowSource::file_of(uint64_t position) const {
  // Of files that begin at the same row, all but the last are empty.
  auto behind = std::upper_bound(files_.begin(), files_.end(), position,
                                 [](uint64_t p, const File& file) { return p < file.first_row; });
  return static_cast<size_t>(behind - files_.begin()) - 1;
}

// The reader that stands least before the row; else a new one, or that which was not used for longest.
std::unique_ptr<RowSource::Reader> RowSource::take_reader(size_t file, uint64_t row) const {
  std::lock_guard lock(mutex_);
  size_t best = idle_.size();
  for (size_t i = 0; i < idle_.size(); ++i) {
    if (idle_[i]->file != file || idle_[i]->next > row) continue;
    if (best == idle_.size() || idle_[i]->next > idle_[best]->next) best = i;
  }
  if (best == idle_.size()) return nullptr;
  auto reader = std::move(idle_[best]);
  idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
  return reader;
}

void RowSource::give_back(std::unique_ptr<Reader> reader) const {
  std::unique_ptr<Reader> oldest;  // closed outside of the lock
  std::lock_guard lock(mutex_);
  if (idle_.size() >= std::min<uint64_t>(kMostIdle * readers_, kMostOpen)) {
    oldest = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_.push_back(std::move(reader));
}

bool RowSource::read_row(Reader& reader, uint64_t row) const {
  const File& file = files_[reader.file];
  if (reader.next > row || row / stride_ > reader.next / stride_) {
    reader.next = row - row % stride_;
    reader.content.seek(file.index[reader.next / stride_]);
  }
  for (; reader.next <= row; ++reader.next)
    if (!next_(reader.content, max_, reader.row)) return false;
  return reader.content.error().empty();
}

void RowSource::read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const {
  const size_t f = file_of(position);
  const File& file = files_[f];
  const uint64_t row = position - file.first_row;
  std::unique_ptr<Reader> reader = take_reader(f, row);
  bool good = true;
  if (!reader) {
    reader = std::make_unique<Reader>();
    reader->file = f;
    reader->next = UINT64_MAX;
    reader->content.use(&file.restarts);
    good = reader->content.open(paths_[f], &file.status) == 0;
  }
  good = good && read_row(*reader, row);
  const std::string_view text = good ? std::string_view(reader->row) : kGoneRow;
  auto* bytes = static_cast<char*>(allocator.alloc(text.size() + 1));
  std::memcpy(bytes, text.data(), text.size());
  auto put = [&](size_t c, Elem elem, auto value) {
    TensorRef& column = columns[c];
    if (!column.data) column.data = allocator.alloc(sizeof(value));
    column.rank = 0;
    column.elem = elem;
    *static_cast<decltype(value)*>(column.data) = value;
  };
  put(0, Elem::Bytes, StringRef{bytes, text.size()});
  if (columns.size() > 1) {
    put(1, Elem::Path, StringRef{paths_[f].data(), paths_[f].size()});  // no copy: the list outlives every chunk
    put(2, Elem::I64, static_cast<int64_t>(row + 1));
  }
  if (good) give_back(std::move(reader));
}

std::vector<uint64_t> RowSource::row_counts() const {
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < files_.size(); ++i)
    counts.push_back((i + 1 < files_.size() ? files_[i + 1].first_row : rows_) - files_[i].first_row);
  return counts;
}

std::string RowSource::describe(uint64_t position) const {
  const size_t f = file_of(position);
  return fmt::format("{}, {} {}", shown_file(paths_[f]), unit_, position - files_[f].first_row + 1);
}

std::string RowSource::fingerprint() const {
  if (paths_.size() == 1) return fmt::format("{} {} {:016x}", kind_, rows_, file_fingerprint(paths_[0]));
  std::vector<uint64_t> words;
  for (const std::string& path : paths_) words.push_back(file_fingerprint(path));
  return fmt::format("{} {} {:016x}", kind_, rows_, hash_words(words));
}

}  // namespace zephon
