#pragma once
// Two values as a diff for people: what is expected with `-`, what was found with `+`.

#include <string>

#include "graph/value.h"

namespace zephon {

/// Index of the first element that differs in a bit; -1 where type or shape differ, or nothing does.
int64_t first_difference(const Value& expected, const Value& found);

/// Empty where both are equal. A few of the elements that differ, each with its index, among what is equal around the
/// first; both types where those differ; no `found`: it is missing. Each line is indented by two columns.
///
///   x: i64[3], 1 of 3 elements differs
///       [0]  2
///     - [1]  4
///     + [1]  5
///       [2]  6
std::string value_diff(const std::string& name, const Value& expected, const Value* found);

/// "i64[2] 1, 2": the type and the first elements.
std::string value_line(const Value& value);

}  // namespace zephon
