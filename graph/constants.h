#pragma once
// The value of an operation on constants, by its definition: the same code that the reference interpreter runs.

#include <optional>

#include "graph/graph.h"
#include "graph/value.h"

namespace zephon {

/// None where it fails, or where the operator has no definition that works without a sample.
std::optional<Value> evaluate_constant(const Graph& graph, ExprId expr);
/// An operation of one argument that uses nothing but its shape, which is known.
std::optional<Value> evaluate_on_shape(const Graph& graph, ExprId expr);

}  // namespace zephon
