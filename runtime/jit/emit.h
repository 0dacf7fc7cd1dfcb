#pragma once
// Loops over scalar code -> LLVM IR.

#include <memory>

#include "runtime/jit/lower.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace zephon {

/// A module with `run` and, where the program needs scratch memory, `scratch` (see CodeImage). `prefer_width` is the
/// widest vector to use, in bits.
std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, KernelProgram& program, unsigned prefer_width);

/// After optimisation: lets the stores of aligned vectors that emit_module() meant for it go past the caches. (The
/// vectors are those of LLVM's loop vectoriser, which makes none of stores that are marked before.)
void mark_streams(llvm::Module& module);

}  // namespace zephon
