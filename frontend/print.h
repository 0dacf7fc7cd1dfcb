// The program as written -> text: one canonical layout for each form, with every comment. What is printed reads back as
// the same tree, and printing it again gives the same text.
#pragma once

#include <string>
#include <string_view>

#include "frontend/ast.h"

namespace zephon {

enum class Form : uint8_t { Zpl, Yaml };

// By the ending of the name: .yaml and .yml are YAML.
Form form_of(std::string_view file_name);

// `text`: what `file` was read from, in the form `from`; blank lines are taken from there.
std::string print(const ast::File& file, std::string_view text, Form from, Form to);

// The tree without places, spelling and comments: equal texts, equal programs.
std::string tree_text(const ast::File& file);
std::string tree_text(const ast::Expr& expr);

}  // namespace zephon
