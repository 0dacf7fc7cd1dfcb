#pragma once
// The cost model: what operators cost, shapes, and a Machine. Deterministic; contains no operator's name.

#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"
#include "optimizer/cost/machine.h"

namespace zephon {

/// Expected number of elements and bytes of one value (strings: what they point to included).
double expected_elements(const Type& type, const Machine& machine);
double expected_bytes(const Type& type, const Machine& machine);
/// Exact bytes, or 0 where only the run knows.
int64_t fixed_bytes(const Type& type);

/// Nanoseconds of CPU per sample of this one operation, its arguments given; without calls and memory traffic.
double own_ns(const Graph& graph, ExprId expr, const Machine& machine);
/// Nanoseconds per sample of everything below the roots, each shared expression once.
double tree_ns(const Graph& graph, const std::vector<ExprId>& roots, const Machine& machine);
/// Nanoseconds per sample of a kernel. Not the sum of its parts: what lies between its operations is never written,
/// only the roots are; what two of them share is computed once; and of what a view of the same kernel cuts away nothing
/// is. `inside` is interior(graph, group).
double kernel_ns(const Graph& graph, const KernelGroup& group, const std::vector<ExprId>& inside,
                 const Machine& machine);
/// The share of rows that a filter keeps: as measured, or as assumed by its form.
double kept_share(const Graph& graph, const Node& filter, const Machine& machine);
/// Rows out for each row in. Expressions below a batch are for each member: so members are the rows there, too.
double row_factor(const Graph& graph, const Node& node, const Machine& machine);
/// Nanoseconds per row that enters the lowest of `depth` nodes, which are `top`, its first input, and so on.
double chain_ns(const Graph& graph, NodeId top, int depth, const Machine& machine);
}  // namespace zephon
