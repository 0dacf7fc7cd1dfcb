// One fused kernel from DRAM to DRAM: crop, flip, normalise, to_chw of u8[256, 256, 3] into f32[3, 224, 224], one thread,
// against the same steps compiled one by one (what --no-optimize runs).
//
// usage: fused_kernel [PICTURES] [ROUNDS]
// Prints one JSON object: bytes_per_second (bytes read plus bytes written by the fused kernel, best round), speedup
// (time of the single steps over time of the fused kernel, best rounds), steps.
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

  void run(std::map<ExprId, TensorRef>& values, TensorRef out) {
    std::vector<TensorRef> inputs;
    for (ExprId leaf : leaves) inputs.push_back(values.at(leaf));
    uint8_t failed = 0;
    KernelCall call;
    call.inputs = inputs.data();
    call.outputs = &out;
    call.failed = &failed;
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

double best_seconds(int rounds, const std::function<void()>& body) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
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

  const Type picture = Type::tensor(Elem::U8, {Dim::of(256), Dim::of(256), Dim::of(3)});
  const size_t in_bytes = bytes_of(picture), out_bytes = bytes_of(graph.expr(out).type);
  std::vector<uint8_t> source(pictures * in_bytes), target(pictures * out_bytes), check(out_bytes);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 2654435761u >> 13);

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
      void* data = name == "image" ? static_cast<void*>(source.data() + i * in_bytes)
                                   : name == "box" ? static_cast<void*>(box) : static_cast<void*>(&turn);
      values[id] = tensor(data, name == "image" ? picture : graph.expr(id).type);
    }
  };
  const Type& type = graph.expr(out).type;
  const auto run_fused = [&] {
    for (size_t i = 0; i < pictures; ++i) {
      place(i);
      fused.run(values, tensor(target.data() + i * out_bytes, type));
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
    if (std::memcmp(check.data(), target.data() + i * out_bytes, out_bytes) != 0) fail("fused and single steps differ");
  }
  const double fused_seconds = best_seconds(rounds, run_fused);
  const double single_seconds = best_seconds(rounds, [&] {
    for (size_t i = 0; i < pictures; ++i) run_single(i, target.data() + i * out_bytes);
  });
  const double moved = static_cast<double>(pictures) * (224.0 * 224 * 3 + static_cast<double>(out_bytes));
  fmt::print(R"({{"bytes_per_second": {:.0f}, "microseconds_per_picture": {:.2f}, "speedup": {:.3f}, "steps": {}}})" "\n",
             moved / fused_seconds, 1e6 * fused_seconds / static_cast<double>(pictures),
             single_seconds / fused_seconds, steps.size());
  return 0;
}
