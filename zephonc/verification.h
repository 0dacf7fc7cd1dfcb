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
  bool relaxed = false;                     ///< values may differ: how far is measured
};

/// How far a field is from what the program as written gives. Numbers: by the distance of two elements; NaN and a
/// number are infinitely far apart. Strings and bools: 1 where they differ.
struct FieldDifference {
  int64_t elements = 0, unequal = 0;
  double largest = 0, sum = 0;
  std::string at;  ///< the sample where it is largest
  double mean() const { return elements > 0 ? sum / static_cast<double>(elements) : 0; }
};

/// Outcome of one comparison. `problem` is empty where all is equal.
struct Comparison {
  uint64_t records = 0, samples = 0;
  std::string problem;  ///< sample, field and element where they differ first, and both values
  uint64_t at_record = 0;
  bool stopped = false;
  std::optional<RunFailure> failure;  ///< both ended with this one
  std::string digest;
  std::map<std::string, std::string> fields;           ///< name and type of what was compared
  std::map<std::string, FieldDifference> differences;  ///< relaxed: of every field
  bool equal() const;                                  ///< to the bit, as far as compared
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

/// A program that was compiled: what it takes to compile a smaller one in its place.
struct ProgramText {
  std::string name;  ///< a path in the folder where its imports start; not one of YAML
  std::string zpl;
  std::map<std::string, std::string> params;
  std::string pipeline;  ///< of several
};
/// The smallest program found (zephonc/shrink.h) whose plan by `how` still differs from it. `program` is one.
std::string smallest_that_differs(const ProgramText& program, const OptimizeOptions& how, const VerifyOptions& options);

/// Names of the rules that were applied, each once, sorted.
std::vector<std::string> applied_rules(const Trace& trace);

}  // namespace zephon
