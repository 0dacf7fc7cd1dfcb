#include "graph/signature.h"
#include "ops/tensor_op.h"

namespace zephon {

namespace ops {
extern const OpDef FlipBox, Ne, Not;
}

namespace {

size_t flipped_dim(const Expr& expr) { return expr.attrs.text("direction") == "vertical" ? 0 : 1; }

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const> args,
                  std::span<int64_t> in, std::string&) {
  std::copy(out.begin(), out.end(), in.begin());
  bool turn = args.size() < 2 || args[1]->at(0).i != 0;
  size_t d = flipped_dim(expr);
  if (turn) in[d] = args[0]->shape()[d] - 1 - out[d];
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  std::copy(out.begin(), out.end(), in.begin());
  size_t d = flipped_dim(expr);
  KVal mirrored = b.sub(b.sub(b.extent(0, static_cast<int>(d)), i64_of(b, 1)), out[d]);
  in[d] = expr.args.size() < 2 ? mirrored : b.select(b.element(1, {}), mirrored, out[d]);
}

// Twice along one dimension: not at all where both turn, else once where one of them does.
ExprId compose(Graph& graph, const Expr& outer, const Expr& inner) {
  if (flipped_dim(outer) != flipped_dim(inner)) return {};
  const bool outer_asks = outer.args.size() == 2, inner_asks = inner.args.size() == 2;
  if (outer_asks == inner_asks && (!outer_asks || outer.args[1] == inner.args[1])) return inner.args[0];
  const ExprId turn = outer_asks && inner_asks ? add_call(graph, ops::Ne, {inner.args[1], outer.args[1]})
                                               : add_call(graph, ops::Not, {(outer_asks ? outer : inner).args[1]});
  Expr both = outer;
  both.args = {inner.args[0], turn};
  return graph.add(std::move(both));
}

ExprId box_above(Graph& graph, const Expr& view, ExprId box) {
  std::vector<ExprId> args = view.args;
  args.insert(args.begin() + 1, box);
  return add_call(graph, ops::FlipBox, std::move(args), view.attrs);
}

Value define_box(DefineCall& call) {
  if (call.arg(0).whole_failed()) return forward(call.arg(0));
  for (size_t i = call.arg_count(); i-- > 1;)
    if (call.arg(i).any_failed()) return forward(call.arg(i));
  Value box = call.arg(1);
  const size_t d = flipped_dim(call.expr());
  const auto at = static_cast<int64_t>(d);
  if (call.arg_count() == 3 && call.arg(2).at(0).i == 0) return box;
  const int64_t first = call.arg(0).shape()[d] - box.at(at).i - box.at(at + 2).i;
  box.set(at, Scalar::of_int(Elem::I64, first));
  return box;
}

bool run_box(NativeCall& call) {
  const int64_t four[] = {4};
  if (!place_output(call, four)) return false;
  const size_t d = flipped_dim(*call.expr);
  auto* box = static_cast<int64_t*>(call.output->data);
  std::copy_n(static_cast<const int64_t*>(call.inputs[1].data), 4, box);
  const bool turn = call.inputs.size() < 3 || *static_cast<const uint8_t*>(call.inputs[2].data) != 0;
  if (turn) box[d] = call.inputs[0].shape[d] - box[d] - box[d + 2];
  return true;
}

}  // namespace

ZEPHON_OP_DEF(FlipBox) = {
    .name = "flip_box",
    .cls = OpClass::Opaque,
    .signature =
        "image: T[h, w, ...c], box: box[bh, bw], turn: bool?, direction: enum(horizontal, vertical) = horizontal "
        "-> box[bh, bw]",
    .summary = "The box of the picture that is `box` of its mirror image (flip).",
    .example = "range(2) | x = [[index, 1], [2, 3]].flip_box(box(0, 0, 2, 1))",
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_box},
    .kernel = {.native = run_box},
    .fits_box = true,  // where the box does
    .shape_only = true,
};

ZEPHON_OP_DEF(Flip) = {
    .name = "flip",
    .cls = OpClass::View,
    .signature =
        "image: T[h, w, ...c], turn: bool?, direction: enum(horizontal, vertical) = horizontal -> T[h, w, ...c]",
    .summary = "The mirror image; with `turn`, only where that is true.",
    .prose = "`horizontal` exchanges left and right, `vertical` top and bottom.",
    .example = "range(2) | x = [[index, 1], [2, 3]].flip(index == 1)",
    .define = {.view = define},
    .kernel = {.view = build},
    .permutes = true,
    .compose = compose,
    .box_above = box_above,
};

}  // namespace zephon
