#include "zephonc/sinks/sheet.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "zephonc/sinks/lettering.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

constexpr int64_t kTile = 128, kGap = 4, kColumns = 8, kMost = 64;
constexpr size_t kMostLines = 4;  // below a picture

double float_at(Elem elem, const uint8_t* at) {
  if (elem == Elem::F32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (elem == Elem::F64) {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return elem == Elem::F16 ? f16_to_double(bits) : bf16_to_double(bits);
}

Picture from_floats(Elem elem, const uint8_t* data, int64_t channels, int64_t height, int64_t width) {
  const size_t plane = static_cast<size_t>(height * width), step = elem_size(elem);
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < plane * static_cast<size_t>(channels); ++i) {
    double value = float_at(elem, data + i * step);
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double scale = high > low ? 255 / (high - low) : 0;
  Picture out{height, width, std::vector<uint8_t>(plane * 3)};
  for (size_t p = 0; p < plane; ++p) {
    for (size_t c = 0; c < 3; ++c) {
      double value = float_at(elem, data + ((channels == 3 ? c : 0) * plane + p) * step);
      out.rgb[p * 3 + c] = static_cast<uint8_t>(std::isfinite(value) ? std::lround((value - low) * scale) : 0);
    }
  }
  return out;
}

Picture from_bytes(const uint8_t* data, int64_t height, int64_t width, int64_t channels) {
  const size_t pixels = static_cast<size_t>(height * width);
  Picture out{height, width, std::vector<uint8_t>(pixels * 3)};
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t c = 0; c < 3; ++c) out.rgb[p * 3 + c] = channels == 3 ? data[p * 3 + c] : data[p];
  }
  return out;
}

/// Averages the source pixels that fall into each pixel of the tile.
Picture shrink(const Picture& in, int64_t most) {
  int64_t longest = std::max(in.height, in.width);
  if (longest <= most) return in;
  Picture out;
  out.height = std::max<int64_t>(1, in.height * most / longest);
  out.width = std::max<int64_t>(1, in.width * most / longest);
  out.rgb.resize(static_cast<size_t>(out.height * out.width * 3));
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t y0 = y * in.height / out.height, y1 = std::max(y0 + 1, (y + 1) * in.height / out.height);
      int64_t x0 = x * in.width / out.width, x1 = std::max(x0 + 1, (x + 1) * in.width / out.width);
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u) sum += in.rgb[static_cast<size_t>((v * in.width + u) * 3 + c)];
        int64_t area = (y1 - y0) * (x1 - x0);
        out.rgb[static_cast<size_t>((y * out.width + x) * 3 + c)] = static_cast<uint8_t>((sum + area / 2) / area);
      }
    }
  }
  return out;
}

/// What a member's field of one number or text says; empty for others.
std::string word_of(const DeliveredField& field, bool batched, size_t member) {
  if (field.shape.size() != (batched ? 1 : 0)) return "";
  const size_t size = is_string(field.elem) ? sizeof(StringRef) : elem_size(field.elem);
  const auto* at = static_cast<const uint8_t*>(field.data) + member * size;
  if (field.elem == Elem::Bool) return *at != 0 ? "true" : "false";
  if (field.elem == Elem::Bytes) return "";
  if (is_string(field.elem)) return std::string(field.strings()[member].view());
  if (is_float(field.elem)) return fmt::format("{:.4g}", float_at(field.elem, at));
  TensorRef one;
  one.data = const_cast<uint8_t*>(at);  // only read
  one.elem = field.elem;
  return std::to_string(to_value(one).at(0).i);
}

/// "name word", at most as wide as a picture: of a long word the end, which tells paths apart.
std::string line_of(const std::string& name, std::string word) {
  constexpr auto kLetters = static_cast<size_t>(kTile / kGlyphWidth);
  std::string head = name.substr(0, kLetters / 2) + " ";
  const auto room = static_cast<int64_t>(kLetters - head.size());
  if (letters_of(word) <= room) return head + word;
  while (letters_of(word) > room - 2) word.erase(0, 1);
  return head + ".." + word;
}

/// What is written below a picture: the fields of one number or text each, or else the sample's identity.
std::vector<std::string> lines_of(const DeliveredRecord& record, size_t member, const std::string& picture) {
  std::vector<std::string> out;
  if (!picture.empty()) out.push_back(line_of(picture, ""));
  const size_t before = out.size();
  for (const DeliveredField& field : record.fields) {
    if (is_companion(field.name) || out.size() == kMostLines) continue;
    std::string word = word_of(field, record.batched, member);
    for (const DeliveredField& other : record.fields)
      if (other.name == missing_field(field.name) && word_of(other, record.batched, member) == "true") word = "missing";
    if (!word.empty()) out.push_back(line_of(field.name, std::move(word)));
  }
  if (out.size() == before && member < record.members.size())
    out.push_back(line_of("", to_string(record.members[member])));
  return out;
}

class SheetWriter : public Writer {
 public:
  explicit SheetWriter(std::string path) : path_(std::move(path)) {}

  std::optional<Failure> write(const DeliveredRecord& record) override {
    std::vector<std::pair<const DeliveredField*, std::vector<Picture>>> found;
    for (const DeliveredField& field : record.fields) {
      auto pictures = pictures_of(field, record.batched, static_cast<size_t>(kMost) - tiles_.size());
      if (!pictures.empty()) found.emplace_back(&field, std::move(pictures));
    }
    for (const auto& [field, pictures] : found)
      for (size_t i = 0; i < pictures.size() && tiles_.size() < static_cast<size_t>(kMost); ++i) {
        tiles_.push_back({shrink(pictures[i], kTile), lines_of(record, i, found.size() > 1 ? field->name : "")});
        most_lines_ = std::max(most_lines_, tiles_.back().lines.size());
      }
    return std::nullopt;
  }

  std::optional<Failure> close() override {
    if (tiles_.empty()) {
      return Failure{"R0503", fmt::format("nothing to draw in `{}`: no delivered field is a picture", path_), {}};
    }
    int64_t columns = std::min<int64_t>(kColumns, static_cast<int64_t>(tiles_.size()));
    int64_t rows = (static_cast<int64_t>(tiles_.size()) + columns - 1) / columns;
    const int64_t cell = kTile + static_cast<int64_t>(most_lines_) * kGlyphHeight + (most_lines_ > 0 ? kGap : 0);
    Picture sheet{rows * (cell + kGap) + kGap, columns * (kTile + kGap) + kGap, {}};
    sheet.rgb.assign(static_cast<size_t>(sheet.height * sheet.width * 3), 24);
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const Picture& tile = tiles_[i].picture;
      const int64_t corner = kGap + static_cast<int64_t>(i) / columns * (cell + kGap);
      const int64_t side = kGap + static_cast<int64_t>(i) % columns * (kTile + kGap);
      const int64_t top = corner + (kTile - tile.height) / 2, left = side + (kTile - tile.width) / 2;
      for (size_t line = 0; line < tiles_[i].lines.size(); ++line)
        draw_text(sheet, corner + kTile + kGap + static_cast<int64_t>(line) * kGlyphHeight, side,
                  tiles_[i].lines[line]);
      for (int64_t y = 0; y < tile.height; ++y) {
        std::copy_n(tile.rgb.data() + y * tile.width * 3, tile.width * 3,
                    sheet.rgb.data() + ((top + y) * sheet.width + left) * 3);
      }
    }
    return write_png(sheet, path_);
  }

 private:
  std::string path_;
  struct Tile {
    Picture picture;
    std::vector<std::string> lines;
  };
  std::vector<Tile> tiles_;
  size_t most_lines_ = 0;
};

}  // namespace

std::vector<Picture> pictures_of(const DeliveredField& field, bool batched, size_t limit) {
  std::vector<Picture> out;
  std::span<const int64_t> shape = field.shape;
  int64_t members = 1;
  if (batched) {
    if (shape.empty()) return out;
    members = shape[0];
    shape = shape.subspan(1);
  }
  auto small = [](int64_t channels) { return channels == 1 || channels == 3; };
  int64_t channels = 1, height = 0, width = 0;
  if (field.elem == Elem::U8 && (shape.size() == 2 || (shape.size() == 3 && small(shape[2])))) {
    height = shape[0];
    width = shape[1];
    channels = shape.size() == 3 ? shape[2] : 1;
  } else if (is_float(field.elem) && shape.size() == 3 && small(shape[0])) {
    channels = shape[0];
    height = shape[1];
    width = shape[2];
  }
  if (height == 0 || width == 0) return out;
  const size_t bytes = static_cast<size_t>(channels * height * width) * elem_size(field.elem);
  for (int64_t i = 0; i < members && out.size() < limit; ++i) {
    const uint8_t* data = static_cast<const uint8_t*>(field.data) + static_cast<size_t>(i) * bytes;
    out.push_back(field.elem == Elem::U8 ? from_bytes(data, height, width, channels)
                                         : from_floats(field.elem, data, channels, height, width));
  }
  return out;
}

std::optional<Failure> write_png(const Picture& picture, const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::string file;
  if (png_image_write_get_memory_size(image, size, 0, picture.rgb.data(), 0, nullptr)) {
    file.resize(size);
    if (png_image_write_to_memory(&image, file.data(), &size, 0, picture.rgb.data(), 0, nullptr)) {
      return write_file_atomically(path, std::string_view(file).substr(0, size));
    }
  }
  return Failure{"R0501", fmt::format("cannot write `{}`: {}", path, image.message), {}};
}

std::unique_ptr<Writer> make_sheet_writer(const std::string& path) { return std::make_unique<SheetWriter>(path); }

}  // namespace zephon
