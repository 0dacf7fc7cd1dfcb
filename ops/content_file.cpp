#include "ops/content_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace zephon {
namespace {

constexpr size_t kBlock = 64 << 10;      // bytes read or made at once
constexpr size_t kFirstBlock = 4 << 10;  // of a plain file, where it is entered
constexpr size_t kMostPoints = 128;      // restart points of a file: with their windows 4 MB
constexpr int kWindowLog = 27;           // of Zstandard: 128 MB

Compression compression_of(const InputFile& file) {
  unsigned char b[4] = {};
  if (file.read_at(0, b, 4) < 3) return Compression::None;
  if (b[0] == 0x1f && b[1] == 0x8b && b[2] == 8) return Compression::Gzip;
  const bool frame = b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd;
  const bool skippable = (b[0] & 0xf0) == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18;
  return frame || skippable ? Compression::Zstandard : Compression::None;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

void RestartPoints::add(RestartPoint point) {
  if (points_.size() == kMostPoints) {
    for (size_t i = 0; i < points_.size() / 2; ++i) points_[i] = std::move(points_[2 * i]);
    points_.resize(points_.size() / 2);
    span_ *= 2;
    if (!wants(point.content)) return;
  }
  points_.push_back(std::move(point));
}

const RestartPoint* RestartPoints::before(uint64_t content) const {
  auto behind = std::upper_bound(points_.begin(), points_.end(), content,
                                 [](uint64_t c, const RestartPoint& p) { return c < p.content; });
  return behind == points_.begin() ? nullptr : &*(behind - 1);
}

ContentReader::~ContentReader() {
  if (gzip_open_) inflateEnd(&gzip_);
  if (zstandard_) ZSTD_freeDCtx(zstandard_);
}

int ContentReader::open(const std::string& path, const struct stat* expected) {
  if (const int error = file_.open(path)) return error;
  if (expected && !same_file(*expected, file_.status())) return ESTALE;
  compression_ = compression_of(file_);
  return 0;
}

void ContentReader::seek(uint64_t offset) {
  if (offset >= begin_ && offset <= begin_ + have_) {
    at_ = offset;
    return;
  }
  if (compression_ == Compression::None) {
    at_ = begin_ = offset;
    have_ = 0;
    next_size_ = 0;
    return;
  }
  const RestartPoint* point = known_ ? known_->before(offset) : nullptr;
  const bool forward = offset > begin_ + have_;
  if ((!forward || (point && point->content > begin_ + have_)) && !restart(point)) return;
  at_ = begin_ + have_;
  while (at_ < offset) {
    const size_t count = peek().size();
    if (count == 0) return;
    skip(static_cast<size_t>(std::min<uint64_t>(count, offset - at_)));
  }
}

void ContentReader::unread(std::string_view bytes) {
  block_ = std::string(bytes).append(view());
  have_ = block_.size();
  begin_ = at_ -= bytes.size();
}

std::string_view ContentReader::fill() {
  if (!error_.empty()) return {};
  if (file_.changed()) {
    error_ = "has changed while it was read";
    return {};
  }
  begin_ = at_;
  have_ = 0;
  block_.resize(kBlock);
  const bool good = compression_ == Compression::None   ? fill_plain()
                    : compression_ == Compression::Gzip ? fill_gzip()
                                                        : fill_zstandard();
  if (!good) have_ = 0;
  return view();
}

bool ContentReader::fill_plain() {
  next_size_ = next_size_ == 0 ? kFirstBlock : std::min(2 * next_size_, kBlock);
  const int64_t n = file_.read_at(begin_, block_.data(), next_size_);
  if (n < 0) error_ = fmt::format("cannot be read: {}", error_words(static_cast<int>(-n)));
  have_ = n > 0 ? static_cast<size_t>(n) : 0;
  return n > 0;
}

// False at the end of the file, or where it cannot be read.
bool ContentReader::more_input() {
  if (input_at_ < input_have_) return true;
  if (input_.empty()) input_.resize(kBlock);
  input_begin_ += input_have_;
  input_at_ = input_have_ = 0;
  const int64_t n = file_.read_at(input_begin_, input_.data(), input_.size());
  if (n < 0) error_ = fmt::format("cannot be read: {}", error_words(static_cast<int>(-n)));
  input_have_ = n > 0 ? static_cast<size_t>(n) : 0;
  return n > 0;
}

void ContentReader::damaged(std::string_view what) {
  if (!error_.empty()) return;
  error_ = fmt::format("is damaged at byte {} ({} bytes of content are good): {}", input_begin_ + input_at_,
                       begin_ + have_, what);
}

bool ContentReader::restart(const RestartPoint* point) {
  const uint64_t from = point ? point->file : 0;
  error_.clear();
  at_ = begin_ = point ? point->content : 0;
  have_ = 0;
  input_begin_ = from;
  input_have_ = input_at_ = 0;
  between_ = true;
  if (compression_ == Compression::Zstandard) {
    if (zstandard_) ZSTD_DCtx_reset(zstandard_, ZSTD_reset_session_only);
    return true;
  }
  if (gzip_open_) inflateEnd(&gzip_);
  gzip_open_ = raw_ = false;
  if (!point || point->window.empty()) return true;
  // In the middle of a member: its checksum was compared when the file was read from its front.
  gzip_ = {};
  if (inflateInit2(&gzip_, -15) != Z_OK) {
    error_ = "cannot be read: no memory";
    return false;
  }
  gzip_open_ = raw_ = true;
  between_ = false;
  if (point->bits > 0) {
    unsigned char byte = 0;
    if (file_.read_at(from - 1, &byte, 1) != 1) {
      error_ = "has changed while it was read";
      return false;
    }
    inflatePrime(&gzip_, point->bits, byte >> (8 - point->bits));
  }
  inflateSetDictionary(&gzip_, reinterpret_cast<const Bytef*>(point->window.data()),
                       static_cast<uInt>(point->window.size()));
  return true;
}

bool ContentReader::fill_gzip() {
  while (have_ == 0) {
    if (between_) {
      if (!more_input()) return false;  // the end
      // Behind the last member there may be zeros, as tar leaves them.
      if (input_[input_at_] == 0 && input_begin_ + input_at_ > 0) {
        ++input_at_;
        continue;
      }
      if (found_ && found_->wants(begin_)) found_->add({begin_, input_begin_ + input_at_, 0, {}});
      if (gzip_open_) inflateEnd(&gzip_);
      gzip_ = {};
      gzip_open_ = inflateInit2(&gzip_, 15 + 16) == Z_OK;
      raw_ = between_ = false;
    }
    if (!more_input()) {
      damaged("the file ends in the middle of a compressed member");
      return false;
    }
    gzip_.next_in = reinterpret_cast<Bytef*>(input_.data() + input_at_);
    gzip_.avail_in = static_cast<uInt>(input_have_ - input_at_);
    gzip_.next_out = reinterpret_cast<Bytef*>(block_.data());
    gzip_.avail_out = static_cast<uInt>(block_.size());
    int result = Z_OK;
    // Block by block while surveying: only between blocks can a stream be entered again.
    while (result == Z_OK && gzip_.avail_in > 0 && gzip_.avail_out > 0) {
      result = inflate(&gzip_, found_ ? Z_BLOCK : Z_NO_FLUSH);
      const uint64_t content = begin_ + block_.size() - gzip_.avail_out;
      const bool block_ended = (gzip_.data_type & 128) && !(gzip_.data_type & 64);
      if (result == Z_OK && found_ && block_ended && found_->wants(content)) {
        RestartPoint point{content, input_begin_ + input_have_ - gzip_.avail_in, gzip_.data_type & 7,
                           std::string(32768, '\0')};
        uInt size = 0;
        if (inflateGetDictionary(&gzip_, reinterpret_cast<Bytef*>(point.window.data()), &size) == Z_OK && size > 0) {
          point.window.resize(size);
          found_->add(std::move(point));
        }
      }
    }
    input_at_ = input_have_ - gzip_.avail_in;
    have_ = block_.size() - gzip_.avail_out;
    if (result == Z_STREAM_END) {
      between_ = true;
      for (int left = raw_ ? 8 : 0; left > 0 && more_input(); --left) ++input_at_;  // checksum and length
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      const std::string why = gzip_.msg ? gzip_.msg : result == Z_MEM_ERROR ? "no memory" : "not gzip";
      damaged(why);
      return false;
    }
  }
  return true;
}

bool ContentReader::fill_zstandard() {
  if (!zstandard_) {
    zstandard_ = ZSTD_createDCtx();
    if (!zstandard_) {
      error_ = "cannot be read: no memory";
      return false;
    }
    ZSTD_DCtx_setParameter(zstandard_, ZSTD_d_windowLogMax, kWindowLog);
  }
  while (have_ == 0) {
    // Content that the decoder still holds comes out without more input.
    const bool more = more_input();
    if (!more && between_) return false;  // the end
    if (between_ && found_ && found_->wants(begin_)) found_->add({begin_, input_begin_ + input_at_, 0, {}});
    ZSTD_inBuffer in{input_.data(), input_have_, input_at_};
    ZSTD_outBuffer out{block_.data(), block_.size(), 0};
    const size_t result = ZSTD_decompressStream(zstandard_, &out, &in);
    const bool stuck = !more && out.pos == 0;
    input_at_ = in.pos;
    have_ = out.pos;
    between_ = result == 0;
    if (ZSTD_isError(result)) {
      have_ = 0;
      damaged(ZSTD_getErrorName(result));
      return false;
    }
    if (stuck && !between_) {
      damaged("the file ends in the middle of a compressed frame");
      return false;
    }
  }
  return true;
}

}  // namespace zephon
