// Everything that can be read stands in the page as HTML and SVG; page/page.js only marks what belongs together, by the
// JSON at the end. Every text that comes from a program passes through escaped(), or through the JSON writer and
// script_json().
#include "zephonc/plan_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "optimizer/engine/rule.h"
#include "optimizer/optimizer.h"
#include "zephonc/card_layout.h"
#include "zephonc/console.h"
#include "zephonc/plan_cards.h"
#include "zephonc/plan_story.h"
#include "zephonc/session.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

// Pixels. The font is one of fixed width, 0.6 of its size.
constexpr double kCharacter = 6.93, kRow = 18, kHead = 22, kPad = 10, kKernelHead = 15;
constexpr size_t kMostLabel = 46, kMostType = 20, kMostTitle = 62;

/// For HTML and SVG, as text or between double quotes. Bytes that are no UTF-8, and control characters, become U+FFFD.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t good = std::min(find_invalid_utf8(text).value_or(text.size()), text.size());
    for (char c : text.substr(0, good)) {
      const auto byte = static_cast<unsigned char>(c);
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
            out += "\xEF\xBF\xBD";
          else
            out += c;
      }
    }
    text.remove_prefix(good);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(1);
  }
  return out;
}

/// Of a page's script element: no text can end it.
std::string script_json(const Json& json) {
  std::string out;
  for (char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// At most `most` characters.
std::string cut(const std::string& text, size_t most) {
  if (characters(text) <= most) return text;
  std::string out;
  size_t count = 0;
  for (char c : text) {
    count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (count == most) break;
    out += c;
  }
  return out + "…";
}

class Page {
 public:
  Page(const Session& session, const OptimizeResult& result, const PlanFacts& facts, const Machine& machine)
      : session_(session),
        result_(result),
        facts_(facts),
        cards_(plan_cards(session, result, machine)),
        chapters_(chapters(facts.trace)) {
    for (size_t i = 0; i < chapters_.size(); ++i)
      for (size_t a = chapters_[i].first; a < chapters_[i].end; ++a) chapter_of_.push_back(i);
    find_files();
    for (const CardRow& row : cards_.planned.rows) planned_ns_ += row.ns;
  }

  std::string html() {
    const std::string written = graph(cards_.written, 0), planned = graph(cards_.planned, 1);
    std::string title = session_.program().name.empty() ? "pipeline" : session_.program().name;
    return fmt::format(
        R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="generator" content="zephonc {}">
<title>{}: plan</title>
<style>
{}</style>
</head>
<body>
{}<main>
{}{}{}{}{}</main>
<script type="application/json" id="data">{}</script>
<script>
{}</script>
</body>
</html>
)",
        ZEPHON_VERSION, escaped(title), page_asset("page.css"), header(title), source(),
        pane("written", "As written", fmt::format("{} steps", cards_.written.cards.size()), written,
             "<span><i class=\"was\"></i>replaced</span>"),
        pane("planned", "As planned", plan_one_line(result_.plan), planned,
             "<span><i class=\"new\"></i>made by a rule</span><span><i class=\"costs\"></i>cost</span>"),
        inspector(), rules(), script_json(data()), page_asset("page.js"));
  }

 private:
  // ---- places
  // --------------------------------------------------------------------------------------------------------

  /// The program's own file first, then those it imports. The texts of our composite operators are no files.
  void find_files() {
    add_file(session_.file());
    const std::set<std::string> imports(session_.program().imports.begin(), session_.program().imports.end());
    auto look = [&](const Span& span) {
      if (span.valid() && imports.contains(std::string(session_.sources().name(span.file)))) add_file(span.file);
    };
    for (const CardGraph* graph : {&cards_.written, &cards_.planned}) {
      for (const Card& card : graph->cards) std::for_each(card.places.begin(), card.places.end(), look);
      for (const CardRow& row : graph->rows) std::for_each(row.places.begin(), row.places.end(), look);
    }
  }
  void add_file(FileId file) {
    if (!file_number_.emplace(file.value, files_.size()).second) return;
    files_.push_back(file);
  }

  /// [file, first line, last line] of each; what covers another of them says nothing more.
  Json places(const std::vector<Span>& spans) const {
    std::set<std::array<size_t, 3>> seen;
    for (const Span& span : spans) {
      if (!span.valid()) continue;
      auto file = file_number_.find(span.file.value);
      if (file == file_number_.end()) continue;
      const SourceMap& sources = session_.sources();
      const uint32_t last = std::max(span.end, span.begin + 1) - 1;
      seen.insert({file->second, sources.position(span.file, span.begin).line, sources.position(span.file, last).line});
    }
    Json out = Json::array();
    for (const auto& place : seen) {
      const bool covers = std::any_of(seen.begin(), seen.end(), [&](const auto& other) {
        return other != place && other[0] == place[0] && place[1] <= other[1] && other[2] <= place[2];
      });
      if (!covers) out.push_back({place[0], place[1], place[2]});
    }
    return out;
  }

  // ---- the parts of the page
  // -----------------------------------------------------------------------------------------

  std::string header(const std::string& title) const {
    const double written = facts_.written_ns, planned = plan_ns(result_.plan), most = std::max({written, planned, 1.0});
    std::string out = fmt::format("<header>\n<h1>{}</h1>\n", escaped(title));
    out += fmt::format(
        "<div class=\"gain\" title=\"of CPU, by the cost model\"><span class=\"bars\"><i "
        "style=\"width:{:.0f}%\"></i><i style=\"width:{:.0f}%\"></i></span>"
        "<span>a row of the source: <b>{}</b> as written, <b>{}</b> as planned{}</span></div>\n",
        100 * written / most, 100 * planned / most, cost_text(written), cost_text(planned),
        planned > 0 && written > planned ? fmt::format(", <b>{:.1f}</b> times less", written / planned) : "");
    out += fmt::format("<div class=\"facts\">plan <code>{}</code>, seed {}</div>\n", escaped(result_.plan.hash),
                       result_.plan.seed);
    if (!facts_.relaxations.empty())
      out += fmt::format("<div class=\"relaxed\">relaxed: {}</div>\n",
                         escaped(fmt::format("{}", fmt::join(facts_.relaxations, ", "))));
    return out + "<button id=\"theme\" type=\"button\">light / dark</button>\n</header>\n";
  }

  static std::string pane(const std::string& id, const std::string& title, const std::string& note,
                          const std::string& svg, const std::string& legend) {
    return fmt::format(
        "<section id=\"{}\" class=\"pane\"><h2>{} <small>{}</small><span class=\"tools\">"
        "<span class=\"legend\">{}</span>"
        "<button type=\"button\" data-size=\"smaller\" title=\"smaller\">−</button>"
        "<button type=\"button\" data-size=\"larger\" title=\"larger\">+</button>"
        "<button type=\"button\" data-size=\"wide\" title=\"fit the width\">width</button>"
        "<button type=\"button\" data-size=\"whole\" title=\"show the whole graph\">all</button></span></h2>"
        "<div class=\"body\">{}</div></section>\n",
        id, title, escaped(note), legend, svg);
  }

  std::string source() const {
    // Lines that became something are worth pointing at.
    std::set<std::pair<size_t, size_t>> used;
    auto use = [&](const Json& list) {
      for (const Json& place : list)
        for (size_t line = place[1]; line <= place[2].get<size_t>(); ++line) used.emplace(place[0], line);
    };
    for (const CardGraph* graph : {&cards_.written, &cards_.planned}) {
      for (const Card& card : graph->cards) use(places(card.places));
      for (const CardRow& row : graph->rows) use(places(row.places));
    }
    std::string out = fmt::format("<section id=\"source\"><h2>Source <small>{}</small></h2><div class=\"body roving\">",
                                  escaped(session_.options().file));
    bool first = true;
    for (size_t f = 0; f < files_.size(); ++f) {
      if (f > 0) out += fmt::format("<div class=\"file\">{}</div>", escaped(session_.sources().name(files_[f])));
      out += "<ol class=\"code mono\">";
      const uint32_t count = session_.sources().line_count(files_[f]);
      for (uint32_t line = 1; line <= count; ++line) {
        const std::string_view text = session_.sources().line_text(files_[f], line);
        if (line == count && text.empty()) break;
        const bool uses = used.contains({f, line});
        out += fmt::format("<li id=\"l{}-{}\" data-line=\"{}-{}\"{}><span>{}</span></li>", f, line, f, line,
                           uses ? fmt::format(" class=\"uses\" tabindex=\"{}\"", first ? 0 : -1) : "", code(text));
        first = first && !uses;
      }
      out += "</ol>";
    }
    return out + "</div></section>\n";
  }

  /// A line with comments, strings and numbers marked.
  static std::string code(std::string_view line) {
    std::string out, plain;
    auto flush = [&] {
      out += escaped(plain);
      plain.clear();
    };
    auto span = [&](const char* name, std::string_view text) {
      flush();
      out += fmt::format("<span class=\"{}\">{}</span>", name, escaped(text));
    };
    for (size_t i = 0; i < line.size();) {
      size_t end = i + 1;
      if (line[i] == '#') {
        span("c", line.substr(i));
        end = line.size();
      } else if (line[i] == '"') {
        while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
        end = std::min(end + 1, line.size());
        span("s", line.substr(i, end - i));
      } else if (std::isalnum(static_cast<unsigned char>(line[i])) != 0 || line[i] == '_') {
        const bool number = std::isdigit(static_cast<unsigned char>(line[i])) != 0;
        auto part = [&](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (number && c == '.');
        };
        while (end < line.size() && part(line[end])) ++end;
        if (number)
          span("n", line.substr(i, end - i));
        else
          plain += line.substr(i, end - i);
      } else {
        plain += line[i];
      }
      i = end;
    }
    flush();
    return out;
  }

  static std::string inspector() {
    return "<section id=\"inspect\"><h2>Here <small id=\"kept\" hidden>kept; Esc lets go</small></h2>"
           "<div class=\"body\" id=\"about\" aria-live=\"polite\">"
           "<p class=\"hint\">Point at an operator, a line or a rule to see what belongs to it: types, shapes, cost, "
           "lines, and the "
           "rules that made it. A click keeps it.</p>"
           "<p class=\"hint\">Keyboard: Tab enters a graph or the source, ↑ ↓ walk it, ← → go to the same operator in "
           "the other "
           "graph, Enter keeps, Esc lets go.</p></div></section>\n";
  }

  static std::string diff(const std::string& text) {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      const char* tag = line.starts_with('-') ? "del" : line.starts_with('+') ? "ins" : nullptr;
      out += (tag != nullptr ? fmt::format("<{}>{}</{}>", tag, escaped(line), tag) : escaped(line)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out.empty() ? "" : fmt::format("<pre class=\"diff\">{}</pre>", out);
  }

  std::string entry(const char* id, const char* data, size_t i, const std::string& number, const Rule& rule,
                    const std::vector<Span>& places, const std::string& what, const std::string& saves,
                    const std::string& more) const {
    return fmt::format(
        "<li><details id=\"{}{}\" data-{}=\"{}\"><summary><span class=\"no\">{}</span><span class=\"rule "
        "mono\">{}</span>"
        "<span class=\"at\">{}</span><span class=\"what mono\">{}</span><span class=\"saves\">{}</span></summary>"
        "<div class=\"more\">{}</div></details></li>\n",
        id, i, data, i, number, escaped(rule.name), escaped(lines_text(session_, places)), escaped(cut(what, 200)),
        escaped(saves), more);
  }

  std::string rules() const {
    const Trace& trace = facts_.trace;
    std::string out = fmt::format(
        "<section id=\"rules\"><h2>Rules <small>{} application{}, in order; a click shows what it changed</small></h2>"
        "<div class=\"body\"><ol class=\"list\">\n",
        trace.applied.size(), trace.applied.size() == 1 ? "" : "s");
    for (size_t i = 0; i < chapters_.size(); ++i) {
      const Chapter& chapter = chapters_[i];
      const Application& a = trace.applied[chapter.first];
      const size_t times = chapter.end - chapter.first;
      out += entry("a", "app", i, std::to_string(i + 1), *a.rule, chapter.places,
                   (times > 1 ? fmt::format("{} times: ", times) : "") + a.what, arrow(chapter),
                   fmt::format("{}<code>{}</code><p>{}</p>", diff(change_text(trace, chapter, 1)), escaped(a.rule->law),
                               escaped(a.rule->summary)));
    }
    if (trace.applied.empty()) out += "<li class=\"more\">no rule found anything to do</li>";
    out += "</ol>";
    if (!trace.refused.empty()) {
      out += fmt::format(
          "<details class=\"refusals\"><summary>refused: {} time{}, by the guard that says so</summary>"
          "<ol class=\"list\">\n",
          trace.refused.size(), trace.refused.size() == 1 ? "" : "s");
      for (size_t i = 0; i < trace.refused.size(); ++i) {
        const Refusal& r = trace.refused[i];
        out += entry("x", "refusal", i, "", *r.rule, {r.place}, "only where " + std::string(r.guard), "",
                     fmt::format("<p>only where {}</p><p class=\"mono\">{}</p><code>{}</code>", escaped(r.guard),
                                 escaped(cut(r.what, 400)), escaped(r.rule->law)));
      }
      out += "</ol></details>";
    }
    return out + "</div></section>\n";
  }

  static std::string arrow(const Chapter& chapter) {
    if (chapter.cost_before == chapter.cost_after) return "";
    return fmt::format("{} → {}", cost_text(chapter.cost_before), cost_text(chapter.cost_after));
  }

  // ---- graphs
  // --------------------------------------------------------------------------------------------------------

  struct Size {
    double width = 0, height = 0;
  };

  static bool begins_kernel(const Card& card, size_t row) {
    return std::any_of(card.kernels.begin(), card.kernels.end(), [&](const CardKernel& k) { return k.first == row; });
  }

  static Size size_of(const CardGraph& graph, const Card& card) {
    size_t wide = characters(cut(card.title, kMostTitle));
    if (!card.note.empty()) wide += 2 + characters(cut(card.note, kMostType));
    for (size_t i = card.first_row; i < card.end_row; ++i)
      wide = std::max(
          wide, characters(cut(graph.rows[i].label, kMostLabel)) + 3 + characters(cut(graph.rows[i].type, kMostType)));
    const auto rows = static_cast<double>(card.end_row - card.first_row);
    return {std::max(static_cast<double>(wide), 12.0) * kCharacter + 2 * kPad + 8,
            kHead + (rows > 0 ? rows * kRow + static_cast<double>(card.kernels.size()) * (kKernelHead + 4) + 7 : 0)};
  }

  std::string graph(const CardGraph& graph, size_t which) const {
    std::vector<LayoutBox> boxes;
    for (const Card& card : graph.cards) {
      const Size size = size_of(graph, card);
      boxes.push_back({size.width, size.height, 0, 0, card.inputs});
    }
    const Layout layout = lay_out(std::move(boxes));
    std::string out = fmt::format(
        "<svg class=\"graph roving\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "width=\"{:.0f}\" "
        "height=\"{:.0f}\" data-width=\"{:.0f}\" data-height=\"{:.0f}\" role=\"group\" aria-label=\"{}\">\n"
        "<defs><marker id=\"tip{}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path class=\"tip\" d=\"M0 0.6 L8 4 L0 7.4 z\"/></marker></defs>\n",
        layout.width, layout.height, layout.width, layout.height, layout.width, layout.height,
        which == 0 ? "the program as written" : "the plan", which);
    const size_t card_base = which == 0 ? 0 : cards_.written.cards.size();
    for (const LayoutEdge& edge : layout.edges)
      out += fmt::format("<path class=\"edge\" d=\"{}\" marker-end=\"url(#tip{})\" data-from=\"{}\" data-to=\"{}\"/>\n",
                         edge.path, which, card_base + edge.from, card_base + edge.to);
    for (size_t i = 0; i < graph.cards.size(); ++i) out += card(graph, i, which, layout.boxes[i]);
    return out + "</svg>";
  }

  std::string card(const CardGraph& graph, size_t i, size_t which, const LayoutBox& box) const {
    const Card& card = graph.cards[i];
    const size_t id = (which == 0 ? 0 : cards_.written.cards.size()) + i;
    const size_t row_base = which == 0 ? 0 : cards_.written.rows.size();
    const double right = box.width - kPad;
    std::string out = fmt::format(
        "<g class=\"card\" id=\"c{}\" data-card=\"{}\" tabindex=\"{}\" role=\"button\" aria-label=\"{}\" "
        "transform=\"translate({:.1f} {:.1f})\">"
        "<rect class=\"frame\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\"/>"
        "<path class=\"head\" d=\"M1 {:.0f} V6 a5 5 0 0 1 5 -5 H{:.1f} a5 5 0 0 1 5 5 V{:.0f} z\"/>"
        "<text class=\"title\" x=\"{:.0f}\" y=\"15\">{}</text>",
        id, id, i == 0 ? 0 : -1, escaped(cut(card.text, 120)), box.x, box.y, box.width, box.height, kHead - 1,
        box.width - 6, kHead - 1, kPad, escaped(cut(card.title, kMostTitle)));
    if (!card.note.empty())
      out += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"15\" text-anchor=\"end\">{}</text>", right,
                         escaped(cut(card.note, kMostType)));
    // Rows stand beside the card's own parts, so that each is a target of its own.
    double y = kHead + 4;
    std::string rows;
    for (size_t k = card.first_row; k < card.end_row; ++k) {
      const CardRow& row = graph.rows[k];
      if (begins_kernel(card, k)) {
        const CardKernel& kernel = card.kernels[static_cast<size_t>(row.kernel)];
        const double height = static_cast<double>(kernel.end - kernel.first) * kRow + kKernelHead + 2;
        out += fmt::format(
            "<rect class=\"kernel\" x=\"4\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\"/>"
            "<text class=\"kernel-name\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>",
            y, box.width - 8, height, kPad, y + 11.5, escaped(kernel.name));
        y += kKernelHead;
      }
      rows += row_svg(row, row_base + k, y, box.width);
      y += kRow;
      if (row.kernel >= 0 && card.kernels[static_cast<size_t>(row.kernel)].end == k + 1) y += 4;
    }
    out += "</g>\n";
    if (!rows.empty()) out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", box.x, box.y, rows);
    return out;
  }

  std::string row_svg(const CardRow& row, size_t id, double y, double width) const {
    const char* state = row.state == CardRow::State::Made ? " made" : row.state == CardRow::State::Gone ? " gone" : "";
    std::string out = fmt::format(
        "<g class=\"row{}\" id=\"r{}\" data-row=\"{}\" tabindex=\"-1\" role=\"button\" aria-label=\"{}\">"
        "<rect class=\"hit\" x=\"5\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"3\"/>",
        state, id, id, escaped(cut(row.label, 120)), y, width - 10, kRow - 1);
    // Its part of what the plan costs, as the length of a bar behind it.
    const double part = planned_ns_ > 0 ? std::min(1.0, row.ns / planned_ns_) : 0;
    if (part >= 0.01)
      out += fmt::format("<rect class=\"heat\" x=\"5\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"3\"/>", y,
                         part * (width - 10), kRow - 1);
    out += fmt::format("<text class=\"label\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>", kPad, y + 12.6,
                       escaped(cut(row.label, kMostLabel)));
    if (!row.type.empty())
      out += fmt::format("<text class=\"type\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", width - kPad,
                         y + 12.6, escaped(cut(row.type, kMostType)));
    return out + "</g>\n";
  }

  // ---- what belongs together
  // -----------------------------------------------------------------------------------------

  Json row_json(const CardGraph& graph, const CardRow& row, size_t which) const {
    const size_t base = which == 0 ? 0 : cards_.written.rows.size();
    Json args = Json::array(), twins = Json::array();
    for (size_t arg : row.args) args.push_back(base + arg);
    for (size_t twin : row.twins) twins.push_back(twin + (which == 0 ? cards_.written.rows.size() : 0));
    std::string cost;
    if (row.ns > 0) {
      cost = cost_text(row.ns) + " a sample";
      if (which == 1 && planned_ns_ > 0) cost += fmt::format(", {:.0f}% of the operators", 100 * row.ns / planned_ns_);
    }
    std::string kernel;
    if (row.kernel >= 0) {
      const CardKernel& of = graph.cards[row.card].kernels[static_cast<size_t>(row.kernel)];
      kernel = fmt::format("{}, {} operators", of.name, of.end - of.first);
    }
    return {{"graph", which},
            {"text", row.text},
            {"type", row.type},
            {"cost", cost},
            {"kernel", kernel},
            {"state", row.state == CardRow::State::Made   ? "made"
                      : row.state == CardRow::State::Gone ? "gone"
                                                          : "same"},
            {"places", places(row.places)},
            {"args", args},
            {"twins", twins},
            {"apps", chapters_of(row.applications)}};
  }

  Json card_json(const Card& card) const {
    std::string steps;
    std::set<int32_t> numbers;
    for (int32_t step : card.steps) numbers.insert(step_number(step));
    return {{"text", card.text},
            {"fields", fmt::format("{}", fmt::join(card.fields, ", "))},
            {"cost", card.cost},
            {"steps", fmt::format("{}", fmt::join(numbers, ", "))},
            {"rows", card.end_row - card.first_row},
            {"places", places(card.places)},
            {"apps", chapters_of(card.applications)}};
  }

  std::set<size_t> chapters_of(const std::vector<size_t>& applications) const {
    std::set<size_t> out;
    for (size_t i : applications) out.insert(chapter_of_[i]);
    return out;
  }

  void add_touched(Json& out, std::span<const Touched> all) const {
    std::set<size_t> rows, cards;
    for (const Touched& touched : all) {
      for (size_t which = 0; which < 2; ++which) {
        for (size_t row : touched.rows[which]) rows.insert(row + (which == 0 ? 0 : cards_.written.rows.size()));
        for (size_t card : touched.cards[which]) cards.insert(card + (which == 0 ? 0 : cards_.written.cards.size()));
      }
    }
    out["rows"] = rows;
    out["cards"] = cards;
  }

  Json data() const {
    Json files = Json::array(), rows = Json::array(), cards = Json::array(), apps = Json::array(),
         refusals = Json::array();
    for (FileId file : files_) files.push_back(session_.sources().name(file));
    const CardGraph* graphs[] = {&cards_.written, &cards_.planned};
    for (size_t which = 0; which < 2; ++which) {
      for (const CardRow& row : graphs[which]->rows) rows.push_back(row_json(*graphs[which], row, which));
      for (const Card& card : graphs[which]->cards) cards.push_back(card_json(card));
    }
    const Trace& trace = facts_.trace;
    for (size_t i = 0; i < chapters_.size(); ++i) {
      const Chapter& chapter = chapters_[i];
      const Application& a = trace.applied[chapter.first];
      Json app{{"number", i + 1},
               {"rule", a.rule->name},
               {"summary", a.rule->summary},
               {"law", a.rule->law},
               {"what", cut(a.what, 1500)},
               {"cost", arrow(chapter)},
               {"places", places(chapter.places)}};
      add_touched(app, std::span(cards_.applications).subspan(chapter.first, chapter.end - chapter.first));
      apps.push_back(std::move(app));
    }
    for (size_t i = 0; i < trace.refused.size(); ++i) {
      const Refusal& r = trace.refused[i];
      Json refusal{{"rule", r.rule->name},
                   {"law", r.rule->law},
                   {"what", cut(r.what, 1500)},
                   {"guard", r.guard},
                   {"places", places({r.place})}};
      add_touched(refusal, std::span(cards_.refusals).subspan(i, 1));
      refusals.push_back(std::move(refusal));
    }
    return {{"files", files}, {"rows", rows}, {"cards", cards}, {"apps", apps}, {"refusals", refusals}};
  }

  const Session& session_;
  const OptimizeResult& result_;
  const PlanFacts& facts_;
  PlanCards cards_;
  std::vector<Chapter> chapters_;
  std::vector<size_t> chapter_of_;  // of each application
  double planned_ns_ = 0;
  std::vector<FileId> files_;
  std::map<uint32_t, size_t> file_number_;
};

}  // namespace

std::string plan_page(const Session& session, const OptimizeResult& result, const PlanFacts& facts,
                      const Machine& machine) {
  return Page(session, result, facts, machine).html();
}

}  // namespace zephon
