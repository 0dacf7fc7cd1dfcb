#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// Members of batches in, the same members out, one by one.
bool takes_apart(const Graph& graph, const Node& node) {
  return node.op->cls == OpClass::OneToMany && node.inputs.size() == 1 && graph.node(node.inputs[0]).type.batch &&
         !node.type.batch;
}

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(outer);
  if (!is_one_to_one(node) || !rules::reads_one(rewriter, outer, m)) return false;
  const Node& inner = rules::inner_of(rewriter, m);
  if (!takes_apart(graph, inner)) return false;
  const Node& batch = graph.node(inner.inputs[0]);
  // Else it could not move past the batch too. To stay there would not pay: batch by batch is dearer than many rows at
  // a time.
  return batch.op->cls == OpClass::ManyToOne && rules::has_fixed_shapes(rewriter, node, batch);
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const StreamType batches = graph.node(rules::inner_of(rewriter, m).inputs[0]).type;
  rules::exchange_with_same(rewriter, m);
  StreamType& type = graph.node(m.outer).type;
  type.batch = batches.batch;
  type.domain = batches.domain;
  type.endless = batches.endless;
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    // The number of the member is part of the identity below, and not above.
    rules::kDrawsNothing,
};

}  // namespace

ZEPHON_RULE_DEF(PushAssignBelowUnbatch) = {
    .name = "push_assign_below_unbatch",
    .summary =
        "An assignment below a batch that is taken apart again runs before both, where it joins the assignments there.",
    .law = "assign f . unbatch . batch n = unbatch . assign f . batch n",
    .ends = "one assignment moves past one unbatch",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
range(100) | x = index * 3 | batch(4) | unbatch() | y = x + 1

keeps  # the member's number is part of its identity only below
range(100) | batch(4) | unbatch() | y = randint(0, 9)
----
it draws nothing

keeps
stream a = range(100) | batch(4) | unbatch()
stream b = a | index = index + 1
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
