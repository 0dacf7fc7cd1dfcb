#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/cost/cost.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

std::vector<ExprId> expressions_of(const Node& node) {
  std::vector<ExprId> roots;
  for (const Assign& a : node.assigns) roots.push_back(a.expr);
  if (node.predicate.valid()) roots.push_back(node.predicate);
  return roots;
}

bool any_expression(Rewriter& rewriter, NodeId id, bool (*has)(const Graph&, ExprId)) {
  const Graph& graph = rewriter.graph();
  return std::ranges::any_of(expressions_of(graph.node(id)), [&](ExprId root) { return has(graph, root); });
}

/// Not what reads files: they may change from epoch to epoch.
bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Node& node = rewriter.graph().node(outer);
  const bool moves = is_one_to_one(node) || node.op->cls == OpClass::Subset || node.op->cls == OpClass::Reorder;
  return moves && rules::reads_one(rewriter, outer, m) && rules::inner_of(rewriter, m).op->algebra.keeps_rows &&
         !any_expression(rewriter, outer, reads_files) && rules::fails_first(rewriter, outer);
}

double work_ns(Rewriter& rewriter, const Node& node) {
  double ns = 0;
  for (ExprId root : expressions_of(node)) ns += rewriter.tree_ns(root);
  return ns;
}

/// What a kept row saves at present: the work of the steps right above the cache.
double saved_ns(Rewriter& rewriter, NodeId cache) {
  const Graph& graph = rewriter.graph();
  double ns = 0;
  for (NodeId at = graph.node(cache).inputs[0]; is_one_to_one(graph.node(at)) || is_filter(graph.node(at));
       at = graph.node(at).inputs[0])
    ns += work_ns(rewriter, graph.node(at));
  return ns;
}

double row_bytes(Rewriter& rewriter, NodeId id) {
  double bytes = 1;
  for (const Field& f : rewriter.graph().node(id).type.fields)
    if (rewriter.is_live(id, f.name)) bytes += expected_bytes(f.type, rewriter.machine());
  return bytes;
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    // It differs from epoch to epoch, and from pass to pass.
    // It differs from epoch to epoch, and from pass to pass.
    {"it draws nothing",
     [](Rewriter& rewriter, const Match& m) { return !any_expression(rewriter, m.outer, has_draw); }},
    // Where not all rows find room, each byte should save as much work as it did.
    {"a byte that is kept saves as much work as before",
     [](Rewriter& rewriter, const Match& m) {
       const double before = saved_ns(rewriter, m.inner);
       const double after = before + work_ns(rewriter, rules::outer_of(rewriter, m));
       return after * row_bytes(rewriter, m.inner) >= before * row_bytes(rewriter, m.outer);
     },
     true},
};

}  // namespace

// A cache changes nothing in what is delivered, and keeps rows by their identities, in whatever order they come.
ZEPHON_RULE_DEF(PushStepBelowCache) = {
    .name = "push_step_below_cache",
    .summary =
        "What is the same in each epoch runs before a cache, which then keeps its result, and not rows that are "
        "dropped below.",
    .law = "f . cache = cache . f",
    .ends = "one step moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_with_same,
    .depth = 2,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | cache() | image = bytes.decode_image().resize(8, 8) | select image | repeat(2)

fires
range(10) | x = ([1, 2, 3] + index).sum() | cache() | filter x % 7 != 0 | repeat(2)

keeps  # what is drawn differs from pass to pass
range(10) | x = index * 2 | cache() | y = x + randint(0, 9) | repeat(2)
----
it draws nothing

keeps  # a whole list for a sum that costs nothing
range(10) | x = ([0, 1, 2, 3, 4, 5, 6, 7] + index).sum() | cache() | y = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] + index | repeat(2)
----
a byte that is kept saves as much work as before

keeps
stream a = range(10) | cache()
stream b = a | filter index > 3
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
