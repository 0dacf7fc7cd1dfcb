#pragma once
// What the optimizer did and what it declined: the record behind `--steps` and `--why`.

#include <set>
#include <string>
#include <string_view>
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
  std::string before, after;  ///< the whole graph as text; only where asked for
};

/// A rule that matched and was held back.
struct Refusal {
  const Rule* rule = nullptr;
  Span place;
  int32_t step = 0;
  std::string what;
  std::string_view guard;
};

struct Trace {
  std::vector<Application> applied;
  std::vector<Refusal> refused;
  std::vector<std::string> problems;  ///< from the verifier: our bug
  bool fired(std::string_view rule) const;
};

/// The single door: every rule that does something asks here first, and says here what it did.
class Door {
 public:
  Door(std::set<std::string, std::less<>> disabled, bool texts) : disabled_(std::move(disabled)), texts_(texts) {}
  bool enabled(const Rule& rule) const;
  bool keeps_texts() const { return texts_; }
  void applied(Application application) { trace_.applied.push_back(std::move(application)); }
  /// The same refusal at the same place is recorded once.
  void refused(Refusal refusal);
  void problem(std::string text) { trace_.problems.push_back(std::move(text)); }
  const Trace& trace() const { return trace_; }
  Trace take() { return std::move(trace_); }

 private:
  std::set<std::string, std::less<>> disabled_;
  bool texts_;
  Trace trace_;
  std::set<std::string> known_;
};

}  // namespace zephon
