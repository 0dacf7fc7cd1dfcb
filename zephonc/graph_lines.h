#pragma once
// A graph's text for people who compare two of them: steps from the source down, long ones over several lines.

#include <string>
#include <string_view>

namespace zephon {

/// `tree`: to_text(graph), output first. One step after another, sources first, as a program stands; the streams that
/// meet in a step stand above it, all but one set in. An assignment of several fields is a line a
/// field, the later ones with `;` before them.
std::string graph_lines(std::string_view tree);

/// An expression's text over lines of at most about `width` columns, broken where calls and arguments begin.
std::string folded(std::string_view text, size_t width = 96);

}  // namespace zephon
