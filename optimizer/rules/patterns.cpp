#include "optimizer/rules/patterns.h"

#include "graph/expr_set.h"

namespace zephon::rules {

constexpr double kCostlyNs = 100;  // cheaper work is done twice rather than stored

bool shares_with_filter(Rewriter& rewriter, NodeId assignment) {
  const Graph& graph = rewriter.graph();
  NodeId above = graph.node(assignment).inputs[0];
  if (!is_filter(graph.node(above))) return false;
  ExprSet filtered;
  for (; is_filter(graph.node(above)); above = graph.node(above).inputs[0])
    filtered.insert_all(graph.topological(graph.node(above).predicate));
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
