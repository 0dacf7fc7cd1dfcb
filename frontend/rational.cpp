#include "frontend/rational.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace zephon {

// ---- BigInt

BigInt::BigInt(int64_t value) : negative_(value < 0) {
  uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  for (; magnitude != 0; magnitude >>= 32) words_.push_back(static_cast<uint32_t>(magnitude));
}

void BigInt::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
  if (words_.empty()) negative_ = false;
}

size_t BigInt::bit_length() const {
  return words_.empty() ? 0 : 32 * (words_.size() - 1) + static_cast<size_t>(std::bit_width(words_.back()));
}

std::optional<int64_t> BigInt::to_int64() const {
  if (words_.size() > 2) return std::nullopt;
  uint64_t magnitude = 0;
  for (size_t i = words_.size(); i-- > 0;) magnitude = magnitude << 32 | words_[i];
  uint64_t limit = uint64_t{1} << 63;
  if (negative_ ? magnitude > limit : magnitude >= limit) return std::nullopt;
  return static_cast<int64_t>(negative_ ? ~magnitude + 1 : magnitude);
}

std::string BigInt::to_string() const {
  if (is_zero()) return "0";
  std::string digits;
  for (BigInt rest = magnitude(), digit; !rest.is_zero();) {
    BigInt quotient;
    divide(rest, BigInt(10), quotient, digit);
    digits += static_cast<char>('0' + digit.to_int64().value());
    rest = std::move(quotient);
  }
  if (negative_) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

BigInt BigInt::operator-() const {
  BigInt result = *this;
  if (!is_zero()) result.negative_ = !negative_;
  return result;
}

BigInt BigInt::magnitude() const {
  BigInt result = *this;
  result.negative_ = false;
  return result;
}

std::strong_ordering BigInt::compare_magnitude(const BigInt& a, const BigInt& b) {
  if (a.words_.size() != b.words_.size()) return a.words_.size() <=> b.words_.size();
  for (size_t i = a.words_.size(); i-- > 0;)
    if (a.words_[i] != b.words_[i]) return a.words_[i] <=> b.words_[i];
  return std::strong_ordering::equal;
}

std::strong_ordering operator<=>(const BigInt& a, const BigInt& b) {
  if (a.negative_ != b.negative_) return b.negative_ <=> a.negative_;
  return a.negative_ ? BigInt::compare_magnitude(b, a) : BigInt::compare_magnitude(a, b);
}

BigInt operator+(const BigInt& a, const BigInt& b) {
  if (a.negative_ == b.negative_) {
    BigInt sum = a;
    sum.words_.resize(std::max(a.words_.size(), b.words_.size()) + 1);
    uint64_t carry = 0;
    for (size_t i = 0; i < sum.words_.size(); ++i) {
      carry += uint64_t{sum.words_[i]} + (i < b.words_.size() ? b.words_[i] : 0);
      sum.words_[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    sum.trim();
    return sum;
  }
  bool a_larger = BigInt::compare_magnitude(a, b) >= 0;
  const BigInt& large = a_larger ? a : b;
  const BigInt& small = a_larger ? b : a;
  BigInt difference = large;
  int64_t borrow = 0;
  for (size_t i = 0; i < difference.words_.size(); ++i) {
    int64_t word = int64_t{difference.words_[i]} - (i < small.words_.size() ? small.words_[i] : 0) - borrow;
    borrow = word < 0;
    difference.words_[i] = static_cast<uint32_t>(word + (borrow << 32));
  }
  difference.trim();
  return difference;
}

BigInt operator*(const BigInt& a, const BigInt& b) {
  BigInt product;
  product.negative_ = a.negative_ != b.negative_;
  product.words_.resize(a.words_.size() + b.words_.size());
  for (size_t i = 0; i < a.words_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.words_.size() || carry != 0; ++j) {
      carry += product.words_[i + j] + (j < b.words_.size() ? uint64_t{a.words_[i]} * b.words_[j] : 0);
      product.words_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  product.trim();
  return product;
}

BigInt BigInt::operator<<(size_t bits) const {
  BigInt result;
  result.negative_ = negative_;
  result.words_.assign(bits / 32, 0);
  uint64_t carry = 0;
  for (uint32_t word : words_) {
    carry |= uint64_t{word} << (bits % 32);
    result.words_.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  result.words_.push_back(static_cast<uint32_t>(carry));
  result.trim();
  return result;
}

void BigInt::divide(const BigInt& a, const BigInt& b, BigInt& quotient, BigInt& remainder) {
  quotient = BigInt();
  remainder = BigInt();
  BigInt divisor = b.magnitude();
  if (divisor.words_.size() == 1) {
    quotient.words_.resize(a.words_.size());
    uint64_t rest = 0;
    for (size_t i = a.words_.size(); i-- > 0;) {
      rest = rest << 32 | a.words_[i];
      quotient.words_[i] = static_cast<uint32_t>(rest / divisor.words_[0]);
      rest %= divisor.words_[0];
    }
    if (rest != 0) remainder.words_.push_back(static_cast<uint32_t>(rest));
  } else {
    // Bit by bit: literals are short.
    quotient.words_.resize(a.words_.size());
    for (size_t bit = a.bit_length(); bit-- > 0;) {
      remainder = remainder << 1;
      if (a.words_[bit / 32] >> (bit % 32) & 1) remainder = remainder + BigInt(1);
      if (compare_magnitude(remainder, divisor) >= 0) {
        remainder = remainder - divisor;
        quotient.words_[bit / 32] |= uint32_t{1} << (bit % 32);
      }
    }
  }
  quotient.negative_ = a.negative_ != b.negative_;
  remainder.negative_ = a.negative_;
  quotient.trim();
  remainder.trim();
}

BigInt BigInt::gcd(BigInt a, BigInt b) {
  a.negative_ = b.negative_ = false;
  while (!b.is_zero()) {
    BigInt quotient, remainder;
    divide(a, b, quotient, remainder);
    a = std::move(b);
    b = std::move(remainder);
  }
  return a;
}

// ---- Rational

Rational::Rational(BigInt numerator, BigInt denominator) {
  if (denominator.is_negative()) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (denominator != BigInt(1)) {
    BigInt common = BigInt::gcd(numerator, denominator), remainder;
    BigInt::divide(BigInt(numerator), common, numerator, remainder);
    BigInt::divide(BigInt(denominator), common, denominator, remainder);
  }
  const std::optional<int64_t> n = numerator.to_int64(), d = denominator.to_int64();
  if (n && d) {
    numerator_ = *n;
    denominator_ = *d;
  } else {
    large_ = std::make_shared<const Large>(Large{std::move(numerator), std::move(denominator)});
  }
}

Rational Rational::small(int64_t numerator, int64_t denominator) {
  Rational result(numerator);
  result.denominator_ = denominator;
  if (denominator != 1) {
    const int64_t common = std::gcd(numerator, denominator);
    result.numerator_ /= common;
    result.denominator_ /= common;
  }
  return result;
}

namespace {
BigInt power_of_ten(size_t exponent) {
  BigInt result(1), base(10);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}
}  // namespace

std::optional<Rational> Rational::parse(std::string_view text) {
  constexpr int64_t kMaxExponent = 5000;
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  BigInt digits;
  int64_t exponent = 0, count = 0, few = 0;  // `few`: the digits, where they fit
  constexpr int64_t kFew = 18;
  size_t i = 0;
  bool point = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (text[i] < '0' || text[i] > '9' || ++count > kMaxExponent) return std::nullopt;
    if (count == kFew + 1) digits = BigInt(few);
    if (count <= kFew)
      few = few * 10 + (text[i] - '0');
    else
      digits = digits * BigInt(10) + BigInt(text[i] - '0');
    if (point) --exponent;
  }
  if (count == 0) return std::nullopt;
  if (i < text.size()) {
    ++i;
    bool minus = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (i == text.size()) return std::nullopt;
    int64_t written = 0;
    for (; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      written = std::min(written * 10 + (text[i] - '0'), 2 * kMaxExponent);
    }
    exponent += minus ? -written : written;
  }
  if (exponent > kMaxExponent || exponent < -kMaxExponent) return std::nullopt;
  if (count <= kFew) {
    if (exponent <= 0 && exponent >= -kFew) {
      int64_t scale = 1;
      for (int64_t k = 0; k < -exponent; ++k) scale *= 10;
      const Rational value = small(few, scale);
      return negative ? -value : value;
    }
    digits = BigInt(few);
  }
  BigInt scale = power_of_ten(static_cast<size_t>(exponent < 0 ? -exponent : exponent));
  const Rational value = exponent < 0 ? Rational(digits, scale) : Rational(digits * scale, BigInt(1));
  return negative ? -value : value;
}

Rational Rational::of_double(double value) {
  int exponent = 0;
  auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  return exponent >= 0 ? Rational(BigInt(mantissa) << static_cast<size_t>(exponent), BigInt(1))
                       : Rational(BigInt(mantissa), BigInt(1) << static_cast<size_t>(-exponent));
}

std::optional<int64_t> Rational::to_int64() const {
  if (!is_integer()) return std::nullopt;
  return large_ ? large_->numerator.to_int64() : numerator_;
}

Rational Rational::floor() const {
  BigInt quotient, remainder;
  if (is_integer()) return *this + Rational(0);
  BigInt::divide(numerator(), denominator(), quotient, remainder);
  if (remainder.is_negative()) quotient = quotient - BigInt(1);
  return {quotient, BigInt(1)};
}

Rational Rational::round_half_even() const {
  Rational below = floor();
  Rational twice = (*this - below) * Rational(2);
  bool up = twice > Rational(1) || (twice == Rational(1) && below.numerator().is_odd());
  return up ? below + Rational(1) : below;
}

std::optional<double> Rational::to_float(Elem elem) const {
  struct Format {
    int precision, least, most;  // bits; exponents of the smallest and largest normal number
  };
  Format format = elem == Elem::F16    ? Format{11, -14, 15}
                  : elem == Elem::BF16 ? Format{8, -126, 127}
                  : elem == Elem::F32  ? Format{24, -126, 127}
                                       : Format{53, -1022, 1023};
  if (is_zero()) return minus_zero_ ? -0.0 : 0.0;
  // Both parts are exact, so that the division rounds once.
  const auto exact = [&](int bits) {
    const int64_t most = int64_t{1} << bits;
    return !large_ && numerator_ >= -most && numerator_ <= most && denominator_ <= most;
  };
  if (elem == Elem::F64 && exact(53)) return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  if (elem == Elem::F32 && exact(24))
    return static_cast<double>(static_cast<float>(numerator_) / static_cast<float>(denominator_));
  const BigInt n = numerator().magnitude(), below = denominator();
  auto shift_left = [](const BigInt& x, int64_t bits) { return bits > 0 ? x << static_cast<size_t>(bits) : x; };
  // e = floor(log2(|x|))
  int64_t e = static_cast<int64_t>(n.bit_length()) - static_cast<int64_t>(below.bit_length());
  if (shift_left(n, -e) < shift_left(below, e)) --e;
  int64_t unit = std::max<int64_t>(e, format.least) - (format.precision - 1);  // exponent of the last bit
  BigInt quotient, remainder, divisor = shift_left(below, unit);
  BigInt::divide(shift_left(n, -unit), divisor, quotient, remainder);
  auto twice = (remainder << 1) <=> divisor;
  if (twice > 0 || (twice == 0 && quotient.is_odd())) quotient = quotient + BigInt(1);
  double value = std::ldexp(static_cast<double>(quotient.to_int64().value()), static_cast<int>(unit));
  if (value > std::ldexp(2.0 - std::ldexp(1.0, 1 - format.precision), format.most)) return std::nullopt;
  return is_negative() ? -value : value;
}

std::string Rational::to_string() const {
  if (is_integer()) return large_ ? large_->numerator.to_string() : std::to_string(numerator_);
  for (size_t digits = 1; digits <= 20; ++digits) {
    Rational scaled = *this * Rational(power_of_ten(digits), BigInt(1));
    if (!scaled.is_integer()) continue;
    std::string text = scaled.numerator().magnitude().to_string();
    if (text.size() <= digits) text.insert(0, digits + 1 - text.size(), '0');
    text.insert(text.size() - digits, ".");
    return (is_negative() ? "-" : "") + text;
  }
  return numerator().to_string() + "/" + denominator().to_string();
}

Rational Rational::operator-() const {
  Rational result = is_short() ? Rational(-numerator_) : Rational(-numerator(), denominator());
  if (is_short()) result.denominator_ = denominator_;
  result.minus_zero_ = is_zero() && !minus_zero_;
  return result;
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.is_short() && b.is_short())
    return Rational::small(a.numerator_ * b.denominator_ + b.numerator_ * a.denominator_,
                           a.denominator_ * b.denominator_);
  const BigInt over = a.denominator(), under = b.denominator();
  return {a.numerator() * under + b.numerator() * over, over * under};
}
Rational operator*(const Rational& a, const Rational& b) {
  if (a.is_short() && b.is_short())
    return Rational::small(a.numerator_ * b.numerator_, a.denominator_ * b.denominator_);
  return {a.numerator() * b.numerator(), a.denominator() * b.denominator()};
}
Rational operator/(const Rational& a, const Rational& b) {
  return {a.numerator() * b.denominator(), a.denominator() * b.numerator()};
}
std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  if (a.is_short() && b.is_short()) return a.numerator_ * b.denominator_ <=> b.numerator_ * a.denominator_;
  return a.numerator() * b.denominator() <=> b.numerator() * a.denominator();
}

}  // namespace zephon
