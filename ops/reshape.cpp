#include <fmt/format.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

const std::vector<int64_t>& wanted(const Attrs& attrs) { return attrs.get<std::vector<int64_t>>("shape"); }

// Elements of the given shape without its -1.
int64_t known_count(const Attrs& attrs) {
  int64_t n = 1;
  for (int64_t d : wanted(attrs)) n *= d < 0 ? 1 : d;
  return n;
}

void infer(InferCall& call) {
  const Type& in = call.args[0];
  int open = 0;
  call.result = in;
  call.result.box.clear();
  call.result.shape.clear();
  for (int64_t d : wanted(call.attrs)) {
    open += d == -1 ? 1 : 0;
    if (d < -1) call.error = fmt::format("a dimension of {}", d);
    call.result.shape.push_back(d < 0 ? Dim::unknown() : Dim::of(d));
  }
  if (open > 1) call.error = "`shape` leaves more than one dimension open (-1)";
  if (call.result.shape.size() > kMaxRank) call.error = fmt::format("a rank above {}", kMaxRank);
  if (!call.error.empty() || !in.has_static_shape()) return;
  int64_t have = in.element_count(), known = known_count(call.attrs);
  if (open == 0 ? have != known : known == 0 || have % known != 0) {
    call.error = fmt::format("{} elements do not fill shape {}", have, to_string(call.result));
    return;
  }
  for (Dim& d : call.result.shape)
    if (!d.is_static()) d = Dim::of(have / known);
}

// Extents of the result, -1 filled in.
Shape result_extents(const Attrs& attrs, int64_t count) {
  Shape shape = wanted(attrs);
  for (int64_t& d : shape)
    if (d < 0) d = count / known_count(attrs);
  return shape;
}

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const> args,
                  std::span<int64_t> in, std::string&) {
  Shape shape = result_extents(expr.attrs, args[0]->size());
  Shape index = index_at(args[0]->shape(), flat_at(shape, out));
  std::copy(index.begin(), index.end(), in.begin());
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  const std::vector<int64_t>& shape = wanted(expr.attrs);
  KVal count = i64_of(b, 1);
  for (size_t i = 0; i < in.size(); ++i) count = b.mul(count, b.extent(0, static_cast<int>(i)));
  KVal flat = i64_of(b, 0);
  for (size_t i = 0; i < out.size(); ++i) {
    // A known count divides the tensor's, so it is not 0 unless there are no elements to index.
    KVal extent =
        shape[i] >= 0 ? i64_of(b, shape[i]) : b.div(count, i64_of(b, std::max<int64_t>(1, known_count(expr.attrs))));
    flat = i == 0 ? out[0] : b.add(b.mul(flat, extent), out[i]);
  }
  for (size_t i = in.size(); i-- > 0;) {
    if (i == 0) {
      in[0] = flat;
      break;
    }
    KVal extent = b.maximum(b.extent(0, static_cast<int>(i)), i64_of(b, 1));
    in[i] = b.rem(flat, extent);
    flat = b.div(flat, extent);
  }
}

// Where the counts are known: a failure would name the shape between.
ExprId compose(Graph& graph, const Expr& outer, const Expr& inner) {
  const Type& type = graph.expr(inner.args[0]).type;
  if (!type.has_static_shape() || !outer.type.has_static_shape()) return {};
  if (type == outer.type) return inner.args[0];
  Expr both = outer;
  both.args = inner.args;
  return graph.add(std::move(both));
}

}  // namespace

ZEPHON_OP_DEF(Reshape) = {
    .name = "reshape",
    .cls = OpClass::View,
    .signature = "x: T[...s], shape: ints -> T",
    .summary = "The elements of x in the same order, in another shape; one dimension may be -1 and is computed.",
    .prose = "Fails where the number of elements does not fit.",
    .example = "range(2) | x = [index, 1, 2, 3].reshape([2, -1])",
    .effects = {.can_fail = true},
    .define = {.view = define},
    .kernel = {.view = build},
    .infer = infer,
    .permutes = true,
    .compose = compose,
};

}  // namespace zephon
