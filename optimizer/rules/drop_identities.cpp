#include <algorithm>
#include <cmath>

#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// x op c = x, to the bit: where c is on the right, on the left, for floats too.
struct Identity {
  std::string_view op;
  double constant;
  bool left, floats;
};
// Not x + 0.0: -0.0 + 0.0 is 0.0. x + -0.0 and x - 0.0 keep the sign, x * 1.0 and x / 1.0 every bit but a NaN's
// payload, which nobody can see.
constexpr Identity kIdentities[] = {
    {"add", 0, true, false}, {"add", -0.0, true, true}, {"sub", 0, false, true},        {"mul", 1, true, true},
    {"div", 1, false, true}, {"and", 1, true, false},   {"floor_div", 1, false, false}, {"or", 0, true, false},
};

bool is_all(const Graph& graph, ExprId id, double wanted) {
  const auto& c = graph.expr(id).constant;
  if (!c || c->any_failed() || is_string(c->elem())) return false;
  for (int64_t i = 0; i < c->size(); ++i) {
    const Scalar s = c->at(i);
    const double v = is_float(s.elem) ? s.f : static_cast<double>(s.i);
    if (v != wanted || (v == 0 && std::signbit(v) != std::signbit(wanted))) return false;
  }
  return true;
}

bool is(const Expr& e, std::string_view op) { return e.op->name == op; }

/// The element type holds every value of the other, and a cast between them gives it.
bool holds(Elem wide, Elem narrow) {
  if (is_string(wide) || is_string(narrow)) return false;
  if (wide == narrow) return true;
  if (is_float(narrow)) return (wide == Elem::F32 && narrow != Elem::F64) || wide == Elem::F64;
  const ValueRange in = range_of_type(narrow);
  if (!is_float(wide)) {
    const ValueRange out = range_of_type(wide);
    return out.lo <= in.lo && out.hi >= in.hi;
  }
  const int64_t whole = int64_t{1} << (wide == Elem::F64 ? 53 : wide == Elem::F32 ? 24 : wide == Elem::F16 ? 11 : 8);
  return in.lo >= -whole && in.hi <= whole;
}

/// cast(cast(x, between), to) = cast(x, to).
bool casts_once(Elem from, Elem between, Elem to) {
  if (!holds(between, from) || is_string(to)) return false;
  // Integers reach f16 and bf16 through f32, f64 does not.
  if (to == Elem::F16 || to == Elem::BF16) return holds(Elem::F32, from);
  // From a float an integer type saturates, from an integer it fails.
  return is_float(from) || !is_float(between) || is_float(to) || to == Elem::Bool || holds(to, from);
}

/// The bound, a constant, never binds what the other operand may be.
bool never_binds(const ValueRange& x, const ValueRange& bound, bool from_above) {
  if (is_float(x.elem)) return !x.nan && !bound.nan && (from_above ? x.fhi < bound.flo : x.flo > bound.fhi);
  return from_above ? x.hi <= bound.lo : x.lo >= bound.hi;
}

/// `gone` fails only where `left` does, and as it does. A field may have failed where it was assigned.
bool fails_with(Rewriter& rewriter, ExprId gone, ExprId left) {
  if (can_fail(rewriter.graph(), gone)) return false;
  const FieldSet fields = rewriter.reads().of(gone);
  return fields.empty() || (is_field(rewriter.graph().expr(left)) && fields == rewriter.reads().of(left));
}

/// The operand that the operation returns unchanged; what is dropped with it cannot fail.
ExprId kept(Rewriter& rewriter, ExprId expr) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  for (const Identity& identity : kIdentities) {
    if (e.op->name != identity.op || e.args.size() != 2 || (is_float(e.type.elem) && !identity.floats)) continue;
    if (is_all(graph, e.args[1], identity.constant)) return e.args[0];
    if (identity.left && is_all(graph, e.args[0], identity.constant)) return e.args[1];
  }
  // What chooses between two, where the choice is made. A failure of the other does not matter there.
  if ((is(e, "where") || is(e, "fill") || is(e, "choose")) && e.args.size() == 3) {
    // What goes must not have widened the result, nor failed to fit it: two pictures need not be of one size.
    auto widens = [&](size_t i) { return !graph.expr(e.args[i]).type.has_static_shape(); };
    for (const size_t arm : {size_t{1}, size_t{2}})
      if (is_all(graph, e.args[0], arm == 1 ? 1 : 0) && !widens(3 - arm)) return e.args[arm];
    if (e.args[1] == e.args[2] && !widens(0) && fails_with(rewriter, e.args[0], e.args[1])) return e.args[1];
  }
  if (e.args.empty()) return {};
  const Expr& x = graph.expr(e.args[0]);
  if (is(e, "cast") && x.type.elem == e.type.elem) return e.args[0];
  // Once is enough, and twice is not at all. The magnitude of the least integer fails at the first time.
  if (is(e, "abs") && x.op == e.op) return e.args[0];
  if ((is(e, "floor") || is(e, "round")) && (is(x, "floor") || is(x, "round"))) return e.args[0];
  if (is(e, "not") && x.op == e.op) return x.args[0];
  if (is(e, "neg") && x.op == e.op && (is_float(e.type.elem) || !rewriter.reads().ranges().may_fail(e.args[0])))
    return x.args[0];
  if (e.args.size() != 2) return {};
  const bool least = is(e, "minimum"), greatest = is(e, "maximum");
  if ((least || greatest || is(e, "and") || is(e, "or")) && e.args[0] == e.args[1]) return e.args[0];
  if (!least && !greatest) return {};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const ExprId operand = e.args[i], bound = e.args[1 - i];
    if (!is_constant(graph.expr(bound)) || graph.expr(bound).constant->any_failed()) continue;
    Ranges& ranges = rewriter.reads().ranges();
    const Expr& inner = graph.expr(operand);
    if (inner.op == e.op && (inner.args[0] == bound || inner.args[1] == bound)) return operand;
    if (never_binds(ranges.of(operand), ranges.of(bound), least)) return operand;
  }
  return {};
}

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  m.arg = kept(rewriter, expr);
  if (m.arg.valid()) return true;
  // Two casts are one.
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (!is(e, "cast")) return false;
  const Expr& between = graph.expr(e.args[0]);
  if (!is(between, "cast")) return false;
  if (!casts_once(graph.expr(between.args[0]).type.elem, between.type.elem, e.type.elem)) return false;
  m.arg = expr;
  return true;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  if (m.arg != m.expr) return m.arg;
  Graph& graph = rewriter.graph();
  Expr once = graph.expr(m.expr);
  once.args = graph.expr(once.args[0]).args;
  return graph.add(std::move(once));
}

constexpr Guard kGuards[] = {
    // Broadcasting or promotion would make another type of it.
    {"the result has the operand's type",
     [](Rewriter& rewriter, const Match& m) {
       return rewriter.graph().expr(m.expr).type == rewriter.graph().expr(m.arg).type;
     }},
};

}  // namespace

// These are facts about single operators, so their names stand here.
ZEPHON_RULE_DEF(DropIdentities) = {
    .name = "drop_identities",
    .summary =
        "Work that returns its operand unchanged goes: x + 0 for integers, x + -0.0, x * 1, x / 1, p and true, p or "
        "false, not not p, -(-x), what is done twice and needs no second time (abs, floor, minimum with the same "
        "bound), "
        "a bound that range analysis shows not to bind, `where` with a constant condition or equal arms. A cast of a "
        "cast that loses nothing is one.",
    .law =
        "x + 0 = x, x * 1 = x, x / 1 = x, p and true = p, p or false = p, where(true, x, y) = x, not not p = p, "
        "abs(abs x) = abs x, minimum(x, c) = x where x <= c, cast(cast(x, a), b) = cast(x, b)",
    .ends = "one operation fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires  # the condition is known once it is folded
range(100) | x = where(sqrt(9.0) == 3.0, index, -index)

fires
range(100) | x = index * 1

fires  # an index is not below 0, and below 100 already
range(100) | x = index.clamp(0, 99)

fires  # a byte fits into both
range(100) | x = index.u8.i32.f32

fires
range(100) | x = where(not not (index > 3), index, index + 1)

keeps  # the constant makes a tensor of it
range(100) | x = index * [1, 1, 1]
----
the result has the operand's type
)explain",
};

}  // namespace zephon
