#pragma once
// The program as written, run by the reference interpreter, and a plan, over the same samples, in step.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/optimizer.h"
#include "runtime/reference/sources.h"

namespace zephon {

struct VerifyOptions {
  uint64_t seed = 0, epochs = 1;
  std::optional<uint64_t> take;  ///< records compared at most
  std::string base_dir;
  int threads = 1;
  size_t memory = size_t{1} << 30;          ///< bytes in flight of the plan's run
  const std::atomic<bool>* stop = nullptr;  ///< set from outside
};

/// Outcome of one comparison. `problem` is empty where all is equal.
struct Comparison {
  uint64_t records = 0, samples = 0;
  std::string problem;  ///< sample, field and element where they differ first, and both values
  uint64_t at_record = 0;
  bool stopped = false;
  std::optional<RunFailure> failure;  ///< both ended with this one
  std::string digest;
  std::map<std::string, std::string> fields;  ///< name and type of what was compared
};

/// Ends at the first difference. `sources` are those of `written`.
Comparison compare(const Graph& written, const Plan& plan, const VerifyOptions& options,
                   std::shared_ptr<const OpenSources> sources);

/// The rules of which each, disabled alone, lets the plan deliver what `written` does up to the record that differs.
struct Suspects {
  std::vector<std::string> rules;
  bool equal_without_any = false;  ///< where `rules` is empty: with --no-optimize
};
/// `found` is what compare() said of the plan that `how` gives, `trace` how it came to be.
Suspects suspects(const Graph& written, const OptimizeOptions& how, const Trace& trace, const Comparison& found,
                  const VerifyOptions& options, const std::shared_ptr<const OpenSources>& sources);

/// Names of the rules that were applied, each once, sorted.
std::vector<std::string> applied_rules(const Trace& trace);

}  // namespace zephon
