#include <fmt/format.h>
#include <jpeglib.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/random.h"
#include "tests/wide_programs.h"

namespace zephon {
namespace {

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string jpeg(int height, int width, Random& random, bool gray) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = gray ? 1 : 3;
  info.in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 80, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(static_cast<size_t>(width * info.input_components));
  while (info.next_scanline < info.image_height) {
    for (unsigned char& x : row) x = static_cast<unsigned char>(random.in(0, 255));
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  std::free(out);
  return bytes;
}

std::string npy(const std::string& type, const std::string& shape, const std::string& content) {
  std::string head = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  head.resize((10 + head.size()) / 64 * 64 + 64 - 11, ' ');
  head += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(head.size() & 255);
  out += static_cast<char>(head.size() >> 8);
  return out + head + content;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Stored, not compressed.
std::string zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, directory;
  for (const auto& [name, content] : entries) {
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    const auto at = static_cast<uint32_t>(out.size()), size = static_cast<uint32_t>(content.size());
    std::string common;
    for (const uint16_t x : {20, 0, 0, 0, 0x21}) append(common, x);
    append(common, crc);
    append(common, size);
    append(common, size);
    append(common, static_cast<uint16_t>(name.size()));
    append(common, uint16_t{0});
    out += "PK\x03\x04" + common + name + content;
    directory += std::string("PK\x01\x02\x14\x00", 6) + common;
    for (const uint16_t x : {0, 0, 0}) append(directory, x);
    append(directory, uint32_t{0});
    append(directory, at);
    directory += name;
  }
  const auto at = static_cast<uint32_t>(out.size());
  out += directory + "PK\x05\x06";
  for (const uint16_t x : {0, 0}) append(out, x);
  for (int i = 0; i < 2; ++i) append(out, static_cast<uint16_t>(entries.size()));
  append(out, static_cast<uint32_t>(directory.size()));
  append(out, at);
  append(out, uint16_t{0});
  return out;
}

}  // namespace

void write_wide_data(const std::string& folder) {
  Random random(7);
  const std::string at = folder + "/";
  write(at + "table.csv",
        "p,q,s,o\n1,0.5,a,3\n2,-1.25,b 12,\n-3,nan,\"x, "
        "y\",7\nnone,2,Ab-7,1\n5,0,,\n0,1e3,\"a\"\"b\",x\n7,3.5\n4,-0.0,abc,2\n"
        "6,inf,z9,0\n1,0.1,\xc3\xa9t\xc3\xa9,4\n");
  write(at + "lines_0.jsonl",
        "{\"p\": 3, \"r\": {\"q\": 1, \"u\": \"a1\"}, \"t\": [1, 2, 3], \"w\": [0.5, 2], \"ll\": [[1], [2, 3]], "
        "\"tags\": [\"x\", \"b2\"]}\n"
        "{\"r\": {\"q\": -2}, \"t\": [], \"w\": [1, -1], \"ll\": [[0.25, 4]]}\n"
        "{\"p\": null, \"r\": {\"q\": 5, \"u\": null}, \"t\": [7], \"w\": [0, 0], \"ll\": [[], [1.5]], \"tags\": []}\n"
        "{\"p\": 1,\n"
        "{\"p\": 2, \"r\": {}, \"t\": [4, 4], \"w\": [3, 4], \"ll\": [[9], [8], [7]], \"tags\": [\"y\"]}\n");
  write(at + "lines_1.jsonl",
        "{\"p\": 0, \"r\": {\"q\": 0, \"u\": \"b\"}, \"t\": [0, -5], \"w\": [1.5, 2.5], \"ll\": [[1, 2]], \"tags\": "
        "[\"a\", \"b\", \"c\"]}\n"
        "{\"p\": \"x\", \"r\": {\"q\": 9, \"u\": \"c3\"}, \"t\": 7, \"w\": [1], \"ll\": [[5]], \"tags\": null}\n"
        "{\"p\": -4, \"r\": {\"q\": 3, \"u\": \"\"}, \"t\": [2, 2, 2, 2], \"w\": [-0.5, 8], \"ll\": [[3], [1, 1]], "
        "\"tags\": [\"7\"]}\n"
        "{\"r\": {\"q\": 4, \"u\": \"dd\"}, \"t\": [6, 1], \"w\": [2, 2], \"ll\": [[-1], [-2]]}\n");
  write(at + "labels.csv", "k,name,w\n0,zero,0.5\n1,one,1.5\n2,two,-2\n3,three,0\n5,five,5.25\n");
  write(at + "text_0.txt", "a1 b2\n\n12\nx/y.jpg\r\nbad \xff line\n");
  write(at + "text_1.txt", "Ab-7\n  spaces  \n\xc3\x89t\xc3\xa9 3\n0");
  for (const char* name : {"a.bin", "b.bin"}) {
    std::string records;
    for (int i = 0; i < 4 * 7; ++i) records += static_cast<char>(random.in(i % 7 ? 0 : -3, i % 2 ? 6 : 1));
    write(at + name, records);
  }
  for (int file = 0; file < 2; ++file) {
    std::string pixels;
    const int rows = file == 0 ? 3 : 2;
    for (int i = 0; i < rows * 5 * 6 * 3; ++i) pixels += static_cast<char>(random.in(0, 255));
    write(fmt::format("{}image_{}.npy", at, file), npy("|u1", fmt::format("{}, 5, 6, 3", rows), pixels));
  }
  std::string floats, integers;
  for (int i = 0; i < 6 * 4; ++i) append(floats, 0.25f * static_cast<float>(random.in(-9, 9)));
  for (int i = 0; i < 6; ++i) append(integers, random.in(-5, 9));
  write(at + "set.npz", zip({{"x.npy", npy("<f4", "6, 4", floats)}, {"y.npy", npy("<i8", "6,", integers)}}));
  std::filesystem::create_directories(at + "photos/cat");
  std::filesystem::create_directories(at + "photos/dog");
  write(at + "photos/cat/a1.jpg", jpeg(17, 24, random, false));
  write(at + "photos/cat/b2.jpg", jpeg(33, 11, random, false));
  const std::string whole = jpeg(40, 32, random, false);
  write(at + "photos/dog/c.jpg", whole.substr(0, whole.size() / 4 * 3));  // good down to some row
  write(at + "photos/dog/d 4.jpg", jpeg(12, 12, random, true));
  write(at + "photos/dog/e.jpg", "no picture");
}

}  // namespace zephon
