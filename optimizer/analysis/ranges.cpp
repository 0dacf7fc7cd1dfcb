#include "optimizer/analysis/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/elem_limits.h"
#include "optimizer/analysis/expressions.h"

namespace zephon {
namespace {

__extension__ using Wide = __int128;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostConstant = 4096;  // elements of a constant that are looked at
constexpr int kMostSteps = 256;          // up to where a field is made

bool fits(Elem elem, Wide v) { return v >= least_of(elem) && v <= greatest_of(elem); }

ValueRange integers(Elem elem, Wide lo, Wide hi) {
  ValueRange r = range_of_type(elem);
  if (!fits(elem, lo) || !fits(elem, hi)) return r;  // wraps: anything
  r.lo = static_cast<int64_t>(lo);
  r.hi = static_cast<int64_t>(hi);
  return r;
}

// Bounds that are finite, of results that are rounded once from f64, or not at all.
ValueRange floats(Elem elem, double lo, double hi, bool nan) {
  if (elem != Elem::F32 && elem != Elem::F64) return range_of_type(elem);
  lo = round_to(elem, lo), hi = round_to(elem, hi);
  if (!(std::fabs(lo) < kInfinity && std::fabs(hi) < kInfinity)) return range_of_type(elem);
  ValueRange r;
  r.elem = elem;
  r.flo = lo, r.fhi = hi;
  r.nan = nan;
  return r;
}

// Runs a kernel on intervals. A failure that the intervals do not exclude is noted.
class IntervalBuilder final : public KernelBuilder {
 public:
  bool may_fail = false;

  KVal add_node(ValueRange range) {
    nodes_.push_back(range);
    return {static_cast<int32_t>(nodes_.size()) - 1, range.elem};
  }
  const ValueRange& at(KVal v) const { return nodes_[static_cast<size_t>(v.id)]; }

  KVal constant(const Scalar& v) override {
    if (!is_float(v.elem)) return add_node(integers(v.elem, v.i, v.i));
    if (std::isnan(v.f)) return add_node(range_of_type(v.elem));
    return add_node(floats(v.elem, v.f, v.f, false));
  }
  KVal add(KVal a, KVal b) override { return arithmetic(Op::Add, a, b, false); }
  KVal sub(KVal a, KVal b) override { return arithmetic(Op::Sub, a, b, false); }
  KVal mul(KVal a, KVal b) override { return arithmetic(Op::Mul, a, b, false); }
  KVal checked_add(KVal a, KVal b) override { return arithmetic(Op::Add, a, b, true); }
  KVal checked_sub(KVal a, KVal b) override { return arithmetic(Op::Sub, a, b, true); }
  KVal checked_mul(KVal a, KVal b) override { return arithmetic(Op::Mul, a, b, true); }

  KVal div(KVal x, KVal y) override {
    const ValueRange &a = at(x), &b = at(y);
    if (is_float(a.elem)) {
      if (a.nan || b.nan || !finite(a) || !finite(b) || !(b.flo > 0 || b.fhi < 0)) return unknown(a.elem);
      const double q[] = {a.flo / b.flo, a.flo / b.fhi, a.fhi / b.flo, a.fhi / b.fhi};
      return add_node(floats(a.elem, *std::min_element(q, q + 4), *std::max_element(q, q + 4), false));
    }
    if (b.lo <= 0) return unknown(a.elem);
    const Wide q[] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
    return add_node(integers(a.elem, *std::min_element(q, q + 4), *std::max_element(q, q + 4)));
  }
  KVal rem(KVal x, KVal y) override {
    const ValueRange &a = at(x), &b = at(y);
    const Wide most =
        std::max(Wide{b.hi} < 0 ? -Wide{b.hi} : Wide{b.hi}, Wide{b.lo} < 0 ? -Wide{b.lo} : Wide{b.lo}) - 1;
    if (most < 0) return unknown(a.elem);
    const Wide lo = a.lo >= 0 ? Wide{0} : std::max(-most, Wide{a.lo});
    const Wide hi = a.hi <= 0 ? Wide{0} : std::min(most, Wide{a.hi});
    return add_node(integers(a.elem, lo, hi));
  }
  KVal bit_and(KVal x, KVal y) override {
    const ValueRange &a = at(x), &b = at(y);
    if (a.elem == Elem::Bool) return add_node(integers(a.elem, a.lo & b.lo, a.hi & b.hi));
    if (a.lo >= 0 && b.lo >= 0) return add_node(integers(a.elem, 0, std::min(a.hi, b.hi)));
    if (a.lo >= 0 || b.lo >= 0) return add_node(integers(a.elem, 0, a.lo >= 0 ? a.hi : b.hi));
    return unknown(a.elem);
  }
  KVal bit_or(KVal x, KVal y) override {
    const ValueRange &a = at(x), &b = at(y);
    return a.elem == Elem::Bool ? add_node(integers(a.elem, a.lo | b.lo, a.hi | b.hi)) : unknown(a.elem);
  }
  KVal bit_xor(KVal x, KVal y) override {
    const ValueRange &a = at(x), &b = at(y);
    if (a.elem != Elem::Bool || a.lo != a.hi || b.lo != b.hi) return unknown(a.elem);
    return add_node(integers(a.elem, a.lo ^ b.lo, a.lo ^ b.lo));
  }
  KVal shift_left(KVal a, KVal) override { return unknown(a.elem); }
  KVal shift_right_logical(KVal x, KVal y) override { return at(x).lo >= 0 ? shift(x, y) : unknown(x.elem); }
  KVal shift_right_arithmetic(KVal x, KVal y) override { return shift(x, y); }

  KVal compare(Compare c, KVal x, KVal y) override {
    bool always = false, never = false;
    const ValueRange &a = at(x), &b = at(y);
    if (is_float(a.elem)) {
      if (x.id == y.id) {
        always = !a.nan && (c == Compare::Eq || c == Compare::Le || c == Compare::Ge);
        never = c == Compare::Lt || c == Compare::Gt || (c == Compare::Ne && !a.nan);
      } else if (!a.nan && !b.nan) {
        decide(c, a.flo, a.fhi, b.flo, b.fhi, always, never);
      }
    } else if (x.id == y.id) {
      always = c == Compare::Eq || c == Compare::Le || c == Compare::Ge;
      never = !always;
    } else {
      decide(c, a.lo, a.hi, b.lo, b.hi, always, never);
    }
    return add_node(integers(Elem::Bool, always ? 1 : 0, never ? 0 : 1));
  }
  KVal select(KVal cond, KVal x, KVal y) override {
    const ValueRange &c = at(cond), &a = at(x), &b = at(y);
    if (c.lo == c.hi) return c.lo ? x : y;
    ValueRange r = a;
    r.lo = std::min(a.lo, b.lo), r.hi = std::max(a.hi, b.hi);
    r.flo = std::min(a.flo, b.flo), r.fhi = std::max(a.fhi, b.fhi);
    r.nan = a.nan || b.nan;
    return add_node(r);
  }
  KVal fma(KVal a, KVal, KVal) override { return unknown(a.elem); }
  KVal sqrt(KVal x) override {
    const ValueRange& a = at(x);
    if (a.nan || !finite(a) || a.flo < 0) return unknown(a.elem);
    return add_node(floats(a.elem, std::sqrt(a.flo), std::sqrt(a.fhi), false));
  }
  KVal floor(KVal x) override {
    return whole(x, [](double v) { return std::floor(v); });
  }
  KVal ceil(KVal x) override {
    return whole(x, [](double v) { return std::ceil(v); });
  }
  KVal trunc(KVal x) override {
    return whole(x, [](double v) { return std::trunc(v); });
  }
  KVal round_even(KVal x) override {
    return whole(x, [](double v) { return std::nearbyint(v); });
  }
  KVal abs(KVal x) override {
    const ValueRange& a = at(x);
    if (is_float(a.elem)) {
      if (!finite(a)) return unknown(a.elem);
      const bool crosses = a.flo < 0 && a.fhi > 0;
      return add_node(floats(a.elem, crosses ? 0 : std::min(std::fabs(a.flo), std::fabs(a.fhi)),
                             std::max(std::fabs(a.flo), std::fabs(a.fhi)), a.nan));
    }
    const Wide lo = a.lo < 0 ? -Wide{a.lo} : Wide{a.lo}, hi = a.hi < 0 ? -Wide{a.hi} : Wide{a.hi};
    return add_node(integers(a.elem, a.lo < 0 && a.hi > 0 ? Wide{0} : std::min(lo, hi), std::max(lo, hi)));
  }
  KVal minimum(KVal x, KVal y) override {
    return extreme(x, y, [](auto a, auto b) { return std::min(a, b); });
  }
  KVal maximum(KVal x, KVal y) override {
    return extreme(x, y, [](auto a, auto b) { return std::max(a, b); });
  }
  KVal convert(Elem to, KVal x) override {
    const ValueRange& a = at(x);
    if (to == a.elem) return x;
    if (to == Elem::Bool) return unknown(to);
    if (!is_float(a.elem)) {
      if (!is_float(to)) return add_node(integers(to, a.lo, a.hi));
      constexpr int64_t kExact = int64_t{1} << 53;
      if (a.lo >= -kExact && a.hi <= kExact)
        return add_node(floats(to, static_cast<double>(a.lo), static_cast<double>(a.hi), false));
      return add_node(floats(to, -0x1p64, 0x1p64, false));
    }
    if (is_float(to)) return finite(a) ? add_node(floats(to, a.flo, a.fhi, a.nan)) : unknown(to);
    if (a.nan || !finite(a) || std::fabs(a.flo) > 0x1p53 || std::fabs(a.fhi) > 0x1p53) return unknown(to);
    return add_node(integers(to, static_cast<int64_t>(std::trunc(a.flo)), static_cast<int64_t>(std::trunc(a.fhi))));
  }
  KVal bitcast(Elem to, KVal) override { return unknown(to); }
  KVal table(Elem elem, std::span<const double> values, KVal index) override {
    const ValueRange& a = at(index);
    const auto first = std::clamp<int64_t>(a.lo, 0, static_cast<int64_t>(values.size()) - 1);
    const auto last = std::clamp<int64_t>(a.hi, first, static_cast<int64_t>(values.size()) - 1);
    auto [lo, hi] = std::minmax_element(values.begin() + first, values.begin() + last + 1);
    if (is_float(elem)) return add_node(floats(elem, *lo, *hi, false));
    return add_node(integers(elem, static_cast<int64_t>(*lo), static_cast<int64_t>(*hi)));
  }
  void fail_if(KVal cond) override { may_fail |= at(cond).hi != 0; }

 private:
  enum class Op : uint8_t { Add, Sub, Mul };
  template <class T>
  static T apply(Op op, T a, T b) {
    return op == Op::Add ? a + b : op == Op::Sub ? a - b : a * b;
  }
  static bool finite(const ValueRange& r) { return std::fabs(r.flo) < kInfinity && std::fabs(r.fhi) < kInfinity; }
  KVal unknown(Elem elem) { return add_node(range_of_type(elem)); }

  KVal arithmetic(Op op, KVal x, KVal y, bool checked) {
    const ValueRange &a = at(x), &b = at(y);
    if (is_float(a.elem)) {
      if (a.nan || b.nan || !finite(a) || !finite(b)) return unknown(a.elem);
      const double v[] = {apply(op, a.flo, b.flo), apply(op, a.flo, b.fhi), apply(op, a.fhi, b.flo),
                          apply(op, a.fhi, b.fhi)};
      return add_node(floats(a.elem, *std::min_element(v, v + 4), *std::max_element(v, v + 4), false));
    }
    const Wide v[] = {apply(op, Wide{a.lo}, Wide{b.lo}), apply(op, Wide{a.lo}, Wide{b.hi}),
                      apply(op, Wide{a.hi}, Wide{b.lo}), apply(op, Wide{a.hi}, Wide{b.hi})};
    Wide lo = *std::min_element(v, v + 4), hi = *std::max_element(v, v + 4);
    if (checked) {
      may_fail |= !fits(a.elem, lo) || !fits(a.elem, hi);
      lo = std::clamp<Wide>(lo, least_of(a.elem), greatest_of(a.elem));
      hi = std::clamp<Wide>(hi, least_of(a.elem), greatest_of(a.elem));
    }
    return add_node(integers(a.elem, lo, hi));
  }
  KVal shift(KVal x, KVal y) {
    const ValueRange &a = at(x), &b = at(y);
    if (b.lo != b.hi || b.lo < 0 || b.lo > 63) return unknown(a.elem);
    return add_node(integers(a.elem, a.lo >> b.lo, a.hi >> b.lo));
  }
  template <class F>
  KVal whole(KVal x, F&& f) {
    const ValueRange& a = at(x);
    return finite(a) ? add_node(floats(a.elem, f(a.flo), f(a.fhi), a.nan)) : unknown(a.elem);
  }
  template <class F>
  KVal extreme(KVal x, KVal y, F&& f) {
    const ValueRange &a = at(x), &b = at(y);
    ValueRange r = a;
    r.lo = f(a.lo, b.lo), r.hi = f(a.hi, b.hi);
    r.flo = f(a.flo, b.flo), r.fhi = f(a.fhi, b.fhi);
    r.nan = a.nan || b.nan;
    return add_node(r);
  }
  template <class T>
  static void decide(Compare c, T alo, T ahi, T blo, T bhi, bool& always, bool& never) {
    const bool one = alo == ahi && blo == bhi && alo == blo, apart = ahi < blo || alo > bhi;
    switch (c) {
      case Compare::Eq:
        always = one, never = apart;
        break;
      case Compare::Ne:
        always = apart, never = one;
        break;
      case Compare::Lt:
        always = ahi < blo, never = alo >= bhi;
        break;
      case Compare::Le:
        always = ahi <= blo, never = alo > bhi;
        break;
      case Compare::Gt:
        always = alo > bhi, never = ahi <= blo;
        break;
      case Compare::Ge:
        always = alo >= bhi, never = ahi < blo;
        break;
    }
  }

  std::vector<ValueRange> nodes_;
};

ValueRange constant_range(const Value& value) {
  ValueRange r = range_of_type(value.elem());
  if (is_string(value.elem()) || value.any_failed() || value.size() == 0 || value.size() > kMostConstant) return r;
  IntervalBuilder builder;
  r = builder.at(builder.constant(value.at(0)));
  for (int64_t i = 1; i < value.size(); ++i) {
    const ValueRange& one = builder.at(builder.constant(value.at(i)));
    r.lo = std::min(r.lo, one.lo), r.hi = std::max(r.hi, one.hi);
    r.flo = std::min(r.flo, one.flo), r.fhi = std::max(r.fhi, one.fhi);
    r.nan |= one.nan;
  }
  return r;
}

bool has_scalar_kernel(const Graph& graph, const Expr& e) {
  return e.op->cls == OpClass::Pointwise && is_generated(graph, e);
}

// The result, and whether the operation may fail, of arguments in such ranges.
ValueRange run(const Expr& e, const std::vector<ValueRange>& args, bool& may_fail) {
  IntervalBuilder builder;
  std::vector<KVal> values;
  for (const ValueRange& r : args) values.push_back(builder.add_node(r));
  const KVal result = e.op->kernel.pointwise(builder, e, values);
  may_fail = builder.may_fail;
  return builder.at(result);
}

}  // namespace

ValueRange range_of_type(Elem elem) {
  ValueRange r;
  r.elem = elem;
  if (is_float(elem)) {
    r.flo = -kInfinity, r.fhi = kInfinity;
    r.nan = true;
  } else if (!is_string(elem)) {
    r.lo = least_of(elem);
    r.hi = greatest_of(elem);
  }
  return r;
}

bool ValueRange::is_narrow() const { return is_integer(elem) && (lo > least_of(elem) || hi < greatest_of(elem)); }

const ValueRange& Ranges::of(ExprId id) {
  while (facts_.size() <= static_cast<size_t>(id.index)) {
    const Expr& e = graph_.expr({static_cast<int32_t>(facts_.size())});
    Fact fact{range_of_type(e.type.elem), e.op->effects.can_fail};
    ValueRange& r = fact.range;
    if (e.constant) {
      r = constant_range(*e.constant);
    } else if (is_field(e)) {
      if (e.attrs.has(kLeast)) r = integers(e.type.elem, e.attrs.integer(kLeast), e.attrs.integer(kGreatest));
    } else if (has_scalar_kernel(graph_, e)) {
      std::vector<ValueRange> args;
      for (ExprId arg : e.args) args.push_back(facts_[static_cast<size_t>(arg.index)].range);
      r = run(e, args, fact.may_fail);
      if (!e.op->effects.can_fail || e.attrs.has(kTotal)) fact.may_fail = false;
    } else if (e.op->cls == OpClass::View) {
      r = facts_[static_cast<size_t>(e.args[0].index)].range;
    } else if (e.op->bounds && is_integer(e.type.elem)) {
      int64_t lo = r.lo, hi = r.hi;
      if (e.op->bounds(e.attrs, {}, lo, hi)) r = integers(e.type.elem, lo, hi);
    }
    facts_.push_back(fact);
  }
  return facts_[static_cast<size_t>(id.index)].range;
}

bool may_fail_by_type(const Graph& graph, const Expr& e) {
  if (!e.op->effects.can_fail || e.attrs.has(kTotal)) return false;
  if (!has_scalar_kernel(graph, e)) return true;
  std::vector<ValueRange> args;
  for (ExprId arg : e.args) {
    const Expr& a = graph.expr(arg);
    args.push_back(a.constant ? constant_range(*a.constant) : range_of_type(a.type.elem));
  }
  bool may_fail = false;
  run(e, args, may_fail);
  return may_fail;
}

std::optional<ValueRange> field_range(const Graph& graph, Ranges& ranges, NodeId node, const std::string& field) {
  std::optional<ValueRange> found;
  std::vector<NodeId> places = {node};
  bool first = true;
  for (int steps = 0; !places.empty(); ++steps) {
    const Node& n = graph.node(places.back());
    if (!n.op) return std::nullopt;  // an expression that stands nowhere yet
    places.pop_back();
    if (steps == kMostSteps) return std::nullopt;
    const Assign* assign = nullptr;
    for (const Assign& a : n.assigns)
      if (a.field == field) assign = &a;
    if (first && assign) return std::nullopt;  // before or behind it?
    const Field* known = n.type.find(field);
    if (!first && !known) return std::nullopt;
    first = false;
    std::optional<ValueRange> here;
    if (assign) {
      here = ranges.of(assign->expr);
    } else if (n.op->cls == OpClass::Source) {
      int64_t lo = 0, hi = 0;
      if (!n.op->bounds || !known || !n.op->bounds(n.attrs, field, lo, hi)) return std::nullopt;
      here = integers(known->type.elem, lo, hi);
    } else {
      // Steps that hand on the values of good samples as they are.
      const bool same = n.op->cls == OpClass::OneToOne || n.op->cls == OpClass::Subset ||
                        n.op->cls == OpClass::Reorder || n.op->cls == OpClass::Repeat || n.op->cls == OpClass::Hint ||
                        n.op->cls == OpClass::Merge;
      if (!same || n.inputs.empty()) return std::nullopt;
      for (NodeId input : n.inputs) places.push_back(input);
      continue;
    }
    if (!is_integer(here->elem) || (found && found->elem != here->elem)) return std::nullopt;
    if (!found) {
      found = here;
    } else {
      found->lo = std::min(found->lo, here->lo);
      found->hi = std::max(found->hi, here->hi);
    }
  }
  return found;
}

}  // namespace zephon
