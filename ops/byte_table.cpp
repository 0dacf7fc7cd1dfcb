#include <fmt/format.h>

#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

const std::vector<double>& values_of(const Attrs& attrs) { return attrs.get<std::vector<double>>("values"); }

void infer(InferCall& call) {
  const Elem to = call.attrs.get<Elem>("to");
  call.result.elem = to;
  call.result.box.clear();
  if (is_string(to)) {
    call.error = fmt::format("a table of {}", elem_name(to));
  } else if (values_of(call.attrs).empty() || values_of(call.attrs).size() > 256) {
    call.error = fmt::format("{} values for at most 256 bytes", values_of(call.attrs).size());
  } else {
    for (double v : values_of(call.attrs)) {
      auto [least, greatest] = integer_range(to);
      const bool fits = is_float(to) ? round_to(to, v) == v
                                     : v >= static_cast<double>(least) && v <= static_cast<double>(greatest) &&
                                           v == std::nearbyint(v) && std::fabs(v) <= 0x1p53;
      if (!fits) call.error = fmt::format("{} is no {}", v, elem_name(to));
    }
  }
}

ScalarResult define(const Expr& expr, std::span<const ScalarArg> args) {
  const std::vector<double>& values = values_of(expr.attrs);
  const auto at = static_cast<size_t>(args[0].value.i);
  if (at >= values.size())
    return ScalarResult::fail(kOutsideTensor, fmt::format("{} in a table of {} values", at, values.size()));
  const double value = values[at];
  const Elem to = expr.type.elem;
  return ScalarResult::of(is_float(to) ? Scalar::of_float(to, value) : Scalar::of_int(to, static_cast<int64_t>(value)));
}

KVal build(KernelBuilder& b, const Expr& expr, std::span<const KVal> args) {
  const std::vector<double>& values = values_of(expr.attrs);
  const KVal outside = b.compare(Compare::Gt, args[0], int_like(b, args[0], static_cast<int64_t>(values.size()) - 1));
  b.fail_if(outside);
  return b.table(expr.type.elem, values, b.select(outside, int_like(b, args[0], 0), args[0]));
}

}  // namespace

ZEPHON_OP_DEF(ByteTable) = {
    .name = "byte_table",
    .cls = OpClass::Pointwise,
    .signature = "x: u8[...s], values: numbers, to: elem -> T[...s]",
    .summary = "The value at place x of a table of at most 256.",
    .prose =
        "Fails where there is no such place. Each value is one that the type `to` holds exactly; NaN is none. The "
        "optimizer makes it of dear functions of one u8.",
    .example = "range(3) | x = u8(index).byte_table([0, 0.5, 2.25], f32)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_element = 0.45},
    .define = {.scalar = define},
    .kernel = {.pointwise = build},
    .infer = infer,
};

}  // namespace zephon
