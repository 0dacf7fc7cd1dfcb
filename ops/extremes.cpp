// minimum maximum clamp.
#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// IEEE 754-2019 minimum and maximum: NaN if either is NaN, -0 below +0.
double extreme(double a, double b, bool least) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) == least ? a : b;
  return (a < b) == least ? a : b;
}

template <bool kLeast>
ScalarResult define(const Expr&, std::span<const ScalarArg> args) {
  const Scalar &a = args[0].value, &b = args[1].value;
  if (is_float(a.elem)) return ScalarResult::of(Scalar::of_float(a.elem, extreme(a.f, b.f, kLeast)));
  return ScalarResult::of((a.i < b.i) == kLeast ? a : b);
}

}  // namespace

ZEPHON_OP_DEF(Minimum) = {
    .name = "minimum",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "The lesser of a and b, element by element, with NumPy broadcasting.",
    .prose = "IEEE 754-2019 minimum: NaN if either is NaN; -0 is less than +0. `min` is that of a whole tensor.",
    .example = "range(4) | x = minimum(index, 2)",
    .define = {.scalar = define<true>},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.minimum(args[0], args[1]); }},
    .promotes = true,
};

ZEPHON_OP_DEF(Maximum) = {
    .name = "maximum",
    .cls = OpClass::Pointwise,
    .signature = "a: N[...s], b: N[...s] -> N[...s]",
    .summary = "The greater of a and b, element by element, with NumPy broadcasting.",
    .prose = "IEEE 754-2019 maximum: NaN if either is NaN; +0 is greater than -0. `max` is that of a whole tensor.",
    .example = "range(4) | x = maximum(index, 2)",
    .define = {.scalar = define<false>},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.maximum(args[0], args[1]); }},
    .promotes = true,
};

ZEPHON_OP_DEF(Clamp) = {
    .name = "clamp",
    .cls = OpClass::Composite,
    .signature = "x: N[...s], low: N[...s], high: N[...s] -> N[...s]",
    .summary = "x, but not below `low` and not above `high`; with NumPy broadcasting.",
    .prose = "minimum(maximum(x, low), high): `high` wins where low > high; NaN stays NaN.",
    .example = "range(5) | x = index.clamp(1, 3)",
    .expansion = "minimum(maximum(x, low), high)",
    .promotes = true,
};

}  // namespace zephon
