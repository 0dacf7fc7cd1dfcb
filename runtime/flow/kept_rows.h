#pragma once
// What a stage above a `cache` made, kept in memory by the identity of the row. Rows that find no room are not kept,
// and none ever goes again: of rows that come in the same number each epoch, the first are as good as any.

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/flow/chunk.h"

namespace zephon {

/// Thread-safe.
class KeptRows {
 public:
  /// `pool`: only for what is kept; its limit holds. `pass_words`: words of an identity, from the fifth on, that say in
  /// which pass the row came.
  KeptRows(BufferPool& pool, int32_t pass_words) : pool_(pool), pass_words_(pass_words) {}
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;

  struct Answer {
    bool known = false;
    ChunkPtr row;  ///< one row, whose identity is that of another pass perhaps; null: a filter dropped it
  };
  /// Never known: a row that has failed before it came, which others may have been the cause of (zip by key).
  std::vector<Answer> find(const Chunk& in) const;
  /// `out` is what the stage made of `in`, and `made` what rows_made() says of both.
  void add(const Chunk& in, const Chunk& out, const std::vector<int64_t>& made);

 private:
  using Key = std::vector<uint64_t>;
  struct KeyHash {
    size_t operator()(const Key& key) const { return hash_words(key); }
  };
  Key key(const Chunk& chunk, int64_t row) const;

  BufferPool& pool_;
  const int32_t pass_words_;
  mutable std::mutex mutex_;
  std::unordered_map<Key, ChunkPtr, KeyHash> rows_;
};

/// Of each row of `in`, the row of `out` that was made of it, or -1. `out` has some of the rows of `in`, in their
/// order.
std::vector<int64_t> rows_made(const Chunk& in, const Chunk& out);

}  // namespace zephon
