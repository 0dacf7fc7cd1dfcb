#pragma once
// Regular expressions by PCRE2, compiled once for each pattern. The interpreter matches, never PCRE2's own code
// generator: where a limit strikes must be the same on every machine.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace zephon {

class Regex {
 public:
  /// What is wrong with a pattern, and at which byte of it.
  struct Fault {
    size_t offset = 0;
    std::string message;
  };
  /// A compiled pattern, shared by all who ask for it; null with `fault` set where it is wrong. `unicode`: for text
  /// (UTF-8, classes by Unicode); else for bytes.
  static std::shared_ptr<const Regex> compile(std::string_view pattern, bool unicode, Fault& fault);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  /// Number of groups, the whole match not counted; number of a named one, -1 where there is none.
  int groups() const { return groups_; }
  int group(const std::string& name) const;

  enum class Outcome : uint8_t { Match, NoMatch, Limit };
  struct Range {
    size_t begin = 0, end = 0;
    bool set = false;  ///< the group took part in the match
  };
  /// Searches from byte `from` on. ranges[0] is the whole match, ranges[i] group i. `not_empty`: a match that is not
  /// empty, and begins at `from`. Limit: more than kMatchLimit steps, or too deep.
  Outcome search(std::string_view text, size_t from, std::vector<Range>& ranges, bool not_empty = false) const;
  /// All matches that do not overlap, from left to right; calls `found` for each.
  template <class F>
  Outcome for_each(std::string_view text, F&& found) const {
    std::vector<Range> ranges;
    size_t from = 0;
    for (bool after_empty = false;;) {
      const Outcome outcome = search(text, from, ranges, after_empty);
      if (outcome == Outcome::Limit) return outcome;
      if (outcome == Outcome::NoMatch) {
        if (!after_empty || from >= text.size()) return Outcome::NoMatch;
        from = step(text, from);
        after_empty = false;
        continue;
      }
      found(ranges);
      after_empty = ranges[0].end == ranges[0].begin;
      from = ranges[0].end;
    }
  }

  static constexpr uint32_t kMatchLimit = 1'000'000;

 private:
  Regex() = default;
  size_t step(std::string_view text, size_t from) const;

  pcre2_real_code_8* code_ = nullptr;
  int groups_ = 0;
  bool unicode_ = false;
};

}  // namespace zephon
