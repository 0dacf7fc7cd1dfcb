#include "optimizer/optimizer.h"

#include <fmt/format.h>

#include "graph/identity.h"
#include "optimizer/engine/rewrite.h"
#include "optimizer/search/search.h"

namespace zephon {

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
  run({Phase::Shape, Phase::Order});
  search_order(result.graph, before, options.rules, door, ops, options.plan.machine);
  run({Phase::Shape, Phase::Merge});  // what is merged leaves fields behind that nothing reads
  run({Phase::Expressions});
  run({Phase::Relaxed});
  result.plan = make_plan(result.graph, written_steps(graph), options.plan, ops, door);
  if (!relaxed.empty()) result.plan.hash = fmt::format("{:016x}", stream_hash(result.plan.hash + relaxed));
  result.trace = door.take();
  return result;
}

}  // namespace zephon
