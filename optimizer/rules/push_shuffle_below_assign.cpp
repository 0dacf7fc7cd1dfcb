#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Node& node = rewriter.graph().node(outer);
  if (!(node.op->cls == OpClass::Reorder) || !rules::reads_one(rewriter, outer, m) ||
      !is_one_to_one(rules::inner_of(rewriter, m)))
    return false;
  m.row = rules::row_above(rewriter, m);
  if (rules::follows_costly_filter(rewriter, m.row.back())) m.row = {m.inner};
  return true;
}

constexpr Guard kGuards[] = {rules::kOneReader, rules::kSharesNothing};

}  // namespace

ZEPHON_RULE_DEF(PushShuffleBelowAssign) = {
    .name = "push_shuffle_below_assign",
    .summary = "A shuffle runs before an assignment: references are held back and not pixels, and it meets the source.",
    .law = "shuffle . assign f = assign f . shuffle",
    .ends = "one shuffle moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::pass_row,
    .depth = 2,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | shuffle(buffer_size=10)

fires
range(100) | x = index * 3 | shuffle()

keeps  # the other reader of the assignment would be shuffled too
stream a = range(100) | x = index * 3
stream b = a | shuffle()
concatenate(a, b)
----
nothing else reads the step above

keeps  # the filter has computed it already
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | filter image.mean() > 10 | shuffle(buffer_size=2)
----
the assignment computes nothing costly that a filter above computes too
)explain",
};

}  // namespace zephon
