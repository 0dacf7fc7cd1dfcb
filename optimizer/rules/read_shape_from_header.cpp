#include <algorithm>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (!e.op->shape_only || e.args.empty()) return false;
  m.arg = e.args[0];
  return graph.expr(m.arg).op->shape_form != nullptr;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr shape = graph.expr(m.arg);
  shape.op = shape.op->shape_form;
  Attrs attrs;
  for (const Parameter& p : signature_of(*shape.op).parameters)
    for (const auto& [name, value] : shape.attrs)
      if (name == p.name) attrs.set(name, value);
  shape.attrs = std::move(attrs);
  Expr user = graph.expr(m.expr);
  user.args[0] = graph.add(std::move(shape));
  return graph.add(std::move(user));
}

constexpr Guard kGuards[] = {
    {"nothing else needs the whole picture",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const std::vector<ExprId>& users = rewriter.expr_users(m.arg);
       return std::all_of(users.begin(), users.end(), [&](ExprId user) {
         if (!user.valid()) return false;
         const Expr& other = graph.expr(user);
         const bool boxed = other.op->source_box && other.args.size() == 2 && rules::has_region(graph, m.arg);
         return other.op->shape_only || other.op->cuts_box || boxed;
       });
     },
     true},
};

}  // namespace

// The shape of a picture stands in its header: decoding it fails as a whole exactly where the header is bad.
ZEPHON_RULE_DEF(ReadShapeFromHeader) = {
    .name = "read_shape_from_header",
    .summary = "What needs only the shape of a picture, such as a random box, gets it from the file's header.",
    .law = "f (decode b) = f (shape_of b), where f uses nothing but the shape",
    .ends = "one use of a picture fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().random_crop(32, 32) | select image

keeps  # the picture is there anyway
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | box = image.random_crop_box(32, 32)
----
nothing else needs the whole picture
)explain",
};

}  // namespace zephon
