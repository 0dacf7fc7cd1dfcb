#include <algorithm>

#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  if (!is_filter(graph.node(outer)) || !rules::reads_one(rewriter, outer, m) ||
      !is_one_to_one(rules::inner_of(rewriter, m)))
    return false;
  m.row = rules::row_above(rewriter, m);
  FieldSet fields = rewriter.reads().of(graph.node(outer).predicate);
  for (NodeId step : m.row) {
    const std::vector<Assign>& assigns = graph.node(step).assigns;
    for (auto it = assigns.rbegin(); it != assigns.rend(); ++it)
      if (fields.erase(it->field)) {
        fields.insert_all(rewriter.reads().of(it->expr));
        m.taken.emplace_back(step, *it);
      }
  }
  return true;
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const std::vector<Assign> taken = m.taken_of_row();
  Environment env;
  apply_assigns(graph, rewriter.reads(), {taken.rbegin(), taken.rend()}, env);
  graph.node(m.outer).predicate = resolve(graph, rewriter.reads(), graph.node(m.outer).predicate, env);
  rules::pass_row(rewriter, m);
}

constexpr Guard kGuards[] = {rules::kOneReader};

}  // namespace

// No guard on failure: it is lazy, and false beats failure. None on draws: a copy keeps its draw id, so it draws the
// same. None on the cost of what is copied: both stand in one region, where equal expressions are one.
ZEPHON_RULE_DEF(PushFilterBelowAssign) = {
    .name = "push_filter_below_assign",
    .summary =
        "A filter runs before an assignment, with the assigned fields replaced by their expressions: fewer samples "
        "are assigned to, and the filter meets other filters and the source.",
    .law = "filter p . assign f = assign f . filter (p . f)",
    .ends = "one filter moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 2,
    .examples = R"explain(
fires
range(100) | x = index * 3 | filter x % 7 != 0

keeps  # the other reader of the assignment would lose samples
stream a = range(100) | x = index * 3
stream b = a | filter x % 7 != 0
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
