#pragma once
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1,
// 2, 3" (SC 2011), and the maps from its words to draws. A draw is a pure function of key and counter: nothing is
// stored.
//
// Like math_functions.h, everything is a template over a set of numbers, so that the reference and the compiled kernels
// share one definition. Who fills key and counter with seed, epoch, sample and draw is decided by the caller.
#include <array>
#include <cstdint>

#include "graph/math_functions.h"

namespace zephon {

// The two 64-bit words of one block of random bits: words 0, 1 and words 2, 3 of Philox, low word first.
template <class N>
struct RandomWords {
  typename N::I first, second;
};

// key: 64 bits, of which key words 0 (low half) and 1; counter: 128 bits, words 0, 1 in counter_low, 2, 3 in
// counter_high.
template <class N>
RandomWords<N> philox(N& n, typename N::I key, typename N::I counter_low, typename N::I counter_high) {
  using I = typename N::I;
  const I low32 = n.word(0xffffffffu);
  I c0 = counter_low & low32, c1 = n.shr(counter_low, 32u), c2 = counter_high & low32, c3 = n.shr(counter_high, 32u);
  I k0 = key & low32, k1 = n.shr(key, 32u);
  for (int round = 0; round < 10; ++round) {
    I a = c0 * n.word(0xD2511F53u), b = c2 * n.word(0xCD9E8D57u);
    I next0 = n.shr(b, 32u) ^ c1 ^ k0, next2 = n.shr(a, 32u) ^ c3 ^ k1;
    c1 = b & low32;
    c3 = a & low32;
    c0 = next0;
    c2 = next2;
    k0 = (k0 + n.word(0x9E3779B9u)) & low32;
    k1 = (k1 + n.word(0xBB67AE85u)) & low32;
  }
  return {c0 | n.shl(c1, 32u), c2 | n.shl(c3, 32u)};
}

// A multiple of 2^-53 in [0, 1): the upper 53 bits of the word.
template <class N>
typename N::F unit_interval(N& n, typename N::I word) {
  // Two halves, each made a double by writing it below the exponent of 2^52: exact, and cheap without AVX-512.
  typename N::I exponent = n.bits(n.real(0x1p52));
  typename N::F low = n.from_bits((n.shr(word, 11u) & n.word(0xffffffffu)) | exponent) - n.real(0x1p52);
  typename N::F high = n.from_bits(n.shr(word, 43u) | exponent) - n.real(0x1p52);
  return high * n.real(0x1p-21) + low * n.real(0x1p-53);
}

// The upper half of the 128-bit product word * count: an integer in [0, count) whose probabilities differ from 1 /
// count by at most 2^-64 (multiply-shift; Lemire 2019 without the rejection step, so that one draw uses one block).
template <class N>
typename N::I integer_below(N& n, typename N::I word, typename N::I count) {
  using I = typename N::I;
  const I low32 = n.word(0xffffffffu);
  I a0 = word & low32, a1 = n.shr(word, 32u), b0 = count & low32, b1 = n.shr(count, 32u);
  I p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
  I middle = n.shr(p00, 32u) + (p01 & low32) + (p10 & low32);
  return a1 * b1 + n.shr(p01, 32u) + n.shr(p10, 32u) + n.shr(middle, 32u);
}

// True with probability p: never for p <= 0, always for p >= 1.
template <class N>
typename N::C coin(N& n, typename N::I word, typename N::F p) {
  return n.less(unit_interval(n, word), p);
}

// In [low, high), for low < high: low + u (high - low), and low where rounding would reach high.
template <class N>
typename N::F uniform_between(N& n, typename N::I word, typename N::F low, typename N::F high) {
  typename N::F x = low + unit_interval(n, word) * (high - low);
  return n.select(n.less(x, high), x, low);
}

// Standard normal (Box and Muller 1958): sqrt(-2 log u) cos(2 pi v) with u in (0, 1], v in [0, 1). |result| < 8.6.
template <class N>
typename N::F standard_normal(N& n, RandomWords<N> words) {
  typename N::F u = n.real(1.0) - unit_interval(n, words.first), v = unit_interval(n, words.second);
  return n.sqrt(n.real(-2.0) * log(n, u)) * cos(n, v * n.real(0x1.921fb54442d18p+2));
}

}  // namespace zephon
