// zephonc plan FILE: the program before and after the optimizer, and how it got there.

#include <fmt/format.h>

#include <charconv>

#include "optimizer/rules/all_rules.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/costs_file.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"
#include "zephonc/text_diff.h"

namespace zephon {
namespace {

std::string cost_change(double before, double after) {
  if (before == after) return "";
  return fmt::format("  ({} -> {} a sample)", human_seconds(before * 1e-9), human_seconds(after * 1e-9));
}

std::string place(const Session& session, const Span& span) {
  return span.valid() ? fmt::format("  line {}", session.line_of(span)) : "";
}

std::string steps_text(const Session& session, const OptimizeResult& result) {
  std::string out;
  size_t number = 0;
  for (const Application& a : result.trace.applied) {
    out += fmt::format("{}. {}: {}{}{}\n", ++number, a.rule->name, a.what, place(session, a.place),
                       cost_change(a.cost_before, a.cost_after));
    out += text_diff(a.before, a.after) + "\n";
  }
  return out.empty() ? "no rule applied\n" : out;
}

/// RULE or RULE@LINE: where it was applied, and which guard refused it.
int why(const Session& session, const OptimizeResult& result, const std::string& question) {
  size_t at = question.find('@');
  std::string name = question.substr(0, at);
  uint32_t line = 0;
  if (at != std::string::npos) {
    const char* end = question.data() + question.size();
    auto [stop, error] = std::from_chars(question.data() + at + 1, end, line);
    if (error != std::errc() || stop != end || line == 0) {
      say(fmt::format("zephonc: `{}` names no line; write --why RULE@LINE", question));
      return kExitUsage;
    }
  }
  const Rule* rule = find_rule(name);
  if (rule == nullptr) return unknown_rule(name);
  std::string out;
  auto here = [&](const Span& span) { return line == 0 || session.line_of(span) == line; };
  for (const Application& a : result.trace.applied) {
    if (a.rule != rule || !here(a.place)) continue;
    out += fmt::format("applied: {}{}{}\n", a.what, place(session, a.place), cost_change(a.cost_before, a.cost_after));
  }
  for (const Refusal& r : result.trace.refused) {
    if (r.rule != rule || !here(r.place)) continue;
    out += fmt::format("refused: {}{}: needs that {}\n", r.what, place(session, r.place), r.guard);
  }
  if (out.empty())
    out = fmt::format("{} found nothing to match{}\n", name, line > 0 ? fmt::format(" on line {}", line) : "");
  return print(fmt::format("{}: {}\nlaw: {}\n\n{}", name, rule->summary, rule->law, out));
}

}  // namespace

int command_plan(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  OptimizeOptions how;
  if (auto code = session.optimizer_options(how)) return *code;
  how.texts = options.steps || !options.why.empty();
  OptimizeResult result;
  if (auto code = session.optimize_program(how, result)) return *code;
  if (options.steps) return print(steps_text(session, result));
  if (!options.why.empty()) return why(session, result, options.why);

  const std::string title = fmt::format("{} ({})", options.file, options.stage);
  if (options.stage == "source") return print(session.sources().text(session.file()));
  bool physical = options.stage == "physical";
  const Graph& graph = options.stage == "typed" ? session.graph() : result.graph;
  if (options.format == "json") {
    return print(physical ? plan_json(result.plan, session.sources(), plan_options_json(options))
                          : graph_json(graph, session.sources(), options.stage));
  }
  if (options.format == "text") {
    if (!physical) return print(graph_text(graph, session.sources()));
    return print("as written\n" + graph_text(session.graph(), session.sources()) + "\nplanned\n" +
                 plan_text(result.plan, session.sources()));
  }
  std::string dot =
      physical ? plan_dot(result.plan, session.sources(), title) : graph_dot(graph, session.sources(), title);
  if (options.format == "dot") return print(dot);
  std::string error;
  auto svg = dot_to_svg(dot, error);
  if (!svg) {
    say("zephonc: " + error);
    return kExitRun;
  }
  return print(*svg);
}

}  // namespace zephon
