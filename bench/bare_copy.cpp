// memcpy from DRAM to DRAM: the roof for a kernel that reads and writes memory once.
//
// usage: bare_copy [MIB] [SECONDS]   prints one JSON object; bytes_per_second counts bytes read plus bytes written
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256) << 20;
  const double limit = argc > 2 ? std::strtod(argv[2], nullptr) : 2.0;
  std::vector<uint8_t> from(bytes, 1), to(bytes, 2);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 1e9, all = 0;
  int rounds = 0;
  while (all < limit) {
    from[static_cast<size_t>(rounds) % bytes] ^= 1;  // each copy differs, so that none can be left out
    const auto start = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    all = std::chrono::duration<double>(Clock::now() - begin).count();
    ++rounds;
  }
  const double moved = 2.0 * static_cast<double>(bytes);
  fmt::print(R"({{"bytes": {}, "rounds": {}, "best_bytes_per_second": {:.0f}, "mean_bytes_per_second": {:.0f}, "check": {}}})"
             "\n", bytes, rounds, moved / best, moved * rounds / all, to[bytes / 2]);
  return 0;
}
