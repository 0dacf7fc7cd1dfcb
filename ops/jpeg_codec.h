#pragma once
// JPEG pictures, whole or in part, through libjpeg-turbo: what `decode_image` is made of.
//
// Slow integer DCT and "fancy" upsampling, as Pillow and torchvision decode. A region has the same bits as the same
// pixels of the whole picture. Colour: YCbCr and RGB by the library; CMYK and YCCK as Pillow reads and converts them,
// that is, samples are taken as inverted (Adobe) and r = k - (255 - c) k / 255, rounded. Gray is the Y channel where
// there is one, else (19595 r + 38470 g + 7471 b + 32768) >> 16. The orientation tag is not applied.
//
// Damage. Whatever the library complains about while it reads picture data counts from the row of blocks (iMCU row)
// where it happens: rows above are good, rows at or below it are not, minus one pixel row where chroma is interpolated
// from the row below. In files of several scans (progressive), a complaint or a missing end marker damages every row.
// The verdict on a row is the same for every region. Complaints about headers that the library can still use are not
// damage.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zephon {

enum class JpegMode : uint8_t { Rgb, Gray };
constexpr int64_t jpeg_channels(JpegMode mode) { return mode == JpegMode::Gray ? 1 : 3; }

struct JpegInfo {
  int64_t height = 0, width = 0;
  int components = 0;          ///< 1, 3 or 4, as stored
  bool several_scans = false;  ///< progressive or not interleaved
  size_t scratch_bytes =
      0;  ///< what the library takes while it decodes, at most: rows, and all coefficients of several scans
};

struct JpegRegion {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// What may be given up for speed.
struct JpegHow {
  bool fast_dct = false;  ///< the fast integer DCT: differs by a few units of 255
  int eighths = 8;        ///< 1, 2, 4 or 8: decode at that many eighths of the picture's size, rounded up
};
/// The size of a picture that is decoded so.
inline int64_t scaled_size(int64_t size, int eighths) { return (size * eighths + 7) / 8; }
/// The least scale at which `region` has at least `height` rows and `width` columns; 8 where none is less.
int least_eighths(const JpegRegion& region, int64_t height, int64_t width);
/// The pixels of the scaled picture that show some of `region` of the whole one.
JpegRegion scaled_region(const JpegRegion& region, int eighths);

/// Reads the header. False: `error` says what the bytes are instead ("not a JPEG: PNG signature", "empty file",
/// "truncated before the first scan", or the library's own words).
bool probe_jpeg(std::span<const uint8_t> bytes, JpegInfo& info, std::string& error);

struct JpegResult {
  bool decoded = false;  ///< false: nothing was written, `error` says why
  std::string error;     ///< also the first complaint about picture data
  int64_t first_damaged_row =
      0;  ///< of the picture as it is decoded; its height where no damage was met on the way to the region's last row
  /// True where every row of the region is good.
  bool good(const JpegRegion& region) const { return decoded && region.top + region.height <= first_damaged_row; }
};

/// Decodes `region` (of the picture as `how` scales it; inside it, not empty) into `out`: rows of width *
/// jpeg_channels(mode) bytes, `row_stride` bytes apart. Rows at or below first_damaged_row hold unspecified bytes. Any
/// thread; nothing is kept between calls but memory.
JpegResult decode_jpeg(std::span<const uint8_t> bytes, JpegMode mode, const JpegRegion& region, uint8_t* out,
                       size_t row_stride, const JpegHow& how = {});

}  // namespace zephon
