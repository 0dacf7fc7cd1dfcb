#pragma once
#include "graph/op_def.h"
namespace zephon {
/// Every operator, alphabetical by name (ops/all_ops.def).
const OpTable& all_ops();
}  // namespace zephon
