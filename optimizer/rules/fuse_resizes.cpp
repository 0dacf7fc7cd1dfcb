#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

// A resampling of the whole of its picture, which is one itself, or a part of one.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& outer = graph.expr(expr);
  if (outer.op->cls != OpClass::Resample || outer.args.size() != 1 || !outer.op->region_form) return false;
  m.arg = outer.args[0];
  const Expr& inner = graph.expr(m.arg);
  if (inner.op->cls != OpClass::Resample) return false;
  return inner.args.size() == 1 ? inner.op->region_form != nullptr : rules::has_margin(graph, inner);
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr outer = graph.expr(m.expr);
  const Expr inner = graph.expr(m.arg);
  outer.args[0] = inner.args.size() == 1 ? inner.args[0] : rules::part_without_margin(graph, inner);
  return graph.add(std::move(outer));
}

constexpr Guard kGuards[] = {
    {"the box cannot leave the resized picture",
     [](Rewriter& rewriter, const Match& m) {
       const Expr inner = rewriter.graph().expr(m.arg);
       return inner.args.size() == 1 || rules::box_stays(rewriter, inner);
     }},
    {"nothing else needs the picture in between",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }},
};

}  // namespace

ZEPHON_RULE_DEF(FuseResizes) = {
    .name = "fuse_resizes",
    .summary =
        "A picture that is resized twice is resized once, to the last size; a box cut out in between is cut out "
        "before: less blur, and one pass over the pixels.",
    .law = "resize h w (resize H W x) ~ resize h w x",
    .ends = "one resize fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(64, 64).resize(24, 24) | select image

fires  # with a box in between
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(64, 64).center_crop(40, 40).resize(24, 24) | select image

keeps
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(64, 64).crop(box(len(path.name), 0, 24, 24)).resize(8, 8) | select image
----
the box cannot leave the resized picture

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image().resize(64, 64) | y = x.resize(24, 24) | select x, y
----
nothing else needs the picture in between
)explain",
    .relaxation = "fuse-resizes",
};

}  // namespace zephon
