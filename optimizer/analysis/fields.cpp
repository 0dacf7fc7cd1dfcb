#include "optimizer/analysis/fields.h"

#include "optimizer/analysis/expressions.h"

namespace zephon {

void add_reads(const Graph& graph, ExprId root, FieldSet& fields) {
  for (ExprId id : graph.topological(root))
    if (is_field(graph.expr(id))) fields.insert(graph.expr(id).attrs.text("name"));
}

FieldSet reads_of(const Graph& graph, ExprId root) {
  FieldSet fields;
  add_reads(graph, root, fields);
  return fields;
}

FieldSet writes_of(const Node& node) {
  FieldSet fields;
  for (const Assign& a : node.assigns) fields.insert(a.field);
  return fields;
}

FieldSet live_above(const Graph& graph, const Node& node, FieldSet live) {
  for (auto it = node.assigns.rbegin(); it != node.assigns.rend(); ++it)
    if (live.erase(it->field)) add_reads(graph, it->expr, live);
  if (node.predicate.valid()) add_reads(graph, node.predicate, live);
  live.insert(node.needed.begin(), node.needed.end());
  // What the operator itself adds (`valid` of on_error) does not exist above it.
  std::erase_if(live, [&](const std::string& field) {
    for (NodeId input : node.inputs)
      if (graph.node(input).type.find(field)) return false;
    return true;
  });
  return live;
}

std::vector<FieldSet> live_fields(const Graph& graph) {
  std::vector<FieldSet> live(graph.node_count());
  const std::vector<NodeId> order = graph.topological();
  if (order.empty()) return live;
  for (const Field& f : graph.node(graph.output()).type.fields)
    if (!is_hidden(f.name)) live[static_cast<size_t>(graph.output().index)].insert(f.name);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    const FieldSet above = live_above(graph, node, live[static_cast<size_t>(it->index)]);
    for (NodeId input : node.inputs) live[static_cast<size_t>(input.index)].insert(above.begin(), above.end());
  }
  return live;
}

void apply_assigns(Graph& graph, const std::vector<Assign>& assigns, std::map<std::string, ExprId>& env) {
  for (const Assign& a : assigns) env[a.field] = graph.substitute(a.expr, env);
}

}  // namespace zephon
