#include <algorithm>
#include <map>

#include "graph/constants.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool asks_shape(const Graph& graph, ExprId id, ExprId picture) {
  const Expr& e = graph.expr(id);
  return e.op->shape_only && e.op->cls == OpClass::Opaque && e.args.size() == 1 && e.args[0] == picture &&
         e.type.is_scalar();
}

/// The operation on a picture whose further argument asks for the picture's shape.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if ((e.op->cls != OpClass::View && !e.op->source_box) || e.args.size() < 2 || is_constant(graph.expr(e.args[0])))
    return false;
  m.arg = e.args[0];
  for (ExprId user : rewriter.expr_users(m.arg)) {
    if (!user.valid() || !asks_shape(graph, user, m.arg)) continue;
    for (size_t i = 1; i < e.args.size(); ++i) {
      const std::vector<ExprId> below = graph.topological(e.args[i]);
      if (std::find(below.begin(), below.end(), user) != below.end()) return true;
    }
  }
  return false;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr e = graph.expr(m.expr);
  for (size_t i = 1; i < e.args.size(); ++i)
    e.args[i] = graph.rewrite(e.args[i], [&](ExprId id) {
      if (!asks_shape(graph, id, m.arg)) return id;
      return add_constant(graph, rewriter.ops(), *evaluate_on_shape(graph, id));
    });
  return graph.add(std::move(e));
}

constexpr Guard kGuards[] = {
    {"the shape is known",
     [](Rewriter& rewriter, const Match& m) { return rewriter.graph().expr(m.arg).type.has_static_shape(); }},
};

}  // namespace

// Not wherever a shape is asked for: a picture that fails has none.
ZEPHON_RULE_DEF(FoldKnownShapes) = {
    .name = "fold_known_shapes",
    .summary =
        "Where a box is cut out of a picture of known size, what asks for the size becomes a number: where the picture "
        "fails, so does the cut, whatever the box is.",
    .law = "crop x (f (height x)) = crop x (f n), where x : T[n, m, c]",
    .ends = "one question fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 32).center_crop(24, 24) | select image

keeps
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().center_crop(24, 24) | select image
----
the shape is known
)explain",
};

}  // namespace zephon
