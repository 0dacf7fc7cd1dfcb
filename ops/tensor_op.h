#pragma once
// What the tensor operators share: failures, ranges, places of results, our number functions on the kernel builder.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_def.h"

namespace zephon {

// Codes of what can go wrong with an element (frontend/diag/kinds.def).
constexpr const char* kBadPicture = "R0420";
constexpr const char* kShapesDiffer = "R0412";
constexpr const char* kOutsideTensor = "R0413";
constexpr const char* kBadArithmetic = "R0421";
constexpr const char* kNotFound = "R0422";
constexpr const char* kBadText = "R0404";
constexpr const char* kTextLimit = "R0423";

/// Least and greatest value of an integer type.
std::pair<int64_t, int64_t> integer_range(Elem elem);

using Shape = std::vector<int64_t>;
inline std::span<const int64_t> shape_of(const TensorRef& ref) { return {ref.shape, static_cast<size_t>(ref.rank)}; }
int64_t count_of(std::span<const int64_t> shape);
/// C-order index of flat element `flat`.
Shape index_at(std::span<const int64_t> shape, int64_t flat);
int64_t flat_at(std::span<const int64_t> shape, std::span<const int64_t> index);
/// Flat element of a tensor of shape `from` that stands at `index` of the shape it is broadcast to.
int64_t broadcast_flat(std::span<const int64_t> from, std::span<const int64_t> index);

/// Gives the result of a native kernel its place: that which the caller set, if the shape agrees (else false), or
/// memory of the chunk.
bool place_output(NativeCall& call, std::span<const int64_t> shape);
/// NaNs are canonical: of all bit patterns that mean NaN in `count` elements of a float type, one is left. Does nothing for other types.
void make_nans_canonical(Elem elem, void* data, int64_t count);
/// A string of the chunk's own, for results.
StringRef store_string(NativeCall& call, std::string_view text);
inline std::string_view text_of(const TensorRef& ref, int64_t flat = 0) {
  return static_cast<const StringRef*>(ref.data)[flat].view();
}

/// A value whose argument failed: fails as a whole.
inline Value forward(const Value& argument) { return Value::failed(*argument.failure()); }

/// Message of elements of a crop that lie outside of a picture of `height` x `width`.
std::string box_leaves(const Value& box, int64_t height, int64_t width);

/// Result dims of an operator on the shape of its first argument (`infer`).
inline std::vector<Dim>& result_shape(InferCall& call) { return call.result.shape; }

// ---- the set of numbers of graph/math_functions.h over a KernelBuilder --------------------------------------------

class KernelNumbers {
 public:
  struct F {
    KernelBuilder* b = nullptr;
    KVal v;
    friend F operator+(F x, F y) { return {x.b, x.b->add(x.v, y.v)}; }
    friend F operator-(F x, F y) { return {x.b, x.b->sub(x.v, y.v)}; }
    friend F operator*(F x, F y) { return {x.b, x.b->mul(x.v, y.v)}; }
    friend F operator/(F x, F y) { return {x.b, x.b->div(x.v, y.v)}; }
    friend F operator-(F x) {
      KVal sign = x.b->constant(Scalar::of_int(Elem::I64, std::numeric_limits<int64_t>::min()));
      return {x.b, x.b->bitcast(Elem::F64, x.b->bit_xor(x.b->bitcast(Elem::I64, x.v), sign))};
    }
  };
  struct I {
    KernelBuilder* b = nullptr;
    KVal v;
    friend I operator+(I x, I y) { return {x.b, x.b->add(x.v, y.v)}; }
    friend I operator-(I x, I y) { return {x.b, x.b->sub(x.v, y.v)}; }
    friend I operator*(I x, I y) { return {x.b, x.b->mul(x.v, y.v)}; }
    friend I operator&(I x, I y) { return {x.b, x.b->bit_and(x.v, y.v)}; }
    friend I operator|(I x, I y) { return {x.b, x.b->bit_or(x.v, y.v)}; }
    friend I operator^(I x, I y) { return {x.b, x.b->bit_xor(x.v, y.v)}; }
  };
  struct C {
    KernelBuilder* b = nullptr;
    KVal v;
    friend C operator&(C x, C y) { return {x.b, x.b->bit_and(x.v, y.v)}; }
    friend C operator|(C x, C y) { return {x.b, x.b->bit_or(x.v, y.v)}; }
    friend C operator!(C x) { return {x.b, x.b->bit_xor(x.v, x.b->constant(Scalar::of_bool(true)))}; }
  };

  explicit KernelNumbers(KernelBuilder& b) : b_(&b) {}
  F wrap(KVal v) const { return {b_, v}; }
  F real(double x) const { return {b_, b_->constant(Scalar::of_float(Elem::F64, x))}; }
  I word(uint64_t x) const { return {b_, b_->constant(Scalar::of_int(Elem::I64, static_cast<int64_t>(x)))}; }
  C less(F x, F y) const { return {b_, b_->compare(Compare::Lt, x.v, y.v)}; }
  C less_equal(F x, F y) const { return {b_, b_->compare(Compare::Le, x.v, y.v)}; }
  C equal(F x, F y) const { return {b_, b_->compare(Compare::Eq, x.v, y.v)}; }
  C same(I x, I y) const { return {b_, b_->compare(Compare::Eq, x.v, y.v)}; }
  F select(C c, F x, F y) const { return {b_, b_->select(c.v, x.v, y.v)}; }
  I select(C c, I x, I y) const { return {b_, b_->select(c.v, x.v, y.v)}; }
  I bits(F x) const { return {b_, b_->bitcast(Elem::I64, x.v)}; }
  F from_bits(I x) const { return {b_, b_->bitcast(Elem::F64, x.v)}; }
  I shl(I x, unsigned n) const { return shl(x, word(n)); }
  I shr(I x, unsigned n) const { return shr(x, word(n)); }
  I shl(I x, I n) const { return {b_, b_->shift_left(x.v, n.v)}; }
  I shr(I x, I n) const { return {b_, b_->shift_right_logical(x.v, n.v)}; }
  F sqrt(F x) const { return {b_, b_->sqrt(x.v)}; }

 private:
  KernelBuilder* b_;
};

// Constants in the type of a kernel value.
inline KVal int_like(KernelBuilder& b, KVal like, int64_t v) { return b.constant(Scalar::of_int(like.elem, v)); }
inline KVal i64_of(KernelBuilder& b, int64_t v) { return b.constant(Scalar::of_int(Elem::I64, v)); }

}  // namespace zephon
