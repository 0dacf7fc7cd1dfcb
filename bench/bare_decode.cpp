// The bare loop that image pipelines are measured against: reads each file whole and decodes it whole to RGB with
// libjpeg-turbo's defaults (islow DCT, fancy upsampling), does nothing else.
//
// usage: bare_decode DIR [--threads N] [--epochs N] [--first N] [--boxes FILE] [--write BYTES]
// --boxes: of each picture only a box is wanted, by lines `top left height width path`: rows below it are not decoded,
// rows above and columns beside it are skipped as the library can (whole iMCU columns). --write: so many bytes are
// written for each sample, into memory for 64 samples that is used again and again.
// Prints one JSON object: samples, seconds (wall), cpu_seconds (all threads, reading included), decode_cpu_seconds
// (decoding alone), samples_per_second. A file that libjpeg-turbo refuses ends the program with code 2.
#include <fmt/format.h>
#include <jpeglib.h>  // needs <cstdio> before it

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

double thread_cpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf back;
};

[[noreturn]] void on_error(j_common_ptr info) { std::longjmp(reinterpret_cast<ErrorManager*>(info->err)->back, 1); }
void on_message(j_common_ptr) {}

bool read_file(const std::string& path, std::vector<uint8_t>& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  std::fseek(file, 0, SEEK_END);
  bytes.resize(static_cast<size_t>(std::ftell(file)));
  std::rewind(file);
  const bool whole = std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
  std::fclose(file);
  return whole;
}

struct Box {
  std::string path;
  JDIMENSION top = 0, left = 0, height = 0, width = 0;  ///< all of the picture where `height` is 0
};

/// Decodes into `pixels`, which grows to the largest picture and is reused.
bool decode(const std::vector<uint8_t>& bytes, std::vector<uint8_t>& pixels, const Box& box) {
  jpeg_decompress_struct info;
  ErrorManager errors;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.output_message = on_message;
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  JDIMENSION end = info.output_height;
  if (box.height != 0) {
    JDIMENSION left = box.left, width = box.width;
    jpeg_crop_scanline(&info, &left, &width);
    if (box.top > 0) jpeg_skip_scanlines(&info, box.top);
    end = std::min(end, box.top + box.height);
  }
  const JDIMENSION begin = info.output_scanline;
  const size_t row_bytes = static_cast<size_t>(info.output_width) * 3;
  if (pixels.size() < row_bytes * (end - begin)) pixels.resize(row_bytes * (end - begin));
  while (info.output_scanline < end) {
    JSAMPROW row = pixels.data() + row_bytes * (info.output_scanline - begin);
    jpeg_read_scanlines(&info, &row, 1);
  }
  if (end == info.output_height) jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

}  // namespace

std::vector<Box> read_boxes(const std::string& path) {
  std::vector<Box> boxes;
  std::ifstream file(path);
  for (Box box; file >> box.top >> box.left >> box.height >> box.width && std::getline(file >> std::ws, box.path);)
    boxes.push_back(box);
  return boxes;
}

int main(int argc, char** argv) {
  std::string dir, boxes;
  size_t threads = 1, epochs = 1, first = SIZE_MAX, written = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    size_t* number = arg == "--threads"  ? &threads
                     : arg == "--epochs" ? &epochs
                     : arg == "--first"  ? &first
                     : arg == "--write"  ? &written
                                         : nullptr;
    if (arg == "--boxes" && i + 1 < argc) {
      boxes = argv[++i];
    } else if (number == nullptr) {
      dir = arg;
    } else if (++i < argc) {
      *number = std::strtoull(argv[i], nullptr, 10);
    }
  }
  std::vector<Box> files;
  if (!boxes.empty()) {
    files = read_boxes(boxes);
  } else {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir, error))
      if (entry.path().extension() == ".jpg") files.push_back({entry.path().string()});
    std::ranges::sort(files, {}, &Box::path);
  }
  if (files.empty()) {
    fmt::print(stderr,
               "usage: bare_decode DIR [--threads N] [--epochs N] [--first N] [--boxes FILE] [--write BYTES]: no *.jpg "
               "below `{}`\n",
               dir);
    return 64;
  }
  if (files.size() > first) files.resize(first);

  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<double> cpu(threads), decode_cpu(threads);
  const auto work = [&](size_t self) {
    std::vector<uint8_t> bytes, pixels, batch(64 * written);
    const double start = thread_cpu();
    for (size_t i = next++; i < files.size() * epochs; i = next++) {
      const Box& box = files[i % files.size()];
      const bool read = read_file(box.path, bytes);
      const double before = thread_cpu();
      if (!read || !decode(bytes, pixels, box)) {
        fmt::print(stderr, "{}: cannot be decoded\n", box.path);
        failed = true;
        return;
      }
      decode_cpu[self] += thread_cpu() - before;
      if (written > 0) std::memset(batch.data() + i % 64 * written, static_cast<int>(i), written);
    }
    cpu[self] = thread_cpu() - start;
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> pool;
  for (size_t t = 0; t < threads; ++t) pool.emplace_back(work, t);
  for (std::thread& thread : pool) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (failed) return 2;
  double total = 0, decoding = 0;
  for (size_t t = 0; t < threads; ++t) total += cpu[t], decoding += decode_cpu[t];
  const size_t samples = files.size() * epochs;
  fmt::print(
      R"({{"samples": {}, "threads": {}, "seconds": {:.6f}, "cpu_seconds": {:.6f}, "decode_cpu_seconds": {:.6f}, )"
      R"("samples_per_second": {:.1f}}})"
      "\n",
      samples, threads, seconds, total, decoding, static_cast<double>(samples) / seconds);
  return 0;
}
