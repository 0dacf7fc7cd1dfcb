#include <algorithm>

#include "optimizer/rules/hidden.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

// A resampling of the whole of its picture to a size that is known, right below what makes the picture.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& resize = graph.expr(expr);
  if (resize.op->cls != OpClass::Resample || resize.args.size() != 1) return false;
  if (!resize.attrs.has("height") || !resize.attrs.has("width")) return false;
  m.arg = resize.args[0];
  return rules::is_unset(graph.expr(m.arg), "$height") && rules::is_unset(graph.expr(m.arg), "$width");
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr resize = graph.expr(m.expr);
  const Expr& whole = graph.expr(m.arg);
  Attrs attrs = whole.attrs;
  attrs.set("$height", resize.attrs.integer("height"));
  attrs.set("$width", resize.attrs.integer("width"));
  const std::vector<Span> origin = whole.origin;
  resize.args[0] = add_call(graph, *whole.op, whole.args, std::move(attrs));
  graph.add_origin(resize.args[0], origin);
  return graph.add(std::move(resize));
}

constexpr Guard kGuards[] = {
    {"nothing else needs the picture",
     [](Rewriter& rewriter, const Match& m) {
       const std::vector<ExprId>& users = rewriter.expr_users(m.arg);
       return std::all_of(users.begin(), users.end(), [&](ExprId user) { return user == m.expr; });
     }},
};

}  // namespace

// The decoder takes a scale whose result is at least as large as what the resize makes, so the resize never enlarges
// what it would not have enlarged; a picture too small for any scale is decoded as written.
ZEPHON_RULE_DEF(ScaleWhileDecoding) = {
    .name = "scale_while_decoding",
    .summary =
        "A picture that is made smaller is decoded at 1/2, 1/4 or 1/8 of its size, at least that of the resize: the "
        "inverse DCT of fewer coefficients, and fewer pixels to convert and to resize.",
    .law = "resize h w (decode b) ~ resize h w (decode_scaled h w b)",
    .ends = "one whole picture fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().random_resized_crop(32, 32) | select image

fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().resize(32, 32) | select image

keeps  # the whole picture is delivered
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | small = image.resize(32, 32) | select image, small
----
nothing else needs the picture
)explain",
    .relaxation = "decode-scale",
};

}  // namespace zephon
