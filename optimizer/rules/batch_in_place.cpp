#include "optimizer/engine/rule.h"

namespace zephon {

namespace {
constexpr Guard kGuards[] = {{"a column is made of tensors", nullptr},
                             {"it costs less to pass on what the filters need, too, than to copy the batch", nullptr}};
}  // namespace

// Carried out by plan/planner.cpp: rows are regrouped to the size of the batch before the stage that makes the columns,
// so that what its kernels write is the batch. Filters are split off, since they would leave gaps.
ZEPHON_RULE_DEF(BatchInPlace) = {
    .name = "batch_in_place",
    .summary =
        "The stage above a batch works on chunks of exactly the batch's size, and its "
        "columns become the batch without a "
        "copy; filters of its region run in a stage of their own before, which passes on what they have computed.",
    .law = "batch n . map f = map f . batch n, with f writing into the batch's memory",
    .ends = "each batch is placed once, while the plan is built",
    .guards = kGuards,
    .examples = R"explain(
fires
range(100) | x = [0, 1, 2] + index | batch(4)

keeps  # columns of small scalars: large chunks, of which a batch is a slice
range(100) | x = index + 1 | batch(4)
----
a column is made of tensors

keeps  # the filter needs all that the batch needs
files("examples/data/photos/*/*.jpg") | take(3) | filter f32(bytes.decode_image()).mean() > 100.0 | image = bytes.decode_image().resize(8, 8) | select image | batch(2)
----
it costs less to pass on what the filters need, too, than to copy the batch
)explain",
};

}  // namespace zephon
