#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_filter(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).op->cls == OpClass::Reorder;
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    // A window chooses among those that it holds: whoever is dropped before it changes every later choice.
    {"the shuffle permutes the whole domain",
     [](Rewriter& rewriter, const Match& m) { return permutes_domain(rules::inner_of(rewriter, m)); }},
};

}  // namespace

ZEPHON_RULE_DEF(PushFilterBelowShuffle) = {
    .name = "push_filter_below_shuffle",
    .summary =
        "A filter runs before a shuffle() of the whole domain, which leaves holes where samples were dropped: so the "
        "filter gets past assignments above the shuffle.",
    .law = "filter p . shuffle = shuffle . filter p",
    .ends = "one filter moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_pair,
    .depth = 2,
    .examples = R"explain(
fires
range(100) | shuffle() | filter index % 7 != 0

keeps  # a window: the samples that leave it depend on those that came
range(100) | shuffle(buffer_size=10) | filter index % 7 != 0
----
the shuffle permutes the whole domain

keeps
stream a = range(100) | shuffle()
stream b = a | filter index % 7 != 0
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
