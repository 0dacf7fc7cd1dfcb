#include <algorithm>

#include "optimizer/cost/cost.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_filter(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m) &&
         is_filter(rules::inner_of(rewriter, m));
}

/// Nanoseconds spent for each row dropped.
double price(Rewriter& rewriter, const Node& filter) {
  const double dropped = 1 - kept_share(rewriter.graph(), filter, rewriter.machine());
  return (rewriter.tree_ns(filter.predicate) + 1) / std::max(dropped, 1e-3);
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    {"the lower filter drops samples at a lower price",
     [](Rewriter& rewriter, const Match& m) {
       return price(rewriter, rules::outer_of(rewriter, m)) < price(rewriter, rules::inner_of(rewriter, m));
     },
     true},
};

}  // namespace

ZEPHON_RULE_DEF(OrderFilters) = {
    .name = "order_filters",
    .summary = "Of two filters in a row, the one that drops a sample for less work runs first.",
    .law = "filter p . filter q = filter q . filter p, since false beats failure in whatever order",
    .ends = "each exchange takes away one pair in the wrong order of price",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_pair,
    .depth = 2,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | filter bytes.decode_image().mean() > 10 | filter path.name == "a.jpg"

keeps
range(100) | filter index == 3 | filter index * index % 7 != 0
----
the lower filter drops samples at a lower price

keeps
stream a = range(100) | filter index * index % 7 != 0
stream b = a | filter index == 3
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
