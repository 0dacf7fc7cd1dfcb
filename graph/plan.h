#pragma once
// The physical plan: what the runtime builds its flow graph from. Made by the optimizer, printable, hashable.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

struct PlanNodeId {
  int32_t index = -1;
  auto operator<=>(const PlanNodeId&) const = default;
};

/// One step of a compute stage, applied to all rows still alive in a chunk.
struct ComputeStep {
  enum class Kind : uint8_t { Evaluate, Filter } kind = Kind::Evaluate;
  KernelGroup group;   ///< Evaluate
  ExprId predicate;    ///< Filter: a bool scalar evaluated before. Kleene over all filters of the stage: false drops, a failure is
                       ///< kept pending until the stage's end and then ends the run in order (or goes to nobody if dropped)
};

struct OutputField {
  std::string name;
  ExprId expr;         ///< over the stage's input fields; op `field` for a column passed through
  bool lazy = false;   ///< not evaluated here: failure of it is recorded, not raised
};

struct PlanNode {
  enum class Kind : uint8_t {
    Source,   ///< emits rows of an open source, positions renumbered by index_ops
    Compute,  ///< parallel: chunk -> chunk, a filter region (or members of a batch)
    Serial,   ///< a RowOp, in order
    Batch,    ///< cuts the row stream into batches; adopts a chunk's columns without copying where boundaries coincide
    Unbatch,  ///< batches -> rows
    Deliver,  ///< the end: in order; any failed value that is delivered ends the run
  };
  Kind kind = Kind::Source;
  std::vector<PlanNodeId> inputs;
  NodeId node;                     ///< the graph node it runs (Source, Serial, Batch, ...)
  std::vector<NodeId> index_ops;   ///< Source: take, skip, shard, repeat, shuffle folded into the index, source outward
  std::vector<ComputeStep> steps;  ///< Compute
  std::vector<OutputField> outputs;
  /// Rows per chunk wanted at this node's input (0: whatever comes). The runtime regroups rows before a stage: a stage that feeds Batch
  /// asks for chunks of batch_size, so that its output columns are the batch.
  int64_t chunk_rows = 0;
  int concurrency = 0;             ///< 0: as many as threads
  double est_ns_per_row = 0;
  double est_bytes_per_row = 0;    ///< of its outputs
  std::vector<int32_t> steps_written;  ///< ordinals of the program's steps that it carries out, for counters
  std::string label;               ///< "decode_image+crop+resize (3:5)"
};

struct Plan {
  Graph graph;
  std::vector<PlanNode> nodes;     ///< inputs before users; last is Deliver
  uint64_t seed = 0;
  std::string base_dir;
  size_t least_memory = 0;         ///< bytes: the least budget that the program needs in flight
  std::string hash;                ///< XXH3-64 of the plan's text, hex
};

/// Deterministic text of the physical plan.
std::string to_text(const Plan& plan);

}  // namespace zephon
