#include <fmt/format.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();

struct Range {
  int64_t begin, end, step;
  // With negative ends counted from `extent`.
  static Range of(const Attrs& attrs, size_t dim, int64_t extent) {
    Range r{attrs.get<std::vector<int64_t>>("begin")[dim], attrs.get<std::vector<int64_t>>("end")[dim],
            attrs.get<std::vector<int64_t>>("step")[dim]};
    if (r.begin < 0) r.begin += extent;
    if (r.end == kOpen) r.end = extent;
    if (r.end < 0) r.end += extent;
    return r;
  }
  int64_t count() const { return (end - begin + step - 1) / step; }
};

void infer(InferCall& call) {
  const std::vector<Dim>& shape = call.args[0].shape;
  call.result = call.args[0];
  call.result.box.clear();
  for (const char* name : {"begin", "end", "step"})
    if (call.attrs.get<std::vector<int64_t>>(name).size() != shape.size()) {
      call.error = fmt::format("{} ranges for a tensor of rank {}", call.attrs.get<std::vector<int64_t>>(name).size(),
                               shape.size());
      return;
    }
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool known = shape[i].is_static();
    const int64_t step = call.attrs.get<std::vector<int64_t>>("step")[i];
    const int64_t begin = call.attrs.get<std::vector<int64_t>>("begin")[i];
    const int64_t end = call.attrs.get<std::vector<int64_t>>("end")[i];
    Dim& dim = call.result.shape[i];
    if (step < 1) {
      call.error = "the step of a slice must be at least 1";
    } else if (begin == 0 && end == kOpen && step == 1) {
      continue;  // the whole dimension
    } else if (!known && (begin < 0 || end < 0 || end == kOpen)) {
      dim = Dim::unknown();
    } else {
      Range r = Range::of(call.attrs, i, known ? shape[i].extent : 0);
      if (r.begin < 0 || r.end < r.begin || (known && r.end > shape[i].extent)) {
        call.error = fmt::format("slice {}:{} of a dimension of {}", begin, end == kOpen ? "" : std::to_string(end),
                                 to_string(shape[i]));
        return;
      }
      dim = Dim::of(r.count());
    }
  }
}

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const> args,
                  std::span<int64_t> in, std::string& message) {
  for (size_t i = 0; i < in.size(); ++i) {
    int64_t extent = args[0]->shape()[i];
    Range r = Range::of(expr.attrs, i, extent);
    in[i] = r.begin + out[i] * r.step;
    if (in[i] < 0 || in[i] >= extent) {
      message = fmt::format("a slice reaches {} in a dimension of {}", in[i], extent);
      return ViewResult::Failed;
    }
  }
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    int64_t begin = expr.attrs.get<std::vector<int64_t>>("begin")[i];
    int64_t end = expr.attrs.get<std::vector<int64_t>>("end")[i];
    int64_t step = expr.attrs.get<std::vector<int64_t>>("step")[i];
    KVal extent = b.extent(0, static_cast<int>(i));
    KVal first = i64_of(b, begin);
    if (begin < 0) first = b.add(first, extent);
    // The range lies inside once its ends do; where the extent is static this folds away.
    if (begin < 0) b.fail_if(b.compare(Compare::Lt, first, i64_of(b, 0)));
    if (end >= 0 && end != kOpen) b.fail_if(b.compare(Compare::Gt, i64_of(b, end), extent));
    if (begin > 0) b.fail_if(b.compare(Compare::Gt, first, extent));
    KVal moved = step == 1 ? out[i] : b.mul(out[i], i64_of(b, step));
    in[i] = begin == 0 ? moved : b.add(moved, first);
  }
}

// The inner slice must not be able to fail: its failure names the first place that it cannot reach, which may be one
// that the outer one does not ask for.
ExprId compose(Graph& graph, const Expr& outer, const Expr& inner) {
  const std::vector<Dim> shape = graph.expr(inner.args[0]).type.shape;
  Expr both = outer;
  both.args = inner.args;
  std::vector<int64_t> begins, ends, steps;
  for (size_t i = 0; i < shape.size(); ++i) {
    auto raw = [i](const Expr& e, const char* name) { return e.attrs.get<std::vector<int64_t>>(name)[i]; };
    if (raw(inner, "begin") == 0 && raw(inner, "end") == kOpen && raw(inner, "step") == 1) {
      begins.push_back(raw(outer, "begin"));
      ends.push_back(raw(outer, "end"));
      steps.push_back(raw(outer, "step"));
      continue;
    }
    if (!shape[i].is_static()) return {};
    const Range a = Range::of(inner.attrs, i, shape[i].extent);
    const Range b = Range::of(outer.attrs, i, a.count());
    begins.push_back(a.begin + b.begin * a.step);
    steps.push_back(a.step * b.step);
    ends.push_back(b.count() == 0 ? begins.back() : begins.back() + (b.count() - 1) * steps.back() + 1);
  }
  both.attrs.set("begin", std::move(begins));
  both.attrs.set("end", std::move(ends));
  both.attrs.set("step", std::move(steps));
  return graph.add(std::move(both));
}

}  // namespace

ZEPHON_OP_DEF(Slice) = {
    .name = "slice",
    .cls = OpClass::View,
    .signature = "x: T[...s], begin: ints, end: ints, step: ints -> T[...s]",
    .summary = "x[begin:end:step]: a range of every dimension.",
    .prose =
        "`end` is not included; negative ends count from the end of the dimension. A range that leaves the dimension "
        "fails: nothing is cut silently. `step` is at least 1.",
    .example = "range(3) | x = [index, index + 1, index + 2][1:3]",
    .effects = {.can_fail = true},
    .define = {.view = define},
    .kernel = {.view = build},
    .infer = infer,
    .compose = compose,
};

}  // namespace zephon
