// field const data_const: where expressions begin. Whoever evaluates a graph knows what they hold.
#include "graph/op_def.h"

namespace zephon {

ZEPHON_OP_DEF(Field) = {
    .name = "field",
    .cls = OpClass::Leaf,
    .signature = "name: string -> T",
    .summary = "A field of the sample that reaches the step.",
    .example = "range(2) | x = index",
    .cost = {.ns_per_call = 0, .ns_per_element = 0},
};

ZEPHON_OP_DEF(Const) = {
    .name = "const",
    .cls = OpClass::Leaf,
    .signature = "-> T",
    .summary = "A value that the program states.",
    .example = "range(2) | x = 1",
    .cost = {.ns_per_call = 0, .ns_per_element = 0},
};

ZEPHON_OP_DEF(DataConst) = {
    .name = "data_const",
    .cls = OpClass::Leaf,
    .signature = "value: T[...s] -> T[...s]",
    .summary = "A value that is known once the data set is opened: the same for every sample, evaluated once.",
    .example =
        "files(\"examples/data/photos/*/*.jpg\")\n"
        "| label = dirs(\"examples/data/photos\").index_of(path.parent.name)",
    .cost = {.ns_per_call = 0, .ns_per_element = 0},
};

}  // namespace zephon
