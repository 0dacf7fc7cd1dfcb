#include "graph/expr_set.h"
#include "graph/op_def.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/order.h"
#include "optimizer/cost/cost.h"

namespace zephon {

double expected_elements(const Type& type, const Machine& machine) {
  double n = 1;
  for (const Dim& d : type.shape) n *= d.is_static() ? static_cast<double>(d.extent) : machine.default_extent;
  return n;
}

double expected_bytes(const Type& type, const Machine& machine) {
  double each = static_cast<double>(elem_size(type.elem));
  if (is_string(type.elem)) each += type.elem == Elem::Bytes ? machine.default_blob_bytes : machine.default_text_bytes;
  return expected_elements(type, machine) * each;
}

int64_t fixed_bytes(const Type& type) {
  if (is_string(type.elem) || !type.has_static_shape()) return 0;
  return type.element_count() * static_cast<int64_t>(elem_size(type.elem));
}

double own_ns(const Graph& graph, ExprId id, const Machine& machine) {
  const Expr& e = graph.expr(id);
  if (is_leaf(e)) return 0;
  const OpCost& c = e.op->cost;
  // In a column of scalars the call is paid once a chunk.
  double ns = is_scalar_work(graph, e) ? 0 : c.ns_per_call;
  ns += c.ns_per_element * expected_elements(e.type, machine);
  if (c.ns_per_input_byte > 0)
    for (ExprId arg : e.args) ns += c.ns_per_input_byte * expected_bytes(graph.expr(arg).type, machine);
  return ns;
}

double tree_ns(const Graph& graph, const std::vector<ExprId>& roots, const Machine& machine) {
  ExprSet seen;
  double ns = 0;
  for (ExprId root : roots)
    for (ExprId id : graph.topological(root))
      if (seen.insert(id)) ns += own_ns(graph, id, machine);
  return ns;
}

double chain_ns(const Graph& graph, NodeId top, int depth, const Machine& machine) {
  std::vector<const Node*> chain = {&graph.node(top)};
  while (static_cast<int>(chain.size()) < depth && chain.back()->inputs.size() == 1)
    chain.push_back(&graph.node(chain.back()->inputs[0]));
  // Rows become fewer towards the output. In one region equal expressions are computed once, by the highest step.
  double ns = 0, rows = 1;
  ExprSet seen;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Node& node = **it;
    if (!is_one_to_one(node) && !is_filter(node)) seen.clear();
    std::vector<ExprId> stack;
    for (const Assign& a : node.assigns) stack.push_back(a.expr);
    if (node.predicate.valid()) stack.push_back(node.predicate);
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      if (!seen.insert(id)) continue;
      ns += rows * own_ns(graph, id, machine);
      for (ExprId arg : graph.expr(id).args) stack.push_back(arg);
    }
    rows *= row_factor(graph, node);
  }
  return ns;
}

}  // namespace zephon
