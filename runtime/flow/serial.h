#pragma once
// Operators that see rows (or batches) one after the other, in order. They are called by one thread at a time.
//
// What flows between them are chunks of rows or, below Batch, one chunk per batch. A FAILED ROW (graph/plan.h) among
// batches is a chunk of one row; a batch never contains one.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/evaluator.h"
#include "graph/plan.h"
#include "runtime/flow/chunk.h"
#include "runtime/flow/counters.h"

namespace zephon {

/// Where a serial operator's output goes.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void push(ChunkPtr chunk) = 0;
  virtual void end() = 0;
};

/// What serial operators tell the run.
class SerialEvents {
 public:
  virtual ~SerialEvents() = default;
  virtual void fail(RunFailure failure) = 0;
  /// The Repeat node wants everything above it to run again, as pass `pass`.
  virtual void again(class SerialOp& repeat, uint64_t pass) = 0;
  /// Of a node whose domain is indexed, perhaps with holes.
  virtual bool is_empty_domain(NodeId node) const = 0;
};

class SerialOp {
 public:
  SerialOp(const PlanNode& node, BufferPool& pool) : node_(node), pool_(pool) {}
  virtual ~SerialOp() = default;

  /// Forgets everything; a pass begins.
  virtual void begin(const EpochContext& context) = 0;
  /// Called once everything below has begun: ends at once where nothing is wanted.
  virtual void start() {}
  /// What comes: accept() for the rows, pass_on() for what happened between them.
  virtual void take(int port, const ChunkPtr& chunk) {
    if (chunk->rejected.empty()) return accept(port, chunk);
    for (const ChunkPtr& part : split_at_rejections(chunk)) {
      if (done()) return;
      part->rows > 0 ? accept(port, part) : pass_on(part);
    }
  }
  virtual void end(int port) = 0;
  /// Between two calls of accept(), of an operator with one input; and back, with the rows fetched again.
  virtual void save(OperatorState& state) const = 0;
  virtual void restore(const OperatorState& state, const ChunkPtr& rows) = 0;
  /// Wants nothing more: what comes is dropped.
  virtual bool done() const { return false; }
  virtual int wanted() const { return 0; }
  /// Chunks that wait for their turn at this port. From any thread.
  virtual size_t backlog(int) const { return 0; }
  /// Rows (nothing happened between them), or a mark.
  virtual void accept(int port, const ChunkPtr& chunk) = 0;

  const PlanNode& plan_node() const { return node_; }
  /// The step as written that it carries out, or that its rows wait for.
  int32_t step() const { return node_.steps_written.empty() ? 0 : node_.steps_written[0]; }
  NodeCounters counters;
  Outlet* out = nullptr;

 protected:
  /// True where the chunk was a mark, which has then been passed on.
  bool passes_mark(const ChunkPtr& chunk) {
    if (!chunk->mark) return false;
    OperatorState& state = chunk->mark->operators.emplace_back();
    state.step = step();
    save(state);
    out->push(chunk);
    return true;
  }
  void push(ChunkPtr chunk) {
    if (chunk->rows > 0) NodeCounters::add(counters.rows_out, node_.on_batches ? 1 : chunk->rows);
    out->push(std::move(chunk));
  }
  /// Rejections go past rows that wait here: whoever asked for what those rows become asked for all that lies before.
  virtual void pass_on(const ChunkPtr& rejected) { out->push(rejected); }

  const PlanNode& node_;
  BufferPool& pool_;
};

inline bool is_failed_row(const Chunk& chunk) { return chunk.rows == 1 && chunk.row_failed(0); }

/// The operator that a Serial, Repeat, Ordered, Batch or Unbatch node runs. `columns`: those that come to it.
std::unique_ptr<SerialOp> make_serial_op(const Plan& plan, const PlanNode& node,
                                         const std::vector<std::string>& columns, BufferPool& pool,
                                         SerialEvents& events);
/// Columns that leave it.
std::vector<std::string> output_columns(const Plan& plan, const PlanNode& node,
                                        const std::vector<std::string>& columns);

/// Cuts rows into chunks of `rows` that have not failed. `batches`: each is a batch to be, for a stage whose output
/// columns are the batch's.
std::unique_ptr<SerialOp> make_regroup(const PlanNode& node, int64_t rows, bool batches, BufferPool& pool);

}  // namespace zephon
