// records and decode_raw, called as the runtime calls them.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "graph/op_def.h"
#include "ops/all_ops.h"

namespace zephon {
namespace {

struct Arena {
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  static void* allocate(void* self, size_t bytes) {
    auto& blocks = static_cast<Arena*>(self)->blocks;
    return blocks.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
  }
};

class RecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("records_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::ofstream(path_, std::ios::binary) << "0123456789abc";
    call_.allocate = Arena::allocate;
    call_.context = &arena_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<std::string> read_all(Attrs attrs) {
    Node node;
    node.attrs = std::move(attrs);
    node.attrs.set("path", path_.string());
    Failure failure;
    const auto source = all_ops().find("records")->kernel.open(node, {}, failure);
    if (!source) return {failure.code};
    std::vector<std::string> pieces;
    for (uint64_t i = 0; i < source->size(); ++i) {
      TensorRef columns[2];
      source->read(i, columns, call_);
      EXPECT_EQ(*static_cast<int64_t*>(columns[0].data), static_cast<int64_t>(i));
      pieces.emplace_back(static_cast<StringRef*>(columns[1].data)->view());
    }
    return pieces;
  }

  std::filesystem::path path_;
  Arena arena_;
  NativeCall call_;
};

Attrs attrs_of(int64_t size, int64_t offset, std::optional<int64_t> step) {
  Attrs attrs;
  attrs.set("size", size);
  attrs.set("offset", offset);
  if (step) attrs.set("step", *step);
  return attrs;
}

TEST_F(RecordsTest, FollowEachOtherWithoutStep) {
  EXPECT_EQ(read_all(attrs_of(4, 0, {})), (std::vector<std::string>{"0123", "4567", "89ab"}));
}

TEST_F(RecordsTest, OverlapWithASmallerStep) {
  EXPECT_EQ(read_all(attrs_of(6, 1, 3)), (std::vector<std::string>{"123456", "456789", "789abc"}));
}

TEST_F(RecordsTest, FileShorterThanOneRecordHasNone) { EXPECT_TRUE(read_all(attrs_of(14, 0, {})).empty()); }

TEST_F(RecordsTest, ExactFitIsOneRecord) { EXPECT_EQ(read_all(attrs_of(13, 0, {})).size(), 1u); }

TEST_F(RecordsTest, MissingFileIsNamed) {
  std::filesystem::remove(path_);
  EXPECT_EQ(read_all(attrs_of(4, 0, {})), std::vector<std::string>{"R0401"});
}

TEST_F(RecordsTest, DecodeRawReadsLittleEndianAndRefusesOtherLengths) {
  const OpDef* op = all_ops().find("decode_raw");
  Expr expr;
  expr.op = op;
  expr.attrs.set("type", Elem::I16);
  expr.attrs.set("count", int64_t{3});
  call_.expr = &expr;
  const char bytes[] = {1, 0, -1, -1, 0, 2, 9};
  StringRef text{bytes, 6};
  TensorRef in, out;
  in.data = &text;
  in.elem = Elem::Bytes;
  call_.inputs = {&in, 1};
  call_.output = &out;
  ASSERT_TRUE(op->kernel.native(call_));
  EXPECT_EQ(out.rank, 1);
  EXPECT_EQ(out.shape[0], 3);
  const auto* values = static_cast<int16_t*>(out.data);
  EXPECT_EQ(std::vector<int16_t>(values, values + 3), (std::vector<int16_t>{1, -1, 512}));
  text.size = 7;
  out = {};
  EXPECT_FALSE(op->kernel.native(call_));
}

TEST_F(RecordsTest, DecodeRawMakesNansCanonical) {
  const OpDef* op = all_ops().find("decode_raw");
  Expr expr;
  expr.op = op;
  expr.attrs.set("type", Elem::F32);
  expr.attrs.set("count", int64_t{4});
  call_.expr = &expr;
  const uint32_t bits[] = {0xffc12345, 0x7f800001, 0xff800000, 0x80000000};
  StringRef text{reinterpret_cast<const char*>(bits), sizeof bits};
  TensorRef in, out;
  in.data = &text;
  in.elem = Elem::Bytes;
  call_.inputs = {&in, 1};
  call_.output = &out;
  ASSERT_TRUE(op->kernel.native(call_));
  uint32_t got[4];
  std::memcpy(got, out.data, sizeof got);
  EXPECT_EQ(std::vector<uint32_t>(got, got + 4),
            (std::vector<uint32_t>{0x7fc00000, 0x7fc00000, 0xff800000, 0x80000000}));
}

}  // namespace
}  // namespace zephon
