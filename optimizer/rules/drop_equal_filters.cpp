#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// The filter by the same predicate among those right above.
bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  const Node& lower = graph.node(outer);
  if (!is_filter(lower)) return false;
  for (NodeId at = lower.inputs[0]; is_filter(graph.node(at)); at = graph.node(at).inputs[0]) {
    const Node& upper = graph.node(at);
    if (upper.predicate != lower.predicate || (is_written_before(lower, upper) && rewriter.users(at) > 1)) continue;
    m.inner = at;
    return true;
  }
  return false;
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Node& lower = graph.node(m.outer);
  // Where both fail, it is the first as written that has failed.
  if (Node& upper = graph.node(m.inner); is_written_before(lower, upper)) {
    upper.step = lower.step;
    upper.part = lower.part;
    upper.origin = lower.origin;
  }
  rewriter.remove(m.outer);
}

}  // namespace

// Equal expressions are one expression, draws only if they are the same draw; so are their failures.
ZEPHON_RULE_DEF(DropEqualFilters) = {
    .name = "drop_equal_filters",
    .summary =
        "Of filters in a row by the same predicate, one is left: conditions come twice where functions are used.",
    .law = "filter p . filter q . filter p = filter q . filter p",
    .ends = "one filter fewer",
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
range(100) | filter index % 3 == 0 | x = index | filter index != 12 | filter x % 3 == 0
)explain",
};

}  // namespace zephon
