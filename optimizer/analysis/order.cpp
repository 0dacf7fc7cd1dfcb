#include "optimizer/analysis/order.h"

#include <algorithm>
#include <map>

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

std::optional<int32_t> pass_count(const Graph& graph, NodeId node) {
  // Repeats from the sources to each node, and from each node to the output, itself left out; -1: the ways differ.
  std::map<NodeId, int32_t> above, below;
  auto join = [](std::map<NodeId, int32_t>& counts, NodeId id, int32_t count) {
    auto [it, fresh] = counts.emplace(id, count);
    if (!fresh && it->second != count) it->second = -1;
  };
  auto past = [&](int32_t count, NodeId id) {
    return count < 0 ? count : count + (graph.node(id).op->cls == OpClass::Repeat);
  };
  const std::vector<NodeId> order = graph.topological();
  for (NodeId id : order) {
    if (graph.node(id).inputs.empty()) join(above, id, 0);
    for (NodeId input : graph.node(id).inputs) join(above, id, past(above.at(input), input));
  }
  join(below, graph.output(), 0);
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (NodeId input : graph.node(*it).inputs) join(below, input, past(below.at(*it), *it));
  const int32_t up = above.at(node), down = below.at(node);
  if (up < 0 || down < 0) return std::nullopt;
  return past(up + down, node);
}

}  // namespace zephon
