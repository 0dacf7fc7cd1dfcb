#pragma once
// A program written again: laid out, or in the other form. What is written reads back as the same program.

#include <optional>
#include <string>

#include "frontend/print.h"

namespace zephon {

/// The text of `content` in the form `to`; `name` says the form that it has. Nothing, `code` set and the reason said
/// where it does not parse.
std::optional<std::string> rewrite(const std::string& name, const std::string& content, Form to, int& code);

/// All of standard input.
std::string read_stdin();

}  // namespace zephon
