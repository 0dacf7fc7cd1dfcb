// random_crop_box and random_resized_crop_box: draws that make a box for a picture of given size.
#include <fmt/format.h>

#include <cmath>

#include "ops/draw.h"

namespace zephon {
namespace {

struct PictureBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  static constexpr int64_t kParts[] = {4};
};

Value to_value(const PictureBox& box) {
  Value out(Elem::I64, {4});
  const int64_t parts[] = {box.top, box.left, box.height, box.width};
  for (int64_t i = 0; i < 4; ++i) out.set(i, Scalar::of_int(Elem::I64, parts[i]));
  return out;
}

bool store(NativeCall& call, const PictureBox& box) {
  if (!place_output(call, PictureBox::kParts)) return false;
  const int64_t parts[] = {box.top, box.left, box.height, box.width};
  std::copy(std::begin(parts), std::end(parts), static_cast<int64_t*>(call.output->data));
  return true;
}

// A box of fixed size, every place equally likely. False: the picture is smaller.
bool place_at_random(const DrawSource& source, int64_t block, int64_t height, int64_t width, PictureBox& box) {
  if (box.height > height || box.width > width) return false;
  RandomWords<PlainNumbers> words = source.block(block);
  box.top = integer_between(words.first, 0, height - box.height + 1);
  box.left = integer_between(words.second, 0, width - box.width + 1);
  return true;
}

PictureBox wanted_size(const Attrs& attrs) { return {0, 0, attrs.integer("height"), attrs.integer("width")}; }

Value define_crop(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  PictureBox box = wanted_size(call.expr().attrs);
  if (place_at_random(DrawSource(call), 0, image.shape()[0], image.shape()[1], box)) return to_value(box);
  return Value::failed(
      call.failure(kOutsideTensor, fmt::format("a box of {} x {} does not fit into the picture of {} x {}", box.height,
                                               box.width, image.shape()[0], image.shape()[1])));
}

bool run_crop(NativeCall& call) {
  PictureBox box = wanted_size(call.expr->attrs);
  const TensorRef& image = call.inputs[0];
  return place_at_random(DrawSource(call), 0, image.shape[0], image.shape[1], box) && store(call, box);
}

// The distribution of torchvision.transforms.RandomResizedCrop: up to ten tries of an area and a log-uniform aspect
// ratio, then the largest central box whose ratio is allowed. Try t uses blocks 2 t (area, ratio) and 2 t + 1 (place).
PictureBox resized_crop(const DrawSource& source, const Attrs& attrs, int64_t height, int64_t width) {
  const auto &scale = attrs.get<std::vector<double>>("scale"), &ratio = attrs.get<std::vector<double>>("ratio");
  PlainNumbers n;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  auto whole = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  for (int64_t attempt = 0; attempt < 10; ++attempt) {
    RandomWords<PlainNumbers> words = source.block(2 * attempt);
    double area = h * w * uniform_between(n, words.first, scale[0], scale[1]);
    double aspect = plain::exp(uniform_between(n, words.second, plain::log(ratio[0]), plain::log(ratio[1])));
    PictureBox box{0, 0, whole(std::sqrt(area / aspect)), whole(std::sqrt(area * aspect))};
    if (box.height > 0 && box.width > 0 && place_at_random(source, 2 * attempt + 1, height, width, box)) return box;
  }
  PictureBox box{0, 0, height, width};
  if (w / h < ratio[0]) {
    box.height = std::min(height, std::max<int64_t>(1, whole(w / ratio[0])));
  } else if (w / h > ratio[1]) {
    box.width = std::min(width, std::max<int64_t>(1, whole(h * ratio[1])));
  }
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

void infer_resized_crop(InferCall& call) {
  for (const char* name : {"scale", "ratio"}) {
    const auto& range = call.attrs.get<std::vector<double>>(name);
    if (range.size() != 2 || !(range[0] > 0) || !(range[0] <= range[1]) || std::isinf(range[1])) {
      call.error = fmt::format("`{}` must be two positive numbers, the lesser first", name);
    }
  }
}

Value define_resized_crop(DefineCall& call) {
  const Value& image = call.arg(0);
  if (image.whole_failed()) return forward(image);
  return to_value(resized_crop(DrawSource(call), call.expr().attrs, image.shape()[0], image.shape()[1]));
}

bool run_resized_crop(NativeCall& call) {
  const TensorRef& image = call.inputs[0];
  return store(call, resized_crop(DrawSource(call), call.expr->attrs, image.shape[0], image.shape[1]));
}

}  // namespace

ZEPHON_OP_DEF(RandomCropBox) = {
    .name = "random_crop_box",
    .cls = OpClass::Draw,
    .signature = "image: T[h, w, ...c], height: int >= 1, width: int >= 1 -> box[height, width]",
    .summary = "A box of `height` x `width` somewhere in the picture, every place equally likely.",
    .prose = "Fails where the picture is smaller. One box may crop several fields alike.",
    .example = "range(2) | b = [[index, 1, 2], [3, 4, 5]].random_crop_box(1, 2)",
    .effects = {.can_fail = true, .random = true},
    .cost = {.ns_per_call = 60, .ns_per_element = 0},
    .define = {.tensor = define_crop},
    .kernel = {.native = run_crop},
    .fits_box = true,
    .shape_only = true,
};

ZEPHON_OP_DEF(RandomResizedCropBox) = {
    .name = "random_resized_crop_box",
    .cls = OpClass::Draw,
    .signature =
        "image: T[h, w, ...c], scale: numbers = [0.08, 1], ratio: numbers = [0.75, 1.3333333333333333] -> box[?, ?]",
    .summary = "A box of random area (`scale`: part of the picture's) and aspect ratio (`ratio`: width / height).",
    .prose =
        "The distribution of torchvision's RandomResizedCrop: area uniform, ratio log-uniform, sides rounded half to "
        "even, "
        "place uniform; up to ten tries until the box fits, then the largest central box with an allowed ratio.",
    .example = "range(2) | b = [[index, 1, 2], [3, 4, 5]].random_resized_crop_box()",
    .effects = {.random = true},
    .cost = {.ns_per_call = 200, .ns_per_element = 0},
    .define = {.tensor = define_resized_crop},
    .kernel = {.native = run_resized_crop},
    .infer = infer_resized_crop,
    .fits_box = true,
    .shape_only = true,
};

}  // namespace zephon
