#pragma once
// A merge whose rows are pairs of rows: one of each input (zip).

#include "graph/graph.h"
#include "graph/op_def.h"

namespace zephon {

/// Its inputs are Indexed, of one size, and have no field in common; sample i is made of sample i of each, and any renumbering of
/// it is the same renumbering of each input. Such a merge has no row_op: it takes no rows in turn.
inline bool pairs_rows(const Node& node) {
  return node.op->cls == OpClass::Merge && node.op->kernel.row_op == nullptr;
}

}  // namespace zephon
