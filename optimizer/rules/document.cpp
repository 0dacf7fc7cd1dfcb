#include "optimizer/rules/document.h"

#include <fmt/format.h>

#include "optimizer/rules/all_rules.h"

namespace zephon {
namespace {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::Shape:
      return "shape of the program";
    case Phase::Order:
      return "order of the steps";
    case Phase::Merge:
      return "neighbours that are one step";
    case Phase::Expressions:
      return "expressions";
    case Phase::Relaxed:
      return "relaxed";
    case Phase::Physical:
      return "physical plan";
  }
  return "?";
}

}  // namespace

std::vector<RuleExample> examples_of(const Rule& rule) {
  std::vector<RuleExample> examples;
  bool expected = false;
  int number = 0;
  for (std::string_view rest = rule.examples; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string line(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    ++number;
    const bool fires = line.starts_with("fires");
    if (fires || line.starts_with("keeps")) {
      const size_t note = line.find("# ");
      examples.push_back({fires, note == std::string::npos ? "" : line.substr(note + 2), "", "", number});
      expected = false;
    } else if (line == "----") {
      expected = true;
    } else if (!examples.empty() && !line.empty()) {
      std::string& text = expected ? examples.back().expected : examples.back().program;
      text += (text.empty() ? "" : "\n") + line;
    }
  }
  return examples;
}

std::string document(const Rule& rule) {
  std::string text =
      fmt::format("## {}\n\n{}\n\n- law: `{}`\n- ends: {}\n", rule.name, rule.summary, rule.law, rule.ends);
  for (const RuleEntry& entry : all_rules()) {
    if (entry.rule != &rule) continue;
    text += fmt::format("- phase: {}: {}\n", phase_name(entry.phase), entry.reason);
    for (std::string_view before : entry.after) text += fmt::format("- after: `{}`\n", before);
  }
  if (!rule.relaxation.empty())
    text += fmt::format("- a relaxation: may change the data, off unless `--relax={}`\n", rule.relaxation);
  for (const Guard& guard : rule.guards) text += fmt::format("- only if {}\n", guard.name);
  return text;
}

}  // namespace zephon
