#include "graph/value.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace zephon {

Value::Value(Elem elem, std::vector<int64_t> shape) : elem_(elem), shape_(std::move(shape)) {
  const auto n = static_cast<size_t>(size());
  if (is_string(elem_)) {
    strings_.resize(n);
  } else {
    data_.resize(n * elem_size(elem_));
  }
}

Value Value::scalar(Scalar s) {
  Value v(s.elem, {});
  v.set(0, s);
  return v;
}

Value Value::failed(Failure failure) {
  Value v;
  v.failure_ = std::make_shared<const Failure>(std::move(failure));
  return v;
}

Value Value::strings(Elem elem, std::vector<std::string> items) {
  Value v;
  v.elem_ = elem;
  v.shape_ = {static_cast<int64_t>(items.size())};
  v.strings_ = std::move(items);
  return v;
}

int64_t Value::size() const {
  int64_t n = 1;
  for (int64_t extent : shape_) n *= extent;
  return n;
}

namespace {
template <class T>
T load(const std::vector<uint8_t>& data, int64_t flat) {
  T v;
  std::memcpy(&v, data.data() + static_cast<size_t>(flat) * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store(std::vector<uint8_t>& data, int64_t flat, T v) {
  std::memcpy(data.data() + static_cast<size_t>(flat) * sizeof(T), &v, sizeof(T));
}
}  // namespace

Scalar Value::at(int64_t flat) const {
  switch (elem_) {
    case Elem::Bool:
      return Scalar::of_bool(load<uint8_t>(data_, flat) != 0);
    case Elem::U8:
      return Scalar::of_int(elem_, load<uint8_t>(data_, flat));
    case Elem::U16:
      return Scalar::of_int(elem_, load<uint16_t>(data_, flat));
    case Elem::I8:
      return Scalar::of_int(elem_, load<int8_t>(data_, flat));
    case Elem::I16:
      return Scalar::of_int(elem_, load<int16_t>(data_, flat));
    case Elem::I32:
      return Scalar::of_int(elem_, load<int32_t>(data_, flat));
    case Elem::I64:
      return Scalar::of_int(elem_, load<int64_t>(data_, flat));
    case Elem::F16:
      return Scalar::of_float(elem_, f16_to_double(load<uint16_t>(data_, flat)));
    case Elem::BF16:
      return Scalar::of_float(elem_, bf16_to_double(load<uint16_t>(data_, flat)));
    case Elem::F32:
      return Scalar::of_float(elem_, static_cast<double>(load<float>(data_, flat)));
    case Elem::F64:
      return Scalar::of_float(elem_, load<double>(data_, flat));
    case Elem::Str:
    case Elem::Bytes:
    case Elem::Path:
      return Scalar::of_string(elem_, strings_[static_cast<size_t>(flat)]);
  }
  return {};
}

void Value::set(int64_t flat, const Scalar& s) {
  switch (elem_) {
    case Elem::Bool:
      return store<uint8_t>(data_, flat, s.i != 0);
    case Elem::U8:
      return store(data_, flat, static_cast<uint8_t>(s.i));
    case Elem::U16:
      return store(data_, flat, static_cast<uint16_t>(s.i));
    case Elem::I8:
      return store(data_, flat, static_cast<int8_t>(s.i));
    case Elem::I16:
      return store(data_, flat, static_cast<int16_t>(s.i));
    case Elem::I32:
      return store(data_, flat, static_cast<int32_t>(s.i));
    case Elem::I64:
      return store(data_, flat, s.i);
    case Elem::F16:
      return store(data_, flat, f16_from_double(s.f));
    case Elem::BF16:
      return store(data_, flat, bf16_from_double(s.f));
    case Elem::F32:
      return store(data_, flat, static_cast<float>(s.f));
    case Elem::F64:
      return store(data_, flat, s.f);
    case Elem::Str:
    case Elem::Bytes:
    case Elem::Path:
      strings_[static_cast<size_t>(flat)] = s.s;
  }
}

void Value::fail_element(int64_t flat, const Failure& failure) {
  if (whole_failed()) return;
  if (!failure_) failure_ = std::make_shared<const Failure>(failure);
  if (bad_.empty()) bad_.resize(static_cast<size_t>(size()));
  bad_[static_cast<size_t>(flat)] = 1;
}

// An element that fails is marked only by fail_element, so a value with marks has at least one failed element.
bool Value::any_failed() const { return failure_ != nullptr; }

bool Value::operator==(const Value& other) const {
  return elem_ == other.elem_ && shape_ == other.shape_ && data_ == other.data_ && strings_ == other.strings_ &&
         bad_ == other.bad_ && (failure_ == nullptr) == (other.failure_ == nullptr);
}

Value to_value(const TensorRef& ref) {
  Value v(ref.elem, std::vector<int64_t>(ref.shape, ref.shape + ref.rank));
  if (is_string(ref.elem)) {
    const auto* items = static_cast<const StringRef*>(ref.data);
    for (size_t i = 0; i < v.mutable_string_items().size(); ++i)
      v.mutable_string_items()[i] = std::string(items[i].view());
  } else if (ref.byte_size() > 0) {
    std::memcpy(v.mutable_bytes().data(), ref.data, ref.byte_size());
  }
  return v;
}

namespace {

// Rounds |v| to a binary format with `mantissa` stored bits, exponents from `min_exponent` (of the smallest normal) and
// largest biased exponent `max_biased` meaning infinity. Exact scaling, then one rounding to nearest even.
uint16_t narrow(double v, int mantissa, int min_exponent, int max_biased) {
  const uint16_t sign = std::signbit(v) ? uint16_t{0x8000} : uint16_t{0};
  const auto infinity = static_cast<uint16_t>(max_biased << mantissa);
  if (std::isnan(v)) return static_cast<uint16_t>(infinity | (1u << (mantissa - 1)));
  const double a = std::fabs(v);
  if (std::isinf(a)) return sign | infinity;
  if (a == 0) return sign;
  int exponent = std::max(std::ilogb(a), min_exponent);
  const double scaled = std::scalbn(a, mantissa - exponent);  // exact: a power of two, no double subnormals here
  double rounded = std::nearbyint(scaled);
  auto bits = static_cast<int64_t>(rounded);
  const int64_t one = int64_t{1} << mantissa;
  // Normal numbers carry an implicit one; adding lets a carry run into the exponent.
  const int64_t encoded = bits >= one ? (static_cast<int64_t>(exponent - min_exponent) << mantissa) + bits : bits;
  if (encoded >= infinity) return sign | infinity;
  return static_cast<uint16_t>(sign | encoded);
}

double widen(uint16_t bits, int mantissa, int min_exponent, int max_biased) {
  const int biased = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  double a;
  if (biased == max_biased) {
    a = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (biased == 0) {
    a = std::scalbn(static_cast<double>(fraction), min_exponent - mantissa);
  } else {
    a = std::scalbn(static_cast<double>(fraction + (1 << mantissa)), min_exponent + biased - 1 - mantissa);
  }
  return bits & 0x8000 ? -a : a;
}

}  // namespace

uint16_t f16_from_double(double v) { return narrow(v, 10, -14, 31); }
double f16_to_double(uint16_t bits) { return widen(bits, 10, -14, 31); }
uint16_t bf16_from_double(double v) { return narrow(v, 7, -126, 255); }
double bf16_to_double(uint16_t bits) { return widen(bits, 7, -126, 255); }

double round_to(Elem elem, double v) {
  switch (elem) {
    case Elem::F16:
      return f16_to_double(f16_from_double(v));
    case Elem::BF16:
      return bf16_to_double(bf16_from_double(v));
    case Elem::F32:
      return static_cast<double>(static_cast<float>(v));
    default:
      return v;
  }
}

}  // namespace zephon
