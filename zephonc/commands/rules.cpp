// zephonc rules [NAME]: the rewrite rules, from their declarations. `--markdown` prints them all as a page.

#include <fmt/format.h>

#include "optimizer/rules/all_rules.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/session.h"

namespace zephon {
namespace {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::Shape:
      return "Shape of the program";
    case Phase::Order:
      return "Order of the steps";
    case Phase::Merge:
      return "Neighbours that are one step";
    case Phase::Expressions:
      return "Expressions";
    case Phase::Relaxed:
      return "Relaxations: may change the data, off unless named";
    case Phase::Physical:
      return "Physical: decided by the planner";
  }
  return "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

std::string page(const RuleEntry& entry) {
  const Rule& rule = *entry.rule;
  std::string out =
      fmt::format("### `{}`\n\n{}\n\n- Law: `{}`\n- Ends: {}\n", rule.name, rule.summary, rule.law, rule.ends);
  if (!rule.relaxation.empty()) out += fmt::format("- A relaxation: only with `--relax={}`\n", rule.relaxation);
  for (const Guard& guard : rule.guards) out += fmt::format("- Only where {}\n", guard.name);
  if (!entry.reason.empty()) out += fmt::format("- Its place: {}\n", entry.reason);
  if (!trimmed(rule.examples).empty()) out += fmt::format("\n```\n{}\n```\n", trimmed(rule.examples));
  return out;
}

std::string markdown() {
  std::string out =
      "# Rules\n\nGenerated from the declarations in rules/ by `zephonc rules --markdown`; a test compares it. Every "
      "one but the relaxations is exact: the delivered data does not change by a bit. `--disable=NAME` switches one "
      "off.\n";
  const RuleEntry* last = nullptr;
  for (const RuleEntry& entry : all_rules()) {
    if (last == nullptr || last->phase != entry.phase) out += fmt::format("\n## {}\n", phase_name(entry.phase));
    out += "\n" + page(entry);
    last = &entry;
  }
  return out;
}

std::string list() {
  std::string exact, relaxed;
  for (const RuleEntry& entry : all_rules()) {
    const Rule& rule = *entry.rule;
    if (rule.relaxation.empty())
      exact += fmt::format("  {:<36} {}\n", rule.name, rule.summary);
    else
      relaxed += fmt::format("  {:<36} {}\n", fmt::format("{} ({})", rule.relaxation, rule.name), rule.summary);
  }
  return exact +
         "\nIn the order in which they run. `zephonc rules NAME` tells more; `--disable=NAME` switches one off.\n"
         "\nRelaxations, which may change the data; off unless `--relax=NAME` permits one:\n" +
         relaxed + "\n`zephonc verify FILE --relax=NAME` measures by how much; docs/RELAXATIONS.md has figures.\n";
}

}  // namespace

int command_rules(const Options& options) {
  if (options.markdown) return print(markdown());
  if (options.name.empty()) return print(list());
  std::string pages;
  for (const RuleEntry& entry : all_rules())
    if (entry.rule->name == options.name || entry.rule->relaxation == options.name)
      pages += (pages.empty() ? "" : "\n") + page(entry);
  return pages.empty() ? unknown_rule(options.name) : print(pages);
}

}  // namespace zephon
