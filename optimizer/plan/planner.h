#pragma once
// Graph -> Plan: filter regions become compute stages, renumberings fold into the sources, expressions become kernels.

#include <string>
#include <vector>

#include "graph/op_def.h"
#include "graph/plan.h"
#include "optimizer/cost/machine.h"
#include "optimizer/engine/trace.h"

namespace zephon {

struct PlanOptions {
  int64_t chunk = 0;  ///< rows per chunk, everywhere; 0: the planner decides
  int threads = 0;    ///< 0: unknown
  size_t memory = 0;  ///< budget in bytes; 0: none. Chunks shrink to fit, down to one row
  uint64_t seed = 0;
  std::string base_dir;
  Machine machine;
};

/// Places of the steps as written, for the counters: an expression belongs to the step whose text contains it.
struct WrittenStep {
  int32_t step = 0;
  Span place;
};
std::vector<WrittenStep> written_steps(const Graph& as_written);

/// Never fails for a graph that verifies. What is done beyond the necessary is asked of `door`, a physical rule each
/// time: fold_index_ops_into_source, fuse_kernels, batch_in_place.
Plan make_plan(const Graph& graph, const std::vector<WrittenStep>& steps, const PlanOptions& options,
               const OpTable& ops, Door& door);

}  // namespace zephon
