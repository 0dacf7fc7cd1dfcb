// The resize has Pillow's bits on every instruction set. Expected hashes: Pillow 9.4, Image.resize(..., BILINEAR).
#include "ops/resample.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace zephon {
namespace {

std::vector<uint8_t> noise(int64_t count, uint64_t state) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& b : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<uint8_t>(state >> 56);
  }
  return bytes;
}

uint64_t fnv1a(const void* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
  return hash;
}

std::vector<uint8_t> resize(CpuLevel level, Elem elem, const void* in, int64_t stride, int64_t in_h, int64_t in_w,
                            int64_t channels, int64_t out_h, int64_t out_w) {
  const ResampleGeometry geometry = ResampleGeometry::whole(in_h, in_w, channels, out_h, out_w);
  size_t bytes = resample_scratch_bytes(elem, geometry);
  std::unique_ptr<void, decltype(&std::free)> scratch(std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
  EXPECT_TRUE(resample_horizontal(level, elem, in, stride, geometry, scratch.get()));
  auto row_bytes = static_cast<size_t>(out_w * channels) * elem_size(elem);
  std::vector<uint8_t> out(row_bytes * static_cast<size_t>(out_h));
  for (int64_t y = 0; y < out_h; ++y)
    resample_vertical(level, elem, scratch.get(), y, out.data() + static_cast<size_t>(y) * row_bytes);
  return out;
}

struct Case {
  int64_t in_h, in_w, channels, out_h, out_w;
  uint64_t hash;
};

class Resample : public testing::TestWithParam<CpuLevel> {
 protected:
  void SetUp() override {
    if (GetParam() > cpu_level()) GTEST_SKIP() << "this machine lacks the instructions, or ZEPHON_CPU forbids them";
  }
};

TEST_P(Resample, BytesHavePillowsBits) {
  const Case cases[] = {
      {280, 280, 3, 224, 224, 0x03ea9369bf9ec92au}, {37, 53, 3, 29, 17, 0xec91c7996cf806cbu},
      {5, 7, 3, 11, 13, 0xc075aabb9aa37f08u},       {1, 1, 3, 4, 4, 0x2aff91a0b2bc1765u},
      {64, 3, 3, 5, 64, 0x766e69b20fb0c1adu},       {64, 64, 3, 64, 64, 0xb75b44dc9b54da44u},
      {300, 200, 1, 24, 31, 0xde8f148248266ed1u},   {2, 500, 3, 2, 7, 0xc70240902530a872u},
      {9, 1, 1, 3, 3, 0x3c20d9068fec4a61u},         {100, 100, 3, 3, 100, 0xd636b91e53937e73u},
      {17, 640, 3, 17, 9, 0xb249010f254144a8u},     {640, 17, 1, 9, 17, 0xbe76188d4bdfaea6u},
      {33, 47, 4, 40, 21, 0x7e17d2781af0f50du},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.in_h << 'x' << c.in_w << 'x' << c.channels << " to " << c.out_h << 'x'
                                    << c.out_w);
    auto in = noise(c.in_h * c.in_w * c.channels, static_cast<uint64_t>(c.in_h * 1000 + c.in_w));
    auto out =
        resize(GetParam(), Elem::U8, in.data(), c.in_w * c.channels, c.in_h, c.in_w, c.channels, c.out_h, c.out_w);
    EXPECT_EQ(fnv1a(out.data(), out.size()), c.hash);
  }
  auto tiny = resize(GetParam(), Elem::U8, noise(12, 4003).data(), 3, 4, 3, 1, 2, 5);
  EXPECT_EQ(tiny, (std::vector<uint8_t>{144, 136, 125, 179, 214, 138, 143, 150, 109, 81}));
}

TEST_P(Resample, FloatsHavePillowsBits) {
  const Case cases[] = {{37, 53, 1, 29, 17, 0xe5f4bf0df1832f51u},
                        {5, 7, 1, 11, 13, 0x64aae64571ddc674u},
                        {120, 80, 1, 7, 9, 0x5768d2d3f6c0eee9u},
                        {16, 16, 1, 16, 16, 0x924a83ec6662ed72u}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.in_h << 'x' << c.in_w << " to " << c.out_h << 'x' << c.out_w);
    std::vector<float> in;
    for (uint8_t b : noise(c.in_h * c.in_w, static_cast<uint64_t>(c.in_h * 1000 + c.in_w)))
      in.push_back(static_cast<float>(b) * 0.37f - 11.0f);
    auto out = resize(GetParam(), Elem::F32, in.data(), c.in_w * 4, c.in_h, c.in_w, 1, c.out_h, c.out_w);
    EXPECT_EQ(fnv1a(out.data(), out.size()), c.hash);
  }
}

TEST_P(Resample, ARowStrideAndManyChannelsChangeNothing) {
  constexpr int64_t kH = 23, kW = 31, kStride = 131, kC = 3;
  auto wide = noise(kH * kStride, 5);
  wide.resize(static_cast<size_t>((kH - 1) * kStride + kW * kC));  // nothing may be read behind the last row
  wide.shrink_to_fit();
  std::vector<uint8_t> packed;
  for (int64_t y = 0; y < kH; ++y)
    packed.insert(packed.end(), &wide[static_cast<size_t>(y * kStride)],
                  &wide[static_cast<size_t>(y * kStride)] + kW * kC);
  auto expected = resize(CpuLevel::X86_64, Elem::U8, packed.data(), kW * kC, kH, kW, kC, 16, 40);
  EXPECT_EQ(resize(GetParam(), Elem::U8, wide.data(), kStride, kH, kW, kC, 16, 40), expected);
  auto six = noise(20 * 20 * 6, 9);
  EXPECT_EQ(resize(GetParam(), Elem::U8, six.data(), 120, 20, 20, 6, 7, 33),
            resize(CpuLevel::X86_64, Elem::U8, six.data(), 120, 20, 20, 6, 7, 33));
}

// Of a box only what it needs: the pixels of the whole, from a part of the input that ends where it may.
TEST_P(Resample, APartHasThePixelsOfTheWhole) {
  uint64_t state = 17;
  auto below = [&](int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 200; ++round) {
    const Elem elem = round % 3 == 0 ? Elem::F32 : Elem::U8;
    const auto size = static_cast<int64_t>(elem_size(elem));
    const int64_t h = 1 + below(50), w = 1 + below(50), c = 1 + below(5), oh = 1 + below(40), ow = 1 + below(60);
    std::vector<uint8_t> in;
    for (uint8_t b : noise(h * w * c * size, static_cast<uint64_t>(round))) in.push_back(b & 63);  // no NaN
    const auto whole = resize(GetParam(), elem, in.data(), w * c * size, h, w, c, oh, ow);
    ResampleGeometry g = ResampleGeometry::whole(h, w, c, oh, ow);
    g.out_top = below(oh), g.out_left = below(ow);
    g.out_h = 1 + below(oh - g.out_top), g.out_w = 1 + below(ow - g.out_left);
    const TapRange top = tap_range(h, oh, g.out_top), bottom = tap_range(h, oh, g.out_top + g.out_h - 1);
    const TapRange left = tap_range(w, ow, g.out_left), right = tap_range(w, ow, g.out_left + g.out_w - 1);
    g.in_top = top.first, g.in_h = bottom.first + bottom.count - top.first;
    g.in_left = left.first, g.in_w = right.first + right.count - left.first;
    std::vector<uint8_t> part;
    for (int64_t y = 0; y < g.in_h; ++y) {
      const auto from = in.begin() + ((g.in_top + y) * w + g.in_left) * c * size;
      part.insert(part.end(), from, from + g.in_w * c * size);
    }
    part.shrink_to_fit();
    auto scratch_of = [&](const ResampleGeometry& geometry) {
      const size_t bytes = resample_scratch_bytes(elem, geometry);
      return std::unique_ptr<void, decltype(&std::free)>(std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
    };
    auto scratch = scratch_of(g);
    ASSERT_TRUE(resample_horizontal(GetParam(), elem, part.data(), g.in_w * c * size, g, scratch.get()));
    std::vector<uint8_t> row(static_cast<size_t>(g.out_w * c * size));
    for (int64_t y = 0; y < g.out_h; ++y) {
      resample_vertical(GetParam(), elem, scratch.get(), y, row.data());
      ASSERT_EQ(std::memcmp(row.data(), &whole[static_cast<size_t>(((g.out_top + y) * ow + g.out_left) * c * size)],
                            row.size()),
                0)
          << round << ": row " << y;
    }
    // What lacks a pixel, or lies outside, is refused.
    for (int64_t ResampleGeometry::*member : {&ResampleGeometry::in_top, &ResampleGeometry::in_left}) {
      ResampleGeometry wrong = g;
      wrong.*member += 1;
      EXPECT_FALSE(
          resample_horizontal(GetParam(), elem, part.data(), g.in_w * c * size, wrong, scratch_of(wrong).get()));
    }
    for (int64_t top_edge : {int64_t{-1}, oh - g.out_h + 1, INT64_MAX}) {
      ResampleGeometry wrong = g;
      wrong.out_top = top_edge;
      EXPECT_FALSE(
          resample_horizontal(GetParam(), elem, part.data(), g.in_w * c * size, wrong, scratch_of(wrong).get()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Resample, testing::Values(CpuLevel::X86_64, CpuLevel::Avx2, CpuLevel::Avx512), [](const auto& level) {
      return std::string(std::vector{"x86_64", "avx2", "avx512"}[static_cast<size_t>(level.param)]);
    });

}  // namespace
}  // namespace zephon
