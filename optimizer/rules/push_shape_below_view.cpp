#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (!e.op->shape_only || e.args.empty()) return false;
  m.arg = e.args[0];
  return graph.expr(m.arg).op->box_above != nullptr;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr user = rewriter.graph().expr(m.expr);
  user.args[0] = rewriter.graph().expr(m.arg).args[0];
  return rewriter.graph().add(std::move(user));
}

constexpr Guard kGuards[] = {
    {"the view fails only where its picture does",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const std::vector<ExprId>& args = graph.expr(m.arg).args;
       return std::all_of(args.begin() + 1, args.end(), [&](ExprId arg) { return is_always_good(graph, arg); });
     }},
};

}  // namespace

ZEPHON_RULE_DEF(PushShapeBelowView) = {
    .name = "push_shape_below_view",
    .summary = "What needs only the shape of a view that keeps the shape, such as a flip, gets it from what is viewed.",
    .law = "f (flip x t) = f x, where f uses nothing but the shape",
    .ends = "one shape is asked for one operation earlier",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().random_flip().random_crop(32, 32) | select image

keeps  # whether to turn is not known for every sample
range(4) | x = one_hot(index, 4).reshape([2, 2]) | n = x.flip(12 // index > 3).height() | select n
----
the view fails only where its picture does
)explain",
};

}  // namespace zephon
