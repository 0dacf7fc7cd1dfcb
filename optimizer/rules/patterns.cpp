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

namespace {
/// What is costly of the filters right above the assignments that `step` is the last of; mostly nothing is.
ExprSet costly_filter_work(Rewriter& rewriter, NodeId step) {
  const Graph& graph = rewriter.graph();
  NodeId above = step;
  while (is_one_to_one(graph.node(above))) above = graph.node(above).inputs[0];
  ExprSet work;
  for (; is_filter(graph.node(above)); above = graph.node(above).inputs[0])
    for (ExprId expr : graph.topological(graph.node(above).predicate))
      if (rewriter.own_ns(expr) >= kCostlyNs) work.insert(expr);
  return work;
}
}  // namespace

bool follows_costly_filter(Rewriter& rewriter, NodeId step) { return !costly_filter_work(rewriter, step).empty(); }

bool shares_with_filter(Rewriter& rewriter, NodeId assignment) {
  Graph& graph = rewriter.graph();
  const ExprSet filtered = costly_filter_work(rewriter, assignment);
  if (filtered.empty()) return false;
  std::vector<NodeId> between;  // assignments below the filters, lowest first
  for (NodeId above = graph.node(assignment).inputs[0]; is_one_to_one(graph.node(above));
       above = graph.node(above).inputs[0])
    between.push_back(above);
  Environment env;
  for (auto it = between.rbegin(); it != between.rend(); ++it)
    apply_assigns(graph, rewriter.reads(), std::vector<Assign>(graph.node(*it).assigns), env);
  for (const Assign& a : std::vector<Assign>(graph.node(assignment).assigns)) {
    const ExprId whole = resolve(graph, rewriter.reads(), a.expr, env);
    if (std::ranges::any_of(graph.topological(whole), [&](ExprId expr) { return filtered.contains(expr); }))
      return true;
    env[a.field] = whole;
  }
  return false;
}

std::vector<NodeId> row_above(Rewriter& rewriter, const Match& match) {
  const Graph& graph = rewriter.graph();
  std::vector<NodeId> row = {match.inner};
  while (row.size() < rewriter.reach()) {
    const NodeId above = graph.node(row.back()).inputs[0];
    if (!is_one_to_one(graph.node(above)) || rewriter.users(above) != 1) break;
    row.push_back(above);
  }
  return row;
}

void pass_row(Rewriter& rewriter, const Match& match) {
  for (NodeId step : match.row) rewriter.exchange(match.outer, step);
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

}  // namespace zephon::rules
