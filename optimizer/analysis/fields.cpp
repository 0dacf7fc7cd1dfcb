#include "optimizer/analysis/fields.h"

#include <algorithm>

#include "optimizer/analysis/expressions.h"

namespace zephon {

void add_reads(const Graph& graph, ExprId root, FieldSet& fields) {
  for (ExprId id : graph.topological(root))
    if (is_field(graph.expr(id))) fields.insert(graph.expr(id).attrs.text("name"));
}

const FieldSet& Reads::of(ExprId expr) {
  while (fields_.size() <= static_cast<size_t>(expr.index)) {
    const Expr& e = graph_.expr({static_cast<int32_t>(fields_.size())});
    FieldSet mine;
    if (is_field(e)) mine.insert(e.attrs.text("name"));
    for (ExprId arg : e.args) {
      const FieldSet& theirs = fields_[static_cast<size_t>(arg.index)];
      mine.insert(theirs.begin(), theirs.end());
    }
    fields_.push_back(std::move(mine));
  }
  return fields_[static_cast<size_t>(expr.index)];
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
  for (size_t i = 0; i < node.type.fields.size(); ++i) {
    const bool above = std::ranges::any_of(node.inputs, [&](NodeId input) {
      const FieldList& fields = graph.node(input).type.fields;
      return node.type.fields.shares_block(fields, i) || fields.find(node.type.fields[i].name);
    });
    if (!above) live.erase(node.type.fields[i].name);
  }
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
    for (NodeId input : node.inputs) {
      FieldSet& mine = live[static_cast<size_t>(input.index)];
      // Of a pair each input has what the other has not.
      if (node.inputs.size() == 1)
        mine.insert(above.begin(), above.end());
      else
        for (const std::string& field : above)
          if (graph.node(input).type.find(field)) mine.insert(field);
    }
  }
  return live;
}

ExprId resolve(Graph& graph, Reads& reads, ExprId expr, const Environment& env) {
  for (const std::string& field : reads.of(expr)) {
    auto it = env.find(field);
    if (it == env.end()) continue;
    const Expr& e = graph.expr(it->second);
    if (!is_field(e) || e.attrs.text("name") != field) return graph.substitute(expr, env);
  }
  return expr;
}

void apply_assigns(Graph& graph, Reads& reads, const std::vector<Assign>& assigns, Environment& env) {
  for (const Assign& a : assigns) env[a.field] = resolve(graph, reads, a.expr, env);
}

}  // namespace zephon
