#include "optimizer/analysis/order.h"

#include <algorithm>

#include "optimizer/analysis/expressions.h"

namespace zephon {

bool is_one_to_one(const Node& node) { return node.op->cls == OpClass::OneToOne; }
bool is_filter(const Node& node) { return node.op->cls == OpClass::Subset && node.predicate.valid(); }

bool permutes_domain(const Node& node) { return node.op->algebra.needs_domain; }

bool moves_by_arrival(const Node& node) {
  if (node.inputs.size() != 1 || permutes_domain(node) || is_filter(node)) return false;
  return node.op->cls == OpClass::Subset || node.op->cls == OpClass::Reorder;
}

bool is_renumbering(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 1 || !node.op->kernel.index_map) return false;
  const StreamType& input = graph.node(node.inputs[0]).type;
  if (input.batch) return false;
  if (permutes_domain(node)) return input.domain != Domain::Data;
  if (node.op->cls == OpClass::Reorder) return false;
  // A filter leaves the same holes in each pass; an endless repeat must notice a pass that is empty.
  const bool holes_stay = node.op->cls == OpClass::Repeat && !node.type.endless;
  return input.domain == Domain::Indexed || (holes_stay && input.domain == Domain::Holes);
}

double row_factor(const Graph& graph, const Node& node) {
  if (is_filter(node)) return selectivity(graph, node.predicate);
  const StreamType* input = node.inputs.empty() ? nullptr : &graph.node(node.inputs[0]).type;
  switch (node.op->cls) {
    case OpClass::Subset:
      return 0.5;
    case OpClass::ManyToOne:
      return node.type.batch ? 1.0 / static_cast<double>(std::max<int64_t>(node.type.batch->size, 1)) : 1;
    case OpClass::OneToMany:
      return input && input->batch ? static_cast<double>(input->batch->size) : 1;
    default:
      return 1;
  }
}

}  // namespace zephon
