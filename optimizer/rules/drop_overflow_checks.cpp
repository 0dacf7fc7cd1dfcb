#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// Checked, since its types decide so.
bool match(Rewriter& rewriter, ExprId expr, Match&) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  return e.op->cls == OpClass::Pointwise && e.op->effects.can_fail && !e.attrs.has(kTotal) && is_generated(graph, e) &&
         may_fail_by_type(graph, e);
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr total = rewriter.graph().expr(m.expr);
  total.attrs.set(kTotal, true);
  return rewriter.graph().add(std::move(total));
}

constexpr Guard kGuards[] = {
    {"operands lie where an operation cannot fail that otherwise might",
     [](Rewriter& rewriter, const Match& m) { return !rewriter.reads().ranges().may_fail(m.expr); }},
};

}  // namespace

// The definition stays as it is; the kernel is built without its checks, and nobody counts with a failure.
ZEPHON_RULE_DEF(DropOverflowChecks) = {
    .name = "drop_overflow_checks",
    .summary =
        "Integer arithmetic on numbers of known range, where no result leaves its type and no divisor is 0, is "
        "unchecked: range analysis runs the operator's own kernel on intervals.",
    .law = "checked f x = f x, where f does not fail on [least, greatest]",
    .ends = "checked operations become fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
range(5_000_000_000) | x = index * 3 + 1 | filter x % 7 != 0 | batch(4) | take(2)

fires  # a byte has 8 bits
range(100) | x = (index.clamp(0, 255).u8.i32 - 128) * 1000 | select x

keeps  # 3 times the last index is more than 2^63
range(9_000_000_000_000_000_000) | x = index * 3 | take(5)
----
operands lie where an operation cannot fail that otherwise might

keeps  # 0 is among the divisors, and fails
range(100) | x = 1000 // index
----
operands lie where an operation cannot fail that otherwise might
)explain",
};

}  // namespace zephon
