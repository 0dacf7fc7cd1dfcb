#include "ops/tensor_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace zephon {

std::pair<int64_t, int64_t> integer_range(Elem elem) {
  switch (elem) {
    case Elem::Bool:
      return {0, 1};
    case Elem::U8:
      return {0, UINT8_MAX};
    case Elem::U16:
      return {0, UINT16_MAX};
    case Elem::I8:
      return {INT8_MIN, INT8_MAX};
    case Elem::I16:
      return {INT16_MIN, INT16_MAX};
    case Elem::I32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

int64_t count_of(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Shape index_at(std::span<const int64_t> shape, int64_t flat) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

int64_t flat_at(std::span<const int64_t> shape, std::span<const int64_t> index) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

int64_t broadcast_flat(std::span<const int64_t> from, std::span<const int64_t> index) {
  size_t shift = index.size() - from.size();
  int64_t flat = 0;
  for (size_t i = 0; i < from.size(); ++i) flat = flat * from[i] + (from[i] == 1 ? 0 : index[i + shift]);
  return flat;
}

namespace {

// `U` is an unsigned integer of the float's size, `infinity` the bits of infinity, `nan` those of the canonical NaN.
template <class U>
void canonical(void* data, int64_t count, U infinity, U nan) {
  auto* at = static_cast<char*>(data);
  const U magnitude = static_cast<U>(~(U{1} << (8 * sizeof(U) - 1)));
  for (int64_t i = 0; i < count; ++i, at += sizeof(U)) {
    U bits;
    std::memcpy(&bits, at, sizeof(U));
    if ((bits & magnitude) > infinity) std::memcpy(at, &nan, sizeof(U));
  }
}

}  // namespace

void make_nans_canonical(Elem elem, void* data, int64_t count) {
  if (elem == Elem::F16) canonical<uint16_t>(data, count, 0x7c00, 0x7e00);
  if (elem == Elem::BF16) canonical<uint16_t>(data, count, 0x7f80, 0x7fc0);
  if (elem == Elem::F32) canonical<uint32_t>(data, count, 0x7f800000, 0x7fc00000);
  if (elem == Elem::F64) canonical<uint64_t>(data, count, 0x7ff0000000000000, 0x7ff8000000000000);
}

bool place_output(NativeCall& call, std::span<const int64_t> shape) {
  TensorRef& out = *call.output;
  if (out.data != nullptr) return std::ranges::equal(shape_of(out), shape);
  out.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), out.shape);
  out.data = call.alloc(std::max<size_t>(out.byte_size(), 1));
  return true;
}

std::string box_leaves(const Value& box, int64_t height, int64_t width) {
  return fmt::format("a box of {} x {} at ({}, {}) leaves the picture of {} x {}", box.at(2).i, box.at(3).i,
                     box.at(0).i, box.at(1).i, height, width);
}

StringRef store_string(NativeCall& call, std::string_view text) {
  auto* bytes = static_cast<char*>(call.alloc(std::max<size_t>(text.size(), 1)));
  std::memcpy(bytes, text.data(), text.size());
  return {bytes, text.size()};
}

}  // namespace zephon
