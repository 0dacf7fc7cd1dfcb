#include <fmt/format.h>

#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

void infer(InferCall& call) {
  Elem to = call.attrs.get<Elem>("to");
  call.result = call.args[0];
  call.result.elem = to;
  call.result.box.clear();
  if (is_string(to) != is_string(call.args[0].elem)) {
    call.error = fmt::format("`{}` does not become `{}` by a cast", elem_name(call.args[0].elem), elem_name(to));
  }
}

ScalarResult from_float(Elem to, double x) {
  if (to == Elem::Bool) return ScalarResult::of(Scalar::of_bool(x != 0));
  if (is_float(to)) return ScalarResult::of(Scalar::of_float(to, round_to(to, x)));
  if (std::isnan(x)) return ScalarResult::fail(kBadArithmetic, fmt::format("NaN does not become {}", elem_name(to)));
  auto [least, greatest] = integer_range(to);
  double rounded = std::nearbyint(x);
  if (rounded <= static_cast<double>(least)) return ScalarResult::of(Scalar::of_int(to, least));
  if (rounded >= static_cast<double>(greatest)) return ScalarResult::of(Scalar::of_int(to, greatest));
  return ScalarResult::of(Scalar::of_int(to, static_cast<int64_t>(rounded)));
}

ScalarResult from_integer(Elem to, int64_t x) {
  if (to == Elem::Bool) return ScalarResult::of(Scalar::of_bool(x != 0));
  if (to == Elem::F64) return ScalarResult::of(Scalar::of_float(to, static_cast<double>(x)));
  if (is_float(to)) return ScalarResult::of(Scalar::of_float(to, round_to(to, static_cast<float>(x))));
  auto [least, greatest] = integer_range(to);
  if (x < least || x > greatest) {
    return ScalarResult::fail(kBadArithmetic, fmt::format("{} is out of the range of {}", x, elem_name(to)));
  }
  return ScalarResult::of(Scalar::of_int(to, x));
}

ScalarResult define(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar& x = args[0].value;
  Elem to = expr.type.elem;
  if (is_float(x.elem)) return from_float(to, x.f);
  if (!is_string(x.elem)) return from_integer(to, x.i);
  if (to == Elem::Str && find_invalid_utf8(x.s)) return ScalarResult::fail(kBadText, "the bytes are not UTF-8");
  return ScalarResult::of(Scalar::of_string(to, x.s));
}

KVal integer_to_integer(KernelBuilder& b, KVal x, Elem to) {
  auto [least, greatest] = integer_range(to);
  auto [from_least, from_greatest] = integer_range(x.elem);
  if (from_least < least) b.fail_if(b.compare(Compare::Lt, x, int_like(b, x, least)));
  if (from_greatest > greatest) b.fail_if(b.compare(Compare::Gt, x, int_like(b, x, greatest)));
  return b.convert(to, x);
}

KVal float_to_integer(KernelBuilder& b, KVal x, Elem to) {
  // f32 holds the bounds of the small types exactly; the others go through f64.
  Elem work = x.elem == Elem::F64 || to == Elem::I32 || to == Elem::I64 ? Elem::F64 : Elem::F32;
  if (x.elem != work) x = b.convert(work, x);
  auto real = [&](double v) { return b.constant(Scalar::of_float(work, v)); };
  KVal nan = b.compare(Compare::Ne, x, x);
  b.fail_if(nan);
  x = b.round_even(b.select(nan, real(0), x));
  auto [least, greatest] = integer_range(to);
  // 2^63 - 1 is no double: the greatest one below 2^63 stands in, and 2^63 and above is chosen apart.
  double top = to == Elem::I64 ? 0x1.fffffffffffffp62 : static_cast<double>(greatest);
  KVal inside = b.minimum(b.maximum(x, real(static_cast<double>(least))), real(top));
  KVal result = b.convert(to, inside);
  if (to != Elem::I64) return result;
  return b.select(b.compare(Compare::Ge, x, real(0x1p63)), i64_of(b, greatest), result);
}

KVal build(KernelBuilder& b, const Expr& expr, std::span<const KVal> args) {
  KVal x = args[0];
  Elem to = expr.type.elem;
  if (x.elem == to) return x;
  if (to == Elem::Bool) {
    KVal zero = is_float(x.elem) ? b.constant(Scalar::of_float(x.elem, 0)) : int_like(b, x, 0);
    return b.compare(Compare::Ne, x, zero);
  }
  if (is_float(x.elem)) return is_float(to) ? b.convert(to, x) : float_to_integer(b, x, to);
  if (!is_float(to)) return integer_to_integer(b, x, to);
  if (to == Elem::F16 || to == Elem::BF16) return b.convert(to, b.convert(Elem::F32, x));
  return b.convert(to, x);
}

bool run_on_strings(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  if (!is_string(in.elem) || !place_output(call, shape_of(in))) return false;
  for (int64_t i = 0; i < in.size(); ++i) {
    if (call.output->elem == Elem::Str && in.elem != Elem::Str && find_invalid_utf8(text_of(in, i))) return false;
    static_cast<StringRef*>(call.output->data)[i] = static_cast<const StringRef*>(in.data)[i];
  }
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Cast) = {
    .name = "cast",
    .cls = OpClass::Pointwise,
    .signature = "x: T[...s], to: elem -> T[...s]",
    .summary = "x as another element type; `x.f32` is short for `cast(x, f32)`.",
    .prose =
        "Float to integer rounds half to even and saturates; NaN fails. Integer to integer fails where the type cannot "
        "hold the value. Integers round to floats once (to f16 and bf16 through f32). To bool: not equal to 0. str, "
        "bytes and path become one another; str must be UTF-8.",
    .example = "range(4) | x = (index / 2).i32",
    .effects = {.can_fail = true},
    .define = {.scalar = define},
    .kernel = {.pointwise = build, .native = run_on_strings},
    .infer = infer,
};

}  // namespace zephon
