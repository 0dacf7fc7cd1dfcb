#include "runtime/flow/chunk.h"

#include <algorithm>
#include <cstring>

namespace zephon {

Column Column::slice(int64_t start) const {
  Column out = *this;
  if (out.refs) {
    out.refs += start;
  } else {
    out.data += static_cast<size_t>(start) * row_bytes;
  }
  return out;
}

Column make_fixed_column(BufferPool& pool, const TensorRef& row, int64_t rows) {
  Column column;
  column.row = row;
  column.row.data = nullptr;
  column.row_bytes = row.byte_size();
  column.buffer = pool.take(column.row_bytes * static_cast<size_t>(rows));
  column.data = column.buffer.data();
  return column;
}

Column make_ref_column(BufferPool& pool, Elem elem, int32_t rank, int64_t rows) {
  Column column;
  column.row.elem = elem;
  column.row.rank = rank;
  column.buffer = pool.take(sizeof(TensorRef) * static_cast<size_t>(rows));
  column.refs = reinterpret_cast<TensorRef*>(column.buffer.data());
  return column;
}

Ids Ids::range(std::span<const uint64_t> head, uint64_t start, std::span<const uint64_t> tail) {
  Ids ids;
  ids.head_count_ = static_cast<uint8_t>(std::min(head.size(), kMaxHead));
  ids.tail_count_ = static_cast<uint8_t>(std::min(tail.size(), kMaxTail));
  std::copy_n(head.begin(), ids.head_count_, ids.head_);
  std::copy_n(tail.begin(), ids.tail_count_, ids.tail_);
  ids.start_ = start;
  return ids;
}

Ids Ids::dense(BufferPool& pool, std::span<const uint64_t> words, std::span<const uint32_t> offsets) {
  Ids ids;
  ids.dense_buffer_ = pool.take(words.size_bytes() + offsets.size_bytes());
  auto* to = reinterpret_cast<uint64_t*>(ids.dense_buffer_.data());
  std::copy(words.begin(), words.end(), to);
  auto* to_offsets = reinterpret_cast<uint32_t*>(to + words.size());
  std::copy(offsets.begin(), offsets.end(), to_offsets);
  ids.words_ = to;
  ids.offsets_ = to_offsets;
  return ids;
}

void Ids::words(int64_t row, std::vector<uint64_t>& out) const {
  out.clear();
  if (words_) {
    const uint32_t* at = offsets_ + offset_ + row;
    out.assign(words_ + at[0], words_ + at[1]);
    return;
  }
  out.assign(head_, head_ + head_count_);
  out.push_back(start_ + (selection_ ? selection_[offset_ + row] : static_cast<uint64_t>(offset_ + row)));
  out.insert(out.end(), tail_, tail_ + tail_count_);
}

uint64_t Ids::hash(int64_t row, int32_t outer) const {
  if (words_) {
    const uint32_t* at = offsets_ + offset_ + row;
    return hash_words({words_ + at[0], at[1] - at[0] - static_cast<uint32_t>(outer)});
  }
  uint64_t all[kMaxHead + 1 + kMaxTail];
  std::copy_n(head_, head_count_, all);
  all[head_count_] = start_ + (selection_ ? selection_[offset_ + row] : static_cast<uint64_t>(offset_ + row));
  std::copy_n(tail_, tail_count_, all + head_count_ + 1);
  return hash_words({all, static_cast<size_t>(head_count_ + 1 + tail_count_ - outer)});
}

Ids Ids::slice(int64_t start) const {
  Ids out = *this;
  out.offset_ += start;
  return out;
}

Ids Ids::select(BufferPool& pool, std::span<const uint32_t> rows) const {
  if (words_) {
    std::vector<uint64_t> words;
    std::vector<uint32_t> offsets{0};
    for (uint32_t row : rows) {
      const uint32_t* at = offsets_ + offset_ + row;
      words.insert(words.end(), words_ + at[0], words_ + at[1]);
      offsets.push_back(static_cast<uint32_t>(words.size()));
    }
    return dense(pool, words, offsets);
  }
  Ids out = *this;
  out.selection_buffer_ = pool.take(rows.size_bytes());
  auto* to = reinterpret_cast<uint32_t*>(out.selection_buffer_.data());
  if (selection_) {
    for (size_t i = 0; i < rows.size(); ++i) to[i] = selection_[offset_ + rows[i]];
  } else {
    auto base = static_cast<uint32_t>(offset_);
    for (size_t i = 0; i < rows.size(); ++i) to[i] = base + rows[i];
  }
  out.selection_ = to;
  out.offset_ = 0;
  return out;
}

bool Ids::join_ranges(BufferPool& pool, std::span<const Ids* const> parts, std::span<const int64_t> starts,
                      std::span<const int64_t> counts, Ids& out) {
  const Ids& first = *parts[0];
  int64_t rows = 0;
  uint64_t least = UINT64_MAX;
  for (size_t p = 0; p < parts.size(); ++p) {
    const Ids& part = *parts[p];
    if (part.words_ || part.head_count_ != first.head_count_ || part.tail_count_ != first.tail_count_ ||
        !std::equal(part.head_, part.head_ + part.head_count_, first.head_) ||
        !std::equal(part.tail_, part.tail_ + part.tail_count_, first.tail_))
      return false;
    least = std::min(least, part.start_);
    rows += counts[p];
  }
  for (const Ids* part : parts)
    if (part->start_ - least > UINT32_MAX / 2) return false;
  out = first;
  out.selection_buffer_ = pool.take(static_cast<size_t>(rows) * sizeof(uint32_t));
  auto* to = reinterpret_cast<uint32_t*>(out.selection_buffer_.data());
  out.selection_ = to;
  out.start_ = least;
  out.offset_ = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const Ids& part = *parts[p];
    auto base = static_cast<uint32_t>(part.start_ - least);
    for (int64_t i = 0; i < counts[p]; ++i) {
      int64_t at = part.offset_ + starts[p] + i;
      *to++ = base + (part.selection_ ? part.selection_[at] : static_cast<uint32_t>(at));
    }
  }
  return true;
}

const Issue* Chunk::issue(int64_t row, int32_t column) const {
  if (issues.empty()) return nullptr;
  auto at = std::lower_bound(issues.begin(), issues.end(), std::pair(row, column),
                             [](const Issue& a, const auto& key) { return std::pair(a.row, a.column) < key; });
  return at != issues.end() && at->row == row && at->column == column ? &*at : nullptr;
}

bool Chunk::has_issue(int64_t row) const {
  auto at = std::ranges::lower_bound(issues, row, {}, &Issue::row);
  return at != issues.end() && at->row == row;
}

SampleId Chunk::id(int64_t row) const {
  SampleId out;
  ids.words(row, out.words);
  return out;
}

ChunkPtr slice(const ChunkPtr& chunk, int64_t start, int64_t rows) {
  if (start == 0 && rows == chunk->rows) return chunk;
  auto out = std::make_shared<Chunk>();
  out->rows = rows;
  out->skipped = chunk->skipped;
  out->columns.reserve(chunk->columns.size());
  for (const Column& column : chunk->columns) out->columns.push_back(column.slice(start));
  out->ids = chunk->ids.slice(start);
  for (const Issue& issue : chunk->issues) {
    if (issue.row < start || issue.row >= start + rows) continue;
    out->issues.push_back(issue);
    out->issues.back().row -= start;
  }
  for (const RejectedAt& rejected : chunk->rejected) {
    const bool at_end = rejected.row == chunk->rows && start + rows == chunk->rows;
    if (rejected.row < start || (rejected.row >= start + rows && !at_end)) continue;
    out->rejected.push_back({rejected.row - start, rejected.what});
  }
  if (!chunk->order.empty()) {
    auto begin = chunk->order.begin() + start;
    out->order.assign(begin, begin + rows);
  }
  // One owner in place of many: shuffled rows point into as many chunks as there are rows.
  if (chunk->keep.size() > 1)
    out->keep.push_back(chunk);
  else
    out->keep = chunk->keep;
  return out;
}

ChunkPtr only_rejected(std::vector<std::shared_ptr<const Rejection>> what) {
  auto out = std::make_shared<Chunk>();
  for (auto& each : what) out->rejected.push_back({0, std::move(each)});
  return out;
}

std::vector<ChunkPtr> split_at_rejections(const ChunkPtr& chunk) {
  if (chunk->rejected.empty() || chunk->rows == 0) return {chunk};
  auto bare = std::make_shared<Chunk>(*chunk);
  bare->rejected.clear();
  std::vector<ChunkPtr> out;
  std::vector<std::shared_ptr<const Rejection>> here;
  int64_t row = 0;
  auto rows_until = [&](int64_t end) {
    if (end > row) out.push_back(slice(bare, row, end - row));
    row = end;
  };
  for (size_t i = 0; i < chunk->rejected.size(); ++i) {
    const RejectedAt& rejected = chunk->rejected[i];
    rows_until(rejected.row);
    here.push_back(rejected.what);
    if (i + 1 == chunk->rejected.size() || chunk->rejected[i + 1].row > row)
      out.push_back(only_rejected(std::exchange(here, {})));
  }
  rows_until(chunk->rows);
  return out;
}

namespace {

bool same_shape(const TensorRef& a, const TensorRef& b) {
  return a.elem == b.elem && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

Column gather_column(BufferPool& pool, std::span<const RowRun> runs, size_t c, int64_t rows) {
  const Column& first = (*runs[0].chunk)->columns[c];
  bool fixed = true;
  for (const RowRun& run : runs) {
    const Column& from = (*run.chunk)->columns[c];
    fixed = fixed && from.fixed() && same_shape(from.row, first.row);
  }
  int64_t at = 0;
  if (fixed) {
    Column out = make_fixed_column(pool, first.row, rows);
    for (const RowRun& run : runs) {
      const Column& from = (*run.chunk)->columns[c];
      std::byte* to = out.data + static_cast<size_t>(at) * out.row_bytes;
      const std::byte* source = from.data + static_cast<size_t>(run.start) * out.row_bytes;
      if (run.rows == 1 && out.row_bytes == 8) {
        std::memcpy(to, source, 8);
      } else {
        std::memcpy(to, source, static_cast<size_t>(run.rows) * out.row_bytes);
      }
      at += run.rows;
    }
    return out;
  }
  Column out = make_ref_column(pool, first.row.elem, first.row.rank, rows);
  for (const RowRun& run : runs)
    for (int64_t i = 0; i < run.rows; ++i) out.refs[at++] = (*run.chunk)->columns[c].at(run.start + i);
  return out;
}

}  // namespace

ChunkPtr gather(BufferPool& pool, std::span<const RowPlace> rows) {
  std::vector<RowRun> runs;
  for (const RowPlace& place : rows) {
    if (!runs.empty() && runs.back().chunk->get() == place.chunk->get() &&
        runs.back().start + runs.back().rows == place.row) {
      ++runs.back().rows;
    } else {
      runs.push_back({place.chunk, place.row, 1});
    }
  }
  return gather(pool, runs);
}

ChunkPtr gather(BufferPool& pool, std::span<const RowRun> runs) {
  if (runs.size() == 1) return slice(*runs[0].chunk, runs[0].start, runs[0].rows);
  auto out = std::make_shared<Chunk>();
  for (const RowRun& run : runs) out->rows += run.rows;
  if (runs.empty()) return out;
  // Arms that were merged elsewhere still have the order that they were merged by, others never had one.
  const bool ordered =
      std::all_of(runs.begin(), runs.end(), [](const RowRun& run) { return !(*run.chunk)->order.empty(); });
  bool indirect = false;
  for (size_t c = 0; c < (*runs[0].chunk)->columns.size(); ++c) {
    out->columns.push_back(gather_column(pool, runs, c, out->rows));
    indirect |= out->columns.back().indirect();
  }
  std::vector<const Ids*> parts;
  std::vector<int64_t> starts, counts;
  int64_t at = 0;
  for (const RowRun& run : runs) {
    const Chunk& from = **run.chunk;
    out->skipped |= from.skipped;
    parts.push_back(&from.ids);
    starts.push_back(run.start);
    counts.push_back(run.rows);
    if (ordered)
      for (int64_t i = 0; i < run.rows; ++i) out->order.push_back(from.order[static_cast<size_t>(run.start + i)]);
    for (const Issue& issue : from.issues) {
      if (issue.row < run.start || issue.row >= run.start + run.rows) continue;
      out->issues.push_back(issue);
      out->issues.back().row += at - run.start;
    }
    at += run.rows;
    if (indirect && (out->keep.empty() || out->keep.back() != *run.chunk)) out->keep.push_back(*run.chunk);
  }
  if (!Ids::join_ranges(pool, parts, starts, counts, out->ids)) {
    std::vector<uint64_t> words, one;
    std::vector<uint32_t> offsets{0};
    for (const RowRun& run : runs) {
      for (int64_t i = 0; i < run.rows; ++i) {
        (*run.chunk)->ids.words(run.start + i, one);
        words.insert(words.end(), one.begin(), one.end());
        offsets.push_back(static_cast<uint32_t>(words.size()));
      }
    }
    out->ids = Ids::dense(pool, words, offsets);
  }
  return out;
}

size_t row_bytes(const Chunk& chunk, int64_t row) {
  size_t bytes = 0;
  for (const Column& column : chunk.columns) {
    const TensorRef ref = column.at(row);
    if (!ref.data) continue;
    bytes += ref.byte_size();
    if (!is_string(ref.elem)) continue;
    for (int64_t i = 0; i < ref.size(); ++i) bytes += static_cast<const StringRef*>(ref.data)[i].size;
  }
  return bytes;
}

ChunkPtr isolate(BufferPool& pool, const Chunk& chunk, int64_t row) {
  auto out = std::make_shared<Chunk>();
  out->rows = 1;
  auto arena = std::make_shared<Arena>(pool);
  for (const Column& column : chunk.columns) {
    TensorRef ref = column.at(row);
    Column copy =
        column.fixed() ? make_fixed_column(pool, column.row, 1) : make_ref_column(pool, ref.elem, ref.rank, 1);
    if (const void* from = ref.data) {
      ref.data = column.fixed() ? copy.data : arena->allocate(ref.byte_size());
      std::memcpy(ref.data, from, ref.byte_size());
      for (int64_t i = 0; is_string(ref.elem) && i < ref.size(); ++i) {
        StringRef& text = static_cast<StringRef*>(ref.data)[i];
        auto* chars = static_cast<char*>(arena->allocate(text.size));
        std::copy_n(text.data, text.size, chars);
        text.data = chars;
      }
    }
    if (!column.fixed()) copy.refs[0] = ref;
    out->columns.push_back(std::move(copy));
  }
  std::vector<uint64_t> words;
  chunk.ids.words(row, words);
  const uint32_t offsets[] = {0, static_cast<uint32_t>(words.size())};
  out->ids = Ids::dense(pool, words, offsets);
  for (const Issue& issue : chunk.issues)
    if (issue.row == row) out->issues.push_back({0, issue.column, issue.value});
  if (!chunk.order.empty()) out->order = {chunk.order[static_cast<size_t>(row)]};
  if (!arena->empty()) out->keep.push_back(arena);
  return out;
}

ChunkPtr append_identity(BufferPool& pool, const ChunkPtr& chunk, std::span<const uint64_t> appended) {
  auto out = std::make_shared<Chunk>(*chunk);
  std::vector<uint64_t> words, one;
  std::vector<uint32_t> offsets{0};
  for (int64_t row = 0; row < chunk->rows; ++row) {
    chunk->ids.words(row, one);
    words.insert(words.end(), one.begin(), one.end());
    words.push_back(appended.size() == 1 ? appended[0] : appended[static_cast<size_t>(row)]);
    offsets.push_back(static_cast<uint32_t>(words.size()));
  }
  out->ids = Ids::dense(pool, words, offsets);
  return out;
}

}  // namespace zephon
