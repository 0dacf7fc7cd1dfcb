// The resize of a 280 x 280 x 3 crop to 224 x 224 x 3, both passes, per instruction set; memcpy of the input for scale.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/resample.h"

namespace zephon {
namespace {

constexpr int64_t kIn = 280, kOut = 224, kChannels = 3;

void resize(benchmark::State& state, CpuLevel level, Elem elem) {
  if (level > cpu_level()) return state.SkipWithError("not on this machine");
  auto size = static_cast<int64_t>(elem_size(elem));
  std::vector<uint8_t> in(static_cast<size_t>(kIn * kIn * kChannels * size)),
      out(static_cast<size_t>(kOut * kOut * kChannels * size));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 7 % 63);
  const ResampleGeometry geometry = ResampleGeometry::whole(kIn, kIn, kChannels, kOut, kOut);
  size_t bytes = resample_scratch_bytes(elem, geometry);
  std::unique_ptr<void, decltype(&std::free)> scratch(std::aligned_alloc(64, bytes), &std::free);
  for (auto _ : state) {
    resample_horizontal(level, elem, in.data(), kIn * kChannels * size, geometry, scratch.get());
    for (int64_t y = 0; y < kOut; ++y)
      resample_vertical(level, elem, scratch.get(), y, out.data() + y * kOut * kChannels * size);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(resize, u8_x86_64, CpuLevel::X86_64, Elem::U8);
BENCHMARK_CAPTURE(resize, u8_avx2, CpuLevel::Avx2, Elem::U8);
BENCHMARK_CAPTURE(resize, u8_avx512, CpuLevel::Avx512, Elem::U8);
BENCHMARK_CAPTURE(resize, f32, CpuLevel::X86_64, Elem::F32);

void copy(benchmark::State& state) {
  std::vector<uint8_t> in(static_cast<size_t>(kIn * kIn * kChannels)), out(in.size());
  for (auto _ : state) {
    std::memcpy(out.data(), in.data(), in.size());
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(copy);

}  // namespace
}  // namespace zephon

BENCHMARK_MAIN();
