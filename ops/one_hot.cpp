#include <fmt/format.h>

#include <algorithm>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

Value define(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.whole_failed()) return forward(x);
  int64_t classes = call.expr().attrs.integer("classes");
  Shape shape = x.shape();
  shape.push_back(classes);
  Value out(Elem::F32, shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    bool failed = x.element_failed(i);
    int64_t at = failed ? 0 : x.at(i).i;
    bool outside = !failed && (at < 0 || at >= classes);
    for (int64_t c = 0; c < classes; ++c) {
      if (failed) {
        out.fail_element(i * classes + c, *x.failure());
      } else if (outside) {
        out.fail_element(i * classes + c, call.failure(kOutsideTensor, fmt::format("class {} of {}", at, classes)));
      } else {
        out.set(i * classes + c, Scalar::of_float(Elem::F32, c == at ? 1 : 0));
      }
    }
  }
  return out;
}

int64_t integer_at(const TensorRef& x, int64_t i) {
  switch (x.elem) {
    case Elem::U8:
      return static_cast<const uint8_t*>(x.data)[i];
    case Elem::U16:
      return static_cast<const uint16_t*>(x.data)[i];
    case Elem::I8:
      return static_cast<const int8_t*>(x.data)[i];
    case Elem::I16:
      return static_cast<const int16_t*>(x.data)[i];
    case Elem::I32:
      return static_cast<const int32_t*>(x.data)[i];
    default:
      return static_cast<const int64_t*>(x.data)[i];
  }
}

bool run(NativeCall& call) {
  const TensorRef& x = call.inputs[0];
  int64_t classes = call.expr->attrs.integer("classes");
  Shape shape(x.shape, x.shape + x.rank);
  shape.push_back(classes);
  if (!place_output(call, shape)) return false;
  auto* out = static_cast<float*>(call.output->data);
  std::fill_n(out, call.output->size(), 0.0f);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t at = integer_at(x, i);
    if (at < 0 || at >= classes) return false;
    out[i * classes + at] = 1;
  }
  return true;
}

}  // namespace

ZEPHON_OP_DEF(OneHot) = {
    .name = "one_hot",
    .cls = OpClass::Opaque,
    .signature = "x: I[...s], classes: int >= 1 -> f32[...s, classes]",
    .summary = "A new last dimension of `classes` numbers: 1 at place x, else 0.",
    .prose = "Fails where x is not in [0, classes).",
    .example = "range(3) | x = index.one_hot(3)",
    .effects = {.can_fail = true},
    .define = {.tensor = define},
    .kernel = {.native = run},
};

}  // namespace zephon
