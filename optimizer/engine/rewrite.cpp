// Nodes: a rule is tried at every node, source outward, and again at the same place while it applies, so that a step
// which moves k places costs k applications and no further search. Expressions: bottom-up inside each node, each
// expression once per rule and node. A phase ends when a whole round changes nothing.
#include "optimizer/engine/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "optimizer/analysis/fields.h"
#include "optimizer/cost/cost.h"

namespace zephon {
namespace {

constexpr int kMostRounds = 64;

class Engine final : public Rewriter {
 public:
  Engine(Graph& graph, Door& door, const OpTable& ops, const Machine& machine, bool verify)
      : graph_(graph), door_(door), ops_(ops), machine_(machine), verify_(verify) {}

  void run(Phase phase) {
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      for (const RuleEntry& entry : all_rules())
        if (entry.phase == phase && door_.enabled(*entry.rule)) changed |= sweep(*entry.rule);
      if (!changed) break;
    }
    check("phase");
  }

  Graph& graph() override { return graph_; }
  const OpTable& ops() const override { return ops_; }
  int users(NodeId node) const override { return users_.at(static_cast<size_t>(node.index)).count; }
  double tree_ns(ExprId expr) const override { return zephon::tree_ns(graph_, {expr}, machine_); }

  int expr_uses(ExprId expr) const override {
    auto it = expr_uses_.find(expr);
    return it == expr_uses_.end() ? 0 : it->second;
  }

  bool is_live(NodeId node, const std::string& field) override {
    if (live_.empty()) live_ = live_fields(graph_);
    return live_.at(static_cast<size_t>(node.index)).contains(field);
  }

  void exchange(NodeId outer, NodeId inner) override {
    Node& o = graph_.node(outer);
    Node& i = graph_.node(inner);
    redirect(outer, inner);
    o.inputs = i.inputs;
    i.inputs = {outer};
    // Fields: what `outer` now sees, and nothing that it added may be lost. What it did to the stream holds for `inner`
    // too.
    StreamType type = graph_.node(o.inputs[0]).type;
    const StreamType before = i.type;
    for (const Field& f : o.type.fields)
      if (!before.find(f.name)) type.fields.push_back(f);
    type.batch = o.type.batch;
    type.domain = o.type.domain;
    i.type = o.type;
    o.type = std::move(type);
    count_users();
  }

  void remove(NodeId node) override {
    redirect(node, graph_.node(node).inputs[0]);
    count_users();
  }

 private:
  struct Users {
    int count = 0;
  };

  /// Whoever reads `from` reads `to`.
  void redirect(NodeId from, NodeId to) {
    for (NodeId id : order_)
      if (id != to)
        for (NodeId& input : graph_.node(id).inputs)
          if (input == from) input = to;
    if (graph_.output() == from) graph_.set_output(to);
  }

  void count_users() {
    order_ = graph_.topological();
    users_.assign(graph_.node_count(), {});
    for (NodeId id : order_)
      for (NodeId input : graph_.node(id).inputs) ++users_[static_cast<size_t>(input.index)].count;
    ++users_[static_cast<size_t>(graph_.output().index)].count;
    live_.clear();
  }

  bool sweep(const Rule& rule) {
    count_users();
    bool changed = false;
    const std::vector<NodeId> order = order_;
    for (NodeId id : order) changed |= rule.match_node ? at_node(rule, id) : in_node(rule, id);
    return changed;
  }

  std::string_view refusing_guard(const Rule& rule, const Match& match) {
    for (const Guard& guard : rule.guards)
      if (!guard.holds(*this, match)) return guard.name;
    return {};
  }

  void check(std::string_view after) {
    for (const std::string& problem : verify_graph(graph_)) door_.problem(fmt::format("after {}: {}", after, problem));
  }

  bool at_node(const Rule& rule, NodeId id) {
    bool changed = false;
    while (reachable(id)) {
      Match match;
      match.outer = id;
      if (!rule.match_node(*this, id, match)) break;
      const Node& n = graph_.node(id);
      const std::string_view guard = refusing_guard(rule, match);
      if (!guard.empty()) {
        door_.refused({&rule, n.origin, n.step, to_text(graph_, id), guard});
        break;
      }
      Application a{&rule, n.origin, n.step, to_text(graph_, id), chain_ns(graph_, id, rule.depth, machine_),
                    0,     {},       {}};
      if (door_.keeps_texts()) a.before = to_text(graph_);
      const NodeId user = user_of(id);
      rule.apply_node(*this, match);
      changed = true;
      // The place where the pattern stood is now what the same user reads.
      const NodeId top = user.valid() ? graph_.node(user).inputs[0] : graph_.output();
      a.cost_after = chain_ns(graph_, top, rule.depth, machine_);
      if (door_.keeps_texts()) a.after = to_text(graph_);
      door_.applied(std::move(a));
      if (verify_) check(rule.name);
    }
    return changed;
  }

  bool reachable(NodeId id) const { return users_[static_cast<size_t>(id.index)].count > 0; }

  NodeId user_of(NodeId id) const {
    for (NodeId user : order_) {
      const std::vector<NodeId>& inputs = graph_.node(user).inputs;
      if (!inputs.empty() && inputs[0] == id) return user;
    }
    return {};
  }

  bool in_node(const Rule& rule, NodeId id) {
    node_ = id;
    bool changed = false;
    std::vector<ExprId> roots = roots_of(id);
    count_expr_uses(roots);
    for (size_t i = 0; i < roots.size(); ++i) {
      const ExprId before = roots[i];
      std::vector<Application> applications;
      const ExprId after = graph_.rewrite(before, [&](ExprId expr) { return at_expr(rule, id, expr, applications); });
      if (after == before) continue;
      changed = true;
      const std::string text = door_.keeps_texts() ? to_text(graph_) : "";
      set_root(id, i, after);
      roots[i] = after;
      for (Application& a : applications) {
        if (door_.keeps_texts()) {
          a.before = text;
          a.after = to_text(graph_);
        }
        door_.applied(std::move(a));
      }
      if (verify_) check(rule.name);
    }
    return changed;
  }

  ExprId at_expr(const Rule& rule, NodeId id, ExprId expr, std::vector<Application>& applications) {
    Match match;
    match.outer = id;
    match.expr = expr;
    if (!rule.match_expr(*this, expr, match)) return expr;
    const Node& n = graph_.node(id);
    const Span place = graph_.expr(expr).origin.empty() ? n.origin : graph_.expr(expr).origin.front();
    const std::string_view guard = refusing_guard(rule, match);
    if (!guard.empty()) {
      door_.refused({&rule, place, n.step, to_text(graph_, expr), guard});
      return expr;
    }
    const ExprId after = rule.apply_expr(*this, match);
    // What replaces an expression stands where it stood.
    const std::vector<Span> origin = graph_.expr(expr).origin;
    graph_.add_origin(after, origin);
    applications.push_back({&rule, place, n.step, to_text(graph_, expr), tree_ns(expr), tree_ns(after), {}, {}});
    return after;
  }

  std::vector<ExprId> roots_of(NodeId id) const {
    std::vector<ExprId> roots;
    for (const Assign& a : graph_.node(id).assigns) roots.push_back(a.expr);
    if (graph_.node(id).predicate.valid()) roots.push_back(graph_.node(id).predicate);
    return roots;
  }

  void set_root(NodeId id, size_t i, ExprId expr) {
    Node& n = graph_.node(id);
    (i < n.assigns.size() ? n.assigns[i].expr : n.predicate) = expr;
  }

  void count_expr_uses(const std::vector<ExprId>& roots) {
    expr_uses_.clear();
    std::set<ExprId> seen;
    for (ExprId root : roots) {
      ++expr_uses_[root];
      for (ExprId id : graph_.topological(root))
        if (seen.insert(id).second)
          for (ExprId arg : graph_.expr(id).args) ++expr_uses_[arg];
    }
  }

  Graph& graph_;
  Door& door_;
  const OpTable& ops_;
  const Machine& machine_;
  const bool verify_;
  NodeId node_;
  std::vector<NodeId> order_;
  std::vector<Users> users_;
  std::vector<FieldSet> live_;
  std::map<ExprId, int> expr_uses_;
};

}  // namespace

void rewrite(Graph& graph, Phase phase, Door& door, const OpTable& ops, const Machine& machine, bool verify) {
  Engine(graph, door, ops, machine, verify).run(phase);
}

}  // namespace zephon
