#include "ops/stream_op.h"

namespace zephon {

ZEPHON_OP_DEF(Prefetch) = {
    .name = "prefetch",
    .cls = OpClass::Hint,
    .signature = "stream, buffer_size: int? >= 1 -> stream",
    .summary = "Asks for records to be kept ready ahead of their use; changes nothing in what is delivered.",
    .prose = "`buffer_size` counts records (batches where the program batches); without it the planner decides.",
    .example = "range(4) | prefetch(2)",
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

}  // namespace zephon
