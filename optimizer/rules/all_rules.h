#pragma once
#include <span>
#include <string_view>

#include "optimizer/engine/rule.h"

namespace zephon {

namespace rules {
#define ZEPHON_RULE(phase, Name, after, reason) extern const Rule Name;
#include "optimizer/rules/all_rules.def"
#undef ZEPHON_RULE
}  // namespace rules

enum class Phase : uint8_t {
  Shape,        ///< of the program: what goes altogether
  Order,        ///< which step stands above which: downhill first, then by a search among all orders
  Merge,        ///< neighbours that are one step
  Expressions,  ///< inside the steps
  Relaxed,      ///< what may change the data, for those who permit it
  Physical,     ///< decided by the planner
};

/// One line of all_rules.def.
struct RuleEntry {
  Phase phase;
  const Rule* rule;
  std::span<const std::string_view> after;  ///< rules that stand before it
  std::string_view reason;                  ///< for its place
};

/// In the order in which they run.
std::span<const RuleEntry> all_rules();
const Rule* find_rule(std::string_view name);

}  // namespace zephon
