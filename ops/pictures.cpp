// What people write for pictures, in terms of the primitive operators.
#include <cmath>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// The greatest value of an integer type: what 1 is for pictures in floats.
double unit_of(Elem elem) { return static_cast<double>(integer_range(elem).second); }

ScalarResult define_unit(const Expr&, std::span<const ScalarArg> args) {
  const Scalar& x = args[0].value;
  double value =
      is_float(x.elem) ? x.f : round_to(Elem::F32, static_cast<double>(x.i)) / round_to(Elem::F32, unit_of(x.elem));
  return ScalarResult::of(Scalar::of_float(Elem::F32, round_to(Elem::F32, value)));
}

KVal build_unit(KernelBuilder& b, const Expr&, std::span<const KVal> args) {
  KVal x = args[0].elem == Elem::F32 ? args[0] : b.convert(Elem::F32, args[0]);
  if (is_float(args[0].elem)) return x;
  return b.div(x, b.constant(Scalar::of_float(Elem::F32, round_to(Elem::F32, unit_of(args[0].elem)))));
}

}  // namespace

ZEPHON_OP_DEF(CenterCrop) = {
    .name = "center_crop",
    .cls = OpClass::Composite,
    .signature = "image: T[h, w, ...c], height: int >= 1, width: int >= 1 -> T[height, width, ...c]",
    .summary = "The middle `height` x `width` pixels.",
    .prose =
        "Starts at half the surplus, rounded half to even as torchvision does. Fails where the picture is smaller.",
    .example = "range(2) | x = [[index, 1, 2], [3, 4, 5]].center_crop(2, 1)",
    .expansion =
        "image.crop(box(((image.height() - height) / 2).round().i64, ((image.width() - width) / 2).round().i64, "
        "height, width))",
};

ZEPHON_OP_DEF(RandomCrop) = {
    .name = "random_crop",
    .cls = OpClass::Composite,
    .signature = "image: T[h, w, ...c], height: int >= 1, width: int >= 1 -> T[height, width, ...c]",
    .summary = "A part of `height` x `width` pixels, every place equally likely.",
    .prose = "Fails where the picture is smaller. To crop several fields alike, draw the box once: random_crop_box.",
    .example = "range(2) | x = [[index, 1, 2], [3, 4, 5]].random_crop(2, 1)",
    .expansion = "image.crop(image.random_crop_box(height, width))",
};

ZEPHON_OP_DEF(RandomResizedCrop) = {
    .name = "random_resized_crop",
    .cls = OpClass::Composite,
    .signature =
        "image: T[h, w, c], height: int >= 1, width: int >= 1, scale: numbers = [0.08, 1], "
        "ratio: numbers = [0.75, 1.3333333333333333] -> T[height, width, c]",
    .summary = "A random part of the picture, resized to `height` x `width`: the usual augmentation for ImageNet.",
    .prose = "The part is that of random_resized_crop_box, the resize that of resize.",
    .example = "range(2) | x = [[[index], [1]], [[2], [3]]].u8.random_resized_crop(2, 2)",
    .expansion = "image.crop(image.random_resized_crop_box(scale, ratio)).resize(height, width)",
};

ZEPHON_OP_DEF(RandomFlip) = {
    .name = "random_flip",
    .cls = OpClass::Composite,
    .signature = "image: T[h, w, ...c], p: number = 0.5 -> T[h, w, ...c]",
    .summary = "The picture, left and right exchanged with probability p.",
    .example = "range(2) | x = [[index, 1], [2, 3]].random_flip()",
    .expansion = "image.flip(coin(p))",
};

ZEPHON_OP_DEF(ToUnit) = {
    .name = "to_unit",
    .cls = OpClass::Pointwise,
    .signature = "x: N[...s] -> f32[...s]",
    .summary = "As f32, integers divided by the greatest value of their type: u8 becomes [0, 1].",
    .prose = "Converted to f32 first, then one f32 division. Floats are only rounded to f32.",
    .example = "range(2) | x = (index * 51).u8.to_unit()",
    .define = {.scalar = define_unit},
    .kernel = {.pointwise = build_unit},
};

ZEPHON_OP_DEF(Normalize) = {
    .name = "normalize",
    .cls = OpClass::Composite,
    .signature = "image: N[h, w, c], mean: numbers, std: numbers -> f32[h, w, c]",
    .summary = "(x - mean) / std per channel, in f32; integer pictures are scaled to [0, 1] first (to_unit).",
    .prose = "Divide, subtract, divide, each rounded to f32, as torchvision's ToTensor and Normalize.",
    .example = "range(2) | x = [[[index, 255]]].u8.normalize(mean=[0.5, 0.5], std=[0.5, 0.25])",
    .expansion = "(image.to_unit() - mean) / std",
};

ZEPHON_OP_DEF(ToChw) = {
    .name = "to_chw",
    .cls = OpClass::Composite,
    .signature = "image: T[h, w, c] -> T[c, h, w]",
    .summary = "Channels first: from [height, width, channel] to [channel, height, width].",
    .example = "range(2) | x = [[[index, 1]], [[2, 3]]].to_chw()",
    .expansion = "image.transpose([2, 0, 1])",
};

}  // namespace zephon
