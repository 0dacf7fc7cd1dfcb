// height width len byte_length.
#include "ops/text_op.h"

namespace zephon {
namespace {

template <size_t kDim>
Value define(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.whole_failed()) return forward(x);
  return Value::scalar(Scalar::of_int(Elem::I64, x.shape()[kDim]));
}

template <size_t kDim>
bool run(NativeCall& call) {
  if (!place_output(call, {})) return false;
  *static_cast<int64_t*>(call.output->data) = call.inputs[0].shape[kDim];
  return true;
}

// Of a text its code points, of a tensor its first extent.
Value define_len(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.whole_failed()) return forward(x);
  if (x.rank() > 0) return Value::scalar(Scalar::of_int(Elem::I64, x.shape()[0]));
  return Value::scalar(Scalar::of_int(Elem::I64, code_points(x.at(0).s)));
}

bool run_len(NativeCall& call) {
  if (call.inputs[0].rank > 0) return run<0>(call);
  if (!place_output(call, {})) return false;
  *static_cast<int64_t*>(call.output->data) = code_points(text_of(call.inputs[0]));
  return true;
}

void infer_len(InferCall& call) {
  if (call.args[0].rank() == 0 && call.args[0].elem != Elem::Str)
    call.error = "`len` needs a text or a tensor, found `" + to_string(call.args[0]) + "`";
}

ScalarResult define_bytes(const Expr&, std::span<const ScalarArg> args) {
  return ScalarResult::of(Scalar::of_int(Elem::I64, static_cast<int64_t>(args[0].value.s.size())));
}

bool run_bytes(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  if (!place_output(call, shape_of(in))) return false;
  for (int64_t i = 0; i < in.size(); ++i)
    static_cast<int64_t*>(call.output->data)[i] = static_cast<int64_t>(text_of(in, i).size());
  return true;
}

bool count_bounds(const Attrs&, std::string_view, int64_t& least, int64_t&) {
  least = 0;
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Height) = {
    .name = "height",
    .cls = OpClass::Opaque,
    .signature = "image: T[h, w, ...c] -> i64",
    .summary = "The number of rows of a picture.",
    .example = "range(2) | x = [[index, 1, 2], [3, 4, 5]].height()",
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define<0>},
    .kernel = {.native = run<0>},
    .shape_only = true,
    .bounds = count_bounds,
};

ZEPHON_OP_DEF(Width) = {
    .name = "width",
    .cls = OpClass::Opaque,
    .signature = "image: T[h, w, ...c] -> i64",
    .summary = "The number of columns of a picture.",
    .example = "range(2) | x = [[index, 1, 2], [3, 4, 5]].width()",
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define<1>},
    .kernel = {.native = run<1>},
    .shape_only = true,
    .bounds = count_bounds,
};

ZEPHON_OP_DEF(Len) = {
    .name = "len",
    .cls = OpClass::Opaque,
    .signature = "x: T[...s] -> i64",
    .summary = "The number of code points of a text; the extent of the first dimension of a tensor.",
    .prose = "`byte_length` counts the bytes of a text, `grapheme_length` what a person sees as characters.",
    .example = "range(2) | x = [index, 1, 2].len() + \"sample {index}\".len()",
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_len},
    .kernel = {.native = run_len},
    .infer = infer_len,
    .shape_only = true,  // a text has no form that is only a shape
    .bounds = count_bounds,
};

ZEPHON_OP_DEF(ByteLength) = {
    .name = "byte_length",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s] -> i64[...s]",
    .summary = "The number of bytes of a string, path or file content.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.byte_length()",
    .define = {.scalar = define_bytes},
    .kernel = {.native = run_bytes},
    .bounds = count_bounds,
};

}  // namespace zephon
