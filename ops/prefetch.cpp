#include "ops/stream_op.h"

namespace zephon {
namespace {

// As many as either asks for; where the planner may decide for one, it may.
std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op) return std::nullopt;
  const bool decided = inner.attrs.has("buffer_size") && outer.attrs.has("buffer_size");
  const bool more = decided ? outer.attrs.integer("buffer_size") > inner.attrs.integer("buffer_size")
                            : inner.attrs.has("buffer_size");
  return MergedStep{outer.op, more ? outer.attrs : inner.attrs};
}

}  // namespace

ZEPHON_OP_DEF(Prefetch) = {
    .name = "prefetch",
    .cls = OpClass::Hint,
    .signature = "stream, buffer_size: int? >= 1 -> stream",
    .summary = "Asks for records to be kept ready ahead of their use; changes nothing in what is delivered.",
    .prose = "`buffer_size` counts records (batches where the program batches); without it the planner decides.",
    .example = "range(4) | prefetch(2)",
    .algebra = {.merge = merge},
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

}  // namespace zephon
