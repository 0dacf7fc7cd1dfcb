#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& crop = graph.expr(expr);
  if (!crop.op->cuts_box || crop.args.size() != 2) return false;
  m.arg = crop.args[0];
  return graph.expr(m.arg).op->box_above != nullptr;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr crop = graph.expr(m.expr), view = graph.expr(m.arg);
  crop.args = {view.args[0], view.op->box_above(graph, view, crop.args[1])};
  view.type = crop.type;
  view.args[0] = graph.add(std::move(crop));
  return graph.add(std::move(view));
}

constexpr Guard kGuards[] = {
    // The message of the failure names the box.
    {"the box cannot leave the picture",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       return rules::box_fits(graph, graph.expr(m.expr).args[1], m.arg);
     }},
    {"nothing else needs the whole view",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }, true},
};

}  // namespace

ZEPHON_RULE_DEF(PushCropBelowFlip) = {
    .name = "push_crop_below_flip",
    .summary =
        "The box of a mirror image is the mirror image of the box on the other side: so crops come nearer to what "
        "makes "
        "the picture.",
    .law = "crop (flip x t) box = flip (crop x (flip_box x box t)) t",
    .ends = "one crop moves below one flip",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires  # the box was drawn for a picture of that shape
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().random_flip().random_crop(32, 24) | select image

fires  # both are known
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(40, 40).flip(direction="vertical").center_crop(9, 7) | select image

keeps
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().random_flip().center_crop(32, 32) | select image
----
the box cannot leave the picture

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image().random_flip() | y = x.random_crop(32, 32) | select x, y
----
nothing else needs the whole view
)explain",
};

}  // namespace zephon
