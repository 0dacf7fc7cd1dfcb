#include "ops/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace zephon {
namespace {

// ---- the header of .npy: a Python dictionary of three entries

class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  bool accept(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    accept('\0');  // skips spaces
    if (!text_.substr(at_).starts_with(w)) return false;
    at_ += w.size();
    return true;
  }
  std::optional<std::string> string() {
    const char quote = accept('\'') ? '\'' : accept('"') ? '"' : '\0';
    if (!quote) return std::nullopt;
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  std::optional<int64_t> number() {
    accept('\0');
    int64_t out = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(out, 10, &out) || __builtin_add_overflow(out, text_[at_] - '0', &out)) return {};
    word("L");
    return at_ > begin ? std::optional(out) : std::nullopt;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// "<f4" and its like; what is wrong with it, or "".
std::string read_descr(const std::string& descr, ArrayPlace& place) {
  const auto refuse = [&](std::string_view why) { return fmt::format("holds elements of `{}`: {}", descr, why); };
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return refuse("no type of NumPy that is known here");
  const char kind = descr[1];
  const std::string digits = descr.substr(2);
  if (kind == 'O') return refuse("Python objects cannot be read; save numbers or text");
  if (digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
    return refuse("no type of NumPy that is known here");
  const uint64_t size = std::stoull(digits);
  place.swap = descr[0] == '>';
  if (kind == 'S' || kind == 'U') {
    if (size == 0 || size > (1 << 20)) return refuse("texts have from 1 to 2^20 characters");
    place.elem = kind == 'S' ? Elem::Bytes : Elem::Str;
    place.item = static_cast<uint32_t>(kind == 'S' ? size : 4 * size);
    if (kind == 'S') place.swap = false;
    return {};
  }
  static constexpr std::pair<std::string_view, Elem> kTypes[] = {
      {"b1", Elem::Bool}, {"u1", Elem::U8},  {"u2", Elem::U16}, {"i1", Elem::I8},  {"i2", Elem::I16},
      {"i4", Elem::I32},  {"i8", Elem::I64}, {"f2", Elem::F16}, {"f4", Elem::F32}, {"f8", Elem::F64}};
  for (const auto& [name, elem] : kTypes) {
    if (descr.substr(1) != name) continue;
    place.elem = elem;
    place.item = static_cast<uint32_t>(elem_size(elem));
    return {};
  }
  if (descr.substr(1) == "u4" || descr.substr(1) == "u8") {
    read_unsigned(place, static_cast<uint32_t>(size));
    return {};
  }
  if (kind == 'V') return refuse("records have one array for each field here; save them so");
  return refuse("there is no such type here");
}

template <class T>
T number_at(const char* bytes) {  // little-endian, as we are
  T out;
  std::memcpy(&out, bytes, sizeof(T));
  return out;
}

}  // namespace

void read_unsigned(ArrayPlace& place, uint32_t bytes) {
  place.elem = Elem::I64;
  place.item = bytes;
  place.is_unsigned = true;
}

std::string read_npy_header(const InputFile& file, uint64_t offset, uint64_t end, ArrayPlace& place) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr uint64_t kMostHeader = 1 << 20;
  char head[12] = {};
  if (end < offset || end - offset < 10 || file.read_at(offset, head, 12) < 10 ||
      std::string_view(head, kMagic.size()) != kMagic)
    return "is no .npy file";
  const int major = head[6];
  if (major < 1 || major > 3) return fmt::format("is a .npy file of version {}, and 1 to 3 are known", major);
  const uint64_t length = major == 1 ? number_at<uint16_t>(head + 8) : number_at<uint32_t>(head + 8);
  const uint64_t begin = offset + (major == 1 ? 10 : 12);
  if (length > kMostHeader || begin > end || length > end - begin) return "has a broken header: it is cut off";
  std::string text(length, '\0');
  if (file.read_at(begin, text.data(), length) != static_cast<int64_t>(length))
    return "has a broken header: it is cut off";
  Literal in(text);
  const auto broken = [](std::string_view what) { return fmt::format("has a broken header: {}", what); };
  if (!in.accept('{')) return broken("no dictionary");
  bool has_descr = false, has_order = false, has_shape = false;
  std::vector<int64_t> shape;
  while (!in.accept('}')) {
    const std::optional<std::string> key = in.string();
    if (!key || !in.accept(':')) return broken("a key is missing");
    if (*key == "descr" && !has_descr) {
      const std::optional<std::string> descr = in.string();
      if (!descr) return "holds records, which are no numbers: save one array for each field";
      if (std::string error = read_descr(*descr, place); !error.empty()) return error;
      has_descr = true;
    } else if (*key == "fortran_order" && !has_order) {
      place.fortran = in.word("True");
      if (!place.fortran && !in.word("False")) return broken("`fortran_order` is neither True nor False");
      has_order = true;
    } else if (*key == "shape" && !has_shape) {
      if (!in.accept('(')) return broken("`shape` is no tuple");
      while (!in.accept(')')) {
        const std::optional<int64_t> extent = in.number();
        if (!extent) return broken("an extent is no number");
        if (shape.size() > static_cast<size_t>(kMaxRank)) return fmt::format("has more than {} axes", kMaxRank + 1);
        shape.push_back(*extent);
        if (in.accept(',')) continue;
        if (in.accept(')')) break;
        return broken("`shape` is no tuple");
      }
      has_shape = true;
    } else {
      return broken(fmt::format("the key `{}`", shown_path(*key)));
    }
    in.accept(',');
  }
  if (!has_descr || !has_order || !has_shape) return broken("a key is missing");
  if (shape.empty()) return "holds a single number: a first axis is needed, whose rows are the samples";
  uint64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(shape[i]), &elements)) return broken("it is too large");
    place.shape[i - 1] = shape[i];
  }
  place.rank = static_cast<uint8_t>(shape.size() - 1);
  place.rows = static_cast<uint64_t>(shape[0]);
  place.begin = begin + length;
  uint64_t row = 0, all = 0;
  if (__builtin_mul_overflow(elements, uint64_t{place.item}, &row) || __builtin_mul_overflow(row, place.rows, &all) ||
      row > (uint64_t{1} << 40))
    return broken("it is too large");
  if (all > end - place.begin)
    return fmt::format("is cut off: {} bytes of numbers are declared, and {} are there", all, end - place.begin);
  if (shape.size() < 2) place.fortran = false;
  place.stride = place.fortran ? place.item : row;
  return {};
}

std::string list_zip(const InputFile& file, std::vector<ZipEntry>& entries) {
  constexpr uint64_t kMostDirectory = 64 << 20;
  const uint64_t size = file.size();
  std::string tail(std::min<uint64_t>(size, 65557), '\0');
  const uint64_t tail_begin = size - tail.size();
  if (tail.size() < 22 || file.read_at(tail_begin, tail.data(), tail.size()) != static_cast<int64_t>(tail.size()))
    return "is no .npz file";
  const size_t found = tail.rfind("PK\x05\x06", tail.size() - 22);
  if (found == std::string::npos) return "is no .npz file, or is cut off: it has no table of contents at its end";
  const char* end = tail.data() + found;
  uint64_t count = number_at<uint16_t>(end + 10), length = number_at<uint32_t>(end + 12),
           begin = number_at<uint32_t>(end + 16);
  if (found >= 20 && std::string_view(tail).substr(found - 20, 4) == "PK\x06\x07") {
    char record[56] = {};
    if (file.read_at(number_at<uint64_t>(tail.data() + found - 12), record, 56) != 56 ||
        std::string_view(record, 4) != "PK\x06\x06")
      return "has a broken table of contents";
    count = number_at<uint64_t>(record + 32);
    length = number_at<uint64_t>(record + 40);
    begin = number_at<uint64_t>(record + 48);
  }
  if (length > kMostDirectory || begin > size || length > size - begin) return "has a broken table of contents";
  std::string directory(length, '\0');
  if (file.read_at(begin, directory.data(), length) != static_cast<int64_t>(length))
    return "has a broken table of contents";
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (directory.size() - at < 46 || std::string_view(directory).substr(at, 4) != "PK\x01\x02")
      return "has a broken table of contents";
    const char* e = directory.data() + at;
    const uint16_t flags = number_at<uint16_t>(e + 8), method = number_at<uint16_t>(e + 10);
    const size_t name_size = number_at<uint16_t>(e + 28), extra_size = number_at<uint16_t>(e + 30),
                 comment_size = number_at<uint16_t>(e + 32);
    ZipEntry entry;
    entry.crc = number_at<uint32_t>(e + 16);
    entry.stored = number_at<uint32_t>(e + 20);
    entry.size = number_at<uint32_t>(e + 24);
    uint64_t local = number_at<uint32_t>(e + 42);
    if (directory.size() - at < 46 + name_size + extra_size + comment_size) return "has a broken table of contents";
    entry.name.assign(e + 46, name_size);
    std::string_view extra(e + 46 + name_size, extra_size);
    while (extra.size() >= 4) {
      const size_t field_size = number_at<uint16_t>(extra.data() + 2);
      if (extra.size() < 4 + field_size) break;
      if (number_at<uint16_t>(extra.data()) == 1) {  // zip64: of what does not fit above, in this order
        std::string_view field = extra.substr(4, field_size);
        for (uint64_t* value : {&entry.size, &entry.stored, &local}) {
          if (*value != UINT32_MAX || field.size() < 8) continue;
          *value = number_at<uint64_t>(field.data());
          field.remove_prefix(8);
        }
      }
      extra.remove_prefix(4 + field_size);
    }
    at += 46 + name_size + extra_size + comment_size;
    if (flags & 1) return fmt::format("is encrypted (`{}`)", shown_path(entry.name));
    if (method != 0 && method != 8)
      return fmt::format("holds `{}` in a form that NumPy does not write", shown_path(entry.name));
    entry.deflated = method == 8;
    char header[30] = {};
    if (local > size || size - local < 30 || file.read_at(local, header, 30) != 30 ||
        std::string_view(header, 4) != "PK\x03\x04")
      return "has a broken table of contents";
    entry.data = local + 30 + number_at<uint16_t>(header + 26) + number_at<uint16_t>(header + 28);
    if (entry.data > size || entry.stored > size - entry.data || (!entry.deflated && entry.stored != entry.size))
      return fmt::format("is cut off in `{}`", shown_path(entry.name));
    entries.push_back(std::move(entry));
  }
  return {};
}

bool place_fits(const ArrayPlace& place, const Type& type) {
  const bool text = place.elem == Elem::Bytes && (type.elem == Elem::Str || type.elem == Elem::Path);
  if ((place.elem != type.elem && !text) || place.rank != type.rank()) return false;
  for (size_t d = 0; d < type.rank(); ++d)
    if (type.shape[d].is_static() && type.shape[d].extent != place.shape[d]) return false;
  return true;
}

std::string place_type(const ArrayPlace& place) {
  Type type = Type::scalar(place.elem);
  for (int d = 0; d < place.rank; ++d) type.shape.push_back(Dim::of(place.shape[d]));
  return to_string(type);
}

std::string pack_file(const struct stat& status, const std::string& path, const std::vector<ArrayPlace>& places,
                      const std::string& shown) {
  const ArrayRow row{0, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  std::string out(reinterpret_cast<const char*>(&row), sizeof(row));
  const uint64_t count = places.size();
  out.append(reinterpret_cast<const char*>(&count), sizeof(count));
  for (const ArrayPlace& place : places) out.append(reinterpret_cast<const char*>(&place), sizeof(place));
  out.append(path);
  return shown.empty() ? out : out.append(1, '\0').append(shown);
}

}  // namespace zephon
