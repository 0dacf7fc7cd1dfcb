#include <algorithm>

#include "graph/signature.h"
#include "optimizer/rules/regions.h"

namespace zephon {
namespace {

bool is_shape_form(const OpTable& ops, const OpDef& op) {
  return op.shape_only && std::ranges::any_of(ops.all(), [&](const OpDef* other) { return other->shape_form == &op; });
}

/// The picture that is asked, and the expressions from the question down to it: shapes of shapes.
std::vector<ExprId> chain_of(Rewriter& rewriter, ExprId question) {
  const Graph& graph = rewriter.graph();
  std::vector<ExprId> chain = {question, graph.expr(question).args[0]};
  while (is_shape_form(rewriter.ops(), *graph.expr(chain.back()).op) && graph.expr(chain.back()).args.size() == 1 &&
         !graph.expr(graph.expr(chain.back()).args[0]).type.is_scalar())
    chain.push_back(graph.expr(chain.back()).args[0]);
  return chain;
}

// What uses height and width alone: a box, or one of the two.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Expr& e = rewriter.graph().expr(expr);
  if (!e.op->shape_only || e.args.empty()) return false;
  if (!e.op->fits_box && !(e.type.is_scalar() && e.attrs.empty())) return false;
  m.arg = chain_of(rewriter, expr).back();
  const OpClass cls = rewriter.graph().expr(m.arg).op->cls;
  return (cls == OpClass::Pointwise || cls == OpClass::View) && rewriter.graph().expr(m.arg).type.rank() >= 2;
}

/// The question asked of the base; invalid where that cannot be asked.
ExprId asked(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  ExprId below = rules::base_of(graph, m.arg);
  if (below == m.arg) return {};
  const std::vector<ExprId> chain = chain_of(rewriter, m.expr);
  for (size_t i = chain.size() - 1; i-- > 0;) {
    Expr e = graph.expr(chain[i]);
    e.args[0] = below;
    std::vector<Type> types;
    std::vector<const Value*> constants;
    for (ExprId arg : e.args) {
      types.push_back(graph.expr(arg).type);
      constants.push_back(graph.expr(arg).constant.get());
    }
    std::string error;
    int bad = 0;
    std::optional<Type> type = unify(*e.op, e.attrs, types, constants, error, bad);
    if (!type || (i == 0 && *type != e.type)) return {};
    e.type = *std::move(type);
    below = graph.add(std::move(e));
  }
  return below;
}

constexpr Guard kGuards[] = {
    // Else another operand could fail, or give the result another shape.
    {"the work keeps rows and columns of one picture, and fails where that does",
     [](Rewriter& rewriter, const Match& m) { return asked(rewriter, m).valid(); }},
};

}  // namespace

ZEPHON_RULE_DEF(PushBoxBelowWork) = {
    .name = "push_box_below_work",
    .summary =
        "Where in a picture a box lies is asked of the picture that it was made of, by arithmetic, mirror images and "
        "choices of channels: so nobody needs the whole of the result.",
    .law = "box_of (f x) = box_of x, where f keeps rows and columns",
    .ends = "one box is asked for some operations earlier",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = asked,
    .examples = R"explain(
fires  # of three channels, gray
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image() | y = 0.3 * f32(x[:, :, 0]) + 0.7 * f32(x[:, :, 1]) | box = y.random_crop_box(9, 7) | select box

fires  # through the shape of a resize, which bytes have as floats do
files("examples/data/photos/*/*.jpg") | take(3) | box = bytes.decode_image().normalize([0.5], [0.2]).resize(32, 40).random_crop_box(9, 7) | select box

keeps  # of two pictures either may be the smaller one, or fail
files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.decode_image() | y = f32(x) + f32(x.resize(40, 40)) | box = y.random_crop_box(9, 7) | select box
----
the work keeps rows and columns of one picture, and fails where that does
)explain",
};

}  // namespace zephon
