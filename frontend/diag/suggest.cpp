// Near names: edit distance with transpositions, and for longer words a shared beginning.
#include <algorithm>

#include "frontend/diag/diagnostic.h"

namespace zephon {
namespace {

// Optimal string alignment distance; letters that differ in case only cost nothing extra beyond one edit in all.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string folded(std::string_view word) {
  std::string out;
  for (char c : word)
    if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kMaxNames = 3, kMaxLength = 64;
  if (word.empty() || word.size() > kMaxLength) return {};
  struct Near {
    size_t distance;
    const std::string* name;
  };
  std::vector<Near> near;
  std::string folded_word = folded(word);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength || candidate == word) continue;
    std::string folded_candidate = folded(candidate);
    size_t distance = edit_distance(folded_word, folded_candidate);
    size_t bound = std::max<size_t>(1, std::min(folded_word.size(), folded_candidate.size()) / 3);
    bool begins = folded_word.size() >= 4 &&
                  (folded_candidate.starts_with(folded_word) || folded_word.starts_with(folded_candidate)) &&
                  folded_candidate.size() >= 4;
    if (folded_word.size() == 1 && distance > 0) continue;  // every one-letter name is one edit from every other
    if (distance <= bound)
      near.push_back({distance, &candidate});
    else if (begins)
      near.push_back({bound + 1, &candidate});
  }
  std::sort(near.begin(), near.end(), [](const Near& a, const Near& b) {
    return a.distance != b.distance ? a.distance < b.distance : *a.name < *b.name;
  });
  std::vector<std::string> names;
  for (const Near& n : near) {
    if (names.size() == kMaxNames) break;
    // A clearly nearer name makes the others noise.
    if (n.distance > near.front().distance + 1) break;
    if (std::find(names.begin(), names.end(), *n.name) == names.end()) names.push_back(*n.name);
  }
  return names;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::string> names = near_names(word, candidates);
  if (names.empty()) return {};
  std::string text = "did you mean ";
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text + "?";
}

}  // namespace zephon
