#include "optimizer/engine/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "optimizer/rules/all_rules.h"

namespace zephon {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

std::string place_text(const SourceMap& sources, const Span& place, int32_t step) {
  return place.valid() ? sources.describe(place) : fmt::format("step {}", step);
}

std::string cost_text(double before, double after) {
  if (before == 0 && after == 0) return "";
  return fmt::format("  {:.4g} -> {:.4g} ns a sample", before, after);
}

bool stands_on(const SourceMap& sources, const Span& place, uint32_t line) {
  return line == 0 || (place.valid() && sources.position(place.file, place.begin).line == line);
}

}  // namespace

std::string line_diff(const std::string& before, const std::string& after) {
  // The longest common subsequence; graphs have few lines.
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out += fmt::format("  {}\n", a[i]);
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      out += fmt::format("- {}\n", a[i++]);
    } else {
      out += fmt::format("+ {}\n", b[j++]);
    }
  }
  return out;
}

std::string steps_text(const Trace& trace, const SourceMap& sources, bool costs) {
  std::string out;
  for (const Application& a : trace.applied) {
    out += fmt::format("{}{} at {}{}\n", out.empty() ? "" : "\n", a.rule->name, place_text(sources, a.place, a.step),
                       costs ? cost_text(a.cost_before, a.cost_after) : "");
    if (is_physical(*a.rule)) {
      if (!a.what.empty()) out += "  " + a.what + "\n";
    } else if (a.before != a.after) {
      out += line_diff(a.before, a.after);
    }
  }
  return out.empty() ? "no rule was applied\n" : out;
}

std::string why_text(const Trace& trace, const SourceMap& sources, std::string_view rule, uint32_t line) {
  std::string out;
  for (const Application& a : trace.applied) {
    if (a.rule->name != rule || !stands_on(sources, a.place, line)) continue;
    out +=
        fmt::format("applied at {}{}\n", place_text(sources, a.place, a.step), cost_text(a.cost_before, a.cost_after));
    if (!a.what.empty()) out += "  " + a.what + "\n";
  }
  for (const Refusal& r : trace.refused) {
    if (r.rule->name != rule || !stands_on(sources, r.place, line)) continue;
    out += fmt::format("refused at {}: only if {}\n", place_text(sources, r.place, r.step), r.guard);
    if (!r.what.empty()) out += "  " + r.what + "\n";
  }
  if (!out.empty()) return out;
  const Rule* known = find_rule(rule);
  if (!known) return fmt::format("no rule is called `{}`\n", rule);
  return fmt::format("{} matches nothing{}: {}\n", rule, line ? fmt::format(" on line {}", line) : " here", known->law);
}

}  // namespace zephon
