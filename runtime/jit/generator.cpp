// What the library gives to the loader: one factory.
#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "runtime/jit/codegen.h"
#include "runtime/jit/emit.h"

namespace zephon {
namespace {

class LlvmGenerator final : public KernelGenerator {
 public:
  explicit LlvmGenerator(const KernelOptions& options) : target_(options.cpu) {}

  bool generate(const Graph& graph, const KernelGroup& group, CodeImage& image, std::string& error) override {
    llvm::LLVMContext context;
    KernelProgram program(graph, group, target_.has_fma());
    std::unique_ptr<llvm::Module> module = make_module(context, program, error);
    if (!module) return false;
    image = {};
    image.shape_exprs = program.shape_exprs;
    for (int32_t local : program.resample_exprs) image.resample_exprs.push_back(local);
    target_.optimize(*module);
    return target_.link(*module, image, error);
  }

  KernelListing listing(const Graph& graph, const KernelGroup& group) override {
    llvm::LLVMContext context;
    KernelProgram program(graph, group, target_.has_fma());
    std::string error;
    std::unique_ptr<llvm::Module> module = make_module(context, program, error);
    if (!module) return {error, {}, {}};
    KernelListing out;
    out.loop_nest = program.listing();
    target_.optimize(*module);
    llvm::raw_string_ostream(out.llvm_ir) << *module;
    out.assembly = target_.assembly(*module);
    return out;
  }

 private:
  std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context, KernelProgram& program, std::string& error) {
    if (!target_.error().empty()) {
      error = target_.error();
      return nullptr;
    }
    if (!program.build()) {
      error = program.error();
      return nullptr;
    }
    std::unique_ptr<llvm::Module> module = emit_module(context, program, target_.vector_bits());
    llvm::raw_string_ostream out(error);
    if (llvm::verifyModule(*module, &out)) return nullptr;
    return module;
  }

  Target target_;
};

}  // namespace
}  // namespace zephon

extern "C" __attribute__((visibility("default"))) zephon::KernelGenerator* zephon_make_kernel_generator(
    const zephon::KernelOptions& options);

zephon::KernelGenerator* zephon_make_kernel_generator(const zephon::KernelOptions& options) {
  return new zephon::LlvmGenerator(options);
}
