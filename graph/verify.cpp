#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "graph/expr_set.h"
#include "graph/graph.h"
#include "graph/op_def.h"
#include "graph/signature.h"

namespace zephon {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    if (!graph_.output().valid()) return {"the graph has no output"};
    for (NodeId id : graph_.topological()) {
      check_node(id);
      check_keeping(id);
    }
    return std::move(problems_);
  }

 private:
  void problem(NodeId id, std::string text) {
    problems_.push_back(
        fmt::format("node {} ({}): {}", id.index, graph_.node(id).op ? graph_.node(id).op->name : "?", text));
  }

  void check_node(NodeId id) {
    const Node& n = graph_.node(id);
    if (!n.op || is_tensor_class(n.op->cls)) return problem(id, "is not a dataset operator");
    for (NodeId input : n.inputs)
      if (input.index < 0 || static_cast<size_t>(input.index) >= graph_.node_count())
        return problem(id, "an input is out of range");
    const bool source = n.op->cls == OpClass::Source;
    if (source != n.inputs.empty()) problem(id, source ? "a source has inputs" : "has no input");
    Visible visible{n.inputs.empty() ? n.type : graph_.node(n.inputs.front()).type, {}, {}};
    for (const Assign& a : n.assigns) {
      check_expr(id, a.expr, visible);
      const Type& type = graph_.expr(a.expr).type;
      if (const Field* f = n.type.find(a.field); f && f->type.elem != type.elem)
        problem(id, fmt::format("`{}` is declared {} but assigned {}", a.field, to_string(f->type), to_string(type)));
      const Type* old = visible.find(a.field);
      if (old && (old->elem != type.elem || old->rank() != type.rank())) visible.read.clear();
      visible.assigned.emplace_back(&a.field, &type);
    }
    if (n.predicate.valid()) {
      check_expr(id, n.predicate, visible);
      if (n.op->cls == OpClass::Subset && graph_.expr(n.predicate).type != Type::scalar(Elem::Bool))
        problem(id, "the predicate is not a bool");
    }
  }

  // What is kept for the next epoch must not be drawn anew in each.
  void check_keeping(NodeId id) {
    const Node& n = graph_.node(id);
    if (drawn_.size() < graph_.node_count()) drawn_.resize(graph_.node_count());
    auto draws = [&](ExprId root) {
      if (!root.valid() || static_cast<size_t>(root.index) >= graph_.expr_count()) return false;
      if (drawing_.contains(root)) return true;
      for (ExprId part : add_below(graph_, root, seen_)) {
        const Expr& e = graph_.expr(part);
        if (e.draw_id != 0 || std::ranges::any_of(e.args, [&](ExprId arg) { return drawing_.contains(arg); }))
          drawing_.insert(part);
      }
      return drawing_.contains(root);
    };
    bool drawn = draws(n.predicate);
    for (const Assign& a : n.assigns) drawn = drawn || draws(a.expr);
    for (NodeId input : n.inputs) drawn = drawn || drawn_[static_cast<size_t>(input.index)];
    if (drawn && n.op->algebra.keeps_rows) problem(id, "would keep what is drawn above it");
    drawn_[static_cast<size_t>(id.index)] = drawn;
  }

  // The fields of the input, and what the node has assigned so far.
  struct Visible {
    const StreamType& input;
    std::vector<std::pair<const std::string*, const Type*>> assigned;
    ExprSet read;  // expressions whose fields were looked at, as they are now
    const Type* find(const std::string& name) const {
      for (size_t i = assigned.size(); i-- > 0;)
        if (*assigned[i].first == name) return assigned[i].second;
      const Field* field = input.find(name);
      return field != nullptr ? &field->type : nullptr;
    }
  };

  void check_expr(NodeId node, ExprId root, Visible& visible) {
    if (!root.valid() || static_cast<size_t>(root.index) >= graph_.expr_count())
      return problem(node, "an expression is out of range");
    for (ExprId id : add_below(graph_, root, visible.read)) {
      const Expr& e = graph_.expr(id);
      if (e.op->name == "field") {
        const std::string& name = e.attrs.text("name");
        const Type* type = visible.find(name);
        if (!type) {
          problem(node, fmt::format("reads field `{}`, which its input does not have", name));
        } else if (type->elem != e.type.elem || type->rank() != e.type.rank()) {
          problem(node, fmt::format("reads field `{}` as {}, which is {}", name, to_string(e.type), to_string(*type)));
        }
        continue;
      }
      if ((e.op->cls == OpClass::Draw) != (e.draw_id != 0))
        problem(node, fmt::format("`{}` has a wrong draw id", e.op->name));
      if (e.op->cls == OpClass::Leaf || !checked_.insert(id)) continue;
      std::vector<Type> types;
      std::vector<const Value*> constants;
      types.reserve(e.args.size());
      constants.reserve(e.args.size());
      for (ExprId arg : e.args) {
        types.push_back(graph_.expr(arg).type);
        constants.push_back(graph_.expr(arg).constant.get());
      }
      std::string error;
      int bad = 0;
      std::optional<Type> type = unify(*e.op, e.attrs, types, constants, error, bad);
      if (!type) {
        problem(node, error);
      } else if (type->elem != e.type.elem || type->rank() != e.type.rank()) {
        problem(node, fmt::format("`{}` has type {}, should have {}", e.op->name, to_string(e.type), to_string(*type)));
      }
    }
  }

  const Graph& graph_;
  ExprSet checked_;
  ExprSet seen_, drawing_;  // looked at for draws; and those that draw, or of which a part does
  std::vector<char> drawn_;  // by node
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify_graph(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace zephon
