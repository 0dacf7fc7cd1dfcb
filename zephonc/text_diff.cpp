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

std::string text_diff(std::string_view before, std::string_view after) {
  if (before == after) return {};
  auto a = lines(before), b = lines(after);
  // common[i][j]: lines that a from i and b from j have in common, in order. Plans are short: the square is small.
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string out;
  auto put = [&](const char* mark, std::string_view line) { out.append(mark).append(line).append("\n"); };
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      put("  ", a[i++]);
      ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      put("- ", a[i++]);
    } else {
      put("+ ", b[j++]);
    }
  }
  return out;
}

}  // namespace zephon
