#pragma once
// Graph -> better graph -> plan. The phases and their rules stand in rules/all_rules.def.

#include <set>
#include <string>

#include "graph/plan.h"
#include "optimizer/engine/trace.h"
#include "optimizer/plan/planner.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {

struct OptimizeOptions {
  std::span<const RuleEntry> rules = all_rules();  ///< of the graph; those of the planner are its own
  std::set<std::string, std::less<>> disabled;     ///< names of rules
  std::set<std::string, std::less<>> relaxed;      ///< relaxations that are permitted; see Rule::relaxation
  bool no_optimize = false;                        ///< no rule at all: each operation its own kernel
  bool verify = false;                             ///< check the graph after each application, not only at the end
  bool texts = false;  ///< keep the graph's text before and after each application (--steps)
  PlanOptions plan;
};

struct OptimizeResult {
  Graph graph;  ///< after the rules
  Plan plan;
  Trace trace;
};

/// Delivers what the graph as written delivers, in the same order, to the bit, unless relaxations are permitted.
/// `graph` must verify. The plan's hash says which relaxations were.
OptimizeResult optimize(const Graph& graph, const OptimizeOptions& options, const OpTable& ops);

}  // namespace zephon
