#include <fmt/format.h>

#include <cstring>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

void decode(std::string_view bytes, Elem elem, int64_t count, void* to) {
  std::memcpy(to, bytes.data(), bytes.size());
  make_nans_canonical(elem, to, count);
}

Value define(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return Value::failed(*argument.failure());
  const std::string bytes = argument.at(0).s;
  const auto elem = call.expr().attrs.get<Elem>("type");
  const int64_t count = call.expr().attrs.integer("count");
  const size_t wanted = static_cast<size_t>(count) * elem_size(elem);
  if (bytes.size() != wanted) {
    return Value::failed(call.failure("R0405", fmt::format("{} {} values are {} bytes, found {} bytes", count,
                                                           elem_name(elem), wanted, bytes.size())));
  }
  Value value(elem, {count});
  decode(bytes, elem, count, value.mutable_bytes().data());
  return value;
}

bool run(NativeCall& call) {
  const auto bytes = static_cast<const StringRef*>(call.inputs[0].data)->view();
  const auto elem = call.expr->attrs.get<Elem>("type");
  const int64_t count = call.expr->attrs.integer("count");
  TensorRef& out = *call.output;
  if (bytes.size() != static_cast<size_t>(count) * elem_size(elem)) return false;
  if (out.data && (out.rank != 1 || out.shape[0] != count)) return false;
  if (!out.data) out.data = call.alloc(bytes.size());
  out.rank = 1;
  out.shape[0] = count;
  out.elem = elem;
  decode(bytes, elem, count, out.data);
  return true;
}

void infer(InferCall& call) {
  const auto elem = call.attrs.get<Elem>("type");
  if (!is_numeric(elem)) {
    call.error = fmt::format("`{}` is not a type of numbers", elem_name(elem));
    return;
  }
  call.result = Type::tensor(elem, {Dim::of(call.attrs.integer("count"))});
}

}  // namespace

ZEPHON_OP_DEF(DecodeRaw) = {
    .name = "decode_raw",
    .cls = OpClass::Opaque,
    .signature = "bytes: bytes, type: elem, count: int >= 1 -> T[count]",
    .summary = "Reads bytes as `count` numbers of `type`, little-endian.",
    .prose = "Fails where the number of bytes is another. NaNs become the canonical NaN.",
    .example = "records(\"examples/data/ecg.i16\", size=1440) | signal = bytes.decode_raw(i16, 720)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 30, .ns_per_element = 0.1, .ns_per_input_byte = 0},
    .define = {.tensor = define},
    .kernel = {.native = run},
    .infer = infer,
};

}  // namespace zephon
