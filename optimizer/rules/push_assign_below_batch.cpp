#include <algorithm>

#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return is_one_to_one(rewriter.graph().node(outer)) && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).op->cls == OpClass::ManyToOne && rules::inner_of(rewriter, m).type.batch;
}

/// Above the batch too.
bool has_fixed_shapes(Rewriter& rewriter, const Match& m) {
  return rules::has_fixed_shapes(rewriter, rules::outer_of(rewriter, m),
                                 rewriter.graph().node(rules::inner_of(rewriter, m).inputs[0]));
}

/// What the batch chooses its bucket by must come to it, as it is.
bool keeps_key(Rewriter& rewriter, const Match& m) {
  const ExprId key = rules::inner_of(rewriter, m).predicate;
  if (!key.valid()) return true;
  const StreamType& outer = rules::outer_of(rewriter, m).type;
  const std::vector<Assign>& assigns = rules::outer_of(rewriter, m).assigns;
  for (const std::string& name : rewriter.reads().of(key)) {
    const bool replaced = std::ranges::any_of(assigns, [&](const Assign& a) { return a.field == name; });
    if (replaced || !outer.find(name)) return false;
  }
  return true;
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    {"nothing that the batch reads is dropped or replaced", keeps_key},
    {"all that it reads and assigns has a fixed shape", has_fixed_shapes},
};

}  // namespace

// Exact since expressions below batch apply to each member, with the member's identity, and fail only where they are
// delivered.
ZEPHON_RULE_DEF(PushAssignBelowBatch) = {
    .name = "push_assign_below_batch",
    .summary =
        "An assignment to the members of a batch runs before the batch is cut: it joins the assignments there, and its "
        "kernel writes straight into the batch.",
    .law = "assign f . batch n = batch n . assign f",
    .ends = "one assignment moves past one batch",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_pair,
    .depth = 0,
    .examples = R"explain(
fires
range(100) | batch(4) | x = index * 3

fires  # the batch then has an `x` of the other type, which nobody else reads
range(100) | x = index * 3 | batch(4) | x = x > 7

fires  # the key by which buckets are chosen stays above the batch
range(100) | bucket_by_length(index % 7, boundaries=[3], batch_sizes=[4, 2]) | x = index * 3

keeps  # the key is dropped below the batch
range(100) | bucket_by_length(index % 7, boundaries=[3], batch_sizes=[4, 2])
----
nothing that the batch reads is dropped or replaced

keeps  # the second key has the name of the first
range(9) | bucket_by_length(index % 7, boundaries=[3], batch_sizes=[2, 3]) | unbatch() | bucket_by_length(index % 2, boundaries=[1], batch_sizes=[1, 2])
----
nothing that the batch reads is dropped or replaced

keeps  # the other reader of the batches would see the new field
stream a = range(100) | batch(4)
stream b = a | index = index * 3
concatenate(a, b)
----
nothing else reads the step above

keeps  # members of different shapes fail in the batch, whatever is made of them below
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | batch(2) | h = image.height() | select h
----
all that it reads and assigns has a fixed shape
)explain",
};

}  // namespace zephon
