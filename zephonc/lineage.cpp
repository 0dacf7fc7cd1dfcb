#include "zephonc/lineage.h"

#include "graph/op_def.h"
#include "zephonc/sinks/digest.h"

namespace zephon {
namespace {

using Hashes = std::map<std::string, std::string>;  // field -> what it is made of

std::string call_text(const OpDef& op, const Attrs& attrs) {
  std::string text(op.name);
  for (const auto& [name, value] : attrs) text += '\0' + name + '=' + to_string(value);
  return text + '\0';
}

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {}

  std::map<int32_t, std::string> run() {
    std::map<int32_t, std::string> found;
    std::map<NodeId, Hashes> fields;  // of what a node gives
    std::map<NodeId, int> readers;
    const std::vector<NodeId> order = graph_.topological();
    for (NodeId id : order)
      for (NodeId input : graph_.node(id).inputs) ++readers[input];
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      Hashes own;
      if (node.inputs.size() == 1) {
        Hashes& above = fields.at(node.inputs[0]);
        own = readers[node.inputs[0]] == 1 ? std::move(above) : above;
      }
      for (const Assign& assign : node.assigns) own[assign.field] = hash(assign.expr, own);
      const bool filters = node.op->cls == OpClass::Subset && node.predicate.valid();
      if (filters) found[node.step] = hash(node.predicate, own);
      std::string begin;  // of the fields that the node makes by itself
      for (const Field& field : node.type.fields) {
        if (node.inputs.size() == 1 && own.contains(field.name)) continue;
        if (begin.empty()) begin = call_text(*node.op, node.attrs);
        std::string text = begin + field.name;
        for (NodeId input : node.inputs)
          if (auto it = fields.at(input).find(field.name); it != fields.at(input).end()) text += it->second;
        own[field.name] = hex_digest(text);
      }
      fields[id] = std::move(own);
    }
    return found;
  }

 private:
  std::string hash(ExprId root, const Hashes& fields) const {
    std::map<ExprId, std::string> done;
    for (ExprId id : graph_.topological(root)) {
      const Expr& e = graph_.expr(id);
      std::string text = call_text(*e.op, e.attrs) + to_string(e.type);
      if (e.op->cls == OpClass::Leaf && e.attrs.has("name"))
        if (auto it = fields.find(e.attrs.text("name")); it != fields.end()) {
          done[id] = it->second;
          continue;
        }
      if (e.constant) {
        text.append(reinterpret_cast<const char*>(e.constant->bytes().data()), e.constant->bytes().size());
        for (const std::string& item : e.constant->string_items()) text += item + '\0';
      }
      for (ExprId arg : e.args) text += done.at(arg);
      done[id] = hex_digest(text);
    }
    return done.at(root);
  }

  const Graph& graph_;
};

}  // namespace

std::map<int32_t, std::string> filter_lineage(const Graph& graph) { return Walk(graph).run(); }

std::string source_lineage(const Graph& graph) {
  std::string text;
  for (NodeId id : graph.topological())
    if (const Node& node = graph.node(id); node.inputs.empty()) text += call_text(*node.op, node.attrs);
  return hex_digest(text);
}

}  // namespace zephon
