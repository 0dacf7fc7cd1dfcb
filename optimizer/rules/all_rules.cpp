#include "optimizer/rules/all_rules.h"

namespace zephon {

namespace rules {
// One array of names per entry; the last, empty name keeps arrays of nothing legal.
#define AFTER(...) \
  { __VA_ARGS__ __VA_OPT__(, ) "" }
#define ZEPHON_RULE(phase, Name, after, reason) static constexpr std::string_view k##Name##After[] = after;
#include "optimizer/rules/all_rules.def"
#undef ZEPHON_RULE
#undef AFTER
}  // namespace rules

namespace {
constexpr RuleEntry kEntries[] = {
#define ZEPHON_RULE(phase, Name, after, reason) \
  {Phase::phase, &rules::Name, std::span(rules::k##Name##After).first(std::size(rules::k##Name##After) - 1), reason},
#include "optimizer/rules/all_rules.def"
#undef ZEPHON_RULE
};
}  // namespace

std::span<const RuleEntry> all_rules() { return kEntries; }

const Rule* find_rule(std::string_view name) {
  for (const RuleEntry& entry : kEntries)
    if (entry.rule->name == name) return entry.rule;
  return nullptr;
}

}  // namespace zephon
