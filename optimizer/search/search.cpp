#include "optimizer/search/search.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "optimizer/cost/stream_cost.h"
#include "optimizer/engine/rewrite.h"
#include "optimizer/search/memo.h"

namespace zephon {
namespace {

constexpr size_t kStretch = 12;     // steps that one memo orders
constexpr int kMostPairs = 15'000;  // of a whole program
constexpr double kWorthIt = 1e-6;   // of the cost: less is noise of summation

class Search {
 public:
  Search(Graph& graph, const Graph& before, std::span<const RuleEntry> rules, Door& door, const OpTable& ops,
         const Machine& machine)
      : graph_(graph),
        before_(before),
        door_(door),
        ops_(ops),
        machine_(machine),
        forms_(graph, rules, door, ops, machine),
        cost_(graph, machine, [this](const std::vector<ExprId>& roots) { return forms_.of(roots); }) {
    for (const RuleEntry& entry : rules)
      if (entry.phase == Phase::Order && entry.rule->match_node && door_.enabled(*entry.rule))
        rules_.push_back(entry.rule);
  }

  StepRanks run() {
    if (rules_.empty()) return {};
    live_ = live_fields(graph_);
    std::map<NodeId, size_t> chain_before;  // of a step
    const Chains then = chains_of(before_), now = chains_of(graph_);
    for (size_t i = 0; i < then.chains.size(); ++i)
      for (NodeId id : then.chains[i]) chain_before[id] = i;
    for (const std::vector<NodeId>& chain : now.chains) {
      const NodeId lowest = chain.back();
      std::set<size_t> candidates;
      for (NodeId id : chain)
        if (auto it = chain_before.find(id); it != chain_before.end()) candidates.insert(it->second);
      std::vector<NodeId> other;
      for (size_t candidate : candidates)
        if (other.empty() && chain.size() <= kStretch && same_steps(chain, then.chains[candidate]))
          for (NodeId step : then.chains[candidate]) other.push_back(graph_.add(Node(before_.node(step))));
      const NodeId top = order_chain(chain, other);
      for (NodeId user : now.readers.contains(lowest) ? now.readers.at(lowest) : std::vector<NodeId>())
        std::ranges::replace(graph_.node(user).inputs, lowest, top);
      if (graph_.output() == lowest) graph_.set_output(top);
    }
    for (const std::string& problem : verify_graph(graph_)) door_.problem("after the search: " + problem);
    door_.searched(report_);
    return std::move(ranks_);
  }

 private:
  static size_t index(NodeId id) { return static_cast<size_t>(id.index); }

  /// Else steps have come from another chain, or gone there: the two deliver different samples.
  bool same_steps(const std::vector<NodeId>& now, const std::vector<NodeId>& then) const {
    auto steps = [](const Graph& graph, const std::vector<NodeId>& chain) {
      std::vector<std::pair<int32_t, std::vector<int32_t>>> all;
      for (NodeId id : chain) all.emplace_back(graph.node(id).step, graph.node(id).part);
      std::ranges::sort(all);
      return all;
    };
    return steps(graph_, now) == steps(before_, then);
  }

  struct Chains {
    std::vector<std::vector<NodeId>> chains;  ///< steps with one input and one reader, source outward
    std::map<NodeId, std::vector<NodeId>> readers;
  };
  static Chains chains_of(const Graph& graph) {
    Chains found;
    const std::vector<NodeId> order = graph.topological();
    for (NodeId id : order)
      for (NodeId input : graph.node(id).inputs) found.readers[input].push_back(id);
    std::map<NodeId, size_t> ends;  // lowest step so far -> its chain
    for (NodeId id : order) {
      const Node& node = graph.node(id);
      if (node.inputs.size() != 1 || node.op->cls == OpClass::Merge) continue;
      const NodeId input = node.inputs[0];
      auto it = ends.find(input);
      if (it == ends.end() || found.readers[input].size() > 1 || input == graph.output()) {
        it = ends.emplace(id, found.chains.size()).first;
        found.chains.emplace_back();
      }
      const size_t chain = it->second;
      ends.erase(it);
      ends.emplace(id, chain);
      found.chains[chain].push_back(id);
    }
    return found;
  }

  /// Gives the lowest step of the chain as it is now.
  NodeId order_chain(const std::vector<NodeId>& chain, const std::vector<NodeId>& other) {
    Stretch at{graph_.node(chain.front()).inputs[0], {}, false, {}};
    // What was moved across the end of a stretch is no way of either.
    const bool whole = chain.size() <= kStretch;
    report_.bounded |= !whole;
    for (size_t i = 0; i < other.size(); ++i) graph_.node(other[i]).inputs[0] = i == 0 ? at.above : other[i - 1];
    for (size_t begin = 0; begin < chain.size(); begin += kStretch) {
      const size_t end = std::min(chain.size(), begin + kStretch);
      std::vector<std::vector<NodeId>> ways = {
          {chain.begin() + static_cast<ptrdiff_t>(begin), chain.begin() + static_cast<ptrdiff_t>(end)}};
      if (whole && !other.empty()) ways.push_back(other);
      order_stretch(ways, at);
    }
    if (at.changed) rank(chain, at.above);
    return at.above;
  }

  /// The steps of the chain by the order in which they stand now, of which `lowest` is the last.
  void rank(const std::vector<NodeId>& chain, NodeId lowest) {
    auto name = [&](NodeId id) {
      const Node& n = graph_.node(id);
      return std::tuple(n.step, n.part, n.op, n.assigns.empty() ? std::string() : n.assigns.front().field);
    };
    std::map<decltype(name(lowest)), size_t> places;
    size_t place = chain.size();
    for (NodeId id = lowest; place > 0; id = graph_.node(id).inputs[0]) places[name(id)] = place--;
    if (places.size() < chain.size()) return;  // parts of a step that nothing tells apart
    for (NodeId id : chain) ranks_[id] = places.at(name(id));
  }

  /// Where the next stretch begins.
  struct Stretch {
    NodeId above;
    Front front;                   ///< below the steps before `unpriced`
    bool changed = false;          ///< the order of some stretch
    std::vector<NodeId> unpriced;  ///< steps that stand where they stood; most programs need no cost of them
  };

  void price(Stretch& at) {
    for (NodeId id : at.unpriced) cost_.pass(at.front, graph_.node(id), live_[index(id)]);
    at.unpriced.clear();
  }

  /// `ways`: the steps as they stand, and perhaps as they stood before.
  void order_stretch(const std::vector<std::vector<NodeId>>& ways, Stretch& at) {
    const std::vector<NodeId>& stretch = ways.front();
    const FieldSet& live = live_[index(stretch.back())];
    graph_.node(stretch.front()).inputs[0] = at.above;
    auto stay = [&] {
      at.unpriced.insert(at.unpriced.end(), stretch.begin(), stretch.end());
      at.above = stretch.back();
    };
    if (stretch.size() == 1) return stay();
    if (report_.pairs > kMostPairs) {
      report_.bounded = true;
      return stay();
    }
    Memo memo(graph_, rules_, ops_, machine_, cost_, {});
    const bool choice = memo.explore(ways);
    ++report_.stretches;
    report_.groups += memo.groups();
    report_.members += memo.members();
    report_.pairs += memo.pairs();
    report_.bounded |= memo.bounded();
    if (!choice) return stay();
    price(at);
    Front whole = at.front;
    for (NodeId id : stretch) cost_.pass(whole, graph_.node(id), live_[index(id)]);
    cost_.flush(whole, live);
    const Memo::Way way = memo.cheapest(at.front, live);
    report_.bounded |= memo.bounded();
    if (way.ns >= whole.ns * (1 - kWorthIt)) return stay();
    at.changed = true;
    double before = whole.ns;
    for (const Memo::Step& step : way.steps) {
      Node& node = graph_.node(step.node);
      node.inputs = {at.above};
      at.above = step.node;
      if (!step.rule) continue;
      door_.applied({step.rule,
                     node.origin,
                     node.step,
                     door_.keeps_texts() ? to_text(graph_, step.node) : "",
                     before,
                     way.ns,
                     {},
                     {}});
      before = way.ns;
    }
    at.front = way.front;
  }

  Graph& graph_;
  const Graph& before_;
  Door& door_;
  const OpTable& ops_;
  const Machine& machine_;
  SettledForms forms_;
  StreamCost cost_;
  std::vector<const Rule*> rules_;
  std::vector<FieldSet> live_;
  SearchReport report_;
  StepRanks ranks_;
};

}  // namespace

StepRanks search_order(Graph& graph, const Graph& before, std::span<const RuleEntry> rules, Door& door,
                       const OpTable& ops, const Machine& machine) {
  return Search(graph, before, rules, door, ops, machine).run();
}

}  // namespace zephon
