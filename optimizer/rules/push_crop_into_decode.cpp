#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& crop = graph.expr(expr);
  if (!crop.op->cuts_box || crop.args.size() != 2) return false;
  m.arg = crop.args[0];
  return graph.expr(m.arg).op->region_form != nullptr;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  const Expr crop = rewriter.graph().expr(m.expr);
  return rules::region_of(rewriter.graph(), m.arg, crop.args[1], crop.type);
}

constexpr Guard kGuards[] = {
    {"the whole picture's other arguments have their defaults",
     [](Rewriter& rewriter, const Match& m) { return rules::has_region(rewriter.graph(), m.arg); }},
    // Those that need only its shape will ask the file's header.
    {"nothing else needs the picture",
     [](Rewriter& rewriter, const Match& m) { return rules::only_shape_besides(rewriter, m.arg, m.expr); }, true},
};

}  // namespace

ZEPHON_RULE_DEF(PushCropIntoDecode) = {
    .name = "push_crop_into_decode",
    .summary =
        "A box cut out of a picture becomes an argument of what makes it. Of what is decoded, rows below are never "
        "decoded, columns beside it are skipped with the margin that keeps the bits; of what is resized only the box "
        "is made.",
    .law = "crop (decode b) box = decode_image_region b box; crop (resize x) box = resize_region x box",
    .ends = "one crop fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().random_crop(32, 32) | select image

fires  # resized to 32 x 32, of which 24 x 24 are made
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 32).center_crop(24, 24) | select image

keeps  # the whole picture must be good
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image(check="whole").random_crop(32, 32) | select image
----
the whole picture's other arguments have their defaults

keeps
files("examples/data/photos/*/*.jpg") | whole = bytes.decode_image() | part = whole.random_crop(32, 32) | select whole, part
----
nothing else needs the picture
)explain",
};

}  // namespace zephon
