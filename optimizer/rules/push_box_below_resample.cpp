#include <algorithm>
#include <utility>

#include "graph/signature.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

/// What is resampled, then on what pointwise work it stands, down to what made the picture.
std::vector<ExprId> chain_of(const Graph& graph, ExprId picture) {
  std::vector<ExprId> chain = {picture};
  for (ExprId below = picture; (below = rules::shaped_operand(graph, below)).valid();) chain.push_back(below);
  return chain;
}

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& region = graph.expr(expr);
  if (!region.op->source_box || region.args.size() != 2) return false;
  m.arg = region.args[0];
  const OpDef& maker = *graph.expr(chain_of(graph, m.arg).back()).op;
  return maker.region_form && maker.shape_form;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr region = graph.expr(m.expr);
  const std::vector<ExprId> chain = chain_of(graph, m.arg);
  const ExprId whole = chain.back(), shape = rules::shape_of(graph, whole), box = region.args[1];
  const ExprId source = add_call(graph, *region.op->source_box, {shape, box}, region.attrs);
  auto part_of = [&](ExprId id) {
    Type part = graph.expr(id).type;
    part.shape[0] = part.shape[1] = Dim::unknown();
    return part;
  };
  ExprId part = rules::region_of(graph, whole, source, part_of(whole));
  for (size_t i = chain.size() - 1; i-- > 0;) {
    Expr work = graph.expr(chain[i]);
    std::ranges::replace(work.args, chain[i + 1], part);
    work.type = part_of(chain[i]);
    part = graph.add(std::move(work));
  }
  const ExprId rows = add_call(graph, *rewriter.ops().find("height"), {shape});
  const ExprId columns = add_call(graph, *rewriter.ops().find("width"), {shape});
  region.args = {part, box, source, rows, columns};
  return graph.add(std::move(region));
}

constexpr Guard kGuards[] = {
    {"the whole picture has arguments that a part of it can have",
     [](Rewriter& rewriter, const Match& m) {
       return rules::has_region(rewriter.graph(), chain_of(rewriter.graph(), m.arg).back());
     }},
    // The first failed pixel of the whole speaks for all that are made of one that failed.
    {"the work on the picture cannot fail",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const std::vector<ExprId> chain = chain_of(graph, m.arg);
       return std::none_of(chain.begin(), chain.end() - 1,
                           [&](ExprId id) { return may_fail_by_type(graph, graph.expr(id)); });
     }},
    {"nothing else needs the picture that is resampled",
     [](Rewriter& rewriter, const Match& m) {
       ExprId user = m.expr;
       for (ExprId id : chain_of(rewriter.graph(), m.arg))
         if (!rules::only_shape_besides(rewriter, id, std::exchange(user, id))) return false;
       return true;
     },
     true},
};

}  // namespace

// A weight does not depend on where the input ends but for the clipping of its range there, which goes by the size of
// the whole: so rows and columns of the whole are arguments.
ZEPHON_RULE_DEF(PushBoxBelowResample) = {
    .name = "push_box_below_resample",
    .summary =
        "Of a picture of whose resize only a box is made, only those rows and columns are decoded that the box is made "
        "of: its image, and half a filter around it; so is work on the picture done there only.",
    .law = "resize_region x box = resize_region (crop x s) box s (height x) (width x), s = resize_source x box",
    .ends = "one whole picture fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 32).center_crop(24, 24) | select image

fires  # normalised before it is resized
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().normalize([0.5], [0.2]).resize(32, 40).center_crop(9, 7) | select image

fires  # somewhere, and mirrored
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image().resize(32, 40).random_flip().random_crop(9, 7) | select image

keeps  # the whole picture must be good
files("examples/data/photos/*/*.jpg") | take(3) | image = bytes.decode_image(check="whole").resize(32, 32).center_crop(24, 24) | select image
----
the whole picture has arguments that a part of it can have

keeps  # 255 is no number of 7 bits: the message names the first that is not
files("examples/data/photos/*/*.jpg") | take(3) | image = f32(i8(bytes.decode_image())).resize(32, 40).random_crop(9, 7) | select image
----
the work on the picture cannot fail

keeps
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image() | y = x.resize(32, 32).center_crop(24, 24) | z = x.mean() | select y, z
----
nothing else needs the picture that is resampled
)explain",
};

}  // namespace zephon
