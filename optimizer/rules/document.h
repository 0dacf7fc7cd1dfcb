#pragma once
// The rules for people: RULES.md and `zephonc rules` are made of their declarations.

#include <string>
#include <string_view>
#include <vector>

#include "optimizer/engine/rule.h"

namespace zephon {

/// One section of Rule::examples.
struct RuleExample {
  bool fires = false;    ///< else `keeps`
  std::string note;      ///< after `#` on the first line
  std::string program;   ///< pipeline text, several lines
  std::string expected;  ///< keeps: the guard that refuses
  int line = 0;          ///< within the text, from 1
};
std::vector<RuleExample> examples_of(const Rule& rule);

/// Markdown of one rule: summary, law, why it ends, guards, place in the order.
std::string document(const Rule& rule);

}  // namespace zephon
