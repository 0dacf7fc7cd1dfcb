#include "zephonc/value_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "zephonc/console.h"
#include "zephonc/sample_view.h"

namespace zephon {
namespace {

constexpr int64_t kShown = 8;       // elements that differ
constexpr size_t kTextBefore = 20;  // bytes of a text before the place where it differs

std::string element_text(const Value& value, int64_t i) {
  const Scalar s = value.at(i);
  if (s.elem == Elem::Bool) return s.i != 0 ? "true" : "false";
  if (is_string(s.elem)) return to_string(Attr(s.s));
  if (s.elem == Elem::F32) return fmt::format("{}", static_cast<float>(s.f));
  return is_float(s.elem) ? fmt::format("{}", s.f) : std::to_string(s.i);
}

/// The raw bytes, where two elements look the same and are not.
std::string bits_text(const Value& value, int64_t i) {
  const size_t size = elem_size(value.elem());
  std::string out = " (bits ";
  for (size_t b = size; b-- > 0;) out += fmt::format("{:02x}", value.bytes()[static_cast<size_t>(i) * size + b]);
  return out + ")";
}

bool same_element(const Value& a, const Value& b, int64_t i) {
  if (is_string(a.elem())) return a.string_items()[static_cast<size_t>(i)] == b.string_items()[static_cast<size_t>(i)];
  const size_t size = elem_size(a.elem());
  return std::memcmp(&a.bytes()[static_cast<size_t>(i) * size], &b.bytes()[static_cast<size_t>(i) * size], size) == 0;
}

/// "[1, 0]  "; empty for a scalar.
std::string index_text(const Value& value, int64_t flat) {
  std::string out;
  for (size_t d = value.shape().size(); d-- > 0;) {
    out = std::to_string(flat % value.shape()[d]) + (out.empty() ? "" : ", ") + out;
    flat /= value.shape()[d];
  }
  return out.empty() ? "" : "[" + out + "]  ";
}

/// Long texts from shortly before the place where they part.
std::string clipped(const std::string& text, size_t begin) {
  constexpr size_t kWidth = 72;
  const size_t from = begin > kTextBefore ? begin - kTextBefore : 0;
  if (text.size() <= kWidth) return text;
  return (from > 0 ? "..." : "") + text.substr(from, kWidth) + (from + kWidth < text.size() ? "..." : "");
}

void append_element(std::string& out, const Value& expected, const Value& found, int64_t i) {
  const std::string index = index_text(expected, i);
  std::string wanted = element_text(expected, i);
  if (same_element(expected, found, i)) {
    out += "      " + index + clipped(wanted, 0) + "\n";
    return;
  }
  std::string got = element_text(found, i);
  if (wanted == got) {
    wanted += bits_text(expected, i);
    got += bits_text(found, i);
  }
  const auto parts = std::mismatch(wanted.begin(), wanted.end(), got.begin(), got.end());
  const auto at = static_cast<size_t>(parts.first - wanted.begin());
  out += "    - " + index + clipped(wanted, at) + "\n    + " + index + clipped(got, at) + "\n";
}

}  // namespace

std::string value_line(const Value& value) {
  constexpr int64_t kElements = 12;
  std::string out = type_text(value) + " ";
  for (int64_t i = 0; i < std::min(value.size(), kElements); ++i)
    out += (i == 0 ? "" : ", ") + clipped(element_text(value, i), 0);
  return out + (value.size() > kElements ? ", ..." : "");
}

int64_t first_difference(const Value& expected, const Value& found) {
  if (expected.elem() != found.elem() || expected.shape() != found.shape()) return -1;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!same_element(expected, found, i)) return i;
  return -1;
}

std::string value_diff(const std::string& name, const Value& expected, const Value* found) {
  if (found != nullptr && expected == *found) return {};
  const int64_t first = found == nullptr ? -1 : first_difference(expected, *found);
  if (first < 0) {
    return fmt::format("  {}\n    - {}\n    + {}\n", name, value_line(expected),
                       found == nullptr ? "nothing" : value_line(*found));
  }
  std::vector<int64_t> shown;
  int64_t count = 0;
  for (int64_t i = first; i < expected.size(); ++i) {
    if (same_element(expected, *found, i)) continue;
    if (++count <= kShown) shown.push_back(i);
  }
  std::string out = fmt::format("  {}: {}", name, type_text(expected));
  if (expected.size() > 1)
    out += fmt::format(", {} of {} elements {}", human_count(static_cast<double>(count)),
                       human_count(static_cast<double>(expected.size())), count == 1 ? "differs" : "differ");
  out += "\n";
  if (first > 0) append_element(out, expected, *found, first - 1);
  for (int64_t i : shown) append_element(out, expected, *found, i);
  if (count > kShown) {
    out += fmt::format("      and {} more\n", human_count(static_cast<double>(count - kShown)));
  } else if (shown.back() + 1 < expected.size()) {
    append_element(out, expected, *found, shown.back() + 1);
  }
  return out;
}

}  // namespace zephon
