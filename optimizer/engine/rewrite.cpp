// One sweep goes over the nodes, source outward; at each place the rules of the phase are tried in their order, from
// the first again after each application, so that a step which moves k places costs k applications and no search.
// Expressions are rewritten bottom-up, each once per rule and node. A phase ends when a whole sweep changes nothing.
#include "optimizer/engine/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/expr_set.h"
#include "optimizer/analysis/fields.h"
#include "optimizer/cost/cost.h"

namespace zephon {
namespace {

constexpr int kMostSweeps = 64;

class Engine final : public Rewriter {
 public:
  Engine(Graph& graph, Door& door, const OpTable& ops, const Machine& machine, bool verify)
      : graph_(graph), door_(door), ops_(ops), machine_(machine), verify_(verify) {}

  void run(std::span<const RuleEntry> rules, Phase phase) {
    for (const RuleEntry& entry : rules)
      if (entry.phase == phase && door_.enabled(*entry.rule)) rules_.push_back(entry.rule);
    if (rules_.empty()) return;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep)
      if (!run_sweep()) break;
    forget_lost_fields();
    check("the phase");
  }

  Graph& graph() override { return graph_; }
  const OpTable& ops() const override { return ops_; }
  Reads& reads() override { return reads_; }
  int users(NodeId node) const override {
    return static_cast<int>(users_.at(index(node)).size()) + (graph_.output() == node);
  }
  double tree_ns(ExprId expr) const override { return zephon::tree_ns(graph_, {expr}, machine_); }
  double own_ns(ExprId expr) const override { return zephon::own_ns(graph_, expr, machine_); }
  double elements(ExprId expr) const override { return expected_elements(graph_.expr(expr).type, machine_); }

  const std::vector<ExprId>& expr_users(ExprId expr) const override {
    static const std::vector<ExprId> kNone;
    auto it = expr_users_.find(expr);
    return it == expr_users_.end() ? kNone : it->second;
  }

  bool is_live(NodeId node, const std::string& field) override { return live_.at(index(node)).contains(field); }

  void exchange(NodeId outer, NodeId inner) override {
    Node& o = graph_.node(outer);
    Node& i = graph_.node(inner);
    const NodeId source = i.inputs.at(0);
    redirect(outer, inner);
    std::replace(users_[index(source)].begin(), users_[index(source)].end(), inner, outer);
    o.inputs = {source};
    i.inputs = {outer};
    users_[index(inner)] = std::move(users_[index(outer)]);
    users_[index(outer)] = {inner};
    // `outer` sees the fields that `inner` saw; both see a stream of the kind that `outer` made.
    // What it assigns itself it has in any case: `inner` may still name a field that a removed step gave it.
    FieldList fields = graph_.node(source).type.fields;
    for (const Field& f : o.type.fields) {
      const bool own = std::ranges::any_of(o.assigns, [&](const Assign& a) { return a.field == f.name; });
      const bool there = std::ranges::any_of(fields, [&](const Field& known) { return known.name == f.name; });
      if (!there && (own || !i.type.find(f.name))) fields.push_back(f);
    }
    i.type = o.type;
    o.type.fields = std::move(fields);
    // What nothing below `outer` needed, `inner` may (the key of a bucketing batch), now that it is below.
    live_[index(inner)] = std::move(live_[index(outer)]);
    live_[index(outer)] = live_above(graph_, i, live_[index(inner)]);
  }

  void remove(NodeId node) override {
    const NodeId source = graph_.node(node).inputs.at(0);
    redirect(node, source);
    std::vector<NodeId>& readers = users_[index(source)];
    std::erase(readers, node);
    readers.insert(readers.end(), users_[index(node)].begin(), users_[index(node)].end());
    users_[index(node)].clear();
  }

 private:
  static size_t index(NodeId id) { return static_cast<size_t>(id.index); }

  /// Whoever reads `from` reads `to`.
  void redirect(NodeId from, NodeId to) {
    for (NodeId user : users_[index(from)]) {
      std::vector<NodeId>& inputs = graph_.node(user).inputs;
      std::replace(inputs.begin(), inputs.end(), from, to);
    }
    if (graph_.output() == from) graph_.set_output(to);
  }

  bool run_sweep() {
    const std::vector<NodeId> order = graph_.topological();
    users_.assign(graph_.node_count(), {});
    for (NodeId id : order)
      for (NodeId input : graph_.node(id).inputs) users_[index(input)].push_back(id);
    // Fields that are dead stay dead while rules change steps; exchange() sees to those of the steps that it moves. So
    // once a sweep is enough.
    live_ = live_fields(graph_);
    bool changed = false;
    for (NodeId id : order) changed |= at_place(id);
    // A whole sweep: in its midst a dead step may still read what another dead step above no longer makes.
    if (verify_ && changed) check(last_applied_);
    return changed;
  }

  bool at_place(NodeId id) {
    bool changed = false;
    for (size_t i = 0; i < rules_.size() && users(id) > 0;) {
      const Rule& rule = *rules_[i];
      const NodeId user = users_[index(id)].empty() ? NodeId{} : users_[index(id)].front();
      if (!(rule.match_node ? at_node(rule, id, user) : in_node(rule, id))) {
        ++i;
        continue;
      }
      changed = true;
      i = 0;
      last_applied_ = rule.name;
    }
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

  /// Long where expressions are deep, so only where somebody will read it.
  template <class Id>
  std::string text(Id id) const {
    return door_.keeps_texts() ? to_text(graph_, id) : std::string();
  }

  double cost(const Rule& rule, NodeId top) const {
    return rule.depth ? chain_ns(graph_, top, rule.depth, machine_) : 0;
  }

  bool at_node(const Rule& rule, NodeId id, NodeId user) {
    Match match;
    match.outer = id;
    if (!rule.match_node(*this, id, match)) return false;
    const Span place = graph_.node(id).origin;
    const int32_t step = graph_.node(id).step;
    if (const std::string_view guard = refusing_guard(rule, match); !guard.empty()) {
      door_.refused({&rule, place, step, text(id), guard});
      return false;
    }
    Application a{&rule, place, step, text(id), cost(rule, id), 0, {}, {}};
    if (door_.keeps_texts()) a.before = to_text(graph_);
    rule.apply_node(*this, match);
    // The place where the pattern stood is now what the same user reads.
    a.cost_after = cost(rule, user.valid() ? graph_.node(user).inputs[0] : graph_.output());
    if (door_.keeps_texts()) a.after = to_text(graph_);
    door_.applied(std::move(a));
    return true;
  }

  bool in_node(const Rule& rule, NodeId id) {
    const std::vector<ExprId> roots = roots_of(id);
    if (roots.empty()) return false;
    find_expr_users(roots);
    std::vector<Application> applications;
    std::map<ExprId, ExprId> done;
    bool changed = false;
    for (size_t i = 0; i < roots.size(); ++i) {
      for (ExprId expr : new_below(roots[i], done)) {
        Expr copy = graph_.expr(expr);
        bool moved = false;
        for (ExprId& arg : copy.args) {
          moved |= done.at(arg) != arg;
          arg = done.at(arg);
        }
        done[expr] = at_expr(rule, id, moved ? graph_.add(std::move(copy)) : expr, applications);
      }
      changed |= done.at(roots[i]) != roots[i];
    }
    if (!changed) return false;
    const std::string before = door_.keeps_texts() ? to_text(graph_) : "";
    for (size_t i = 0; i < roots.size(); ++i) set_root(id, i, done.at(roots[i]));
    const std::string after = door_.keeps_texts() ? to_text(graph_) : "";
    for (Application& a : applications) {
      a.before = before;
      a.after = after;
      door_.applied(std::move(a));
    }
    return true;
  }

  /// Expressions below `root` that are not in `done`, arguments first.
  std::vector<ExprId> new_below(ExprId root, const std::map<ExprId, ExprId>& done) const {
    std::vector<ExprId> order, stack = {root};
    ExprSet known;
    auto is_done = [&](ExprId id) { return done.contains(id) || known.contains(id); };
    while (!stack.empty()) {
      const ExprId id = stack.back();
      bool waits = false;
      if (!is_done(id))
        for (ExprId arg : graph_.expr(id).args)
          if (!is_done(arg)) {
            stack.push_back(arg);
            waits = true;
          }
      if (waits) continue;
      stack.pop_back();
      if (is_done(id)) continue;
      known.insert(id);
      order.push_back(id);
    }
    return order;
  }

  ExprId at_expr(const Rule& rule, NodeId id, ExprId expr, std::vector<Application>& applications) {
    Match match;
    match.outer = id;
    match.expr = expr;
    if (!rule.match_expr(*this, expr, match)) return expr;
    const Node& n = graph_.node(id);
    const Span place = graph_.expr(expr).origin.empty() ? n.origin : graph_.expr(expr).origin.front();
    if (const std::string_view guard = refusing_guard(rule, match); !guard.empty()) {
      door_.refused({&rule, place, n.step, text(expr), guard});
      return expr;
    }
    const ExprId after = rule.apply_expr(*this, match);
    if (after == expr) return expr;
    // What replaces an expression stands where it stood.
    const std::vector<Span> origin = graph_.expr(expr).origin;
    graph_.add_origin(after, origin);
    applications.push_back({&rule, place, n.step, text(expr), tree_ns(expr), tree_ns(after), {}, {}});
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

  void find_expr_users(const std::vector<ExprId>& roots) {
    expr_users_.clear();
    std::map<ExprId, ExprId> seen;
    for (ExprId root : roots) {
      for (ExprId id : new_below(root, seen)) {
        seen[id] = id;
        for (ExprId arg : graph_.expr(id).args) {
          std::vector<ExprId>& users = expr_users_[arg];
          if (users.empty() || users.back() != id) users.push_back(id);
        }
      }
      expr_users_[root].push_back({});
    }
  }

  /// Types list only fields that exist: what was assigned and then dropped as dead is gone below too.
  void forget_lost_fields() {
    std::vector<FieldSet> exist(graph_.node_count());
    for (NodeId id : graph_.topological()) {
      Node& n = graph_.node(id);
      FieldSet& mine = exist[index(id)];
      const bool adds = n.inputs.empty() || n.op->cls == OpClass::Policy;
      for (const Field& f : n.type.fields) {
        bool here = adds;
        for (NodeId input : n.inputs) here |= exist[index(input)].contains(f.name);
        for (const Assign& a : n.assigns) here |= a.field == f.name;
        if (here) mine.insert(f.name);
      }
      n.type.fields.erase_if([&](const Field& f) { return !mine.contains(f.name); });
    }
  }

  Graph& graph_;
  Door& door_;
  const OpTable& ops_;
  const Machine& machine_;
  const bool verify_;
  std::string_view last_applied_;
  Reads reads_{graph_};
  std::vector<const Rule*> rules_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<FieldSet> live_;
  std::map<ExprId, std::vector<ExprId>> expr_users_;
};

}  // namespace

void rewrite(Graph& graph, std::span<const RuleEntry> rules, Phase phase, Door& door, const OpTable& ops,
             const Machine& machine, bool verify) {
  Engine(graph, door, ops, machine, verify).run(rules, phase);
}

}  // namespace zephon
