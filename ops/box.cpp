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

// The inner box as one of the whole; false where it leaves the outer one.
bool place_within(const int64_t* outer, const int64_t* inner, int64_t* out) {
  for (int64_t d = 0; d < 2; ++d) {
    if (inner[d] < 0 || inner[d] > outer[d + 2] - inner[d + 2]) return false;
    if (__builtin_add_overflow(outer[d], inner[d], &out[d])) return false;
    out[d + 2] = inner[d + 2];
  }
  return true;
}

Value define_within(DefineCall& call) {
  for (size_t i = 0; i < 2; ++i)
    if (call.arg(i).any_failed()) return forward(call.arg(i));
  int64_t outer[4], inner[4], parts[4];
  for (int64_t i = 0; i < 4; ++i) {
    outer[i] = call.arg(0).at(i).i;
    inner[i] = call.arg(1).at(i).i;
  }
  if (!place_within(outer, inner, parts))
    return Value::failed(call.failure(kOutsideTensor, box_leaves(call.arg(1), outer[2], outer[3])));
  Value box(Elem::I64, {4});
  for (int64_t i = 0; i < 4; ++i) box.set(i, Scalar::of_int(Elem::I64, parts[i]));
  return box;
}

bool run_within(NativeCall& call) {
  const int64_t four[] = {4};
  return place_output(call, four) &&
         place_within(static_cast<const int64_t*>(call.inputs[0].data),
                      static_cast<const int64_t*>(call.inputs[1].data), static_cast<int64_t*>(call.output->data));
}

}  // namespace

ZEPHON_OP_DEF(BoxWithin) = {
    .name = "box_within",
    .cls = OpClass::Opaque,
    .signature = "outer: box[?, ?], inner: box[h, w] -> box[h, w]",
    .summary = "A box of what the box `outer` cuts out, as a box of the whole picture.",
    .prose = "Fails where `inner` leaves `outer`.",
    .example = "range(2) | x = box(2, 3, 5, 5).box_within(box(index, 1, 1, 2))",
    .effects = {.can_fail = true},
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_within},
    .kernel = {.native = run_within},
};

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
