#include "optimizer/rules/regions.h"

#include <algorithm>
#include <limits>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/hidden.h"

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

constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();

bool is_whole_range(const Expr& slice, size_t d) {
  auto at = [&](const char* name) { return slice.attrs.get<std::vector<int64_t>>(name)[d]; };
  return at("begin") == 0 && at("end") == kOpen && at("step") == 1;
}

/// Of an operand of pointwise work whose result has rank `rank`.
bool keeps_extents(const Type& type, size_t rank) {
  if (type.rank() + 2 <= rank) return true;
  return type.rank() == rank && type.shape[0] == Dim::of(1) && type.shape[1] == Dim::of(1);
}

/// One operation nearer to the source, or invalid.
ExprId base_step(const Graph& graph, ExprId id) {
  const Expr& e = graph.expr(id);
  if (e.type.rank() < 2 || e.args.empty() || is_constant(e)) return {};
  auto others_good = [&] {
    return std::all_of(e.args.begin() + 1, e.args.end(), [&](ExprId arg) { return is_always_good(graph, arg); });
  };
  if (e.op->box_above) return others_good() ? e.args[0] : ExprId{};
  if (e.op->cls == OpClass::View) return keeps_rows_and_columns(graph, e) ? e.args[0] : ExprId{};
  if (e.op->cls != OpClass::Pointwise || e.op->define.lazy || may_fail_by_type(graph, e)) return {};
  ExprId base;
  for (ExprId arg : e.args) {
    const Type& type = graph.expr(arg).type;
    if (keeps_extents(type, e.type.rank()) && is_always_good(graph, arg)) continue;
    if (type.rank() != e.type.rank()) return {};
    const ExprId of_arg = e.args.size() == 1 ? arg : base_of(graph, arg);
    if (base.valid() && base != of_arg) return {};
    base = of_arg;
  }
  return base;
}

/// What has the same shape and is nearer to the source.
ExprId of_same_shape(const Graph& graph, ExprId picture) {
  picture = base_of(graph, picture);
  while (graph.expr(picture).op->box_above) picture = base_of(graph, graph.expr(picture).args[0]);
  return picture;
}

/// In rows and columns.
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

ExprId base_of(const Graph& graph, ExprId picture) {
  while (true) {
    const ExprId next = base_step(graph, picture);
    if (!next.valid()) return picture;
    picture = next;
  }
}

bool keeps_rows_and_columns(const Graph& graph, const Expr& view) {
  if (view.op->cls != OpClass::View || view.args.empty()) return false;
  const std::vector<Dim>& shape = graph.expr(view.args[0]).type.shape;
  if (shape.size() < 3) return false;
  if (view.attrs.has("step") && view.args.size() == 1) {
    if (!is_whole_range(view, 0) || !is_whole_range(view, 1)) return false;
    // Ranges of known dimensions were compared with them by the checker.
    for (size_t d = 2; d < shape.size(); ++d)
      if (!is_whole_range(view, d) && !shape[d].is_static()) return false;
    return true;
  }
  if (!view.attrs.has("dims")) return false;
  const auto& dims = view.attrs.get<std::vector<int64_t>>("dims");
  if (dims.size() + 1 != view.args.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Expr& place = graph.expr(view.args[i + 1]);
    if (dims[i] < 2 || !place.constant || place.constant->any_failed()) return false;
    const Dim& dim = shape[static_cast<size_t>(dims[i])];
    const int64_t at = place.constant->at(0).i;
    if (!dim.is_static() || at < -dim.extent || at >= dim.extent) return false;
  }
  return true;
}

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

ExprId shaped_operand(const Graph& graph, ExprId id) {
  const Expr& pointwise = graph.expr(id);
  if (pointwise.op->cls != OpClass::Pointwise) return {};
  ExprId found;
  for (ExprId arg : pointwise.args) {
    if (is_constant(graph.expr(arg))) continue;
    if (found.valid()) return {};
    found = arg;
  }
  if (!found.valid() || graph.expr(found).type.rank() != pointwise.type.rank()) return {};
  const std::vector<Dim>& shape = graph.expr(found).type.shape;
  for (ExprId arg : pointwise.args) {
    if (arg == found) continue;
    const std::vector<Dim>& other = graph.expr(arg).type.shape;
    for (size_t d = 0; d < other.size(); ++d) {
      const Dim& mine = shape[shape.size() - other.size() + d];
      if (other[d].extent != 1 && !(mine.is_static() && mine == other[d])) return {};
    }
  }
  return found;
}

bool has_margin(const Graph& graph, const Expr& region) {
  return region.op->source_box && region.args.size() == 5 && is_unset(graph.expr(region.args[2]), "$tight");
}

ExprId part_without_margin(Graph& graph, const Expr& region) {
  const ExprId part = region.args[0], source = region.args[2];
  Expr tight = graph.expr(source);
  tight.attrs.set("$tight", true);
  const ExprId box = graph.add(std::move(tight));
  return graph.rewrite(part, [&](ExprId id) { return id == source ? box : id; });
}

const OpDef& whole_form(const OpTable& ops, const OpDef& region) {
  for (const OpDef* op : ops.all())
    if (op->region_form == &region) return *op;
  ZEPHON_CHECK(false, "`{}` is the region form of nothing", region.name);
}

bool box_stays(Rewriter& rewriter, const Expr& region) {
  Graph& graph = rewriter.graph();
  const ExprId box = region.args[1];
  const ExprId resized =
      add_call(graph, whole_form(rewriter.ops(), *region.op), {graph.expr(region.args[2]).args[0]}, region.attrs);
  return box_fits(graph, box, resized);
}

}  // namespace zephon::rules
