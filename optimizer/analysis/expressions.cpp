#include "optimizer/analysis/expressions.h"

#include <algorithm>
#include <map>

#include "optimizer/analysis/ranges.h"

namespace zephon {

bool is_field(const Expr& expr) { return expr.op->cls == OpClass::Leaf && expr.op->name == "field"; }
bool is_constant(const Expr& expr) { return expr.constant != nullptr; }
namespace {
template <class F>
bool any_expr(const Graph& graph, ExprId root, F&& holds) {
  const std::vector<ExprId> ids = graph.topological(root);
  return std::any_of(ids.begin(), ids.end(), [&](ExprId id) { return holds(graph.expr(id)); });
}
}  // namespace

bool has_draw(const Graph& graph, ExprId root) {
  return any_expr(graph, root, [](const Expr& e) { return e.draw_id != 0; });
}
bool can_fail(const Graph& graph, ExprId root) {
  return any_expr(graph, root, [&](const Expr& e) { return may_fail_by_type(graph, e); });
}
bool is_always_good(const Graph& graph, ExprId root) {
  return !any_expr(graph, root, [&](const Expr& e) {
    return is_field(e) || (e.constant && e.constant->any_failed()) || may_fail_by_type(graph, e);
  });
}
bool reads_files(const Graph& graph, ExprId root) {
  return any_expr(graph, root, [](const Expr& e) { return e.op->effects.reads_files; });
}

bool is_generated(const Graph& graph, const Expr& expr) {
  if (is_string(expr.type.elem)) return false;
  for (ExprId arg : expr.args)
    if (is_string(graph.expr(arg).type.elem)) return false;
  switch (expr.op->cls) {
    case OpClass::Pointwise:
      return expr.op->kernel.pointwise != nullptr;
    case OpClass::View:
      return expr.op->kernel.view != nullptr;
    case OpClass::Reduce:
      return expr.op->kernel.reduce.init != nullptr;
    case OpClass::Resample:
      return expr.op->kernel.resample != nullptr;
    default:
      return false;
  }
}

bool is_scalar_work(const Graph& graph, const Expr& expr) {
  if (expr.op->cls != OpClass::Pointwise || !expr.type.is_scalar() || !is_generated(graph, expr)) return false;
  return std::all_of(expr.args.begin(), expr.args.end(), [&](ExprId arg) { return graph.expr(arg).type.is_scalar(); });
}

double selectivity(const Graph& graph, ExprId predicate) {
  std::map<ExprId, double> kept;  // conditions may share conditions
  std::vector<ExprId> stack = {predicate};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    const Expr& e = graph.expr(id);
    const bool both = e.op->name == "and", either = e.op->name == "or", negated = e.op->name == "not";
    bool waits = false;
    if (both || either || negated)
      for (ExprId arg : e.args)
        if (!kept.contains(arg)) {
          stack.push_back(arg);
          waits = true;
        }
    if (waits) continue;
    stack.pop_back();
    double s = e.op->promotes && e.type.elem == Elem::Bool ? 1.0 / 3 : 0.5;  // the order comparisons; others
    if (both) s = kept.at(e.args[0]) * kept.at(e.args[1]);
    if (either) s = 1 - (1 - kept.at(e.args[0])) * (1 - kept.at(e.args[1]));
    if (negated) s = 1 - kept.at(e.args[0]);
    if (e.op->name == "eq") s = 0.1;
    if (e.op->name == "ne") s = 0.9;
    kept[id] = s;
  }
  return kept.at(predicate);
}

}  // namespace zephon
