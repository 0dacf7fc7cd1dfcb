// exp log sin cos pow sqrt floor round on floats.
#include <cmath>

#include "graph/math_functions.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

// Every function computes in f64 and rounds once to the type: the f64 functions of graph/math_functions.h define it.
template <double (*kFunction)(double)>
ScalarResult define(const Expr& expr, std::span<const ScalarArg> args) {
  return ScalarResult::of(Scalar::of_float(expr.type.elem, round_to(expr.type.elem, kFunction(args[0].value.f))));
}

ScalarResult define_pow(const Expr& expr, std::span<const ScalarArg> args) {
  double y = plain::pow(args[0].value.f, args[1].value.f);
  return ScalarResult::of(Scalar::of_float(expr.type.elem, round_to(expr.type.elem, y)));
}

double floor_of(double x) { return std::floor(x); }
double round_of(double x) { return std::nearbyint(x); }  // to nearest, half to even: nobody changes the rounding mode
double sqrt_of(double x) { return std::sqrt(x); }

using Numbers = KernelNumbers;

template <class F>
KVal through_f64(KernelBuilder& b, std::span<const KVal> args, F&& function) {
  Numbers n(b);
  std::array<Numbers::F, 2> wide;
  for (size_t i = 0; i < args.size(); ++i)
    wide[i] = n.wrap(args[i].elem == Elem::F64 ? args[i] : b.convert(Elem::F64, args[i]));
  KVal result = function(n, wide).v;
  return args[0].elem == Elem::F64 ? result : b.convert(args[0].elem, result);
}

#define ZEPHON_BUILD(function)                                                                  \
  KVal build_##function(KernelBuilder& b, const Expr&, std::span<const KVal> args) {            \
    return through_f64(b, args, [](Numbers& n, auto& x) { return zephon::function(n, x[0]); }); \
  }
ZEPHON_BUILD(exp)
ZEPHON_BUILD(log)
ZEPHON_BUILD(sin)
ZEPHON_BUILD(cos)
#undef ZEPHON_BUILD

KVal build_pow(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  return through_f64(b, args, [](Numbers& n, auto& x) { return zephon::pow(n, x[0], x[1]); });
}

}  // namespace

ZEPHON_OP_DEF(Exp) = {
    .name = "exp",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "e to the power x.",
    .prose =
        "Our own function (graph/math_functions.h), below 1 ulp in f64, correctly rounded but for 1e-6 ulp in f32.",
    .example = "range(3) | x = index.f64.exp()",
    .cost = {.ns_per_element = 4},
    .define = {.scalar = define<plain::exp>},
    .kernel = {.pointwise = build_exp},
};

ZEPHON_OP_DEF(Log) = {
    .name = "log",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The natural logarithm; -inf for 0, NaN below.",
    .prose = "Our own function (graph/math_functions.h), 0.501 ulp in f64, correctly rounded but for 1e-6 ulp in f32.",
    .example = "range(1, 4) | x = index.f64.log()",
    .cost = {.ns_per_element = 8},
    .define = {.scalar = define<plain::log>},
    .kernel = {.pointwise = build_log},
};

ZEPHON_OP_DEF(Sin) = {
    .name = "sin",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The sine of x radians.",
    .prose = "Our own function (graph/math_functions.h), below 1 ulp over the whole range; NaN for infinities.",
    .example = "range(3) | x = index.f64.sin()",
    .cost = {.ns_per_element = 15},
    .define = {.scalar = define<plain::sin>},
    .kernel = {.pointwise = build_sin},
};

ZEPHON_OP_DEF(Cos) = {
    .name = "cos",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The cosine of x radians.",
    .prose = "Our own function (graph/math_functions.h), below 1 ulp over the whole range; NaN for infinities.",
    .example = "range(3) | x = index.f64.cos()",
    .cost = {.ns_per_element = 15},
    .define = {.scalar = define<plain::cos>},
    .kernel = {.pointwise = build_cos},
};

ZEPHON_OP_DEF(Pow) = {
    .name = "pow",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s], y: F[...s] -> F[...s]",
    .summary = "x to the power y, with NumPy broadcasting.",
    .prose = "Our own function (graph/math_functions.h), below 1 ulp in f64; special values as IEEE 754 pow.",
    .example = "range(3) | x = index.f64.pow(2)",
    .cost = {.ns_per_element = 15},
    .define = {.scalar = define_pow},
    .kernel = {.pointwise = build_pow},
    .promotes = true,
};

ZEPHON_OP_DEF(Sqrt) = {
    .name = "sqrt",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The square root, correctly rounded; NaN below 0.",
    .example = "range(3) | x = index.f64.sqrt()",
    .cost = {.ns_per_element = 2},
    .define = {.scalar = define<sqrt_of>},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&, std::span<const KVal> args) { return b.sqrt(args[0]); }},
};

ZEPHON_OP_DEF(Floor) = {
    .name = "floor",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The greatest whole number not above x, as a float.",
    .example = "range(3) | x = (index / 2).floor()",
    .define = {.scalar = define<floor_of>},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&, std::span<const KVal> args) { return b.floor(args[0]); }},
};

ZEPHON_OP_DEF(Round) = {
    .name = "round",
    .cls = OpClass::Pointwise,
    .signature = "x: F[...s] -> F[...s]",
    .summary = "The nearest whole number, the even one of two equally near; as a float.",
    .example = "range(4) | x = (index / 2).round()",
    .define = {.scalar = define<round_of>},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.round_even(args[0]); }},
};

}  // namespace zephon
