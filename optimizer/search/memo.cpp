#include "optimizer/search/memo.h"

#include <algorithm>

#include "optimizer/analysis/order.h"
#include "optimizer/cost/cost.h"
#include "optimizer/engine/rewrite.h"

namespace zephon {
namespace {

constexpr int kBase = 0;

size_t combine(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }

bool same_step(const Node& a, const Node& b) {
  return a.op == b.op && a.predicate == b.predicate && a.step == b.step && a.assigns == b.assigns &&
         a.attrs == b.attrs && a.needed == b.needed;
}

}  // namespace

Memo::Memo(Graph& graph, std::span<const Rule* const> rules, const OpTable& ops, const Machine& machine,
           StreamCost& cost, SearchBounds bounds)
    : graph_(graph), rules_(rules), ops_(ops), machine_(machine), cost_(cost), bounds_(bounds) {}

double Memo::tree_ns(ExprId expr) const { return zephon::tree_ns(graph_, {expr}, machine_); }
double Memo::own_ns(ExprId expr) const { return zephon::own_ns(graph_, expr, machine_); }
double Memo::elements(ExprId expr) const { return expected_elements(graph_.expr(expr).type, machine_); }
const std::vector<ExprId>& Memo::expr_users(ExprId) const {
  static const std::vector<ExprId> kNone;
  return kNone;
}

void Memo::exchange(NodeId outer, NodeId inner) {
  exchange_steps(graph_, outer, inner);
  if (top_ == outer) top_ = inner;
}

void Memo::remove(NodeId node) {
  const NodeId source = graph_.node(node).inputs[0];
  for (NodeId at = top_; at != base_; at = graph_.node(at).inputs[0])
    if (graph_.node(at).inputs[0] == node) graph_.node(at).inputs[0] = source;
  if (top_ == node) top_ = source;
}

size_t Memo::hash(const Node& node, int below) const {
  size_t h = combine(std::hash<const void*>{}(node.op), static_cast<size_t>(below));
  h = combine(h, static_cast<size_t>(node.predicate.index));
  h = combine(h, static_cast<size_t>(node.step));
  for (const Assign& a : node.assigns) h = combine(h, static_cast<size_t>(a.expr.index));
  return h;
}

int Memo::find(const Node& node, int below) const {
  auto [begin, end] = known_.equal_range(hash(node, below));
  for (auto it = begin; it != end; ++it) {
    const Member& m = members_[static_cast<size_t>(it->second)];
    if (m.below == below && same_step(graph_.node(m.node), node)) return it->second;
  }
  return -1;
}

int Memo::add_group() {
  groups_.emplace_back();
  return groups() - 1;
}

int Memo::add_member(NodeId node, int group, int below, const Rule* rule) {
  const int id = members();
  members_.push_back({node, group, below, rule});
  for (NodeId* scratch : {&upper_, &lower_})
    if (*scratch == node) *scratch = {};
  known_.emplace(hash(graph_.node(node), below), id);
  Group& mine = groups_[static_cast<size_t>(group)];
  mine.members.push_back(id);
  groups_[static_cast<size_t>(below)].readers.push_back(id);
  for (int reader : mine.readers) work_.emplace_back(reader, id);
  for (int inner : groups_[static_cast<size_t>(below)].members) work_.emplace_back(id, inner);
  return id;
}

bool Memo::holds_exactly(const Rule& rule, const Match& match) {
  return std::ranges::all_of(rule.guards, [&](const Guard& guard) { return guard.cost || guard.holds(*this, match); });
}

bool Memo::explore(const std::vector<std::vector<NodeId>>& chains) {
  add_group();
  int group = -1;
  for (const std::vector<NodeId>& chain : chains) group = add_chain(chain, kBase, group, nullptr);
  const int first = groups_[static_cast<size_t>(group)].members.front();
  for (size_t i = 0; i < work_.size(); ++i) {
    if (++pairs_ > bounds_.pairs) {
      bounded_ = true;
      break;
    }
    try_rules(work_[i].first, work_[i].second);
  }
  work_.clear();
  top_group_ = members_[static_cast<size_t>(first)].group;  // uniting may have given it another number
  return members_.size() > chains.front().size();
}

void Memo::try_rules(int outer, int inner) {
  const Member o = members_[static_cast<size_t>(outer)], i = members_[static_cast<size_t>(inner)];
  // Copies, which a rule may change; those that did not become members serve again.
  auto copy_into = [&](NodeId& scratch, NodeId from) {
    if (scratch.valid())
      graph_.node(scratch) = graph_.node(from);
    else
      scratch = graph_.add(Node(graph_.node(from)));
  };
  auto copy = [&] {
    copy_into(upper_, i.node);
    copy_into(lower_, o.node);
    graph_.node(lower_).inputs = {upper_};
    base_ = graph_.node(upper_).inputs[0];
    top_ = lower_;
  };
  copy();
  for (const Rule* rule : rules_) {
    Match match;
    match.outer = lower_;
    if (!rule->match_node(*this, lower_, match) || !holds_exactly(*rule, match)) continue;
    rule->apply_node(*this, match);
    take_result(outer, inner, *rule);
    copy();
  }
}

void Memo::take_result(int outer, int inner, const Rule& rule) {
  std::vector<NodeId> chain;  // source outward
  for (NodeId at = top_; at != base_; at = graph_.node(at).inputs[0]) chain.insert(chain.begin(), at);
  add_chain(chain, members_[static_cast<size_t>(inner)].below, members_[static_cast<size_t>(outer)].group, &rule);
}

int Memo::add_chain(const std::vector<NodeId>& chain, int below, int group, const Rule* rule) {
  for (size_t k = 0; k < chain.size(); ++k) {
    const bool last = k + 1 == chain.size();
    const int there = find(graph_.node(chain[k]), below);
    if (there >= 0 && !last) graph_.node(chain[k + 1]).inputs = {members_[static_cast<size_t>(there)].node};
    if (there < 0) {
      const int mine = last && group >= 0 ? group : add_group();
      add_member(chain[k], mine, below, rule);
      below = mine;
      continue;
    }
    below = members_[static_cast<size_t>(there)].group;
    if (last && group >= 0 && below != group) {
      unite(group, below);
      below = std::min(group, below);
    }
  }
  return below;
}

void Memo::unite(int group, int other) {
  std::vector<std::pair<int, int>> pending = {{group, other}};
  while (!pending.empty()) {
    auto [a, b] = pending.back();
    pending.pop_back();
    if (a == b) continue;
    if (a > b) std::swap(a, b);
    Group& kept = groups_[static_cast<size_t>(a)];
    Group& gone = groups_[static_cast<size_t>(b)];
    for (int reader : kept.readers)
      for (int member : gone.members) work_.emplace_back(reader, member);
    for (int reader : gone.readers)
      for (int member : kept.members) work_.emplace_back(reader, member);
    const Group other_group = std::move(gone);
    gone = {};
    kept.members.insert(kept.members.end(), other_group.members.begin(), other_group.members.end());
    kept.readers.insert(kept.readers.end(), other_group.readers.begin(), other_group.readers.end());
    for (auto& [x, y] : pending) {
      if (x == b) x = a;
      if (y == b) y = a;
    }
    for (int id : other_group.members) members_[static_cast<size_t>(id)].group = a;
    // Steps over what was two groups may have become one step: then their groups are one.
    for (int id : other_group.readers) {
      Member& m = members_[static_cast<size_t>(id)];
      const Node& node = graph_.node(m.node);
      auto [begin, end] = known_.equal_range(hash(node, b));
      if (auto it = std::find_if(begin, end, [&](const auto& entry) { return entry.second == id; }); it != end)
        known_.erase(it);
      m.below = a;
      const int there = find(node, a);
      if (there < 0)
        known_.emplace(hash(node, a), id);
      else
        pending.emplace_back(members_[static_cast<size_t>(there)].group, m.group);
    }
  }
}

const std::vector<Memo::Partial>& Memo::ways(int group, const FieldSet& live) {
  if (group == kBase) return above_;
  auto [it, fresh] = ways_.try_emplace({group, live});
  std::vector<Partial>& found = it->second;
  if (!fresh) return found;
  std::map<uint64_t, size_t> places;
  for (int id : groups_[static_cast<size_t>(group)].members) {
    const Member& m = members_[static_cast<size_t>(id)];
    const Node& node = graph_.node(m.node);
    for (const Partial& rest : ways(m.below, live_above(graph_, node, live))) {
      Partial p{rest.front, id, &rest};
      cost_.pass(p.front, graph_.node(m.node), live);
      auto [place, first] = places.emplace(cost_.key(p.front, live), found.size());
      if (first)
        found.push_back(std::move(p));
      else if (p.front.ns < found[place->second].front.ns)
        found[place->second] = std::move(p);
    }
  }
  if (found.size() > static_cast<size_t>(bounds_.fronts)) {
    bounded_ = true;
    std::ranges::stable_sort(found, {}, [](const Partial& p) { return p.front.ns; });
    found.resize(static_cast<size_t>(bounds_.fronts));
  }
  return found;
}

Memo::Way Memo::cheapest(const Front& above, const FieldSet& live) {
  above_ = {{above, -1, nullptr}};
  const Partial* best = nullptr;
  double least = 0;
  for (const Partial& p : ways(top_group_, live)) {
    Front end = p.front;
    cost_.flush(end, live);
    if (best && end.ns >= least) continue;
    best = &p;
    least = end.ns;
  }
  Way way;
  way.ns = least;
  way.front = best->front;
  for (const Partial* p = best; p->rest; p = p->rest) {
    const Member& m = members_[static_cast<size_t>(p->member)];
    way.steps.insert(way.steps.begin(), {m.node, m.rule});
  }
  return way;
}

}  // namespace zephon
