#include <cstring>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

void infer(InferCall& call) {
  for (const Type& t : call.args)
    if (t.rank() != call.args[0].rank()) call.error = "the items have different ranks";
  call.result = call.args[0];
  call.result.box.clear();
  call.result.shape.insert(call.result.shape.begin(), Dim::of(static_cast<int64_t>(call.args.size())));
  if (call.result.rank() > kMaxRank) call.error = "the rank grows too large";
}

Value define(DefineCall& call) {
  for (size_t i = 0; i < call.arg_count(); ++i)
    if (call.arg(i).whole_failed()) return forward(call.arg(i));
  Shape shape = call.arg(0).shape();
  int64_t size = call.arg(0).size();
  shape.insert(shape.begin(), static_cast<int64_t>(call.arg_count()));
  Value out(call.expr().type.elem, shape);
  for (size_t i = 0; i < call.arg_count(); ++i) {
    const Value& item = call.arg(i);
    if (item.shape() != call.arg(0).shape())
      return Value::failed(call.failure(kShapesDiffer, "the items have different shapes"));
    for (int64_t k = 0; k < size; ++k) {
      int64_t to = static_cast<int64_t>(i) * size + k;
      if (item.element_failed(k)) {
        out.fail_element(to, *item.failure());
      } else {
        out.set(to, item.at(k));
      }
    }
  }
  return out;
}

bool run(NativeCall& call) {
  const TensorRef& first = call.inputs[0];
  Shape shape(first.shape, first.shape + first.rank);
  for (const TensorRef& item : call.inputs)
    if (!std::equal(shape.begin(), shape.end(), item.shape, item.shape + item.rank)) return false;
  shape.insert(shape.begin(), static_cast<int64_t>(call.inputs.size()));
  if (!place_output(call, shape)) return false;
  auto* out = static_cast<uint8_t*>(call.output->data);
  for (const TensorRef& item : call.inputs) {
    if (item.byte_size() > 0) std::memcpy(out, item.data, item.byte_size());
    out += item.byte_size();
  }
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Stack) = {
    .name = "stack",
    .cls = OpClass::Opaque,
    .signature = "items: T[...s]... -> T",
    .summary = "[a, b, c]: items of one shape along a new first dimension.",
    .example = "range(2) | x = [index, index + 1]",
    .effects = {.can_fail = true},
    .define = {.tensor = define},
    .kernel = {.native = run},
    .infer = infer,
    .promotes = true,
};

}  // namespace zephon
