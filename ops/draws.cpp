// uniform normal coin randint: element i of a draw is made from block i of its Philox stream.
#include <fmt/format.h>

#include "ops/draw.h"

namespace zephon {
namespace {

double uniform_element(const Attrs& attrs, Elem elem, RandomWords<PlainNumbers> words) {
  PlainNumbers n;
  double low = attrs.number("low"), high = attrs.number("high");
  double x = round_to(elem, uniform_between(n, words.first, low, high));
  return x < high ? x : round_to(elem, low);
}

double normal_element(const Attrs& attrs, Elem elem, RandomWords<PlainNumbers> words) {
  PlainNumbers n;
  return round_to(elem, attrs.number("mean") + attrs.number("deviation") * standard_normal(n, words));
}

bool coin_element(const Attrs& attrs, RandomWords<PlainNumbers> words) {
  PlainNumbers n;
  return coin(n, words.first, attrs.number("p"));
}

Scalar element(const Expr& expr, RandomWords<PlainNumbers> words) {
  const Attrs& attrs = expr.attrs;
  Elem elem = expr.type.elem;
  if (elem == Elem::Bool) return Scalar::of_bool(coin_element(attrs, words));
  if (elem == Elem::I64) {
    return Scalar::of_int(elem, integer_between(words.first, attrs.integer("low"), attrs.integer("high")));
  }
  return Scalar::of_float(elem,
                          attrs.has("low") ? uniform_element(attrs, elem, words) : normal_element(attrs, elem, words));
}

const Shape& shape_attr(const Attrs& attrs) { return attrs.get<std::vector<int64_t>>("shape"); }

Value define(DefineCall& call) {
  Value out(call.expr().type.elem, shape_attr(call.expr().attrs));
  DrawSource source(call);
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, element(call.expr(), source.block(i)));
  return out;
}

template <class T, class Make>
bool fill(NativeCall& call, Make&& make) {
  if (!place_output(call, shape_attr(call.expr->attrs))) return false;
  DrawSource source(call);
  auto* out = static_cast<T*>(call.output->data);
  for (int64_t i = 0, n = call.output->size(); i < n; ++i) out[i] = static_cast<T>(make(source.block(i)));
  return true;
}

template <double (*kElement)(const Attrs&, Elem, RandomWords<PlainNumbers>)>
bool run_float(NativeCall& call) {
  const Attrs& attrs = call.expr->attrs;
  Elem elem = call.output->elem;
  auto make = [&](RandomWords<PlainNumbers> words) { return kElement(attrs, elem, words); };
  switch (elem) {
    case Elem::F64:
      return fill<double>(call, make);
    case Elem::F32:
      return fill<float>(call, make);
    case Elem::F16:
      return fill<uint16_t>(call, [&](auto words) { return f16_from_double(make(words)); });
    case Elem::BF16:
      return fill<uint16_t>(call, [&](auto words) { return bf16_from_double(make(words)); });
    default:
      return false;
  }
}

bool run_coin(NativeCall& call) {
  return fill<uint8_t>(call, [&](RandomWords<PlainNumbers> words) { return coin_element(call.expr->attrs, words); });
}

bool run_randint(NativeCall& call) {
  int64_t low = call.expr->attrs.integer("low"), high = call.expr->attrs.integer("high");
  return fill<int64_t>(call, [=](RandomWords<PlainNumbers> words) { return integer_between(words.first, low, high); });
}

void infer_shape(InferCall& call) {
  call.result.shape.clear();
  for (int64_t d : shape_attr(call.attrs)) {
    if (d < 0) call.error = fmt::format("a dimension of {}", d);
    call.result.shape.push_back(Dim::of(d));
  }
  if (call.result.shape.size() > kMaxRank) call.error = fmt::format("a rank above {}", kMaxRank);
}

void infer_float(InferCall& call) {
  infer_shape(call);
  call.result.elem = call.attrs.get<Elem>("type");
  if (!is_float(call.result.elem))
    call.error = fmt::format("`type` must be a float type, found {}", elem_name(call.result.elem));
}

void infer_uniform(InferCall& call) {
  infer_float(call);
  if (!(call.attrs.number("low") < call.attrs.number("high"))) call.error = "`low` must be below `high`";
}

void infer_randint(InferCall& call) {
  infer_shape(call);
  if (call.attrs.integer("low") >= call.attrs.integer("high")) call.error = "`low` must be below `high`";
}

void infer_coin(InferCall& call) {
  infer_shape(call);
  double p = call.attrs.number("p");
  if (!(p >= 0 && p <= 1)) call.error = fmt::format("`p` is a probability, found {}", p);
}

}  // namespace

ZEPHON_OP_DEF(Uniform) = {
    .name = "uniform",
    .cls = OpClass::Draw,
    .signature = "low: number = 0, high: number = 1, shape: ints = [], type: elem = f32 -> f32",
    .summary = "Random numbers, equally likely everywhere in [low, high).",
    .prose =
        "low + u (high - low) in f64, u a multiple of 2^-53 in [0, 1) from the first 64 bits of a Philox4x32-10 block; "
        "rounded to `type`, and `low` where rounding would reach `high`.",
    .example = "range(3) | x = uniform(0, 1)",
    .effects = {.random = true},
    .cost = {.ns_per_element = 15},
    .define = {.tensor = define},
    .kernel = {.native = run_float<uniform_element>},
    .infer = infer_uniform,
};

ZEPHON_OP_DEF(Normal) = {
    .name = "normal",
    .cls = OpClass::Draw,
    .signature = "mean: number = 0, deviation: number = 1, shape: ints = [], type: elem = f32 -> f32",
    .summary = "Normally distributed random numbers.",
    .prose =
        "mean + deviation z in f64, rounded to `type`; z by the method of Box and Muller from one Philox4x32-10 block.",
    .example = "range(3) | x = normal(0, 2)",
    .effects = {.random = true},
    .cost = {.ns_per_element = 60},
    .define = {.tensor = define},
    .kernel = {.native = run_float<normal_element>},
    .infer = infer_float,
};

ZEPHON_OP_DEF(Coin) = {
    .name = "coin",
    .cls = OpClass::Draw,
    .signature = "p: number = 0.5, shape: ints = [] -> bool",
    .summary = "True with probability p.",
    .example = "range(3) | x = coin()",
    .effects = {.random = true},
    .cost = {.ns_per_element = 15},
    .define = {.tensor = define},
    .kernel = {.native = run_coin},
    .infer = infer_coin,
};

ZEPHON_OP_DEF(Randint) = {
    .name = "randint",
    .cls = OpClass::Draw,
    .signature = "low: int, high: int, shape: ints = [] -> i64",
    .summary = "Random whole numbers, equally likely in [low, high).",
    .prose =
        "The upper half of the 128-bit product of 64 random bits with high - low: probabilities differ by at most "
        "2^-64.",
    .example = "range(3) | x = randint(1, 7)",
    .effects = {.random = true},
    .cost = {.ns_per_element = 15},
    .define = {.tensor = define},
    .kernel = {.native = run_randint},
    .infer = infer_randint,
    .bounds =
        [](const Attrs& attrs, std::string_view, int64_t& least, int64_t& greatest) {
          least = attrs.integer("low");
          greatest = attrs.integer("high") - 1;
          return true;
        },
};

}  // namespace zephon
