#include "optimizer/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/identity.h"
#include "optimizer/engine/rewrite.h"
#include "optimizer/search/search.h"

namespace zephon {
namespace {

/// The same steps in the same order, on all ways.
bool same_steps(const Graph& a, const Graph& b) {
  const std::vector<NodeId> mine = a.topological(), theirs = b.topological();
  return std::ranges::equal(mine, theirs, [&](NodeId x, NodeId y) {
    const Node &m = a.node(x), &t = b.node(y);
    return m.op == t.op && m.step == t.step && m.part == t.part && m.inputs.size() == t.inputs.size();
  });
}

}  // namespace

OptimizeResult optimize(const Graph& graph, const OptimizeOptions& options, const OpTable& ops) {
  std::set<std::string, std::less<>> disabled = options.disabled;
  if (options.no_optimize) disabled.insert("all");
  std::string relaxed;
  for (const std::string& name : options.relaxed) relaxed += " " + name;
  for (const RuleEntry& entry : options.rules) {
    const std::string_view relaxation = entry.rule->relaxation;
    if (!relaxation.empty() && !options.relaxed.contains(relaxation)) disabled.emplace(entry.rule->name);
  }
  Door door(std::move(disabled), options.texts);
  OptimizeResult result;
  result.graph = graph;
  auto run = [&](std::initializer_list<Phase> phases) {
    rewrite(result.graph, options.rules, phases, door, ops, options.plan.machine, options.verify);
  };
  run({Phase::Shape});
  const Graph before = result.graph;
  Door other_door = door;
  run({Phase::Shape, Phase::Order});
  const StepRanks ranks = search_order(result.graph, before, options.rules, door, ops, options.plan.machine);
  if (!ranks.empty()) {
    // The rules go there once more, and straight, so that what is told ends in the order that was chosen.
    Graph straight = before;
    rewrite(straight, options.rules, {Phase::Shape, Phase::Order}, other_door, ops, options.plan.machine,
            options.verify, &ranks);
    if (same_steps(straight, result.graph)) {
      other_door.searched(door.trace().search);
      door = std::move(other_door);
      result.graph = std::move(straight);
    }
  }
  run({Phase::Shape, Phase::Merge});  // what is merged leaves fields behind that nothing reads
  run({Phase::Expressions});
  run({Phase::Relaxed});
  result.plan = make_plan(result.graph, written_steps(graph), options.plan, ops, door);
  if (!relaxed.empty()) result.plan.hash = fmt::format("{:016x}", stream_hash(result.plan.hash + relaxed));
  result.trace = door.take();
  return result;
}

}  // namespace zephon
