#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

constexpr double kFilterNs = 10;  // to drop rows from a chunk: what costs less is computed for all of them in one loop

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(outer);
  return is_filter(node) && graph.expr(node.predicate).op->conjunction && rules::reads_one(rewriter, outer, m);
}

/// What must be true, in the order in which it is written.
std::vector<ExprId> conjuncts(const Graph& graph, ExprId predicate) {
  std::vector<ExprId> parts, stack = {predicate};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    const Expr& e = graph.expr(id);
    if (e.op->conjunction)
      stack.insert(stack.end(), e.args.rbegin(), e.args.rend());
    else if (std::ranges::find(parts, id) == parts.end())
      parts.push_back(id);
  }
  return parts;
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Node whole = graph.node(m.outer);
  const std::vector<ExprId> parts = conjuncts(graph, whole.predicate);
  for (size_t i = 0; i < parts.size(); ++i) {
    Node part = whole;
    part.predicate = parts[i];
    part.part.push_back(static_cast<int32_t>(i));
    if (i + 1 < parts.size())
      rewriter.insert_above(m.outer, 0, std::move(part));
    else
      graph.node(m.outer).predicate = parts[i], graph.node(m.outer).part = std::move(part.part);
  }
}

constexpr Guard kGuards[] = {
    // Or else one of them could go where the other cannot.
    {"one of the conditions costs more than a filter of its own",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const std::vector<ExprId> parts = conjuncts(graph, rules::outer_of(rewriter, m).predicate);
       const bool draws = has_draw(graph, parts.front());
       return std::ranges::any_of(
           parts, [&](ExprId part) { return rewriter.tree_ns(part) >= kFilterNs || has_draw(graph, part) != draws; });
     },
     true},
};

}  // namespace

// Exact in both directions: in `and` as in a region of filters false beats failure, and of failures the first as
// written is reported. What the parts share is computed once, for they stand in one region.
ZEPHON_RULE_DEF(SplitConjunctions) = {
    .name = "split_conjunctions",
    .summary =
        "A filter by a conjunction becomes one filter for each condition, which then move and are ordered one by one.",
    .law = "filter (p and q) = filter q . filter p",
    .ends = "one conjunction fewer in predicates",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | filter bytes.decode_image().mean() > 10 and path.name != "a.jpg"

fires  # where the first condition is false, the second may fail
range(10) | filter index % 2 == 0 and ([1, 2, 3] + index).sum() > 12 // (index - 3)

keeps  # one loop over numbers is cheaper than two
range(100) | filter index > 5 and index % 7 != 0
----
one of the conditions costs more than a filter of its own
)explain",
};

}  // namespace zephon
