#include "zephonc/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph/op_def.h"
#include "zephonc/session.h"

namespace zephon {
namespace {

bool contains(const Span& outer, const Span& inner) {
  return outer.valid() && inner.valid() && outer.file == inner.file && outer.begin <= inner.begin &&
         inner.end <= outer.end;
}

bool uses(const Graph& graph, ExprId root, const Span& place) {
  for (ExprId id : graph.topological(root)) {
    for (const Span& origin : graph.expr(id).origin) {
      if (contains(origin, place)) return true;
    }
  }
  return false;
}

}  // namespace

StepNumbers::StepNumbers(const Graph& graph) {
  std::map<int32_t, int> parts, next;
  const std::vector<NodeId> order = graph.topological();
  for (NodeId id : order) ++parts[graph.node(id).step];
  for (NodeId id : order) {
    const int32_t step = graph.node(id).step;
    numbers_[id] =
        parts[step] == 1 ? std::to_string(step_number(step)) : fmt::format("{}.{}", step_number(step), ++next[step]);
  }
}

std::optional<NodeId> find_step(const Session& session, const std::string& word, std::string& error) {
  const Graph& graph = session.graph();
  const StepNumbers numbers(graph);
  const bool by_line = word.starts_with('@');
  const std::string digits = word.substr(by_line ? 1 : 0);
  const bool numeric =
      !digits.empty() && digits.find_first_not_of(by_line ? "0123456789" : "0123456789.") == digits.npos;
  std::optional<NodeId> found;
  std::vector<std::string> names;
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    names.emplace_back(node.op->surface.empty() ? node.op->name : node.op->surface);
    bool hit = false;
    if (by_line) {
      if (numeric && digits.size() < 10 && node.origin.valid() && node.origin.file == session.file()) {
        const auto line = static_cast<uint32_t>(std::stoul(digits));
        const uint32_t last = std::max(node.origin.end, node.origin.begin + 1) - 1;
        hit = session.line_of(node.origin) <= line && line <= session.sources().position(node.origin.file, last).line;
      }
    } else if (numeric) {
      hit = numbers.of(id) == word || std::to_string(step_number(node.step)) == word;
    } else {
      hit = node.op->name == word || names.back() == word;
    }
    if (hit) found = id;
  }
  if (found) return found;
  std::string hint = numeric ? "`zephonc check` prints their numbers" : did_you_mean(word, names);
  error = fmt::format("the program has no step `{}`{}", word, hint.empty() ? "" : "; " + hint);
  return std::nullopt;
}

std::optional<NodeId> step_at(const Graph& graph, const Span& place) {
  std::optional<NodeId> written, used;
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    if (contains(node.origin, place)) written = id;
    bool here = node.predicate.valid() && uses(graph, node.predicate, place);
    for (const Assign& assign : node.assigns) here = here || uses(graph, assign.expr, place);
    if (here) used = id;
  }
  return written ? written : used;
}

}  // namespace zephon
