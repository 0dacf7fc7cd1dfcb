#include "optimizer/rules/regions.h"

#include <algorithm>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"

namespace zephon::rules {
namespace {

const Parameter* parameter(const OpDef& op, std::string_view name) {
  for (const Parameter& p : signature_of(op).parameters)
    if (p.name == name) return &p;
  return nullptr;
}

Attrs declared_attrs(const OpDef& op, const Attrs& attrs) {
  Attrs declared;
  for (const auto& [name, value] : attrs)
    if (parameter(op, name)) declared.set(name, value);
  return declared;
}

/// What has the same shape and is nearer to the source.
ExprId of_same_shape(const Graph& graph, ExprId picture) {
  while (graph.expr(picture).op->box_above) picture = graph.expr(picture).args[0];
  return picture;
}

bool same_shape(const Graph& graph, ExprId one, ExprId other) {
  one = of_same_shape(graph, one);
  other = of_same_shape(graph, other);
  if (one == other) return true;
  const Expr &a = graph.expr(one), &b = graph.expr(other);
  auto is_shape_of = [](const Expr& shape, const Expr& whole) {
    return whole.op->shape_form == shape.op && shape.args == whole.args &&
           declared_attrs(*shape.op, whole.attrs) == shape.attrs;
  };
  return is_shape_of(a, b) || is_shape_of(b, a);
}

}  // namespace

bool has_region(const Graph& graph, ExprId id) {
  const Expr& whole = graph.expr(id);
  if (!whole.op->region_form) return false;
  return std::all_of(whole.attrs.begin(), whole.attrs.end(), [&](const auto& entry) {
    if (parameter(*whole.op->region_form, entry.first)) return true;
    const Parameter* p = parameter(*whole.op, entry.first);
    return p && p->default_value && *p->default_value == entry.second;
  });
}

ExprId region_of(Graph& graph, ExprId whole, ExprId box, const Type& type) {
  Expr region = graph.expr(whole);
  region.op = region.op->region_form;
  region.attrs = declared_attrs(*region.op, region.attrs);
  region.args.push_back(box);
  region.type = type;
  return graph.add(std::move(region));
}

ExprId shape_of(Graph& graph, ExprId whole) {
  Expr shape = graph.expr(whole);
  shape.op = shape.op->shape_form;
  shape.attrs = declared_attrs(*shape.op, shape.attrs);
  return graph.add(std::move(shape));
}

bool box_fits(const Graph& graph, ExprId id, ExprId picture) {
  const Expr& box = graph.expr(id);
  if (box.op->fits_box) {
    if (!same_shape(graph, box.args[0], picture)) return false;
    // Made of one of its size (the mirror image of a box): where that one fits.
    for (size_t i = 1; i < box.args.size(); ++i)
      if (const Type& type = graph.expr(box.args[i]).type; !type.box.empty() && type.box == box.type.box)
        if (!box_fits(graph, box.args[i], picture)) return false;
    return true;
  }
  const std::vector<Dim>& shape = graph.expr(picture).type.shape;
  if (!box.constant || box.constant->any_failed()) return false;
  for (size_t d = 0; d < 2; ++d) {
    const auto i = static_cast<int64_t>(d);
    const int64_t first = box.constant->at(i).i, count = box.constant->at(i + 2).i;
    if (!shape[d].is_static() || first < 0 || count < 1 || first > shape[d].extent - count) return false;
  }
  return true;
}

bool only_shape_besides(Rewriter& rewriter, ExprId picture, ExprId user) {
  const Graph& graph = rewriter.graph();
  const bool has_header = graph.expr(picture).op->shape_form != nullptr;
  const std::vector<ExprId>& users = rewriter.expr_users(picture);
  return std::all_of(users.begin(), users.end(), [&](ExprId other) {
    return other == user || (other.valid() && has_header && graph.expr(other).op->shape_only);
  });
}

}  // namespace zephon::rules
