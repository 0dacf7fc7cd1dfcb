#pragma once
// Orders the steps of a program by cost: each stretch of steps that only its neighbours read goes through a memo, with
// the rules that move steps.

#include <span>

#include "graph/graph.h"
#include "optimizer/cost/machine.h"
#include "optimizer/engine/rewrite.h"
#include "optimizer/engine/trace.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {

/// Afterwards the program costs as little as in any order that those of `rules` of Phase::Order reach, guards of cost
/// not asked, from `graph` or from `before`, as far as bounds allow; it delivers the same. `before`: the graph that
/// became `graph` by rules of that phase. What was tried is added to the door's trace. Gives the places of steps
/// in streams that it ordered otherwise than they were in `graph`.
StepRanks search_order(Graph& graph, const Graph& before, std::span<const RuleEntry> rules, Door& door,
                       const OpTable& ops, const Machine& machine);

}  // namespace zephon
