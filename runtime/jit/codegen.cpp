#include "runtime/jit/codegen.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>

#include "runtime/jit/link.h"

namespace zephon {

Target::Target(const std::string& cpu) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  bool has_avx2 = host.lookup("avx2") && host.lookup("fma"),
       has_avx512 = host.lookup("avx512f") && host.lookup("avx512vl");
  std::string name = llvm::sys::getHostCPUName().str(), features;
  // A name asks for less than the host has, never for more.
  if (cpu == "x86-64" || (cpu == "avx2" && has_avx2) || (cpu == "avx512" && has_avx512)) {
    name = cpu == "x86-64" ? "x86-64" : cpu == "avx2" ? "x86-64-v3" : "x86-64-v4";
    has_avx2 &= cpu != "x86-64";
    has_avx512 &= cpu == "avx512";
  } else {
    for (const auto& feature : host)
      features += fmt::format("{}{}{}", features.empty() ? "" : ",", feature.second ? "+" : "-", feature.first().str());
  }
  has_fma_ = has_avx2;
  vector_bits_ = has_avx512 ? 512 : has_avx2 ? 256 : 128;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple.str(), error_);
  if (!target) return;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a * b + c keeps both roundings
  machine_.reset(target->createTargetMachine(triple.str(), name, features, options, llvm::Reloc::PIC_,
                                             llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
}

Target::~Target() = default;

std::string Target::assembly(llvm::Module& module) const {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) return {};
  passes.run(module);
  return text.str().str();
}

bool Target::link(llvm::Module& module, CodeImage& image, std::string& error) const {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "no object files for this processor";
    return false;
  }
  passes.run(module);
  return link_image(llvm::StringRef(object.data(), object.size()), image, error);
}

}  // namespace zephon
