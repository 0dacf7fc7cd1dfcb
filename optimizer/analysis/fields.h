#pragma once
// Which fields are read, written and needed: facts, changes nothing.

#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace zephon {

using FieldSet = std::set<std::string>;

/// True for fields that are never delivered: what sources and planners keep for themselves (`$row`).
inline bool is_hidden(std::string_view field) { return !field.empty() && field.front() == '$'; }

/// Adds the fields that `root` reads.
void add_reads(const Graph& graph, ExprId root, FieldSet& fields);
FieldSet reads_of(const Graph& graph, ExprId root);
/// Fields that the node assigns.
FieldSet writes_of(const Node& node);

/// For each node by index: the fields of its output that something below needs: delivered, read by an expression, or
/// guarded by on_error. Nodes that are not reachable have none.
std::vector<FieldSet> live_fields(const Graph& graph);

/// Given what is needed of a node's output: what is needed of its inputs (of each, for a merge).
FieldSet live_above(const Graph& graph, const Node& node, FieldSet live);

/// Values of the fields after `assigns`, as expressions over the fields before: `env` is extended in order.
void apply_assigns(Graph& graph, const std::vector<Assign>& assigns, std::map<std::string, ExprId>& env);

}  // namespace zephon
