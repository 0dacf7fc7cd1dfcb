#include <fmt/format.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

const std::vector<int64_t>& order_of(const Attrs& attrs) { return attrs.get<std::vector<int64_t>>("order"); }

void infer(InferCall& call) {
  const std::vector<int64_t>& order = order_of(call.attrs);
  std::vector<bool> seen(call.args[0].rank());
  bool good = order.size() == seen.size();
  for (int64_t d : order) {
    good = good && d >= 0 && d < static_cast<int64_t>(seen.size()) && !seen[static_cast<size_t>(d)];
    if (good) seen[static_cast<size_t>(d)] = true;
  }
  if (!good) {
    call.error = fmt::format("`order` must name each of the {} dimensions once", seen.size());
    return;
  }
  call.result = call.args[0];
  call.result.box.clear();
  for (size_t i = 0; i < order.size(); ++i) call.result.shape[i] = call.args[0].shape[static_cast<size_t>(order[i])];
}

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const>, std::span<int64_t> in,
                  std::string&) {
  for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(order_of(expr.attrs)[i])] = out[i];
  return ViewResult::Element;
}

void build(IndexBuilder&, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(order_of(expr.attrs)[i])] = out[i];
}

ExprId compose(Graph& graph, const Expr& outer, const Expr& inner) {
  std::vector<int64_t> order;
  bool same = true;
  for (int64_t d : order_of(outer.attrs)) {
    order.push_back(order_of(inner.attrs)[static_cast<size_t>(d)]);
    same = same && order.back() + 1 == static_cast<int64_t>(order.size());
  }
  if (same) return inner.args[0];
  Expr both = outer;
  both.args = inner.args;
  both.attrs.set("order", std::move(order));
  return graph.add(std::move(both));
}

}  // namespace

ZEPHON_OP_DEF(Transpose) = {
    .name = "transpose",
    .cls = OpClass::View,
    .signature = "x: T[...s], order: ints -> T[...s]",
    .summary = "The dimensions of x in another order: dimension i of the result is dimension order[i] of x.",
    .example = "range(2) | x = [[index, 1], [2, 3]].transpose([1, 0])",
    .define = {.view = define},
    .kernel = {.view = build},
    .infer = infer,
    .permutes = true,
    .compose = compose,
};

}  // namespace zephon
