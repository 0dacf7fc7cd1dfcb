// What compiled kernels reach: bytes per second against memcpy in DRAM, nanoseconds per sample in columns, time to
// compile.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/kernels/kernel_compiler.h"
#include "tests/sample_graph.h"

namespace {

using namespace zephon;

struct Program : SampleGraph {
  std::shared_ptr<const CompiledKernel> compile(KernelGroup::Kind kind, std::vector<ExprId> roots) {
    static auto compiler =
        make_kernel_compiler({.cpu = KernelOptions::from_environment().cpu, .cache_dir = {}, .use_cache = false});
    std::string error;
    auto kernel = compiler->compile(graph, {kind, std::move(roots), fields}, error);
    if (!kernel) {
      std::fprintf(stderr, "%s\n", error.c_str());
      std::abort();
    }
    return kernel;
  }
};

/// u8[h, w, 3] -> crop, flip, normalise -> f32[3, 224, 224]; inputs: picture, box, whether to flip.
ExprId imagenet(Program& p, int64_t size) {
  ExprId image = p.add("image", Type::tensor(Elem::U8, {Dim::unknown(), Dim::unknown(), Dim::of(3)}));
  Type box = Type::tensor(Elem::I64, {Dim::of(4)});
  box.box = {Dim::of(size), Dim::of(size)};
  ExprId x = p.call("crop", {image, p.add("box", box)});
  x = p.call("flip", {x, p.add("turn", Type::scalar(Elem::Bool))});
  x = p.call("div", {p.call("cast", {x}, attrs_of({{"to", Elem::F32}})), p.number(Elem::F32, 255)});
  x = p.call("sub", {x, p.numbers(Elem::F32, {0.485, 0.456, 0.406})});
  x = p.call("div", {x, p.numbers(Elem::F32, {0.229, 0.224, 0.225})});
  return p.call("transpose", {x}, attrs_of({{"order", std::vector<int64_t>{2, 0, 1}}}));
}

constexpr int64_t kSize = 224, kRows = 256, kColumns = 320;
constexpr int64_t kInBytes = kSize * kSize * 3, kOutBytes = kInBytes * 4;

void* aligned(size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }

/// `samples` pictures one behind the other: enough that neither source nor target is in the cache. Argument: 0 no
/// picture turned, 1 every, 2 every other.
void crop_flip_normalize(benchmark::State& state) {
  Program p;
  auto kernel = p.compile(KernelGroup::Kind::PerSample, {imagenet(p, kSize)});
  auto samples = static_cast<size_t>(state.range(1));
  auto* in = static_cast<uint8_t*>(aligned(samples * kRows * kColumns * 3));
  auto* out = static_cast<uint8_t*>(aligned(samples * kOutBytes));
  for (size_t i = 0; i < samples * kRows * kColumns * 3; ++i) in[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  std::memset(out, 1, samples * kOutBytes);
  int64_t box[4] = {10, 20, kSize, kSize};
  uint8_t turn = 0, failed = 0;
  size_t at = 0;
  for (auto _ : state) {
    turn = state.range(0) == 2 ? at & 1 : static_cast<uint8_t>(state.range(0));
    TensorRef inputs[] = {{in + at * kRows * kColumns * 3, {kRows, kColumns, 3}, 3, Elem::U8},
                          {box, {4}, 1, Elem::I64},
                          {&turn, {}, 0, Elem::Bool}};
    TensorRef output{out + at * kOutBytes, {3, kSize, kSize}, 3, Elem::F32};
    kernel->run({1, inputs, &output, &failed, nullptr});
    if (++at == samples) at = 0;
  }
  if (failed) state.SkipWithError("failed");
  state.SetBytesProcessed(state.iterations() * (kInBytes + kOutBytes));
  std::free(in);
  std::free(out);
}
BENCHMARK(crop_flip_normalize)
    ->ArgNames({"turn", "pictures"})
    ->Args({0, 400})
    ->Args({1, 400})
    ->Args({2, 400})
    ->Args({0, 1})
    ->Args({1, 1});

/// The yardstick: as many bytes read and written by memcpy, pieces of the size of one result.
void copy(benchmark::State& state) {
  auto samples = static_cast<size_t>(state.range(0));
  constexpr size_t kPiece = (kInBytes + kOutBytes) / 2;
  auto* in = static_cast<uint8_t*>(aligned(samples * kPiece));
  auto* out = static_cast<uint8_t*>(aligned(samples * kPiece));
  std::memset(in, 1, samples * kPiece);
  std::memset(out, 1, samples * kPiece);
  size_t at = 0;
  for (auto _ : state) {
    std::memcpy(out + at * kPiece, in + at * kPiece, kPiece);
    benchmark::ClobberMemory();
    if (++at == samples) at = 0;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * kPiece));
  std::free(in);
  std::free(out);
}
BENCHMARK(copy)->ArgName("pictures")->Arg(400)->Arg(1);

/// x = index * 3 + 1, x % 7 != 0 over a chunk. Argument: whether the range of index is known.
void filter_columns(benchmark::State& state) {
  Program p;
  Expr index;
  index = p.graph.expr(add_field(p.graph, all_ops(), "index", Type::scalar(Elem::I64)));
  if (state.range(0)) {
    index.attrs.set("lo", int64_t{0});
    index.attrs.set("hi", int64_t{49'999'999});
  }
  p.fields = {p.graph.add(index)};
  ExprId x = p.call("add", {p.call("mul", {p.fields[0], p.number(Elem::I64, 3)}), p.number(Elem::I64, 1)});
  ExprId keep = p.call("ne", {p.call("mod", {x, p.number(Elem::I64, 7)}), p.number(Elem::I64, 0)});
  auto kernel = p.compile(KernelGroup::Kind::Columnar, {x, keep});
  constexpr int64_t kCount = 8192;
  std::vector<int64_t> in(kCount), out(kCount);
  std::vector<uint8_t> kept(kCount), failed(kCount);
  for (int64_t i = 0; i < kCount; ++i) in[static_cast<size_t>(i)] = i * 3001;
  TensorRef inputs[] = {{in.data(), {kCount}, 1, Elem::I64}};
  TensorRef outputs[] = {{out.data(), {kCount}, 1, Elem::I64}, {kept.data(), {kCount}, 1, Elem::Bool}};
  for (auto _ : state) {
    kernel->run({kCount, inputs, outputs, failed.data(), nullptr});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}
BENCHMARK(filter_columns)->ArgName("range_known")->Arg(0)->Arg(1);

void sum_of_squares(benchmark::State& state) {
  Program p;
  ExprId x = p.add("x", Type::tensor(Elem::F32, {Dim::unknown()}));
  auto kernel = p.compile(KernelGroup::Kind::PerSample, {p.call("mean", {p.call("mul", {x, x})})});
  std::vector<float> in(16384, 0.5f);
  float out = 0;
  uint8_t failed = 0;
  TensorRef inputs[] = {{in.data(), {static_cast<int64_t>(in.size())}, 1, Elem::F32}};
  TensorRef output{&out, {}, 0, Elem::F32};
  for (auto _ : state) {
    kernel->run({1, inputs, &output, &failed, nullptr});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(in.size()));
}
BENCHMARK(sum_of_squares);

/// From nothing to a kernel: argument 0 with LLVM (library already open), 1 from the cache on disk.
void time_to_kernel(benchmark::State& state) {
  char dir[] = "/tmp/zephon_bench_XXXXXX";
  KernelOptions options{.cpu = {}, .cache_dir = mkdtemp(dir) ? dir : "", .use_cache = state.range(0) != 0};
  Program p;
  ExprId root = imagenet(p, kSize);
  std::string error;
  if (options.use_cache)
    make_kernel_compiler(options)->compile(p.graph, {KernelGroup::Kind::PerSample, {root}, p.fields}, error);
  for (auto _ : state) {
    auto kernel =
        make_kernel_compiler(options)->compile(p.graph, {KernelGroup::Kind::PerSample, {root}, p.fields}, error);
    if (!kernel) state.SkipWithError(error.c_str());
  }
  std::string remove = std::string("rm -rf ") + dir;
  if (std::system(remove.c_str()) != 0) state.SkipWithError("cannot clean up");
}
BENCHMARK(time_to_kernel)->ArgName("cached")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
