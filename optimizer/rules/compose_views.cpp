#include <algorithm>

#include "graph/expr_set.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& outer = graph.expr(expr);
  if (outer.op->cls != OpClass::View || !outer.op->compose) return false;
  m.arg = outer.args[0];
  return graph.expr(m.arg).op == outer.op;
}

ExprId composed(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Expr outer = graph.expr(m.expr), inner = graph.expr(m.arg);  // the hook adds expressions
  return outer.op->compose(graph, outer, inner);
}

constexpr Guard kGuards[] = {
    // The message of the failure names the box.
    {"no box can leave its picture",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr &outer = graph.expr(m.expr), &inner = graph.expr(m.arg);
       return !outer.op->cuts_box ||
              (rules::box_fits(graph, outer.args[1], m.arg) && rules::box_fits(graph, inner.args[1], inner.args[0]));
     }},
    {"nothing else needs what stands between",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }, true},
    {"one view has the values and the failures of both",
     [](Rewriter& rewriter, const Match& m) {
       const ExprId both = composed(rewriter, m);
       if (!both.valid()) return false;
       // What is no longer asked must not have failed.
       const Graph& graph = rewriter.graph();
       ExprSet asked;
       asked.insert_all(graph.topological(both));
       for (ExprId view : {m.expr, m.arg}) {
         const std::vector<ExprId>& args = graph.expr(view).args;
         for (size_t i = 1; i < args.size(); ++i)
           if (!asked.contains(args[i]) && !is_always_good(graph, args[i])) return false;
       }
       return true;
     }},
};

}  // namespace

ZEPHON_RULE_DEF(ComposeViews) = {
    .name = "compose_views",
    .summary =
        "Two views of one kind, one on the other, are one: a box in a box, a flip of a flip, a permutation of a "
        "permutation. The operator says how (`compose`).",
    .law =
        "crop (crop x a) b = crop x (box_within a b), flip (flip x) = x, transpose (transpose x p) q = transpose x (p "
        ". q)",
    .ends = "one view fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = composed,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().random_crop(40, 40).center_crop(24, 24) | select image

fires  # two coins decide once
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(8, 8).random_flip().random_flip() | select image

fires  # there and back
range(4) | x = [[index, 1, 2], [3, 4, 5]].transpose([1, 0]).transpose([1, 0])

fires
range(4) | x = [index, 1, 2, 3, 4, 5, 6, 7][1:8:2][1:]

fires
range(4) | x = [index, 1, 2, 3, 4, 5].reshape([2, 3]).reshape([3, 2])

keeps  # a small picture fails, and the message says so
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().center_crop(40, 40).center_crop(24, 24) | select image
----
no box can leave its picture

keeps
range(4) | x = [[index, 1], [3, 4]].flip() | y = x.flip() | select x, y
----
nothing else needs what stands between

keeps  # one direction, and the other
range(4) | x = [[index, 1], [3, 4]].flip().flip(direction="vertical")
----
one view has the values and the failures of both
)explain",
};

}  // namespace zephon
