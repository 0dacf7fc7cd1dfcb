#include "graph/graph.h"

#include <xxhash.h>

#include <algorithm>
#include <variant>

#include "graph/expr_set.h"
#include "graph/op_def.h"

namespace zephon {
namespace {

class Hasher {
 public:
  void add(uint64_t word) { state_ = XXH3_64bits_withSeed(&word, sizeof word, state_); }
  void add(std::string_view text) { state_ = XXH3_64bits_withSeed(text.data(), text.size(), state_ ^ text.size()); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

uint64_t hash_expr(const Expr& e) {
  Hasher h;
  h.add(reinterpret_cast<uintptr_t>(e.op));
  for (ExprId arg : e.args) h.add(static_cast<uint64_t>(arg.index));
  for (const auto& [name, value] : e.attrs) {
    h.add(name);
    if (const auto* text = std::get_if<std::string>(&value))
      h.add(*text);
    else
      h.add(to_string(value));
  }
  h.add(e.draw_id);
  if (e.constant) {
    h.add(static_cast<uint64_t>(e.constant->size()));
    auto bytes = e.constant->bytes();
    h.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (const std::string& s : e.constant->string_items()) h.add(s);
  }
  return h.value();
}

bool same(const Expr& a, const Expr& b) {
  if (a.op != b.op || a.args != b.args || a.draw_id != b.draw_id || !(a.attrs == b.attrs) || !(a.type == b.type))
    return false;
  if (!a.constant != !b.constant) return false;
  return !a.constant || *a.constant == *b.constant;
}

}  // namespace

ExprId Graph::add(Expr expr) {
  const uint64_t hash = hash_expr(expr);
  auto [first, last] = interned_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (!same(exprs_[static_cast<size_t>(it->second)], expr)) continue;
    add_origin({it->second}, expr.origin);  // one expression written twice keeps both places
    return {it->second};
  }
  const auto index = static_cast<int32_t>(exprs_.size());
  exprs_.push_back(std::move(expr));
  interned_.emplace(hash, index);
  return {index};
}

void Graph::inherit_origin(ExprId to, ExprId from) {
  if (to == from) return;
  const std::vector<Span>& places = expr(from).origin;
  size_t& known = inherited_[uint64_t{static_cast<uint32_t>(from.index)} << 32 | static_cast<uint32_t>(to.index)];
  if (known < places.size()) add_origin(to, std::vector<Span>(places.begin() + static_cast<ptrdiff_t>(known), places.end()));
  known = places.size();
}

void Graph::add_origin(ExprId id, const std::vector<Span>& places) {
  std::vector<Span>& known = exprs_[static_cast<size_t>(id.index)].origin;
  constexpr size_t kFew = 16;
  for (const Span& place : places) {
    if (known.size() <= kFew) {
      if (std::find(known.begin(), known.end(), place) == known.end()) known.push_back(place);
      continue;
    }
    auto& set = places_[id.index];
    if (set.empty()) set.insert(known.begin(), known.end());
    if (set.insert(place).second) known.push_back(place);
  }
}

NodeId Graph::add(Node node) {
  nodes_.push_back(std::move(node));
  return {static_cast<int32_t>(nodes_.size()) - 1};
}

std::vector<NodeId> Graph::topological() const {
  std::vector<NodeId> order;
  if (!output_.valid()) return order;
  std::vector<char> state(nodes_.size());  // 0 new, 1 open, 2 done
  std::vector<NodeId> stack = {output_};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    char& s = state[static_cast<size_t>(id.index)];
    if (s == 0) {
      s = 1;
      const Node& n = node(id);
      for (auto it = n.inputs.rbegin(); it != n.inputs.rend(); ++it)
        if (state[static_cast<size_t>(it->index)] == 0) stack.push_back(*it);
      continue;
    }
    stack.pop_back();
    if (s == 1) {
      s = 2;
      order.push_back(id);
    }
  }
  return order;
}

int Graph::user_count(NodeId id) const {
  int count = id == output_ ? 1 : 0;
  for (NodeId user : topological())
    for (NodeId input : node(user).inputs) count += input == id;
  return count;
}

std::vector<ExprId> Graph::topological(ExprId root) const {
  std::vector<ExprId> order;
  if (!root.valid()) return order;
  // Marks of this walk are above those of earlier ones, so that nothing is cleared: most walks are short.
  thread_local std::vector<uint64_t> marks;
  thread_local uint64_t walk = 0;
  const uint64_t open = ++walk, done = ++walk;
  if (marks.size() < exprs_.size()) marks.resize(std::max(exprs_.size(), 2 * marks.size()));
  thread_local std::vector<ExprId> stack;
  stack.assign(1, root);
  order.reserve(8);
  while (!stack.empty()) {
    const ExprId id = stack.back();
    uint64_t& mark = marks[static_cast<size_t>(id.index)];
    if (mark < open) {
      mark = open;
      const Expr& e = expr(id);
      for (auto it = e.args.rbegin(); it != e.args.rend(); ++it)
        if (marks[static_cast<size_t>(it->index)] < open) stack.push_back(*it);
      continue;
    }
    stack.pop_back();
    if (mark == open) {
      mark = done;
      order.push_back(id);
    }
  }
  return order;
}

std::vector<ExprId> add_below(const Graph& graph, ExprId root, ExprSet& known) {
  std::vector<ExprId> order, stack = {root};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    const size_t waiting = stack.size();
    if (!known.contains(id))
      for (ExprId arg : graph.expr(id).args)
        if (!known.contains(arg)) stack.push_back(arg);
    if (stack.size() > waiting) continue;
    stack.pop_back();
    if (known.insert(id)) order.push_back(id);
  }
  return order;
}

ExprId Graph::substitute(ExprId root, const std::map<std::string, ExprId>& replacement) {
  return rewrite(root, [&](ExprId id) {
    const Expr& e = expr(id);
    if (e.op->name != "field") return id;
    auto it = replacement.find(e.attrs.text("name"));
    return it == replacement.end() ? id : it->second;
  });
}

ExprId add_field(Graph& graph, const OpTable& ops, const std::string& name, const Type& type, Span origin) {
  Expr e;
  e.op = ops.find("field");
  e.attrs.set("name", name);
  e.type = type;
  if (origin.valid()) e.origin.push_back(origin);
  return graph.add(std::move(e));
}

ExprId add_constant(Graph& graph, const OpTable& ops, Value value, Span origin) {
  Expr e;
  e.op = ops.find("const");
  std::vector<Dim> shape;
  for (int64_t extent : value.shape()) shape.push_back(Dim::of(extent));
  e.type = Type::tensor(value.elem(), std::move(shape));
  e.constant = std::make_shared<const Value>(std::move(value));
  if (origin.valid()) e.origin.push_back(origin);
  return graph.add(std::move(e));
}

}  // namespace zephon
