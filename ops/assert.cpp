// assert check.
#include "ops/tensor_op.h"

namespace zephon {
namespace {

// Lazy: the message is not needed where the condition holds.
ScalarResult define(const Expr&, std::span<const ScalarArg> args) {
  if (args[0].failure != nullptr) return ScalarResult::forward(args[0].failure);
  if (args[0].value.i != 0) return ScalarResult::of(Scalar::of_bool(true));
  if (args[1].failure != nullptr) return ScalarResult::forward(args[1].failure);
  return ScalarResult::fail("R0430", args[1].value.s);
}

bool run(NativeCall& call) {
  if (call.inputs[0].rank != 0 || *static_cast<const uint8_t*>(call.inputs[0].data) == 0) return false;
  if (!place_output(call, {})) return false;
  *static_cast<uint8_t*>(call.output->data) = 1;
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Check) = {
    .name = "check",
    .cls = OpClass::Pointwise,
    .signature = "condition: bool[...s], message: str[...s] -> bool[...s]",
    .summary = "True where the condition is true; where it is false the sample fails with `message`.",
    .prose = "What `assert` filters by. A failure of the message matters only where it is needed.",
    .example = "range(4) | filter check(index < 9, \"{index} is too large\")",
    .effects = {.can_fail = true},
    .define = {.scalar = define, .lazy = true},
    .kernel = {.native = run},
};

ZEPHON_OP_DEF(Assert) = {
    .name = "assert",
    .cls = OpClass::Composite,
    .signature = "stream, condition: bool, message: str -> stream",
    .summary = "A sample for which the condition is false fails, with the message.",
    .prose =
        "As any failure it ends the run, or is dealt with by the `on_error` below. It acts like a filter that is never "
        "false: "
        "if another filter of its region says false, the sample is dropped and does not fail. The message is text "
        "with holes, evaluated for the samples that fail.",
    .example = "range(4) | assert(index < 9, \"{index} is too large\")",
    .expansion = "filter check(condition, message)",
};

}  // namespace zephon
