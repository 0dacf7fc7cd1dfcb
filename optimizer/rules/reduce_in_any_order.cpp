#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (e.op->cls != OpClass::Reduce || e.args.size() != 1 || e.attrs.has("axes")) return false;
  m.arg = e.args[0];
  return graph.expr(m.arg).op->permutes;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr reduction = rewriter.graph().expr(m.expr);
  reduction.args[0] = rewriter.graph().expr(m.arg).args[0];
  return rewriter.graph().add(std::move(reduction));
}

constexpr Guard kGuards[] = {
    {"the order of the elements does not matter",
     [](Rewriter& rewriter, const Match& m) {
       const Expr& e = rewriter.graph().expr(m.expr);
       return e.op->any_order == AnyOrder::Yes || (e.op->any_order == AnyOrder::Integers && is_integer(e.type.elem));
     }},
    {"the view fails only where its tensor does",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& view = graph.expr(m.arg);
       if (view.op->effects.can_fail && !graph.expr(view.args[0]).type.has_static_shape()) return false;
       return std::all_of(view.args.begin() + 1, view.args.end(),
                          [&](ExprId arg) { return is_always_good(graph, arg); });
     }},
};

}  // namespace

// Float sums have an order, which is part of their meaning: 16 lanes, as the elements stand.
ZEPHON_RULE_DEF(ReduceInAnyOrder) = {
    .name = "reduce_in_any_order",
    .summary =
        "The least, the greatest, any, all, and sums of integers are asked of the tensor itself, not of one of its "
        "mirror images, transposes or shapes.",
    .law = "min (flip x) = min x",
    .ends = "one view fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image().random_flip().to_chw().max() | select x

fires
range(4) | x = [[index, 2], [3, 4]].transpose([1, 0]).sum()

keeps  # lanes of a sum would hold other elements
range(4) | x = ([[index, 2], [3, 4]] / 7).transpose([1, 0]).sum()
----
the order of the elements does not matter

keeps
range(4) | x = [[index, 2], [3, 4]].flip(12 // index > 3).max()
----
the view fails only where its tensor does
)explain",
};

}  // namespace zephon
