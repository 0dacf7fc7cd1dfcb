#pragma once
// What padded_batch and bucket_by_length do to members of different shapes: each dimension that the type leaves open grows to the
// largest member, or to attr "length" (first dimension), and what is new holds the padding value.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/value.h"

namespace zephon {

/// The padding of a field: the attr that has its name, else attr "padding"; "" for strings that have none of their own.
Scalar padding_of(const Node& node, const std::string& field, Elem elem);
/// Why `node` cannot pad `field`, or "".
std::string padding_problem(const Node& node, const Field& field);

/// The shape that the members of a batch take, given the shapes of those that have not failed.
std::vector<int64_t> padded_shape(const Node& node, std::span<const std::vector<int64_t>> shapes);
/// "" or why a member of shape `own` cannot be padded to `shape` (it is longer than attr "length").
std::string longer_than(const std::string& field, std::span<const int64_t> own, std::span<const int64_t> shape);
/// `value` in the leading corner of a tensor of `shape`, which holds it. Failed elements stay failed.
Value padded(const Value& value, const std::vector<int64_t>& shape, const Scalar& padding);
/// The same in memory. `to` has room for `shape`; `padding` is one element.
void pad_into(const TensorRef& from, std::span<const int64_t> shape, const void* padding, void* to);

}  // namespace zephon
