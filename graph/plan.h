#pragma once
// The physical plan: what the runtime builds its flow graph from. Made by the optimizer, printable, hashable.
//
// WHAT A RUNTIME MUST KNOW
// Rows and columns. Every plan node but Deliver emits rows (or batches of rows) with named columns. A stage's expressions read
// the columns of its input; columns that nobody below names may be freed. Names are those of the program's fields; a
// stage may read column `image` and emit another column `image`. Columns that a planner invents start with `$`.
// Failures are recorded, never raised, before Deliver, on_error or a filter. A row's column may be failed: then the runtime keeps the
// reference evaluator's Value (whose elements are values or failures) beside the row, and whatever reads that column for that row
// is evaluated by the reference evaluator over such Values; the result is good or failed by the same law. Deliver ends the
// run at the first row, in output order, of which a delivered column has a failed element. on_error (Serial) sees Row.failed
// where a column of `guarded` is failed (or the row's filter verdict is a failure).
// Verdicts. Kleene over all filters of a stage: false drops the row; else a failure (of several, that of the filter with the least
// `place`) makes the row a FAILED ROW: it goes on in order, filters let it through, counting operators do not count it but pass it on (unless they are done); it is dropped, quarantined
// or masked by on_error (so its other fields are evaluated), and ends the run at Deliver.
// Steps. A chunk's rows may go through the steps between two filters one by one, and should where values are pictures: then
// what lies between two kernels stays in the cache, and its memory is used again for the next row.
// Identity. A source emits stream, ordinal, shard, position, then the passes of all repeats below it, outermost first (those of Repeat
// nodes from EpochContext.passes, then those folded into `index`), then the arms folded into `index`, source outward. Serial
// merges append their arm, Unbatch the child, when the row passes; Repeat nodes append nothing. Draws see what stood where
// the assignment was written (passes always): a stage ignores the last `outer_words` words, arms and children appended below it.
// Epochs are outside the plan: the whole plan runs once per epoch.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

struct PlanNodeId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const PlanNodeId&) const = default;
};

/// One renumbering between a source and the rows it emits (kernel.index_map of the node's operator), or, with arm >= 0, the
/// entry of a concatenation: its domain is that of the inputs of `node` one after the other, ours is input `arm`.
/// A source runs through the domain of its outermost step: index g = 0, 1, ... mapped inward step by step; at an arm step
/// indices of other arms are skipped. Sizes follow from the open sources: domain_size(node) is the source's size, the input's
/// for assignments and filters, output_size for an index map, the sum over the inputs for a concatenation.
struct IndexStep {
  NodeId node;
  int32_t arm = -1;
  bool operator==(const IndexStep&) const = default;
};

/// One step of a compute stage, applied to all rows still alive in a chunk.
struct ComputeStep {
  enum class Kind : uint8_t { Evaluate, Filter } kind = Kind::Evaluate;
  KernelGroup group;   ///< Evaluate: a Native group whose operator has no kernel is evaluated by the reference evaluator
  ExprId predicate;    ///< Filter: a bool scalar evaluated before, or a column, or a constant
  NodeId filter;       ///< Filter: the step of the graph; invalid: the verdict of filters above a merge
  int32_t step = 0;    ///< ordinal of the program's step that it carries out (the first, of several)
  int32_t place = 0;   ///< Filter: among the stage's filters, in the order of the program as written
  double est_ns = 0;   ///< per row
};

struct OutputField {
  std::string name;
  ExprId expr;         ///< over the stage's input columns; a leaf: a column passed through, or the same constant for all rows
  /// Fixed bytes per row of its value, or 0 where the shape is only known at run time or the elements are strings.
  int64_t fixed_bytes = 0;
};

struct PlanNode {
  enum class Kind : uint8_t {
    Source,   ///< emits rows of an open source, renumbered by `index`, in ascending order of the outermost index
    Compute,  ///< parallel: chunk -> chunk: a filter region or a part of one; below Batch: the members of each batch
    Serial,   ///< a RowOp, in order, on rows or on batches (one Row each)
    Ordered,  ///< arms of a shuffled concatenation: emits the rows of its inputs in ascending order of the outermost index
    Repeat,   ///< runs all that is above it again and again: pass p = 0, 1, ... (attr "count", absent or -1: for ever) with p appended to
              ///< EpochContext.passes above, where sources put it into identities
    Batch,    ///< cuts the row stream into batches; adopts a chunk's columns without copying where boundaries coincide
    Unbatch,  ///< batches -> rows: appends the member's number to its identity
    Deliver,  ///< the end: in order; any failed value that is delivered ends the run
  };
  Kind kind = Kind::Source;
  std::vector<PlanNodeId> inputs;
  NodeId node;                     ///< the graph node it runs (Source, Serial, Repeat, Batch, ...); invalid for Compute
  std::vector<IndexStep> index;    ///< Source: folded renumberings, source outward
  std::vector<ComputeStep> steps;  ///< Compute
  std::vector<OutputField> outputs;  ///< Source and Compute: the columns emitted; Deliver: the fields delivered, in order
  std::vector<std::string> guarded;  ///< Serial on_error: columns whose failure it handles
  int32_t outer_words = 0;         ///< Compute: identity words (arms) appended outside of where it was written
  bool on_batches = false;         ///< its rows are members of batches (Compute, Deliver) or batches (Serial): never regroup across batches
  /// Rows per chunk wanted at this node's input (Source: at its output); 0: whatever comes. The runtime regroups rows before a stage:
  /// one that feeds Batch asks for chunks of batch_size, so that its output columns are the batch.
  int64_t chunk_rows = 0;
  /// Compute: what it makes of a row is kept and given again when the row comes again, in another epoch or pass; it draws nothing, and
  /// nothing above it does. Rows are told apart by their identities without the words of the passes, `pass_words` from the fifth on.
  bool keeps_rows = false;
  int32_t pass_words = 0;
  int concurrency = 0;             ///< 0: as many as threads; 1 where order matters
  double est_ns_per_row = 0;
  double est_bytes_per_row = 0;    ///< of its outputs
  double est_rows = 1;             ///< rows out per row in; of batches, their members
  std::vector<int32_t> steps_written;  ///< ordinals of the program's steps that it carries out, for counters
  std::vector<Span> origins;       ///< their places, same order
  std::string label;               ///< "decode_region, resize"; without places, which a SourceMap adds
};

/// Part of every memory budget: what a run takes beside what flows (stacks, code, tables of libraries).
constexpr size_t kUncountedBytes = size_t{4} << 20;

struct Plan {
  Graph graph;
  std::vector<PlanNode> nodes;     ///< inputs before users; last is Deliver
  uint64_t seed = 0;
  std::string base_dir;
  size_t least_memory = 0;         ///< bytes: the least budget for what is known before the run, kUncountedBytes included
  std::string hash;                ///< XXH3-64 of the plan's text, hex
  const PlanNode& at(PlanNodeId id) const { return nodes[static_cast<size_t>(id.index)]; }
};

/// Deterministic text of the physical plan: one line a node, Deliver first, inputs indented below.
std::string to_text(const Plan& plan);

}  // namespace zephon
