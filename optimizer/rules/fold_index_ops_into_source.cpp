#include "optimizer/engine/rule.h"

namespace zephon {

namespace {
constexpr Guard kGuards[] = {{"the input is an indexed domain", nullptr}};
}  // namespace

// Carried out by plan/planner.cpp. A shuffle() of the whole domain is folded with the rule disabled too, since that is
// the only way to run it: so are the renumberings that stand above it.
ZEPHON_RULE_DEF(FoldIndexOpsIntoSource) = {
    .name = "fold_index_ops_into_source",
    .summary =
        "take, skip, shard, repeat and shuffle() of an indexed domain become "
        "arithmetic on the position that the source "
        "reads: rows that are not wanted never exist.",
    .law = "renumber i . source = source . input_index i",
    .ends = "each renumbering is folded once, while the plan is built",
    .guards = kGuards,
    .examples = R"explain(
fires
range(100) | take(10) | x = index + 1

keeps  # below a filter the number of rows is not known
range(100) | filter index % 2 == 0 | take(10)
----
the input is an indexed domain
)explain",
};

}  // namespace zephon
