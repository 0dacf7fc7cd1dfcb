// One sweep goes over the nodes, source outward; at each place the rules of the phase are tried in their order, from
// the first again after each application, and a rule may take a step past a whole row of others at once.
// Expressions are rewritten bottom-up, each once per rule and node. A phase ends when a whole sweep changes nothing.
#include "optimizer/engine/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "graph/expr_set.h"
#include "optimizer/analysis/fields.h"
#include "optimizer/cost/cost.h"

namespace zephon {
namespace {

constexpr int kMostSweeps = 64;

class Engine final : public Rewriter {
 public:
  Engine(Graph& graph, Door& door, const OpTable& ops, const Machine& machine, bool verify,
         const StepRanks* ranks = nullptr)
      : graph_(graph), door_(door), ops_(ops), machine_(machine), verify_(verify), ranks_(ranks) {}

  void run(std::span<const RuleEntry> rules, std::initializer_list<Phase> phases) {
    choose(rules, phases);
    if (rules_.empty()) return;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep)
      if (!run_sweep()) break;
    forget_lost_fields();
    check("the phase");
  }

  /// All rules of the phase on the expressions of one node, until none changes anything.
  void settle(NodeId id) {
    for (size_t i = 0; i < rules_.size();) i = in_node(*rules_[i]->rule, id) ? 0 : i + 1;
  }
  void choose(std::span<const RuleEntry> rules, std::initializer_list<Phase> phases) {
    for (const RuleEntry& entry : rules)
      if (std::ranges::find(phases, entry.phase) != phases.end() && door_.enabled(*entry.rule))
        rules_.push_back(&entry);
  }

  Graph& graph() override { return graph_; }
  const OpTable& ops() const override { return ops_; }
  Reads& reads() override { return reads_; }
  int users(NodeId node) const override {
    return static_cast<int>(users_.at(index(node)).size()) + (graph_.output() == node);
  }
  NodeId reader(NodeId node) const override {
    const std::vector<NodeId>& readers = users_.at(index(node));
    return readers.size() == 1 && graph_.output() != node ? readers.front() : NodeId{};
  }
  size_t reach() const override { return graph_.node_count(); }
  double tree_ns(ExprId expr) const override { return zephon::tree_ns(graph_, {expr}, machine_); }
  double own_ns(ExprId expr) const override { return zephon::own_ns(graph_, expr, machine_); }
  double elements(ExprId expr) const override { return expected_elements(graph_.expr(expr).type, machine_); }
  const Machine& machine() const override { return machine_; }

  const std::vector<ExprId>& expr_users(ExprId expr) const override {
    static const std::vector<ExprId> kNone;
    asked_for_users_ = true;
    if (!users_known_) find_expr_users();
    auto it = expr_users_.find(expr.index);
    return it == expr_users_.end() ? kNone : it->second;
  }

  bool is_live(NodeId node, const std::string& field) override { return live_.at(index(node)).contains(field); }

  void exchange(NodeId outer, NodeId inner) override {
    const NodeId source = graph_.node(inner).inputs.at(0);
    redirect(outer, inner);
    std::replace(users_[index(source)].begin(), users_[index(source)].end(), inner, outer);
    exchange_steps(graph_, outer, inner);
    users_[index(inner)] = std::move(users_[index(outer)]);
    users_[index(outer)] = {inner};
    live_[index(inner)] = std::move(live_[index(outer)]);
    // What `inner` needs or passes on, and what `outer` itself assigns.
    live_[index(outer)] = live_[index(source)];
    live_[index(outer)].insert_all(live_[index(inner)]);
  }

  void remove(NodeId node) override {
    const NodeId source = graph_.node(node).inputs.at(0);
    redirect(node, source);
    std::vector<NodeId>& readers = users_[index(source)];
    std::erase(readers, node);
    readers.insert(readers.end(), users_[index(node)].begin(), users_[index(node)].end());
    users_[index(node)].clear();
  }

  NodeId insert_above(NodeId user, size_t input, Node step) override {
    const NodeId source = graph_.node(user).inputs.at(input);
    const NodeId id = Rewriter::insert_above(user, input, std::move(step));
    std::vector<NodeId>& readers = users_[index(source)];
    *std::find(readers.begin(), readers.end(), user) = id;
    users_.resize(graph_.node_count());
    live_.resize(graph_.node_count());
    users_[index(id)] = {user};
    live_[index(id)] = live_[index(source)];
    return id;
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
    if (verify_ && changed) {
      forget_lost_fields(true);
      check(last_applied_);
    }
    return changed;
  }

  bool at_place(NodeId id) {
    bool changed = false;
    for (size_t i = 0; i < rules_.size() && users(id) > 0;) {
      const Rule& rule = *rules_[i]->rule;
      const NodeId user = users_[index(id)].empty() ? NodeId{} : users_[index(id)].front();
      if (!(rule.match_node ? at_node(*rules_[i], id, user) : in_node(rule, id))) {
        ++i;
        continue;
      }
      changed = true;
      i = 0;
      last_applied_ = rule.name;
    }
    return changed;
  }

  std::string_view refusing_guard(const Rule& rule, const Match& match, bool whatever_it_costs = false) {
    for (const Guard& guard : rule.guards)
      if (!(guard.cost && whatever_it_costs) && !guard.holds(*this, match)) return guard.name;
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

  double cost(const Rule& rule, const Match& match, NodeId top) const {
    const int depth = match.row.empty() ? rule.depth : static_cast<int>(match.row.size()) + 1;
    return rule.depth ? chain_ns(graph_, top, depth, machine_) : 0;
  }

  /// What a row makes that the filter above it has made: equal only when the fields are what stands for them.
  double taken_twice_ns(const Match& match) const {
    const Node& filter = graph_.node(match.outer);
    ExprSet seen(graph_.topological(filter.predicate));
    double ns = 0;
    for (const Assign& a : match.taken_of_row())
      for (ExprId id : add_below(graph_, a.expr, seen)) ns += own_ns(id);
    return ns * row_factor(graph_, filter, machine_);
  }

  /// Where the places of both are known, `outer` should pass the step above it.
  std::optional<bool> should_pass(NodeId outer, NodeId above) const {
    if (!ranks_) return std::nullopt;
    const auto mine = ranks_->find(outer), theirs = ranks_->find(above);
    if (mine == ranks_->end() || theirs == ranks_->end()) return std::nullopt;
    return mine->second < theirs->second;
  }

  bool at_node(const RuleEntry& entry, NodeId id, NodeId user) {
    const Rule& rule = *entry.rule;
    Match match;
    match.outer = id;
    if (!rule.match_node(*this, id, match)) return false;
    const Span place = graph_.node(id).origin;
    const int32_t step = graph_.node(id).step;
    const std::optional<bool> passes = entry.phase == Phase::Order ? should_pass(id, match.inner) : std::nullopt;
    std::string_view guard = refusing_guard(rule, match, passes.value_or(false));
    if (guard.empty() && passes == false) guard = "the search found no better place for the step above";
    if (!guard.empty()) {
      door_.refused({&rule, place, step, text(id), guard});
      return false;
    }
    if (passes)
      match.row.erase(std::ranges::find_if(match.row, [&](NodeId above) { return should_pass(id, above) != true; }),
                      match.row.end());
    Application a{&rule, place, step, text(id), cost(rule, match, id), 0, {}, {}};
    if (door_.keeps_texts()) a.before = to_text(graph_);
    rule.apply_node(*this, match);
    // The place where the pattern stood is now what the same user reads.
    a.cost_after = cost(rule, match, user.valid() ? graph_.node(user).inputs[0] : graph_.output());
    if (!match.taken.empty()) a.cost_after -= taken_twice_ns(match);
    if (door_.keeps_texts()) a.after = to_text(graph_);
    door_.applied(std::move(a));
    return true;
  }

  bool in_node(const Rule& rule, NodeId id) {
    const std::vector<ExprId> roots = roots_of(id);
    ExprSet& hopeless = hopeless_[&rule];
    if (std::ranges::all_of(roots, [&](ExprId root) { return hopeless.contains(root); })) return false;
    if (users_known_ && user_roots_ != roots) users_known_ = false;
    user_roots_ = roots;
    std::vector<Application> applications;
    std::unordered_map<int32_t, ExprId> became;  // of those that changed
    auto now = [&](ExprId expr) {
      auto it = became.find(expr.index);
      return it == became.end() ? expr : it->second;
    };
    for (ExprId expr : all_below(roots, hopeless)) {
      const ExprId over = graph_.with_args(expr, now);
      const bool open =
          std::ranges::any_of(graph_.expr(expr).args, [&](ExprId arg) { return !hopeless.contains(arg); });
      asked_for_users_ = false;
      bool matched = false;
      const ExprId after = at_expr(rule, id, over, applications, matched);
      if (after != expr) became.emplace(expr.index, after);
      if (over == expr && !open && !matched && !asked_for_users_) hopeless.insert(expr);
    }
    if (std::ranges::all_of(roots, [&](ExprId root) { return now(root) == root; })) return false;
    const std::string before = door_.keeps_texts() ? to_text(graph_) : "";
    for (size_t i = 0; i < roots.size(); ++i) set_root(id, i, now(roots[i]));
    const std::string after = door_.keeps_texts() ? to_text(graph_) : "";
    for (Application& a : applications) {
      a.before = before;
      a.after = after;
      door_.applied(std::move(a));
    }
    return true;
  }

  /// Expressions below the roots but for those in `known`, arguments first.
  std::vector<ExprId> all_below(const std::vector<ExprId>& roots, ExprSet known = {}) const {
    std::vector<ExprId> order;
    for (ExprId root : roots) {
      const std::vector<ExprId> more = add_below(graph_, root, known);
      order.insert(order.end(), more.begin(), more.end());
    }
    return order;
  }

  ExprId at_expr(const Rule& rule, NodeId id, ExprId expr, std::vector<Application>& applications, bool& matched) {
    Match match;
    match.outer = id;
    match.expr = expr;
    matched = rule.match_expr(*this, expr, match);
    if (!matched) return expr;
    const Node& n = graph_.node(id);
    const Span place = graph_.expr(expr).origin.empty() ? n.origin : graph_.expr(expr).origin.front();
    if (const std::string_view guard = refusing_guard(rule, match); !guard.empty()) {
      door_.refused({&rule, place, n.step, text(expr), guard});
      return expr;
    }
    const ExprId after = rule.apply_expr(*this, match);
    if (after == expr) return expr;
    // What replaces an expression stands where it stood.
    graph_.inherit_origin(after, expr);
    if (door_.records())
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

  void find_expr_users() const {
    users_known_ = true;
    expr_users_.clear();
    for (ExprId id : all_below(user_roots_))
      for (ExprId arg : graph_.expr(id).args) {
        std::vector<ExprId>& users = expr_users_[arg.index];
        if (users.empty() || users.back() != id) users.push_back(id);
      }
    for (ExprId root : user_roots_) expr_users_[root.index].push_back({});
  }

  /// Types list only fields that exist: what was assigned and then dropped as dead is gone below too.
  void forget_lost_fields(bool types_only = false) {
    for (NodeId id : graph_.topological()) {
      Node& n = graph_.node(id);
      if (n.inputs.empty() || n.op->cls == OpClass::Policy) continue;
      std::unordered_map<std::string_view, ExprId> assigned;
      for (const Assign& a : n.assigns) assigned[a.field] = a.expr;
      auto is_lost = [&](size_t i) {
        const std::string& name = n.type.fields[i].name;
        return !assigned.contains(name) && std::ranges::none_of(n.inputs, [&](NodeId input) {
          const FieldList& above = graph_.node(input).type.fields;
          return n.type.fields.shares_block(above, i) || above.find(name, i);
        });
      };
      FieldSet lost;
      for (size_t i = 0; i < n.type.fields.size() && !types_only; ++i)
        if (is_lost(i)) lost.insert(n.type.fields[i].name);
      if (!lost.empty()) n.type.fields.erase_if([&](const Field& f) { return lost.contains(f.name); });
      if (n.op->infer_stream != nullptr) continue;
      // A field that was assigned another type, where nothing needed it, has the type of above again.
      const FieldList& above = graph_.node(n.inputs[0]).type.fields;
      for (size_t i = 0; i < n.type.fields.size(); ++i) {
        const Field& f = n.type.fields[i];
        const auto it = assigned.find(f.name);
        if (it == assigned.end() && n.type.fields.shares_block(above, i)) continue;
        const Field* there = it == assigned.end() ? above.find(f.name, i) : nullptr;
        const Type* type = it != assigned.end() ? &graph_.expr(it->second).type : there ? &there->type : nullptr;
        if (type && *type != f.type) n.type.fields.set_type(i, Type(*type));
      }
    }
  }

  Graph& graph_;
  Door& door_;
  const OpTable& ops_;
  const Machine& machine_;
  const bool verify_;
  std::string_view last_applied_;
  Reads reads_{graph_};
  const StepRanks* const ranks_;
  std::vector<const RuleEntry*> rules_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<FieldSet> live_;
  std::vector<ExprId> user_roots_;  // of the node that is being rewritten
  mutable std::unordered_map<int32_t, std::vector<ExprId>> expr_users_;
  mutable bool users_known_ = false, asked_for_users_ = false;
  /// By rule: expressions that it matches neither at nor below, whoever uses them. They never change.
  std::unordered_map<const Rule*, ExprSet> hopeless_;
};

}  // namespace

struct SettledForms::State {
  State(Graph& graph, const Door& enabled, const OpTable& ops, const Machine& machine)
      : door(enabled.quiet()), engine(graph, door, ops, machine, false), node(graph.add(Node())) {}
  Door door;
  Engine engine;
  NodeId node;
};

SettledForms::SettledForms(Graph& graph, std::span<const RuleEntry> rules, const Door& door, const OpTable& ops,
                           const Machine& machine)
    : state_(std::make_unique<State>(graph, door, ops, machine)) {
  state_->engine.choose(rules, {Phase::Expressions});
}

SettledForms::~SettledForms() = default;

std::vector<ExprId> SettledForms::of(const std::vector<ExprId>& roots) {
  Node& node = state_->engine.graph().node(state_->node);
  node.assigns.clear();
  for (ExprId root : roots) node.assigns.push_back({"", root});
  state_->engine.settle(state_->node);
  std::vector<ExprId> forms;
  for (const Assign& a : state_->engine.graph().node(state_->node).assigns) forms.push_back(a.expr);
  return forms;
}

void exchange_steps(Graph& graph, NodeId outer, NodeId inner) {
  Node& o = graph.node(outer);
  Node& i = graph.node(inner);
  const NodeId source = i.inputs.at(0);
  o.inputs = {source};
  i.inputs = {outer};
  // `outer` sees the fields that `inner` saw; both see a stream of the kind that `outer` made.
  // What it assigns itself it has in any case: `inner` may still name a field that a removed step gave it.
  const FieldList& above = graph.node(source).type.fields;
  if (o.assigns.empty() && o.type.fields.shares(i.type.fields)) {  // it makes none
    o.type.fields = above;
    i.type.batch = o.type.batch;
    i.type.domain = o.type.domain;
    i.type.endless = o.type.endless;
    return;
  }
  FieldList fields = above;
  for (size_t k = 0; k < o.type.fields.size(); ++k) {
    if (o.type.fields.shares_block(above, k)) continue;
    const Field& f = o.type.fields[k];
    const bool own = std::ranges::any_of(o.assigns, [&](const Assign& a) { return a.field == f.name; });
    const std::optional<size_t> there = fields.index(f.name);
    if (there && own) fields.set_type(*there, f.type);
    if (!there && (own || !i.type.find(f.name))) fields.push_back(f);
  }
  i.type = o.type;
  o.type.fields = std::move(fields);
}

void rewrite(Graph& graph, std::span<const RuleEntry> rules, std::initializer_list<Phase> phases, Door& door,
             const OpTable& ops, const Machine& machine, bool verify, const StepRanks* ranks) {
  Engine(graph, door, ops, machine, verify, ranks).run(rules, phases);
}

}  // namespace zephon
