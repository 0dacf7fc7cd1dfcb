#pragma once
// The expressions of a kernel group under local numbers, and the text that names the kernel: equal text, equal code.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

/// Expressions from the leaves to the roots, arguments before users, numbered in the order in which the roots reach
/// them.
struct GroupExprs {
  std::vector<ExprId> order;
  std::map<ExprId, int32_t> local;
  std::map<ExprId, int32_t> leaf;  ///< index into KernelGroup::leaves
  GroupExprs(const Graph& graph, const KernelGroup& group);
  bool is_leaf(ExprId id) const { return leaf.contains(id); }
};

/// Everything of the group that its code depends on, exactly: kind, operators, attributes, types, constants, ranges of
/// leaves. Names of fields are left out, so that equal work on other fields is the same kernel.
std::string group_key(const Graph& graph, const KernelGroup& group);

}  // namespace zephon
