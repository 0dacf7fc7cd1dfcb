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

// Part of one dimension: what is made of what is at hand.
struct Stretch {
  int64_t whole_in, in_first, whole_out, out_first, out_count;
};

// One pass along `dim` (0: rows, 1: columns) of an HWC picture. A failed pixel spreads to all that are made of it;
// `lacking` is the failure of what is made of pixels that are not at hand.
Value pass(const Value& in, size_t dim, const Stretch& part, const Failure& lacking) {
  Shape shape = in.shape();
  shape[dim] = part.out_count;
  Value out(in.elem(), shape);
  bool spotless = !in.any_failed();
  int64_t stride = dim == 0 ? in.shape()[1] * in.shape()[2] : in.shape()[2];
  for (int64_t x = 0; x < part.out_count; ++x) {
    std::vector<Tap> taps = taps_of(part.whole_in, part.whole_out, part.out_first + x);
    const bool complete =
        taps.front().position >= part.in_first && taps.back().position < part.in_first + in.shape()[dim];
    for (int64_t other = 0; other < shape[1 - dim]; ++other) {
      for (int64_t c = 0; c < shape[2]; ++c) {
        int64_t y_at = dim == 0 ? x : other, x_at = dim == 0 ? other : x;
        int64_t to = (y_at * shape[1] + x_at) * shape[2] + c;
        if (!complete) {
          out.fail_element(to, lacking);
          continue;
        }
        int64_t from = dim == 0 ? other * shape[2] + c : other * in.shape()[1] * shape[2] + c;
        double sum = 0;
        int64_t fixed_sum = 1 << 21;
        bool failed = false;
        for (const Tap& tap : taps) {
          int64_t flat = from + (tap.position - part.in_first) * stride;
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

bool is_empty(const Value& image) { return image.shape()[0] == 0 || image.shape()[1] == 0; }

Value empty_picture(DefineCall& call) {
  return Value::failed(call.failure(kOutsideTensor, "`resize` of an empty picture"));
}

Failure lacking_pixels(DefineCall& call) {
  return call.failure(kOutsideTensor, "the part of the picture does not hold all that the box is made of");
}

Value define(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  if (is_empty(image)) return empty_picture(call);
  const Attrs& attrs = call.expr().attrs;
  const int64_t height = attrs.integer("height"), width = attrs.integer("width");
  const Failure lacking = lacking_pixels(call);
  return pass(pass(image, 1, {image.shape()[1], 0, width, 0, width}, lacking), 0,
              {image.shape()[0], 0, height, 0, height}, lacking);
}

Value define_shape(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  if (is_empty(image)) return empty_picture(call);
  const Attrs& attrs = call.expr().attrs;
  Value out(image.elem(), {attrs.integer("height"), attrs.integer("width"), image.shape()[2]});
  const Failure failure = call.failure(kOutsideTensor, "only the shape of this picture was asked for");
  for (int64_t i = 0; i < out.size(); ++i) out.fail_element(i, failure);
  return out;
}

struct Extent {
  int64_t first, count;
};

// The part of [first, first + count) that lies in [0, whole); one position where there is none.
Extent clipped(int64_t first, int64_t count, int64_t whole) {
  const int64_t begin = std::clamp<int64_t>(first, 0, whole - 1);
  if (first >= whole || count < 1) return {begin, 1};
  const int64_t end = count > whole - begin ? whole : std::clamp<int64_t>(first + count, begin + 1, whole);
  return {begin, end - begin};
}

// crop(resize(image), box), by definition; of `image` perhaps only a part is at hand, which begins at (top, left).
Value define_region(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  const bool whole = call.arg_count() < 5;
  if (whole && is_empty(image)) return empty_picture(call);
  for (size_t i = 1; i < call.arg_count(); ++i)
    if (call.arg(i).any_failed()) return forward(call.arg(i));
  const Attrs& attrs = call.expr().attrs;
  const int64_t height = attrs.integer("height"), width = attrs.integer("width");
  const Value& box = call.arg(1);
  const int64_t top = box.at(0).i, left = box.at(1).i, rows = box.at(2).i, columns = box.at(3).i;
  Stretch down{image.shape()[0], 0, height, 0, 0}, across{image.shape()[1], 0, width, 0, 0};
  if (!whole) {
    down.in_first = call.arg(2).at(0).i;
    across.in_first = call.arg(2).at(1).i;
    down.whole_in = call.arg(3).at(0).i;
    across.whole_in = call.arg(4).at(0).i;
  }
  const Failure lacking = lacking_pixels(call);
  if (down.whole_in < 1 || across.whole_in < 1) return Value::failed(lacking);
  const Extent y_part = clipped(top, rows, height), x_part = clipped(left, columns, width);
  down.out_first = y_part.first, down.out_count = y_part.count;
  across.out_first = x_part.first, across.out_count = x_part.count;
  const Value made = pass(pass(image, 1, across, lacking), 0, down, lacking);
  Value out(image.elem(), {rows, columns, image.shape()[2]});
  for (int64_t i = 0; i < out.size(); ++i) {
    Shape at = index_at(out.shape(), i);
    const int64_t y = at[0] + top, x = at[1] + left;
    if (y < 0 || y >= height || x < 0 || x >= width) {
      out.fail_element(i, call.failure(kOutsideTensor, box_leaves(box, height, width)));
      continue;
    }
    const int64_t from = ((y - y_part.first) * x_part.count + x - x_part.first) * out.shape()[2] + at[2];
    if (made.element_failed(from)) {
      out.fail_element(i, *made.failure());
    } else {
      out.set(i, made.at(from));
    }
  }
  return out;
}

// The rows, or columns, that [first, first + count) of `out` covers of `in`, without those that a filter needs around it.
Extent covered(int64_t in, int64_t out, const Extent& part) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const auto begin = std::min<int64_t>(in - 1, std::lround(static_cast<double>(part.first) * scale));
  const auto end = std::lround(static_cast<double>(part.first + part.count) * scale);
  return {begin, std::clamp<int64_t>(end, begin + 1, in) - begin};
}

// The box of the picture that the box of its resize is made of.
Value define_source(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  if (is_empty(image)) return empty_picture(call);
  const Value& box = call.arg(1);
  if (box.any_failed()) return forward(box);
  Value source(Elem::I64, {4});
  const char* const sizes[] = {"height", "width"};
  for (size_t d = 0; d < 2; ++d) {
    const auto i = static_cast<int64_t>(d);
    const int64_t in = image.shape()[d], out = call.expr().attrs.integer(sizes[d]);
    const Extent part = clipped(box.at(i).i, box.at(i + 2).i, out);
    if (call.expr().attrs.flag("$tight")) {
      const Extent cover = covered(in, out, part);
      source.set(i, Scalar::of_int(Elem::I64, cover.first));
      source.set(i + 2, Scalar::of_int(Elem::I64, cover.count));
      continue;
    }
    const int64_t first = taps_of(in, out, part.first).front().position;
    const int64_t last = taps_of(in, out, part.first + part.count - 1).back().position;
    source.set(i, Scalar::of_int(Elem::I64, first));
    source.set(i + 2, Scalar::of_int(Elem::I64, last + 1 - first));
  }
  return source;
}

// ---- kernels -------------------------------------------------------------------------------------------------------

bool make(NativeCall& call, const ResampleGeometry& geometry) {
  const TensorRef& in = call.inputs[0];
  const int64_t shape[] = {geometry.out_h, geometry.out_w, geometry.channels};
  if (in.size() == 0 || geometry.out_h < 1 || geometry.out_w < 1 || !place_output(call, shape)) return false;
  auto size = static_cast<int64_t>(elem_size(in.elem));
  void* scratch = call.alloc(kBilinearResample.scratch_bytes(in.elem, geometry));
  const int64_t row_stride = geometry.in_w * geometry.channels * size;
  if (!kBilinearResample.horizontal(in.elem, in.data, row_stride, geometry, scratch)) return false;
  auto* out = static_cast<uint8_t*>(call.output->data);
  for (int64_t y = 0; y < shape[0]; ++y)
    kBilinearResample.vertical(in.elem, scratch, y, out + y * shape[1] * shape[2] * size);
  return true;
}

bool run(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  const Attrs& attrs = call.expr->attrs;
  return make(call, ResampleGeometry::whole(in.shape[0], in.shape[1], in.shape[2], attrs.integer("height"),
                                            attrs.integer("width")));
}

bool run_region(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  const Attrs& attrs = call.expr->attrs;
  auto numbers = [&](size_t i) { return static_cast<const int64_t*>(call.inputs[i].data); };
  ResampleGeometry g =
      ResampleGeometry::whole(in.shape[0], in.shape[1], in.shape[2], attrs.integer("height"), attrs.integer("width"));
  const int64_t* box = numbers(1);
  g.out_top = box[0], g.out_left = box[1], g.out_h = box[2], g.out_w = box[3];
  if (call.inputs.size() == 5) {
    g.in_top = numbers(2)[0], g.in_left = numbers(2)[1];
    g.whole_in_h = *numbers(3), g.whole_in_w = *numbers(4);
  }
  return make(call, g);
}

void region_parts(IndexBuilder& b, const Expr& expr, std::span<KVal> parts) {
  auto part_of = [&](int arg, int64_t i) {
    const KVal at[] = {i64_of(b, i)};
    return b.element(arg, at);
  };
  const bool whole = expr.args.size() < 5;
  parts[0] = whole ? b.extent(0, 0) : b.element(3, {});
  parts[1] = whole ? b.extent(0, 1) : b.element(4, {});
  parts[2] = whole ? i64_of(b, 0) : part_of(2, 0);
  parts[3] = whole ? i64_of(b, 0) : part_of(2, 1);
  parts[4] = i64_of(b, expr.attrs.integer("height"));
  parts[5] = i64_of(b, expr.attrs.integer("width"));
  parts[6] = part_of(1, 0);
  parts[7] = part_of(1, 1);
}

constinit const ResampleKernel kRegionResample = [] {
  ResampleKernel kernel = kBilinearFunctions;
  kernel.parts = region_parts;
  return kernel;
}();

bool run_shape(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  if (in.shape[0] == 0 || in.shape[1] == 0) return false;
  call.output->data = nullptr;
  call.output->rank = 3;
  call.output->shape[0] = call.expr->attrs.integer("height");
  call.output->shape[1] = call.expr->attrs.integer("width");
  call.output->shape[2] = in.shape[2];
  return true;
}

bool run_source(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  const int64_t four[] = {4};
  if (in.shape[0] == 0 || in.shape[1] == 0 || !place_output(call, four)) return false;
  const auto* box = static_cast<const int64_t*>(call.inputs[1].data);
  auto* out = static_cast<int64_t*>(call.output->data);
  const char* const sizes[] = {"height", "width"};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t size = call.expr->attrs.integer(sizes[d]);
    const Extent part = clipped(box[d], box[d + 2], size);
    if (call.expr->attrs.flag("$tight")) {
      const Extent cover = covered(in.shape[d], size, part);
      out[d] = cover.first;
      out[d + 2] = cover.count;
      continue;
    }
    const TapRange last = tap_range(in.shape[d], size, part.first + part.count - 1);
    out[d] = tap_range(in.shape[d], size, part.first).first;
    out[d + 2] = last.first + last.count - out[d];
  }
  return true;
}

}  // namespace

ZEPHON_OP_DEF(ResizeSource) = {
    .name = "resize_source",
    .cls = OpClass::Opaque,
    .signature = "image: T[h, w, c], box: box[bh, bw], height: int >= 1, width: int >= 1, $tight: bool = false -> box[?, ?]",
    .summary = "The box of the picture that `box` of its resize to `height` x `width` is made of.",
    .prose = "A box inside the picture, whatever `box` is: of a box that leaves the resized picture, the part inside.",
    .example = "range(2) | x = [[[index], [2]], [[4], [6]]].u8.resize_source(box(1, 0, 1, 2), height=3, width=3)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_source},
    .kernel = {.native = run_source},
    .infer = infer,
    .fits_box = true,
    .shape_only = true,
};

ZEPHON_OP_DEF(ResizeRegion) = {
    .name = "resize_region",
    .cls = OpClass::Resample,
    .signature =
        "image: T[h, w, c], box: box[bh, bw], source: box[?, ?]?, rows: i64?, columns: i64?, height: int >= 1, "
        "width: int >= 1 -> T[bh, bw, c]",
    .summary = "crop(resize(image, height, width), box), making only what is kept.",
    .prose =
        "What the optimizer makes of a crop that follows resize; the pixels are the same. With `source`, `rows` and "
        "`columns`, `image` is that box of a picture of so many rows and columns, and must hold all that the box of "
        "the result is made of.",
    .example = "range(2) | x = [[[index], [2]], [[4], [6]]].u8.resize_region(box(1, 0, 1, 2), height=3, width=3)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 4000, .ns_per_element = 0.5, .ns_per_input_byte = 0.5},
    .define = {.tensor = define_region},
    .kernel = {.resample = &kRegionResample, .native = run_region},
    .infer = infer,
    .source_box = &ops::ResizeSource,
};

ZEPHON_OP_DEF(ResizeShape) = {
    .name = "resize_shape",
    .cls = OpClass::Opaque,
    .signature = "image: T[h, w, c], height: int >= 1, width: int >= 1 -> T[?, ?, ?]",
    .summary = "A picture of the shape that resize gives, whose pixels cannot be read.",
    .prose = "What the optimizer makes of resize where only height and width are used.",
    .example = "range(2) | x = [[[index], [2]], [[4], [6]]].u8.resize_shape(3, 5).width()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_element = 0},
    .define = {.tensor = define_shape},
    .kernel = {.native = run_shape},
    .infer = infer,
    .shape_only = true,
};

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
    .region_form = &ops::ResizeRegion,
    .shape_form = &ops::ResizeShape,
};

}  // namespace zephon
