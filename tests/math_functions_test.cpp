// Accuracy and special values of our own exp, log, sin, cos, pow, against MPFR; philox and its draws.
#include "graph/math_functions.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "graph/philox.h"

namespace zephon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMin = std::numeric_limits<double>::denorm_min();

class Exact {
 public:
  Exact() { mpfr_inits2(200, x_, y_, r_, static_cast<mpfr_ptr>(nullptr)); }
  ~Exact() { mpfr_clears(x_, y_, r_, static_cast<mpfr_ptr>(nullptr)); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  using Unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  // |got - f(x, y)| in units in the last place of a number format with `digits` bits and least exponent `least`.
  double error(Unary f, double x, double y, double got, int digits, int least) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    mpfr_set_d(y_, y, MPFR_RNDN);
    if (f != nullptr) {
      f(r_, x_, MPFR_RNDN);
    } else {
      mpfr_pow(r_, x_, y_, MPFR_RNDN);
    }
    double nearest = mpfr_get_d(r_, MPFR_RNDN);
    if (std::isnan(nearest) || std::isnan(got)) return std::isnan(nearest) == std::isnan(got) ? 0 : kInf;
    double rounded = digits == 24 ? static_cast<double>(mpfr_get_flt(r_, MPFR_RNDN)) : nearest;
    if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : kInf;
    if (mpfr_zero_p(r_) != 0) return got == 0 ? 0 : kInf;
    auto exponent = std::max<long>(mpfr_get_exp(r_) - digits, least);
    mpfr_sub_d(r_, r_, got, MPFR_RNDN);
    mpfr_mul_2si(r_, r_, -exponent, MPFR_RNDN);
    return std::abs(mpfr_get_d(r_, MPFR_RNDN));
  }

 private:
  mpfr_t x_, y_, r_;
};

struct Worst {
  double ulps = 0, x = 0, y = 0;
  void see(double ulps_now, double x_now, double y_now = 0) {
    if (ulps_now > ulps) *this = {ulps_now, x_now, y_now};
  }
};
std::ostream& operator<<(std::ostream& out, const Worst& w) {
  return out << w.ulps << " ulp at " << w.x << ", " << w.y;
}

std::mt19937_64 random_words(20261129);
double any_double() { return std::bit_cast<double>(random_words()); }
double between(double low, double high) {
  return low + (high - low) * static_cast<double>(random_words() >> 11) * 0x1p-53;
}

void check_unary(Exact::Unary exact, double (*f)(double), float (*f32)(float), double limit,
                 const std::function<double(int)>& argument) {
  Exact reference;
  Worst worst, worst32;
  for (int i = 0; i < 40000; ++i) {
    double x = argument(i);
    worst.see(reference.error(exact, x, 0, f(x), 53, -1074), x);
    auto x32 = static_cast<float>(x);
    worst32.see(reference.error(exact, x32, 0, f32(x32), 24, -149), x32);
  }
  EXPECT_LE(worst.ulps, limit) << worst;
  EXPECT_LE(worst32.ulps, 0.500001) << worst32;
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst.ulps));
}

TEST(MathFunctions, ExpIsAccurate) {
  check_unary(mpfr_exp, plain::exp, plain::exp, 0.62, [](int i) {
    return i % 4 == 0 ? any_double() : i % 4 == 1 ? between(-1, 1) : i % 4 == 2 ? between(-708, 710) : between(-90, 90);
  });
  check_unary(mpfr_exp, plain::exp, plain::exp, 0.8, [](int) { return between(-746, -708); });
}

TEST(MathFunctions, LogIsAccurate) {
  check_unary(mpfr_log, plain::log, plain::log, 0.501, [](int i) {
    return i % 3 == 0 ? any_double() : i % 3 == 1 ? between(0.5, 2) : 1 + between(-1, 1) * std::ldexp(1.0, -(i % 50));
  });
  check_unary(mpfr_log, plain::log, plain::log, 0.501, [](int i) { return kMin * (i * 104729.0 + 1); });
}

TEST(MathFunctions, SineAndCosineAreAccurateOverTheWholeRange) {
  auto arguments = [](int i) {
    switch (i % 5) {
      case 0:
        return any_double();
      case 1:
        return between(-10, 10);
      case 2:
        return between(-0x1p20, 0x1p20);
      case 3:
        return std::nearbyint(between(0, 0x1p21)) * 1.5707963267948966;  // where most bits cancel
      default:
        return std::ldexp(between(1, 2), static_cast<int>(random_words() % 1024));
    }
  };
  check_unary(mpfr_sin, plain::sin, plain::sin, 0.78, arguments);
  check_unary(mpfr_cos, plain::cos, plain::cos, 0.78, arguments);
  // The double nearest to a multiple of pi/2 (Muller, Elementary Functions): about 61 bits cancel.
  Exact reference;
  double near = std::ldexp(6381956970095103.0, 797);
  EXPECT_LE(reference.error(mpfr_cos, near, 0, plain::cos(near), 53, -1074), 0.78);
  EXPECT_LE(reference.error(mpfr_sin, 0x1.fffffffffffffp1023, 0, plain::sin(0x1.fffffffffffffp1023), 53, -1074), 0.78);
}

TEST(MathFunctions, PowIsAccurate) {
  Exact reference;
  Worst normal, subnormal, f32;
  for (int i = 0; i < 100000; ++i) {
    double x = i % 2 == 0 ? std::abs(any_double()) : between(0.5, 2), y = 0;
    if (!(x > 0) || std::isinf(x)) continue;
    y = i % 5 == 0 ? any_double() : i % 5 == 1 ? between(-4, 4) : between(-745, 710) / std::log(x);
    double got = plain::pow(x, y);
    double ulps = reference.error(nullptr, x, y, got, 53, -1074);
    (got < 0x1p-1022 ? subnormal : normal).see(ulps, x, y);
    auto x32 = static_cast<float>(x), y32 = static_cast<float>(y);
    f32.see(reference.error(nullptr, x32, y32, plain::pow(x32, y32), 24, -149), x32, y32);
  }
  EXPECT_LE(normal.ulps, 0.62) << normal;
  EXPECT_LE(subnormal.ulps, 0.8) << subnormal;
  EXPECT_LE(f32.ulps, 0.500001) << f32;
}

// Equal as a person means it: the same bits, or both NaN.
void same(double got, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(expected)) << got << " for " << expected;
  }
}

TEST(MathFunctions, SpecialValues) {
  same(plain::exp(0.0), 1);
  same(plain::exp(-0.0), 1);
  same(plain::exp(kInf), kInf);
  same(plain::exp(-kInf), 0);
  same(plain::exp(kNaN), kNaN);
  same(plain::exp(709.782712893384), 0x1.fffffffffff2ap1023);
  same(plain::exp(709.782712893385), kInf);
  same(plain::exp(-745.14), 0);
  same(plain::exp(-745.13), kMin);
  same(plain::log(0.0), -kInf);
  same(plain::log(-0.0), -kInf);
  same(plain::log(1.0), 0);
  same(plain::log(-1.0), kNaN);
  same(plain::log(-kInf), kNaN);
  same(plain::log(kInf), kInf);
  same(plain::log(kNaN), kNaN);
  for (double zero : {0.0, -0.0}) {
    same(plain::sin(zero), zero);
    same(plain::cos(zero), 1);
  }
  same(plain::sin(-kMin), -kMin);
  for (double x : {kInf, -kInf, kNaN}) {
    same(plain::sin(x), kNaN);
    same(plain::cos(x), kNaN);
  }
}

TEST(MathFunctions, PowSpecialValuesFollowIeee754) {
  const double values[] = {
      0.0,  -0.0,  1,     -1,     2,    -2,    3,    -3,         0.5,        -0.5,   2.5,          -2.5,
      kMin, -kMin, 1e300, -1e300, kInf, -kInf, kNaN, 0x1p53 - 1, 1 - 0x1p53, 0x1p54, 0x1p52 + 0.0, 4503599627370495.5};
  Exact reference;
  for (double x : values) {
    for (double y : values) {
      double expected = std::pow(x, y), got = plain::pow(x, y);  // MPFR agrees; the sign of zero is easier to ask here
      SCOPED_TRACE(testing::Message() << x << " ^ " << y);
      if (std::isfinite(expected) && expected != 0) {
        EXPECT_LE(reference.error(nullptr, x, y, got, 53, -1074), 0.8);
      } else {
        same(got, expected);
      }
    }
  }
}

TEST(Philox, PublishedKnownAnswers) {
  PlainNumbers n;
  auto zero = philox(n, 0, 0, 0);
  EXPECT_EQ(zero.first, 0xe169c58d6627e8d5u);
  EXPECT_EQ(zero.second, 0x9b00dbd8bc57ac4cu);
  auto ones = philox(n, ~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.first, 0x41c83b0e408f276du);
  EXPECT_EQ(ones.second, 0x6d5451fda20bc7c6u);
  auto pi = philox(n, 0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu);
  EXPECT_EQ(pi.first, 0x94fdccebd16cfe09u);
  EXPECT_EQ(pi.second, 0x24126ea15001e420u);
}

__extension__ using Wide = unsigned __int128;
uint64_t mul_high(uint64_t a, uint64_t b) { return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64); }

TEST(Philox, DrawsAreExactAtTheEdges) {
  PlainNumbers n;
  EXPECT_EQ(unit_interval(n, 0), 0.0);
  EXPECT_EQ(unit_interval(n, 0x7ff), 0.0);
  EXPECT_EQ(unit_interval(n, 0x800), 0x1p-53);
  EXPECT_EQ(unit_interval(n, ~0ull), 1 - 0x1p-53);
  EXPECT_EQ(integer_below(n, ~0ull, 10), 9u);
  EXPECT_EQ(integer_below(n, 0, 10), 0u);
  for (int i = 0; i < 1000; ++i) {
    uint64_t a = random_words(), b = random_words();
    EXPECT_EQ(integer_below(n, a, b), mul_high(a, b));
    EXPECT_EQ(unit_interval(n, a), static_cast<double>(a >> 11) * 0x1p-53);
  }
  EXPECT_FALSE(coin(n, 0, 0.0));
  EXPECT_TRUE(coin(n, ~0ull, 1.0));
  EXPECT_EQ(uniform_between(n, ~0ull, 1.0, std::nextafter(1.0, 2.0)), 1.0);
  EXPECT_FALSE(std::isinf(standard_normal(n, RandomWords<PlainNumbers>{~0ull, 0})));
  EXPECT_EQ(standard_normal(n, RandomWords<PlainNumbers>{0, 0}), 0.0);
}

TEST(Philox, NormalHasTheRightMoments) {
  PlainNumbers n;
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourth = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    double x = standard_normal(n, philox(n, 7, i, 0));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourth / kDraws, 3, 0.2);
}

}  // namespace
}  // namespace zephon
