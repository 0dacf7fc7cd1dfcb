// One fused kernel from DRAM to DRAM: crop, flip, normalise, to_chw of u8[256, 256, 3] into f32[3, 224, 224], one
// thread, against the same steps compiled one by one (what --no-optimize runs).
//
// usage: fused_kernel [PICTURES] [ROUNDS]
// Prints one JSON object: bytes_per_second (bytes read plus bytes written by the fused kernel, best round),
// copy_bytes_per_second (the same of a memcpy of 256 MiB, its rounds between those of the kernel), speedup (time of the
// single steps over time of the fused kernel, best rounds), steps. All memory is as BufferPool gives it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/flow/memory.h"
#include "runtime/kernels/kernel_compiler.h"

namespace {

using namespace zephon;

constexpr const char* kProgram =
    "records(\"pictures\", size=196608)\n"
    "  | image = bytes.decode_raw(u8, 196608).reshape([256, 256, 3])\n"
    "  | box = image.random_crop_box(224, 224)\n"
    "  | turn = coin()\n"
    "  | out = image.crop(box).flip(turn)\n"
    "               .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()\n";

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "fused_kernel: {}\n", message);
  std::exit(2);
}

TensorRef tensor(void* data, const Type& type) {
  TensorRef ref;
  ref.data = data;
  ref.elem = type.elem;
  ref.rank = static_cast<int32_t>(type.rank());
  for (size_t i = 0; i < type.rank(); ++i) ref.shape[i] = type.shape[i].extent;
  return ref;
}

size_t bytes_of(const Type& type) { return static_cast<size_t>(type.element_count()) * elem_size(type.elem); }

// A kernel with its scratch.
struct Step {
  std::shared_ptr<const CompiledKernel> kernel;
  std::vector<ExprId> leaves;
  ExprId root;
  std::vector<uint8_t> scratch;

  void run(std::map<ExprId, TensorRef>& values, TensorRef out, bool stream = false) {
    std::vector<TensorRef> inputs;
    for (ExprId leaf : leaves) inputs.push_back(values.at(leaf));
    uint8_t failed = 0;
    KernelCall call;
    call.inputs = inputs.data();
    call.outputs = &out;
    call.failed = &failed;
    call.stream = stream;
    scratch.resize(kernel->scratch_bytes(call) + 64);
    const auto address = reinterpret_cast<uintptr_t>(scratch.data());
    call.scratch = scratch.data() + (64 - address % 64) % 64;
    kernel->run(call);
    if (failed) fail("the kernel reports a failure");
    values[root] = out;
  }
};

Step compile_step(KernelCompiler& compiler, const Graph& graph, ExprId root, std::vector<ExprId> leaves) {
  KernelGroup group;
  group.kind = KernelGroup::Kind::PerSample;
  group.roots = {root};
  group.leaves = leaves;
  std::string error;
  Step step{compiler.compile(graph, group, error), std::move(leaves), root, {}};
  if (!step.kernel) fail(error);
  return step;
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const size_t pictures = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 400;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  SourceMap sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("fused_kernel.zpl", kProgram);
  Result<Program> program = compile(sources, file, {}, all_ops(), diagnostics);
  if (!program) fail("the program does not compile");
  const Graph& graph = program->graph;

  ExprId out;
  for (NodeId id : graph.topological())
    for (const Assign& assign : graph.node(id).assigns)
      if (assign.field == "out") out = assign.expr;
  std::vector<ExprId> fields, interior;
  for (ExprId id : graph.topological(out)) {
    if (graph.expr(id).op->name == "field") {
      fields.push_back(id);
    } else if (graph.expr(id).op->name != "const") {
      interior.push_back(id);
    }
  }

  const auto compiler = make_kernel_compiler();
  Step fused = compile_step(*compiler, graph, out, fields);
  std::vector<Step> steps;
  std::vector<std::vector<uint8_t>> between;  // results of single steps, reused for every picture as a pool would
  for (ExprId id : interior) {
    std::vector<ExprId> leaves;
    for (ExprId arg : graph.expr(id).args)
      if (graph.expr(arg).op->name != "const") leaves.push_back(arg);
    steps.push_back(compile_step(*compiler, graph, id, leaves));
    between.emplace_back(id == out ? 0 : bytes_of(graph.expr(id).type));
  }

  BufferPool pool(size_t{4} << 30);
  const Type picture = Type::tensor(Elem::U8, {Dim::of(256), Dim::of(256), Dim::of(3)});
  const size_t in_bytes = bytes_of(picture), out_bytes = bytes_of(graph.expr(out).type);
  constexpr size_t kCopied = size_t{256} << 20;
  const auto memory = [&](size_t bytes, std::vector<BufferRef>& held) {
    held.push_back(pool.take(bytes));
    std::memset(held.back().data(), 1, bytes);
    return reinterpret_cast<uint8_t*>(held.back().data());
  };
  std::vector<BufferRef> held;
  uint8_t *const source = memory(pictures * in_bytes, held), *const target = memory(pictures * out_bytes, held);
  uint8_t *const copied = memory(kCopied, held), *const copy = memory(kCopied, held);
  std::vector<uint8_t> check(out_bytes);
  for (size_t i = 0; i < pictures * in_bytes; ++i) source[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  const bool stream = pool.past_caches(pictures * out_bytes);

  int64_t box[4] = {0, 0, 224, 224};
  uint8_t turn = 0;
  std::map<ExprId, TensorRef> values;
  const auto place = [&](size_t i) {
    box[0] = static_cast<int64_t>(i * 7 % 33);
    box[1] = static_cast<int64_t>(i * 11 % 33);
    turn = i % 2;
    values.clear();
    for (ExprId id : fields) {
      const std::string& name = graph.expr(id).attrs.text("name");
      void* data = name == "image" ? static_cast<void*>(source + i * in_bytes)
                   : name == "box" ? static_cast<void*>(box)
                                   : static_cast<void*>(&turn);
      values[id] = tensor(data, name == "image" ? picture : graph.expr(id).type);
    }
  };
  const Type& type = graph.expr(out).type;
  const auto run_fused = [&] {
    for (size_t i = 0; i < pictures; ++i) {
      place(i);
      fused.run(values, tensor(target + i * out_bytes, type), stream);
    }
  };
  const auto run_single = [&](size_t i, void* to) {
    place(i);
    for (size_t s = 0; s < steps.size(); ++s) {
      const bool last = steps[s].root == out;
      steps[s].run(values, tensor(last ? to : between[s].data(), graph.expr(steps[s].root).type));
    }
  };
  run_fused();
  for (size_t i = 0; i < pictures; i += 17) {
    run_single(i, check.data());
    if (std::memcmp(check.data(), target + i * out_bytes, out_bytes) != 0) fail("fused and single steps differ");
  }
  double fused_seconds = 1e9, copy_seconds = 1e9;
  for (int i = 0; i < rounds; ++i) {
    copy_seconds = std::min(copy_seconds, seconds_of([&] {
                              copied[static_cast<size_t>(i)] ^= 1;  // so that no copy can be left out
                              std::memcpy(copy, copied, kCopied);
                            }));
    fused_seconds = std::min(fused_seconds, seconds_of(run_fused));
  }
  double single_seconds = 1e9;
  for (int i = 0; i < (rounds + 1) / 2; ++i)
    single_seconds = std::min(single_seconds, seconds_of([&] {
                                for (size_t p = 0; p < pictures; ++p) run_single(p, target + p * out_bytes);
                              }));
  const double moved = static_cast<double>(pictures) * (224.0 * 224 * 3 + static_cast<double>(out_bytes));
  fmt::print(R"({{"bytes_per_second": {:.0f}, "copy_bytes_per_second": {:.0f}, "microseconds_per_picture": {:.2f}, )"
             R"("speedup": {:.3f}, "steps": {}, "check": {}}})"
             "\n",
             moved / fused_seconds, 2.0 * kCopied / copy_seconds, 1e6 * fused_seconds / static_cast<double>(pictures),
             single_seconds / fused_seconds, steps.size(), copy[kCopied / 2]);
  return 0;
}
