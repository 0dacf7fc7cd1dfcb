#include "graph/signature.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& crop = graph.expr(expr);
  if (!crop.op->cuts_box || crop.args.size() != 2) return false;
  m.arg = crop.args[0];
  const Expr& view = graph.expr(m.arg);
  return view.op->cls == OpClass::View && (view.attrs.has("step") || view.attrs.has("dims"));
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Expr crop = graph.expr(m.expr);
  Expr view = graph.expr(m.arg);
  view.args[0] = add_call(graph, *crop.op, {view.args[0], crop.args[1]});
  view.type = crop.type;
  return graph.add(std::move(view));
}

constexpr Guard kGuards[] = {
    {"the view leaves rows and columns alone, and cannot fail",
     [](Rewriter& rewriter, const Match& m) {
       return rules::keeps_rows_and_columns(rewriter.graph(), rewriter.graph().expr(m.arg));
     }},
    {"nothing else needs all of these channels",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }, true},
};

}  // namespace

ZEPHON_RULE_DEF(PushCropBelowChannels) = {
    .name = "push_crop_below_channels",
    .summary =
        "A box of some channels of a picture is those channels of the box: so crops come nearer to what makes the "
        "picture.",
    .law = "crop (x[:, :, c]) box = (crop x box)[:, :, c]",
    .ends = "one crop moves below one view",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image()[:, :, 1] | y = x.crop(box(2, 3, 9, 7)) | select y

fires  # gray, of which a random box is kept
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image() | y = 0.3 * f32(x[:, :, 0:1]) + 0.7 * f32(x[:, :, 1:2]) | z = y.random_crop(9, 7) | select z

keeps
range(4) | x = [[[index], [1], [2]], [[3], [4], [5]], [[6], [7], [8]]][1:].crop(box(0, 0, 1, 2)) | select x
----
the view leaves rows and columns alone, and cannot fail

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image()[:, :, 1] | y = x.crop(box(2, 3, 9, 7)) | select x, y
----
nothing else needs all of these channels
)explain",
};

}  // namespace zephon
