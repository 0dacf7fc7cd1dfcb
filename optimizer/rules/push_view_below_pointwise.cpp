#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& view = graph.expr(expr);
  if (view.op->cls != OpClass::View || view.args.empty()) return false;
  m.arg = view.args[0];
  const Expr& pointwise = graph.expr(m.arg);
  return pointwise.op->cls == OpClass::Pointwise && !pointwise.type.is_scalar() && !is_string(pointwise.type.elem);
}

/// Leading dimensions of which the view cuts a part; every other dimension it leaves alone. 0: it may do anything.
size_t cut_dims(const Expr& view) { return view.op->cuts_box ? 2 : 0; }

bool known_equal(const Dim& a, const Dim& b) { return a == b && (a.is_static() || !a.symbol.empty()); }

enum class Operand { Viewed, Untouched, Unknown };

/// What becomes of an operand of the pointwise operation when the view moves past it.
Operand operand(const Graph& graph, const Expr& view, const Expr& pointwise, size_t i) {
  const Type& type = graph.expr(pointwise.args[i]).type;
  const size_t rank = pointwise.type.rank();
  if (type.is_scalar()) return Operand::Untouched;
  const size_t cut = cut_dims(view);
  // Broadcast over all dimensions that are cut: the same for every part.
  if (cut > 0 && type.rank() + cut <= rank) return Operand::Untouched;
  if (type.rank() != rank) return Operand::Unknown;
  // It must not be broadcast itself: its extents are the result's because they are known to be, or because nothing else
  // has them.
  bool alone = true;
  for (size_t j = 0; j < pointwise.args.size(); ++j) {
    if (j == i) continue;
    const size_t other = graph.expr(pointwise.args[j]).type.rank();
    if (cut > 0 ? other + cut > rank : other > 0) alone = false;
  }
  if (alone) return Operand::Viewed;
  for (size_t d = 0; d < rank; ++d)
    if (!known_equal(type.shape[d], pointwise.type.shape[d])) return Operand::Unknown;
  return Operand::Viewed;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Expr view = graph.expr(m.expr);
  Expr pointwise = graph.expr(m.arg);
  const Expr before = pointwise;
  for (size_t i = 0; i < pointwise.args.size(); ++i) {
    if (operand(graph, view, before, i) != Operand::Viewed) continue;
    Expr part = view;
    part.args[0] = pointwise.args[i];
    part.type = view.type;
    part.type.elem = graph.expr(pointwise.args[i]).type.elem;
    pointwise.args[i] = graph.add(std::move(part));
  }
  const Elem elem = pointwise.type.elem;
  pointwise.type = view.type;
  pointwise.type.elem = elem;
  return graph.add(std::move(pointwise));
}

constexpr Guard kGuards[] = {
    {"the view takes a part",
     [](Rewriter& rewriter, const Match& m) {
       return rewriter.graph().expr(m.expr).op->cuts_box || rewriter.elements(m.expr) < rewriter.elements(m.arg);
     }},
    {"nothing else needs the whole",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }},
    {"each operand is cut alike or not at all",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& pointwise = graph.expr(m.arg);
       for (size_t i = 0; i < pointwise.args.size(); ++i)
         if (operand(graph, graph.expr(m.expr), pointwise, i) == Operand::Unknown) return false;
       return true;
     }},
};

}  // namespace

// Exact with failures too: each element is a value or a failure, and those that are cut away are never needed.
ZEPHON_RULE_DEF(PushViewBelowPointwise) = {
    .name = "push_view_below_pointwise",
    .summary =
        "A view that takes a part of a tensor runs before pointwise work: what "
        "is cut away is never computed, and the view "
        "comes nearer to what made the tensor.",
    .law = "view (f x y) = f (view x) (view y)",
    .ends = "one view moves below one operation",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = (f32(bytes.decode_image()) / 255).center_crop(32, 32) | select image

keeps  # a flip takes everything: nothing is saved
range(10) | x = ([[1, 2], [3, 4]] + index).flip() | select x
----
the view takes a part

keeps
files("examples/data/photos/*/*.jpg") | a = f32(bytes.decode_image()) | b = a.center_crop(32, 32) | select a, b
----
nothing else needs the whole

keeps  # the gray picture might have one row or column, and then be broadcast
files("examples/data/photos/*/*.jpg") | x = (f32(bytes.decode_image()) + f32(bytes.decode_image(mode="gray"))).crop(box(0, 0, 9, 9)) | select x
----
each operand is cut alike or not at all
)explain",
};

}  // namespace zephon
