// sum mean min max any all: over all dimensions, or over `axes`.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// Which dimensions are reduced; nothing where an axis does not exist.
std::optional<std::vector<bool>> reduced_dims(const Attrs& attrs, size_t rank) {
  std::vector<bool> reduced(rank, !attrs.has("axes"));
  if (!attrs.has("axes")) return reduced;
  for (int64_t axis : attrs.get<std::vector<int64_t>>("axes")) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

void infer(InferCall& call) {
  const std::vector<Dim>& in = call.args[0].shape;
  auto reduced = reduced_dims(call.attrs, in.size());
  if (!reduced) {
    call.error = fmt::format("`axes` names a dimension that a tensor of rank {} does not have", in.size());
    return;
  }
  call.result.box.clear();
  call.result.shape.clear();
  for (size_t i = 0; i < in.size(); ++i)
    if (!(*reduced)[i]) call.result.shape.push_back(in[i]);
}

void infer_mean(InferCall& call) {
  infer(call);
  if (is_integer(call.result.elem)) call.result.elem = Elem::F64;
}

// Calls `reduce` with the elements of each group that becomes one element, in logical order.
template <class Reduce>
Value define_over(DefineCall& call, Reduce&& reduce) {
  const Value& in = call.arg(0);
  if (in.whole_failed()) return forward(in);
  const Shape& shape = in.shape();
  std::vector<bool> reduced = *reduced_dims(call.expr().attrs, shape.size());
  Shape kept, gone;
  for (size_t i = 0; i < shape.size(); ++i) (reduced[i] ? gone : kept).push_back(shape[i]);
  Value out(call.expr().type.elem, kept);
  std::vector<Scalar> group(static_cast<size_t>(count_of(gone)));
  for (int64_t o = 0; o < count_of(kept); ++o) {
    Shape outer = index_at(kept, o);
    bool failed = false;
    for (int64_t g = 0; g < count_of(gone); ++g) {
      Shape inner = index_at(gone, g), index;
      for (size_t i = 0, k = 0, r = 0; i < shape.size(); ++i) index.push_back(reduced[i] ? inner[r++] : outer[k++]);
      int64_t flat = flat_at(shape, index);
      failed = failed || in.element_failed(flat);
      if (!failed) group[static_cast<size_t>(g)] = in.at(flat);
    }
    if (failed) {
      out.fail_element(o, *in.failure());
      continue;
    }
    ScalarResult result = reduce(group);
    if (result.ok) {
      out.set(o, result.value);
    } else {
      out.fail_element(o, call.failure(result.code, result.message));
    }
  }
  return out;
}

// The sum of DESIGN section 5: 16 interleaved lanes in logical order, combined pairwise.
double lane_sum(Elem elem, std::span<const Scalar> group) {
  double lanes[16] = {};
  for (size_t i = 0; i < group.size(); ++i) {
    double x = is_float(group[i].elem) ? group[i].f : static_cast<double>(group[i].i);
    lanes[i % 16] = round_to(elem, lanes[i % 16] + x);
  }
  for (size_t half = 8; half >= 1; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] = round_to(elem, lanes[i] + lanes[i + half]);
  return lanes[0];
}

Value define_sum(DefineCall& call) {
  Elem elem = call.expr().type.elem;
  return define_over(call, [elem](std::span<const Scalar> group) {
    if (is_float(elem)) return ScalarResult::of(Scalar::of_float(elem, lane_sum(elem, group)));
    __extension__ __int128 sum = 0;
    for (const Scalar& x : group) sum += x.i;
    auto [least, greatest] = integer_range(elem);
    if (sum < least || sum > greatest) {
      return ScalarResult::fail(kBadArithmetic, fmt::format("the sum overflows {}", elem_name(elem)));
    }
    return ScalarResult::of(Scalar::of_int(elem, static_cast<int64_t>(sum)));
  });
}

Value define_mean(DefineCall& call) {
  Elem elem = call.expr().type.elem;
  return define_over(call, [elem](std::span<const Scalar> group) {
    double count = round_to(elem, static_cast<double>(group.size()));
    return ScalarResult::of(Scalar::of_float(elem, round_to(elem, lane_sum(elem, group) / count)));
  });
}

template <bool kLeast>
Value define_extreme(DefineCall& call) {
  return define_over(call, [](std::span<const Scalar> group) {
    if (group.empty()) return ScalarResult::fail(kOutsideTensor, "no element to choose from");
    Scalar best = group[0];
    for (const Scalar& x : group) {
      if (!is_float(x.elem)) {
        if ((x.i < best.i) == kLeast && x.i != best.i) best = x;
      } else if (std::isnan(x.f) || std::isnan(best.f)) {
        best.f = std::numeric_limits<double>::quiet_NaN();
      } else if (x.f == best.f ? std::signbit(x.f) == kLeast : (x.f < best.f) == kLeast) {
        best = x;
      }
    }
    return ScalarResult::of(best);
  });
}

// True if some element equals `deciding`, turned round for `all`.
template <bool kDeciding>
Value define_flag(DefineCall& call) {
  return define_over(call, [](std::span<const Scalar> group) {
    for (const Scalar& x : group)
      if ((x.i != 0) == kDeciding) return ScalarResult::of(Scalar::of_bool(kDeciding));
    return ScalarResult::of(Scalar::of_bool(!kDeciding));
  });
}

KVal number(KernelBuilder& b, Elem elem, double value) {
  return b.constant(is_float(elem) ? Scalar::of_float(elem, value) : Scalar::of_int(elem, static_cast<int64_t>(value)));
}

KVal init_zero(KernelBuilder& b, const Expr& expr) { return number(b, expr.type.elem, 0); }

KVal combine_sum(KernelBuilder& b, const Expr& expr, KVal sum, KVal x) {
  if (x.elem != expr.type.elem) x = b.convert(expr.type.elem, x);  // the mean of integers
  return is_float(sum.elem) ? b.add(sum, x) : b.checked_add(sum, x);
}

KVal finish_same(KernelBuilder&, const Expr&, KVal sum, KVal) { return sum; }

KVal finish_mean(KernelBuilder& b, const Expr&, KVal sum, KVal count) {
  // Counts are exact in f64; a narrower type rounds them once, as the definition does.
  KVal wide = b.convert(Elem::F64, count);
  return b.div(sum, sum.elem == Elem::F64 ? wide : b.convert(sum.elem, wide));
}

template <bool kLeast>
KVal init_extreme(KernelBuilder& b, const Expr& expr) {
  Elem e = expr.type.elem;
  auto [least, greatest] = integer_range(e);
  if (is_float(e)) {
    double infinity = std::numeric_limits<double>::infinity();
    return b.constant(Scalar::of_float(e, kLeast ? infinity : -infinity));
  }
  return b.constant(Scalar::of_int(e, kLeast ? greatest : least));
}

template <bool kLeast>
KVal combine_extreme(KernelBuilder& b, const Expr&, KVal best, KVal x) {
  return kLeast ? b.minimum(best, x) : b.maximum(best, x);
}

KVal finish_extreme(KernelBuilder& b, const Expr&, KVal best, KVal count) {
  b.fail_if(b.compare(Compare::Eq, count, int_like(b, count, 0)));
  return best;
}

}  // namespace

ZEPHON_OP_DEF(Sum) = {
    .name = "sum",
    .cls = OpClass::Reduce,
    .signature = "x: N[...s], axes: ints? -> N",
    .summary = "The sum over all elements, or over the dimensions `axes` (negative: from the last).",
    .prose =
        "Floats add in 16 interleaved lanes in logical order, combined pairwise; each addition rounds. u8, u16, i8 and "
        "i16 sum in i32; a sum that the type cannot hold fails.",
    .example = "range(3) | x = [index, index + 1].sum()",
    .effects = {.can_fail = true},
    .define = {.tensor = define_sum},
    .kernel = {.reduce = {.init = init_zero, .combine = combine_sum, .finish = finish_same}},
    .infer = infer,
    .any_order = AnyOrder::Integers,
    .promotes = true,
};

ZEPHON_OP_DEF(Mean) = {
    .name = "mean",
    .cls = OpClass::Reduce,
    .signature = "x: N[...s], axes: ints? -> N",
    .summary = "The mean over all elements, or over the dimensions `axes` (negative: from the last).",
    .prose =
        "The sum as `sum` has it, divided by the count; integers convert to f64 first. The mean of nothing is NaN.",
    .example = "range(3) | x = [index, index + 1].mean()",
    .define = {.tensor = define_mean},
    .kernel = {.reduce = {.init = init_zero, .combine = combine_sum, .finish = finish_mean}},
    .infer = infer_mean,
    .promotes = true,
};

ZEPHON_OP_DEF(Min) = {
    .name = "min",
    .cls = OpClass::Reduce,
    .signature = "x: N[...s], axes: ints? -> N",
    .summary = "The least element of all, or over the dimensions `axes` (negative: from the last).",
    .prose = "NaN if there is one; -0 is less than +0. Of no elements it fails. `minimum` compares two tensors.",
    .example = "range(3) | x = [index, 1].min()",
    .effects = {.can_fail = true},
    .define = {.tensor = define_extreme<true>},
    .kernel = {.reduce = {.init = init_extreme<true>, .combine = combine_extreme<true>, .finish = finish_extreme}},
    .infer = infer,
    .any_order = AnyOrder::Yes,
};

ZEPHON_OP_DEF(Max) = {
    .name = "max",
    .cls = OpClass::Reduce,
    .signature = "x: N[...s], axes: ints? -> N",
    .summary = "The greatest element of all, or over the dimensions `axes` (negative: from the last).",
    .prose = "NaN if there is one; +0 is greater than -0. Of no elements it fails. `maximum` compares two tensors.",
    .example = "range(3) | x = [index, 1].max()",
    .effects = {.can_fail = true},
    .define = {.tensor = define_extreme<false>},
    .kernel = {.reduce = {.init = init_extreme<false>, .combine = combine_extreme<false>, .finish = finish_extreme}},
    .infer = infer,
    .any_order = AnyOrder::Yes,
};

ZEPHON_OP_DEF(Any) = {
    .name = "any",
    .cls = OpClass::Reduce,
    .signature = "x: bool[...s], axes: ints? -> bool",
    .summary = "True if some element is true: of all, or over the dimensions `axes`.",
    .example = "range(3) | x = [index == 1, index == 2].any()",
    .define = {.tensor = define_flag<true>},
    .kernel = {.reduce = {.init = [](KernelBuilder& b, const Expr&) { return b.constant(Scalar::of_bool(false)); },
                          .combine = [](KernelBuilder& b, const Expr&, KVal a, KVal x) { return b.bit_or(a, x); },
                          .finish = finish_same}},
    .infer = infer,
    .any_order = AnyOrder::Yes,
};

ZEPHON_OP_DEF(All) = {
    .name = "all",
    .cls = OpClass::Reduce,
    .signature = "x: bool[...s], axes: ints? -> bool",
    .summary = "True if every element is true: of all, or over the dimensions `axes`.",
    .example = "range(3) | x = [index < 2, index > 0].all()",
    .define = {.tensor = define_flag<false>},
    .kernel = {.reduce = {.init = [](KernelBuilder& b, const Expr&) { return b.constant(Scalar::of_bool(true)); },
                          .combine = [](KernelBuilder& b, const Expr&, KVal a, KVal x) { return b.bit_and(a, x); },
                          .finish = finish_same}},
    .infer = infer,
    .any_order = AnyOrder::Yes,
};

}  // namespace zephon
