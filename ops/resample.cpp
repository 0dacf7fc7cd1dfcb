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
constexpr int64_t kOverread = 16;  // bytes that a step loads, of which the last may lie behind the row

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Weights of two neighbouring taps as pmaddwd wants them; the upper and the lower half of 22 bits.
struct TapPair {
  int16_t high[2], low[2];
};

// Where things lie in scratch: this, both passes' ranges, both passes' weights, then rows.
struct Layout {
  int64_t taps_x, taps_y, groups_x, pairs_y, row_bytes;
  size_t ranges_x, ranges_y, weights_x, weights_y, padded_row, rows, end;

  Layout(Elem elem, int64_t in_h, int64_t in_w, int64_t channels, int64_t out_h, int64_t out_w) {
    taps_x = max_taps(in_w, out_w);
    taps_y = max_taps(in_h, out_h);
    groups_x = (taps_x + kGroup - 1) / kGroup;
    pairs_y = (taps_y + 1) / 2;
    auto size = static_cast<int64_t>(elem_size(elem));
    row_bytes = round_up(out_w * channels * size, 64) + 64;  // the last pixel's store writes past its row
    int64_t bytes_x = elem == Elem::U8 ? groups_x * 2 * int64_t{sizeof(TapPair)} : taps_x * int64_t{sizeof(double)};
    int64_t bytes_y = elem == Elem::U8 ? pairs_y * int64_t{sizeof(TapPair)} : taps_y * int64_t{sizeof(double)};
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
    padded_row = place(in_w * channels * size + kOverread);
    rows = place(in_h * row_bytes);
    end = static_cast<size_t>(at);
  }
};

void put_weight(TapPair* pairs, int64_t tap, double weight) {
  auto fixed = static_cast<int32_t>(weight * (1 << kFraction) + 0.5);
  pairs[tap / 2].high[tap % 2] = static_cast<int16_t>(fixed >> kHalfBits);
  pairs[tap / 2].low[tap % 2] = static_cast<int16_t>(fixed & ((1 << kHalfBits) - 1));
}

// Ranges, and weights as fixed-point pairs (u8) or doubles (f32), of every output position along one axis.
void write_taps(Elem elem, int64_t in_size, int64_t out_size, int64_t pairs_each, TapRange* ranges, void* weights) {
  int64_t taps = max_taps(in_size, out_size);
  if (elem != Elem::U8) {
    for (int64_t x = 0; x < out_size; ++x)
      ranges[x] = bilinear_taps(in_size, out_size, x, static_cast<double*>(weights) + x * taps);
    return;
  }
  thread_local std::vector<double> exact;
  if (exact.size() < static_cast<size_t>(taps)) exact.resize(static_cast<size_t>(taps));
  auto* pairs = static_cast<TapPair*>(weights);
  for (int64_t x = 0; x < out_size; ++x, pairs += pairs_each) {
    ranges[x] = bilinear_taps(in_size, out_size, x, exact.data());
    std::memset(pairs, 0, static_cast<size_t>(pairs_each) * sizeof(TapPair));
    for (int64_t i = 0; i < ranges[x].count; ++i) put_weight(pairs, i, exact[static_cast<size_t>(i)]);
  }
}

int32_t weight_of(const TapPair* pairs, int64_t tap) {
  return (pairs[tap / 2].high[tap % 2] << kHalfBits) + pairs[tap / 2].low[tap % 2];
}
uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, 255)); }

struct RowTask {
  const TapRange* ranges;
  const TapPair* weights;  // pairs_each per output pixel
  int64_t pairs_each, out_w, channels;
};

void horizontal_row(const RowTask& t, const uint8_t* in, uint8_t* out) {
  const TapPair* pairs = t.weights;
  for (int64_t x = 0; x < t.out_w; ++x, pairs += t.pairs_each) {
    for (int64_t c = 0; c < t.channels; ++c) {
      int32_t sum = 1 << (kFraction - 1);
      for (int64_t i = 0; i < t.ranges[x].count; ++i)
        sum += in[(t.ranges[x].first + i) * t.channels + c] * weight_of(pairs, i);
      *out++ = to_byte(sum);
    }
  }
}

void vertical_row(const TapRange& range, const TapPair* pairs, const uint8_t* rows, int64_t row_bytes, int64_t count,
                  uint8_t* out) {
  constexpr int64_t kBlock = 256;
  int32_t sums[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    int64_t n = std::min(kBlock, count - start);
    std::fill_n(sums, n, 1 << (kFraction - 1));
    for (int64_t i = 0; i < range.count; ++i) {
      const uint8_t* in = rows + (range.first + i) * row_bytes + start;
      int32_t weight = weight_of(pairs, i);
      for (int64_t x = 0; x < n; ++x) sums[x] += in[x] * weight;
    }
    for (int64_t x = 0; x < n; ++x) out[start + x] = to_byte(sums[x]);
  }
}

// Bytes t C + c and (t + 1) C + c of a load, widened to 16 bits, in 32-bit lane c: what a TapPair multiplies.
__m128i spread(int64_t tap, int64_t channels) {
  alignas(16) int8_t bytes[16];
  for (int64_t lane = 0; lane < 4; ++lane) {
    bool used = lane < channels;
    bytes[4 * lane] = used ? static_cast<int8_t>(tap * channels + lane) : int8_t{-128};
    bytes[4 * lane + 1] = -128;
    bytes[4 * lane + 2] = used ? static_cast<int8_t>((tap + 1) * channels + lane) : int8_t{-128};
    bytes[4 * lane + 3] = -128;
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

int32_t bits_of(const int16_t (&two)[2]) {
  int32_t bits;
  std::memcpy(&bits, two, sizeof bits);
  return bits;
}

// Two (AVX2) or four (AVX-512) rows at once, one in each 128-bit lane: they share ranges and weights.
__attribute__((target("avx2"))) void horizontal_rows_avx2(const RowTask& t, const uint8_t* const* in,
                                                          uint8_t* const* out) {
  const __m256i first = _mm256_broadcastsi128_si256(spread(0, t.channels));
  const __m256i second = _mm256_broadcastsi128_si256(spread(2, t.channels));
  // Copies: a store to `out` might change what lies behind a pointer, for all the compiler knows.
  const uint8_t *in0 = in[0], *in1 = in[1];
  uint8_t *out0 = out[0], *out1 = out[1];
  const TapPair* pairs = t.weights;
  const TapRange* range = t.ranges;
  const int64_t pairs_each = t.pairs_each, channels = t.channels, out_bytes = t.out_w * channels;
  for (int64_t x = 0; x < out_bytes; x += channels, ++range, pairs += pairs_each) {
    __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(1 << (kFraction - 1));
    int64_t at = range->first * channels;
    for (int64_t i = 0; i < range->count; i += kGroup, at += kGroup * channels) {
      const TapPair *p = pairs + i / 2, *q = p + 1;
      __m256i v =
          _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in0 + at))),
                                  _mm_loadu_si128(reinterpret_cast<const __m128i*>(in1 + at)), 1);
      __m256i a = _mm256_shuffle_epi8(v, first), b = _mm256_shuffle_epi8(v, second);
      high = _mm256_add_epi32(high, _mm256_madd_epi16(a, _mm256_set1_epi32(bits_of(p->high))));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(a, _mm256_set1_epi32(bits_of(p->low))));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(b, _mm256_set1_epi32(bits_of(q->high))));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(b, _mm256_set1_epi32(bits_of(q->low))));
    }
    __m256i sum = _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kHalfBits), low), kFraction);
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(sum, sum), sum);
    int32_t values[2] = {_mm256_extract_epi32(bytes, 0), _mm256_extract_epi32(bytes, 4)};
    std::memcpy(out0 + x, &values[0], 4);
    std::memcpy(out1 + x, &values[1], 4);
  }
}

#define ZEPHON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2")))

ZEPHON_AVX512 void horizontal_rows_avx512(const RowTask& t, const uint8_t* const* in, uint8_t* const* out) {
  const __m512i first = _mm512_broadcast_i32x4(spread(0, t.channels));
  const __m512i second = _mm512_broadcast_i32x4(spread(2, t.channels));
  // Copies: a store to `out` might change what lies behind a pointer, for all the compiler knows.
  const uint8_t *in0 = in[0], *in1 = in[1], *in2 = in[2], *in3 = in[3];
  uint8_t *out0 = out[0], *out1 = out[1], *out2 = out[2], *out3 = out[3];
  const TapPair* pairs = t.weights;
  const TapRange* range = t.ranges;
  const int64_t pairs_each = t.pairs_each, channels = t.channels, out_bytes = t.out_w * channels;
  auto load = [](const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
  for (int64_t x = 0; x < out_bytes; x += channels, ++range, pairs += pairs_each) {
    __m512i high = _mm512_setzero_si512(), low = _mm512_set1_epi32(1 << (kFraction - 1));
    int64_t at = range->first * channels;
    for (int64_t i = 0; i < range->count; i += kGroup, at += kGroup * channels) {
      const TapPair *p = pairs + i / 2, *q = p + 1;
      __m512i v = _mm512_castsi128_si512(load(in0 + at));
      v = _mm512_inserti32x4(v, load(in1 + at), 1);
      v = _mm512_inserti32x4(v, load(in2 + at), 2);
      v = _mm512_inserti32x4(v, load(in3 + at), 3);
      __m512i a = _mm512_shuffle_epi8(v, first), b = _mm512_shuffle_epi8(v, second);
      high = _mm512_add_epi32(high, _mm512_madd_epi16(a, _mm512_set1_epi32(bits_of(p->high))));
      low = _mm512_add_epi32(low, _mm512_madd_epi16(a, _mm512_set1_epi32(bits_of(p->low))));
      high = _mm512_add_epi32(high, _mm512_madd_epi16(b, _mm512_set1_epi32(bits_of(q->high))));
      low = _mm512_add_epi32(low, _mm512_madd_epi16(b, _mm512_set1_epi32(bits_of(q->low))));
    }
    __m512i sum = _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, kHalfBits), low), kFraction);
    __m128i bytes = _mm512_cvtusepi32_epi8(sum);  // one dword a row
    int32_t values[4];
    std::memcpy(values, &bytes, sizeof bytes);
    std::memcpy(out0 + x, &values[0], 4);
    std::memcpy(out1 + x, &values[1], 4);
    std::memcpy(out2 + x, &values[2], 4);
    std::memcpy(out3 + x, &values[3], 4);
  }
}

// The vertical pass takes two rows a step, interleaved so that pmaddwd multiplies and adds the pair; rows are padded,
// so whole blocks may be read, and the last block of `out` goes through a buffer.
__attribute__((target("avx2"))) void vertical_row_avx2(const TapRange& range, const TapPair* pairs, const uint8_t* rows,
                                                       int64_t row_bytes, int64_t count, uint8_t* out) {
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
      __m256i high = _mm256_set1_epi32(bits_of(pairs[i / 2].high)), low = _mm256_set1_epi32(bits_of(pairs[i / 2].low));
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

ZEPHON_AVX512 void vertical_row_avx512(const TapRange& range, const TapPair* pairs, const uint8_t* rows,
                                       int64_t row_bytes, int64_t count, uint8_t* out) {
  const uint8_t* top = rows + range.first * row_bytes;
  for (int64_t x = 0; x < count; x += 32) {
    __m512i high0 = _mm512_setzero_si512(), high1 = high0;
    __m512i low0 = _mm512_set1_epi32(1 << (kFraction - 1)), low1 = low0;
    for (int64_t i = 0; i < range.count; i += 2) {
      const uint8_t* in = top + i * row_bytes + x;
      const uint8_t* next = i + 1 < range.count ? in + row_bytes : in;
      __m512i a = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
      __m512i b = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(next)));
      __m512i v0 = _mm512_unpacklo_epi16(a, b), v1 = _mm512_unpackhi_epi16(a, b);
      __m512i high = _mm512_set1_epi32(bits_of(pairs[i / 2].high)), low = _mm512_set1_epi32(bits_of(pairs[i / 2].low));
      high0 = _mm512_add_epi32(high0, _mm512_madd_epi16(v0, high));
      high1 = _mm512_add_epi32(high1, _mm512_madd_epi16(v1, high));
      low0 = _mm512_add_epi32(low0, _mm512_madd_epi16(v0, low));
      low1 = _mm512_add_epi32(low1, _mm512_madd_epi16(v1, low));
    }
    __m512i s0 = _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high0, kHalfBits), low0), kFraction);
    __m512i s1 = _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high1, kHalfBits), low1), kFraction);
    __m256i bytes = _mm512_cvtusepi16_epi8(_mm512_packus_epi32(s0, s1));
    if (x + 32 <= count) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), bytes);
    } else {
      std::memcpy(out + x, &bytes, static_cast<size_t>(count - x));
    }
  }
}

void horizontal_u8(CpuLevel level, const uint8_t* in, int64_t row_stride, int64_t in_h, int64_t in_w,
                   const RowTask& task, uint8_t* padded_row, uint8_t* rows, int64_t row_bytes) {
  int64_t at_once = level == CpuLevel::X86_64 || task.channels > 4 ? 1 : level == CpuLevel::Avx2 ? 2 : 4;
  for (int64_t y = 0; y < in_h;) {
    const uint8_t* from[4];
    uint8_t* to[4];
    // Vector loads run past a row; near the end of the picture that would leave it.
    bool safe = (in_h - y - at_once) * row_stride >= kOverread;
    int64_t count = safe ? at_once : 1;
    for (int64_t i = 0; i < at_once; ++i) {
      int64_t row = safe ? y + i : y;
      from[i] = in + row * row_stride;
      to[i] = rows + row * row_bytes;
    }
    if (!safe) {
      std::memcpy(padded_row, from[0], static_cast<size_t>(in_w * task.channels));
      std::fill_n(from, at_once, padded_row);
    }
    if (at_once == 4) {
      horizontal_rows_avx512(task, from, to);
    } else if (at_once == 2) {
      horizontal_rows_avx2(task, from, to);
    } else {
      horizontal_row(task, from[0], to[0]);
    }
    y += count;
  }
}

void horizontal_f32(const float* in, int64_t in_w, int64_t channels, int64_t out_w, const TapRange* ranges,
                    const double* weights, float* out) {
  int64_t taps = max_taps(in_w, out_w);
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
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
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

TapRange bilinear_taps(int64_t in_size, int64_t out_size, int64_t x, double* weights) {
  double scale = static_cast<double>(in_size) / static_cast<double>(out_size), half_width = std::max(scale, 1.0);
  double center = (static_cast<double>(x) + 0.5) * scale, per_pixel = 1.0 / half_width, total = 0;
  auto first = std::max<int64_t>(0, static_cast<int64_t>(center - half_width + 0.5));
  auto last = std::min(in_size, static_cast<int64_t>(center + half_width + 0.5));
  for (int64_t i = first; i < last; ++i) {
    double distance = std::abs((static_cast<double>(i) - center + 0.5) * per_pixel);
    double weight = distance < 1.0 ? 1.0 - distance : 0.0;
    weights[i - first] = weight;
    total += weight;
  }
  for (int64_t i = 0; i < last - first; ++i) weights[i] /= total;
  return {first, last - first};
}

size_t resample_scratch_bytes(Elem elem, int64_t in_h, int64_t in_w, int64_t channels, int64_t out_h, int64_t out_w) {
  return Layout(elem, in_h, in_w, channels, out_h, out_w).end;
}

void resample_horizontal(CpuLevel level, Elem elem, const void* in, int64_t row_stride, int64_t in_h, int64_t in_w,
                         int64_t channels, int64_t out_h, int64_t out_w, void* scratch) {
  auto* base = static_cast<uint8_t*>(scratch);
  const Layout& at = *new (scratch) Layout(elem, in_h, in_w, channels, out_h, out_w);
  auto* ranges = reinterpret_cast<TapRange*>(base + at.ranges_x);
  write_taps(elem, in_w, out_w, at.groups_x * 2, ranges, base + at.weights_x);
  write_taps(elem, in_h, out_h, at.pairs_y, reinterpret_cast<TapRange*>(base + at.ranges_y), base + at.weights_y);
  const auto* picture = static_cast<const uint8_t*>(in);
  if (elem == Elem::U8) {
    RowTask task{ranges, reinterpret_cast<const TapPair*>(base + at.weights_x), at.groups_x * 2, out_w, channels};
    horizontal_u8(level, picture, row_stride, in_h, in_w, task, base + at.padded_row, base + at.rows, at.row_bytes);
    return;
  }
  for (int64_t y = 0; y < in_h; ++y)
    horizontal_f32(reinterpret_cast<const float*>(picture + y * row_stride), in_w, channels, out_w, ranges,
                   reinterpret_cast<const double*>(base + at.weights_x),
                   reinterpret_cast<float*>(base + at.rows + static_cast<size_t>(y * at.row_bytes)));
}

void resample_vertical(CpuLevel level, Elem elem, const void* scratch, int64_t y, int64_t channels, int64_t out_w,
                       void* row) {
  const Layout& at = *static_cast<const Layout*>(scratch);  // written by the horizontal pass
  const auto* base = static_cast<const uint8_t*>(scratch);
  const TapRange& range = reinterpret_cast<const TapRange*>(base + at.ranges_y)[y];
  const uint8_t* rows = base + at.rows;
  int64_t count = out_w * channels;
  if (elem == Elem::F32) {
    const auto* weights = reinterpret_cast<const double*>(base + at.weights_y) + y * at.taps_y;
    vertical_f32(range, weights, rows, at.row_bytes, count, static_cast<float*>(row));
    return;
  }
  const TapPair* pairs = reinterpret_cast<const TapPair*>(base + at.weights_y) + y * at.pairs_y;
  auto* out = static_cast<uint8_t*>(row);
  switch (level) {
    case CpuLevel::X86_64:
      return vertical_row(range, pairs, rows, at.row_bytes, count, out);
    case CpuLevel::Avx2:
      return vertical_row_avx2(range, pairs, rows, at.row_bytes, count, out);
    case CpuLevel::Avx512:
      return vertical_row_avx512(range, pairs, rows, at.row_bytes, count, out);
  }
}

constinit const ResampleKernel kBilinearResample = {
    .scratch_bytes = resample_scratch_bytes,
    .horizontal =
        [](Elem elem, const void* in, int64_t row_stride, int64_t in_h, int64_t in_w, int64_t channels, int64_t out_h,
           int64_t out_w, void* scratch) {
          resample_horizontal(cpu_level(), elem, in, row_stride, in_h, in_w, channels, out_h, out_w, scratch);
        },
    .vertical = [](Elem elem, const void* scratch, int64_t y, int64_t, int64_t, int64_t channels, int64_t,
                   int64_t out_w,
                   void* row) { resample_vertical(cpu_level(), elem, scratch, y, channels, out_w, row); },
};

}  // namespace zephon
