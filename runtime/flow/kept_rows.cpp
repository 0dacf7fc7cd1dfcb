#include "runtime/flow/kept_rows.h"

#include <algorithm>

namespace zephon {
namespace {

constexpr size_t kEntryBytes = 256;  // of the table, and of a row without its values
constexpr size_t kFirstPass = 4;     // words of an identity before the passes: stream, ordinal, shard, position

}  // namespace

std::vector<int64_t> rows_made(const Chunk& in, const Chunk& out) {
  std::vector<int64_t> made(static_cast<size_t>(in.rows), -1);
  std::vector<uint64_t> wanted, found;
  int64_t next = 0;
  if (out.rows > 0) out.ids.words(0, found);
  for (int64_t row = 0; row < in.rows && next < out.rows; ++row) {
    in.ids.words(row, wanted);
    if (wanted != found) continue;
    made[static_cast<size_t>(row)] = next++;
    if (next < out.rows) out.ids.words(next, found);
  }
  return made;
}

KeptRows::Key KeptRows::key(const Chunk& chunk, int64_t row) const {
  Key words;
  chunk.ids.words(row, words);
  const size_t end = std::min(words.size(), kFirstPass + static_cast<size_t>(pass_words_));
  if (end > kFirstPass) words.erase(words.begin() + kFirstPass, words.begin() + static_cast<std::ptrdiff_t>(end));
  return words;
}

std::vector<KeptRows::Answer> KeptRows::find(const Chunk& in) const {
  std::vector<Answer> answers(static_cast<size_t>(in.rows));
  std::vector<Key> keys;
  for (int64_t row = 0; row < in.rows; ++row) keys.push_back(key(in, row));
  std::lock_guard lock(mutex_);
  for (size_t row = 0; row < keys.size(); ++row)
    if (auto it = rows_.find(keys[row]); it != rows_.end() && !in.row_failed(static_cast<int64_t>(row)))
      answers[row] = {true, it->second};
  return answers;
}

void KeptRows::add(const Chunk& in, const Chunk& out, const std::vector<int64_t>& made) {
  ClaimScope nobody(nullptr);  // what does not fit is not kept; nobody waits for it
  for (int64_t row = 0; row < in.rows; ++row) {
    if (in.row_failed(row)) continue;
    const int64_t from = made[static_cast<size_t>(row)];
    // Buffers come in sizes a quarter apart.
    const size_t bytes = kEntryBytes + (from < 0 ? 0 : row_bytes(out, from) * 5 / 4 + 64 * out.columns.size());
    if (pool_.in_use() + bytes > pool_.limit() || !pool_.try_charge(kEntryBytes, pool_.limit())) return;
    ChunkPtr kept = from < 0 ? nullptr : isolate(pool_, out, from);
    std::lock_guard lock(mutex_);
    if (!rows_.emplace(key(in, row), std::move(kept)).second) pool_.unreserve(kEntryBytes);
  }
}

}  // namespace zephon
