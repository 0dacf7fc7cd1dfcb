#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_filter(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m);
}

void apply(Rewriter& rewriter, const Match& m) { rewriter.remove(m.outer); }

constexpr Guard kGuards[] = {
    {"the predicate is the constant true",
     [](Rewriter& rewriter, const Match& m) {
       const auto& constant = rewriter.graph().expr(rules::outer_of(rewriter, m).predicate).constant;
       return constant && !constant->any_failed() && constant->at(0).i != 0;
     }},
};

}  // namespace

ZEPHON_RULE_DEF(DropTrueFilters) = {
    .name = "drop_true_filters",
    .summary = "A filter that keeps everything goes.",
    .law = "filter true = id",
    .ends = "one filter fewer",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .examples = R"explain(
fires
range(100) | filter 1 < 2

keeps
range(100) | filter index < 2
----
the predicate is the constant true
)explain",
};

}  // namespace zephon
