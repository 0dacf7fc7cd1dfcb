#pragma once
// A line diff of two texts, for people.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zephon {

/// Lines that differ with `-` and `+`, those that stay with a space; at most `context` of them around a change, and
/// `...` for the others. Empty if the texts are equal.
std::string text_diff(std::string_view before, std::string_view after, size_t context = SIZE_MAX);

}  // namespace zephon
