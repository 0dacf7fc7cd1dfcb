#include "graph/constants.h"

#include <algorithm>
#include <vector>

#include "graph/evaluator.h"
#include "graph/op_def.h"

namespace zephon {
namespace {

class ConstantCall final : public DefineCall {
 public:
  ConstantCall(const Graph& graph, const Expr& expr, const Value* argument = nullptr)
      : graph_(graph), expr_(expr), argument_(argument) {}
  const Expr& expr() const override { return expr_; }
  const Value& arg(size_t i) override { return argument_ ? *argument_ : *graph_.expr(expr_.args[i]).constant; }
  size_t arg_count() const override { return expr_.args.size(); }
  uint64_t identity() const override { return 0; }  // only draws ask, and they are no constants
  uint64_t draw_key() const override { return 0; }

 private:
  const Graph& graph_;
  const Expr& expr_;
  const Value* argument_;  // instead of constants
};

std::optional<Value> pointwise(const Graph& graph, const Expr& e) {
  Value out(e.type.elem, [&] {
    std::vector<int64_t> shape;
    for (const Dim& d : e.type.shape) shape.push_back(d.extent);
    return shape;
  }());
  std::vector<ScalarArg> args(e.args.size());
  for (int64_t flat = 0; flat < out.size(); ++flat) {
    for (size_t i = 0; i < args.size(); ++i) {
      const Value& arg = *graph.expr(e.args[i]).constant;
      // NumPy broadcasting: dimensions are matched from the last; extent 1 stays where it is.
      int64_t index = 0, stride = 1, rest = flat;
      for (size_t d = 0; d < e.type.rank(); ++d) {
        const int64_t extent = e.type.shape[e.type.rank() - 1 - d].extent;
        const int64_t at = rest % extent;
        rest /= extent;
        if (d >= arg.shape().size()) continue;
        const int64_t own = arg.shape()[arg.shape().size() - 1 - d];
        if (own > 1) index += at * stride;
        stride *= own;
      }
      args[i] = {arg.at(index), nullptr};
    }
    const ScalarResult result = e.op->define.scalar(e, args);
    if (!result.ok) return std::nullopt;
    out.set(flat, result.value);
  }
  return out;
}

}  // namespace

std::optional<Value> evaluate_constant(const Graph& graph, ExprId id) {
  const Expr& e = graph.expr(id);
  for (ExprId arg : e.args)
    if (graph.expr(arg).constant->any_failed()) return std::nullopt;
  if (e.op->define.scalar) return e.type.has_static_shape() ? pointwise(graph, e) : std::nullopt;
  if (!e.op->define.tensor) return std::nullopt;
  ConstantCall call(graph, e);
  Value value = e.op->define.tensor(call);
  if (value.any_failed()) return std::nullopt;
  return value;
}

std::optional<Value> evaluate_on_shape(const Graph& graph, ExprId id) {
  const Expr& e = graph.expr(id);
  const Type& type = graph.expr(e.args.at(0)).type;
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.extent);
  const Value argument(type.elem, std::move(shape));
  ConstantCall call(graph, e, &argument);
  Value value = e.op->define.tensor(call);
  if (value.any_failed()) return std::nullopt;
  return value;
}

}  // namespace zephon
