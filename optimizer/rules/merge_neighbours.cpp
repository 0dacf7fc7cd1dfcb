#include <optional>

#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

std::optional<MergedStep> merged(Rewriter& rewriter, const Match& m) {
  const Node& outer = rules::outer_of(rewriter, m);
  return outer.op->algebra.merge(outer, rules::inner_of(rewriter, m));
}

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return rewriter.graph().node(outer).op->algebra.merge && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).inputs.size() == 1 && merged(rewriter, m);
}

void apply(Rewriter& rewriter, const Match& m) {
  MergedStep step = *merged(rewriter, m);
  Node& node = rewriter.graph().node(m.outer);
  node.op = step.op;
  node.attrs = std::move(step.attrs);
  rewriter.remove(m.inner);
}

constexpr Guard kGuards[] = {rules::kOneReader};

}  // namespace

// What two steps make together is declared by the operator of the lower one.
ZEPHON_RULE_DEF(MergeNeighbours) = {
    .name = "merge_neighbours",
    .summary =
        "Two steps in a row that one step can do become one: counting steps count once, fields are chosen once, a "
        "hint is given once.",
    .law =
        "take m . take n = take (min m n), skip m . skip n = skip (m + n), shard (m, j) . shard (n, i) = shard (m n, i "
        "+ n j), ...",
    .ends = "one step fewer",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .examples = R"explain(
fires
range(100) | filter index != 3 | take(20) | take(10)

fires
range(100) | filter index != 3 | skip(2) | skip(3)

fires  # each third of each second
range(100) | filter index != 3 | shard(num_shards=2, index=1) | shard(num_shards=3, index=2)

fires  # nothing is left, and nothing is read
range(100) | take(3) | skip(5)

fires
range(100) | x = index | y = x + 1 | drop index | select x, y | drop y

fires
range(100) | cache() | cache() | prefetch(2) | prefetch(3)

keeps
stream a = range(100) | take(20)
stream b = a | take(10)
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
