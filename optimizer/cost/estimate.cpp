#include <algorithm>
#include <map>

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

namespace {

/// Elements that an operation works on, once for each: of a reduction those that it reads.
double work_elements(const Graph& graph, const Expr& e, const Machine& machine) {
  const bool reduces = e.op->cls == OpClass::Reduce && !e.args.empty();
  return expected_elements(reduces ? graph.expr(e.args[0]).type : e.type, machine);
}

/// The widest element type among result and arguments: it decides how many fit a register.
Elem widest(const Graph& graph, const Expr& e) {
  Elem widest = e.type.elem;
  for (ExprId arg : e.args)
    if (const Elem elem = graph.expr(arg).type.elem; elem_size(elem) > elem_size(widest)) widest = elem;
  return widest;
}

double work_ns(const Graph& graph, const Expr& e, double elements, const Machine& machine) {
  const OperatorCost* measured = nullptr;
  if (machine.operators)
    if (auto it = machine.operators->operators.find(e.op); it != machine.operators->operators.end())
      measured = &it->second;
  const OpCost& c = measured ? measured->cost : e.op->cost;
  // In a column of scalars the call is paid once a chunk.
  double ns = is_scalar_work(graph, e) ? 0 : c.ns_per_call;
  double each = c.ns_per_element;
  if (measured)
    if (const double of_type = measured->ns_by_elem[static_cast<size_t>(widest(graph, e))]; of_type > 0) each = of_type;
  double input_bytes = 0;
  if (c.ns_per_input_byte > 0)
    for (ExprId arg : e.args) input_bytes += expected_bytes(graph.expr(arg).type, machine);
  if (machine.data)
    if (auto it = machine.data->operators.find(e.op); it != machine.data->operators.end()) {
      const DataFacts::Operator& fact = it->second;
      if (fact.calls > 0 && !e.type.has_static_shape()) elements = fact.elements;
      if (fact.calls > 0) input_bytes = fact.input_bytes;
      ns *= fact.scale;
      each *= fact.scale;
      input_bytes *= fact.scale;
    }
  ns += each * elements + c.ns_per_input_byte * input_bytes;
  return machine.factor ? ns * machine.factor(*e.op) : ns;
}

}  // namespace

double own_ns(const Graph& graph, ExprId id, const Machine& machine) {
  const Expr& e = graph.expr(id);
  return is_leaf(e) ? 0 : work_ns(graph, e, work_elements(graph, e, machine), machine);
}

double kernel_ns(const Graph& graph, const KernelGroup& group, const std::vector<ExprId>& inside,
                 const Machine& machine) {
  double ns = machine.ns_per_row_and_step;
  if (group.kind != KernelGroup::Kind::Columnar) ns += machine.ns_per_kernel_call;
  for (ExprId root : group.roots) ns += expected_bytes(graph.expr(root).type, machine) / machine.bytes_per_ns;
  const bool cuts = group.kind == KernelGroup::Kind::PerSample &&
                    std::ranges::any_of(inside, [&](ExprId id) { return graph.expr(id).op->cls == OpClass::View; });
  if (!cuts) {
    for (ExprId id : inside) ns += own_ns(graph, id, machine);
    return ns;
  }
  // From the root down: the elements that are asked for.
  std::map<ExprId, double> asked;
  for (ExprId root : group.roots) asked[root] = work_elements(graph, graph.expr(root), machine);
  for (auto it = inside.rbegin(); it != inside.rend(); ++it) {
    const Expr& e = graph.expr(*it);
    const bool elementwise = e.op->cls == OpClass::Pointwise || e.op->cls == OpClass::View;
    const double whole = work_elements(graph, e, machine);
    const double elements = elementwise ? std::min(whole, asked[*it]) : whole;
    ns += is_leaf(e) ? 0 : work_ns(graph, e, elements, machine);
    for (ExprId arg : e.args) {
      double& most = asked[arg];
      most = std::max(most, elementwise ? elements : expected_elements(graph.expr(arg).type, machine));
    }
  }
  return ns;
}

double kept_share(const Graph& graph, const Node& filter, const Machine& machine) {
  if (machine.data)
    if (auto kept = machine.data->kept(filter.step, filter.part)) return *kept;
  return selectivity(graph, filter.predicate);
}

double row_factor(const Graph& graph, const Node& node, const Machine& machine) {
  if (is_filter(node)) return kept_share(graph, node, machine);
  return node.op->cls == OpClass::Subset ? 0.5 : 1;
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
    rows *= row_factor(graph, node, machine);
  }
  return ns;
}

}  // namespace zephon
