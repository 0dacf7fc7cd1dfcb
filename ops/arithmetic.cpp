// add sub mul neg abs: integers exact or failed, floats rounded once.
#include <fmt/format.h>

#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

__extension__ using Wide = __int128;

enum class Operation : uint8_t { Add, Sub, Mul };
constexpr char kSigns[] = {'+', '-', '*'};

ScalarResult integer_result(const Expr& expr, Wide value, const std::string& text) {
  auto [least, greatest] = integer_range(expr.type.elem);
  if (value < least || value > greatest) {
    return ScalarResult::fail(kBadArithmetic, fmt::format("{} overflows {}", text, elem_name(expr.type.elem)));
  }
  return ScalarResult::of(Scalar::of_int(expr.type.elem, static_cast<int64_t>(value)));
}

template <Operation kOperation>
ScalarResult define_binary(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  auto of = [](auto x, auto y) {
    return kOperation == Operation::Add ? x + y : kOperation == Operation::Sub ? x - y : x * y;
  };
  if (is_float(expr.type.elem)) {
    // The operands have the type's precision, so the f64 operation rounded to it has rounded once (for f32: Figueroa
    // 1995).
    return ScalarResult::of(Scalar::of_float(expr.type.elem, round_to(expr.type.elem, of(a.f, b.f))));
  }
  return integer_result(expr, of(Wide{a.i}, Wide{b.i}), fmt::format("{} {} {}", a.i, kSigns[int(kOperation)], b.i));
}

template <Operation kOperation>
KVal build_binary(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  KVal x = args[0], y = args[1];
  if (is_float(x.elem))
    return kOperation == Operation::Add ? b.add(x, y) : kOperation == Operation::Sub ? b.sub(x, y) : b.mul(x, y);
  return kOperation == Operation::Add   ? b.checked_add(x, y)
         : kOperation == Operation::Sub ? b.checked_sub(x, y)
                                        : b.checked_mul(x, y);
}

ScalarResult define_neg(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar& x = args[0].value;
  if (is_float(x.elem)) return ScalarResult::of(Scalar::of_float(x.elem, -x.f));
  return integer_result(expr, -Wide{x.i}, fmt::format("-({})", x.i));
}

KVal build_neg(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  // -0.0 - x is -x for every x, zeros included.
  if (is_float(args[0].elem)) return b.sub(b.constant(Scalar::of_float(args[0].elem, -0.0)), args[0]);
  return b.checked_sub(int_like(b, args[0], 0), args[0]);
}

ScalarResult define_abs(const Expr& expr, std::span<const ScalarArg> args) {
  const Scalar& x = args[0].value;
  if (is_float(x.elem)) return ScalarResult::of(Scalar::of_float(x.elem, std::fabs(x.f)));
  return integer_result(expr, x.i < 0 ? -Wide{x.i} : Wide{x.i}, fmt::format("abs({})", x.i));
}

KVal build_abs(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  KVal x = args[0];
  if (!is_float(x.elem)) b.fail_if(b.compare(Compare::Eq, x, int_like(b, x, integer_range(x.elem).first)));
  return b.abs(x);
}

}  // namespace

ZEPHON_OP_DEF(Add) = {
    .name = "add",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a + b, with NumPy broadcasting.",
    .prose = "u8, u16, i8 and i16 compute in i32. An integer sum that its type cannot hold fails.",
    .example = "range(3) | x = index + 10",
    .effects = {.can_fail = true},
    .define = {.scalar = define_binary<Operation::Add>},
    .kernel = {.pointwise = build_binary<Operation::Add>},
    .promotes = true,
};

ZEPHON_OP_DEF(Sub) = {
    .name = "sub",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a - b, with NumPy broadcasting.",
    .prose = "u8, u16, i8 and i16 compute in i32. An integer difference that its type cannot hold fails.",
    .example = "range(3) | x = index - 10",
    .effects = {.can_fail = true},
    .define = {.scalar = define_binary<Operation::Sub>},
    .kernel = {.pointwise = build_binary<Operation::Sub>},
    .promotes = true,
};

ZEPHON_OP_DEF(Mul) = {
    .name = "mul",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "a * b, with NumPy broadcasting.",
    .prose = "u8, u16, i8 and i16 compute in i32. An integer product that its type cannot hold fails.",
    .example = "range(3) | x = index * 10",
    .effects = {.can_fail = true},
    .define = {.scalar = define_binary<Operation::Mul>},
    .kernel = {.pointwise = build_binary<Operation::Mul>},
    .promotes = true,
};

ZEPHON_OP_DEF(Neg) = {
    .name = "neg",
    .cls = OpClass::Pointwise,
    .signature = "x: N[...s] -> N[...s]",
    .summary = "-x.",
    .prose = "u8, u16, i8 and i16 compute in i32. The least i32 and i64 have no negative: they fail.",
    .example = "range(3) | x = -index",
    .effects = {.can_fail = true},
    .define = {.scalar = define_neg},
    .kernel = {.pointwise = build_neg},
    .promotes = true,
};

ZEPHON_OP_DEF(Abs) = {
    .name = "abs",
    .cls = OpClass::Pointwise,
    .signature = "x: N[...s] -> N[...s]",
    .summary = "The magnitude of x.",
    .prose = "u8, u16, i8 and i16 compute in i32. The least i32 and i64 fail.",
    .example = "range(3) | x = (index - 1).abs()",
    .effects = {.can_fail = true},
    .define = {.scalar = define_abs},
    .kernel = {.pointwise = build_abs},
    .promotes = true,
};

}  // namespace zephon
