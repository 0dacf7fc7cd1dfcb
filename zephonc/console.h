#pragma once
// Standard output and standard error. Figures for people.

#include <cstdint>
#include <string>
#include <string_view>

namespace zephon {

/// Writes to standard output, all of it. Returns an exit code: 0, or 2 after saying why it could not (closed pipe, full
/// disk).
int print(std::string_view text);
/// Writes a line to standard error.
void say(std::string_view line);
bool stderr_is_terminal();
/// Colour on standard error: a terminal, and neither NO_COLOR nor TERM=dumb.
bool stderr_colour();
int terminal_width();

std::string human_bytes(double bytes);      ///< "1.4 GiB"
std::string human_count(double count);      ///< "12,345"; "1.23 million" is never used: figures are copied
std::string human_seconds(double seconds);  ///< "340 ms", "2.1 s", "3:07", "1:02:03"

}  // namespace zephon
