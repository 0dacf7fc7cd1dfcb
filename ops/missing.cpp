// is_missing default choose: values that may be missing. Their type is kept by the front end, which hands the value
// (zeros where it is missing) and whether it is missing to composites; no other operator ever sees either.
#include <fmt/format.h>

#include <cstring>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

Value define_choose(DefineCall& call) {
  const Value& condition = call.arg(0);
  if (condition.any_failed()) return forward(condition);
  return call.arg(condition.at(0).i != 0 ? 1 : 2);
}

bool run_choose(NativeCall& call) {
  const TensorRef& chosen = call.inputs[*static_cast<const uint8_t*>(call.inputs[0].data) != 0 ? 1 : 2];
  if (!place_output(call, shape_of(chosen))) return false;
  if (chosen.byte_size() > 0) std::memcpy(call.output->data, chosen.data, chosen.byte_size());
  return true;
}

void infer_choose(InferCall& call) {
  const Type &a = call.args[1], &b = call.args[2];
  call.result = b;
  call.result.box.clear();
  if (a.rank() != b.rank()) {
    call.error = fmt::format("`{}` cannot stand for `{}`", to_string(a), to_string(b));
    return;
  }
  for (size_t i = 0; i < a.rank(); ++i)
    if (a.shape[i] != b.shape[i]) call.result.shape[i] = is_varying(b.shape[i]) ? varying_dim() : Dim::unknown();
}

}  // namespace

ZEPHON_OP_DEF(Choose) = {
    .name = "choose",
    .cls = OpClass::Opaque,
    .signature = "condition: bool, a: T[...s], b: T[...t] -> T[...t]",
    .summary = "a where the condition is true, else b, as a whole: their shapes may differ.",
    .prose = "A failure of what is not chosen does not matter. For each element: `where`.",
    .example = "range(4) | x = choose(index > 1, [index, index], [index])",
    .cost = {.ns_per_element = 0.1},
    .define = {.tensor = define_choose},
    .kernel = {.native = run_choose},
    .infer = infer_choose,
};

ZEPHON_OP_DEF(Default) = {
    .name = "default",
    .cls = OpClass::Composite,
    .signature = "x: maybe T[...s], value: T[...t] -> T[...s]",
    .summary = "x, or `value` where x is missing.",
    .prose =
        "For a list with missing elements `value` stands for each of them; for a list that may be missing as a whole "
        "it is a list. A failure of x, such as a value of the wrong type, is not a missing value.",
    .example = "jsonl(\"examples/data/reviews.jsonl\", schema={lang: str?}) | lang = default(lang, \"en\")",
    .expansion = "fill(x_missing, value, x)",
    .expansion_whole = "choose(x_missing, value, x)",
};

ZEPHON_OP_DEF(IsMissing) = {
    .name = "is_missing",
    .cls = OpClass::Composite,
    .signature = "x: maybe T[...s] -> bool[...s]",
    .summary = "Whether x is missing; of a list with missing elements, which of them are.",
    .prose = "What is missing is not a failure: `on_error` never sees it.",
    .example = "jsonl(\"examples/data/reviews.jsonl\", schema={lang: str?}) | filter not is_missing(lang)",
    .expansion = "x_missing",
};

}  // namespace zephon
