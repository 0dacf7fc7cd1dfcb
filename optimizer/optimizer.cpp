#include "optimizer/optimizer.h"

#include "optimizer/engine/rewrite.h"

namespace zephon {

OptimizeResult optimize(const Graph& graph, const OptimizeOptions& options, const OpTable& ops) {
  std::set<std::string, std::less<>> disabled = options.disabled;
  if (options.no_optimize) disabled.insert("all");
  Door door(std::move(disabled), options.texts);
  OptimizeResult result;
  result.graph = graph;
  for (Phase phase : {Phase::Shape, Phase::Expressions})
    rewrite(result.graph, options.rules, phase, door, ops, options.plan.machine, options.verify);
  result.plan = make_plan(result.graph, written_steps(graph), options.plan, ops, door);
  result.trace = door.take();
  return result;
}

}  // namespace zephon
