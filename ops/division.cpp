// div (true division), floor_div, mod (both floor).
#include <fmt/format.h>

#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

ScalarResult float_result(const Expr& expr, double value) {
  return ScalarResult::of(Scalar::of_float(expr.type.elem, round_to(expr.type.elem, value)));
}

void infer_div(InferCall& call) {
  if (is_integer(call.result.elem)) call.result.elem = Elem::F64;
}

ScalarResult define_div(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  if (is_float(a.elem)) return float_result(expr, a.f / b.f);
  if (b.i == 0) return ScalarResult::fail(kBadArithmetic, fmt::format("division by zero: {} / 0", a.i));
  return float_result(expr, static_cast<double>(a.i) / static_cast<double>(b.i));
}

KVal build_div(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  if (is_float(args[0].elem)) return b.div(args[0], args[1]);
  b.fail_if(b.compare(Compare::Eq, args[1], int_like(b, args[1], 0)));
  return b.div(b.convert(Elem::F64, args[0]), b.convert(Elem::F64, args[1]));
}

// floor(a / b), and the remainder that has the sign of b.
std::pair<int64_t, int64_t> floor_divide(int64_t a, int64_t b) {
  if (b == -1) return {-a, 0};  // a is not the least i64 here
  int64_t q = a / b, r = a % b;
  if (r != 0 && (r < 0) != (b < 0)) return {q - 1, r + b};
  return {q, r};
}

ScalarResult define_floor_div(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  if (is_float(a.elem)) return float_result(expr, std::floor(round_to(a.elem, a.f / b.f)));
  if (b.i == 0) return ScalarResult::fail(kBadArithmetic, fmt::format("division by zero: {} // 0", a.i));
  if (b.i == -1 && a.i == integer_range(a.elem).first) {
    return ScalarResult::fail(kBadArithmetic, fmt::format("{} // -1 overflows {}", a.i, elem_name(a.elem)));
  }
  return ScalarResult::of(Scalar::of_int(a.elem, floor_divide(a.i, b.i).first));
}

ScalarResult define_mod(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  if (is_float(a.elem)) {
    double quotient = std::floor(round_to(a.elem, a.f / b.f));
    return float_result(expr, a.f - round_to(a.elem, b.f * quotient));
  }
  if (b.i == 0) return ScalarResult::fail(kBadArithmetic, fmt::format("division by zero: {} % 0", a.i));
  if (b.i == -1) return ScalarResult::of(Scalar::of_int(a.elem, 0));
  return ScalarResult::of(Scalar::of_int(a.elem, floor_divide(a.i, b.i).second));
}

// Makes the integer division safe to execute, after failing where it is not defined.
KVal safe_divisor(KernelBuilder& b, KVal divisor) {
  KVal one = int_like(b, divisor, 1);
  KVal zero = b.compare(Compare::Eq, divisor, int_like(b, divisor, 0));
  b.fail_if(zero);
  KVal minus = b.compare(Compare::Eq, divisor, int_like(b, divisor, -1));
  return b.select(b.bit_or(zero, minus), one, divisor);
}

// True where the truncating remainder has to be moved to the divisor's sign.
KVal off_by_one(KernelBuilder& b, KVal remainder, KVal divisor) {
  KVal zero = int_like(b, divisor, 0);
  KVal differ = b.compare(Compare::Lt, b.bit_xor(remainder, divisor), zero);
  return b.bit_and(differ, b.compare(Compare::Ne, remainder, zero));
}

KVal build_floor_div(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  KVal x = args[0], y = args[1];
  if (is_float(x.elem)) return b.floor(b.div(x, y));
  KVal minus = b.compare(Compare::Eq, y, int_like(b, y, -1));
  b.fail_if(b.bit_and(minus, b.compare(Compare::Eq, x, int_like(b, x, integer_range(x.elem).first))));
  KVal divisor = safe_divisor(b, y);
  KVal q = b.div(x, divisor);
  KVal off = off_by_one(b, b.rem(x, divisor), divisor);
  q = b.select(off, b.sub(q, int_like(b, q, 1)), q);
  return b.select(minus, b.sub(int_like(b, x, 0), x), q);
}

KVal build_mod(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  KVal x = args[0], y = args[1];
  if (is_float(x.elem)) return b.sub(x, b.mul(y, b.floor(b.div(x, y))));
  KVal divisor = safe_divisor(b, y);
  KVal r = b.rem(x, divisor);  // 0 for the divisor -1, which became 1
  return b.select(off_by_one(b, r, divisor), b.add(r, divisor), r);
}

}  // namespace

ZEPHON_OP_DEF(Div) = {
    .name = "div",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a / b, true division, with NumPy broadcasting.",
    .prose = "Integers are converted to f64 and give f64; dividing them by zero fails. Floats divide as IEEE 754 says.",
    .example = "range(3) | x = index / 4",
    .effects = {.can_fail = true},
    .define = {.scalar = define_div},
    .kernel = {.pointwise = build_div},
    .infer = infer_div,
    .promotes = true,
};

ZEPHON_OP_DEF(FloorDiv) = {
    .name = "floor_div",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a // b: the quotient rounded down, with NumPy broadcasting.",
    .prose = "Integers: dividing by zero fails. Floats: floor of the rounded quotient.",
    .example = "range(5) | x = (index - 2) // 2",
    .effects = {.can_fail = true},
    .define = {.scalar = define_floor_div},
    .kernel = {.pointwise = build_floor_div},
    .promotes = true,
};

ZEPHON_OP_DEF(Mod) = {
    .name = "mod",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a % b: what `a // b` leaves, with the sign of b; with NumPy broadcasting.",
    .prose = "Integers: dividing by zero fails. Floats: a - b * (a // b), each operation rounded.",
    .example = "range(5) | x = (index - 2) % 3",
    .effects = {.can_fail = true},
    .define = {.scalar = define_mod},
    .kernel = {.pointwise = build_mod},
    .promotes = true,
};

}  // namespace zephon
