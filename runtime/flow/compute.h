#pragma once
// A Compute node of the plan, made ready to run: kernels compiled, leaves bound to columns, shapes known where they can
// be.
//
// The steps fall into segments. A columnar segment runs each of its kernels once over all rows; filters there compact.
// A row segment takes one row through all of its steps before the next, so that what lies between decoding and the
// batch stays in cache and is never kept for more than one row; heavy chunks run the rows of such a segment in
// parallel.
//
// A kernel only says that a row failed. The reference evaluator is then asked for that row, and its verdict stands.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/kernel.h"
#include "graph/plan.h"
#include "runtime/flow/chunk.h"
#include "runtime/flow/counters.h"
#include "runtime/flow/kept_rows.h"

namespace zephon {

/// The same, and whose row it was.
struct RowExceedsMemory : MemoryExceeded {
  RowExceedsMemory(const MemoryExceeded& what, SampleId sample, Span place, std::string operator_name)
      : MemoryExceeded(what), id(std::move(sample)), where(place), op(std::move(operator_name)) {}
  SampleId id;
  Span where;
  std::string op;
};

/// The reference evaluator as a stage sees it: value of `expr` for one row. Thread-safe.
class RowFallback {
 public:
  virtual ~RowFallback() = default;
  virtual Value evaluate(ExprId expr, const std::function<Value(const std::string& field)>& field,
                         const SampleId& draw_identity) const = 0;
  /// Value of an expression that is the same for all rows (op `data_const` and what it is made of).
  virtual const Value& constant(ExprId expr) const = 0;
  /// Not while evaluate() is going on.
  virtual void begin_epoch(uint64_t epoch) = 0;
};

/// What the stages of one run share.
struct StageContext {
  const Plan* plan = nullptr;
  BufferPool* pool = nullptr;
  const RowFallback* fallback = nullptr;
  std::function<KernelCompiler*()> compiler;  ///< asked for when the first kernel is needed; null: no compiled kernels
  int threads = 1;
  BufferPool* kept = nullptr;  ///< for rows that stages keep
};

class Stage {
 public:
  /// `input`: names of the columns of the chunks that come. On failure (our bug) `error` is set.
  Stage(const StageContext& context, const PlanNode& node, const std::vector<std::string>& input, std::string& error);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Keys of the draws; not while run() is going on.
  void begin_epoch(uint64_t epoch);
  /// Thread-safe. May run rows in parallel (isolated) where the chunk is heavy.
  ChunkPtr run(const ChunkPtr& in, NodeCounters& counters) const;
  const PlanNode& node() const { return node_; }
  /// What its steps did so far, in their order. Thread-safe.
  std::vector<StepTally> tallies() const;
  /// No filter: a row that comes goes on.
  bool keeps_rows() const { return keeps_rows_; }

 private:
  struct Slot;
  struct Step;
  struct Segment;
  struct Work;
  struct Local;
  class LocalLease;

  ChunkPtr run_rows_of(const ChunkPtr& in, NodeCounters& counters) const;
  ChunkPtr compute(const ChunkPtr& in, NodeCounters& counters) const;
  ChunkPtr join_kept(const Chunk& in, const std::vector<RowPlace>& places, const std::vector<uint32_t>& rows) const;

  int slot_of(ExprId expr, const std::vector<std::string>& input, std::string& error);
  void plan_segments();
  void prepare_step(Step& step, std::string& error);
  void run_columnar(const Segment& segment, Work& work) const;
  void evaluate_columnar(const Step& step, Work& work, Local& local) const;
  void run_rows(const Segment& segment, Work& work, int64_t begin, int64_t end) const;
  void evaluate_row(const Step& step, Work& work, Local& local, int64_t row) const;
  void tally_row(const Step& step, const Work& work, Local& local, int64_t row, int64_t begin_ns) const;
  void fall_back(ExprId root, int slot, Work& work, Local& local, int64_t row, bool local_only) const;
  bool read_whole(int slot) const;
  bool shape_of_root(const Step& step, Local& local, TensorRef& out) const;
  void compact(Work& work, const std::vector<uint32_t>& rows, size_t next_step) const;
  ChunkPtr finish(Work& work) const;

  const StageContext& context_;
  const PlanNode& node_;
  const Graph& graph_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<Segment> segments_;
  std::vector<int> output_slots_;
  bool keeps_rows_ = true;
  bool draws_ = false;
  mutable std::atomic<double> ns_per_row_;
  std::unique_ptr<KeptRows> kept_;
  mutable std::mutex locals_mutex_;
  mutable std::vector<StepTally> tallies_;  // by step; of locals that are not lent
  mutable std::vector<std::unique_ptr<Local>> locals_;
};

}  // namespace zephon
