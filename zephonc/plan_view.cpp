#include "zephonc/plan_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "optimizer/engine/rule.h"
#include "optimizer/plan/render.h"
#include "zephonc/console.h"
#include "zephonc/plan_story.h"
#include "zephonc/steps.h"

extern char** environ;

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

uint32_t line_of(const SourceMap& sources, const Span& span) {
  return span.valid() ? sources.position(span.file, span.begin).line : 0;
}

std::string at_line(const SourceMap& sources, const Span& span) {
  return span.valid() ? fmt::format("line {}", line_of(sources, span)) : "";
}

std::string lines_of(const SourceMap& sources, const std::vector<Span>& spans) {
  std::string out;
  uint32_t last = 0;
  for (const Span& span : spans) {
    uint32_t line = line_of(sources, span);
    if (line == 0 || line == last) continue;
    out += (out.empty() ? "line " : ", ") + std::to_string(line);
    last = line;
  }
  return out;
}

struct TextRow {
  std::string left, middle, right;
};

std::string columns(const std::vector<TextRow>& rows) {
  // In code points, so that columns meet on a terminal.
  auto length = [](const std::string& text) {
    size_t n = 0;
    for (char c : text) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return n;
  };
  size_t left = 0, middle = 0;
  for (const TextRow& row : rows) {
    if (length(row.left) <= 72) left = std::max(left, length(row.left));
    if (length(row.middle) <= 48) middle = std::max(middle, length(row.middle));
  }
  std::string out;
  for (const TextRow& row : rows) {
    const size_t in_left = length(row.left), in_middle = length(row.middle);
    out += row.left;
    out.append((in_left < left ? left - in_left : 0) + 2, ' ');
    out += row.middle;
    out.append((in_middle < middle ? middle - in_middle : 0) + 2, ' ');
    out += row.right;
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string dot_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\l";
    } else {
      out += c;
    }
  }
  return out;
}

std::string dot_head(const std::string& title) {
  return fmt::format(
      "digraph zephon {{\n  label=\"{}\"; labelloc=t; rankdir=TB; fontname=\"sans-serif\";\n"
      "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f4f6fa\", color=\"#8090b0\", fontname=\"monospace\", "
      "fontsize=10];\n  edge [color=\"#8090b0\", fontname=\"monospace\", fontsize=9];\n",
      dot_escape(title));
}

Json json_of(const StreamType& type) {
  Json fields = Json::object();
  for (const Field& field : type.fields)
    if (!is_companion(field.name)) fields[field.name] = field_type_text(type, field);
  Json out{{"fields", fields}};
  if (type.batch) out["batch"] = {{"size", type.batch->size}, {"drop_remainder", type.batch->drop_remainder}};
  out["domain"] = type.domain == Domain::Indexed ? "indexed" : type.domain == Domain::Holes ? "holes" : "data";
  return out;
}

Json place_json(const SourceMap& sources, const Span& span) {
  if (!span.valid()) return {};
  const uint32_t last = std::max(span.end, span.begin + 1) - 1;
  const Position from = sources.position(span.file, span.begin), to = sources.position(span.file, last);
  return {{"file", sources.name(span.file)},
          {"line", from.line},
          {"column", from.column},
          {"end_line", to.line},
          {"text", sources.text(span)}};
}

Json applied_json(const SourceMap& sources, const Trace& trace) {
  Json out = Json::array();
  for (const Application& a : trace.applied) {
    out.push_back({{"rule", a.rule->name},
                   {"step", step_number(a.step)},
                   {"place", place_json(sources, a.place)},
                   {"ns_before", a.cost_before},
                   {"ns_after", a.cost_after}});
  }
  return out;
}

Json refused_json(const SourceMap& sources, const Trace& trace) {
  Json out = Json::array();
  for (const Refusal& r : trace.refused) {
    out.push_back({{"rule", r.rule->name},
                   {"step", step_number(r.step)},
                   {"place", place_json(sources, r.place)},
                   {"needs", r.guard}});
  }
  return out;
}

/// What a stage does, one line a thing: kernels with the expressions they make, filters.
std::vector<std::string> work_of(const Plan& plan, const PlanNode& node) {
  std::vector<std::string> out;
  for (const IndexStep& step : node.index) {
    out.push_back(step.arm >= 0 ? fmt::format("index: arm {} of {}", step.arm, to_text(plan.graph, step.node))
                                : fmt::format("index: {}", to_text(plan.graph, step.node)));
  }
  Graph graph = plan.graph;
  std::vector<std::string> lines = StageText(graph, node).lines();
  for (size_t i = 0; i < lines.size(); ++i) {
    double ns = node.steps[i].est_ns;
    out.push_back(lines[i] + (ns > 0 ? fmt::format("  ~{}", human_seconds(ns * 1e-9)) : ""));
  }
  return out;
}

/// "steps 1-2, 5, line 4, 7": the numbers that `--set` takes.
std::string places_of(const SourceMap& sources, const PlanNode& node) {
  std::vector<int32_t> steps = node.steps_written;
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::string out;
  for (size_t i = 0; i < steps.size();) {
    size_t end = i + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    out += fmt::format("{}{}", out.empty() ? (steps.size() > 1 ? "steps " : "step ") : ", ", step_number(steps[i]));
    if (end - i > 1) out += fmt::format("-{}", step_number(steps[end - 1]));
    i = end;
  }
  const std::string lines = lines_of(sources, node.origins);
  return out + (out.empty() || lines.empty() ? "" : ", ") + lines;
}

std::string outputs_of(const Plan& plan, const PlanNode& node) {
  std::string out;
  for (const OutputField& field : node.outputs) {
    const Type* type = field.expr.valid() ? &plan.graph.expr(field.expr).type : nullptr;
    out += (out.empty() ? "" : ", ") + field.name + (type != nullptr ? ": " + to_string(*type) : "");
  }
  return out;
}

}  // namespace

std::string type_change(const StreamType& type, const StreamType* before) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  // Most fields stay what and where they are; a program of n steps has n^2 of them.
  const bool companions = type.fields.has_companions() || (before != nullptr && before->fields.has_companions());
  const auto shared = [&](size_t i) {
    return before != nullptr && !companions && i % FieldList::kBlock == 0 &&
           type.fields.shares_block(before->fields, i);
  };
  for (size_t i = 0; i < type.fields.size(); ++i) {
    if (shared(i)) {
      i += FieldList::kBlock - 1;
      continue;
    }
    const Field& field = type.fields[i];
    if (companions && is_companion(field.name)) continue;
    const Field* old = nullptr;
    if (before != nullptr) {
      const bool in_place = i < before->fields.size() && before->fields[i].name == field.name;
      old = in_place ? &before->fields[i] : before->find(field.name);
    }
    if (old != nullptr && !companions && old->type == field.type) continue;
    if (old == nullptr || field_type_text(*before, *old) != field_type_text(type, field))
      add(fmt::format("{}: {}", field.name, field_type_text(type, field)));
  }
  if (before != nullptr) {
    for (size_t i = 0; i < before->fields.size(); ++i) {
      if (i < type.fields.size() && shared(i)) {
        i += FieldList::kBlock - 1;
        continue;
      }
      const std::string& name = before->fields[i].name;
      bool in_place = i < type.fields.size() && type.fields[i].name == name;
      if (!in_place && !is_companion(name) && type.find(name) == nullptr) add("-" + name);
    }
  }
  if (type.batch && (before == nullptr || !before->batch)) add(fmt::format("batch of {}", type.batch->size));
  return out;
}

std::string cost_of(const PlanNode& node) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (node.est_ns_per_row > 0) add(fmt::format("~{} a row", human_seconds(node.est_ns_per_row * 1e-9)));
  if (node.est_bytes_per_row >= 1) add(human_bytes(node.est_bytes_per_row) + " a row");
  if (node.chunk_rows > 0) add(fmt::format("chunks of {}", node.chunk_rows));
  if (node.concurrency > 0)
    add(node.concurrency == 1 ? "in order" : fmt::format("at most {} at once", node.concurrency));
  if (node.keeps_rows) add("kept");
  return out;
}

std::string headline_of(const Plan& plan, const PlanNode& node) {
  std::string kind(kind_name(node.kind));
  if (node.kind == PlanNode::Kind::Compute) return kind;  // its lines say what
  return node.node.valid() ? kind + " " + to_text(plan.graph, node.node) : kind;
}

std::string composite_step(const SourceMap& sources, const Node& node) {
  if (!node.predicate.valid() || !node.origin.valid()) return {};
  const std::string_view text = sources.text(node.origin);
  const std::string_view word = text.substr(0, text.find_first_of("(: \t\n"));
  const std::span<const OpDef* const> ops = all_ops().all();
  if (std::none_of(ops.begin(), ops.end(), [&](const OpDef* op) {
        return op->cls == OpClass::Composite && (op->surface.empty() ? op->name : op->surface) == word &&
               signature_of(*op).stream_out;
      }))
    return {};
  std::string out;
  for (char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

std::string graph_text(const Graph& graph, const SourceMap& sources, bool as_written) {
  std::vector<TextRow> rows;
  const StepNumbers number(graph);
  NodeId previous;
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    std::string inputs;
    // A chain reads from top to bottom; only joins say where they come from.
    if (node.inputs.size() > 1 || (node.inputs.size() == 1 && node.inputs[0] != previous)) {
      for (NodeId input : node.inputs) inputs += (inputs.empty() ? "#" : ", #") + number.of(input);
      inputs = "(" + inputs + ") ";
    }
    const StreamType* before = node.inputs.size() == 1 ? &graph.node(node.inputs[0]).type : nullptr;
    const std::string composite = composite_step(sources, node);
    std::string text = as_written && !composite.empty() ? composite : to_text(graph, id);
    if (!as_written && !composite.empty()) text += "  of " + composite;
    rows.push_back({fmt::format("#{:<5}{}{}", number.of(id), inputs, text), type_change(node.type, before),
                    at_line(sources, node.origin)});
    previous = id;
  }
  return columns(rows);
}

std::string graph_dot(const Graph& graph, const SourceMap& sources, const std::string& title) {
  std::string out = dot_head(title);
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    const StreamType* before = node.inputs.size() == 1 ? &graph.node(node.inputs[0]).type : nullptr;
    std::string label = to_text(graph, id) + "\n";
    std::string change = type_change(node.type, before), line = at_line(sources, node.origin);
    if (!change.empty()) label += change + "\n";
    if (!line.empty()) label += line + "\n";
    out += fmt::format("  n{} [label=\"{}\"];\n", id.index, dot_escape(label));
    for (NodeId input : node.inputs) out += fmt::format("  n{} -> n{};\n", input.index, id.index);
  }
  return out + "}\n";
}

std::string graph_json(const Graph& graph, const SourceMap& sources, const std::string& stage) {
  Json nodes = Json::array();
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    Json inputs = Json::array();
    for (NodeId input : node.inputs) inputs.push_back(input.index);
    nodes.push_back({{"id", id.index},
                     {"op", node.op->name},
                     {"text", to_text(graph, id)},
                     {"inputs", inputs},
                     {"type", json_of(node.type)},
                     {"step", step_number(node.step)},
                     {"line", line_of(sources, node.origin)}});
  }
  return dump({{"stage", stage}, {"output", graph.output().index}, {"nodes", nodes}});
}

std::string plan_text(const Plan& plan, const SourceMap& sources, const std::vector<std::string>& relaxations) {
  std::string out;
  std::vector<TextRow> rows;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    std::string inputs;
    bool chain = node.inputs.empty() || (node.inputs.size() == 1 && node.inputs[0].index + 1 == static_cast<int>(i));
    if (!chain) {
      for (PlanNodeId input : node.inputs) inputs += (inputs.empty() ? "#" : ", #") + std::to_string(input.index + 1);
      inputs = "(" + inputs + ") ";
    }
    rows.push_back(
        {fmt::format("#{:<3}{}{}", i + 1, inputs, headline_of(plan, node)), cost_of(node), places_of(sources, node)});
    for (const std::string& work : work_of(plan, node)) rows.push_back({"      " + work, "", ""});
    std::string outputs = outputs_of(plan, node);
    if (!outputs.empty()) rows.push_back({"      -> " + outputs, "", ""});
  }
  const std::string relaxed = relaxations.empty() ? "" : fmt::format(", RELAXED: {}", fmt::join(relaxations, ", "));
  return columns(rows) + fmt::format("least memory {}, plan {}{}\n",
                                     human_bytes(static_cast<double>(plan.least_memory)), plan.hash, relaxed);
}

std::string plan_dot(const Plan& plan, const SourceMap& sources, const std::string& title) {
  std::string out = dot_head(title);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    std::string label = headline_of(plan, node) + "\n";
    for (const std::string& work : work_of(plan, node)) label += "  " + work + "\n";
    for (const std::string& text : {cost_of(node), lines_of(sources, node.origins)}) {
      if (!text.empty()) label += text + "\n";
    }
    out += fmt::format("  n{} [label=\"{}\"];\n", i, dot_escape(label));
    for (PlanNodeId input : node.inputs) {
      out +=
          fmt::format("  n{} -> n{} [label=\"{}\"];\n", input.index, i, dot_escape(outputs_of(plan, plan.at(input))));
    }
  }
  return out + "}\n";
}

std::string plan_json(const Plan& plan, const SourceMap& sources, const PlanFacts& facts, const std::string& options) {
  Json nodes = Json::array();
  for (const PlanNode& node : plan.nodes) {
    Json inputs = Json::array(), outputs = Json::object(), lines = Json::array(), steps = Json::array();
    for (PlanNodeId input : node.inputs) inputs.push_back(input.index);
    for (const OutputField& field : node.outputs) {
      outputs[field.name] = field.expr.valid() ? Json(to_string(plan.graph.expr(field.expr).type)) : Json();
    }
    for (const Span& span : node.origins) lines.push_back(line_of(sources, span));
    for (int32_t step : node.steps_written) steps.push_back(step_number(step));
    nodes.push_back({{"kind", kind_name(node.kind)},
                     {"label", node.label},
                     {"inputs", inputs},
                     {"work", work_of(plan, node)},
                     {"outputs", outputs},
                     {"chunk_rows", node.chunk_rows},
                     {"concurrency", node.concurrency},
                     {"ns_per_row", node.est_ns_per_row},
                     {"bytes_per_row", node.est_bytes_per_row},
                     {"rows_per_row", node.est_rows},
                     {"steps", steps},
                     {"lines", lines}});
  }
  return dump({{"stage", "physical"},
               {"hash", plan.hash},
               {"least_memory", plan.least_memory},
               {"seed", plan.seed},
               {"relaxations", facts.relaxations},
               {"ns_as_written", facts.written_ns},
               {"ns_as_planned", plan_ns(plan)},
               {"search",
                {{"stretches", facts.trace.search.stretches},
                 {"groups", facts.trace.search.groups},
                 {"members", facts.trace.search.members},
                 {"pairs", facts.trace.search.pairs},
                 {"bounded", facts.trace.search.bounded}}},
               {"costs", Json::parse(facts.costs)},
               {"options", Json::parse(options)},
               {"nodes", nodes},
               {"applied", applied_json(sources, facts.trace)},
               {"refused", refused_json(sources, facts.trace)}});
}

std::string plan_one_line(const Plan& plan) {
  std::string out;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanNode::Kind::Deliver) continue;
    out += (out.empty() ? "" : " > ") + (node.label.empty() ? std::string(kind_name(node.kind)) : node.label);
  }
  return out;
}

std::optional<std::string> run_graphviz(const std::string& dot, const std::string& format, std::string& error) {
  // The text goes through an unnamed file, so that neither side waits for the other.
  FILE* in = std::tmpfile();
  int out[2];
  if (in == nullptr || pipe(out) != 0) {
    error = std::strerror(errno);
    if (in != nullptr) std::fclose(in);
    return std::nullopt;
  }
  std::fwrite(dot.data(), 1, dot.size(), in);
  std::rewind(in);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, out[0]);
  std::string name = "dot", output = "-T" + format;
  char* argv[] = {name.data(), output.data(), nullptr};
  pid_t child = 0;
  int code = posix_spawnp(&child, name.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  std::fclose(in);
  close(out[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; code == 0 && (n = read(out[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(out[0]);
  int status = 0;
  if (code == 0) waitpid(child, &status, 0);
  if (code != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    error = "this needs Graphviz, whose `dot` is not installed (Debian: apt-get install graphviz)";
    return std::nullopt;
  }
  if (status != 0 || text.empty()) {
    error = "`dot` failed";
    return std::nullopt;
  }
  return text;
}

}  // namespace zephon
