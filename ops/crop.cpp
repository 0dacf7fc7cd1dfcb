#include "graph/signature.h"
#include "ops/tensor_op.h"

namespace zephon {

namespace ops {
extern const OpDef BoxWithin;
}

namespace {

ViewResult define(const Expr&, std::span<const int64_t> out, std::span<const Value* const> args, std::span<int64_t> in,
                  std::string& message) {
  const Value& box = *args[1];
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = i < 2 ? out[i] + box.at(static_cast<int64_t>(i)).i : out[i];
    if (in[i] < 0 || in[i] >= args[0]->shape()[i]) {
      message = box_leaves(box, args[0]->shape()[0], args[0]->shape()[1]);
      return ViewResult::Failed;
    }
  }
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr&, std::span<const KVal> out, std::span<KVal> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (i >= 2) {
      in[i] = out[i];
      continue;
    }
    KVal where[] = {i64_of(b, static_cast<int64_t>(i))}, how_many[] = {i64_of(b, static_cast<int64_t>(i) + 2)};
    KVal first = b.element(1, where), last = b.add(first, b.element(1, how_many));
    // The same for every element, so outside the loops.
    b.fail_if(b.compare(Compare::Lt, first, i64_of(b, 0)));
    b.fail_if(b.compare(Compare::Gt, last, b.extent(0, static_cast<int>(i))));
    in[i] = b.add(out[i], first);
  }
}

// Where no box leaves its picture.
ExprId compose(Graph& graph, const Expr& outer, const Expr& inner) {
  const ExprId box = add_call(graph, ops::BoxWithin, {inner.args[1], outer.args[1]});
  Expr both = outer;
  both.args = {inner.args[0], box};
  return graph.add(std::move(both));
}

}  // namespace

ZEPHON_OP_DEF(Crop) = {
    .name = "crop",
    .cls = OpClass::View,
    .signature = "image: T[h, w, ...c], box: box[bh, bw] -> T[bh, bw, ...c]",
    .summary = "The part of a picture inside a box.",
    .prose = "Where the box leaves the picture it fails.",
    .example = "range(2) | x = [[1, 2], [3, index]].crop(box(0, 1, 2, 1))",
    .effects = {.can_fail = true},
    .define = {.view = define},
    .kernel = {.view = build},
    .cuts_box = true,
    .compose = compose,
};

}  // namespace zephon
