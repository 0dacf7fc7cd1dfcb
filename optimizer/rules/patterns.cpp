#include "optimizer/rules/patterns.h"

#include <algorithm>
#include <set>

#include "graph/expr_set.h"
#include "optimizer/analysis/expressions.h"

namespace zephon::rules {

constexpr double kCostlyNs = 100;  // cheaper work is done twice rather than stored

bool draws(const Graph& graph, const Node& step) {
  return (step.predicate.valid() && has_draw(graph, step.predicate)) ||
         std::ranges::any_of(step.assigns, [&](const Assign& a) { return has_draw(graph, a.expr); });
}

bool has_fixed_shapes(Rewriter& rewriter, const Node& outer, const Node& batch) {
  for (const Assign& a : outer.assigns) {
    if (!rewriter.graph().expr(a.expr).type.has_static_shape()) return false;
    for (const std::string& name : rewriter.reads().of(a.expr))
      if (const Field* field = batch.type.find(name); field && !field->type.has_static_shape()) return false;
  }
  return true;
}

bool shares_with_filter(Rewriter& rewriter, NodeId assignment) {
  Graph& graph = rewriter.graph();
  std::vector<NodeId> between;  // assignments below the filters, lowest first
  NodeId above = graph.node(assignment).inputs[0];
  for (; is_one_to_one(graph.node(above)); above = graph.node(above).inputs[0]) between.push_back(above);
  if (!is_filter(graph.node(above))) return false;
  ExprSet filtered;
  for (; is_filter(graph.node(above)); above = graph.node(above).inputs[0])
    filtered.insert_all(graph.topological(graph.node(above).predicate));
  Environment env;
  for (auto it = between.rbegin(); it != between.rend(); ++it)
    apply_assigns(graph, rewriter.reads(), std::vector<Assign>(graph.node(*it).assigns), env);
  for (const Assign& a : std::vector<Assign>(graph.node(assignment).assigns)) {
    const ExprId whole = resolve(graph, rewriter.reads(), a.expr, env);
    for (ExprId expr : graph.topological(whole))
      if (filtered.contains(expr) && rewriter.own_ns(expr) >= kCostlyNs) return true;
    env[a.field] = whole;
  }
  return false;
}

bool fails_first(Rewriter& rewriter, NodeId filter) {
  const Graph& graph = rewriter.graph();
  // What it reads may have failed where it was assigned.
  auto may_fail = [&](const Node& node) {
    return can_fail(graph, node.predicate) || !rewriter.reads().of(node.predicate).empty();
  };
  if (!is_filter(graph.node(filter)) || !may_fail(graph.node(filter))) return true;
  std::set<NodeId> region = {filter};
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    if (node.op->algebra.counts_arrivals ||
        std::ranges::none_of(node.inputs, [&](NodeId input) { return region.contains(input); }))
      continue;
    if (is_filter(node) && is_written_before(node, graph.node(filter)) && may_fail(node)) return false;
    region.insert(id);
  }
  return true;
}

void exchange_with_same(Rewriter& rewriter, const Match& match) {
  const FieldList fields = outer_of(rewriter, match).type.fields;
  rewriter.exchange(match.outer, match.inner);
  rewriter.graph().node(match.outer).type.fields = fields;
}

Environment values_after(Rewriter& rewriter, const Node& assignment) {
  const std::vector<Assign> assigns = assignment.assigns;
  Environment env;
  apply_assigns(rewriter.graph(), rewriter.reads(), assigns, env);
  return env;
}

}  // namespace zephon::rules
