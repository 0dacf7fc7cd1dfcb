#pragma once
// The content of a file for sources that read text: what stands in it or, where its first bytes are those of gzip (any
// number of members) or Zstandard (any number of frames), what was compressed. Offsets are in the content. Memory is
// bounded: a block, the window of the compressed stream (at most 128 MB, what the zstd tool takes too), and a bounded
// number of restart points, from which a compressed stream can be read without beginning at its front.

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/file_io.h"

struct ZSTD_DCtx_s;

namespace zephon {

enum class Compression : uint8_t { None, Gzip, Zstandard };

/// Where a compressed stream can be entered: at a member or frame, or (gzip) between two blocks.
struct RestartPoint {
  uint64_t content = 0;  ///< offset in the content
  uint64_t file = 0;     ///< offset in the file
  int bits = 0;          ///< gzip between blocks: bits of the byte before `file` that still belong to the stream
  std::string window;    ///< gzip between blocks: the last 32 KB of content; empty at a member or frame
};

/// Restart points of one file, found when it is read for the first time. When there are too many, every other one goes.
class RestartPoints {
 public:
  void add(RestartPoint point);
  bool wants(uint64_t content) const { return points_.empty() || content >= points_.back().content + span_; }
  /// The last one not behind `content`; null where the stream must be read from its front.
  const RestartPoint* before(uint64_t content) const;

 private:
  std::vector<RestartPoint> points_;
  uint64_t span_ = 1 << 20;
};

/// Reads the content of one file forward, from any offset. Not thread-safe: one for each thread.
class ContentReader {
 public:
  ContentReader() = default;
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;
  ~ContentReader();

  /// 0, or an errno. `status` of the first opening: a file that is another one by now is ESTALE.
  int open(const std::string& path, const struct stat* expected = nullptr);
  const struct stat& status() const { return file_.status(); }
  /// Notes restart points while reading from the front.
  void survey(RestartPoints* points) { found_ = points; }
  /// Where to look for restart points when seeking.
  void use(const RestartPoints* points) { known_ = points; }

  uint64_t offset() const { return at_; }
  void seek(uint64_t offset);
  /// Content from offset() on, at least one byte; empty at the end and after a failure.
  std::string_view peek() { return at_ - begin_ < have_ ? view() : fill(); }
  void skip(size_t count) { at_ += count; }
  /// Goes back by bytes that were skipped last, without reading them again.
  void unread(std::string_view bytes);

  /// Not empty after a failure: what is wrong, to follow "`path`": "cannot be read: ...", "is damaged at byte ...".
  const std::string& error() const { return error_; }
  Compression compression() const { return compression_; }

 private:
  std::string_view view() const {
    const auto passed = static_cast<size_t>(at_ - begin_);
    return std::string_view(block_).substr(passed, have_ - passed);
  }
  std::string_view fill();
  bool fill_plain();
  bool fill_gzip();
  bool fill_zstandard();
  bool restart(const RestartPoint* point);
  bool more_input();
  void damaged(std::string_view what);

  InputFile file_;
  Compression compression_ = Compression::None;
  RestartPoints* found_ = nullptr;
  const RestartPoints* known_ = nullptr;
  std::string error_;

  std::string block_;  // content [begin_, begin_ + have_)
  uint64_t at_ = 0, begin_ = 0;
  size_t have_ = 0, next_size_ = 0;  // next_size_: of a plain read; grows while reading goes forward

  std::string input_;  // compressed bytes [input_begin_, input_begin_ + input_have_) of the file
  uint64_t input_begin_ = 0;
  size_t input_have_ = 0, input_at_ = 0;
  z_stream gzip_ = {};
  bool gzip_open_ = false, raw_ = false, between_ = true;  // between members or frames
  ZSTD_DCtx_s* zstandard_ = nullptr;
};

}  // namespace zephon
