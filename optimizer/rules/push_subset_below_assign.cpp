#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Node& node = rewriter.graph().node(outer);
  if (!(moves_by_arrival(node) && node.op->cls == OpClass::Subset) || !rules::reads_one(rewriter, outer, m) ||
      !is_one_to_one(rules::inner_of(rewriter, m)))
    return false;
  m.row = rules::row_above(rewriter, m);
  if (rules::follows_costly_filter(rewriter, m.row.back())) m.row = {m.inner};
  return true;
}

constexpr Guard kGuards[] = {rules::kOneReader, rules::kSharesNothing};

}  // namespace

// Not past on_error: it decides by what is assigned, and so changes who arrives. Not past a filter, for the same
// reason.
ZEPHON_RULE_DEF(PushSubsetBelowAssign) = {
    .name = "push_subset_below_assign",
    .summary =
        "take, skip and shard run before an assignment: what they leave out is never computed, and they meet the "
        "source, into whose index they fold.",
    .law = "take n . assign f = assign f . take n",
    .ends = "one counting step moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::pass_row,
    .depth = 2,
    .examples = R"explain(
fires
range(100) | x = index * 3 | take(10)

keeps  # the other reader of the assignment would lose samples
stream a = range(100) | x = index * 3
stream b = a | take(10)
concatenate(a, b)
----
nothing else reads the step above

keeps  # the filter has computed it already
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | filter image.mean() > 10 | take(1)
----
the assignment computes nothing costly that a filter above computes too
)explain",
};

}  // namespace zephon
