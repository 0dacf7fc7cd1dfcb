#pragma once
// What the optimizer did and what it declined: the record behind `--steps` and `--why`.

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "frontend/diag/span.h"

namespace zephon {

struct Rule;

/// One rule applied once.
struct Application {
  const Rule* rule = nullptr;
  Span place;
  int32_t step = 0;
  std::string what;        ///< the part of the graph it is about, as text; only where texts are asked for
  double cost_before = 0;  ///< nanoseconds per sample of the part that changed
  double cost_after = 0;
  std::string before, after;  ///< the whole graph as text; only where asked for, and not of rules of the planner
};

/// A rule that matched and was held back.
struct Refusal {
  const Rule* rule = nullptr;
  Span place;
  int32_t step = 0;
  std::string what;
  std::string_view guard;
};

/// How far the search for the cheapest order went.
struct SearchReport {
  int stretches = 0;     ///< of steps, each ordered by a memo of its own
  int groups = 0;        ///< streams that the memos hold
  int members = 0;       ///< ways to make them by one step
  int pairs = 0;         ///< of members on which rules were tried
  bool bounded = false;  ///< a bound was met: there may be a cheaper order
};

struct Trace {
  std::vector<Application> applied;
  std::vector<Refusal> refused;
  SearchReport search;
  std::vector<std::string> problems;  ///< from the verifier: our bug
  bool fired(std::string_view rule) const;
};

/// The single door: every rule that does something asks here first, and says here what it did.
class Door {
 public:
  Door(std::set<std::string, std::less<>> disabled, bool texts) : disabled_(std::move(disabled)), texts_(texts) {}
  bool enabled(const Rule& rule) const;
  /// Lets the same rules through, and records nothing.
  Door quiet() const {
    Door door(disabled_, false);
    door.records_ = false;
    return door;
  }
  bool records() const { return records_; }
  /// No longer where they fill so much memory that nobody reads them all.
  bool keeps_texts() const { return texts_ && kept_bytes_ < kMostTextBytes; }
  void applied(Application application);
  /// The same refusal at the same place is recorded once.
  void refused(Refusal refusal);
  void searched(const SearchReport& report) { trace_.search = report; }
  void problem(std::string text) { trace_.problems.push_back(std::move(text)); }
  const Trace& trace() const { return trace_; }
  Trace take() { return std::move(trace_); }

 private:
  std::set<std::string, std::less<>> disabled_;
  static constexpr size_t kMostTextBytes = size_t{32} << 20;

  bool texts_;
  bool records_ = true;
  size_t kept_bytes_ = 0;
  Trace trace_;
  std::set<std::tuple<const Rule*, uint32_t, uint32_t, int32_t, std::string_view>> known_;  // of refusals
};

}  // namespace zephon
