// extent check_shape: sizes that are known only when a sample is there.
#include <fmt/format.h>

#include <cstring>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

Value define_extent(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.whole_failed()) return forward(x);
  return Value::scalar(
      Scalar::of_int(Elem::I64, x.shape()[static_cast<size_t>(call.expr().attrs.integer("dimension"))]));
}

bool run_extent(NativeCall& call) {
  if (!place_output(call, {})) return false;
  *static_cast<int64_t*>(call.output->data) = call.inputs[0].shape[call.expr->attrs.integer("dimension")];
  return true;
}

void infer_extent(InferCall& call) {
  const int64_t dimension = call.attrs.integer("dimension");
  if (dimension >= static_cast<int64_t>(call.args[0].rank()))
    call.error = fmt::format("`{}` has no dimension {}: they count from 0", to_string(call.args[0]), dimension);
}

const std::vector<int64_t>& checked_dims(const Attrs& attrs) { return attrs.get<std::vector<int64_t>>("dims"); }

// Arguments 0 and 1 are the tensor and whether it is missing; the sizes that its `dims` must have follow.
Value define_check(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.whole_failed()) return forward(x);
  const Value& missing = call.arg(1);
  if (missing.any_failed()) return forward(missing);
  const Attrs& attrs = call.expr().attrs;
  const std::vector<int64_t>& dims = checked_dims(attrs);
  const auto& names = attrs.get<std::vector<std::string>>("names");
  Shape shape = x.shape();
  for (size_t i = 0; i < dims.size(); ++i) {
    const Value& size = call.arg(i + 2);
    if (size.any_failed()) return forward(size);
    const int64_t wanted = size.at(0).i;
    int64_t& found = shape[static_cast<size_t>(dims[i])];
    if (found != wanted && missing.at(0).i == 0)
      return Value::failed(call.failure(
          kShapesDiffer,
          fmt::format("{}, and this sample has shape [{}]{}", attrs.text("promise"), fmt::join(x.shape(), ", "),
                      names[i].empty() ? "" : fmt::format(": {} is {}", names[i], wanted))));
    found = wanted;
  }
  return missing.at(0).i != 0 ? Value(x.elem(), shape) : x;
}

bool run_check(NativeCall& call) {
  const TensorRef& x = call.inputs[0];
  const bool missing = *static_cast<const uint8_t*>(call.inputs[1].data) != 0;
  const std::vector<int64_t>& dims = checked_dims(call.expr->attrs);
  Shape shape(x.shape, x.shape + x.rank);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t wanted = *static_cast<const int64_t*>(call.inputs[i + 2].data);
    int64_t& found = shape[static_cast<size_t>(dims[i])];
    if (found != wanted && !missing) return false;
    found = wanted;
  }
  if (missing) {
    if (!place_output(call, shape)) return false;
    std::memset(call.output->data, 0, call.output->byte_size());
    return true;
  }
  if (!place_output(call, shape)) return false;
  if (call.output->byte_size() > 0) std::memcpy(call.output->data, x.data, call.output->byte_size());
  return true;
}

// Sizes known before the run are sizes of the result.
void infer_check(InferCall& call) {
  call.result = call.args[0];
  call.result.box.clear();
  const std::vector<int64_t>& dims = checked_dims(call.attrs);
  if (dims.size() + 2 != call.args.size() || call.attrs.get<std::vector<std::string>>("names").size() != dims.size()) {
    call.error = fmt::format("`check_shape` has {} dims, {} sizes and {} names", dims.size(), call.args.size() - 2,
                             call.attrs.get<std::vector<std::string>>("names").size());
    return;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= static_cast<int64_t>(call.args[0].rank())) {
      call.error = fmt::format("`{}` has no dimension {}: they count from 0", to_string(call.args[0]), dims[i]);
      return;
    }
    const Value* size = call.constants[i + 2];
    if (size && size->at(0).i >= 0) call.result.shape[static_cast<size_t>(dims[i])] = Dim::of(size->at(0).i);
  }
}

}  // namespace

ZEPHON_OP_DEF(Extent) = {
    .name = "extent",
    .cls = OpClass::Opaque,
    .signature = "x: T[...s], dimension: int >= 0 -> i64",
    .summary = "The size of one dimension of a tensor; dimensions count from 0.",
    .example = "range(2) | x = [[index, 1, 2], [3, 4, 5]].extent(1)",
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_extent},
    .kernel = {.native = run_extent},
    .infer = infer_extent,
    .shape_only = true,
};

ZEPHON_OP_DEF(CheckShape) = {
    .name = "check_shape",
    .cls = OpClass::Opaque,
    .signature = "x: T[...s], missing: bool, sizes: i64..., dims: ints >= 0, names: strings, promise: string -> T",
    .summary = "x, which fails where one of its `dims` has not the size given for it.",
    .prose =
        "What a contract checks by where a size is known only when the sample is there. Where `missing` is true, "
        "nothing "
        "is checked, and the result is zeros of these sizes. `names` says whose size each is, `promise` begins the "
        "message.",
    .example =
        "range(2) | x = [index, 1].check_shape(false, index + 2 - index, dims=[0], names=[\"n\"], promise=\"x is "
        "promised as i64[n]\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_element = 0.05},
    .define = {.tensor = define_check},
    .kernel = {.native = run_check},
    .infer = infer_check,
};

}  // namespace zephon
