#include "optimizer/rules/patterns.h"

#include <set>

namespace zephon::rules {

constexpr double kCostlyNs = 100;  // cheaper work is done twice rather than stored

bool shares_with_filter(Rewriter& rewriter, NodeId assignment) {
  const Graph& graph = rewriter.graph();
  std::set<ExprId> filtered;
  for (NodeId id = graph.node(assignment).inputs[0]; is_filter(graph.node(id)); id = graph.node(id).inputs[0])
    for (ExprId expr : graph.topological(graph.node(id).predicate)) filtered.insert(expr);
  if (filtered.empty()) return false;
  for (const Assign& a : graph.node(assignment).assigns)
    for (ExprId expr : graph.topological(a.expr))
      if (filtered.contains(expr) && rewriter.own_ns(expr) >= kCostlyNs) return true;
  return false;
}

Environment values_after(Rewriter& rewriter, const Node& assignment) {
  const std::vector<Assign> assigns = assignment.assigns;
  Environment env;
  apply_assigns(rewriter.graph(), rewriter.reads(), assigns, env);
  return env;
}

}  // namespace zephon::rules
