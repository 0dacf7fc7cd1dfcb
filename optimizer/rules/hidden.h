#pragma once
// Parameters whose names begin with `$`: no program can give them, relaxed rules do.

#include <string_view>

#include "graph/signature.h"

namespace zephon::rules {

/// The expression's operator declares `name`, and it has its default, as a program leaves it.
inline bool is_unset(const Expr& expr, std::string_view name) {
  for (const Parameter& p : signature_of(*expr.op).parameters)
    for (const auto& [given, value] : expr.attrs)
      if (p.name == name && given == name) return p.default_value && value == *p.default_value;
  return false;
}

}  // namespace zephon::rules
