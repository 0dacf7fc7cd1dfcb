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

}  // namespace zephon
