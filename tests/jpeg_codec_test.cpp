// Partial decoding gives the bits and the verdict of whole decoding, for every kind of file, whole or damaged.
#include "ops/jpeg_codec.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <vector>
// After <cstdio>.
#include <jpeglib.h>

namespace zephon {
namespace {

using Bytes = std::vector<uint8_t>;

struct Kind {
  const char* name;
  int components, h, v;  // sampling factors of the first component
  bool progressive = false, arithmetic = false;
  int restart = 0;
  J_COLOR_SPACE space = JCS_YCbCr;
};

const Kind kKinds[] = {
    {"444", 3, 1, 1},
    {"422", 3, 2, 1},
    {"420", 3, 2, 2},
    {"440", 3, 1, 2},
    {"411", 3, 4, 1},
    {"410", 3, 4, 2},
    {"441", 3, 1, 4},
    {"gray", 1, 1, 1, false, false, 0, JCS_GRAYSCALE},
    {"gray_2x2", 1, 2, 2, false, false, 0, JCS_GRAYSCALE},
    {"rgb", 3, 1, 1, false, false, 0, JCS_RGB},
    {"cmyk", 4, 1, 1, false, false, 0, JCS_CMYK},
    {"ycck_420", 4, 2, 2, false, false, 0, JCS_YCCK},
    {"420_restart", 3, 2, 2, false, false, 2},
    {"420_progressive", 3, 2, 2, true},
    {"422_progressive", 3, 2, 1, true},
    {"420_arithmetic", 3, 2, 2, false, true},
};

Bytes encode(const Kind& kind, int width, int height) {
  jpeg_compress_struct c = {};
  jpeg_error_mgr errors = {};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &data, &size);
  c.image_width = static_cast<JDIMENSION>(width);
  c.image_height = static_cast<JDIMENSION>(height);
  c.input_components = kind.components;
  c.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : kind.components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_set_colorspace(&c, kind.space);
  jpeg_set_quality(&c, 85, TRUE);
  c.comp_info[0].h_samp_factor = kind.h;
  c.comp_info[0].v_samp_factor = kind.v;
  if (kind.components == 4) {
    c.comp_info[3].h_samp_factor = kind.h;
    c.comp_info[3].v_samp_factor = kind.v;
  }
  c.restart_in_rows = 0;
  c.restart_interval = static_cast<unsigned>(kind.restart);
  c.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&c);
  jpeg_start_compress(&c, TRUE);
  Bytes row(static_cast<size_t>(width * kind.components));
  for (int y = 0; y < height; ++y) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<uint8_t>((i * i * 3 + static_cast<size_t>(y) * 7 * i + static_cast<size_t>(y * y)) >> 1);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&c, &pointer, 1);
  }
  jpeg_finish_compress(&c);
  Bytes bytes(data, data + size);
  std::free(data);
  jpeg_destroy_compress(&c);
  return bytes;
}

struct Picture {
  JpegResult result;
  Bytes pixels;
};
Picture decode(const Bytes& bytes, JpegMode mode, const JpegRegion& region, const JpegHow& how = {}) {
  Picture p;
  p.pixels.resize(static_cast<size_t>(region.height * region.width * jpeg_channels(mode)));
  p.result =
      decode_jpeg(bytes, mode, region, p.pixels.data(), static_cast<size_t>(region.width * jpeg_channels(mode)), how);
  return p;
}

// Tries every `step`-th region of the picture against the whole one: same verdict, and same pixels where good.
void compare_regions(const Bytes& bytes, JpegMode mode, int64_t height, int64_t width, int64_t step,
                     const JpegHow& how = {}) {
  Picture whole = decode(bytes, mode, {0, 0, height, width}, how);
  int64_t channels = jpeg_channels(mode), number = 0;
  Bytes part(whole.pixels.size());
  for (int64_t top = 0; top < height; ++top)
    for (int64_t h = 1; top + h <= height; ++h)
      for (int64_t left = 0; left < width; ++left)
        for (int64_t w = 1; left + w <= width; ++w) {
          if (number++ % step != 0) continue;
          JpegRegion region{top, left, h, w};
          size_t stride = static_cast<size_t>(w * channels);
          JpegResult result = decode_jpeg(bytes, mode, region, part.data(), stride, how);
          ASSERT_EQ(result.good(region), whole.result.good(region))
              << top << ' ' << left << ' ' << h << ' ' << w << ' ' << result.first_damaged_row << ' '
              << whole.result.first_damaged_row;
          if (!result.good(region)) continue;
          for (int64_t y = 0; y < h; ++y)
            ASSERT_EQ(0, std::memcmp(part.data() + static_cast<size_t>(y) * stride,
                                     whole.pixels.data() + ((top + y) * width + left) * channels, stride))
                << "row " << y << " of " << top << ' ' << left << ' ' << h << ' ' << w;
        }
}

TEST(JpegCodec, EveryRegionHasTheBitsOfTheWholePicture) {
  for (const Kind& kind : kKinds) {
    for (auto [width, height] : {std::pair{53, 41}, std::pair{3, 50}, std::pair{67, 2}, std::pair{32, 32}}) {
      SCOPED_TRACE(testing::Message() << kind.name << ' ' << width << " x " << height);
      Bytes bytes = encode(kind, width, height);
      int64_t regions = int64_t{width} * (width + 1) / 2 * height * (height + 1) / 2;
      for (JpegMode mode : {JpegMode::Rgb, JpegMode::Gray}) {
        ASSERT_TRUE(decode(bytes, mode, {0, 0, height, width}).result.good({0, 0, height, width}));
        compare_regions(bytes, mode, height, width, std::max<int64_t>(1, regions / 500) | 1);
      }
    }
  }
}

TEST(JpegCodec, EveryRegionOfAScaledPictureHasItsBits) {
  for (const Kind& kind : kKinds) {
    for (auto [width, height] : {std::pair{153, 141}, std::pair{9, 150}, std::pair{167, 5}, std::pair{64, 64}}) {
      const Bytes bytes = encode(kind, width, height);
      Bytes damaged = bytes;
      damaged.resize(600 + (bytes.size() - 600) * 3 / 4);
      for (const JpegHow& how :
           {JpegHow{false, 4}, JpegHow{true, 4}, JpegHow{false, 2}, JpegHow{true, 1}, JpegHow{true, 8}}) {
        SCOPED_TRACE(testing::Message() << kind.name << ' ' << width << " x " << height << ", " << how.eighths << "/8");
        const int64_t h = scaled_size(height, how.eighths), w = scaled_size(width, how.eighths);
        const int64_t step = std::max<int64_t>(1, w * (w + 1) / 2 * h * (h + 1) / 2 / 60) | 1;
        ASSERT_TRUE(decode(bytes, JpegMode::Rgb, {0, 0, h, w}, how).result.good({0, 0, h, w}));
        compare_regions(bytes, JpegMode::Rgb, h, w, step, how);
        compare_regions(damaged, JpegMode::Gray, h, w, step, how);
      }
    }
  }
}

TEST(JpegCodec, DamageHasTheSameVerdictForEveryRegion) {
  for (const Kind& kind : kKinds) {
    Bytes whole = encode(kind, 45, 70);
    for (size_t percent : {40, 75, 95}) {
      Bytes cut = whole;
      cut.resize(600 + (whole.size() - 600) * percent / 100);
      Bytes marked = whole;  // a marker in the middle of picture data
      marked[cut.size()] = 0xff;
      marked[cut.size() + 1] = 0xd9;
      std::vector<Bytes> cases = {cut};
      if (!kind.arithmetic) cases.push_back(marked);  // a valid end to the arithmetic decoder
      for (const Bytes& damaged : cases) {
        SCOPED_TRACE(testing::Message() << kind.name << " cut at " << cut.size() << " of " << whole.size());
        JpegRegion all{0, 0, 70, 45};
        Picture p = decode(damaged, JpegMode::Rgb, all);
        ASSERT_FALSE(p.result.good(all));
        ASSERT_FALSE(p.result.error.empty());
        if (!kind.progressive && p.result.decoded) {
          // What is called good is what the undamaged file has there.
          Picture intact = decode(whole, JpegMode::Rgb, all);
          EXPECT_EQ(0, std::memcmp(p.pixels.data(), intact.pixels.data(),
                                   static_cast<size_t>(p.result.first_damaged_row * 45 * 3)));
          EXPECT_GT(p.result.first_damaged_row, percent == 95 && !kind.arithmetic ? 20 : -1);
        }
        compare_regions(damaged, JpegMode::Rgb, 70, 45, 9001);
      }
    }
  }
}

TEST(JpegCodec, AMissingEndMarkerDamagesNothingOfASequentialFile) {
  Bytes bytes = encode(kKinds[2], 53, 41);
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(decode(bytes, JpegMode::Rgb, {0, 0, 41, 53}).result.first_damaged_row, 41);
  Bytes progressive = encode({"p", 3, 2, 2, true}, 53, 41);
  progressive.resize(progressive.size() - 2);
  EXPECT_EQ(decode(progressive, JpegMode::Rgb, {0, 0, 41, 53}).result.first_damaged_row, 0);
}

TEST(JpegCodec, SaysWhatTheBytesAreInstead) {
  auto error_of = [](std::string_view text) {
    JpegInfo info;
    std::string error;
    EXPECT_FALSE(probe_jpeg({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, info, error));
    return error;
  };
  EXPECT_EQ(error_of(""), "empty file");
  EXPECT_EQ(error_of("\x89PNG\r\n\x1a\n...."), "not a JPEG: PNG signature");
  EXPECT_EQ(error_of("GIF89a......"), "not a JPEG: GIF signature");
  EXPECT_EQ(error_of("RIFF....WEBPVP8 "), "not a JPEG: WebP signature");
  EXPECT_EQ(error_of("hello"), "not a JPEG: starts with 68 65 6c 6c");
  EXPECT_EQ(error_of("\xff\xd8"), "truncated before the first scan");
  Bytes whole = encode(kKinds[2], 53, 41);
  for (size_t size = 2; size < 600; ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(error_of({reinterpret_cast<const char*>(whole.data()), size}), "truncated before the first scan");
  }
}

TEST(JpegCodec, ReadsTheHeader) {
  JpegInfo info;
  std::string error;
  ASSERT_TRUE(probe_jpeg(encode({"p", 3, 2, 2, true}, 53, 41), info, error)) << error;
  EXPECT_EQ(info.width, 53);
  EXPECT_EQ(info.height, 41);
  EXPECT_EQ(info.components, 3);
  EXPECT_TRUE(info.several_scans);
}

TEST(JpegCodec, SurvivesBrokenBytes) {
  uint64_t state = 1;
  for (const Kind& kind : kKinds) {
    Bytes whole = encode(kind, 45, 33);
    for (int round = 0; round < 30; ++round) {
      Bytes broken = whole;
      for (int i = 0; i < 4; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        broken[2 + (state >> 33) % (broken.size() - 2)] = static_cast<uint8_t>(state >> 20);
      }
      JpegInfo info;
      std::string error;
      if (!probe_jpeg(broken, info, error)) {
        EXPECT_FALSE(error.empty());
      } else if (info.height * info.width < 100000) {
        compare_regions(broken, JpegMode::Rgb, info.height, info.width,
                        (info.height * info.height * info.width * info.width / 80) | 1);
      }
    }
  }
}

}  // namespace
}  // namespace zephon
