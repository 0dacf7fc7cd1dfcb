// The bare loop that image pipelines are measured against: reads each file whole and decodes it whole to RGB with
// libjpeg-turbo's defaults (islow DCT, fancy upsampling), does nothing else.
//
// usage: bare_decode DIR [--threads N] [--epochs N] [--first N]
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
#include <ctime>
#include <filesystem>
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

/// Decodes into `pixels`, which grows to the largest picture and is reused.
bool decode(const std::vector<uint8_t>& bytes, std::vector<uint8_t>& pixels) {
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
  const size_t row_bytes = static_cast<size_t>(info.output_width) * 3;
  if (pixels.size() < row_bytes * info.output_height) pixels.resize(row_bytes * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + row_bytes * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir;
  size_t threads = 1, epochs = 1, first = SIZE_MAX;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    size_t* number = arg == "--threads" ? &threads : arg == "--epochs" ? &epochs : arg == "--first" ? &first : nullptr;
    if (number == nullptr) {
      dir = arg;
    } else if (++i < argc) {
      *number = std::strtoull(argv[i], nullptr, 10);
    }
  }
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir, error)) {
    if (entry.path().extension() == ".jpg") files.push_back(entry.path().string());
  }
  if (files.empty()) {
    fmt::print(stderr, "usage: bare_decode DIR [--threads N] [--epochs N] [--first N]: no *.jpg below `{}`\n", dir);
    return 64;
  }
  std::sort(files.begin(), files.end());
  if (files.size() > first) files.resize(first);

  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<double> cpu(threads), decode_cpu(threads);
  const auto work = [&](size_t self) {
    std::vector<uint8_t> bytes, pixels;
    const double start = thread_cpu();
    for (size_t i = next++; i < files.size() * epochs; i = next++) {
      const std::string& path = files[i % files.size()];
      const bool read = read_file(path, bytes);
      const double before = thread_cpu();
      if (!read || !decode(bytes, pixels)) {
        fmt::print(stderr, "{}: cannot be decoded\n", path);
        failed = true;
        return;
      }
      decode_cpu[self] += thread_cpu() - before;
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
