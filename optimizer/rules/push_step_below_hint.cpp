#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// Of what comes to it, it passes on some, in some order, with other fields: but one for one.
bool passes_single_rows(const Node& node) {
  switch (node.op->cls) {
    case OpClass::OneToOne:
    case OpClass::Subset:
    case OpClass::Reorder:
    case OpClass::Policy:
      return true;
    default:
      return false;
  }
}

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  if (!passes_single_rows(rewriter.graph().node(outer)) || !rules::reads_one(rewriter, outer, m)) return false;
  const Node& inner = rules::inner_of(rewriter, m);
  return inner.op->cls == OpClass::Hint && !inner.op->algebra.keeps_rows;
}

constexpr Guard kGuards[] = {rules::kOneReader};

}  // namespace

// Past all that does not change what a record is: a hint that counts records counts the same kind.
ZEPHON_RULE_DEF(PushStepBelowHint) = {
    .name = "push_step_below_hint",
    .summary = "A step runs before a hint, which changes nothing: so hints are in nobody's way.",
    .law = "f . hint = hint . f",
    .ends = "one hint moves one step nearer the output",
    .guards = kGuards,
    .match_node = match,
    .apply_node = rules::exchange_with_same,
    .depth = 2,
    .examples = R"explain(
fires
range(100) | x = index * 3 | prefetch(4) | filter x % 7 != 0

keeps
stream a = range(100) | prefetch(4)
stream b = a | filter index > 3
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
