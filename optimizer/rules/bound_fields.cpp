#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match&) {
  const Expr& e = rewriter.graph().expr(expr);
  return is_field(e) && is_integer(e.type.elem) && !e.attrs.has(kLeast);
}

std::optional<ValueRange> range(Rewriter& rewriter, const Match& m) {
  const Graph& graph = rewriter.graph();
  return field_range(graph, rewriter.reads().ranges(), m.outer, graph.expr(m.expr).attrs.text("name"));
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr field = rewriter.graph().expr(m.expr);
  const ValueRange found = *range(rewriter, m);
  field.attrs.set(kLeast, found.lo);
  field.attrs.set(kGreatest, found.hi);
  return rewriter.graph().add(std::move(field));
}

constexpr Guard kGuards[] = {
    {"what makes the field bounds it",
     [](Rewriter& rewriter, const Match& m) {
       const std::optional<ValueRange> found = range(rewriter, m);
       return found && found->elem == rewriter.graph().expr(m.expr).type.elem && found->is_narrow();
     }},
};

}  // namespace

// A fact about the values of good samples, so it holds wherever the expression moves: steps that change values of a
// field without assigning it (masks, padding) end the search for what makes it.
ZEPHON_RULE_DEF(BoundFields) = {
    .name = "bound_fields",
    .summary =
        "Notes between what numbers a field lies, as its source says or the expression that made it shows: range "
        "analysis begins there.",
    .law = "x = x, where least <= x <= greatest",
    .ends = "each field is bounded once",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
range(100) | x = index + 1

keeps  # what failed is 0 now
files("examples/data/photos/*/*.jpg") | take(3) | n = path.byte_length() | on_error(mask) | m = n + 1 | select m
----
what makes the field bounds it
)explain",
};

}  // namespace zephon
