#pragma once
// A merge whose rows are pairs of rows, one of each input (zip): by their place, or by a key.

#include <string>

#include "graph/graph.h"
#include "graph/op_def.h"

namespace zephon {

/// Its inputs are Indexed, of one size, and have no field in common; sample i is made of sample i of each, and any renumbering of
/// it is the same renumbering of each input. Such a merge has no row_op: it takes no rows in turn.
inline bool pairs_rows(const Node& node) {
  return node.op->cls == OpClass::Merge && node.op->kernel.row_op == nullptr && !node.predicate.valid();
}

/// Its predicate is the field that all inputs have, the key: for each sample of the first input, in order, the others
/// are read until the sample with an equal key is there. At most attr "buffer_size" samples of each wait for their
/// partners. A sample without a partner, or with a key that waits already, fails; what waits when the first input has
/// ended fails input by input, in order of arrival, then what has not been read.
inline bool joins_rows(const Node& node) { return node.op->cls == OpClass::Merge && node.predicate.valid(); }

/// A key as text, the same for equal keys and for no others; it has not failed.
std::string join_key(const Value& key);
/// Why a sample fails, code R0409. `input` has no partner for it: it has ended, or so many others wait that no more are
/// read.
Failure no_partner(const Node& node, const std::string& key, size_t input, bool ended);
/// `input` had the sample, and the first input none for it.
Failure never_asked_for(const Node& node, const std::string& key, size_t input);
Failure key_twice(const Node& node, const std::string& key, size_t input);

}  // namespace zephon
