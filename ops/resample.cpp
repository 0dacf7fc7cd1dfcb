#include "ops/resample.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

// GCC 12 takes the deliberately undefined operands inside its own AVX-512 intrinsics for ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace zephon {
namespace {

constexpr int kFraction = 22;             // bits of a u8 weight behind the point
constexpr int kHalfBits = kFraction / 2;  // a weight is kept as two halves, each fit for 16-bit multiplication
constexpr int64_t kGroup = 4;  // taps that a step of the horizontal pass takes: 16 bytes hold 4 pixels of 4 channels
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kOverread = 16;  // bytes that a step loads, of which the last may lie behind the row

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Weights of four neighbouring taps. `high`, `low`: the halves of 22 bits, for pmaddwd. `digits`: the same weight as
// d0 2^16 + d1 2^8 + d2 with d1, d2 in [-128, 127], for vpdpbusd (then the halves are not written).
struct TapGroup {
  int16_t high[4], low[4];
  int8_t digits[3][4];
};

// One axis of a geometry: a part of the output, made of a part of the input.
struct Axis {
  int64_t whole_in, in_first, in_count, whole_out, out_first, out_count;

  static Axis rows(const ResampleGeometry& g) {
    return {g.whole_in_h, g.in_top, g.in_h, g.whole_out_h, g.out_top, g.out_h};
  }
  static Axis columns(const ResampleGeometry& g) {
    return {g.whole_in_w, g.in_left, g.in_w, g.whole_out_w, g.out_left, g.out_w};
  }
  bool possible() const {
    auto inside = [](int64_t first, int64_t count, int64_t whole) {
      return first >= 0 && count >= 1 && whole <= kLongest && first <= whole - count;
    };
    return inside(in_first, in_count, whole_in) && inside(out_first, out_count, whole_out);
  }
  // The input positions that the output is made of; ranges move with the output.
  TapRange needed() const {
    const int64_t first = tap_range(whole_in, whole_out, out_first).first;
    const TapRange last = tap_range(whole_in, whole_out, out_first + out_count - 1);
    return {first, last.first + last.count - first};
  }
  bool holds(const TapRange& range) const {
    return range.first >= in_first && range.first + range.count <= in_first + in_count;
  }
  static constexpr int64_t kLongest = int64_t{1} << 24;
};

bool possible(const ResampleGeometry& g) {
  return Axis::rows(g).possible() && Axis::columns(g).possible() && g.channels >= 1;
}

// Where things lie in scratch: this, both passes' ranges, both passes' weights, then rows. Positions count from the
// first that is needed (rows) or at hand (columns).
struct Layout {
  Elem elem;
  int64_t channels, out_w, taps_x, taps_y, groups_x, groups_y, row_bytes, padded_bytes;
  TapRange needed_rows;
  size_t ranges_x, ranges_y, weights_x, weights_y, padded_rows, rows, end;

  Layout(Elem type, const ResampleGeometry& g) : elem(type), channels(g.channels), out_w(g.out_w) {
    const int64_t in_w = g.in_w, out_h = g.out_h;
    taps_x = max_taps(g.whole_in_w, g.whole_out_w);
    taps_y = max_taps(g.whole_in_h, g.whole_out_h);
    needed_rows = Axis::rows(g).needed();
    groups_x = (taps_x + kGroup - 1) / kGroup;
    groups_y = (taps_y + kGroup - 1) / kGroup;
    auto size = static_cast<int64_t>(elem_size(elem));
    row_bytes = round_up(out_w * channels * size, 64) + 64;  // the last pixel's store writes past its row
    padded_bytes = in_w * channels * size + kOverread;
    int64_t bytes_x = elem == Elem::U8 ? groups_x * int64_t{sizeof(TapGroup)} : taps_x * int64_t{sizeof(double)};
    int64_t bytes_y = elem == Elem::U8 ? groups_y * int64_t{sizeof(TapGroup)} : taps_y * int64_t{sizeof(double)};
    int64_t at = round_up(sizeof(Layout), 64);
    auto place = [&at](int64_t bytes) {
      auto here = static_cast<size_t>(at);
      at = round_up(at + bytes, 64);
      return here;
    };
    ranges_x = place(out_w * int64_t{sizeof(TapRange)});
    ranges_y = place(out_h * int64_t{sizeof(TapRange)});
    weights_x = place(out_w * bytes_x);
    weights_y = place(out_h * bytes_y);
    padded_rows = place(kRowsAtOnce * padded_bytes);
    rows = place(needed_rows.count * row_bytes);
    end = static_cast<size_t>(at);
  }
};

void put_weight(CpuLevel level, TapGroup* groups, int64_t tap, double weight) {
  TapGroup& group = groups[tap / kGroup];
  auto at = static_cast<size_t>(tap % kGroup);
  auto fixed = static_cast<int32_t>(weight * (1 << kFraction) + 0.5);
  if (level != CpuLevel::Avx512) {
    group.high[at] = static_cast<int16_t>(fixed >> kHalfBits);
    group.low[at] = static_cast<int16_t>(fixed & ((1 << kHalfBits) - 1));
    return;
  }
  for (size_t digit = 3; digit-- > 0;) {
    group.digits[digit][at] = static_cast<int8_t>(fixed & 255);
    fixed = (fixed - group.digits[digit][at]) >> 8;
  }
}

// Ranges, counted from `origin`, and weights as fixed-point groups (u8) or doubles (f32), of every output position
// along one axis. Returns the most groups that a position uses.
int64_t write_taps(CpuLevel level, Elem elem, const Axis& axis, int64_t origin, int64_t groups_each, TapRange* ranges,
                   void* weights) {
  int64_t taps = max_taps(axis.whole_in, axis.whole_out), most = 0;
  auto range_of = [&](int64_t x, double* into) {
    TapRange range = bilinear_taps(axis.whole_in, axis.whole_out, axis.out_first + x, into);
    range.first -= origin;
    return range;
  };
  if (elem != Elem::U8) {
    for (int64_t x = 0; x < axis.out_count; ++x) ranges[x] = range_of(x, static_cast<double*>(weights) + x * taps);
    return 0;
  }
  thread_local std::vector<double> exact;
  if (exact.size() < static_cast<size_t>(taps)) exact.resize(static_cast<size_t>(taps));
  auto* groups = static_cast<TapGroup*>(weights);
  std::memset(groups, 0, static_cast<size_t>(axis.out_count * groups_each) * sizeof(TapGroup));
  for (int64_t x = 0; x < axis.out_count; ++x, groups += groups_each) {
    ranges[x] = range_of(x, exact.data());
    most = std::max(most, ranges[x].count);
    for (int64_t i = 0; i < ranges[x].count; ++i) put_weight(level, groups, i, exact[static_cast<size_t>(i)]);
  }
  return (most + kGroup - 1) / kGroup;
}

int32_t weight_of(const TapGroup* groups, int64_t tap) {
  const TapGroup& g = groups[tap / kGroup];
  return (g.high[tap % kGroup] << kHalfBits) + g.low[tap % kGroup];
}
uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, 255)); }

struct RowTask {
  const TapRange* ranges;
  const TapGroup* weights;      // groups_each per output pixel
  int64_t groups_each, groups;  // of which `groups` are used
  int64_t out_w, channels;
};

void horizontal_row(const RowTask& t, const uint8_t* in, uint8_t* out) {
  const TapGroup* weights = t.weights;
  for (int64_t x = 0; x < t.out_w; ++x, weights += t.groups_each) {
    for (int64_t c = 0; c < t.channels; ++c) {
      int32_t sum = 1 << (kFraction - 1);
      for (int64_t i = 0; i < t.ranges[x].count; ++i)
        sum += in[(t.ranges[x].first + i) * t.channels + c] * weight_of(weights, i);
      *out++ = to_byte(sum);
    }
  }
}

void vertical_row(const TapRange& range, const TapGroup* weights, const uint8_t* rows, int64_t row_bytes, int64_t count,
                  uint8_t* out) {
  constexpr int64_t kBlock = 256;
  int32_t sums[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    int64_t n = std::min(kBlock, count - start);
    std::fill_n(sums, n, 1 << (kFraction - 1));
    for (int64_t i = 0; i < range.count; ++i) {
      const uint8_t* in = rows + (range.first + i) * row_bytes + start;
      int32_t weight = weight_of(weights, i);
      for (int64_t x = 0; x < n; ++x) sums[x] += in[x] * weight;
    }
    for (int64_t x = 0; x < n; ++x) out[start + x] = to_byte(sums[x]);
  }
}

template <class T>
int32_t bits_of(const T* items) {
  int32_t bits;
  std::memcpy(&bits, items, sizeof bits);
  return bits;
}

// A byte shuffle of 16 loaded bytes: lane c of 32 bits gets the bytes of channel c of pixels tap, tap + 1, ..., each
// widened to `width` bytes.
__m128i spread(int64_t tap, int64_t channels, int64_t width) {
  alignas(16) int8_t bytes[16];
  for (int64_t i = 0; i < 16; ++i) {
    int64_t lane = i / 4, pixel = tap + i % 4 / width;
    bytes[i] = lane < channels && i % width == 0 ? static_cast<int8_t>(pixel * channels + lane) : int8_t{-128};
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Two rows at once, one in each 128-bit lane: they share ranges and weights. Pointers are copied, as a store to `out`
// might change what lies behind them, for all the compiler knows.
__attribute__((target("avx2"))) void horizontal_rows_avx2(const RowTask& t, const uint8_t* const* in,
                                                          uint8_t* const* out) {
  const __m256i first = _mm256_broadcastsi128_si256(spread(0, t.channels, 2));
  const __m256i second = _mm256_broadcastsi128_si256(spread(2, t.channels, 2));
  const uint8_t *in0 = in[0], *in1 = in[1];
  uint8_t *out0 = out[0], *out1 = out[1];
  const TapGroup* weights = t.weights;
  const TapRange* range = t.ranges;
  const int64_t unused = t.groups_each - t.groups, groups = t.groups, channels = t.channels;
  for (int64_t x = 0, end = t.out_w * channels; x < end; x += channels, ++range, weights += unused) {
    __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(1 << (kFraction - 1));
    int64_t at = range->first * channels;
    for (int64_t i = 0; i < groups; ++i, ++weights, at += kGroup * channels) {
      const auto* p0 = reinterpret_cast<const __m128i*>(in0 + at);
      const auto* p1 = reinterpret_cast<const __m128i*>(in1 + at);
      __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p0)), _mm_loadu_si128(p1), 1);
      __m256i a = _mm256_shuffle_epi8(v, first), b = _mm256_shuffle_epi8(v, second);
      high = _mm256_add_epi32(high, _mm256_madd_epi16(a, _mm256_set1_epi32(bits_of(weights->high))));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(a, _mm256_set1_epi32(bits_of(weights->low))));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(b, _mm256_set1_epi32(bits_of(weights->high + 2))));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(b, _mm256_set1_epi32(bits_of(weights->low + 2))));
    }
    __m256i sum = _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kHalfBits), low), kFraction);
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(sum, sum), sum);
    int32_t values[2] = {_mm256_extract_epi32(bytes, 0), _mm256_extract_epi32(bytes, 4)};
    std::memcpy(out0 + x, &values[0], 4);
    std::memcpy(out1 + x, &values[1], 4);
  }
}

// Two rows a step, interleaved so that pmaddwd multiplies and adds the pair. Rows are padded, so whole blocks may be
// read; only the last block of `out` is written in part.
__attribute__((target("avx2"))) void vertical_row_avx2(const TapRange& range, const TapGroup* weights,
                                                       const uint8_t* rows, int64_t row_bytes, int64_t count,
                                                       uint8_t* out) {
  const uint8_t* top = rows + range.first * row_bytes;
  for (int64_t x = 0; x < count; x += 16) {
    __m256i high0 = _mm256_setzero_si256(), high1 = high0;
    __m256i low0 = _mm256_set1_epi32(1 << (kFraction - 1)), low1 = low0;
    for (int64_t i = 0; i < range.count; i += 2) {
      const uint8_t* in = top + i * row_bytes + x;
      const uint8_t* next = i + 1 < range.count ? in + row_bytes : in;
      __m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
      __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(next)));
      __m256i v0 = _mm256_unpacklo_epi16(a, b), v1 = _mm256_unpackhi_epi16(a, b);
      const TapGroup& w = weights[i / kGroup];
      __m256i high = _mm256_set1_epi32(bits_of(w.high + i % kGroup));
      __m256i low = _mm256_set1_epi32(bits_of(w.low + i % kGroup));
      high0 = _mm256_add_epi32(high0, _mm256_madd_epi16(v0, high));
      high1 = _mm256_add_epi32(high1, _mm256_madd_epi16(v1, high));
      low0 = _mm256_add_epi32(low0, _mm256_madd_epi16(v0, low));
      low1 = _mm256_add_epi32(low1, _mm256_madd_epi16(v1, low));
    }
    __m256i s0 = _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high0, kHalfBits), low0), kFraction);
    __m256i s1 = _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high1, kHalfBits), low1), kFraction);
    __m256i words = _mm256_packus_epi32(s0, s1);
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    if (x + 16 <= count) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x), bytes);
    } else {
      std::memcpy(out + x, &bytes, static_cast<size_t>(count - x));
    }
  }
}

#define ZEPHON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2")))

// d0 2^16 + d1 2^8 + d2, cut to an integer.
ZEPHON_AVX512 inline __m512i whole_of(__m512i d0, __m512i d1, __m512i d2) {
  __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(d0, 8), d1);
  return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), d2), kFraction);
}

// Four rows at once; vpdpbusd multiplies four bytes by four digits and adds them up.
ZEPHON_AVX512 void horizontal_rows_avx512(const RowTask& t, const uint8_t* const* in, uint8_t* const* out) {
  const __m512i order = _mm512_broadcast_i32x4(spread(0, t.channels, 1));
  const uint8_t *in0 = in[0], *in1 = in[1], *in2 = in[2], *in3 = in[3];
  uint8_t *out0 = out[0], *out1 = out[1], *out2 = out[2], *out3 = out[3];
  const TapGroup* weights = t.weights;
  const TapRange* range = t.ranges;
  const int64_t unused = t.groups_each - t.groups, groups = t.groups, channels = t.channels;
  const __m512i half = _mm512_set1_epi32(1 << (kFraction - 1));
  for (int64_t x = 0, end = t.out_w * channels; x < end; x += channels, ++range, weights += unused) {
    __m512i d0 = _mm512_setzero_si512(), d1 = d0, d2 = half;
    int64_t at = range->first * channels;
    for (int64_t i = 0; i < groups; ++i, ++weights, at += kGroup * channels) {
      __m512i v = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in0 + at)));
      v = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(in1 + at)), 1);
      v = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(in2 + at)), 2);
      v = _mm512_inserti32x4(v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(in3 + at)), 3);
      v = _mm512_shuffle_epi8(v, order);
      d0 = _mm512_dpbusd_epi32(d0, v, _mm512_set1_epi32(bits_of(weights->digits[0])));
      d1 = _mm512_dpbusd_epi32(d1, v, _mm512_set1_epi32(bits_of(weights->digits[1])));
      d2 = _mm512_dpbusd_epi32(d2, v, _mm512_set1_epi32(bits_of(weights->digits[2])));
    }
    __m128i bytes = _mm512_cvtusepi32_epi8(whole_of(d0, d1, d2));  // one dword a row
    int32_t values[4];
    std::memcpy(values, &bytes, sizeof bytes);
    std::memcpy(out0 + x, &values[0], 4);
    std::memcpy(out1 + x, &values[1], 4);
    std::memcpy(out2 + x, &values[2], 4);
    std::memcpy(out3 + x, &values[3], 4);
  }
}

// Four rows a step, their bytes interleaved.
ZEPHON_AVX512 void vertical_row_avx512(const TapRange& range, const TapGroup* weights, const uint8_t* rows,
                                       int64_t row_bytes, int64_t count, uint8_t* out) {
  const uint8_t* top = rows + range.first * row_bytes;
  const __m512i half = _mm512_set1_epi32(1 << (kFraction - 1));
  for (int64_t x = 0; x < count; x += 64) {
    __m512i d0[4], d1[4], d2[4];
    for (int k = 0; k < 4; ++k) {
      d0[k] = d1[k] = _mm512_setzero_si512();
      d2[k] = half;
    }
    for (int64_t i = 0; i < range.count; i += kGroup) {
      const TapGroup& w = weights[i / kGroup];
      __m512i row[4];
      for (int64_t k = 0; k < 4; ++k)  // a row past the range has the weight 0
        row[k] = _mm512_loadu_si512(top + std::min(i + k, range.count - 1) * row_bytes + x);
      __m512i ab0 = _mm512_unpacklo_epi8(row[0], row[1]), ab1 = _mm512_unpackhi_epi8(row[0], row[1]);
      __m512i cd0 = _mm512_unpacklo_epi8(row[2], row[3]), cd1 = _mm512_unpackhi_epi8(row[2], row[3]);
      const __m512i v[4] = {_mm512_unpacklo_epi16(ab0, cd0), _mm512_unpackhi_epi16(ab0, cd0),
                            _mm512_unpacklo_epi16(ab1, cd1), _mm512_unpackhi_epi16(ab1, cd1)};
      const __m512i w0 = _mm512_set1_epi32(bits_of(w.digits[0])), w1 = _mm512_set1_epi32(bits_of(w.digits[1]));
      const __m512i w2 = _mm512_set1_epi32(bits_of(w.digits[2]));
      for (int k = 0; k < 4; ++k) {
        d0[k] = _mm512_dpbusd_epi32(d0[k], v[k], w0);
        d1[k] = _mm512_dpbusd_epi32(d1[k], v[k], w1);
        d2[k] = _mm512_dpbusd_epi32(d2[k], v[k], w2);
      }
    }
    // Packing within 128-bit lanes undoes the interleaving within them.
    __m512i words0 = _mm512_packus_epi32(whole_of(d0[0], d1[0], d2[0]), whole_of(d0[1], d1[1], d2[1]));
    __m512i words1 = _mm512_packus_epi32(whole_of(d0[2], d1[2], d2[2]), whole_of(d0[3], d1[3], d2[3]));
    __m512i bytes = _mm512_packus_epi16(words0, words1);
    if (x + 64 <= count) {
      _mm512_storeu_si512(out + x, bytes);
    } else {
      std::memcpy(out + x, &bytes, static_cast<size_t>(count - x));
    }
  }
}

// Vector loads run past a row by up to kOverread bytes: near the end of the picture, where that would leave it, rows
// are copied first.
void horizontal_u8(CpuLevel level, const uint8_t* in, int64_t row_stride, int64_t in_h, int64_t in_w,
                   const RowTask& task, uint8_t* padded_rows, int64_t padded_bytes, uint8_t* rows, int64_t row_bytes) {
  if (level == CpuLevel::X86_64 || task.channels > 4) {
    for (int64_t y = 0; y < in_h; ++y) horizontal_row(task, in + y * row_stride, rows + y * row_bytes);
    return;
  }
  const int64_t at_once = level == CpuLevel::Avx2 ? 2 : kRowsAtOnce;
  for (int64_t y = 0; y < in_h; y += at_once) {
    const uint8_t* from[kRowsAtOnce];
    uint8_t* to[kRowsAtOnce];
    for (int64_t i = 0; i < at_once; ++i) {
      int64_t row = std::min(y + i, in_h - 1);  // the last row again and again
      from[i] = in + row * row_stride;
      to[i] = rows + row * row_bytes;
      if ((in_h - 1 - row) * row_stride >= kOverread) continue;
      uint8_t* copy = padded_rows + i * padded_bytes;
      std::memcpy(copy, from[i], static_cast<size_t>(in_w * task.channels));
      from[i] = copy;
    }
    level == CpuLevel::Avx2 ? horizontal_rows_avx2(task, from, to) : horizontal_rows_avx512(task, from, to);
  }
}

void horizontal_f32(const float* in, int64_t channels, int64_t out_w, int64_t taps, const TapRange* ranges,
                    const double* weights, float* out) {
  for (int64_t x = 0; x < out_w; ++x, weights += taps) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < ranges[x].count; ++i)
        sum += static_cast<double>(in[(ranges[x].first + i) * channels + c]) * weights[i];
      *out++ = static_cast<float>(sum);
    }
  }
}

void vertical_f32(const TapRange& range, const double* weights, const uint8_t* rows, int64_t row_bytes, int64_t count,
                  float* out) {
  constexpr int64_t kBlock = 128;
  double sums[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    int64_t n = std::min(kBlock, count - start);
    std::fill_n(sums, n, 0.0);
    for (int64_t i = 0; i < range.count; ++i) {
      const auto* in = reinterpret_cast<const float*>(rows + (range.first + i) * row_bytes) + start;
      for (int64_t x = 0; x < n; ++x) sums[x] += static_cast<double>(in[x]) * weights[i];
    }
    for (int64_t x = 0; x < n; ++x) out[start + x] = static_cast<float>(sums[x]);
  }
}

CpuLevel detect_cpu() {
  __builtin_cpu_init();
  CpuLevel best = CpuLevel::X86_64;
  if (__builtin_cpu_supports("avx2")) best = CpuLevel::Avx2;
  if (best == CpuLevel::Avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
    best = CpuLevel::Avx512;
  const char* text = std::getenv("ZEPHON_CPU");
  std::string_view wanted = text != nullptr ? text : "";
  if (wanted == "x86-64") return CpuLevel::X86_64;
  if (wanted == "avx2") return std::min(best, CpuLevel::Avx2);
  return best;
}

}  // namespace

CpuLevel cpu_level() {
  static const CpuLevel level = detect_cpu();
  return level;
}

int64_t max_taps(int64_t in_size, int64_t out_size) {
  double scale = static_cast<double>(in_size) / static_cast<double>(out_size);
  return static_cast<int64_t>(std::ceil(std::max(scale, 1.0))) * 2 + 1;
}

TapRange tap_range(int64_t in_size, int64_t out_size, int64_t x) {
  double scale = static_cast<double>(in_size) / static_cast<double>(out_size), half_width = std::max(scale, 1.0);
  double center = (static_cast<double>(x) + 0.5) * scale;
  auto first = std::max<int64_t>(0, static_cast<int64_t>(center - half_width + 0.5));
  auto last = std::min(in_size, static_cast<int64_t>(center + half_width + 0.5));
  return {first, last - first};
}

TapRange bilinear_taps(int64_t in_size, int64_t out_size, int64_t x, double* weights) {
  double scale = static_cast<double>(in_size) / static_cast<double>(out_size), half_width = std::max(scale, 1.0);
  double center = (static_cast<double>(x) + 0.5) * scale, per_pixel = 1.0 / half_width, total = 0;
  const TapRange range = tap_range(in_size, out_size, x);
  for (int64_t i = 0; i < range.count; ++i) {
    double distance = std::abs((static_cast<double>(range.first + i) - center + 0.5) * per_pixel);
    weights[i] = distance < 1.0 ? 1.0 - distance : 0.0;
    total += weights[i];
  }
  for (int64_t i = 0; i < range.count; ++i) weights[i] /= total;
  return range;
}

size_t resample_scratch_bytes(Elem elem, const ResampleGeometry& geometry) {
  return possible(geometry) ? Layout(elem, geometry).end : sizeof(Layout);
}

bool resample_horizontal(CpuLevel level, Elem elem, const void* in, int64_t row_stride, const ResampleGeometry& g,
                         void* scratch) {
  const Axis across = Axis::columns(g), down = Axis::rows(g);
  if (!possible(g) || !across.holds(across.needed()) || !down.holds(down.needed())) return false;
  auto* base = static_cast<uint8_t*>(scratch);
  const Layout& at = *new (scratch) Layout(elem, g);
  auto* ranges = reinterpret_cast<TapRange*>(base + at.ranges_x);
  if (g.channels > 4) level = CpuLevel::X86_64;  // the horizontal kernels keep a pixel in 32 bits a channel, 4 of them
  int64_t used = write_taps(level, elem, across, g.in_left, at.groups_x, ranges, base + at.weights_x);
  write_taps(level, elem, down, at.needed_rows.first, at.groups_y, reinterpret_cast<TapRange*>(base + at.ranges_y),
             base + at.weights_y);
  const auto* picture = static_cast<const uint8_t*>(in) + (at.needed_rows.first - g.in_top) * row_stride;
  if (elem == Elem::U8) {
    RowTask task{ranges,    reinterpret_cast<const TapGroup*>(base + at.weights_x), at.groups_x, used, g.out_w,
                 g.channels};
    horizontal_u8(level, picture, row_stride, at.needed_rows.count, g.in_w, task, base + at.padded_rows,
                  at.padded_bytes, base + at.rows, at.row_bytes);
    return true;
  }
  for (int64_t y = 0; y < at.needed_rows.count; ++y)
    horizontal_f32(reinterpret_cast<const float*>(picture + y * row_stride), g.channels, g.out_w, at.taps_x, ranges,
                   reinterpret_cast<const double*>(base + at.weights_x),
                   reinterpret_cast<float*>(base + at.rows + static_cast<size_t>(y * at.row_bytes)));
  return true;
}

void resample_vertical(CpuLevel level, Elem elem, const void* scratch, int64_t y, void* row) {
  const Layout& at = *static_cast<const Layout*>(scratch);  // written by the horizontal pass
  const auto* base = static_cast<const uint8_t*>(scratch);
  const TapRange& range = reinterpret_cast<const TapRange*>(base + at.ranges_y)[y];
  const uint8_t* rows = base + at.rows;
  int64_t count = at.out_w * at.channels;
  if (elem == Elem::F32) {
    const auto* weights = reinterpret_cast<const double*>(base + at.weights_y) + y * at.taps_y;
    vertical_f32(range, weights, rows, at.row_bytes, count, static_cast<float*>(row));
    return;
  }
  const TapGroup* weights = reinterpret_cast<const TapGroup*>(base + at.weights_y) + y * at.groups_y;
  if (at.channels > 4) level = CpuLevel::X86_64;  // as the weights were written
  auto* out = static_cast<uint8_t*>(row);
  switch (level) {
    case CpuLevel::X86_64:
      return vertical_row(range, weights, rows, at.row_bytes, count, out);
    case CpuLevel::Avx2:
      return vertical_row_avx2(range, weights, rows, at.row_bytes, count, out);
    case CpuLevel::Avx512:
      return vertical_row_avx512(range, weights, rows, at.row_bytes, count, out);
  }
}

constinit const ResampleKernel kBilinearResample = kBilinearFunctions;

}  // namespace zephon
