#include <fmt/format.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// The dimensions that the indices are for, in order; empty (with `error`) where they are not dimensions of x.
std::vector<size_t> indexed_dims(const Attrs& attrs, size_t rank, size_t count, std::string& error) {
  std::vector<size_t> dims;
  if (!attrs.has("dims")) {
    for (size_t i = 0; i < count; ++i) dims.push_back(i);
  } else {
    for (int64_t d : attrs.get<std::vector<int64_t>>("dims"))
      dims.push_back(static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(rank) : d));
  }
  if (dims.size() != count) error = fmt::format("{} indices for {} dimensions", count, dims.size());
  for (size_t d : dims)
    if (d >= rank)
      error = fmt::format("{} for a tensor of rank {}", count == 1 ? "an index" : "too many indices", rank);
  return dims;
}

void infer(InferCall& call) {
  std::vector<size_t> dims = indexed_dims(call.attrs, call.args[0].rank(), call.args.size() - 1, call.error);
  if (!call.error.empty()) return;
  call.result = call.args[0];
  call.result.box.clear();
  call.result.shape.clear();
  for (size_t d = 0; d < call.args[0].rank(); ++d) {
    bool gone = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != d) continue;
      gone = true;
      const Value* at = call.constants[i + 1];
      const Dim& dim = call.args[0].shape[d];
      if (at == nullptr || !dim.is_static() || at->any_failed()) continue;
      int64_t v = at->at(0).i;
      if (v >= dim.extent || v < -dim.extent) call.error = fmt::format("index {} in a dimension of {}", v, dim.extent);
    }
    if (!gone) call.result.shape.push_back(call.args[0].shape[d]);
  }
}

ViewResult define(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const> args,
                  std::span<int64_t> in, std::string& message) {
  std::string error;
  std::vector<size_t> dims = indexed_dims(expr.attrs, in.size(), args.size() - 1, error);
  std::vector<bool> fixed(in.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t extent = args[0]->shape()[dims[i]], at = args[i + 1]->at(0).i;
    fixed[dims[i]] = true;
    in[dims[i]] = at < 0 ? at + extent : at;
    if (at >= extent || at < -extent) {
      message = fmt::format("index {} in a dimension of {}", at, extent);
      return ViewResult::Failed;
    }
  }
  for (size_t d = 0, next = 0; d < in.size(); ++d)
    if (!fixed[d]) in[d] = out[next++];
  return ViewResult::Element;
}

void build(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) {
  std::string error;
  std::vector<size_t> dims = indexed_dims(expr.attrs, in.size(), expr.args.size() - 1, error);
  std::vector<bool> fixed(in.size());
  KVal zero = i64_of(b, 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    KVal extent = b.extent(0, static_cast<int>(dims[i])), at = b.element(static_cast<int>(i) + 1, {});
    at = b.select(b.compare(Compare::Lt, at, zero), b.add(at, extent), at);
    b.fail_if(b.bit_or(b.compare(Compare::Lt, at, zero), b.compare(Compare::Ge, at, extent)));
    fixed[dims[i]] = true;
    in[dims[i]] = at;
  }
  for (size_t d = 0, next = 0; d < in.size(); ++d)
    if (!fixed[d]) in[d] = out[next++];
}

}  // namespace

ZEPHON_OP_DEF(Index) = {
    .name = "index",
    .cls = OpClass::View,
    .signature = "x: T[...s], at: i64..., dims: ints? -> T",
    .summary = "x[i, j, ...]: the elements at these places of the first dimensions, or of the dimensions `dims`.",
    .prose = "A negative index counts from the end. An index outside its dimension fails.",
    .example = "range(3) | x = [10, 20, 30][index]",
    .effects = {.can_fail = true},
    .define = {.view = define},
    .kernel = {.view = build},
    .infer = infer,
};

}  // namespace zephon
