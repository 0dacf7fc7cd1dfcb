// decode_image, and its forms that the optimizer uses: a region of it, and its shape alone.
#include <fmt/format.h>

#include "ops/jpeg_codec.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

JpegMode mode_of(const Attrs& attrs) { return attrs.text("mode") == "gray" ? JpegMode::Gray : JpegMode::Rgb; }

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The header, and that the program allows so many pixels.
bool read_header(std::span<const uint8_t> bytes, const Attrs& attrs, JpegInfo& info, std::string& error) {
  if (!probe_jpeg(bytes, info, error)) return false;
  int64_t most = attrs.integer("max_pixels");
  if (info.height * info.width <= most) return true;
  error = fmt::format("{} x {} pixels are more than `max_pixels`, {}", info.height, info.width, most);
  return false;
}

// What relaxed rules permit: the fast DCT, and a scaled picture of which `region` still has the size that is wanted.
JpegHow how_of(const Attrs& attrs, const JpegRegion& region) {
  JpegHow how;
  how.fast_dct = attrs.text("$dct") == "fast";
  if (attrs.integer("$height") > 0)
    how.eighths = least_eighths(region, attrs.integer("$height"), attrs.integer("$width"));
  return how;
}

void infer_channels(InferCall& call) { call.result.shape[2] = Dim::of(jpeg_channels(mode_of(call.attrs))); }

void infer_region(InferCall& call) {
  // Where the box is scaled, its size is not that of the result.
  if (call.attrs.integer("$height") > 0)
    std::fill_n(call.result.shape.begin(), 2, Dim());
  else if (call.args[1].box.size() == 2)
    std::copy_n(call.args[1].box.begin(), 2, call.result.shape.begin());
  infer_channels(call);
}

// Marks rows [first, end) of `picture`, as counted from row `top` of the file's.
void fail_rows(Value& picture, int64_t first, const Failure& failure) {
  int64_t row = picture.shape()[1] * picture.shape()[2];
  for (int64_t i = std::max<int64_t>(0, first) * row; i < picture.size(); ++i) picture.fail_element(i, failure);
}

// The meaning: the whole picture, its rows from the first damaged one on failed. `box`: the part that is wanted of it
// (null: all), which decides how it may be scaled; becomes that part of the result.
Value decode_whole(DefineCall& call, bool any_damage_fails_all, JpegRegion* box) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return forward(argument);
  const std::string content = argument.at(0).s;
  const Attrs& attrs = call.expr().attrs;
  JpegInfo info;
  std::string error;
  if (!read_header(bytes_of(content), attrs, info, error)) return Value::failed(call.failure(kBadPicture, error));
  const JpegHow how = how_of(attrs, box != nullptr ? *box : JpegRegion{0, 0, info.height, info.width});
  if (box != nullptr && how.eighths < 8) *box = scaled_region(*box, how.eighths);
  const int64_t channels = jpeg_channels(mode_of(attrs)), height = scaled_size(info.height, how.eighths),
                width = scaled_size(info.width, how.eighths);
  Value picture(Elem::U8, {height, width, channels});
  JpegResult result = decode_jpeg(bytes_of(content), mode_of(attrs), {0, 0, height, width},
                                  picture.mutable_bytes().data(), static_cast<size_t>(width * channels), how);
  int64_t good_rows = result.decoded ? result.first_damaged_row : 0;
  if (good_rows < height) {
    Failure failure = call.failure(
        kBadPicture, good_rows > 0 ? fmt::format("{}; good down to row {}", result.error, good_rows) : result.error);
    fail_rows(picture, any_damage_fails_all ? 0 : good_rows, failure);
  }
  return picture;
}

Value define(DefineCall& call) { return decode_whole(call, call.expr().attrs.text("check") == "whole", nullptr); }

Value define_shape(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return forward(argument);
  const std::string content = argument.at(0).s;
  JpegInfo info;
  std::string error;
  if (!read_header(bytes_of(content), call.expr().attrs, info, error)) {
    return Value::failed(call.failure(kBadPicture, error));
  }
  Value picture(Elem::U8, {info.height, info.width, jpeg_channels(mode_of(call.expr().attrs))});
  fail_rows(picture, 0, call.failure(kBadPicture, "only the shape of this picture was asked for"));
  return picture;
}

// crop(decode_image(...), box), by definition.
Value define_region(DefineCall& call) {
  const Value& box = call.arg(1);
  JpegRegion region;
  if (!box.any_failed()) region = {box.at(0).i, box.at(1).i, box.at(2).i, box.at(3).i};
  Value whole = decode_whole(call, false, &region);
  if (whole.whole_failed()) return whole;
  if (box.any_failed()) return forward(box);
  const auto [top, left, height, width] = region;
  int64_t channels = whole.shape()[2];
  Value out(Elem::U8, {height, width, channels});
  for (int64_t i = 0; i < out.size(); ++i) {
    Shape at = index_at(out.shape(), i);
    int64_t y = at[0] + top, x = at[1] + left;
    if (y < 0 || y >= whole.shape()[0] || x < 0 || x >= whole.shape()[1]) {
      out.fail_element(i, call.failure(kOutsideTensor, box_leaves(box, whole.shape()[0], whole.shape()[1])));
      continue;
    }
    int64_t from = (y * whole.shape()[1] + x) * channels + at[2];
    if (whole.element_failed(from)) {
      out.fail_element(i, *whole.failure());
    } else {
      out.mutable_bytes()[static_cast<size_t>(i)] = whole.bytes()[static_cast<size_t>(from)];
    }
  }
  return out;
}

// Decodes `region` of the picture (height 0: all of it) into the output.
bool decode_into(NativeCall& call, JpegRegion region) {
  const Attrs& attrs = call.expr->attrs;
  std::span<const uint8_t> bytes = bytes_of(text_of(call.inputs[0]));
  JpegInfo info;
  std::string error;
  if (!read_header(bytes, attrs, info, error)) return false;
  if (region.height == 0) region = {0, 0, info.height, info.width};
  const JpegHow how = how_of(attrs, region);
  if (how.eighths < 8) region = scaled_region(region, how.eighths);
  int64_t channels = jpeg_channels(mode_of(attrs));
  const int64_t shape[] = {region.height, region.width, channels};
  if (!place_output(call, shape)) return false;
  auto* out = static_cast<uint8_t*>(call.output->data);
  call.will_use(info.scratch_bytes);
  return decode_jpeg(bytes, mode_of(attrs), region, out, static_cast<size_t>(region.width * channels), how)
      .good(region);
}

bool run(NativeCall& call) { return decode_into(call, {}); }

bool run_region(NativeCall& call) {
  const auto* box = static_cast<const int64_t*>(call.inputs[1].data);
  JpegRegion region{box[0], box[1], box[2], box[3]};
  return region.height > 0 && region.width > 0 && decode_into(call, region);
}

bool run_shape(NativeCall& call) {
  JpegInfo info;
  std::string error;
  if (!read_header(bytes_of(text_of(call.inputs[0])), call.expr->attrs, info, error)) return false;
  call.output->data = nullptr;
  call.output->rank = 3;
  call.output->shape[0] = info.height;
  call.output->shape[1] = info.width;
  call.output->shape[2] = jpeg_channels(mode_of(call.expr->attrs));
  return true;
}

}  // namespace

ZEPHON_OP_DEF(DecodeImageRegion) = {
    .name = "decode_image_region",
    .cls = OpClass::Opaque,
    .signature =
        "bytes: bytes, box: box[h, w], mode: enum(rgb, gray) = rgb, max_pixels: int >= 1 = 178956970, "
        "$dct: enum(slow, fast) = slow, $height: int = 0, $width: int = 0 -> u8[h, w, ?]",
    .summary = "crop(decode_image(bytes), box), decoding little more than what is kept.",
    .prose = "What the optimizer makes of a crop that follows decode_image; the pixels are the same.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = bytes.decode_image_region(box(8, 8, 2, 2))",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 10000, .ns_per_element = 0.5, .ns_per_input_byte = 3},
    .define = {.tensor = define_region},
    .kernel = {.native = run_region},
    .infer = infer_region,
};

ZEPHON_OP_DEF(DecodeImageShape) = {
    .name = "decode_image_shape",
    .cls = OpClass::Opaque,
    .signature = "bytes: bytes, mode: enum(rgb, gray) = rgb, max_pixels: int >= 1 = 178956970 -> u8[?, ?, ?]",
    .summary = "A picture of the shape that decode_image gives, whose pixels cannot be read.",
    .prose = "What the optimizer makes of decode_image where only height and width are used: only the header is read.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = bytes.decode_image_shape().height()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 3000, .ns_per_element = 0},
    .define = {.tensor = define_shape},
    .kernel = {.native = run_shape},
    .infer = infer_channels,
};

ZEPHON_OP_DEF(DecodeImage) = {
    .name = "decode_image",
    .cls = OpClass::Opaque,
    .signature =
        "bytes: bytes, mode: enum(rgb, gray) = rgb, max_pixels: int >= 1 = 178956970, "
        "check: enum(needed, whole) = needed, $dct: enum(slow, fast) = slow, $height: int = 0, $width: int = 0 "
        "-> u8[?, ?, ?]",
    .summary = "The pixels of a JPEG file: u8[height, width, 3], or u8[height, width, 1] for gray.",
    .prose =
        "libjpeg-turbo with the slow integer DCT and interpolated chroma, as Pillow decodes; CMYK and YCCK become RGB "
        "as in "
        "Pillow; the orientation tag is not applied. A damaged picture is good down to the first damaged row and fails "
        "only "
        "where later rows are needed; check=whole fails it altogether. More than `max_pixels` pixels fail.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = bytes.decode_image().height()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 10000, .ns_per_element = 0.5, .ns_per_input_byte = 4},
    .define = {.tensor = define},
    .kernel = {.native = run},
    .infer = infer_channels,
    .region_form = &ops::DecodeImageRegion,
    .shape_form = &ops::DecodeImageShape,
};

}  // namespace zephon
