// eq ne lt le gt ge, on numbers, bool and strings (by bytes).
#include <algorithm>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

template <class T>
bool holds(Compare c, const T& a, const T& b) {
  switch (c) {
    case Compare::Eq:
      return a == b;
    case Compare::Ne:
      return a != b;
    case Compare::Lt:
      return a < b;
    case Compare::Le:
      return a <= b;
    case Compare::Gt:
      return a > b;
    case Compare::Ge:
      return a >= b;
  }
  return false;
}

template <Compare kCompare>
ScalarResult define(const Expr&, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  bool result = is_string(a.elem)  ? holds(kCompare, std::string_view(a.s), std::string_view(b.s))
                : is_float(a.elem) ? holds(kCompare, a.f, b.f)
                                   : holds(kCompare, a.i, b.i);
  return ScalarResult::of(Scalar::of_bool(result));
}

template <Compare kCompare>
KVal build(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  return b.compare(kCompare, args[0], args[1]);
}

// Strings are not compiled: one loop over the broadcast elements.
template <Compare kCompare>
bool run_strings(NativeCall& call) {
  const TensorRef &a = call.inputs[0], &b = call.inputs[1];
  if (!is_string(a.elem)) return false;
  Shape shape(static_cast<size_t>(std::max(a.rank, b.rank)), 1);
  for (const TensorRef* x : {&a, &b})
    for (int32_t i = 0; i < x->rank; ++i) {
      int64_t& d = shape[shape.size() - static_cast<size_t>(x->rank - i)];
      if (d == 1) d = x->shape[i];
    }
  if (!place_output(call, shape)) return false;
  auto* out = static_cast<uint8_t*>(call.output->data);
  for (int64_t i = 0, n = count_of(shape); i < n; ++i) {
    Shape index = index_at(shape, i);
    out[i] =
        holds(kCompare, text_of(a, broadcast_flat(shape_of(a), index)), text_of(b, broadcast_flat(shape_of(b), index)));
  }
  return true;
}

}  // namespace

#define ZEPHON_COMPARISON(Constant, word, sign, pattern, text)                                     \
  ZEPHON_OP_DEF(Constant) = {                                                                      \
      .name = word,                                                                                \
      .cls = OpClass::Pointwise,                                                                   \
      .signature = "a: " pattern "[...s], b: " pattern "[...s] -> bool[...s]",                     \
      .summary = "a " sign " b: " text ", with NumPy broadcasting.",                               \
      .prose = "With NaN only `!=` is true. Strings compare by bytes.",                            \
      .example = "range(3) | x = index " sign " 1",                                                \
      .define = {.scalar = define<Compare::Constant>},                                             \
      .kernel = {.pointwise = build<Compare::Constant>, .native = run_strings<Compare::Constant>}, \
      .promotes = true,                                                                            \
  }
ZEPHON_COMPARISON(Eq, "eq", "==", "T", "equal");
ZEPHON_COMPARISON(Ne, "ne", "!=", "T", "not equal");
ZEPHON_COMPARISON(Lt, "lt", "<", "T", "less");
ZEPHON_COMPARISON(Le, "le", "<=", "T", "less or equal");
ZEPHON_COMPARISON(Gt, "gt", ">", "T", "greater");
ZEPHON_COMPARISON(Ge, "ge", ">=", "T", "greater or equal");

}  // namespace zephon
