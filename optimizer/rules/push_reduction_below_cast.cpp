#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

// One operand, made of another element type and nothing else.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& reduction = graph.expr(expr);
  if (reduction.op->cls != OpClass::Reduce || reduction.args.size() != 1) return false;
  m.arg = reduction.args[0];
  const Expr& cast = graph.expr(m.arg);
  return cast.op->cls == OpClass::Pointwise && cast.args.size() == 1 && cast.attrs.has("to") &&
         is_numeric(cast.type.elem) && is_numeric(graph.expr(cast.args[0]).type.elem);
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr reduction = graph.expr(m.expr), cast = graph.expr(m.arg);
  reduction.args[0] = cast.args[0];
  reduction.type.elem = graph.expr(cast.args[0]).type.elem;
  cast.type = graph.expr(m.expr).type;
  cast.args[0] = graph.add(std::move(reduction));
  return graph.add(std::move(cast));
}

constexpr Guard kGuards[] = {
    {"one of the elements is the result",
     [](Rewriter& rewriter, const Match& m) { return rewriter.graph().expr(m.expr).op->any_order == AnyOrder::Yes; }},
    // From integers to floats it rounds, but what is not less stays so.
    {"the cast keeps the order, and cannot fail",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& cast = graph.expr(m.arg);
       const Elem from = graph.expr(cast.args[0]).type.elem, to = cast.type.elem;
       return !may_fail_by_type(graph, cast) && (is_integer(from) || elem_size(from) < elem_size(to));
     }},
    {"fewer bytes are read",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& cast = graph.expr(m.arg);
       return elem_size(graph.expr(cast.args[0]).type.elem) <= elem_size(cast.type.elem) &&
              rewriter.expr_users(m.arg).size() <= 1;
     },
     true},
};

}  // namespace

ZEPHON_RULE_DEF(PushReductionBelowCast) = {
    .name = "push_reduction_below_cast",
    .summary =
        "The least and the greatest are asked of the elements as they were before they were made larger, and only the "
        "answer is.",
    .law = "max (cast x) = cast (max x)",
    .ends = "one cast of a tensor fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | x = f32(bytes.decode_image()).max() | select x

fires  # over one dimension
range(4) | x = u8([[index, 2], [3, 4]]).f32.min(axes=[0])

keeps  # sums of floats round, of bytes they do not
files("examples/data/photos/*/*.jpg") | take(3) | x = f32(bytes.decode_image()).sum() | select x
----
one of the elements is the result

keeps  # 300 is no byte
range(4) | x = u8([[index, 2], [300, 4]]).max()
----
the cast keeps the order, and cannot fail

keeps  # the larger elements are made anyway
range(4) | x = f64(u8([[index, 2], [3, 4]])) | y = x.max() | select x, y
----
fewer bytes are read
)explain",
};

}  // namespace zephon
