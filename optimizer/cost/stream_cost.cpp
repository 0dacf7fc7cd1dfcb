#include "optimizer/cost/stream_cost.h"

#include <algorithm>

#include "graph/op_def.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/order.h"
#include "optimizer/cost/cost.h"
#include "optimizer/plan/groups.h"

namespace zephon {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
  return x ^ (x >> 33);
}
uint64_t hash_of(ExprId id) { return mix(static_cast<uint64_t>(id.index) + 0x9E3779B97F4A7C15u); }

}  // namespace

const std::vector<ExprId>& StreamCost::form(const std::vector<ExprId>& roots) {
  if (!forms_) return roots;
  auto [it, fresh] = known_forms_.try_emplace(roots);
  if (fresh) it->second = forms_(roots);
  return it->second;
}

double StreamCost::evaluate(Front& front, const std::vector<ExprId>& roots) {
  auto [it, fresh] = known_.try_emplace({front.ready_hash, roots});
  Work& work = it->second;
  if (fresh) {
    ExprSet ready = front.ready;
    for (const KernelGroup& group : make_groups(graph_, form(roots), {}, ready, true)) {
      const std::vector<ExprId> inside = interior(graph_, group);
      work.ns += kernel_ns(graph_, group, inside, machine_);
      // Of a group of columns all is stored that something below asks for.
      if (group.kind == KernelGroup::Kind::Columnar) work.made.insert(work.made.end(), inside.begin(), inside.end());
      work.made.insert(work.made.end(), group.roots.begin(), group.roots.end());
    }
  }
  for (ExprId id : work.made)
    if (front.ready.insert(id)) front.ready_hash += hash_of(id);
  return work.ns;
}

void StreamCost::flush(Front& front, const FieldSet& needed) {
  std::vector<ExprId> roots;
  for (const std::string& name : needed)
    if (auto it = front.env.find(name); it != front.env.end()) roots.push_back(it->second);
  front.ns += front.rows * evaluate(front, roots);
  front.env.clear();
  front.ready.clear();
  front.ready_hash = 0;
}

void StreamCost::pass(Front& front, const Node& node, const FieldSet& live) {
  if (is_one_to_one(node)) {
    apply_assigns(graph_, reads_, node.assigns, front.env);
    std::erase_if(front.env, [&](const auto& entry) { return !node.type.find(entry.first); });
    return;
  }
  if (is_filter(node)) {
    const ExprId predicate = resolve(graph_, reads_, node.predicate, front.env);
    front.ns += front.rows * (evaluate(front, {predicate}) + machine_.ns_per_row_and_step);
    front.rows *= row_factor(graph_, node, machine_);
    return;
  }
  if (node.op->cls == OpClass::Hint) {
    if (node.op->algebra.keeps_rows) flush(front, live_above(graph_, node, live));
    return;
  }
  if (!is_renumbering(graph_, node)) {
    const FieldSet needed = live_above(graph_, node, live);
    flush(front, needed);
    // The step takes each row over; but a batch is written where it is read.
    if (node.op->cls != OpClass::ManyToOne && node.op->cls != OpClass::OneToMany)
      for (const Field& f : graph_.node(node.inputs[0]).type.fields)
        if (needed.contains(f.name)) front.ns += front.rows * expected_bytes(f.type, machine_) / machine_.bytes_per_ns;
  }
  front.rows *= row_factor(graph_, node, machine_);
}

uint64_t StreamCost::key(const Front& front, const FieldSet& live) const {
  uint64_t hash = mix(front.ready_hash);
  for (const auto& [name, expr] : front.env)
    if (live.contains(name)) hash += mix(std::hash<std::string>{}(name) ^ hash_of(expr));
  return hash;
}

Front StreamCost::stream(NodeId top, const std::vector<FieldSet>& live) {
  std::vector<NodeId> chain;  // output first
  NodeId bottom = top;
  while (graph_.node(bottom).inputs.size() == 1 && graph_.node(bottom).op->cls != OpClass::Merge) {
    chain.push_back(bottom);
    bottom = graph_.node(bottom).inputs[0];
  }
  const Node& first = graph_.node(bottom);
  double rows = first.inputs.empty() ? 1 : 0, ns = 0;
  const FieldSet needed = live_above(graph_, first, live[static_cast<size_t>(bottom.index)]);
  for (NodeId input : first.inputs) {
    Front arm = stream(input, live);
    flush(arm, needed);
    rows += arm.rows;
    ns += arm.ns;
  }
  Front front;
  front.rows = rows;
  front.ns = ns;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it)
    pass(front, graph_.node(*it), live[static_cast<size_t>(it->index)]);
  return front;
}

double StreamCost::program_ns() {
  const std::vector<FieldSet> live = live_fields(graph_);
  Front front = stream(graph_.output(), live);
  flush(front, live[static_cast<size_t>(graph_.output().index)]);
  return front.ns;
}

}  // namespace zephon
