#pragma once
// exp, log, sin, cos and pow as this project defines them (DESIGN section 5: the host's libm is not used).
//
// Each function is written once, without branches, tables or fused multiply-add, as a template over a set of numbers N.
// Plain doubles (PlainNumbers below) make it the reference and the constant folder; an SSA builder makes it a kernel.
// Since only IEEE 754 basic operations and 64-bit integer operations occur, in a fixed order, every instance gives the
// same bits. NaN results are only promised to be NaN: payloads are made canonical on delivery.
//
// What N offers (F and I default-constructible):
//   N::F  an f64 with  a + b, a - b, a * b, a / b, -a (flips the sign bit)
//   N::I  a 64-bit word with  a + b, a - b, a * b (modulo 2^64), a & b, a | b, a ^ b
//   N::C  a condition with  a & b, a | b, !a
//   real(double) -> F      word(uint64_t) -> I                         constants
//   less(F, F) less_equal(F, F) equal(F, F) -> C                       IEEE, false on NaN
//   same(I, I) -> C
//   select(C, F, F) -> F   select(C, I, I) -> I                        both arms are evaluated
//   bits(F) -> I           from_bits(I) -> F                           reinterpretation
//   shl(I, unsigned) shr(I, unsigned) shl(I, I) shr(I, I) -> I         logical; amounts below 64
//   sqrt(F) -> F                                                       correctly rounded
//
// Accuracy, found by tests/math_functions_test.cpp against MPFR, in units in the last place of the exact result:
//   f64: exp 0.61, log 0.501, sin 0.76, cos 0.77, pow 0.60 (0.8 where the result is subnormal);  f32 (computed in f64,
//   rounded once): 0.500001.
// Methods: exp, sin and cos are Taylor polynomials after an additive reduction (Cody and Waite 1980); log is
// 2 artanh((m-1)/(m+1)) whose leading terms are kept in double-double (Dekker 1971); arguments of sin and cos above
// 2^19 are reduced exactly with 192 bits of 2/pi (Payne and Hanek 1983), so the whole f64 range is served.
#include <bit>
#include <cstdint>

namespace zephon {

// The set of numbers whose members are plain values.
struct PlainNumbers {
  using F = double;
  using I = uint64_t;
  using C = bool;
  static F real(double x) { return x; }
  static I word(uint64_t x) { return x; }
  static C less(F a, F b) { return a < b; }
  static C less_equal(F a, F b) { return a <= b; }
  static C equal(F a, F b) { return a == b; }
  static C same(I a, I b) { return a == b; }
  static F select(C c, F a, F b) { return c ? a : b; }
  static I select(C c, I a, I b) { return c ? a : b; }
  static I bits(F a) { return std::bit_cast<uint64_t>(a); }
  static F from_bits(I a) { return std::bit_cast<double>(a); }
  static I shl(I a, uint64_t n) { return a << n; }
  static I shr(I a, uint64_t n) { return a >> n; }
  static F sqrt(F a) { return __builtin_sqrt(a); }
};

namespace math_detail {

constexpr uint64_t kSignBit = 0x8000000000000000u;
constexpr uint64_t kMantissaMask = 0x000fffffffffffffu;
constexpr double kInfinity = __builtin_inf();
constexpr double kNan = __builtin_nan("");
constexpr double kTwoTo52 = 0x1p52;
// Adding this to |x| < 2^51 rounds x half to even, and leaves the integer in the low bits of the sum.
constexpr double kRoundingShift = 0x1.8p52;
constexpr double kLn2Hi = 0x1.62e42fefa3800p-1;  // 42 bits: a product with an exponent is exact
constexpr double kLn2Lo = 0x1.ef35793c76730p-45;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kHalfPiHi = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLo = 0x1.1a62633145c07p-54;
// pi/2 in pieces of 33 bits: a product with an integer below 2^20 is exact.
constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
constexpr double kHalfPi3 = 0x1.3198a2e000000p-69;
constexpr double kHalfPi4 = 0x1.b839a252049c1p-104;

// 64 zero bits, then the first 1280 bits of 2/pi behind the binary point.
constexpr uint64_t kTwoOverPiBits[21] = {0,
                                         0xa2f9836e4e441529u,
                                         0xfc2757d1f534ddc0u,
                                         0xdb6295993c439041u,
                                         0xfe5163abdebbc561u,
                                         0xb7246e3a424dd2e0u,
                                         0x06492eea09d1921cu,
                                         0xfe1deb1cb129a73eu,
                                         0xe88235f52ebb4484u,
                                         0xe99c7026b45f7e41u,
                                         0x3991d639835339f4u,
                                         0x9c845f8bbdf9283bu,
                                         0x1ff897ffde05980fu,
                                         0xef2f118b5a0a6d1fu,
                                         0x6d367ecf27cb09b7u,
                                         0x4f463f669e5fea2du,
                                         0x7527bac7ebe5f17bu,
                                         0x3d0739f78a5292eau,
                                         0x6bfb5fb11f8d5d08u,
                                         0x56033046fc7b6babu,
                                         0xf0cfbc209af4361du};

// An unevaluated sum hi + lo with |lo| at most half an ulp of hi.
template <class N>
struct Pair {
  typename N::F hi, lo;
};

template <class N>
struct Functions {
  using F = typename N::F;
  using I = typename N::I;
  using C = typename N::C;
  using P = Pair<N>;
  N& n;

  F c(double x) { return n.real(x); }
  I w(uint64_t x) { return n.word(x); }
  F magnitude(F x) { return n.from_bits(n.bits(x) & w(~kSignBit)); }
  F or_sign(F x, I sign) { return n.from_bits(n.bits(x) ^ sign); }
  C is_nan(F x) { return !n.equal(x, x); }
  // Any signed integer of less than 51 bits, held in two's complement, as a double.
  F to_real(I k) { return n.from_bits(k + n.bits(c(kRoundingShift))) - c(kRoundingShift); }

  P two_sum(F a, F b) {
    F s = a + b, bb = s - a;
    return {s, (a - (s - bb)) + (b - bb)};
  }
  P fast_two_sum(F a, F b) {  // |a| >= |b|
    F s = a + b;
    return {s, b - (s - a)};
  }
  P two_product(F a, F b) {  // Veltkamp's split; |a|, |b| below 2^970
    F ta = a * c(134217729.0), ah = ta - (ta - a), al = a - ah;
    F tb = b * c(134217729.0), bh = tb - (tb - b), bl = b - bh;
    F p = a * b;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
  }
  P product(P a, P b) {
    P p = two_product(a.hi, b.hi);
    return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
  }
  P sum(P a, P b) {  // |a| >= |b|
    P s = two_sum(a.hi, b.hi);
    return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
  }

  // 1/first! + ratio x/(first+step)! + (ratio x)^2/(first+2 step)! + ... up to 1/last!, where ratio is 1 or -1.
  F taylor(F x, int first, int last, int step, double ratio) {
    double terms[16];
    int count = 0;
    double factorial = 1, sign = 1;
    for (int i = 1; i <= last; ++i) {
      factorial *= i;  // exact up to 22!
      if (i >= first && (i - first) % step == 0) {
        terms[count++] = sign / factorial;
        sign *= ratio;
      }
    }
    F total = c(terms[count - 1]);
    for (int i = count - 2; i >= 0; --i) total = total * x + c(terms[i]);
    return total;
  }

  // exp(x.hi + x.lo), 0 and inf beyond the range; not for NaN.
  F exp_of_pair(P x) {
    C in_range = n.less(magnitude(x.hi), c(800.0));
    F hi = n.select(in_range, x.hi, n.select(n.less(x.hi, c(0.0)), c(-800.0), c(800.0)));
    F lo = n.select(in_range, x.lo, c(0.0));
    F shifted = hi * c(kLog2E) + c(kRoundingShift);
    F k = shifted - c(kRoundingShift);
    P r = two_sum(hi - k * c(kLn2Hi), lo - k * c(kLn2Lo));  // |r| <= ln(2) / 2
    P one = fast_two_sum(c(1.0), r.hi);
    F y = one.hi + (one.lo + (r.lo * one.hi + r.hi * r.hi * taylor(r.hi, 2, 14, 1, 1)));
    // 2^k in two factors, so that overflow and gradual underflow happen in the last multiplication.
    I exponent = n.bits(shifted) - n.bits(c(kRoundingShift)) + w(2 * 1023);  // k + 2046 > 0
    I half = n.shr(exponent, 1u);
    return y * n.from_bits(n.shl(half, 52u)) * n.from_bits(n.shl(exponent - half, 52u));
  }

  // log(x) with about 100 bits where x is positive and finite.
  P log_of(F x) {
    C tiny = n.less(x, c(0x1p-1022));
    I at = n.bits(n.select(tiny, x * c(0x1p54), x));
    const uint64_t root_half = 0x3fe6a09e00000000u;  // just below sqrt(1/2): m lies in [sqrt(1/2), sqrt(2))
    I moved = at - w(root_half) + w(uint64_t{1023} << 52);
    I exponent = n.shr(moved, 52u) - n.select(tiny, w(1023 + 54), w(1023));
    F m = n.from_bits((moved & w(kMantissaMask)) + w(root_half));
    // log(m) = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1), s^2 < 0.0295
    F f = m - c(1.0);
    P d = two_sum(m, c(1.0));
    F q = f / d.hi;
    P back = two_product(q, d.hi);
    P s = fast_two_sum(q, (((f - back.hi) - back.lo) - q * d.lo) / d.hi);
    P z = product(s, s);
    F tail = c(2.0 / 27);
    for (int i = 25; i >= 7; i -= 2) tail = tail * z.hi + c(2.0 / i);
    P series = fast_two_sum(c(0x1.999999999999ap-2), z.hi * tail);  // 2/5 + z (2/7 + ...)
    series.lo = series.lo + c(-0x1.999999999999ap-56);
    series = sum({c(0x1.5555555555555p-1), c(0x1.5555555555555p-55)}, product(z, series));  // 2/3 + z (2/5 + ...)
    P two_s = {s.hi + s.hi, s.lo + s.lo};
    P log_m = sum(two_s, product(s, product(z, series)));
    F k = to_real(exponent);
    P r = two_sum(k * c(kLn2Hi), log_m.hi);
    return fast_two_sum(r.hi, r.lo + (log_m.lo + k * c(kLn2Lo)));
  }

  F exp(F x) { return n.select(is_nan(x), x, exp_of_pair({x, c(0.0)})); }

  F log(F x) {
    P r = log_of(x);
    F y = n.select(n.less(x, c(kInfinity)), r.hi + r.lo, x);  // inf and NaN stand for themselves
    return n.select(n.less(c(0.0), x) | is_nan(x), y, n.select(n.equal(x, c(0.0)), c(-kInfinity), c(kNan)));
  }

  C is_integer(F magnitude_of_x) {
    F rounded = (magnitude_of_x + c(kTwoTo52)) - c(kTwoTo52);
    return n.less_equal(c(kTwoTo52), magnitude_of_x) | n.equal(rounded, magnitude_of_x);
  }

  F pow(F x, F y) {
    F ax = magnitude(x), ay = magnitude(y);
    // Beyond 2^65 the exponent saturates: |x| != 1 is at least 2^-53 away from 1, and 2^12 is out of the range of exp.
    F limited = n.select(n.less(ay, c(0x1p65)), y, n.select(n.less(y, c(0.0)), c(-0x1p65), c(0x1p65)));
    P l = log_of(ax);
    P t = two_product(l.hi, limited);
    F r = exp_of_pair(fast_two_sum(t.hi, t.lo + limited * l.lo));
    F of_zero = n.select(n.less(c(0.0), y), c(0.0), c(kInfinity));
    F of_infinity = n.select(n.less(c(0.0), y), c(kInfinity), c(0.0));
    r = n.select(n.equal(ax, c(0.0)), of_zero, n.select(n.equal(ax, c(kInfinity)), of_infinity, r));
    C odd = is_integer(ay) & !is_integer(ay * c(0.5));
    r = or_sign(r, n.select(odd, n.bits(x) & w(kSignBit), w(0)));
    C invalid = n.less(x, c(0.0)) & n.less(ax, c(kInfinity)) & !is_integer(ay);
    r = n.select(invalid | is_nan(x) | is_nan(y), c(kNan), r);
    return n.select(n.equal(y, c(0.0)) | n.equal(x, c(1.0)), c(1.0), r);
  }

  // |x| = (pi/2) (4 j + quadrant) + r, |r| <= pi/4 (and a rounding error of x 2/pi more).
  struct Angle {
    I quadrant;  // modulo 4
    P r;
  };

  Angle reduce_small(F x) {  // 0 <= x < 2^20
    F shifted = x * c(kTwoOverPi) + c(kRoundingShift);
    F k = shifted - c(kRoundingShift);
    P a = two_sum(x - k * c(kHalfPi1), -(k * c(kHalfPi2)));
    P b = two_sum(a.hi, -(k * c(kHalfPi3)));
    return {n.bits(shifted) & w(3), fast_two_sum(b.hi, b.lo + (a.lo - k * c(kHalfPi4)))};
  }

  Angle reduce_large(F x) {  // x >= 2^19, finite
    I at = n.bits(x);
    I m = (at & w(kMantissaMask)) | w(uint64_t{1} << 52);
    // x = m 2^e. The bits of 2/pi before bit e - 1 only add multiples of 4; start is its place in kTwoOverPiBits.
    I start = n.shr(at, 52u) - w(1075 - 62);
    I window[21];
    for (int i = 0; i < 21; ++i) window[i] = w(kTwoOverPiBits[i]);
    int wanted = 4 + 15;
    for (int step = 16; step >= 1; step /= 2) {  // a shift by words, one bit of its amount at a time
      C by = !n.same(n.shr(start, 6u) & w(step), w(0));
      for (int i = 0; i < wanted; ++i) {
        if (i + step < 21) window[i] = n.select(by, window[i + step], window[i]);
      }
      wanted -= step / 2;
    }
    I amount = start & w(63), rest = w(63) - amount;
    const I low32 = w(0xffffffffu);
    I limb[6];  // 192 bits in limbs of 32, lowest first
    for (int i = 2; i >= 0; --i) {
      I word = n.shl(window[i], amount) | n.shr(n.shr(window[i + 1], 1u), rest);
      limb[4 - 2 * i] = word & low32;
      limb[5 - 2 * i] = n.shr(word, 32u);
    }
    // The low 192 bits of m times the window: a fixed-point number modulo 4 with 190 bits behind the point.
    I m0 = m & low32, m1 = n.shr(m, 32u), carry = w(0), above0 = w(0), above1 = w(0);
    I product_limb[6];
    for (int i = 0; i < 6; ++i) {
      I p0 = limb[i] * m0, p1 = i > 0 ? limb[i - 1] * m1 : w(0);
      I s = carry + (p0 & low32) + above0 + (p1 & low32) + above1;
      product_limb[i] = s & low32;
      carry = n.shr(s, 32u);
      above0 = n.shr(p0, 32u);
      above1 = n.shr(p1, 32u);
    }
    I top = product_limb[5];
    I quadrant = n.shr(top + w(1u << 29), 30u) & w(3);
    C negative = !n.same(top & w(1u << 29), w(0));
    I flip = n.select(negative, low32, w(0));  // one's complement: the error of 2^-190 does not matter
    P f = {c(0.0), c(0.0)};
    double scale = 0x1p-30;
    for (int i = 5; i >= 0; --i, scale *= 0x1p-32) {
      I digits = (product_limb[i] ^ flip) & (i == 5 ? w((1u << 30) - 1) : low32);
      P s = two_sum(f.hi, to_real(digits) * c(scale));
      f = fast_two_sum(s.hi, s.lo + f.lo);
    }
    P r = product(f, {c(kHalfPiHi), c(kHalfPiLo)});
    I sign = n.select(negative, w(kSignBit), w(0));
    return {quadrant, {or_sign(r.hi, sign), or_sign(r.lo, sign)}};
  }

  // sin(x) for phase 0, cos(x) for phase 1.
  F wave(F x, uint64_t phase) {
    F ax = magnitude(x);
    C small = n.less(ax, c(0x1p19));
    Angle a = reduce_small(n.select(small, ax, c(0.0)));
    Angle b = reduce_large(n.select(small, c(0x1p19), ax));
    I quadrant = n.select(small, a.quadrant, b.quadrant) + w(phase);
    P r = {n.select(small, a.r.hi, b.r.hi), n.select(small, a.r.lo, b.r.lo)};
    F z = r.hi * r.hi;
    // sin(hi + lo) = hi + (lo cos(hi) - hi^3/3! + ...)
    F half_z = z * c(0.5), one_less = c(1.0) - half_z;
    F sine = r.hi + (r.lo * one_less - z * r.hi * taylor(z, 3, 19, 2, -1));
    // cos(hi + lo) = 1 - z/2 + (z^2/4! - ... - hi lo), with the rounding error of 1 - z/2 put back
    F cosine = one_less + (((c(1.0) - one_less) - half_z) + (z * z * taylor(z, 4, 20, 2, -1) - r.hi * r.lo));
    F y = n.select(n.same(quadrant & w(1), w(0)), sine, cosine);
    I sign = n.shl(quadrant & w(2), 62u);
    if (phase == 0) sign = sign ^ (n.bits(x) & w(kSignBit));
    y = or_sign(y, sign);
    if (phase == 0) y = n.select(n.less(ax, c(0x1p-27)), x, y);  // keeps -0 and subnormal numbers
    return n.select(n.less(ax, c(kInfinity)), y, c(kNan));
  }
};

}  // namespace math_detail

template <class N>
typename N::F exp(N& n, typename N::F x) {
  return math_detail::Functions<N>{n}.exp(x);
}
template <class N>
typename N::F log(N& n, typename N::F x) {
  return math_detail::Functions<N>{n}.log(x);
}
template <class N>
typename N::F sin(N& n, typename N::F x) {
  return math_detail::Functions<N>{n}.wave(x, 0);
}
template <class N>
typename N::F cos(N& n, typename N::F x) {
  return math_detail::Functions<N>{n}.wave(x, 1);
}
// As IEEE 754 pow: pow(x, 0) = pow(1, y) = 1 even for NaN; pow(-1, inf) = 1.
template <class N>
typename N::F pow(N& n, typename N::F x, typename N::F y) {
  return math_detail::Functions<N>{n}.pow(x, y);
}

// The same on plain values; compiled once, in math_functions.cpp. f32 computes in f64 and rounds once.
namespace plain {
double exp(double x);
double log(double x);
double sin(double x);
double cos(double x);
double pow(double x, double y);
inline float exp(float x) { return static_cast<float>(exp(static_cast<double>(x))); }
inline float log(float x) { return static_cast<float>(log(static_cast<double>(x))); }
inline float sin(float x) { return static_cast<float>(sin(static_cast<double>(x))); }
inline float cos(float x) { return static_cast<float>(cos(static_cast<double>(x))); }
inline float pow(float x, float y) { return static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y))); }
}  // namespace plain
}  // namespace zephon
