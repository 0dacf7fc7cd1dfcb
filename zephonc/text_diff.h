#pragma once
#include <string>
#include <string_view>

namespace zephon {

/// Line by line: "  " common, "- " only in `before`, "+ " only in `after`; empty where both are equal.
std::string text_diff(std::string_view before, std::string_view after);

}  // namespace zephon
