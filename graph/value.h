#pragma once
// Values: what the reference interpreter computes with, and how values lie in memory for kernels.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/diag/span.h"
#include "graph/types.h"

namespace zephon {

/// Why a value could not be made. `code` is a kind of frontend/diag/kinds.def (R....).
struct Failure {
  std::string code;
  std::string message;  ///< lower case, no full stop; names what was found
  Span where;           ///< the step or expression that failed
};

/// One element. Integers and bool live in `i`, floats in `f` (f16, bf16, f32 already rounded), strings in `s`.
struct Scalar {
  Elem elem = Elem::I64;
  int64_t i = 0;
  double f = 0;
  std::string s;
  static Scalar of_int(Elem e, int64_t v) { return {e, v, 0, {}}; }
  static Scalar of_float(Elem e, double v) { return {e, 0, v, {}}; }
  static Scalar of_bool(bool v) { return {Elem::Bool, v, 0, {}}; }
  static Scalar of_string(Elem e, std::string v) { return {e, 0, 0, std::move(v)}; }
};

/// An owning, immutable-by-convention tensor in C order. Every element is a value or a failure: the law that a
/// step fails only where its value is needed holds per element, so cutting failed elements away heals the tensor.
class Value {
 public:
  Value() = default;
  Value(Elem elem, std::vector<int64_t> shape);  ///< zero-filled (empty strings)
  static Value scalar(Scalar s);
  static Value failed(Failure failure);          ///< every element failed, shape unknown
  static Value strings(Elem elem, std::vector<std::string> items);

  Elem elem() const { return elem_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t size() const;  ///< number of elements
  Scalar at(int64_t flat) const;
  void set(int64_t flat, const Scalar& s);
  /// Raw little-endian elements (numeric and bool only).
  std::span<const uint8_t> bytes() const { return data_; }
  std::span<uint8_t> mutable_bytes() { return data_; }
  const std::vector<std::string>& string_items() const { return strings_; }
  std::vector<std::string>& mutable_string_items() { return strings_; }

  /// Whole-value failure (shape unknown), or null.
  const Failure* failure() const { return failure_.get(); }
  bool element_failed(int64_t flat) const { return failure_ && (bad_.empty() || bad_[static_cast<size_t>(flat)]); }
  /// Marks one element; the first failure marked is the one reported.
  void fail_element(int64_t flat, const Failure& failure);
  /// True where some element failed: such a value cannot be delivered.
  bool any_failed() const;
  bool whole_failed() const { return failure_ && bad_.empty(); }
  bool operator==(const Value& other) const;  ///< bit equality of elem, shape, elements, failure marks

 private:
  Elem elem_ = Elem::I64;
  std::vector<int64_t> shape_;
  std::vector<uint8_t> data_;
  std::vector<std::string> strings_;
  std::vector<uint8_t> bad_;
  std::shared_ptr<const Failure> failure_;
};

/// A string in memory that somebody else owns.
struct StringRef {
  const char* data = nullptr;
  size_t size = 0;
  std::string_view view() const { return {data, size}; }
};
static_assert(sizeof(StringRef) == 16);

/// A tensor in memory that somebody else owns: C order, contiguous. String kinds point to StringRef elements.
struct TensorRef {
  void* data = nullptr;
  int64_t shape[kMaxRank] = {};
  int32_t rank = 0;
  Elem elem = Elem::I64;
  int64_t size() const {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  size_t byte_size() const { return static_cast<size_t>(size()) * elem_size(elem); }
};
/// Copies in or out of owned form.
Value to_value(const TensorRef& ref);

// Number formats. f16 and bf16 are stored as their 16 bits; arithmetic rounds to nearest even after every operation.
uint16_t f16_from_double(double v);
double f16_to_double(uint16_t bits);
uint16_t bf16_from_double(double v);
double bf16_to_double(uint16_t bits);
/// Rounds an exact double to the element type (f32, f16, bf16, f64), once.
double round_to(Elem elem, double v);

}  // namespace zephon
