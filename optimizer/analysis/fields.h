#pragma once
// Which fields are read, written and needed: facts, changes nothing.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optimizer/analysis/ranges.h"

namespace zephon {

using FieldSet = std::set<std::string>;

/// True for fields that are never delivered: what sources and planners keep for themselves (`$row`).
inline bool is_hidden(std::string_view field) { return !field.empty() && field.front() == '$'; }

/// The fields that expressions read. Expressions never change, so each is looked at once.
class Reads {
 public:
  explicit Reads(const Graph& graph) : graph_(graph), ranges_(graph) {}
  const FieldSet& of(ExprId expr);
  /// What else is known of expressions.
  Ranges& ranges() { return ranges_; }

 private:
  const Graph& graph_;
  Ranges ranges_;
  std::vector<FieldSet> fields_;  // by expression; arguments have smaller ids than their users
};

/// Adds the fields that `root` reads.
void add_reads(const Graph& graph, ExprId root, FieldSet& fields);
/// Fields that the node assigns.
FieldSet writes_of(const Node& node);

/// For each node by index: the fields of its output that something below needs: delivered, read by an expression, or
/// guarded by on_error. Nodes that are not reachable have none.
std::vector<FieldSet> live_fields(const Graph& graph);

/// Given what is needed of a node's output: what is needed of its inputs (of each, for a merge).
FieldSet live_above(const Graph& graph, const Node& node, FieldSet live);

using Environment = std::map<std::string, ExprId>;

/// `expr` with the fields that `env` names replaced.
ExprId resolve(Graph& graph, Reads& reads, ExprId expr, const Environment& env);
/// Values of the fields after `assigns`, as expressions over the fields before: `env` is extended in order.
void apply_assigns(Graph& graph, Reads& reads, const std::vector<Assign>& assigns, Environment& env);

}  // namespace zephon
