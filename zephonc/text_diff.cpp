#include "zephonc/text_diff.h"

#include <algorithm>
#include <vector>

namespace zephon {
namespace {

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string text_diff(std::string_view before, std::string_view after, size_t context) {
  if (before == after) return {};
  auto a = lines(before), b = lines(after);
  // What both begin and end with is no part of the square below.
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const size_t a_end = a.size() - tail, b_end = b.size() - tail;
  // common[i][j]: lines that a from i and b from j have in common, in order. What changes is short: the square is
  // small.
  std::vector<std::vector<int>> common(a_end - head + 1, std::vector<int>(b_end - head + 1));
  auto at = [&](size_t i, size_t j) -> int& { return common[i - head][j - head]; };
  for (size_t i = a_end; i-- > head;) {
    for (size_t j = b_end; j-- > head;)
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  }
  struct Line {
    char mark;
    std::string_view text;
  };
  std::vector<Line> all;
  for (size_t i = 0; i < head; ++i) all.push_back({' ', a[i]});
  for (size_t i = head, j = head; i < a_end || j < b_end;) {
    if (i < a_end && j < b_end && a[i] == b[j]) {
      all.push_back({' ', a[i++]});
      ++j;
    } else if (i < a_end && (j == b_end || at(i + 1, j) >= at(i, j + 1))) {
      all.push_back({'-', a[i++]});
    } else {
      all.push_back({'+', b[j++]});
    }
  }
  for (size_t i = a_end; i < a.size(); ++i) all.push_back({' ', a[i]});

  // Lines to the nearest change, above or below.
  std::vector<size_t> far(all.size(), SIZE_MAX);
  auto spread = [&](size_t i, size_t& distance) {
    distance = all[i].mark != ' ' ? 0 : distance == SIZE_MAX ? distance : distance + 1;
    far[i] = std::min(far[i], distance);
  };
  size_t down = SIZE_MAX, up = SIZE_MAX;
  for (size_t i = 0; i < all.size(); ++i) spread(i, down);
  for (size_t i = all.size(); i-- > 0;) spread(i, up);
  std::string out;
  bool skipped = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (far[i] > context) {
      if (!skipped) out += "  ...\n";
      skipped = true;
      continue;
    }
    skipped = false;
    out.append({all[i].mark, ' '}).append(all[i].text).append("\n");
  }
  return out;
}

}  // namespace zephon
