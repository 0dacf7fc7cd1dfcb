#include "optimizer/engine/rule.h"

namespace zephon {

namespace {
constexpr Guard kGuards[] = {{"a neighbour to fuse with", nullptr}};
}  // namespace

// Carried out by plan/groups.cpp. Exact because a kernel computes each element by the same operations in the same
// order, wherever its intermediate values are kept.
ZEPHON_RULE_DEF(FuseKernels) = {
    .name = "fuse_kernels",
    .summary =
        "Pointwise work, views, one resampling and a final reduction share one kernel, and "
        "scalars of a stage one loop over "
        "its rows: intermediate pictures are never written to memory.",
    .law = "map f . map g = map (f . g)",
    .ends = "each expression enters one group, while the plan is built",
    .guards = kGuards,
    .examples = R"explain(
fires
range(100) | x = index + 1 | y = x * 3

keeps  # one operation: nothing to fuse with
range(100) | x = index + 1
----
a neighbour to fuse with
)explain",
};

}  // namespace zephon
