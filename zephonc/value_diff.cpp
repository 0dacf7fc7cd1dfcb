#include "zephonc/value_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "zephonc/console.h"
#include "zephonc/sample_view.h"

namespace zephon {
namespace {

constexpr size_t kShown = 8;        // elements that differ
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

bool same_element(const Value& a, int64_t i, const Value& b, int64_t k) {
  const auto at = static_cast<size_t>(i), other = static_cast<size_t>(k);
  if (is_string(a.elem())) return a.string_items()[at] == b.string_items()[other];
  const size_t size = elem_size(a.elem());
  return std::memcmp(&a.bytes()[at * size], &b.bytes()[other * size], size) == 0;
}

/// Long texts from shortly before the place where they part.
std::string clipped(const std::string& text, size_t begin) {
  constexpr size_t kWidth = 72;
  const size_t from = begin > kTextBefore ? begin - kTextBefore : 0;
  if (text.size() <= kWidth) return text;
  return (from > 0 ? "..." : "") + text.substr(from, kWidth) + (from + kWidth < text.size() ? "..." : "");
}

/// What a diff compares: an element, a value that is missing, or a list without elements, and where it stands.
struct Entry {
  std::vector<int64_t> path;
  int64_t element = -1;  // of the value; -1: `text` alone says what it is
  std::string text;
};

/// The entries of a value in order, as it is nested.
class Entries {
 public:
  explicit Entries(const ComparedValue& of) : of_(of) {
    if (of.missing != nullptr && of.missing->rank() == 0 && of.missing->at(0).i != 0) {
      add("missing");
      return;
    }
    starts_.assign(of.lengths.size() + 1, 0);
    const int64_t outer = of.value->rank() == 0 ? 1 : of.lengths.empty() ? of.value->shape()[0] : of.lengths[0]->size();
    if (of.value->rank() == 0)
      element(0, 0);
    else
      list(0, outer);
  }
  std::vector<Entry> take() { return std::move(entries_); }

 private:
  void add(std::string text) { entries_.push_back({path_, -1, std::move(text)}); }
  // `size` of what stands at `level`: lists, or what the first dimension holds.
  void list(size_t level, int64_t size) {
    if (size == 0) add("[]");
    for (int64_t i = 0; i < size; ++i) {
      path_.push_back(i);
      const int64_t at = starts_[level]++;
      if (level < of_.lengths.size())
        list(level + 1, of_.lengths[level]->at(at).i);
      else
        element(1, at);
      path_.pop_back();
    }
  }
  // What stands behind `rank` dimensions of the value, at this place of them.
  void element(int64_t rank, int64_t at) {
    if (of_.missing != nullptr && of_.missing->rank() == rank && rank > 0 && of_.missing->at(at).i != 0)
      return add("missing");
    if (rank == of_.value->rank()) {
      entries_.push_back({path_, at, {}});
      return;
    }
    const int64_t size = of_.value->shape()[static_cast<size_t>(rank)];
    if (size == 0) add("[]");
    for (int64_t i = 0; i < size; ++i) {
      path_.push_back(i);
      element(rank + 1, at * size + i);
      path_.pop_back();
    }
  }

  const ComparedValue& of_;
  std::vector<int64_t> path_;
  std::vector<int64_t> starts_;
  std::vector<Entry> entries_;
};

std::string entry_text(const ComparedValue& of, const Entry& entry) {
  return entry.element < 0 ? entry.text : element_text(*of.value, entry.element);
}

bool same_entry(const ComparedValue& a, const Entry& x, const ComparedValue& b, const Entry& y) {
  if (x.path != y.path || (x.element < 0) != (y.element < 0)) return false;
  return x.element < 0 ? x.text == y.text : same_element(*a.value, x.element, *b.value, y.element);
}

/// "[1, 0]  "; empty for a scalar.
std::string path_text(const std::vector<int64_t>& path) {
  return path.empty() ? "" : fmt::format("[{}]  ", fmt::join(path, ", "));
}

/// The lines of one place: the same in both, or what is expected and what was found (either may be null).
void append_place(std::string& out, const ComparedValue& a, const Entry* x, const ComparedValue& b, const Entry* y) {
  const std::string where = path_text((x != nullptr ? x : y)->path);
  std::string wanted = x == nullptr ? "" : entry_text(a, *x), got = y == nullptr ? "" : entry_text(b, *y);
  if (x != nullptr && y != nullptr && same_entry(a, *x, b, *y)) {
    out += "      " + where + clipped(wanted, 0) + "\n";
    return;
  }
  if (wanted == got && x->element >= 0 && y->element >= 0) {
    wanted += bits_text(*a.value, x->element);
    got += bits_text(*b.value, y->element);
  }
  const size_t at =
      x == nullptr || y == nullptr
          ? 0
          : static_cast<size_t>(std::mismatch(wanted.begin(), wanted.end(), got.begin(), got.end()).first -
                                wanted.begin());
  if (x != nullptr) out += "    - " + where + clipped(wanted, at) + "\n";
  if (y != nullptr) out += "    + " + where + clipped(got, at) + "\n";
}

}  // namespace

std::string value_line(const Value& value) {
  constexpr int64_t kElements = 12;
  std::string out = type_text(value) + " ";
  for (int64_t i = 0; i < std::min(value.size(), kElements); ++i)
    out += (i == 0 ? "" : ", ") + clipped(element_text(value, i), 0);
  return out + (value.size() > kElements ? ", ..." : "");
}

std::string value_line(const ComparedValue& of) {
  if (of.missing == nullptr && of.lengths.empty()) return value_line(*of.value);
  constexpr size_t kEntries = 12;
  const std::vector<Entry> entries = Entries(of).take();
  std::string out = of.type.empty() ? "" : of.type + " ";
  for (size_t i = 0; i < std::min(entries.size(), kEntries); ++i)
    out += (i == 0 ? "" : ", ") + path_text(entries[i].path) + clipped(entry_text(of, entries[i]), 0);
  return out + (entries.size() > kEntries ? ", ..." : "");
}

ValueDiff value_diff(const std::string& name, const ComparedValue& expected, const ComparedValue* found) {
  ValueDiff out;
  const std::string wanted_type = expected.type.empty() ? type_text(*expected.value) : expected.type;
  if (found == nullptr) {
    out.text = fmt::format("  {}\n    - {}\n    + nothing\n", name, value_line(expected));
    return out;
  }
  if (expected.value->elem() != found->value->elem() || expected.value->rank() != found->value->rank() ||
      expected.lengths.size() != found->lengths.size()) {
    out.text = fmt::format("  {}\n    - {}\n    + {}\n", name, value_line(expected), value_line(*found));
    return out;
  }
  const std::vector<Entry> a = Entries(expected).take(), b = Entries(*found).take();
  // The places of both in one order: an index into each, or the end of it.
  std::vector<std::pair<const Entry*, const Entry*>> places;
  std::vector<size_t> differ;
  for (size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    const bool left = k == b.size() || (i < a.size() && a[i].path <= b[k].path);
    const bool right = i == a.size() || (k < b.size() && b[k].path <= a[i].path);
    places.emplace_back(left ? &a[i] : nullptr, right ? &b[k] : nullptr);
    if (!left || !right || !same_entry(expected, a[i], *found, b[k])) differ.push_back(places.size() - 1);
    i += left ? 1 : 0;
    k += right ? 1 : 0;
  }
  if (differ.empty()) return out;
  if (const Entry* first = places[differ[0]].first; first != nullptr) out.first = first - a.data();
  const std::string found_type = found->type.empty() ? type_text(*found->value) : found->type;
  const bool sizes = expected.lengths.empty() && expected.value->shape() != found->value->shape() &&
                     expected.value->size() > 0 && found->value->size() > 0;
  out.text = fmt::format("  {}: {}", name, wanted_type);
  if (sizes || wanted_type != found_type) {
    out.text += fmt::format(" expected, {} delivered", sizes ? type_text(*found->value) : found_type);
  } else if (places.size() > 1) {
    out.text += fmt::format(", {} of {} elements {}", human_count(static_cast<double>(differ.size())),
                            human_count(static_cast<double>(places.size())), differ.size() == 1 ? "differs" : "differ");
  }
  out.text += "\n";
  auto show = [&](size_t i) { append_place(out.text, expected, places[i].first, *found, places[i].second); };
  if (differ[0] > 0) show(differ[0] - 1);
  for (size_t i = 0; i < std::min(differ.size(), kShown); ++i) show(differ[i]);
  if (differ.size() > kShown) {
    out.text += fmt::format("      and {} more\n", human_count(static_cast<double>(differ.size() - kShown)));
  } else if (differ.back() + 1 < places.size()) {
    show(differ.back() + 1);
  }
  return out;
}

}  // namespace zephon
