#include "graph/signature.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& region = graph.expr(expr);
  if (!region.op->source_box || region.args.size() != 2) return false;
  m.arg = region.args[0];
  const OpDef& maker = *graph.expr(m.arg).op;
  return maker.region_form && maker.shape_form;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr region = graph.expr(m.expr);
  const ExprId shape = rules::shape_of(graph, m.arg), box = region.args[1];
  const ExprId source = add_call(graph, *region.op->source_box, {shape, box}, region.attrs);
  Type part = graph.expr(m.arg).type;
  part.shape[0] = part.shape[1] = Dim::unknown();
  const ExprId rows = add_call(graph, *rewriter.ops().find("height"), {shape});
  const ExprId columns = add_call(graph, *rewriter.ops().find("width"), {shape});
  region.args = {rules::region_of(graph, m.arg, source, part), box, source, rows, columns};
  return graph.add(std::move(region));
}

constexpr Guard kGuards[] = {
    {"the whole picture has arguments that a part of it can have",
     [](Rewriter& rewriter, const Match& m) { return rules::has_region(rewriter.graph(), m.arg); }},
    {"nothing else needs the picture that is resampled",
     [](Rewriter& rewriter, const Match& m) { return rules::only_shape_besides(rewriter, m.arg, m.expr); }, true},
};

}  // namespace

// A weight does not depend on where the input ends but for the clipping of its range there, which goes by the size of
// the whole: so rows and columns of the whole are arguments.
ZEPHON_RULE_DEF(PushBoxBelowResample) = {
    .name = "push_box_below_resample",
    .summary =
        "Of a picture of whose resize only a box is made, only those rows and columns are decoded that the box is made "
        "of: its image, and half a filter around it.",
    .law = "resize_region x box = resize_region (crop x s) box s (height x) (width x), s = resize_source x box",
    .ends = "one whole picture fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 32).center_crop(24, 24) | select image

fires  # somewhere, and mirrored
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 40).random_flip().random_crop(9, 7) | select image

keeps  # the whole picture must be good
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image(check="whole").resize(32, 32).center_crop(24, 24) | select image
----
the whole picture has arguments that a part of it can have

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image() | y = x.resize(32, 32).center_crop(24, 24) | z = x.mean() | select y, z
----
nothing else needs the picture that is resampled
)explain",
};

}  // namespace zephon
