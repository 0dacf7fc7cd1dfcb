#pragma once
// Facts about expressions: leaves, draws, totality, what a kernel can be made of.

#include "graph/graph.h"
#include "graph/op_def.h"

namespace zephon {

bool is_field(const Expr& expr);
bool is_constant(const Expr& expr);
inline bool is_leaf(const Expr& expr) { return expr.op->cls == OpClass::Leaf; }

bool has_draw(const Graph& graph, ExprId root);
/// False only where no sample can fail by it, given good inputs.
bool can_fail(const Graph& graph, ExprId root);
/// No sample can lack it: it cannot fail, and reads no field, which may have failed where it was made.
bool is_always_good(const Graph& graph, ExprId root);
bool reads_files(const Graph& graph, ExprId root);

/// The operator has a scalar kernel for these element types, so that generated code may contain it (strings have none).
bool is_generated(const Graph& graph, const Expr& expr);
/// A generated pointwise operation on scalars of fixed size.
bool is_scalar_work(const Graph& graph, const Expr& expr);

/// Expected part of the rows that a predicate keeps, from its shape alone (comparisons 1/3, equality 1/10, ...).
double selectivity(const Graph& graph, ExprId predicate);

}  // namespace zephon
