// Chunks: gathering rows of several, and rows that are kept from epoch to epoch.

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/flow/kept_rows.h"

namespace zephon {
namespace {

constexpr uint64_t kStream = 7;

// Rows first, first + 1, ... of one source, in pass `pass`, with the column x = 10 * position.
ChunkPtr numbers(BufferPool& pool, uint64_t first, int64_t rows, uint64_t pass = 0) {
  auto chunk = std::make_shared<Chunk>();
  chunk->rows = rows;
  const uint64_t head[] = {kStream, 0, 0}, tail[] = {pass};
  chunk->ids = Ids::range(head, first, tail);
  TensorRef row;
  row.elem = Elem::I64;
  Column column = make_fixed_column(pool, row, rows);
  for (int64_t i = 0; i < rows; ++i) reinterpret_cast<int64_t*>(column.data)[i] = 10 * (static_cast<int64_t>(first) + i);
  chunk->columns.push_back(std::move(column));
  return chunk;
}

int64_t x(const Chunk& chunk, int64_t row) { return *static_cast<const int64_t*>(chunk.columns[0].at(row).data); }

TEST(Chunk, GathersAnOrderOnlyWhereAllRowsHaveOne) {
  BufferPool pool(1 << 20);
  auto ordered = std::make_shared<Chunk>(*numbers(pool, 0, 3));
  ordered->order = {5, 6, 7};
  const ChunkPtr a = ordered, b = numbers(pool, 8, 2);
  const RowPlace mixed[] = {{&a, 2}, {&b, 0}, {&a, 1}}, same[] = {{&a, 2}, {&a, 0}};
  const ChunkPtr without = gather(pool, mixed), with = gather(pool, same);
  EXPECT_TRUE(without->order.empty());
  EXPECT_EQ(with->order, (std::vector<uint64_t>{7, 5}));
  EXPECT_EQ(x(*without, 0), 20);
  EXPECT_EQ(x(*without, 1), 80);
  EXPECT_EQ(without->id(2).words, (std::vector<uint64_t>{kStream, 0, 0, 1, 0}));
}

// A window of 100,000 rows that ends is one chunk of thousands of rows after another, cut into pieces.
TEST(Chunk, APieceOfShuffledRowsHasOneOwner) {
  BufferPool pool(1 << 20);
  auto shuffled = std::make_shared<Chunk>(*numbers(pool, 0, 6));
  auto text = std::make_shared<int>(1);
  for (int i = 0; i < 6; ++i) shuffled->keep.push_back(text);
  const ChunkPtr whole = shuffled;
  const ChunkPtr piece = slice(whole, 1, 2);
  EXPECT_EQ(piece->keep.size(), 1u);
  EXPECT_EQ(slice(piece, 1, 1)->keep, piece->keep);
  shuffled.reset();
  EXPECT_EQ(text.use_count(), 7);
  EXPECT_EQ(x(*piece, 1), 20);
}

TEST(KeptRows, AnswersInAnotherPassForWhatWasMadeAndForWhatWasDropped) {
  BufferPool pool(1 << 20), kept_pool(1 << 20);
  KeptRows kept(kept_pool, 1);
  const ChunkPtr first = numbers(pool, 0, 4), made = slice(first, 1, 2);  // a filter dropped rows 0 and 3
  EXPECT_EQ(rows_made(*first, *made), (std::vector<int64_t>{-1, 0, 1, -1}));
  kept.add(*first, *made, rows_made(*first, *made));
  const ChunkPtr again = numbers(pool, 2, 4, /*pass=*/1);
  const std::vector<KeptRows::Answer> answers = kept.find(*again);
  ASSERT_TRUE(answers[0].known && answers[0].row);
  EXPECT_EQ(x(*answers[0].row, 0), 20);
  EXPECT_TRUE(answers[1].known && !answers[1].row);
  EXPECT_FALSE(answers[2].known || answers[3].known);
}

TEST(KeptRows, PassesAreToldApartWhereTheirNumberIsUnknown) {
  BufferPool pool(1 << 20), kept_pool(1 << 20);
  KeptRows kept(kept_pool, 0);
  const ChunkPtr first = numbers(pool, 0, 2);
  kept.add(*first, *first, rows_made(*first, *first));
  EXPECT_TRUE(kept.find(*first)[1].known);
  EXPECT_FALSE(kept.find(*numbers(pool, 0, 2, 1))[1].known);
}

TEST(KeptRows, KeepsWhatFitsAndNothingElse) {
  constexpr size_t kLimit = 16 << 10;
  BufferPool pool(1 << 20), kept_pool(kLimit);
  KeptRows kept(kept_pool, 0);
  const ChunkPtr all = numbers(pool, 0, 1000);
  kept.add(*all, *all, rows_made(*all, *all));
  EXPECT_LE(kept_pool.peak(), kLimit);
  const auto answers = kept.find(*all);
  const auto known = std::count_if(answers.begin(), answers.end(), [](const auto& answer) { return answer.known; });
  EXPECT_GT(known, 10);
  EXPECT_LT(known, 100);
}

}  // namespace
}  // namespace zephon
