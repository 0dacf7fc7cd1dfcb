#pragma once
// The single door that every rewrite goes through: disabled? match, guards, apply, verify, record.

#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

#include "optimizer/cost/machine.h"
#include "optimizer/engine/trace.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {

/// The places of the steps of a stream, counted from the source, in an order that was found to be the best.
using StepRanks = std::map<NodeId, size_t>;

/// Runs those of `rules` that belong to one of `phases`, in their order, until none changes anything. Problems that the
/// verifier finds go to the door: after each application with `verify`, else once at the end. With `ranks`, rules of
/// Phase::Order exchange steps that have one where that brings them nearer their places, whatever guards of cost say.
void rewrite(Graph& graph, std::span<const RuleEntry> rules, std::initializer_list<Phase> phases, Door& door,
             const OpTable& ops, const Machine& machine, bool verify, const StepRanks* ranks = nullptr);

/// What expressions become in the end, by those of `rules` that belong to Phase::Expressions.
class SettledForms {
 public:
  SettledForms(Graph& graph, std::span<const RuleEntry> rules, const Door& door, const OpTable& ops,
               const Machine& machine);
  ~SettledForms();
  /// Of expressions that one step makes; none is recorded.
  std::vector<ExprId> of(const std::vector<ExprId>& roots);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `outer` and its only input `inner` with their places exchanged, and their types; whoever read `outer` still does.
void exchange_steps(Graph& graph, NodeId outer, NodeId inner);

}  // namespace zephon
