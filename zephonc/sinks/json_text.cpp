#include "zephonc/sinks/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>

#include "frontend/diag/diagnostic.h"

namespace zephon {
namespace {

void append_base64(std::string& out, std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out += '"';
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  out += '"';
}

template <class T>
T load(const DeliveredField& field, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(field.data) + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class F>
void append_float(std::string& out, F value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // `-0` is a whole number to many readers, which have no sign for it
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void append_element(std::string& out, const DeliveredField& field, int64_t i) {
  auto integer = [&](auto value) { fmt::format_to(std::back_inserter(out), "{}", value); };
  switch (field.elem) {
    case Elem::Bool:
      out += load<uint8_t>(field, i) != 0 ? "true" : "false";
      return;
    case Elem::U8:
      return integer(static_cast<int>(load<uint8_t>(field, i)));
    case Elem::U16:
      return integer(load<uint16_t>(field, i));
    case Elem::I8:
      return integer(static_cast<int>(load<int8_t>(field, i)));
    case Elem::I16:
      return integer(load<int16_t>(field, i));
    case Elem::I32:
      return integer(load<int32_t>(field, i));
    case Elem::I64:
      return integer(load<int64_t>(field, i));
    case Elem::F16:
      return append_float(out, f16_to_double(load<uint16_t>(field, i)));
    case Elem::BF16:
      return append_float(out, bf16_to_double(load<uint16_t>(field, i)));
    case Elem::F32:
      return append_float(out, load<float>(field, i));
    case Elem::F64:
      return append_float(out, load<double>(field, i));
    case Elem::Bytes:
      return append_base64(out, field.strings()[i].view());
    case Elem::Str:
    case Elem::Path:
      return append_json_string(out, field.strings()[i].view());
  }
}

// Walks a field in order. `next` and `next_missing` stand before the element, and the mark, that come next.
struct Walk {
  std::string& out;
  const DeliveredField& field;
  const DeliveredField* missing;
  int64_t next = 0, next_missing = 0;

  void dim(size_t d) {
    if (missing != nullptr && d == missing->shape.size() && load<uint8_t>(*missing, next_missing++) != 0) {
      int64_t count = 1;
      for (size_t i = d; i < field.shape.size(); ++i) count *= field.shape[i];
      next += count;
      out += "null";
      return;
    }
    if (d == field.shape.size()) return append_element(out, field, next++);
    list(field.shape[d], [&] { dim(d + 1); });
  }
  template <class F>
  void list(int64_t count, F&& item) {
    out += '[';
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) out += ", ";
      item();
    }
    out += ']';
  }
};

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t good = find_invalid_utf8(text).value_or(text.size());
    for (char c : text.substr(0, good)) {
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        default:
          if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
          } else {
            out += c;
          }
      }
    }
    if (good == text.size()) break;
    out += "\\ufffd";
    text.remove_prefix(good + 1);
  }
  out += '"';
}

void append_json(std::string& out, const DeliveredField& field) { append_json(out, field, nullptr, {}); }

void append_json(std::string& out, const DeliveredField& field, const DeliveredField* missing,
                 std::span<const DeliveredField* const> lengths) {
  Walk walk{out, field, missing};
  if (lengths.empty()) return walk.dim(0);
  if (missing != nullptr && missing->shape.empty() && load<uint8_t>(*missing, 0) != 0) {
    out += "null";
    return;
  }
  std::vector<int64_t> at(lengths.size());
  auto lists = [&](const auto& self, size_t level) -> void {
    const int64_t count = load<int64_t>(*lengths[level], at[level]++);
    walk.list(count, [&] { level + 1 == lengths.size() ? walk.dim(1) : self(self, level + 1); });
  };
  walk.list(lengths[0]->count(), [&] { lists(lists, 0); });
}

}  // namespace zephon
