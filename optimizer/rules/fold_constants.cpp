#include <algorithm>
#include <optional>
#include <span>

#include "graph/constants.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match&) {
  const Expr& e = rewriter.graph().expr(expr);
  return !is_leaf(e) && !e.args.empty() &&
         std::all_of(e.args.begin(), e.args.end(), [&](ExprId arg) { return is_constant(rewriter.graph().expr(arg)); });
}

constexpr double kMostElements = 4096;  // a larger constant costs more memory than its computation saves

std::optional<Value> value(Rewriter& rewriter, ExprId expr) { return evaluate_constant(rewriter.graph(), expr); }

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr folded = graph.expr(add_constant(graph, rewriter.ops(), *value(rewriter, m.expr)));
  folded.type.box = graph.expr(m.expr).type.box;  // a box is a box, whatever it is made of
  return graph.add(std::move(folded));
}

constexpr Guard kGuards[] = {
    {"it is the same for every sample and every run",
     [](Rewriter& rewriter, const Match& m) {
       const Expr& e = rewriter.graph().expr(m.expr);
       return e.draw_id == 0 && !e.op->effects.random && !e.op->effects.reads_files;
     }},
    // What reads it was checked against its type: index 1 of one element would be an error before the run.
    {"its shape is known",
     [](Rewriter& rewriter, const Match& m) { return rewriter.graph().expr(m.expr).type.has_static_shape(); }},
    {"the result is small",
     [](Rewriter& rewriter, const Match& m) { return rewriter.elements(m.expr) <= kMostElements; }, true},
    // A failure belongs to the sample that needs the value, and to none if no sample does.
    {"it does not fail", [](Rewriter& rewriter, const Match& m) { return value(rewriter, m.expr).has_value(); }},
};

}  // namespace

ZEPHON_RULE_DEF(FoldConstants) = {
    .name = "fold_constants",
    .summary = "An operation on constants is carried out once, by its definition.",
    .law = "f c = the constant that the definition of f gives for c",
    .ends = "one operation fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
range(100) | x = index + i64(sqrt(9.0))

keeps  # the file may change from run to run
range(100) | x = read_file("examples/data/wine.csv")
----
it is the same for every sample and every run

keeps  # one digit
range(100) | x = "x1".find_all(r"\d")[1]
----
its shape is known

keeps
range(100) | x = one_hot(7, 5000)
----
the result is small

keeps
range(100) | x = one_hot(9, 3)
----
it does not fail
)explain",
};

}  // namespace zephon
