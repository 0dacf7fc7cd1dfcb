#include "ops/stream_op.h"

namespace zephon {
namespace {

std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op) return std::nullopt;
  return MergedStep{outer.op, outer.attrs};
}

}  // namespace

ZEPHON_OP_DEF(Cache) = {
    .name = "cache",
    .cls = OpClass::Hint,
    .signature = "stream -> stream",
    .summary =
        "Keeps in memory what is made above it, so that later epochs and passes need not make it again; changes "
        "nothing in what is delivered.",
    .prose =
        "What is drawn differs from epoch to epoch, so nothing random may stand above it but the order (`shuffle`, "
        "`mix`). Half of `--memory` may be kept, less where the rest would not be enough to run; samples that find "
        "no room are made again each time. Failures and what filters drop are kept too. Nothing is kept from run to "
        "run. Where streams are merged or batches cut above it, what the steps right above those make is kept.",
    .example = "range(4) | x = sqrt(f64(index)) | cache() | repeat(2)",
    .algebra = {.keeps_rows = true, .merge = merge},
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

}  // namespace zephon
