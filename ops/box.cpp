#include "ops/tensor_op.h"

namespace zephon {
namespace {

Value define(DefineCall& call) {
  const Value &top = call.arg(0), &left = call.arg(1);
  if (top.any_failed()) return forward(top);
  if (left.any_failed()) return forward(left);
  Value box(Elem::I64, {4});
  const Attrs& attrs = call.expr().attrs;
  const int64_t parts[] = {top.at(0).i, left.at(0).i, attrs.integer("height"), attrs.integer("width")};
  for (int64_t i = 0; i < 4; ++i) box.set(i, Scalar::of_int(Elem::I64, parts[i]));
  return box;
}

bool run(NativeCall& call) {
  const int64_t four[] = {4};
  if (!place_output(call, four)) return false;
  auto* out = static_cast<int64_t*>(call.output->data);
  out[0] = *static_cast<const int64_t*>(call.inputs[0].data);
  out[1] = *static_cast<const int64_t*>(call.inputs[1].data);
  out[2] = call.expr->attrs.integer("height");
  out[3] = call.expr->attrs.integer("width");
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Box) = {
    .name = "box",
    .cls = OpClass::Opaque,
    .signature = "top: i64, left: i64, height: int >= 1, width: int >= 1 -> box[height, width]",
    .summary = "The box of `height` rows and `width` columns whose first pixel is (top, left).",
    .example = "range(2) | x = box(index, 0, 1, 2)",
    .define = {.tensor = define},
    .kernel = {.native = run},
};

}  // namespace zephon
