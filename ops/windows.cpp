#include <fmt/format.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

int64_t step_of(const Attrs& attrs) { return attrs.has("step") ? attrs.integer("step") : attrs.integer("size"); }

void infer(InferCall& call) {
  int64_t size = call.attrs.integer("size"), step = step_of(call.attrs);
  const Dim& n = call.args[0].shape[0];
  if (n.is_static()) call.result.shape[0] = Dim::of(n.extent < size ? 0 : (n.extent - size) / step + 1);
}

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const>, std::span<int64_t> in,
                  std::string&) {
  in[0] = out[0] * step_of(expr.attrs) + out[1];
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  in[0] = b.add(b.mul(out[0], i64_of(b, step_of(expr.attrs))), out[1]);
}

}  // namespace

ZEPHON_OP_DEF(Windows) = {
    .name = "windows",
    .cls = OpClass::View,
    .signature = "x: T[n], size: int >= 1, step: int? >= 1 -> T[?, size]",
    .summary = "A signal as windows of `size` elements, one every `step` (without it: one after another).",
    .prose = "What does not fill a last window is left out; a signal shorter than one window gives none.",
    .example = "range(2) | x = [index, 1, 2, 3, 4].windows(2, step=1)",
    .define = {.view = define},
    .kernel = {.view = build},
    .infer = infer,
};

}  // namespace zephon
