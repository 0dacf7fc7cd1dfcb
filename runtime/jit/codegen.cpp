// Machine code of one module as an image: all sections of the object file laid out one behind the other, calls among
// them resolved. What LLVM calls for help (rounding, half precision on old processors) goes through a slot that the
// loader fills.
#include "runtime/jit/codegen.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>

#include <cstring>
#include <map>

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
  namespace elf = llvm::ELF;
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "no object files for this processor";
    return false;
  }
  passes.run(module);

  llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernel");
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!parsed) {
    error = llvm::toString(parsed.takeError());
    return false;
  }
  const llvm::object::ObjectFile& file = **parsed;
  auto align_to = [&](uint64_t alignment) {
    image.bytes.resize((image.bytes.size() + alignment - 1) / alignment * alignment);
  };
  std::map<uint64_t, uint64_t> place;  // section -> offset in the image
  for (const llvm::object::SectionRef& section : file.sections()) {
    llvm::object::ELFSectionRef elf_section(section);
    if (!(elf_section.getFlags() & elf::SHF_ALLOC) || section.getSize() == 0) continue;
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (name && name->starts_with(".eh_frame")) continue;  // nothing is thrown through a kernel
    if ((elf_section.getFlags() & elf::SHF_WRITE) || elf_section.getType() == elf::SHT_NOBITS) {
      error = fmt::format("section `{}` is writable", name ? name->str() : "");
      return false;
    }
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) {
      error = llvm::toString(contents.takeError());
      return false;
    }
    align_to(std::max<uint64_t>(64, section.getAlignment().value()));
    place[section.getIndex()] = image.bytes.size();
    image.bytes.insert(image.bytes.end(), contents->bytes_begin(), contents->bytes_end());
  }

  std::map<std::string, uint64_t> stubs;
  /// A jump through a slot that the loader fills: `jmp *slot(%rip)`, 6 bytes, then the slot.
  auto stub_of = [&](const std::string& name) {
    auto [at, fresh] = stubs.emplace(name, 0);
    if (fresh) {
      align_to(16);
      at->second = image.bytes.size();
      const uint8_t jump[16] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};
      image.bytes.insert(image.bytes.end(), jump, jump + 16);
      image.imports.push_back({name, static_cast<uint32_t>(at->second + 8)});
    }
    return at->second;
  };

  for (const llvm::object::SectionRef& section : file.sections()) {
    auto relocated = section.getRelocatedSection();
    if (!relocated || *relocated == file.section_end() || !place.contains((*relocated)->getIndex())) continue;
    uint64_t base = place.at((*relocated)->getIndex());
    for (const llvm::object::RelocationRef& relocation : section.relocations()) {
      auto symbol = relocation.getSymbol();
      llvm::Expected<int64_t> addend = llvm::object::ELFRelocationRef(relocation).getAddend();
      if (symbol == file.symbol_end() || !addend) {
        llvm::consumeError(addend.takeError());
        error = "relocation without symbol";
        return false;
      }
      llvm::Expected<llvm::StringRef> name = symbol->getName();
      auto home = symbol->getSection();
      llvm::Expected<uint64_t> value = symbol->getValue();
      if (!name || !home || !value) {
        llvm::consumeError(name.takeError());
        llvm::consumeError(home.takeError());
        llvm::consumeError(value.takeError());
        error = "damaged symbol";
        return false;
      }
      uint64_t target = *home == file.section_end() ? stub_of(name->str()) : place.at((*home)->getIndex()) + *value;
      uint64_t at = base + relocation.getOffset();
      uint64_t type = relocation.getType();
      int64_t distance = static_cast<int64_t>(target) + *addend - static_cast<int64_t>(at);
      if (type == elf::R_X86_64_PC32 || type == elf::R_X86_64_PLT32) {
        auto narrow = static_cast<int32_t>(distance);
        std::memcpy(image.bytes.data() + at, &narrow, 4);
      } else if (type == elf::R_X86_64_PC64) {
        std::memcpy(image.bytes.data() + at, &distance, 8);
      } else {
        error = fmt::format("relocation of type {} to `{}`", type, name->str());
        return false;
      }
    }
  }
  for (const llvm::object::SymbolRef& symbol : file.symbols()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    auto home = symbol.getSection();
    llvm::Expected<uint64_t> value = symbol.getValue();
    if (!name || !home || !value || *home == file.section_end()) continue;
    if (*name != "run" && *name != "scratch") continue;
    auto offset = static_cast<uint32_t>(place.at((*home)->getIndex()) + *value);
    (*name == "run" ? image.run_offset : image.scratch_offset) = offset;
  }
  return true;
}

}  // namespace zephon
