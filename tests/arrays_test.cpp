// npy, npz, raw: what NumPy writes is read row by row; what is broken, cut off or of another type is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/folder_test.h"

namespace zephon {
namespace {

template <class T>
std::string bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// As numpy.lib.format writes it.
std::string npy(const std::string& descr, const std::string& shape, const std::string& data, bool fortran = false,
                int version = 1) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran ? "True" : "False", shape);
  header.resize((header.size() + 12 + 64) / 64 * 64 - 12, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const uint32_t size = static_cast<uint32_t>(header.size());
  out.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return out + header + data;
}

// A zip archive; zip64 as numpy.savez writes it, with sizes in the extra field of the local header.
std::string zip(const std::vector<std::pair<std::string, std::string>>& files, bool deflated) {
  std::string out, directory;
  const auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (const auto& [name, content] : files) {
    std::string stored = content;
    if (deflated) {
      z_stream z = {};
      EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
      stored.resize(deflateBound(&z, content.size()));
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      z.avail_in = static_cast<uInt>(content.size());
      z.next_out = reinterpret_cast<Bytef*>(stored.data());
      z.avail_out = static_cast<uInt>(stored.size());
      EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
      stored.resize(stored.size() - z.avail_out);
      deflateEnd(&z);
    }
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    const auto offset = static_cast<uint32_t>(out.size());
    const auto method = static_cast<uint16_t>(deflated ? 8 : 0);
    out += "PK\x03\x04";
    for (uint16_t x : {uint16_t{45}, uint16_t{0}, method, uint16_t{0}, uint16_t{33}}) put(out, x);
    put(out, crc);
    put(out, UINT32_MAX);
    put(out, UINT32_MAX);
    put(out, static_cast<uint16_t>(name.size()));
    put(out, uint16_t{20});
    out += name;
    put(out, uint16_t{1});
    put(out, uint16_t{16});
    put(out, uint64_t{content.size()});
    put(out, uint64_t{stored.size()});
    out += stored;
    directory += "PK\x01\x02";
    for (uint16_t x : {uint16_t{45}, uint16_t{45}, uint16_t{0}, method, uint16_t{0}, uint16_t{33}}) put(directory, x);
    put(directory, crc);
    put(directory, static_cast<uint32_t>(stored.size()));
    put(directory, UINT32_MAX);  // as in large files: the size stands in the extra field
    put(directory, static_cast<uint16_t>(name.size()));
    for (uint16_t x : {uint16_t{12}, uint16_t{0}, uint16_t{0}, uint16_t{0}}) put(directory, x);
    put(directory, uint32_t{0});
    put(directory, offset);
    directory += name;
    put(directory, uint16_t{1});
    put(directory, uint16_t{8});
    put(directory, uint64_t{content.size()});
  }
  const auto begin = static_cast<uint32_t>(out.size());
  out += directory + "PK\x05\x06";
  put(out, uint32_t{0});
  put(out, static_cast<uint16_t>(files.size()));
  put(out, static_cast<uint16_t>(files.size()));
  put(out, static_cast<uint32_t>(directory.size()));
  put(out, begin);
  put(out, uint16_t{0});
  return out;
}

class ArraysTest : public FolderTest {
 protected:
  std::vector<std::string> run(const std::string& program, const std::string& field = "x") {
    return delivered(program, field);
  }
};
using Rows = std::vector<std::string>;

TEST_F(ArraysTest, ElementsOrdersVersions) {
  write("a.npy", npy("<f4", "(2, 3)", bytes<float>({1, 2, 3, 4, 5, 6.5})));
  EXPECT_EQ(run("npy(\"a.npy\", columns={x: f32[3]})"), (Rows{"1 2 3", "4 5 6.5"}));
  EXPECT_EQ(run("npy(\"a.npy\", columns={x: f32[n]})"), (Rows{"1 2 3", "4 5 6.5"}));
  EXPECT_EQ(run("npy(\"a.npy\", columns={x: f32[3]})", "index"), (Rows{"0", "1"}));
  write("big.npy", npy(">i2", "(3,)", std::string("\x00\x01\xff\xfe\x7f\xff", 6), false, 2));
  EXPECT_EQ(run("npy(\"big.npy\", columns={x: i16})"), (Rows{"1", "-2", "32767"}));
  // Column by column: x[r, i, j] at r + 2 * (i + 3 * j).
  write("f.npy",
        npy("<i4", "(2, 3, 2)", bytes<int32_t>({0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121}), true, 3));
  EXPECT_EQ(run("npy(\"f.npy\", columns={x: i32[3, 2]})"), (Rows{"0 1 10 11 20 21", "100 101 110 111 120 121"}));
  write("b.npy", npy("|b1", "(3,)", std::string("\x00\x01\x07", 3)));
  EXPECT_EQ(run("npy(\"b.npy\", columns={x: bool})"), (Rows{"0", "1", "1"}));
  write("s.npy", npy("|S3", "(2, 2)", std::string("ab\0c\0\0\0\0\0xyz", 12)));
  EXPECT_EQ(run("npy(\"s.npy\", columns={x: str[2]})"), (Rows{"ab c", " xyz"}));
  write("u.npy", npy("<U2", "(2,)", bytes<uint32_t>({'a', 0x1f600, 0xe9, 0})));
  EXPECT_EQ(run("npy(\"u.npy\", columns={x: str})"), (Rows{"a\xf0\x9f\x98\x80", "\xc3\xa9"}));
  write("none.npy", npy("<f8", "(0, 2)", ""));
  EXPECT_EQ(run("npy(\"none.npy\", columns={x: f64[2]})"), Rows{});
  // Numbers without a sign are wider numbers with one.
  write("w.npy", npy(">u4", "(2,)", std::string("\x00\x00\x01\x02\xff\xff\xff\xff", 8)));
  EXPECT_EQ(run("npy(\"w.npy\", columns={x: i64})"), (Rows{"258", "4294967295"}));
  // Signalling NaN becomes the one NaN.
  write("nan.npy", npy("<f4", "(1,)", bytes<uint32_t>({0xffa00001})));
  EXPECT_EQ(run("npy(\"nan.npy\", columns={x: f32})"), Rows{"nan"});
}

TEST_F(ArraysTest, SeveralFilesAndShuffle) {
  write("1.npy", npy("<i8", "(3,)", bytes<int64_t>({1, 2, 3})));
  write("2.npy", npy("<i8", "(0,)", ""));
  write("3.npy", npy("<i8", "(2,)", bytes<int64_t>({4, 5})));
  EXPECT_EQ(run("npy(\"*.npy\", columns={x: i64})"), (Rows{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(run("npy(\"*.npy\", columns={x: i64}) | skip(3)  | f = path.name", "f"), (Rows{"3.npy", "3.npy"}));
  Rows shuffled = run("npy(\"*.npy\", columns={x: i64}) | shuffle(seed=1)");
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, (Rows{"1", "2", "3", "4", "5"}));
}

TEST_F(ArraysTest, OtherTypesAreRefused) {
  const auto refused = [&](const std::string& content, const std::string& columns) {
    write("a.npy", content);
    Rows rows = run("npy(\"a.npy\", columns={" + columns + "})");
    const std::string begin = "R0402 `" + folder_ + "/a.npy` ";
    EXPECT_EQ(rows.size(), 1u);
    if (rows.empty()) return std::string();
    EXPECT_TRUE(rows[0].starts_with(begin)) << rows[0];
    return rows[0].substr(std::min(begin.size(), rows[0].size()));
  };
  EXPECT_EQ(refused(npy("<f8", "(1, 3)", bytes<double>({1, 2, 3})), "x: f32[3]"),
            "has rows of `f64[3]`, the program declares `x: f32[3]`");
  EXPECT_EQ(refused(npy("<f4", "(1, 3)", bytes<float>({1, 2, 3})), "x: f32[2]"),
            "has rows of `f32[3]`, the program declares `x: f32[2]`");
  EXPECT_EQ(refused(npy("|O", "(1,)", "xxxxxxxx"), "x: i64"),
            "holds elements of `|O`: no type of NumPy that is known here");
  EXPECT_EQ(refused(npy("|O8", "(1,)", "xxxxxxxx"), "x: i64"),
            "holds elements of `|O8`: Python objects cannot be read; save numbers or text");
  EXPECT_EQ(refused(npy("<u4", "(1,)", "xxxx"), "x: i32"), "has rows of `i64`, the program declares `x: i32`");
  EXPECT_EQ(refused(npy("<c8", "(1,)", "xxxxxxxx"), "x: f32"), "holds elements of `<c8`: there is no such type here");
  EXPECT_EQ(refused(npy("<f4", "()", "xxxx"), "x: f32"),
            "holds a single number: a first axis is needed, whose rows are the samples");
  EXPECT_EQ(refused(npy("<f4", "(2,)", "xxxx"), "x: f32"),
            "is cut off: 8 bytes of numbers are declared, and 4 are there");
  EXPECT_EQ(refused(npy("<f4", "(4611686018427387904, 4)", "xxxx"), "x: f32[4]"),
            "has a broken header: it is too large");
  EXPECT_EQ(refused(npy("<f4", "(1,)", "xxxx", false, 4), "x: f32"),
            "is a .npy file of version 4, and 1 to 3 are known");
  EXPECT_EQ(refused("no array at all", "x: f32"), "is no .npy file");
}

TEST_F(ArraysTest, Npz) {
  const std::string x = npy("<f4", "(2, 2)", bytes<float>({1, 2, 3, 4})),
                    y = npy("<i8", "(2,)", bytes<int64_t>({7, 8}));
  for (const bool deflated : {false, true}) {
    write("a.npz", zip({{"x.npy", x}, {"y.npy", y}, {"z.npy", npy("|O8", "(1,)", "")}}, deflated));
    const std::string source = "npz(\"a.npz\", columns={y: i64, x: f32[2]})";
    EXPECT_EQ(run(source), (Rows{"1 2", "3 4"})) << deflated;
    EXPECT_EQ(run(source + " | shuffle() | on_error(skip)", "y").size(), 2u);
    EXPECT_EQ(run("npz(\"a.npz\", columns={w: i64})")[0],
              "R0402 `" + folder_ + "/a.npz` has no array `w`; it has `x`, `y`, `z`");
    write("a.npz", zip({{"x.npy", x}, {"y.npy", npy("<i8", "(1,)", bytes<int64_t>({7}))}}, deflated));
    EXPECT_EQ(run(source)[0], "R0402 `" + folder_ + "/a.npz` has 1 rows in `y` and 2 in `x`");
  }
}

TEST_F(ArraysTest, Raw) {
  write("r.bin", std::string("\x01\x00\x02\x03\x02\xff\xff\x04", 8));
  EXPECT_EQ(run("raw(\"r.bin\", columns={label: u8, x: i16, z: u8})"), (Rows{"512", "-1"}));
  EXPECT_EQ(run("raw(\"r.bin\", columns={label: u8, x: i16, z: u8}, byte_order=big)"), (Rows{"2", "-1"}));
  EXPECT_EQ(run("raw(\"r.bin\", columns={x: u8[2]}, offset=4)"), (Rows{"2 255", "255 4"}));
  EXPECT_EQ(run("raw(\"r.bin\", columns={x: u8[3]}, offset=4)")[0],
            "R0402 `" + folder_ + "/r.bin` has 4 bytes behind byte 4, which is no multiple of the 3 bytes of a record");
}

// Cut off or changed anywhere: rows, or a refusal; never anything else.
TEST_F(ArraysTest, HostileBytes) {
  const std::string x = npy("<f4", "(2, 2)", bytes<float>({1, 2, 3, 4})),
                    y = npy("<i8", "(2,)", bytes<int64_t>({7, 8}), true);
  const std::pair<std::string, std::string> cases[] = {
      {x, "npy(\"h\", columns={x: f32[2]}) | on_error(skip)"},
      {zip({{"x.npy", x}, {"y.npy", y}}, false), "npz(\"h\", columns={x: f32[2], y: i64}) | on_error(skip)"},
      {zip({{"x.npy", x}, {"y.npy", y}}, true), "npz(\"h\", columns={x: f32[2], y: i64}) | on_error(skip)"}};
  for (const auto& [good, program] : cases) {
    write("h", good);
    ASSERT_EQ(run(program), (Rows{"1 2", "3 4"}));
    for (size_t cut = 0; cut < good.size(); cut += 3) {
      write("h", good.substr(0, cut));
      const Rows rows = run(program);
      ASSERT_EQ(rows.size(), 1u) << cut;
      EXPECT_TRUE(rows[0].starts_with("R0402 ")) << rows[0];
    }
    for (size_t at = 0; at < good.size(); ++at)
      for (const char flip : {'\x01', '\xff'}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        write("h", bad);
        const Rows rows = run(program);
        EXPECT_TRUE(rows.size() <= 3) << at;
      }
  }
}

}  // namespace
}  // namespace zephon
