#pragma once
// The compiler of kernels as the driver sees it: the cache first, and the library with LLVM only where the cache has
// nothing.

#include <memory>
#include <string>

#include "graph/kernel.h"
#include "runtime/kernels/code_image.h"

namespace zephon {

/// Thread-safe. Opens nothing until the first compile() or listing().
class CachingCompiler : public KernelCompiler {
 public:
  /// Why the cache on disk is not used, or "".
  virtual std::string warning() const = 0;
};

std::unique_ptr<CachingCompiler> make_kernel_compiler(KernelOptions options = KernelOptions::from_environment());

}  // namespace zephon
