#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// Checked where its types decide, and not where its operands do.
bool drops(Rewriter& rewriter, ExprId id) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(id);
  return e.op->cls == OpClass::Pointwise && e.op->effects.can_fail && !e.attrs.has(kTotal) && is_generated(graph, e) &&
         !rewriter.reads().ranges().may_fail(id) && may_fail_by_type(graph, e);
}

template <class F>
bool any_operation(Rewriter& rewriter, ExprId root, F&& holds) {
  const std::vector<ExprId> below = rewriter.graph().topological(root);
  return std::any_of(below.begin(), below.end(), holds);
}

/// A whole expression at once, from its root: what an operation is known to give bounds what stands on it.
bool match(Rewriter& rewriter, ExprId root, Match&) {
  const std::vector<ExprId>& users = rewriter.expr_users(root);
  if (std::none_of(users.begin(), users.end(), [](ExprId user) { return !user.valid(); })) return false;
  return any_operation(rewriter, root, [&](ExprId id) {
    const Expr& e = rewriter.graph().expr(id);
    return e.op->cls == OpClass::Pointwise && e.op->effects.can_fail && !e.attrs.has(kTotal);
  });
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  return graph.rewrite(m.expr, [&](ExprId id) {
    if (!drops(rewriter, id)) return id;
    Expr total = graph.expr(id);
    total.attrs.set(kTotal, true);
    return graph.add(std::move(total));
  });
}

constexpr Guard kGuards[] = {
    {"operands lie where an operation cannot fail that otherwise might",
     [](Rewriter& rewriter, const Match& m) {
       return any_operation(rewriter, m.expr, [&](ExprId id) { return drops(rewriter, id); });
     }},
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
