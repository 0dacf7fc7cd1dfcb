#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ops/resample.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

void infer(InferCall& call) {
  Elem e = call.args[0].elem;
  if (e != Elem::U8 && e != Elem::F32) call.error = fmt::format("`resize` works on u8 and f32, found {}", elem_name(e));
  for (size_t i = 0; i < 2; ++i)
    if (call.args[0].shape[i] == Dim::of(0)) call.error = "`resize` of an empty picture";
}

// ---- the meaning, written apart from the kernel of ops/resample.cpp ------------------------------------------------

struct Tap {
  int64_t position;
  double weight;
};

// The input positions that output position x is made of: a triangle of half width max(scale, 1) around (x + 1/2) scale.
std::vector<Tap> taps_of(int64_t in_size, int64_t out_size, int64_t x) {
  double scale = static_cast<double>(in_size) / static_cast<double>(out_size);
  double reach = std::max(1.0, scale);
  double center = (static_cast<double>(x) + 0.5) * scale;
  std::vector<Tap> taps;
  double total = 0;
  auto begin = std::max<int64_t>(0, static_cast<int64_t>(center - reach + 0.5));
  auto end = std::min(in_size, static_cast<int64_t>(center + reach + 0.5));
  for (int64_t p = begin; p < end; ++p) {
    double t = std::abs((static_cast<double>(p) - center + 0.5) * (1.0 / reach));
    taps.push_back({p, t < 1.0 ? 1.0 - t : 0.0});
    total += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= total;
  return taps;
}

// One pass along `dim` (0: rows, 1: columns) of an HWC picture. A failed pixel spreads to all that are made of it.
Value pass(const Value& in, size_t dim, int64_t out_size) {
  Shape shape = in.shape();
  shape[dim] = out_size;
  Value out(in.elem(), shape);
  bool spotless = !in.any_failed();
  int64_t stride = dim == 0 ? in.shape()[1] * in.shape()[2] : in.shape()[2];
  for (int64_t x = 0; x < out_size; ++x) {
    std::vector<Tap> taps = taps_of(in.shape()[dim], out_size, x);
    for (int64_t other = 0; other < shape[1 - dim]; ++other) {
      for (int64_t c = 0; c < shape[2]; ++c) {
        int64_t y_at = dim == 0 ? x : other, x_at = dim == 0 ? other : x;
        int64_t to = (y_at * shape[1] + x_at) * shape[2] + c;
        int64_t from = dim == 0 ? other * shape[2] + c : other * in.shape()[1] * shape[2] + c;
        double sum = 0;
        int64_t fixed_sum = 1 << 21;
        bool failed = false;
        for (const Tap& tap : taps) {
          int64_t flat = from + tap.position * stride;
          failed = failed || (!spotless && in.element_failed(flat));
          if (in.elem() == Elem::U8) {
            fixed_sum += in.bytes()[static_cast<size_t>(flat)] * static_cast<int64_t>(tap.weight * (1 << 22) + 0.5);
          } else {
            sum += in.at(flat).f * tap.weight;
          }
        }
        if (failed) {
          out.fail_element(to, *in.failure());
        } else if (in.elem() == Elem::U8) {
          out.mutable_bytes()[static_cast<size_t>(to)] = static_cast<uint8_t>(std::min<int64_t>(255, fixed_sum >> 22));
        } else {
          out.set(to, Scalar::of_float(Elem::F32, round_to(Elem::F32, sum)));
        }
      }
    }
  }
  return out;
}

Value define(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  if (image.shape()[0] == 0 || image.shape()[1] == 0) {
    return Value::failed(call.failure(kOutsideTensor, "`resize` of an empty picture"));
  }
  const Attrs& attrs = call.expr().attrs;
  return pass(pass(image, 1, attrs.integer("width")), 0, attrs.integer("height"));
}

bool run(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  const Attrs& attrs = call.expr->attrs;
  int64_t in_h = in.shape[0], in_w = in.shape[1], channels = in.shape[2];
  const int64_t shape[] = {attrs.integer("height"), attrs.integer("width"), channels};
  if (in.size() == 0 || !place_output(call, shape)) return false;
  auto size = static_cast<int64_t>(elem_size(in.elem));
  void* scratch = call.alloc(kBilinearResample.scratch_bytes(in.elem, in_h, in_w, channels, shape[0], shape[1]));
  kBilinearResample.horizontal(in.elem, in.data, in_w * channels * size, in_h, in_w, channels, shape[0], shape[1],
                               scratch);
  auto* out = static_cast<uint8_t*>(call.output->data);
  for (int64_t y = 0; y < shape[0]; ++y)
    kBilinearResample.vertical(in.elem, scratch, y, in_h, in_w, channels, shape[0], shape[1],
                               out + y * shape[1] * channels * size);
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Resize) = {
    .name = "resize",
    .cls = OpClass::Resample,
    .signature = "image: T[h, w, c], height: int >= 1, width: int >= 1 -> T[height, width, c]",
    .summary = "The picture in another size: bilinear, antialiased.",
    .prose =
        "Pillow's method and bits (u8: 22-bit weights, first along rows, then along columns; f32: f64 sums, each pass "
        "rounded to f32). u8 or f32.",
    .example = "range(2) | x = [[[index], [2]], [[4], [6]]].u8.resize(1, 1)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 4000, .ns_per_element = 0.5, .ns_per_input_byte = 0.5},
    .define = {.tensor = define},
    .kernel = {.resample = &kBilinearResample, .native = run},
    .infer = infer,
};

}  // namespace zephon
