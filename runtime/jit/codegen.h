#pragma once
// LLVM IR -> optimised machine code -> image.

#include <memory>
#include <string>

#include "runtime/kernels/code_image.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace zephon {

/// The processor to compile for: the host, or what KernelOptions::cpu names.
class Target {
 public:
  /// `cpu` as KernelOptions::cpu; an unknown name, or one that the host does not reach, is the host.
  explicit Target(const std::string& cpu);
  ~Target();
  bool has_fma() const { return has_fma_; }
  unsigned vector_bits() const { return vector_bits_; }
  const std::string& error() const { return error_; }
  void optimize(llvm::Module& module) const;
  std::string assembly(llvm::Module& module) const;
  /// False with `error` where the code cannot be made position independent (our bug).
  bool link(llvm::Module& module, CodeImage& image, std::string& error) const;

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::string error_;
  bool has_fma_ = false;
  unsigned vector_bits_ = 128;
};

}  // namespace zephon
