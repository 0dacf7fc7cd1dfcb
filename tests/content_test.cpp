// Text files, plain and compressed: what stands in them is read whole, from any row, or refused with its place.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "ops/row_source.h"
#include "tests/folder_test.h"

namespace zephon {
namespace {

std::string gzip(std::string_view content, int level = 6) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, content.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string zstandard(std::string_view content, bool checksum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), content.data(), content.size()));
  ZSTD_freeCCtx(context);
  return out;
}

// Lines of different lengths, that do not compress to nothing.
std::string some_lines(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += std::to_string(i);
    for (uint32_t n = random() % 40; n > 0; --n) out += static_cast<char>('a' + random() % 26);
    out += '\n';
  }
  return out;
}

class ContentTest : public FolderTest {
 protected:
  std::vector<std::string> run(const std::string& program, const std::string& field = "text") {
    return delivered(program, field);
  }
};

using Lines = std::vector<std::string>;

TEST_F(ContentTest, LinesEndAsTheyDo) {
  write("a.txt", "\xef\xbb\xbfone\r\ntwo\n\nfour\rstill\nlast");
  write("b.txt", "");
  write("c.txt", "\n");
  EXPECT_EQ(run("text_lines(\"*.txt\")"), (Lines{"one", "two", "", "four\rstill", "last", ""}));
  EXPECT_EQ(run("text_lines(\"*.txt\")", "line"), (Lines{"1", "2", "3", "4", "5", "1"}));
  EXPECT_EQ(run("text_lines(\"*.txt\") | skip(4) | take(1) | p = path.name", "p"), Lines{"a.txt"});
}

TEST_F(ContentTest, CompressedFilesAreTheirContent) {
  const std::string a = some_lines(5000, 1), b = "odd end", c = some_lines(700, 2);
  write("plain", a + b + c);
  write("members.gz", gzip(a) + gzip(b, 0) + gzip("") + gzip(c, 9) + std::string(512, '\0'));
  write("frames.zst", zstandard(a) + zstandard(b) + std::string("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11) +
                          zstandard("") + zstandard(c, false));
  write("named.txt", zstandard(gzip("no more than one layer")));
  const Lines plain = run("text_lines(\"plain\")");
  EXPECT_EQ(plain.size(), 5700u);
  EXPECT_EQ(run("text_lines(\"members.gz\")"), plain);
  EXPECT_EQ(run("text_lines(\"frames.zst\")"), plain);
  const std::string shuffled = "shuffle(seed=3) | take(300)";
  EXPECT_EQ(run("text_lines(\"members.gz\") | " + shuffled), run("text_lines(\"plain\") | " + shuffled));
  EXPECT_EQ(run("text_lines(\"frames.zst\") | " + shuffled), run("text_lines(\"plain\") | " + shuffled));
}

TEST_F(ContentTest, TablesAreCompressedToo) {
  write("t.csv.gz", gzip("\xef\xbb\xbf") + gzip("a,b\n1,\"x\ny\"\n2,z") + gzip("z\n\"3,never closed\n4,w\n"));
  EXPECT_EQ(run("csv(\"t.csv.gz\", columns={a: i64, b: str}) | take(2)", "b"), (Lines{"x\ny", "zz"}));
  EXPECT_EQ(run("csv(\"t.csv.gz\", columns={a: i64, b: str}, max_line_bytes=16) | on_error(skip)", "b"),
            (Lines{"x\ny", "zz", "w"}));
}

// Restart points: any row of a large stream is found from a place near it, in whatever order rows are asked for.
TEST_F(ContentTest, AnyRowOfALargeStream) {
  const std::string content = some_lines(400000, 3);
  Lines lines;
  for (size_t at = 0; at < content.size(); at = content.find('\n', at) + 1)
    lines.push_back(content.substr(at, content.find('\n', at) - at));
  const size_t half = content.size() / 2;
  write("one.gz", gzip(content, 1));
  write("some.zst", zstandard(content.substr(0, half)) + zstandard(content.substr(half)));
  write("plain", content);
  for (const std::string name : {"one.gz", "some.zst", "plain"}) {
    Node node;
    Failure failure;
    RowSource source("lines", "line", {folder_ + "/" + name}, 1 << 20, next_line);
    ASSERT_TRUE(source.open(node, nullptr, failure)) << failure.message;
    ASSERT_EQ(source.size(), lines.size());
    std::mt19937 random(5);
    std::vector<std::unique_ptr<char[]>> memory;
    NativeCall allocator;
    allocator.context = &memory;
    allocator.allocate = [](void* context, size_t bytes) -> void* {
      auto* blocks = static_cast<std::vector<std::unique_ptr<char[]>>*>(context);
      blocks->push_back(std::make_unique<char[]>(bytes + 1));
      return blocks->back().get();
    };
    for (int i = 0; i < 60; ++i) {
      const uint64_t row = i == 0 ? lines.size() - 1 : random() % lines.size();
      TensorRef column;
      source.read(row, {&column, 1}, allocator);
      ASSERT_EQ(static_cast<StringRef*>(column.data)->view(), lines[row]) << name << " row " << row;
    }
  }
}

// Cut off or changed anywhere, a compressed file is refused with its name and place, or is what it was.
TEST_F(ContentTest, DamageIsRefused) {
  const std::string content = some_lines(60, 4);
  const std::string good_gzip = gzip(content) + gzip("more\n"), good_zstd = zstandard(content) + zstandard("more\n");
  write("good", content + "more\n");
  const Lines lines = run("text_lines(\"good\")");
  int refused = 0;
  for (const std::string& good : {good_gzip, good_zstd}) {
    const size_t first = good == good_gzip ? gzip(content).size() : zstandard(content).size();
    for (size_t cut = 4; cut < good.size(); ++cut) {
      write("x", good.substr(0, cut));
      const Lines found = run("text_lines(\"x\")");
      if (cut == first) continue;  // a whole member less is a shorter file: nothing can tell
      ASSERT_EQ(found.size(), 1u) << cut;
      EXPECT_TRUE(found[0].starts_with("R0406 `" + folder_ + "/x` is damaged at byte ")) << cut << " " << found[0];
    }
    for (size_t at = 4; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      write("x", bad);
      const Lines found = run("text_lines(\"x\")");
      if (found == lines) continue;  // a time stamp, a name
      ASSERT_EQ(found.size(), 1u) << at;
      EXPECT_TRUE(found[0].starts_with("R0406 ")) << at << " " << found[0];
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  write("x", good_gzip + "garbage");
  EXPECT_EQ(run("text_lines(\"x\")").size(), 1u);
  write("x", good_zstd + "garbage");
  EXPECT_EQ(run("text_lines(\"x\")").size(), 1u);
}

TEST_F(ContentTest, LongAndBrokenLinesFailAlone) {
  write("a.txt", "ok\ntoo long a line\n\xff\xfe\nabcdef\r\nabcde\rf\n");
  const std::string source = "text_lines(\"a.txt\", max_line_bytes=6)";
  EXPECT_EQ(run(source + " | on_error(skip)"), (Lines{"ok", "abcdef"}));
  EXPECT_EQ(run(source + " | skip(1)")[0], "R0403 the line is longer than 6 bytes (max_line_bytes)");
  EXPECT_EQ(run(source + " | skip(2)")[0], "R0404 the line is not UTF-8 from byte 0 on");
  EXPECT_EQ(run(source + " | drop text", "line"), (Lines{"1", "2", "3", "4", "5"}));
}

// A file that shrinks below a run fails its rows; it never gives others.
TEST_F(ContentTest, AFileThatChangesFails) {
  const std::string path = write("a.txt", some_lines(40000, 6));
  Node node;
  Failure failure;
  RowSource source("lines", "line", {path}, 1 << 20, next_line);
  ASSERT_TRUE(source.open(node, nullptr, failure));
  std::ofstream(path, std::ios::trunc) << "short\n";
  char buffer[256];
  NativeCall allocator;
  allocator.context = buffer;
  allocator.allocate = [](void* context, size_t) { return context; };
  StringRef text;
  TensorRef column;
  column.data = &text;
  source.read(30000, {&column, 1}, allocator);
  EXPECT_EQ(text.view(), kGoneRow);
}

}  // namespace
}  // namespace zephon
