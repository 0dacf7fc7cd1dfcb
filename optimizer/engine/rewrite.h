#pragma once
// The single door that every rewrite goes through: disabled? match, guards, apply, verify, record.

#include "optimizer/cost/machine.h"
#include "optimizer/engine/trace.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {

/// Runs those of `rules` that belong to one phase, in their order, until none changes anything. Problems that the
/// verifier finds go to the door: after each application with `verify`, else once at the end.
void rewrite(Graph& graph, std::span<const RuleEntry> rules, Phase phase, Door& door, const OpTable& ops,
             const Machine& machine, bool verify);

}  // namespace zephon
