#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_filter(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).op->cls == OpClass::Merge && rules::fails_first(rewriter, outer);
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Node filter = graph.node(m.outer);
  const size_t arms = graph.node(m.inner).inputs.size();
  for (size_t i = 0; i < arms; ++i) {
    Node arm = filter;
    arm.type = graph.node(graph.node(m.inner).inputs[i]).type;
    if (arm.type.domain == Domain::Indexed) arm.type.domain = Domain::Holes;
    rewriter.insert_above(m.inner, i, std::move(arm));
  }
  graph.node(m.inner).type.domain = filter.type.domain;
  rewriter.remove(m.outer);
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    // Else who comes next depends on how many have come: of the arms of a mix, or of a pair.
    {"the merge counts no arrivals",
     [](Rewriter& rewriter, const Match& m) { return !rules::inner_of(rewriter, m).op->algebra.counts_arrivals; }},
    // The number of the stream is part of the identity below, and not above.
    rules::kDrawsNothing,
};

}  // namespace

ZEPHON_RULE_DEF(PushFilterBelowMerge) = {
    .name = "push_filter_below_merge",
    .summary =
        "A filter runs in each stream of a concatenation, where it gets past the assignments of the streams and meets "
        "their filters.",
    .law = "filter p . concatenate (a, b) = concatenate (filter p . a, filter p . b)",
    .ends = "one filter moves one step nearer its sources, and a merge has no fewer filters below than before",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
stream a = range(10) | x = index * 3
stream b = range(10, 20) | x = index * index
concatenate(a, b) | filter x % 7 != 0

fires  # through the shuffle
stream a = range(10) | x = index * 3
stream b = range(10, 20) | x = index * index
concatenate(a, b) | shuffle() | filter x % 7 != 0

keeps  # mix chooses by the number of samples that have come out
stream a = range(10)
stream b = range(10, 20)
mix(a=1, b=1) | filter index % 7 != 0
----
the merge counts no arrivals

keeps  # a pair would lose one of its two
stream a = range(10)
stream b = range(10, 20) | x = index | drop index
zip(a, b) | filter x % 7 != 0
----
the merge counts no arrivals

keeps
stream a = range(10)
stream b = range(10, 20)
concatenate(a, b) | filter coin(0.5)
----
it draws nothing

keeps
stream a = range(10)
stream b = range(10, 20)
stream c = concatenate(a, b)
stream d = c | filter index % 7 != 0
concatenate(c, d)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
