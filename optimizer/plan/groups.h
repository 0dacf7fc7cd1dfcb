#pragma once
// Partition of expressions into kernels: what is compiled together, what a native kernel does, in which order.

#include <vector>

#include "graph/expr_set.h"
#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

/// Makes the groups that compute `roots` from `ready` (fields, and results of earlier groups; results of these groups
/// are added to it), in an order in which they can run. `also` are expressions wanted later: those that a group of
/// scalars computes on its way become results of it too, and so does a resampling that they need. With `fuse`, pointwise work, views, one resampling and a final
/// reduction share a kernel; without, each operation is its own.
std::vector<KernelGroup> make_groups(const Graph& graph, const std::vector<ExprId>& roots,
                                     const std::vector<ExprId>& also, ExprSet& ready, bool fuse);

/// The expressions of a group: from its roots down to its leaves, arguments first, leaves not included.
std::vector<ExprId> interior(const Graph& graph, const KernelGroup& group);

}  // namespace zephon
