#pragma once
// Two values as a diff for people: what is expected with `-`, what was found with `+`.

#include <string>
#include <vector>

#include "graph/value.h"

namespace zephon {

/// A value with its companions (graph/leaf_path.h). Nothing is owned.
struct ComparedValue {
  const Value* value = nullptr;
  const Value* missing = nullptr;       ///< bool, of the whole or of what stands behind its dimensions; null: nowhere
  std::vector<const Value*> lengths{};  ///< of lists of lists, the outermost first
  std::string type{};                   ///< as people say it; empty: that of `value`
};

struct ValueDiff {
  std::string text;    ///< empty where both are equal
  int64_t first = -1;  ///< which element of what is expected is the first that differs, where there is one
};

/// A few of the elements that differ, each with its index, among what is equal around the first; where a list is longer
/// than the other, its last elements; both types where those differ; no `found`: it is missing. Each line is indented
/// by two columns.
///
///   x: i64[3], 1 of 3 elements differs
///       [0]  2
///     - [1]  4
///     + [1]  5
///       [2]  6
ValueDiff value_diff(const std::string& name, const ComparedValue& expected, const ComparedValue* found);

/// "i64[2] 1, 2": the type and the first elements.
std::string value_line(const Value& value);
std::string value_line(const ComparedValue& value);

}  // namespace zephon
