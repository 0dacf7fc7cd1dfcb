#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_filter(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).op->cls == OpClass::Repeat && !rules::inner_of(rewriter, m).type.endless;
}

constexpr Guard kGuards[] = {rules::kOneReader};

}  // namespace

// Not an endless one: it ends where a pass was empty, and above the filter that would be another pass. With draws too:
// sources put the pass into the identity of what they make, so it is there above the repeat. Filters that stand before
// it in the program pass the repeat as well, so that of failures the first is known.
ZEPHON_RULE_DEF(PushFilterBelowRepeat) = {
    .name = "push_filter_below_repeat",
    .summary =
        "A filter runs before a repeat, within each pass: so it gets past the assignments above, and what it drops "
        "never comes to the repeat.",
    .law = "filter p . repeat n = repeat n . filter p, for a number n",
    .ends = "one filter moves one step nearer its source",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_pair,
    .depth = 2,
    .examples = R"explain(
fires
range(10) | filter index != 2 | take(8) | x = index * 3 | repeat(2) | filter x % 7 != 0

fires
range(10) | repeat(3) | x = randint(0, 9) | filter x > 4

keeps
stream a = range(10) | repeat(2)
stream b = a | filter index % 7 != 0
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
