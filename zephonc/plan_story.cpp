#include "zephonc/plan_story.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "frontend/diag/picture.h"
#include "graph/op_def.h"
#include "optimizer/rules/all_rules.h"
#include "zephonc/console.h"
#include "zephonc/graph_lines.h"
#include "zephonc/session.h"
#include "zephonc/text_diff.h"

namespace zephon {
namespace {

std::string indented(std::string_view text, size_t indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.append(end > 0 ? indent : 0, ' ').append(text.substr(0, end)).append("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : std::string(between)) + part;
  return out;
}

// ---- why -----------------------------------------------------------------------------------------------------------

class Inquiry {
 public:
  Inquiry(const Session& session, const OptimizeOptions& how, const OptimizeResult& result, const Rule& rule)
      : session_(session), how_(how), result_(result), rule_(rule) {}

  /// `name`, if any, is the end of the path of the file that is meant, else it is the program's own. Says why not and
  /// returns false where there is no such line.
  bool look_at(uint32_t line, std::string_view name) {
    std::set<std::string> names;
    for (const Span& span : all_places()) {
      const std::string file(session_.sources().name(span.file));
      names.insert(file);
      if (name.empty() ? span.file == session_.file() : file == name || file.ends_with("/" + std::string(name)))
        file_ = span.file;
    }
    if (name.empty()) file_ = session_.file();
    line_ = line;
    const std::string shown(name.empty() ? session_.sources().name(file_) : name);
    if (!file_.valid()) {
      say(fmt::format("zephonc: the program has nothing from a file `{}`; {}", name,
                      did_you_mean(name, std::vector<std::string>(names.begin(), names.end()))));
      return false;
    }
    const uint32_t last = session_.sources().line_count(file_);
    if (line > last) {
      say(fmt::format("zephonc: `{}` has no line {}, it ends with line {}", shown, line, last));
      return false;
    }
    return true;
  }

  std::string answer() {
    std::string out = fmt::format("{}: {}\nlaw: {}\n", rule_.name, rule_.summary, rule_.law);
    if (const std::string reason = not_tried(); !reason.empty()) return out + "\nnot tried: " + reason + "\n";
    bool any = false;
    for (const Chapter& chapter : chapters(result_.trace)) {
      const Application& a = result_.trace.applied[chapter.first];
      if (a.rule != &rule_ ||
          std::none_of(chapter.places.begin(), chapter.places.end(), [&](const Span& place) { return here(place); }))
        continue;
      any = true;
      const size_t times = chapter.end - chapter.first;
      const std::string change = cost_change(chapter.cost_before, chapter.cost_after);
      std::string head = times > 1 ? fmt::format("applied {} times", times) : "applied";
      if (!change.empty()) head += ": " + change;
      std::vector<std::pair<std::string, std::string>> notes;
      if (a.before.empty() && !a.what.empty()) notes.emplace_back("what", folded(a.what));
      for (const Span& place : chapter.places) {
        if (!here(place)) continue;
        out += "\n" + picture(head, {place, ""}, notes, session_.sources());
        head = "and";
      }
      out += indented(change_text(result_.trace, chapter, 0), 4);
    }
    for (const Refusal& r : result_.trace.refused) {
      if (r.rule != &rule_ || !here(r.place)) continue;
      any = true;
      std::vector<std::pair<std::string, std::string>> notes;
      if (!r.what.empty()) notes.emplace_back("what", folded(r.what));
      out += "\n" + picture(fmt::format("refused: only where {}", r.guard), {r.place, ""}, notes, session_.sources());
    }
    return any ? out : out + "\n" + no_match();
  }

 private:
  std::string not_tried() const {
    if (how_.no_optimize) return "--no-optimize lets no rule do anything";
    if (how_.disabled.contains(rule_.name)) return fmt::format("--disable={} switches it off", rule_.name);
    if (!rule_.relaxation.empty() && !how_.relaxed.contains(rule_.relaxation))
      return fmt::format("it may change the data, and only --relax={} permits it", rule_.relaxation);
    return {};
  }

  bool here(const Span& span) const {
    if (line_ == 0) return true;
    if (!span.valid() || span.file != file_) return false;
    const SourceMap& sources = session_.sources();
    const uint32_t last = std::max(span.end, span.begin + 1) - 1;
    return sources.position(file_, span.begin).line <= line_ && line_ <= sources.position(file_, last).line;
  }

  std::vector<Span> all_places() const {
    std::vector<Span> out;
    const Graph& graph = session_.graph();
    for (NodeId id : graph.topological())
      if (graph.node(id).origin.valid()) out.push_back(graph.node(id).origin);
    for (size_t i = 0; i < graph.expr_count(); ++i)
      for (const Span& span : graph.expr({static_cast<int32_t>(i)}).origin)
        if (span.valid()) out.push_back(span);
    return out;
  }

  /// Lines on which the rule did something, or was refused.
  std::string elsewhere() const {
    std::set<std::string> applied, refused;
    for (const Application& a : result_.trace.applied)
      if (a.rule == &rule_ && a.place.valid()) applied.insert(line_text(session_, a.place));
    for (const Refusal& r : result_.trace.refused)
      if (r.rule == &rule_ && r.place.valid()) refused.insert(line_text(session_, r.place));
    std::vector<std::string> parts;
    if (!applied.empty()) parts.push_back(fmt::format("it was applied on {}", fmt::join(applied, ", ")));
    if (!refused.empty()) parts.push_back(fmt::format("it was refused on {}", fmt::join(refused, ", ")));
    return joined(parts, "; ");
  }

  std::string no_match() const {
    if (line_ == 0) return "its pattern occurs nowhere in this program\n";
    const std::string where = line_text(
        session_, {file_, session_.sources().line_begin(file_, line_), session_.sources().line_begin(file_, line_)});
    std::string out = fmt::format("its pattern does not occur at {}", where);
    // What stands there: the steps, and where none does, the expressions.
    const Graph& graph = session_.graph();
    std::vector<std::pair<Span, std::string>> found;
    for (NodeId id : graph.topological())
      if (here(graph.node(id).origin)) found.emplace_back(graph.node(id).origin, to_text(graph, id));
    if (found.empty()) {
      for (size_t i = 0; i < graph.expr_count(); ++i) {
        const ExprId id{static_cast<int32_t>(i)};
        for (const Span& span : graph.expr(id).origin)
          if (here(span) && graph.expr(id).op->cls != OpClass::Leaf) found.emplace_back(span, to_text(graph, id));
      }
      // The largest says most.
      std::stable_sort(found.begin(), found.end(),
                       [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
      if (found.size() > 1) found.resize(1);
    }
    if (found.empty()) {
      out += ": no step stands there\n";
    } else {
      out += "; there stands\n";
      Span shown;
      for (const auto& [span, text] : found) {
        if (span == shown) continue;
        shown = span;
        std::vector<std::pair<std::string, std::string>> notes;
        for (const auto& [other, step] : found)
          if (other == span) notes.emplace_back("step", folded(step));
        std::string drawn = picture("", {span, ""}, notes, session_.sources());
        out += drawn.substr(1);  // without the line for a headline
      }
    }
    const std::string others = elsewhere();
    return out + (others.empty() ? "its pattern occurs nowhere in this program\n" : others + "\n");
  }

  const Session& session_;
  const OptimizeOptions& how_;
  const OptimizeResult& result_;
  const Rule& rule_;
  uint32_t line_ = 0;  // 0: everywhere
  FileId file_;
};

}  // namespace

double plan_ns(const Plan& plan) {
  std::vector<double> rows(plan.nodes.size(), 0);
  double ns = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    double in = node.inputs.empty() ? 1 : 0;
    for (PlanNodeId input : node.inputs) in += rows[static_cast<size_t>(input.index)];
    ns += in * node.est_ns_per_row;
    rows[i] = in * node.est_rows;
  }
  return ns;
}

std::string cost_text(double ns) {
  if (ns <= 0) return "0";
  constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  for (; ns >= 999.5 && unit + 1 < std::size(kUnits); ++unit) ns /= 1000;
  return fmt::format("~{} {}", ns >= 99.95 ? fmt::format("{:.0f}", ns) : fmt::format("{:.3g}", ns), kUnits[unit]);
}

std::string line_text(const Session& session, const Span& span) {
  if (!span.valid()) return "";
  const std::string line = fmt::format("line {}", session.line_of(span));
  return span.file == session.file() ? line : fmt::format("{}, {}", session.sources().name(span.file), line);
}

namespace {

/// The lines of a diff without the columns that all of them leave empty.
std::string dedented(const std::string& diff) {
  constexpr std::string_view kSkipped = "  ...";
  std::vector<std::string_view> lines;
  size_t empty = std::string::npos;
  for (std::string_view rest = diff; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (lines.back() != kSkipped) empty = std::min(empty, lines.back().find_first_not_of(' ', 2));
  }
  std::string out;
  for (std::string_view line : lines) {
    const bool cut = line != kSkipped && empty != std::string::npos;
    out.append(line.substr(0, 2)).append(line.substr(cut ? empty : 2)).append("\n");
  }
  return out;
}

}  // namespace

std::string lines_text(const Session& session, const std::vector<Span>& places) {
  std::string out;
  std::set<std::string> seen;
  for (const Span& place : places) {
    std::string line = line_text(session, place);
    if (!seen.insert(line).second) continue;
    if (!out.empty() && line.starts_with("line ")) line.erase(0, 5);
    out += (out.empty() ? "" : ", ") + line;
  }
  return out;
}

std::string cost_change(double before, double after) {
  if (before == after) return "";
  return fmt::format("{} -> {} a sample", cost_text(before), cost_text(after));
}

std::vector<Chapter> chapters(const Trace& trace) {
  std::vector<Chapter> out;
  for (size_t i = 0; i < trace.applied.size(); ++i) {
    const Application& a = trace.applied[i];
    const Application* last = i > 0 ? &trace.applied[i - 1] : nullptr;
    const bool one_go = last != nullptr && !a.before.empty() && a.before == last->before && a.after == last->after;
    const bool goes_on = last != nullptr && a.place.valid() && a.place == last->place && a.step == last->step;
    if (last == nullptr || a.rule != last->rule || is_physical(*a.rule) || !(one_go || goes_on))
      out.push_back({i, i, 0, 0, {}});
    Chapter& chapter = out.back();
    chapter.end = i + 1;
    chapter.cost_before += a.cost_before;
    chapter.cost_after += a.cost_after;
    if (std::find(chapter.places.begin(), chapter.places.end(), a.place) == chapter.places.end())
      chapter.places.push_back(a.place);
  }
  return out;
}

std::string change_text(const Trace& trace, const Chapter& chapter, size_t context) {
  const std::string& before = trace.applied[chapter.first].before;
  // Texts end where they became too long.
  size_t last = chapter.end - 1;
  while (last > chapter.first && trace.applied[last].after.empty()) --last;
  return dedented(text_diff(graph_lines(before), graph_lines(trace.applied[last].after), context));
}

std::string steps_text(const Session& session, const OptimizeResult& result, double written_ns) {
  constexpr size_t kContext = 1, kTitle = 72;
  const std::vector<Application>& applied = result.trace.applied;
  if (applied.empty()) return fmt::format("no rule applied; a row of the source costs {}\n", cost_text(written_ns));
  std::string out;
  struct Sum {
    size_t times = 0;
    double ns = 0;
  };
  std::vector<std::pair<const Rule*, Sum>> sums;
  size_t number = 0;
  for (const Chapter& chapter : chapters(result.trace)) {
    const Application& a = applied[chapter.first];
    const size_t times = chapter.end - chapter.first;
    // What the person wrote there, where the text of the graph would be long.
    std::string what = a.what.size() <= kTitle ? a.what : session.text_of(a.place);
    if (what.size() > kTitle) what = what.substr(0, what.rfind(' ', kTitle)) + " ...";
    out += fmt::format("{}. {}: {}\n", ++number, a.rule->name,
                       joined({lines_text(session, chapter.places), times > 1 ? fmt::format("{} times", times) : "",
                               what, cost_change(chapter.cost_before, chapter.cost_after)},
                              "  "));
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& entry) { return entry.first == a.rule; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {a.rule, {}});
    sum->second.times += times;
    sum->second.ns += chapter.cost_before - chapter.cost_after;
    const std::string change = change_text(result.trace, chapter, kContext);
    out += indented(change, 3) + (change.empty() ? "" : "\n");
  }
  out += fmt::format("\n{:<36} {:>6}  {}\n", "rule", "times", "saves a sample");
  for (const auto& [rule, sum] : sums)
    out += fmt::format("{:<36} {:>6}  {}\n", rule->name, sum.times, sum.ns > 0 ? cost_text(sum.ns) : "-");
  const double planned = plan_ns(result.plan);
  const SearchReport& search = result.trace.search;
  if (search.pairs > 0)
    out += fmt::format("\nsearched for the cheapest order: {} ways to make {} streams, {} pairs of steps tried{}\n",
                       search.members, search.groups, search.pairs,
                       search.bounded ? "; the bound was met, there may be a cheaper one" : "");
  out += fmt::format("\na row of the source costs {} as written, {} as planned{}\n", cost_text(written_ns),
                     cost_text(planned), planned > 0 ? fmt::format(": {:.1f} times less", written_ns / planned) : "");
  return out;
}

int why(const Session& session, const OptimizeOptions& how, const OptimizeResult& result, const std::string& question) {
  const size_t at = question.find('@');
  const std::string name = question.substr(0, at);
  const Rule* rule = find_rule(name);
  for (const RuleEntry& entry : all_rules())
    if (rule == nullptr && !name.empty() && entry.rule->relaxation == name) rule = entry.rule;
  if (rule == nullptr) return unknown_rule(name);
  Inquiry inquiry(session, how, result, *rule);
  if (at != std::string::npos) {
    const size_t colon = question.rfind(':');
    const bool names_file = colon != std::string::npos && colon > at;
    const std::string number = question.substr((names_file ? colon : at) + 1);
    uint32_t line = 0;
    const char* end = number.data() + number.size();
    auto [stop, error] = std::from_chars(number.data(), end, line);
    if (error != std::errc() || stop != end || line == 0) {
      say(fmt::format("zephonc: `{}` names no line; write --why RULE@LINE, or RULE@FILE:LINE of an imported file",
                      question));
      return kExitUsage;
    }
    if (!inquiry.look_at(line, names_file ? question.substr(at + 1, colon - at - 1) : "")) return kExitUsage;
  }
  return print(inquiry.answer());
}

}  // namespace zephon
