#include <algorithm>
#include <cmath>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// x op c = x, to the bit: where c is on the right, on the left, for floats too.
struct Identity {
  std::string_view op;
  double constant;
  bool left, floats;
};
// Not x + 0.0: -0.0 + 0.0 is 0.0. x - 0.0 keeps the sign, x * 1.0 and x / 1.0 every bit but a NaN's payload, which
// nobody can see.
constexpr Identity kIdentities[] = {
    {"add", 0, true, false}, {"sub", 0, false, true}, {"mul", 1, true, true},
    {"div", 1, false, true}, {"and", 1, true, false}, {"or", 0, true, false},
};

bool is_all(const Graph& graph, ExprId id, double wanted) {
  const auto& c = graph.expr(id).constant;
  if (!c || c->any_failed() || is_string(c->elem())) return false;
  for (int64_t i = 0; i < c->size(); ++i) {
    const Scalar s = c->at(i);
    const double v = is_float(s.elem) ? s.f : static_cast<double>(s.i);
    if (v != wanted || (v == 0 && std::signbit(v))) return false;
  }
  return true;
}

/// The operand that the operation returns unchanged.
ExprId kept(const Graph& graph, ExprId expr) {
  const Expr& e = graph.expr(expr);
  for (const Identity& identity : kIdentities) {
    if (e.op->name != identity.op || e.args.size() != 2 || (is_float(e.type.elem) && !identity.floats)) continue;
    if (is_all(graph, e.args[1], identity.constant)) return e.args[0];
    if (identity.left && is_all(graph, e.args[0], identity.constant)) return e.args[1];
  }
  // What chooses between two, where the choice is made. A failure of the other does not matter there.
  if ((e.op->name == "where" || e.op->name == "fill" || e.op->name == "choose") && e.args.size() == 3)
    for (const size_t arm : {size_t{1}, size_t{2}})
      if (is_all(graph, e.args[0], arm == 1 ? 1 : 0)) return e.args[arm];
  if (e.op->name == "cast" && graph.expr(e.args[0]).type.elem == e.type.elem) return e.args[0];
  return {};
}

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  m.arg = kept(rewriter.graph(), expr);
  return m.arg.valid();
}

ExprId apply(Rewriter&, const Match& m) { return m.arg; }

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
        "Work that returns its operand unchanged goes: x + 0 for integers, x * 1, x / 1, p and true, p or false, "
        "`where` with a constant condition.",
    .law = "x + 0 = x, x * 1 = x, x / 1 = x, p and true = p, p or false = p, where(true, x, y) = x",
    .ends = "one operation fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires  # the condition is known once it is folded
range(100) | x = where(sqrt(9.0) == 3.0, index, -index)

fires
range(100) | x = index * 1

keeps  # the constant makes a tensor of it
range(100) | x = index * [1, 1, 1]
----
the result has the operand's type
)explain",
};

}  // namespace zephon
