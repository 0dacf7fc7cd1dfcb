// The only file with PassBuilder: its headers are slow to compile.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>

#include "runtime/jit/codegen.h"
#include "runtime/jit/emit.h"

namespace zephon {

void Target::optimize(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple().str());
  module.setDataLayout(machine_->createDataLayout());
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  // Kernels are bound by memory or by long chains; more copies of a loop body only cost compile time.
  tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = false;
  tuning.MergeFunctions = false;
  llvm::PassBuilder builder(machine_.get(), tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  // No call is a library function: code must not gain calls to memset or the like, nor lose its exactness to a libm.
  llvm::TargetLibraryInfoImpl library(machine_->getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(call_graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, call_graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  mark_streams(module);
}

}  // namespace zephon
