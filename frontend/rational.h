// Exact rational numbers: what literals are until they meet a type (DESIGN section 5, numbers).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace zephon {

// A whole number of any size.
class BigInt {
 public:
  BigInt() = default;
  BigInt(int64_t value);

  bool is_zero() const { return words_.empty(); }
  bool is_negative() const { return negative_; }
  bool is_odd() const { return !words_.empty() && (words_[0] & 1) != 0; }
  size_t bit_length() const;  // of the magnitude; 0 for zero
  std::optional<int64_t> to_int64() const;
  std::string to_string() const;

  BigInt operator-() const;
  BigInt magnitude() const;
  friend BigInt operator+(const BigInt& a, const BigInt& b);
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return a + -b; }
  friend BigInt operator*(const BigInt& a, const BigInt& b);
  BigInt operator<<(size_t bits) const;
  // Rounds towards zero. The divisor is not zero.
  static void divide(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder);
  static BigInt gcd(BigInt a, BigInt b);
  friend std::strong_ordering operator<=>(const BigInt& a, const BigInt& b);
  friend bool operator==(const BigInt& a, const BigInt& b) = default;

 private:
  static std::strong_ordering compare_magnitude(const BigInt& a, const BigInt& b);
  void trim();
  std::vector<uint32_t> words_;  // least significant first, no leading zero
  bool negative_ = false;        // never for zero
};

// Always in lowest terms, with a positive denominator. Most numbers of programs are small: those cost no memory.
class Rational {
 public:
  Rational(int64_t value = 0) : numerator_(value) {}
  Rational(BigInt numerator, BigInt denominator);

  // "485", "0.485", "1e-3", without underscores. Nullopt where the exponent is beyond +-5000.
  static std::optional<Rational> parse(std::string_view text);
  // The exact value of a double that is finite.
  static Rational of_double(double value);

  bool is_zero() const { return !large_ && numerator_ == 0; }
  bool is_negative() const { return large_ ? large_->numerator.is_negative() : numerator_ < 0; }
  bool is_integer() const { return large_ ? large_->denominator == BigInt(1) : denominator_ == 1; }
  // Where it is an integer that fits.
  std::optional<int64_t> to_int64() const;
  Rational floor() const;
  Rational round_half_even() const;
  // Numbers beyond this size are refused: they come from no sensible program, and cost time.
  bool is_huge() const {
    return large_ && (large_->numerator.bit_length() > 20'000 || large_->denominator.bit_length() > 20'000);
  }

  // Rounded once, to nearest even, to f16, bf16, f32 or f64. Nullopt where it is beyond the largest finite value.
  std::optional<double> to_float(Elem elem) const;
  // "3", "0.485", or "1/3" where no decimal of 20 digits is exact.
  std::string to_string() const;

  /// Of 0 it is a 0 that equals the other, and becomes -0.0 as a float. Sums and products of it are exact: plain 0.
  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // b is not zero
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);
  friend bool operator==(const Rational& a, const Rational& b) {
    if (a.large_ && b.large_)
      return a.large_->numerator == b.large_->numerator && a.large_->denominator == b.large_->denominator;
    return !a.large_ && !b.large_ && a.numerator_ == b.numerator_ && a.denominator_ == b.denominator_;
  }

 private:
  struct Large {
    BigInt numerator, denominator;
  };
  // In lowest terms or not; the denominator is positive.
  static Rational small(int64_t numerator, int64_t denominator);
  // Sums and products of its parts fit into 64 bits.
  bool is_short() const {
    return !large_ && numerator_ < (int64_t{1} << 31) && numerator_ > -(int64_t{1} << 31) &&
           denominator_ < (int64_t{1} << 31);
  }
  BigInt numerator() const { return large_ ? large_->numerator : BigInt(numerator_); }
  BigInt denominator() const { return large_ ? large_->denominator : BigInt(denominator_); }

  int64_t numerator_ = 0, denominator_ = 1;  // where both fit
  std::shared_ptr<const Large> large_;       // where they do not
  bool minus_zero_ = false;
};

}  // namespace zephon
