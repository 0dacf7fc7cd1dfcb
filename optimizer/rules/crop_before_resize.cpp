#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& region = graph.expr(expr);
  if (!rules::has_margin(graph, region)) return false;
  m.arg = region.args[0];
  return region.type.shape[0].is_static() && region.type.shape[1].is_static();
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Expr region = graph.expr(m.expr);
  Attrs attrs;
  attrs.set("height", region.type.shape[0].extent);
  attrs.set("width", region.type.shape[1].extent);
  Expr resize = region;
  resize.op = &rules::whole_form(rewriter.ops(), *region.op);
  resize.args = {rules::part_without_margin(graph, region)};
  resize.attrs = std::move(attrs);
  return graph.add(std::move(resize));
}

constexpr Guard kGuards[] = {
    {"the box cannot leave the resized picture",
     [](Rewriter& rewriter, const Match& m) {
       return rules::box_stays(rewriter, Expr(rewriter.graph().expr(m.expr)));
     }},
    {"nothing else needs the part",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }},
};

}  // namespace

// What the box covers is rounded to whole pixels, and what lies around it has no part in its rim. The resize that is
// left is one of all that is at hand, which a decoder may do partly (decode-scale).
ZEPHON_RULE_DEF(CropBeforeResize) = {
    .name = "crop_before_resize",
    .summary =
        "A box of a resized picture becomes a resize of the box that it covers: its rim is made of nothing outside, "
        "and with decode-scale the box is decoded at a part of its size.",
    .law = "crop (resize H W x) box ~ resize h w (crop x (box H W / x))",
    .ends = "one part of a resize fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(40, 40).center_crop(24, 24) | select image

keeps
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(40, 40).crop(box(len(path.name), 0, 24, 24)) | select image
----
the box cannot leave the resized picture

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image().resize(40, 40).center_crop(24, 24) | y = bytes.decode_image_region(bytes.decode_image_shape().resize_source(box(8, 8, 24, 24), height=40, width=40)).mean() | select x, y
----
nothing else needs the part
)explain",
    .relaxation = "crop-before-resize",
};

}  // namespace zephon
