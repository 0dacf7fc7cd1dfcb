#include "optimizer/analysis/fields.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "graph/expr_set.h"
#include "optimizer/analysis/expressions.h"

namespace zephon {

namespace {
/// The one string that is equal to `name`; it lives as long as the process, as names of fields are few.
const std::string* interned(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> names;
  const std::lock_guard lock(mutex);
  const auto it = names.find(name);
  return &*(it == names.end() ? names.emplace(name).first : it);
}
}  // namespace

const FieldSet::Names& FieldSet::names() const {
  static const Names kNone;
  return names_ ? *names_ : kNone;
}

FieldSet::Names& FieldSet::own() {
  if (!names_ || names_.use_count() > 1) names_ = std::make_shared<Names>(names());
  return *names_;
}

size_t FieldSet::place_of(std::string_view name) const {
  const Names& all = names();
  const auto it = std::ranges::lower_bound(all, name, {}, [](const std::string* s) { return std::string_view(*s); });
  return static_cast<size_t>(it - all.begin());
}

bool FieldSet::contains(std::string_view name) const {
  const size_t at = place_of(name);
  return at < size() && *names()[at] == name;
}

bool FieldSet::insert(std::string_view name) {
  const size_t at = place_of(name);
  if (at < size() && *names()[at] == name) return false;
  own().insert(own().begin() + static_cast<ptrdiff_t>(at), interned(name));
  return true;
}

bool FieldSet::erase(std::string_view name) {
  const size_t at = place_of(name);
  if (at >= size() || *names()[at] != name) return false;
  own().erase(own().begin() + static_cast<ptrdiff_t>(at));
  return true;
}

void FieldSet::insert_all(const FieldSet& others) {
  if (others.names_ == names_ || others.empty()) return;
  if (empty()) {
    names_ = others.names_;
  } else if (others.size() <= 4) {
    for (const std::string& name : others) insert(name);
  } else {
    auto all = std::make_shared<Names>();
    std::ranges::set_union(names(), others.names(), std::back_inserter(*all),
                           [](const std::string* a, const std::string* b) { return *a < *b; });
    names_ = std::move(all);
  }
}

void add_reads(const Graph& graph, ExprId root, FieldSet& fields) {
  for (ExprId id : graph.topological(root))
    if (is_field(graph.expr(id))) fields.insert(graph.expr(id).attrs.text("name"));
}

const FieldSet& Reads::of(ExprId expr) {
  while (fields_.size() <= static_cast<size_t>(expr.index)) {
    const Expr& e = graph_.expr({static_cast<int32_t>(fields_.size())});
    FieldSet mine;
    if (is_field(e)) mine.insert(e.attrs.text("name"));
    for (ExprId arg : e.args) mine.insert_all(fields_[static_cast<size_t>(arg.index)]);
    fields_.push_back(std::move(mine));
  }
  return fields_[static_cast<size_t>(expr.index)];
}

FieldSet writes_of(const Node& node) {
  FieldSet fields;
  for (const Assign& a : node.assigns) fields.insert(a.field);
  return fields;
}

FieldSet live_above(const Graph& graph, const Node& node, FieldSet live) {
  ExprSet seen;   // expressions whose fields are in `live`
  FieldSet read;  // those fields
  auto add = [&](ExprId root) {
    for (ExprId id : add_below(graph, root, seen))
      if (is_field(graph.expr(id))) read.insert(graph.expr(id).attrs.text("name"));
    live.insert_all(read);
  };
  for (auto it = node.assigns.rbegin(); it != node.assigns.rend(); ++it) {
    if (!live.erase(it->field)) continue;
    if (read.contains(it->field)) {  // whoever reads it above means another value
      seen.clear();
      read = {};
    }
    add(it->expr);
  }
  if (node.predicate.valid()) add(node.predicate);
  for (const std::string& name : node.needed) live.insert(name);
  // What the operator itself adds (`valid` of on_error) does not exist above it.
  const FieldList& mine = node.type.fields;
  for (size_t i = 0; i < mine.size(); ++i) {
    const bool above = std::ranges::any_of(node.inputs, [&](NodeId input) {
      const FieldList& fields = graph.node(input).type.fields;
      return mine.shares_block(fields, i) || fields.find(mine[i].name, i);
    });
    if (!above) live.erase(mine[i].name);
  }
  return live;
}

std::vector<FieldSet> live_fields(const Graph& graph) {
  std::vector<FieldSet> live(graph.node_count());
  const std::vector<NodeId> order = graph.topological();
  if (order.empty()) return live;
  for (const Field& f : graph.node(graph.output()).type.fields)
    if (!is_hidden(f.name)) live[static_cast<size_t>(graph.output().index)].insert(f.name);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    const FieldSet above = live_above(graph, node, live[static_cast<size_t>(it->index)]);
    for (NodeId input : node.inputs) {
      FieldSet& mine = live[static_cast<size_t>(input.index)];
      // Of a pair each input has what the other has not.
      if (node.inputs.size() == 1)
        mine.insert_all(above);
      else
        for (const std::string& field : above)
          if (graph.node(input).type.find(field)) mine.insert(field);
    }
  }
  return live;
}

ExprId resolve(Graph& graph, Reads& reads, ExprId expr, const Environment& env) {
  for (const std::string& field : reads.of(expr)) {
    auto it = env.find(field);
    if (it == env.end()) continue;
    const Expr& e = graph.expr(it->second);
    if (!is_field(e) || e.attrs.text("name") != field) return graph.substitute(expr, env);
  }
  return expr;
}

void apply_assigns(Graph& graph, Reads& reads, const std::vector<Assign>& assigns, Environment& env) {
  for (const Assign& a : assigns) env[a.field] = resolve(graph, reads, a.expr, env);
}

}  // namespace zephon
