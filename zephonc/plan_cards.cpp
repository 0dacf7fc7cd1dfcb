#include "zephonc/plan_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/op_def.h"
#include "ops/all_ops.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/cost/cost.h"
#include "optimizer/engine/rule.h"
#include "optimizer/plan/groups.h"
#include "optimizer/plan/render.h"
#include "zephonc/plan_story.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {
namespace {

constexpr size_t kMostText = 4000;

std::string shortened(std::string text) {
  if (text.size() <= kMostText) return text;
  text.resize(kMostText);
  while (find_invalid_utf8(text)) text.pop_back();
  return text + " ...";
}

/// Makes the cards of one graph.
class Builder {
 public:
  Builder(const Graph& graph, const Machine& machine, CardGraph& out)
      : graph_(graph), scratch_(graph), machine_(machine), out_(out) {}

  /// Begins a card; rows that are added belong to it.
  Card& begin(Card card) {
    card.first_row = card.end_row = out_.rows.size();
    out_.cards.push_back(std::move(card));
    row_of_.clear();
    return out_.cards.back();
  }

  /// Everything below `root` that has no row yet in this card and is not in `ready`, arguments first.
  void add_tree(ExprId root, const std::string& name) {
    for (ExprId id : graph_.topological(root))
      if (!is_leaf(graph_.expr(id)) || id == root) add(id, id == root ? name : "");
  }

  void add(ExprId id, const std::string& name) {
    if (row_of_.contains(id) && name.empty()) return;
    const Expr& expr = graph_.expr(id);
    CardRow row;
    row.label = (name.empty() ? "" : name + " = ") + label(expr);
    row.text = shortened((name.empty() ? "" : name + " = ") + to_text(graph_, id));
    row.type = to_string(expr.type);
    row.ns = is_leaf(expr) ? 0 : own_ns(graph_, id, machine_);
    row.card = out_.cards.size() - 1;
    row.places = expr.origin;
    for (ExprId arg : expr.args)
      if (auto at = row_of_.find(arg); at != row_of_.end()) row.args.push_back(at->second);
    keys_.push_back(key(expr, name));
    row_of_[id] = out_.rows.size();
    out_.rows.push_back(std::move(row));
    out_.cards.back().end_row = out_.rows.size();
  }

  /// A row that is no expression.
  void add_text(const std::string& text, const std::vector<Span>& places) {
    CardRow row;
    row.label = row.text = text;
    row.card = out_.cards.size() - 1;
    row.places = places;
    keys_.emplace_back();
    out_.rows.push_back(std::move(row));
    out_.cards.back().end_row = out_.rows.size();
  }

  /// Of each row, what makes it the same operator in both graphs; empty: nothing does.
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::string label(const Expr& expr) {
    if (is_leaf(expr)) return to_text(graph_, scratch_.add(expr));
    Expr copy = expr;
    for (ExprId& arg : copy.args) {
      const Expr& of = graph_.expr(arg);
      if (!is_leaf(of)) arg = add_field(scratch_, all_ops(), "…", of.type);
    }
    return to_text(scratch_, scratch_.add(std::move(copy)));
  }

  static std::string key(const Expr& expr, const std::string& name) {
    if (is_leaf(expr)) return name.empty() ? "" : "leaf " + name;
    std::string out(expr.op->name);
    for (const auto& [attr, value] : expr.attrs) out += fmt::format(" {}={}", attr, to_string(value));
    if (!expr.origin.empty())
      out += fmt::format(" @{}:{}-{}", expr.origin[0].file.value, expr.origin[0].begin, expr.origin[0].end);
    return out;
  }

  const Graph& graph_;
  Graph scratch_;  // labels are expressions of their own
  const Machine& machine_;
  CardGraph& out_;
  std::map<ExprId, size_t> row_of_;
  std::vector<std::string> keys_;
};

std::vector<std::string> fields_of(const StreamType& type) {
  std::vector<std::string> out;
  for (const Field& field : type.fields)
    if (!is_companion(field.name)) out.push_back(field.name + ": " + field_type_text(type, field));
  return out;
}

void sum_costs(CardGraph& graph) {
  for (Card& card : graph.cards) {
    double ns = 0;
    for (size_t i = card.first_row; i < card.end_row; ++i) ns += graph.rows[i].ns;
    if (card.cost.empty() && ns > 0) card.cost = cost_text(ns) + " a sample";
  }
}

void add_written(const Graph& graph, const SourceMap& sources, Builder& builder, CardGraph& out) {
  std::map<NodeId, size_t> card_of;
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    Card card;
    const bool assigns = !node.assigns.empty();
    const std::string composite = composite_step(sources, node);
    card.title = assigns ? "" : composite.empty() ? to_text(graph, id) : composite;
    for (const Assign& a : node.assigns) card.title += (card.title.empty() ? "" : ", ") + a.field;
    card.text = shortened(to_text(graph, id));
    card.fields = fields_of(node.type);
    if (node.inputs.size() == 1 && !assigns) card.note = type_change(node.type, &graph.node(node.inputs[0]).type);
    for (NodeId input : node.inputs) card.inputs.push_back(card_of.at(input));
    card.steps = {node.step};
    if (node.origin.valid()) card.places = {node.origin};
    card_of[id] = out.cards.size();
    if (node.predicate.valid() && !assigns) card.title = node.op->name;
    builder.begin(std::move(card));
    for (const Assign& a : node.assigns) builder.add_tree(a.expr, a.field);
    if (node.predicate.valid()) builder.add_tree(node.predicate, "");
  }
  sum_costs(out);
}

void add_planned(const Plan& plan, Builder& builder, CardGraph& out) {
  for (const PlanNode& node : plan.nodes) {
    Card card;
    card.title = headline_of(plan, node);
    // "batch batch(64)" says it twice.
    const std::string kind(kind_name(node.kind));
    if (card.title.starts_with(kind + " " + kind)) card.title.erase(0, kind.size() + 1);
    card.text = card.title;
    card.cost = cost_of(node);
    if (node.est_ns_per_row > 0) card.note = cost_text(node.est_ns_per_row) + " a row";
    for (const OutputField& field : node.outputs)
      card.fields.push_back(field.name +
                            (field.expr.valid() ? ": " + to_string(plan.graph.expr(field.expr).type) : ""));
    for (PlanNodeId input : node.inputs) card.inputs.push_back(static_cast<size_t>(input.index));
    card.steps = node.steps_written;
    card.places = node.origins;
    builder.begin(std::move(card));
    for (const IndexStep& step : node.index) {
      const Node& of = plan.graph.node(step.node);
      builder.add_text(step.arm >= 0 ? fmt::format("arm {} of {}", step.arm, to_text(plan.graph, step.node))
                                     : to_text(plan.graph, step.node),
                       {of.origin});
    }
    std::map<ExprId, std::string> names;
    for (const OutputField& field : node.outputs)
      if (field.expr.valid() && !is_leaf(plan.graph.expr(field.expr))) names.emplace(field.expr, field.name);
    for (const ComputeStep& step : node.steps) {
      if (step.kind == ComputeStep::Kind::Filter) {
        builder.add_text(
            "filter " + (names.contains(step.predicate) ? names[step.predicate] : to_text(plan.graph, step.predicate)),
            plan.graph.expr(step.predicate).origin);
        continue;
      }
      const size_t first = out.rows.size();
      for (ExprId id : interior(plan.graph, step.group)) builder.add(id, names.contains(id) ? names[id] : "");
      if (out.rows.size() - first < 2) continue;
      Card& last = out.cards.back();
      for (size_t i = first; i < out.rows.size(); ++i) out.rows[i].kernel = static_cast<int>(last.kernels.size());
      last.kernels.push_back(
          {fmt::format("{} kernel, {}", step.group.kind == KernelGroup::Kind::Columnar ? "one columnar" : "one fused",
                       cost_text(step.est_ns)),
           first, out.rows.size()});
    }
  }
}

/// Pairs rows of equal keys, in their order.
void pair_rows(PlanCards& cards, const std::vector<std::string>& written, const std::vector<std::string>& planned) {
  std::map<std::string, std::vector<size_t>> known;
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i].empty()) known[written[i]].push_back(i);
  std::map<std::string, size_t> next;
  for (size_t j = 0; j < planned.size(); ++j) {
    auto found = known.find(planned[j]);
    if (found == known.end()) {
      if (!planned[j].empty()) cards.planned.rows[j].state = CardRow::State::Made;
      continue;
    }
    // What is written once and computed in two stages is one.
    const size_t at = std::min(next[planned[j]]++, found->second.size() - 1), i = found->second[at];
    cards.planned.rows[j].twins.push_back(i);
    cards.written.rows[i].twins.push_back(j);
  }
  for (size_t i = 0; i < written.size(); ++i)
    if (cards.written.rows[i].twins.empty() && !written[i].empty()) cards.written.rows[i].state = CardRow::State::Gone;
}

/// Rows at the place, those that the rules made or did away with before others; else the cards of the step.
Touched touched(const PlanCards& cards, const Rule& rule, const Span& place, int32_t step) {
  Touched out;
  const CardGraph* graphs[] = {&cards.written, &cards.planned};
  for (size_t g = 0; g < 2; ++g) {
    const CardGraph& graph = *graphs[g];
    for (bool changed : {true, false}) {
      if (!rule.match_expr || !place.valid() || !out.rows[g].empty()) continue;
      for (size_t i = 0; i < graph.rows.size(); ++i) {
        const CardRow& row = graph.rows[i];
        if (changed && row.state == CardRow::State::Same) continue;
        if (std::find(row.places.begin(), row.places.end(), place) != row.places.end()) out.rows[g].push_back(i);
      }
    }
    if (!out.rows[g].empty()) continue;
    for (size_t i = 0; i < graph.cards.size(); ++i) {
      const std::vector<int32_t>& steps = graph.cards[i].steps;
      if (std::find(steps.begin(), steps.end(), step) != steps.end()) out.cards[g].push_back(i);
    }
  }
  return out;
}

}  // namespace

PlanCards plan_cards(const Session& session, const OptimizeResult& result, const Machine& machine) {
  PlanCards out;
  Builder written(session.graph(), machine, out.written), planned(result.plan.graph, machine, out.planned);
  add_written(session.graph(), session.sources(), written, out.written);
  add_planned(result.plan, planned, out.planned);
  pair_rows(out, written.keys(), planned.keys());
  CardGraph* graphs[] = {&out.written, &out.planned};
  for (size_t i = 0; i < result.trace.applied.size(); ++i) {
    const Application& a = result.trace.applied[i];
    out.applications.push_back(touched(out, *a.rule, a.place, a.step));
    for (size_t g = 0; g < 2; ++g) {
      for (size_t row : out.applications.back().rows[g]) graphs[g]->rows[row].applications.push_back(i);
      for (size_t card : out.applications.back().cards[g]) graphs[g]->cards[card].applications.push_back(i);
    }
  }
  for (const Refusal& r : result.trace.refused) out.refusals.push_back(touched(out, *r.rule, r.place, r.step));
  return out;
}

}  // namespace zephon
