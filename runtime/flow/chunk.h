#pragma once
// The unit that flows: some rows, columnar.
//
// A chunk is immutable once it has left the stage that made it, so slices and adoptions share its buffers; whatever
// a chunk's columns point into is kept alive by the chunk. Names of columns live in the plan's edge, not in the chunk.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/evaluator.h"
#include "graph/identity.h"
#include "graph/value.h"
#include "runtime/flow/memory.h"
#include "runtime/flow/state.h"

namespace zephon {

/// Values of one field for all rows of a chunk. Fixed: [rows, shape...] contiguous, base 64-byte aligned where it was
/// allocated (a slice may not be). Otherwise one TensorRef a row. Scalar strings are fixed: StringRefs.
struct Column {
  TensorRef row;              ///< fixed: elem and shape of one row; otherwise elem and rank only
  size_t row_bytes = 0;       ///< fixed: bytes of one row
  std::byte* data = nullptr;  ///< fixed, or null
  TensorRef* refs = nullptr;  ///< not fixed, or null
  BufferRef buffer;           ///< owns data or refs

  bool fixed() const { return refs == nullptr; }
  TensorRef at(int64_t i) const {
    if (refs) return refs[i];
    TensorRef ref = row;
    ref.data = data + static_cast<size_t>(i) * row_bytes;
    return ref;
  }
  /// What the values point to lives elsewhere (strings, refs).
  bool indirect() const { return refs != nullptr || is_string(row.elem); }
  Column slice(int64_t start) const;
};
Column make_fixed_column(BufferPool& pool, const TensorRef& row, int64_t rows);
Column make_ref_column(BufferPool& pool, Elem elem, int32_t rank, int64_t rows);

/// Identity words of the rows. Contiguous source positions cost nothing: they are computed when asked for.
class Ids {
 public:
  static constexpr size_t kMaxHead = 4, kMaxTail = 6;
  /// Rows `start`, `start + 1`, ... : words head..., position, tail...
  static Ids range(std::span<const uint64_t> head, uint64_t start, std::span<const uint64_t> tail);
  /// Row i has words[offsets[i] .. offsets[i + 1]).
  static Ids dense(BufferPool& pool, std::span<const uint64_t> words, std::span<const uint32_t> offsets);

  void words(int64_t row, std::vector<uint64_t>& out) const;
  /// Hash of all words but the last `outer`.
  uint64_t hash(int64_t row, int32_t outer) const;
  Ids slice(int64_t start) const;
  /// Rows [starts[i], starts[i] + counts[i]) of parts[i], one after the other, if all are positions of one source; else
  /// false.
  static bool join_ranges(BufferPool& pool, std::span<const Ids* const> parts, std::span<const int64_t> starts,
                          std::span<const int64_t> counts, Ids& out);
  /// Rows listed; `rows` indices are below 2^32.
  Ids select(BufferPool& pool, std::span<const uint32_t> rows) const;

 private:
  uint64_t head_[kMaxHead] = {}, tail_[kMaxTail] = {};
  uint8_t head_count_ = 0, tail_count_ = 0;
  uint64_t start_ = 0;
  int64_t offset_ = 0;                   ///< of row 0 in selection_ or offsets_
  const uint32_t* selection_ = nullptr;  ///< range form after a filter
  const uint32_t* offsets_ = nullptr;    ///< dense form
  const uint64_t* words_ = nullptr;
  BufferRef selection_buffer_, dense_buffer_;
};

/// What is wrong with a row, or with its value in a column.
struct Issue {
  static constexpr int32_t kFailedRow = -1;  ///< a filter failed for it: see FAILED ROWS in graph/plan.h
  int64_t row = 0;
  int32_t column = kFailedRow;
  std::shared_ptr<const Value> value;  ///< of the reference evaluator; some element failed
};

/// A sample that on_error has dealt with: one that it dropped, or masked.
struct Rejection {
  NodeId node;  ///< the on_error
  RunFailure failure;
  std::string policy;
};
/// Where in the order of a chunk's rows that came to pass: before row `row`, at the end where that is the number of
/// rows.
struct RejectedAt {
  int64_t row = 0;
  std::shared_ptr<const Rejection> what;
};

struct Chunk;
using ChunkPtr = std::shared_ptr<const Chunk>;

struct Chunk {
  int64_t rows = 0;
  size_t bytes = 0;  ///< of the values, as far as the stage that made it knows
  std::vector<Column> columns;
  Ids ids;
  std::vector<Issue> issues;  ///< sorted by row, then column
  /// What happened between the rows, in order. It becomes real where it is delivered: what the run never comes to has
  /// not happened (docs/SEMANTICS.md). Operators take it off what they read and say where in their output it belongs.
  std::vector<RejectedAt> rejected;
  std::vector<uint64_t> order;  ///< index in the domain of an Ordered node below, one a row; empty elsewhere
  /// A batch whose columns are missing: another rank's, or delivered before the run was resumed. Counted, never
  /// computed.
  bool skipped = false;
  /// Not null: no rows, but a mark that goes through all operators in order; each notes its state in it.
  std::shared_ptr<Mark> mark;
  std::vector<std::shared_ptr<const void>> keep;  ///< arenas and chunks that indirect columns point into

  bool has_issue(int64_t row) const;
  bool row_failed(int64_t row) const { return issue(row, Issue::kFailedRow) != nullptr; }
  const Issue* issue(int64_t row, int32_t column) const;
  SampleId id(int64_t row) const;
};

/// Rows [start, start + rows) without copying, with what happened before each, and at the end of the chunk.
ChunkPtr slice(const ChunkPtr& chunk, int64_t start, int64_t rows);

/// A chunk without rows, at which that happened.
ChunkPtr only_rejected(std::vector<std::shared_ptr<const Rejection>> what);
/// `chunk` in its order: rows at which nothing happened, and chunks without rows.
std::vector<ChunkPtr> split_at_rejections(const ChunkPtr& chunk);

struct RowPlace {
  const ChunkPtr* chunk;
  int64_t row;
};
/// Rows [start, start + rows) of a chunk.
struct RowRun {
  const ChunkPtr* chunk;
  int64_t start, rows;
};
/// A chunk of the rows listed, none with a rejection, in that order: fixed columns are copied, indirect ones keep their
/// chunks alive. Consecutive rows of one chunk are sliced.
ChunkPtr gather(BufferPool& pool, std::span<const RowPlace> rows);
ChunkPtr gather(BufferPool& pool, std::span<const RowRun> runs);

/// Bytes of one row's values, with what they point to.
size_t row_bytes(const Chunk& chunk, int64_t row);
/// A chunk of one row that owns all that it needs: a row that is held for long must not hold its chunk.
ChunkPtr isolate(BufferPool& pool, const Chunk& chunk, int64_t row);

/// `chunk` with `word` appended to the identity of each row (words[i] where there are as many as rows).
ChunkPtr append_identity(BufferPool& pool, const ChunkPtr& chunk, std::span<const uint64_t> words);

}  // namespace zephon
