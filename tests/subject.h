#pragma once
// A program under test: what the reference interpreter delivers of it, and what a plan does.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "optimizer/optimizer.h"
#include "runtime/flow/runner.h"
#include "runtime/reference/reference.h"
#include "zephonc/sinks/digest.h"

namespace zephon {

struct Delivered {
  uint64_t epoch = 0, ordinal = 0;
  std::string ids;
  RecordDigest digest;
  bool operator==(const Delivered&) const = default;
};

struct Outcome {
  std::vector<Delivered> records;
  std::string failure;                ///< that ends the run: code, identity, message; or ""
  std::vector<std::string> rejected;  ///< by on_error, in order: policy, epoch, code, identity, message
  State state;
};

/// Where and how they differ first, or "".
std::string difference(const Outcome& expected, const Outcome& found);

using Run = std::function<Outcome(const RunOptions&)>;
/// In parts of `every` records, each of which goes on from the state of the one before.
Outcome in_parts(uint64_t every, RunOptions how, const Run& run);
/// What `world` ranks deliver and reject together, and what they should of the run that delivers `expected`: whole
/// rounds. Rejections in the order of their text, for each rank tells its own.
Outcome composed(uint64_t world, RunOptions how, const Run& run);
Outcome whole_rounds(uint64_t world, const Outcome& expected);

class Subject {
 public:
  /// Relative paths start at `folder`. `take`: records at most.
  Subject(const std::string& text, const std::map<std::string, std::string>& params, std::string folder,
          uint64_t epochs, std::optional<uint64_t> take = {});
  bool good() const { return program_.has_value(); }
  std::string errors() const;
  const Graph& graph() const { return program_->graph; }
  uint64_t seed() const { return program_->seed; }
  RunOptions options() const;

  Outcome reference() const;
  /// The reference interpreter on what the rules made of the graph: no plan, no thread, no kernel.
  Outcome rewritten(const OptimizeOptions& changes) const;
  /// `compiler` null: the reference evaluator runs each kernel group of the plan.
  Outcome planned(const OptimizeOptions& changes, const RunOptions& how, KernelCompiler* compiler) const;
  OptimizeResult optimized(const OptimizeOptions& changes, int threads) const;

 private:
  Outcome interpreted(const Graph& graph) const;
  std::string folder_;
  uint64_t epochs_;
  std::optional<uint64_t> take_;
  SourceMap sources_;
  Diagnostics diags_;
  std::optional<Program> program_;
  mutable std::shared_ptr<const OpenSources> opened_;  // of the graph as written
};

}  // namespace zephon
