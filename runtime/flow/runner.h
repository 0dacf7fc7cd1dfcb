#pragma once
// Runs a plan and hands what it delivers, in order, to a sink. The only door to this layer.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/evaluator.h"
#include "graph/op_def.h"
#include "graph/plan.h"
#include "runtime/flow/counters.h"
#include "runtime/flow/state.h"

namespace zephon {

/// What is delivered at once: a batch, or one sample where the program does not batch. Valid during Sink::deliver only.
class RunRecord {
 public:
  struct Field {
    const std::string* name = nullptr;
    const Type* type = nullptr;  ///< of one member
    TensorRef value;             ///< batched: [members, shape...], contiguous
  };
  virtual ~RunRecord() = default;
  bool batched = false;
  int64_t members = 1;
  uint64_t epoch = 0;
  uint64_t ordinal = 0;  ///< number of the record in its epoch, over all ranks
  std::vector<Field> fields;
  virtual SampleId member_id(int64_t member) const = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// In order, never concurrently, from any thread of the run. False (closed pipe, disk full): the run ends cleanly.
  virtual bool deliver(const RunRecord& record) = 0;
};

/// One task of one operator, for timelines. Clock: CLOCK_MONOTONIC.
struct WorkSpan {
  const PlanNode* node = nullptr;
  int64_t begin_ns = 0, end_ns = 0;
  int64_t rows = 0;
};

/// Why nothing is delivered.
struct StallReport {
  std::string status;        ///< what every operator is doing, one line each
  int64_t samples_read = 0;  ///< from the sources, so far
  struct Dropped {
    Span where;  ///< of the filter, or of the policy
    int64_t samples = 0;
  };
  std::vector<Dropped> dropped;
};

struct RunOptions {
  int threads = 1;
  size_t memory = size_t{1} << 30;  ///< bytes in flight at most; a sample that alone needs more ends the run
  uint64_t epochs = 1;
  std::optional<uint64_t> take;       ///< records delivered at most, over all epochs
  uint64_t rank = 0, world_size = 1;  ///< record g of an epoch goes to rank g mod world_size
  double stall_timeout = 0;           ///< seconds without a record after which on_stall is called; 0: never
  std::function<void(const StallReport&)> on_stall;  ///< from a thread of its own; the run stops after it
  const std::atomic<bool>* stop = nullptr;           ///< set from outside (Ctrl-C): finish what was delivered, then end
  /// A rejected sample, for the quarantine file and for logs; in order.
  std::function<void(const RunFailure& failure, const Node& node, const std::string& policy)> on_error;
  std::function<void(const WorkSpan& span)> on_span;  ///< from any thread of the run
  const State* resume = nullptr;
  std::string program_fingerprint;  ///< kept in states
  bool save_state = false;          ///< RunResult::state is wanted: the operators note their states on the way
  double mark_seconds = 0.1;        ///< how often, at most
  /// What a killed run could go on from, about every `state_seconds`; between two deliveries, never concurrently with
  /// one. With `save_state`.
  std::function<void(const State& state)> on_state;
  double state_seconds = 2;
};

struct OperatorReport {
  std::string name;
  std::vector<int32_t> steps;  ///< ordinals of the steps as written
  std::vector<Span> origins;
  int64_t samples_in = 0, samples = 0, bytes_out = 0;
  double cpu_seconds = 0, wait_seconds = 0;
};

/// What one step of a compute stage did: `node` and `step` are places in the plan.
struct StepReport {
  int node = 0, step = 0;
  StepTally tally;
};

struct RunResult {
  enum class End : uint8_t { Complete, Failed, Stopped, SinkClosed, Stalled } end = End::Complete;
  std::optional<RunFailure> failure;  ///< Failed
  uint64_t records = 0, samples = 0;  ///< delivered
  uint64_t dropped_records = 0;       ///< of incomplete last rounds of ranks
  struct Errors {
    int32_t step = 0;
    std::string policy;
    uint64_t count = 0;
  };
  std::vector<Errors> errors;  ///< handled by on_error
  double startup_seconds = 0;  ///< until the first record
  double steady_seconds = 0;   ///< from the first record to the last
  size_t peak_bytes = 0;       ///< in flight
  size_t kept_bytes = 0;       ///< by `cache`
  size_t base_rss = 0;         ///< resident set before the first chunk was read, bytes
  std::vector<OperatorReport> operators;
  std::vector<StepReport> steps;
  State state;  ///< after the last record delivered; without `program` where the run never began
};

class Runner {
 public:
  /// `plan` and `sink` must outlive the runner. `compiler` is asked for when the first kernel is needed; empty: every
  /// group is run by the reference evaluator.
  Runner(const Plan& plan, RunOptions options, std::function<KernelCompiler*()> compiler, Sink& sink);
  ~Runner();
  /// Opens the sources, compiles the kernels, runs to the end. Once.
  RunResult run();
  /// What every operator is doing, one line each. From any thread, while run() is going on.
  std::string status() const;
  /// Counters so far; from any thread, while run() is going on. Empty before the first chunk.
  std::vector<OperatorReport> operators() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace zephon
