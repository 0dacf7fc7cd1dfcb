#include <algorithm>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (!e.op->shape_only || e.args.empty()) return false;
  m.arg = e.args[0];
  const Expr& pointwise = graph.expr(m.arg);
  return pointwise.op->cls == OpClass::Pointwise && !pointwise.type.is_scalar() && !is_string(pointwise.type.elem);
}

/// The result is the same of another element type: the shape of a resized picture is asked for of pictures only.
bool takes_operand(Rewriter& rewriter, const Match& m) {
  const Graph& graph = rewriter.graph();
  const ExprId operand = rules::shaped_operand(graph, m.arg);
  if (!operand.valid()) return true;
  const Expr& user = graph.expr(m.expr);
  std::vector<Type> types;
  std::vector<const Value*> constants;
  for (ExprId arg : user.args) {
    const Expr& given = graph.expr(arg == m.arg && types.empty() ? operand : arg);
    types.push_back(given.type);
    constants.push_back(given.constant.get());
  }
  std::string error;
  int bad = 0;
  const std::optional<Type> type = unify(*user.op, user.attrs, types, constants, error, bad);
  return type && *type == user.type;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr user = rewriter.graph().expr(m.expr);
  user.args[0] = rules::shaped_operand(rewriter.graph(), m.arg);
  return rewriter.graph().add(std::move(user));
}

constexpr Guard kGuards[] = {
    // where(p, x, 0) has its shape where x has failed and is not chosen.
    {"a failure of any operand fails the result",
     [](Rewriter& rewriter, const Match& m) { return !rewriter.graph().expr(m.arg).op->define.lazy; }},
    // Another operand could fail, or give the result another shape.
    {"all operands but one are constants that do not widen it",
     [](Rewriter& rewriter, const Match& m) { return rules::shaped_operand(rewriter.graph(), m.arg).valid(); }},
    {"what asks for the shape takes that operand", takes_operand},
};

}  // namespace

ZEPHON_RULE_DEF(PushShapeBelowPointwise) = {
    .name = "push_shape_below_pointwise",
    .summary = "What needs only the shape of a pointwise result gets it from the operand that has the same shape.",
    .law = "f (g x) = f x, where f uses nothing but the shape and g is pointwise",
    .ends = "one shape is asked for one operation earlier",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | h = (f32(bytes.decode_image()) / 255).height() | select h

keeps  # x has no shape where its line is broken, but need not be chosen
jsonl("examples/data/reviews.jsonl", schema={stars: i64}) | n = where(false, [stars, 1], 0).len() | select n
----
a failure of any operand fails the result

keeps  # numbers of 64 bits are no picture that can be resized
range(4) | x = f32([[[1], [2]], [[3], [4]]] + index).resize(3, 3).random_crop(2, 2) | select x
----
what asks for the shape takes that operand

keeps  # of two pictures either may be the smaller one, or fail
range(4) | x = one_hot(index, 4) + one_hot(3 - index, 4) | n = x.len() | select n
----
all operands but one are constants that do not widen it
)explain",
};

}  // namespace zephon
