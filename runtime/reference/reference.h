#pragma once
// The oracle: walks the graph as written, single-threaded, one sample at a time, by `.define` alone. No rewriting, no
// LLVM, no TBB, no kernels. Slow, and meant to be obviously right (DESIGN section 5); what the optimised plan delivers
// is compared with it.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "runtime/reference/sample_evaluator.h"
#include "runtime/reference/sources.h"

namespace zephon {

struct ReferenceOptions {
  uint64_t seed = 0;
  uint64_t epochs = 1;
  std::string base_dir;          ///< folder of the program: relative paths start there; empty: the working directory
  const std::atomic<bool>* stop = nullptr;  ///< set from outside: the run ends with the sample that it is at
};

/// What is delivered: a sample, or a batch of them.
struct ReferenceRecord {
  bool is_batch = false;
  std::vector<SampleId> ids;  ///< of the sample, or of each member
  /// In the order of the output's type; of a batch [members, shape...]. Hidden fields (`$...`) are not delivered.
  std::vector<std::pair<std::string, Value>> fields;
  uint64_t epoch = 0;
};

/// A sample that on_error dealt with.
struct Rejected {
  RunFailure failure;
  std::string policy;
  NodeId node;  ///< the on_error
};

class ReferenceRun {
 public:
  /// `graph` outlives the run. Opens the sources unless given. On failure null, and `failure` says why.
  static std::unique_ptr<ReferenceRun> open(const Graph& graph, ReferenceOptions options, Failure& failure,
                                            std::shared_ptr<const OpenSources> sources = nullptr);
  ~ReferenceRun();

  /// The next delivered record; nullopt at the end, or where a failure ends the run.
  std::optional<ReferenceRecord> next();
  /// The sample that reaches the output next, nothing evaluated yet (for `show`); nullopt at the end or at a failure.
  std::optional<Sample> next_sample();
  /// The same for the output of another node, in a fresh stream of epoch `epoch`.
  std::unique_ptr<SampleStream> open_stream(NodeId node, uint64_t epoch);

  const std::optional<RunFailure>& failure() const { return failure_; }
  /// It ended because it was asked to.
  bool stopped() const { return stopped_; }
  /// Samples that have come out of a node so far. From any thread.
  int64_t samples_out(NodeId node) const { return samples_out_[static_cast<size_t>(node.index)]; }
  const OpenSources& sources() const { return *sources_; }
  /// How many samples each policy has dealt with.
  const std::map<std::string, uint64_t>& errors() const { return errors_; }
  /// Called for each sample that on_error deals with.
  void on_rejected(std::function<void(const Rejected&)> callback) { on_rejected_ = std::move(callback); }

 private:
  friend class ReferenceContext;
  ReferenceRun(const Graph& graph, ReferenceOptions options, std::shared_ptr<const OpenSources> sources);
  std::optional<ReferenceRecord> deliver(const Sample& sample);
  /// What a node gives, counted; a failure where the run is asked to stop.
  SampleStream::Item passed(NodeId node, SampleStream::Item item);
  void reject(const Rejected& rejected);

  const Graph& graph_;
  ReferenceOptions options_;
  std::shared_ptr<const OpenSources> sources_;
  DataConstants constants_;
  uint64_t epoch_ = 0;
  std::unique_ptr<SampleStream> stream_;
  std::optional<RunFailure> failure_;
  bool stopped_ = false;
  std::unique_ptr<std::atomic<int64_t>[]> samples_out_;  // by node
  std::map<std::string, uint64_t> errors_;
  std::function<void(const Rejected&)> on_rejected_;
};

/// Stacks the values of one field of a batch's members into [members, shape...]. Shapes must be equal.
Value stack_values(const std::vector<const Value*>& values);

}  // namespace zephon
