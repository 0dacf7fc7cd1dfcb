#pragma once
// Numbers for generators: the same for the same seed, on any machine.

#include <cstdint>
#include <vector>

namespace zephon {

class Random {
 public:
  // Mixed, or the numbers of one seed would be those of the next, one place further on.
  explicit Random(uint64_t seed) : state_(mixed(seed + 1)) {}
  // In [low, high].
  int64_t in(int64_t low, int64_t high) {
    state_ += 0x9e3779b97f4a7c15u;
    return low + static_cast<int64_t>(mixed(state_) % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(in(0, static_cast<int64_t>(list.size()) - 1))];
  }

 private:
  static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace zephon
