#include <algorithm>
#include <set>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/regions.h"

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
  // Or because all that have extents there are made of one picture.
  if (cut > 0) {
    const ExprId base = rules::base_of(graph, pointwise.args[i]);
    const bool one_base = std::ranges::all_of(pointwise.args, [&](ExprId arg) {
      return graph.expr(arg).type.rank() + cut <= rank || rules::base_of(graph, arg) == base;
    });
    if (one_base) return Operand::Viewed;
  }
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

/// The elements of the result are larger than those that the view would move instead: u8 become f32 behind the flip.
bool moves_fewer_bytes(Rewriter& rewriter, const Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr &view = graph.expr(m.expr), &pointwise = graph.expr(m.arg);
  size_t bytes = 0;
  for (size_t i = 0; i < pointwise.args.size(); ++i)
    if (operand(graph, view, pointwise, i) != Operand::Untouched)
      bytes += elem_size(graph.expr(pointwise.args[i]).type.elem);
  return view.op->permutes && bytes < elem_size(pointwise.type.elem);
}

constexpr Guard kGuards[] = {
    {"the view takes a part, or fewer bytes",
     [](Rewriter& rewriter, const Match& m) {
       return rewriter.graph().expr(m.expr).op->cuts_box || rewriter.elements(m.expr) < rewriter.elements(m.arg) ||
              moves_fewer_bytes(rewriter, m);
     },
     true},
    {"nothing else needs the whole",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }, true},
    {"each operand is cut alike or not at all",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& pointwise = graph.expr(m.arg);
       for (size_t i = 0; i < pointwise.args.size(); ++i)
         if (operand(graph, graph.expr(m.expr), pointwise, i) == Operand::Unknown) return false;
       return true;
     }},
    // A tensor fails with the failure of its first failed element, which may be cut away or come later. An operand has
    // one failure for all of them, and so have operands made of one picture.
    {"all its failures are those of one operand",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const std::vector<ExprId>& args = graph.expr(m.arg).args;
       std::set<ExprId> failing;
       for (ExprId arg : args)
         if (!is_always_good(graph, arg)) failing.insert(args.size() == 1 ? arg : rules::base_of(graph, arg));
       return failing.size() <= 1 && !rewriter.reads().ranges().may_fail(m.arg);
     }},
};

}  // namespace

ZEPHON_RULE_DEF(PushViewBelowPointwise) = {
    .name = "push_view_below_pointwise",
    .summary =
        "A view that takes a part of a tensor runs before pointwise work: what is cut away is never computed, and the "
        "view comes nearer to what made the tensor. A flip or a permutation does so where elements grow: casts to "
        "larger types move towards the output.",
    .law = "view (f x y) = f (view x) (view y)",
    .ends = "one view moves below one operation",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = (f32(bytes.decode_image()) / 255).center_crop(32, 32) | select image

fires  # one byte moves instead of four
files("examples/data/photos/*/*.jpg") | take(3) | image = f32(bytes.decode_image().resize(8, 8)).to_chw() | select image

keeps  # a flip takes everything: nothing is saved
range(10) | x = ([[1, 2], [3, 4]] + index).flip() | select x
----
the view takes a part, or fewer bytes

keeps  # of several pixels that overflow, the first one is reported, which may be cut away
files("examples/data/photos/*/*.jpg") | take(3) | image = (i32(bytes.decode_image()) * 100_000_000).crop(box(0, 0, 9, 9)) | select image
----
all its failures are those of one operand

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
