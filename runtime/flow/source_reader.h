#pragma once
// A Source node of the plan: chunks of an open source, renumbered by the index maps that were folded into it.

#include <string>
#include <vector>

#include "graph/evaluator.h"
#include "graph/plan.h"
#include "runtime/flow/chunk.h"
#include "runtime/reference/sources.h"

namespace zephon {

class SourceReader {
 public:
  SourceReader(const Plan& plan, const PlanNode& node, const OpenSources& sources, BufferPool& pool);

  /// Indices 0 .. size() - 1 of the outermost domain; those of other arms of a concatenation yield no row.
  uint64_t size() const { return size_; }
  bool has_gaps() const { return ordered_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Epoch and passes of the Repeat nodes below. Not while read() is going on.
  void begin(EpochContext context) { context_ = std::move(context); }
  /// Rows of the indices [begin, end), ascending. Thread-safe.
  ChunkPtr read(uint64_t begin, uint64_t end) const;
  /// Rows read before, by their identities; null where one is not of this source.
  ChunkPtr read_again(std::span<const SampleId> ids) const;

 private:
  struct Step {
    const Node* node = nullptr;
    uint64_t input_size = 0;  ///< index map: size of its input's domain
    bool is_arm = false;
    uint64_t arm = 0, arm_begin = 0, arm_end = 0;
  };
  /// Position in the source of index g, passes in `context` and the arms (source outward); false: an index of another
  /// arm.
  bool locate(uint64_t g, uint64_t& position, std::vector<uint64_t>& arms, EpochContext& context) const;

  ChunkPtr read_columns(std::shared_ptr<Chunk> out, uint64_t begin, const std::vector<uint64_t>& positions) const;

  const Node& node_;
  const Source& source_;
  BufferPool& pool_;
  std::vector<std::string> columns_;
  std::vector<int> picked_;        ///< for each emitted column, that of the source
  std::vector<TensorRef> shapes_;  ///< by column of the source; rank and elem, and shape where static
  std::vector<bool> static_;
  std::vector<Step> steps_;
  std::vector<uint64_t> head_;  ///< identity words before the position
  bool ordered_ = false;
  uint64_t size_ = 0;
  EpochContext context_;
};

}  // namespace zephon
