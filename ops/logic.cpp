// and or not where fill: false (for `or`: true) beats failure, and `where` needs only the chosen arm.
#include "ops/tensor_op.h"

namespace zephon {
namespace {

// Kleene: the deciding value decides alone; else the first failure; else the other value.
ScalarResult kleene(std::span<const ScalarArg> args, bool deciding) {
  for (const ScalarArg& a : args)
    if (a.failure == nullptr && (a.value.i != 0) == deciding) return ScalarResult::of(Scalar::of_bool(deciding));
  for (const ScalarArg& a : args)
    if (a.failure != nullptr) return ScalarResult::forward(a.failure);
  return ScalarResult::of(Scalar::of_bool(!deciding));
}

ScalarResult define_and(const Expr&, std::span<const ScalarArg> args) { return kleene(args, false); }
ScalarResult define_or(const Expr&, std::span<const ScalarArg> args) { return kleene(args, true); }
ScalarResult define_not(const Expr&, std::span<const ScalarArg> args) {
  return ScalarResult::of(Scalar::of_bool(args[0].value.i == 0));
}

ScalarResult define_where(const Expr&, std::span<const ScalarArg> args) {
  if (args[0].failure != nullptr) return ScalarResult::forward(args[0].failure);
  const ScalarArg& chosen = args[0].value.i != 0 ? args[1] : args[2];
  return chosen.failure != nullptr ? ScalarResult::forward(chosen.failure) : ScalarResult::of(chosen.value);
}

bool run_where_on_strings(NativeCall& call) {
  for (const TensorRef& input : call.inputs)
    if (input.rank != 0) return false;
  if (!is_string(call.output->elem) || !place_output(call, {})) return false;
  const TensorRef& chosen = call.inputs[*static_cast<const uint8_t*>(call.inputs[0].data) != 0 ? 1 : 2];
  *static_cast<StringRef*>(call.output->data) = *static_cast<const StringRef*>(chosen.data);
  return true;
}

}  // namespace

ZEPHON_OP_DEF(And) = {
    .name = "and",
    .cls = OpClass::Pointwise,
    .signature = "a: bool[...s], b: bool[...s] -> bool[...s]",
    .summary = "True where both are true, with NumPy broadcasting.",
    .prose = "False if either side is false, even if the other fails; else a failure of either side.",
    .example = "range(4) | x = index > 0 and index < 3",
    .define = {.scalar = define_and, .lazy = true},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.bit_and(args[0], args[1]); }},
    .conjunction = true,
};

ZEPHON_OP_DEF(Or) = {
    .name = "or",
    .cls = OpClass::Pointwise,
    .signature = "a: bool[...s], b: bool[...s] -> bool[...s]",
    .summary = "True where either is true, with NumPy broadcasting.",
    .prose = "True if either side is true, even if the other fails; else a failure of either side.",
    .example = "range(4) | x = index < 1 or index > 2",
    .define = {.scalar = define_or, .lazy = true},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.bit_or(args[0], args[1]); }},
};

ZEPHON_OP_DEF(Not) = {
    .name = "not",
    .cls = OpClass::Pointwise,
    .signature = "x: bool[...s] -> bool[...s]",
    .summary = "True where x is false.",
    .example = "range(4) | x = not (index < 2)",
    .define = {.scalar = define_not},
    .kernel = {.pointwise =
                   [](KernelBuilder& b, const Expr&, std::span<const KVal> args) {
                     return b.bit_xor(args[0], b.constant(Scalar::of_bool(true)));
                   }},
};

ZEPHON_OP_DEF(Where) = {
    .name = "where",
    .cls = OpClass::Pointwise,
    .signature = "condition: bool[...s], a: T[...s], b: T[...s] -> T[...s]",
    .summary = "a where the condition is true, else b, with NumPy broadcasting.",
    .prose = "A failure of the arm that is not chosen does not matter.",
    .example = "range(4) | x = where(index < 2, index, -1)",
    .define = {.scalar = define_where, .lazy = true},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.select(args[0], args[1], args[2]); },
               .native = run_where_on_strings},
    .promotes = true,
};

ZEPHON_OP_DEF(Fill) = {
    .name = "fill",
    .cls = OpClass::Pointwise,
    .signature = "condition: bool[...s], value: T[...s], x: T[...s] -> T[...s]",
    .summary =
        "`value` where the condition is true, else x, with NumPy broadcasting: `where` that keeps the type of x.",
    .prose = "A failure of what is not chosen does not matter. `u8` stays `u8`: nothing is promoted.",
    .example = "range(4) | x = fill(index < 2, 0, index)",
    .define = {.scalar = define_where, .lazy = true},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.select(args[0], args[1], args[2]); },
               .native = run_where_on_strings},
};

}  // namespace zephon
