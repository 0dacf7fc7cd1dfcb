// The physical plan as text: deterministic, and what the plan's hash is taken of.
#include <fmt/format.h>

#include <map>

#include "graph/op_def.h"
#include "graph/plan.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/plan/render.h"

namespace zephon {

std::string_view kind_name(PlanNode::Kind kind) {
  switch (kind) {
    case PlanNode::Kind::Source:
      return "source";
    case PlanNode::Kind::Compute:
      return "compute";
    case PlanNode::Kind::Serial:
      return "serial";
    case PlanNode::Kind::Ordered:
      return "ordered";
    case PlanNode::Kind::Repeat:
      return "repeat";
    case PlanNode::Kind::Batch:
      return "batch";
    case PlanNode::Kind::Unbatch:
      return "unbatch";
    case PlanNode::Kind::Deliver:
      return "deliver";
  }
  return "?";
}

std::string_view kind_name(KernelGroup::Kind kind) {
  switch (kind) {
    case KernelGroup::Kind::Columnar:
      return "columns";
    case KernelGroup::Kind::PerSample:
      return "fused";
    case KernelGroup::Kind::Native:
      return "native";
  }
  return "?";
}

StageText::StageText(Graph& graph, const PlanNode& node) : graph_(graph), node_(node) {
  for (size_t i = 0; i < graph_.expr_count() && !field_op_; ++i) {
    const Expr& e = graph_.expr({static_cast<int32_t>(i)});
    if (is_field(e)) field_op_ = e.op;
  }
  for (const OutputField& f : node.outputs)
    if (!is_leaf(graph_.expr(f.expr))) names_.emplace(f.expr, f.name);
  int next = 0;
  for (const ComputeStep& s : node.steps)
    for (ExprId root : s.group.roots)
      if (names_.emplace(root, "").second) names_[root] = fmt::format("%{}", next++);
}

std::string StageText::name_of(ExprId expr) const {
  auto it = names_.find(expr);
  return it == names_.end() ? to_text(graph_, expr) : it->second;
}

std::string StageText::definition(ExprId root) {
  // Results of earlier groups print by their names; the expression itself by what it is. Nothing below a name is
  // walked.
  std::map<ExprId, ExprId> shown;
  std::vector<ExprId> stack = {root};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    const Expr e = graph_.expr(id);
    auto name = names_.find(id);
    if (is_leaf(e) || shown.contains(id)) {
      shown.emplace(id, id);
      stack.pop_back();
    } else if (id != root && name != names_.end()) {
      Expr leaf;
      leaf.op = field_op_;
      leaf.attrs.set("name", name->second);
      leaf.type = e.type;
      shown[id] = leaf.op ? graph_.add(std::move(leaf)) : id;
      stack.pop_back();
    } else {
      Expr copy = e;
      bool waits = false;
      for (ExprId& arg : copy.args) {
        auto it = shown.find(arg);
        if (it == shown.end()) {
          stack.push_back(arg);
          waits = true;
        } else {
          arg = it->second;
        }
      }
      if (waits) continue;
      shown[id] = graph_.add(std::move(copy));
      stack.pop_back();
    }
  }
  return to_text(graph_, shown.at(root));
}

std::vector<std::string> StageText::lines() {
  std::vector<std::string> lines;
  for (const ComputeStep& s : node_.steps) {
    if (s.kind == ComputeStep::Kind::Filter) {
      lines.push_back(fmt::format("filter   {}", name_of(s.predicate)));
      continue;
    }
    std::string text;
    for (ExprId root : s.group.roots) text += (text.empty() ? "" : "; ") + name_of(root) + " = " + definition(root);
    lines.push_back(fmt::format("{:<8} {}", kind_name(s.group.kind), text));
  }
  return lines;
}

namespace {

std::string columns(const PlanNode& n) {
  std::string text;
  for (const OutputField& f : n.outputs) text += (text.empty() ? "" : ", ") + f.name;
  return text;
}

class PlanPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan), graph_(plan.graph) {}

  void print(PlanNodeId id, const std::string& first, const std::string& rest) {
    const PlanNode& n = plan_.at(id);
    out_ += first + headline(plan_, n) + "\n";
    const std::string body = rest + (n.inputs.empty() ? "    " : "│   ");
    if (n.kind == PlanNode::Kind::Compute)
      for (const std::string& line : StageText(graph_, n).lines()) out_ += body + line + "\n";
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const bool last = i + 1 == n.inputs.size();
      print(n.inputs[i], rest + (last ? "└── " : "├── "), rest + (last ? "    " : "│   "));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  const Plan& plan_;
  Graph graph_;
  std::string out_;
};

}  // namespace

std::string headline(const Plan& plan, const PlanNode& n) {
  std::string text(kind_name(n.kind));
  if (n.node.valid()) {
    const std::string op = to_text(plan.graph, n.node);
    text = n.kind == PlanNode::Kind::Source || n.kind == PlanNode::Kind::Serial || n.kind == PlanNode::Kind::Ordered
               ? text + " " + op
               : op;
  }
  for (const IndexStep& s : n.index)
    text += s.arm >= 0 ? fmt::format(" . {} arm {}", plan.graph.node(s.node).op->name, s.arm)
                       : " . " + to_text(plan.graph, s.node);
  if (!n.outputs.empty()) text += " -> " + columns(n);
  if (n.chunk_rows) text += fmt::format("  [{} rows]", n.chunk_rows);
  if (n.on_batches && n.kind != PlanNode::Kind::Deliver) text += "  [of batches]";
  if (n.keeps_rows) text += "  [kept]";
  if (n.outer_words) text += fmt::format("  [{} outer words]", n.outer_words);
  return text;
}

std::string to_text(const Plan& plan) {
  if (plan.nodes.empty()) return "(empty)\n";
  PlanPrinter printer(plan);
  printer.print({static_cast<int32_t>(plan.nodes.size()) - 1}, "", "");
  return printer.take();
}

}  // namespace zephon
