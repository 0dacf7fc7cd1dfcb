// Graph to text. Deterministic: tests compare it.
#include <fmt/format.h>

#include <map>
#include <span>
#include <unordered_map>

#include "graph/graph.h"
#include "graph/identity_text.h"
#include "graph/op_def.h"
#include "graph/signature.h"

namespace zephon {
namespace {

struct Symbol {
  std::string_view op, text;
  int precedence;
};
constexpr Symbol kBinary[] = {{"or", "or", 1},        {"and", "and", 2}, {"eq", "==", 4}, {"ne", "!=", 4},
                              {"lt", "<", 4},         {"le", "<=", 4},   {"gt", ">", 4},  {"ge", ">=", 4},
                              {"add", "+", 5},        {"sub", "-", 5},   {"mul", "*", 6}, {"div", "/", 6},
                              {"floor_div", "//", 6}, {"mod", "%", 6}};

std::string constant_text(const Value& v) {
  auto one = [&](int64_t i) -> std::string {
    Scalar s = v.at(i);
    if (s.elem == Elem::Bool) return s.i ? "true" : "false";
    if (is_string(s.elem)) return to_string(Attr(s.s));
    if (is_float(s.elem)) {
      // The shortest decimal that reads back as this element.
      std::string text = s.elem == Elem::F64 ? fmt::format("{}", s.f) : fmt::format("{}", static_cast<float>(s.f));
      return text;
    }
    return std::to_string(s.i);
  };
  if (v.rank() == 0) return one(0);
  std::string out = "[";
  constexpr int64_t kShown = 8;
  for (int64_t i = 0; i < v.size() && i < kShown; ++i) out += (i ? ", " : "") + one(i);
  if (v.size() > kShown) out += fmt::format(", ... {} in all", v.size());
  return out + "]";
}

// Text of an expression whose arguments' texts are known; precedence 9 is an atom.
struct Piece {
  std::string text;
  int precedence = 9;
};

std::string wrap(const Piece& p, int least) { return p.precedence < least ? "(" + p.text + ")" : p.text; }

// How many of an operator's parameters a person gives by their places: range(0, 10), files("*.jpg"), batch(8). The
// first one, and whole numbers behind a whole number.
size_t given_by_place(const OpDef& op, const Attrs& attrs) {
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  if (is_tensor_class(op.cls) || op.cls == OpClass::Merge || parameters.empty()) return 0;
  size_t count = 0;
  for (size_t i = 0; i < parameters.size() && attrs.has(parameters[i].name); ++i) {
    const StaticKind kind = parameters[i].static_kind;
    if (kind != StaticKind::Int && (i > 0 || kind != StaticKind::String)) break;
    if (i > 0 && parameters[0].static_kind != StaticKind::Int) break;
    if (!parameters[i].default_value) count = i + 1;
  }
  return count;
}

// A long table is not for reading.
std::string attr_text(const Attr& value) {
  constexpr size_t kShown = 8, kLong = 32;
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (!numbers || numbers->size() < kLong) return to_string(value);
  std::string text = to_string(Attr(std::vector<double>(numbers->begin(), numbers->begin() + kShown)));
  text.pop_back();
  return text + fmt::format(", ... {} in all]", numbers->size());
}

void add_attrs(std::string& list, const OpDef& op, const Attrs& attrs) {
  const Signature& signature = signature_of(op);
  const size_t places = given_by_place(op, attrs);
  std::map<std::string_view, const Attr*> given;
  for (const auto& [name, value] : attrs) given.emplace(name, &value);
  auto add = [&](const std::string& text) { list += (list.empty() ? "" : ", ") + text; };
  for (size_t i = 0; i < places; ++i) add(to_string(*given.at(signature.parameters[i].name)));
  for (const auto& [name, value] : attrs) {
    // What no parameter declares is no argument, but a fact that the optimizer noted.
    bool shown = !is_tensor_class(op.cls);
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const Parameter& p = signature.parameters[i];
      if (p.name == name) shown = true;
      if (p.name == name && (i < places || (p.default_value && *p.default_value == value))) shown = false;
    }
    // One value for the first parameter, which has a default: range(10).
    const bool first = list.empty() && !is_tensor_class(op.cls) && op.cls != OpClass::Merge &&
                       !signature.parameters.empty() && signature.parameters[0].name == name &&
                       signature.parameters[0].static_kind == StaticKind::Int;
    if (shown) add(first ? to_string(value) : fmt::format("{}={}", name, attr_text(value)));
  }
}

// `argument` gives the text of an argument.
template <class Argument>
Piece piece(const Expr& e, Argument&& argument) {
  const std::string_view name = e.op->name;
  if (name == "field") return {e.attrs.text("name")};
  if (e.constant) return {constant_text(*e.constant)};
  std::vector<const Piece*> args;
  for (ExprId arg : e.args) args.push_back(argument(arg));
  for (const Symbol& s : kBinary)
    if (s.op == name && args.size() == 2)
      return {wrap(*args[0], s.precedence).append(" ").append(s.text).append(" ") + wrap(*args[1], s.precedence + 1),
              s.precedence};
  if (name == "neg") return {"-" + wrap(*args[0], 7), 7};
  if (name == "not") return {"not " + wrap(*args[0], 3), 3};
  if (name == "cast") return {std::string(elem_name(e.type.elem)) + "(" + args[0]->text + ")"};
  if (name == "index") {
    std::string list;
    for (size_t i = 1; i < args.size(); ++i) list += (i > 1 ? ", " : "") + args[i]->text;
    return {fmt::format("{}[{}]", wrap(*args[0], 9), list)};
  }
  std::string list;
  for (size_t i = 1; i < args.size(); ++i) list += (i > 1 ? ", " : "") + args[i]->text;
  add_attrs(list, *e.op, e.attrs);
  if (args.empty()) return {fmt::format("{}({})", name, list)};
  return {wrap(*args[0], 9).append(".").append(name).append("(").append(list).append(")")};
}

/// The roots of one node, or one expression. What is used again is written again, as a person would; but where that
/// would take more than kLongest characters, what is used again gets a name (`%0 = ...`) in front: an expression is a
/// graph, and the tree of it may be larger than any memory.
class ExprText {
 public:
  ExprText(const Graph& graph, std::span<const ExprId> roots) {
    std::vector<ExprId> order;
    double longest = 0;
    for (ExprId root : roots)
      for (ExprId id : graph.topological(root)) {
        auto [it, fresh] = done_.try_emplace(id.index);
        if (!fresh) continue;
        order.push_back(id);
        it->second.size = kOwnSize;
        for (ExprId arg : graph.expr(id).args) {
          it->second.size += done_.at(arg.index).size;
          ++done_.at(arg.index).uses;
        }
      }
    for (ExprId root : roots) {
      ++done_.at(root.index).uses;
      longest += done_.at(root.index).size;
    }
    const bool names = longest > kLongest;
    int named = 0;
    for (ExprId id : order) {
      Done& own = done_.at(id.index);
      own.piece = piece(graph.expr(id), [&](ExprId arg) { return &done_.at(arg.index).piece; });
      if (!names || own.uses < 2 || own.piece.text.size() < kNamed) continue;
      std::string name = fmt::format("%{}", named++);
      definitions_ += name + " = " + own.piece.text + "; ";
      own.piece = {std::move(name)};
    }
  }
  /// Stands before the first of the roots; empty, or ends with a semicolon and a space.
  const std::string& definitions() const { return definitions_; }
  const std::string& of(ExprId root) const { return done_.at(root.index).piece.text; }

 private:
  static constexpr double kOwnSize = 8, kLongest = 4000;
  static constexpr size_t kNamed = 40;
  struct Done {
    Piece piece;
    double size = 0;  // of the tree, about
    int uses = 0;
  };
  std::unordered_map<int32_t, Done> done_;
  std::string definitions_;
};

std::string expr_text(const Graph& graph, ExprId root) {
  const ExprText text(graph, std::span(&root, 1));
  return text.definitions() + text.of(root);
}

std::string node_text(const Graph& graph, const Node& n) {
  const std::string_view name = n.op->name;
  if (name == "assign") {
    std::vector<ExprId> roots;
    for (const Assign& a : n.assigns) roots.push_back(a.expr);
    const ExprText text(graph, roots);
    std::string out;
    for (const Assign& a : n.assigns) out += (out.empty() ? "" : "; ") + a.field + " = " + text.of(a.expr);
    return text.definitions() + out;
  }
  if (name == "filter") {
    const ExprText text(graph, std::span(&n.predicate, 1));
    return text.definitions() + "filter " + text.of(n.predicate);
  }
  if (n.attrs.has("fields")) {
    std::string out(name);
    const auto& fields = n.attrs.get<std::vector<std::string>>("fields");
    for (size_t i = 0; i < fields.size(); ++i) out += (i ? ", " : " ") + fields[i];
    return out;
  }
  std::string list = n.predicate.valid() && !n.attrs.has("key") ? expr_text(graph, n.predicate) : "";
  add_attrs(list, *n.op, n.attrs);
  return fmt::format("{}({})", n.op->surface.empty() ? name : n.op->surface, list);
}

class TreePrinter {
 public:
  TreePrinter(const Graph& graph, const TextOptions& options) : graph_(graph), options_(options) {
    for (NodeId id : graph.topological())
      for (NodeId input : graph.node(id).inputs) ++uses_[input];
  }

  void print(NodeId id, const std::string& first, const std::string& rest) {
    std::string label;
    if (uses_[id] > 1) {
      auto [it, fresh] = shared_.emplace(id, static_cast<int>(shared_.size()) + 1);
      if (!fresh) {
        out_ += fmt::format("{}#{}\n", first, it->second);
        return;
      }
      label = fmt::format("#{} = ", it->second);
    }
    const Node& n = graph_.node(id);
    std::string line = first + label + node_text(graph_, n);
    if (options_.types) line += "  : " + to_string(n.type);
    if (options_.lines && n.origin.valid()) line += fmt::format("  @step {}", n.step);
    out_ += line + "\n";
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const bool last = i + 1 == n.inputs.size();
      print(n.inputs[i], rest + (last ? "└── " : "├── "), rest + (last ? "    " : "│   "));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  const Graph& graph_;
  const TextOptions& options_;
  std::map<NodeId, int> uses_;
  std::map<NodeId, int> shared_;
  std::string out_;
};

std::string exact_value(const Value& v) {
  std::string out = fmt::format("{}[", elem_name(v.elem()));
  for (int64_t extent : v.shape()) out += fmt::format("{} ", extent);
  out += "]";
  for (int64_t i = 0; i < v.size(); ++i) {
    Scalar s = v.at(i);
    if (is_string(s.elem))
      out += fmt::format(" {}:{}", s.s.size(), s.s);
    else if (is_float(s.elem))
      out += fmt::format(" {:a}", s.f);
    else
      out += fmt::format(" {}", s.i);
  }
  return out;
}

std::string exact_attrs(const Attrs& attrs) {
  std::string out;
  for (const auto& [name, value] : attrs) {
    std::string text = to_string(value);
    out += fmt::format(" {}={}:{}", name, text.size(), text);
  }
  return out;
}

}  // namespace

std::string identity_text(const Graph& graph) {
  std::string out;
  std::map<ExprId, size_t> exprs;
  std::map<NodeId, size_t> nodes;
  auto add = [&](ExprId root) {
    for (ExprId id : graph.topological(root)) {
      if (!exprs.emplace(id, exprs.size()).second) continue;
      const Expr& e = graph.expr(id);
      out += fmt::format("e{} {}", exprs[id], e.op->name);
      for (ExprId arg : e.args) out += fmt::format(" e{}", exprs[arg]);
      out += exact_attrs(e.attrs);
      if (e.constant) out += " " + exact_value(*e.constant);
      if (e.draw_id != 0) out += fmt::format(" draw={:x}", e.draw_id);
      out += " : " + to_string(e.type) + "\n";
    }
    return exprs[root];
  };
  for (NodeId id : graph.topological()) {
    const Node& n = graph.node(id);
    std::string line = fmt::format("n{} {}", nodes.size(), n.op->name);
    nodes.emplace(id, nodes.size());
    for (size_t i = 0; i < n.inputs.size(); ++i)
      line += fmt::format(" n{}{}", nodes[n.inputs[i]], i < n.input_names.size() ? "=" + n.input_names[i] : "");
    line += exact_attrs(n.attrs);
    for (const Assign& a : n.assigns) line += fmt::format(" {}=e{}", a.field, add(a.expr));
    if (n.predicate.valid()) line += fmt::format(" if e{}", add(n.predicate));
    for (const std::string& field : n.needed) line += " needs " + field;
    out += line + fmt::format(" stream={} : {}\n", n.stream, to_string(n.type));
  }
  return out;
}

std::string to_text(const Graph& graph, ExprId expr) { return expr_text(graph, expr); }
std::string to_text(const Graph& graph, NodeId node) { return node_text(graph, graph.node(node)); }

std::string to_text(const Graph& graph, const TextOptions& options) {
  if (!graph.output().valid()) return "(empty)\n";
  TreePrinter printer(graph, options);
  printer.print(graph.output(), "", "");
  return printer.take();
}

}  // namespace zephon
