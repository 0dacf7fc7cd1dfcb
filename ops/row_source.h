#pragma once
// What sources share that yield the rows of text files: finding rows, an index of bounded size, reading any row again.

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"
#include "ops/content_file.h"

namespace zephon {

/// Moves past one row and leaves its bytes, without line end, in `row`: all of them, or, where there are more than
/// `max`, the first ones and more than `max`. False at the end of the content.
using NextRow = bool (*)(ContentReader& content, uint64_t max, std::string& row);

/// The row up to the next LF; a CR before it, or before the end of the content, is left out.
bool next_line(ContentReader& content, uint64_t max, std::string& row);

/// What `$row` holds where the file has changed or gone since it was opened. No row of text is a single line feed:
/// whoever reads rows fails for it, with gone_row_message().
inline constexpr std::string_view kGoneRow = "\n";
inline constexpr std::string_view gone_row_message() { return "the file has changed since the run began"; }

/// The files that a pattern names, sorted by bytes; on failure (R0400, R0401) empty.
std::vector<std::string> matching_files(const Node& node, const OpenContext& context, std::string_view pattern,
                                        Failure& failure);

/// Rows of files, in the order of the files. Column 0 is `$row: bytes`; where the node has more, `path: path` and the
/// number of the row in its file, from 1 on (i64), follow.
class RowSource final : public Source {
 public:
  /// `kind` begins the fingerprint; `unit` is what messages call a row ("row", "line").
  /// `files_at_a_time` says how many files are read side by side.
  RowSource(std::string_view kind, std::string_view unit, std::vector<std::string> paths, uint64_t max, NextRow next,
            uint64_t files_at_a_time = 1)
      : kind_(kind), unit_(unit), paths_(std::move(paths)), max_(max), next_(next), readers_(files_at_a_time) {}

  /// Reads what stands before the rows of a file (a header); false with `failure` set where it is wrong.
  using Header = std::function<bool(ContentReader& content, const std::string& path, Failure& failure)>;
  /// Reads every file once, past a byte order mark: counts and indexes rows, checks compressed streams to their ends.
  bool open(const Node& node, const Header& header, Failure& failure);

  uint64_t size() const override { return rows_; }
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override;
  std::string describe(uint64_t position) const override;
  std::string fingerprint() const override;
  std::vector<std::string> files() const override { return paths_; }
  /// Of each file.
  std::vector<uint64_t> row_counts() const;

 private:
  struct File {
    uint64_t first_row = 0;
    std::vector<uint64_t> index;  // [i]: offset of row i * stride_ of this file
    RestartPoints restarts;
    struct stat status = {};
  };
  // A file open for reading, and where it stands.
  struct Reader {
    size_t file = 0;
    uint64_t next = 0;  // row in the file
    ContentReader content;
    std::string row;
  };
  size_t file_of(uint64_t position) const;
  std::unique_ptr<Reader> take_reader(size_t file, uint64_t row) const;
  void give_back(std::unique_ptr<Reader> reader) const;
  bool read_row(Reader& reader, uint64_t row) const;
  void thin_out();

  std::string kind_, unit_;
  std::vector<std::string> paths_;
  uint64_t max_;
  NextRow next_;
  uint64_t readers_;  // that are in use side by side
  std::vector<File> files_;
  uint64_t rows_ = 0, stride_ = 1, entries_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Reader>> idle_;  // the longest unused first
};

}  // namespace zephon
