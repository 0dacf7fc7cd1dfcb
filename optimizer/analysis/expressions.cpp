#include "optimizer/analysis/expressions.h"

#include <algorithm>
#include <map>

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
  return any_expr(graph, root, [](const Expr& e) { return e.op->effects.can_fail; });
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
  std::map<ExprId, double> kept;
  for (ExprId id : graph.topological(predicate)) {
    const Expr& e = graph.expr(id);
    double s = 0.5;
    auto arg = [&](size_t i) { return kept.at(e.args[i]); };
    if (e.op->name == "and")
      s = arg(0) * arg(1);
    else if (e.op->name == "or")
      s = 1 - (1 - arg(0)) * (1 - arg(1));
    else if (e.op->name == "not")
      s = 1 - arg(0);
    else if (e.op->name == "eq")
      s = 0.1;
    else if (e.op->name == "ne")
      s = 0.9;
    else if (e.op->promotes && e.type.elem == Elem::Bool)
      s = 1.0 / 3;  // the order comparisons
    kept[id] = s;
  }
  return kept.at(predicate);
}

}  // namespace zephon
