#include "ops/jpeg_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>
// After <cstdio>: the library's headers need FILE.
#include <jpeglib.h>
// The library's inner interface, for one question: whether rows are interpolated from the row below.
#define JPEG_INTERNALS
#include <jpegint.h>

namespace zephon {
namespace {

const char* other_format(std::span<const uint8_t> bytes) {
  struct Signature {
    std::string_view magic;
    size_t offset;
    const char* name;
  };
  static constexpr Signature kSignatures[] = {{"\x89PNG\r\n\x1a\n", 0, "PNG"},
                                              {"GIF8", 0, "GIF"},
                                              {"WEBP", 8, "WebP"},
                                              {"BM", 0, "BMP"},
                                              {"II*\0", 0, "TIFF"},
                                              {"MM\0*", 0, "TIFF"},
                                              {"ftyp", 4, "HEIF/AVIF"},
                                              {"\x1f\x8b", 0, "gzip"},
                                              {"<", 0, "HTML or XML"},
                                              {"%PDF", 0, "PDF"},
                                              {"PK\x03\x04", 0, "zip"}};
  for (const Signature& s : kSignatures) {
    size_t size = std::max<size_t>(s.magic.size(), 1);
    if (bytes.size() >= s.offset + size && std::memcmp(bytes.data() + s.offset, s.magic.data(), size) == 0)
      return s.name;
  }
  return nullptr;
}

// What is wrong with bytes that do not begin as a JPEG does; empty if they do.
std::string not_a_jpeg(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return "empty file";
  if (bytes.size() >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8) return {};
  if (const char* name = other_format(bytes)) return fmt::format("not a JPEG: {} signature", name);
  std::string start;
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 4); ++i) start += fmt::format(" {:02x}", bytes[i]);
  return fmt::format("not a JPEG: starts with{}", start);
}

// One picture being read. The library's objects live here, so that its callbacks find us by the address of their
// member. It is made anew for each picture: a reused one would lend its tables to a file that lacks them.
class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&cinfo_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header(JpegInfo& info);
  void decode(JpegMode mode, const JpegRegion& region, uint8_t* out, size_t row_stride, const JpegHow& how,
              JpegResult& result);
  std::string failure() const {
    return ran_out_ && !in_scan_ ? std::string("truncated before the first scan") : std::string(message_.data());
  }

 private:
  // cinfo_ is the first member, its address is ours.
  static Decoder& of(j_common_ptr common) { return *static_cast<Decoder*>(common->client_data); }
  [[noreturn]] static void on_error(j_common_ptr common) {
    Decoder& self = of(common);
    (*common->err->format_message)(common, self.message_.data());
    std::longjmp(self.escape_, 1);
  }
  static void on_message(j_common_ptr common, int level) {
    if (level < 0) of(common).on_warning();
  }
  void on_warning();
  static void nothing(j_decompress_ptr) {}
  static boolean refill(j_decompress_ptr cinfo);
  static void skip(j_decompress_ptr cinfo, long count);

  // The functions that libjpeg may leave by longjmp: nothing with a destructor lives in their frames.
  bool guarded_header();
  bool guarded_decode(JpegMode mode, const JpegRegion& region, uint8_t* out, size_t row_stride, const JpegHow& how);
  void read_rows(JpegMode mode, const JpegRegion& region, int64_t first_column, uint8_t* out, size_t row_stride);
  void convert_row(JpegMode mode, const uint8_t* in, int64_t width, uint8_t* out) const;
  int64_t row_of_damage() const;
  bool has_end_marker() const {
    std::string_view rest(reinterpret_cast<const char*>(source_.next_input_byte), source_.bytes_in_buffer);
    return rest.find("\xff\xd9") != std::string_view::npos;
  }
  void damage_all(const char* why) {
    if (damaged_) return;
    damaged_ = true;
    std::snprintf(message_.data(), message_.size(), "%s", why);
  }

  std::span<const uint8_t> bytes_;
  jpeg_decompress_struct cinfo_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_source_mgr source_ = {};
  std::jmp_buf escape_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {};
  bool created_ = false, in_scan_ = false, ran_out_ = false, damaged_ = false;
  int64_t damaged_row_ = 0;
};

// A file that ends too soon reads as if its end marker followed. Whether picture data was missing is then seen where it
// is needed, not where the library happens to read ahead.
boolean Decoder::refill(j_decompress_ptr cinfo) {
  static const JOCTET kEnd[2] = {0xff, JPEG_EOI};
  of(reinterpret_cast<j_common_ptr>(cinfo)).ran_out_ = true;
  cinfo->src->next_input_byte = kEnd;
  cinfo->src->bytes_in_buffer = 2;
  return TRUE;
}

void Decoder::skip(j_decompress_ptr cinfo, long count) {
  if (count <= 0) return;
  auto wanted = static_cast<size_t>(count);
  if (wanted > cinfo->src->bytes_in_buffer) {
    refill(cinfo);
  } else {
    cinfo->src->next_input_byte += wanted;
    cinfo->src->bytes_in_buffer -= wanted;
  }
}

void Decoder::on_warning() {
  if (!in_scan_ || damaged_) return;
  damaged_ = true;
  (*errors_.format_message)(reinterpret_cast<j_common_ptr>(&cinfo_), message_.data());
  damaged_row_ = row_of_damage();
}

int64_t Decoder::row_of_damage() const {
  if (cinfo_.inputctl == nullptr || cinfo_.inputctl->has_multiple_scans || cinfo_.upsample == nullptr) return 0;
  int64_t row = int64_t{cinfo_.input_iMCU_row} * cinfo_.max_v_samp_factor * cinfo_.min_DCT_scaled_size;
  return std::max<int64_t>(0, row - (cinfo_.upsample->need_context_rows ? 1 : 0));
}

bool Decoder::guarded_header() {
  if (setjmp(escape_) != 0) return false;
  cinfo_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  cinfo_.client_data = this;
  jpeg_create_decompress(&cinfo_);
  created_ = true;
  cinfo_.client_data = this;
  source_.next_input_byte = bytes_.data();
  source_.bytes_in_buffer = bytes_.size();
  source_.init_source = nothing;
  source_.fill_input_buffer = refill;
  source_.skip_input_data = skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = nothing;
  cinfo_.src = &source_;
  jpeg_read_header(&cinfo_, TRUE);
  in_scan_ = true;
  return true;
}

bool Decoder::read_header(JpegInfo& info) {
  if (!guarded_header()) return false;
  info.height = cinfo_.image_height;
  info.width = cinfo_.image_width;
  info.components = cinfo_.num_components;
  info.several_scans = jpeg_has_multiple_scans(&cinfo_) != FALSE;
  // Rows: of each component two groups of blocks, those around them for interpolation, and what it is interpolated to.
  constexpr size_t kObjects = size_t{64} << 10, kRowsHeld = 64;
  info.scratch_bytes = kObjects + kRowsHeld * static_cast<size_t>(info.width * info.components);
  for (int i = 0; info.several_scans && i < cinfo_.num_components; ++i) {
    const jpeg_component_info& part = cinfo_.comp_info[i];
    // The library rounds up to whole units of several blocks.
    const size_t wide = part.width_in_blocks + static_cast<size_t>(part.h_samp_factor);
    const size_t high = part.height_in_blocks + static_cast<size_t>(part.v_samp_factor);
    info.scratch_bytes += wide * high * sizeof(JBLOCK);
  }
  return true;
}

uint8_t* row_buffer(size_t bytes) {
  thread_local std::vector<uint8_t> buffer;
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer.data();
}

// 255 x / 255 rounded, as Pillow's MULDIV255.
int scaled(int a, int b) {
  int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

void Decoder::convert_row(JpegMode mode, const uint8_t* in, int64_t width, uint8_t* out) const {
  if (cinfo_.out_color_space != JCS_CMYK) {
    std::memcpy(out, in, static_cast<size_t>(width * jpeg_channels(mode)));
    return;
  }
  for (int64_t x = 0; x < width; ++x, in += 4) {
    int k = in[3], rgb[3];
    for (int i = 0; i < 3; ++i) rgb[i] = std::clamp(k - scaled(255 - in[i], k), 0, 255);
    if (mode == JpegMode::Gray) {
      *out++ = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
    } else {
      for (int value : rgb) *out++ = static_cast<uint8_t>(value);
    }
  }
}

// Reads the region's rows; the library's rows begin at column `first_column` of the picture.
void Decoder::read_rows(JpegMode mode, const JpegRegion& region, int64_t first_column, uint8_t* out,
                        size_t row_stride) {
  constexpr int64_t kRows = 16;
  int64_t row_bytes = int64_t{cinfo_.output_width} * cinfo_.output_components;
  bool direct =
      cinfo_.out_color_space != JCS_CMYK && first_column == region.left && cinfo_.output_width == region.width;
  uint8_t* rows = direct ? out : row_buffer(static_cast<size_t>(kRows * row_bytes));
  JSAMPROW pointers[kRows];
  for (int64_t done = 0; done < region.height;) {
    int64_t count = std::min(kRows, region.height - done);
    for (int64_t i = 0; i < count; ++i)
      pointers[i] = direct ? out + static_cast<size_t>(done + i) * row_stride : rows + i * row_bytes;
    int64_t got = jpeg_read_scanlines(&cinfo_, pointers, static_cast<JDIMENSION>(count));
    for (int64_t i = 0; !direct && i < got; ++i)
      convert_row(mode, rows + i * row_bytes + (region.left - first_column) * cinfo_.output_components, region.width,
                  out + static_cast<size_t>(done + i) * row_stride);
    done += got;
  }
}

bool Decoder::guarded_decode(JpegMode mode, const JpegRegion& region, uint8_t* out, size_t row_stride,
                             const JpegHow& how) {
  if (setjmp(escape_) != 0) return false;
  if (cinfo_.num_components == 4) {
    cinfo_.out_color_space = JCS_CMYK;
  } else {
    cinfo_.out_color_space = mode == JpegMode::Gray ? JCS_GRAYSCALE : JCS_RGB;
  }
  cinfo_.dct_method = how.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  cinfo_.scale_num = static_cast<unsigned>(how.eighths);
  cinfo_.scale_denom = 8;
  cinfo_.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&cinfo_);
  int64_t first_column = 0;
  if (jpeg_has_multiple_scans(&cinfo_) != FALSE) {
    // All coefficients are in memory: cutting saves little, and smoothing of unfinished files looks around.
    if (ran_out_) damage_all("the end marker is missing");
    JSAMPROW unused =
        row_buffer(static_cast<size_t>(cinfo_.output_width) * static_cast<size_t>(cinfo_.output_components));
    for (int64_t y = 0; y < region.top;) y += jpeg_read_scanlines(&cinfo_, &unused, 1);
  } else {
    // The arithmetic decoder reads zeros behind the end of its data without a word.
    if (cinfo_.arith_code && !has_end_marker()) damage_all("the end marker is missing");
    // Interpolation of chroma looks one pixel to either side, and treats the edge of what is cut out as the picture's.
    // Where a scaled picture has chroma of other blocks that is still interpolated, the library mistakes where that is.
    bool wider = false, cuts = true;
    for (int i = 0; i < cinfo_.num_components; ++i) {
      const jpeg_component_info& part = cinfo_.comp_info[i];
      const bool interpolated =
          part.h_samp_factor * part.DCT_scaled_size < cinfo_.max_h_samp_factor * cinfo_.min_DCT_scaled_size;
      wider |= interpolated;
      cuts &= !interpolated || part.DCT_scaled_size == cinfo_.min_DCT_scaled_size;
    }
    if (cuts && region.width < int64_t{cinfo_.output_width}) {
      int64_t left = std::max<int64_t>(0, region.left - (wider ? 1 : 0));
      // The library chose its interpolation for the whole width; less than three chroma samples would break it.
      int64_t right = std::max(region.left + region.width + (wider ? 1 : 0), left + 3 * cinfo_.max_h_samp_factor);
      right = std::min<int64_t>(cinfo_.output_width, right);
      auto x = static_cast<JDIMENSION>(left), width = static_cast<JDIMENSION>(right - left);
      jpeg_crop_scanline(&cinfo_, &x, &width);
      first_column = x;
    }
    if (region.top > 0) jpeg_skip_scanlines(&cinfo_, static_cast<JDIMENSION>(region.top));
  }
  read_rows(mode, region, first_column, out, row_stride);
  return true;
}

void Decoder::decode(JpegMode mode, const JpegRegion& region, uint8_t* out, size_t row_stride, const JpegHow& how,
                     JpegResult& result) {
  result.decoded = guarded_decode(mode, region, out, row_stride, how);
  result.first_damaged_row = damaged_ ? damaged_row_ : scaled_size(cinfo_.image_height, how.eighths);
  if (damaged_ || !result.decoded) result.error = failure();
}

}  // namespace

int least_eighths(const JpegRegion& region, int64_t height, int64_t width) {
  // Of the library's sizes these have vector code.
  for (int eighths : {1, 2, 4})
    if (region.height * eighths >= height * 8 && region.width * eighths >= width * 8) return eighths;
  return 8;
}

JpegRegion scaled_region(const JpegRegion& region, int eighths) {
  const int64_t top = region.top * eighths / 8, left = region.left * eighths / 8;
  return {top, left, scaled_size(region.top + region.height, eighths) - top,
          scaled_size(region.left + region.width, eighths) - left};
}

bool probe_jpeg(std::span<const uint8_t> bytes, JpegInfo& info, std::string& error) {
  error = not_a_jpeg(bytes);
  if (!error.empty()) return false;
  Decoder decoder(bytes);
  if (decoder.read_header(info)) return true;
  error = decoder.failure();
  return false;
}

JpegResult decode_jpeg(std::span<const uint8_t> bytes, JpegMode mode, const JpegRegion& region, uint8_t* out,
                       size_t row_stride, const JpegHow& how) {
  JpegResult result;
  result.error = not_a_jpeg(bytes);
  if (!result.error.empty()) return result;
  Decoder decoder(bytes);
  JpegInfo info;
  if (!decoder.read_header(info)) {
    result.error = decoder.failure();
  } else if (region.top < 0 || region.left < 0 || region.height < 1 || region.width < 1 ||
             region.top + region.height > scaled_size(info.height, how.eighths) ||
             region.left + region.width > scaled_size(info.width, how.eighths)) {
    result.error = fmt::format("the region is outside the picture of {} x {}", scaled_size(info.height, how.eighths),
                               scaled_size(info.width, how.eighths));
  } else {
    decoder.decode(mode, region, out, row_stride, how, result);
  }
  return result;
}

}  // namespace zephon
