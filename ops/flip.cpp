#include "ops/tensor_op.h"

namespace zephon {
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

}  // namespace

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
};

}  // namespace zephon
