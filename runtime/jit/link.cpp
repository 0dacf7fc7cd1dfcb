// LLVM ORC, made to link into an image instead of into this process: its memory is the image, at a
// made-up address; what it would look up in the process gets an address out of reach, so that every call of it goes
// through the global offset table, whose entries are the import slots that the loader fills.
#include "runtime/jit/link.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace zephon {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
using llvm::orc::ExecutorAddr;

constexpr uint64_t kBase = 1 << 16;               // of the image
constexpr uint64_t kOutside = uint64_t{1} << 46;  // of what is imported

class ImageMemory final : public jitlink::JITLinkMemoryManager {
 public:
  explicit ImageMemory(CodeImage& image) : image_(image) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction done) override {
    jitlink::BasicLayout layout(graph);
    uint64_t size = 0;
    for (auto& [group, segment] : layout.segments()) {
      size = llvm::alignTo(size, std::max(segment.Alignment, llvm::Align(64)));
      segment.Addr = ExecutorAddr(kBase + size);
      size += segment.ContentSize + segment.ZeroFillSize;
    }
    image_.bytes.assign(size, 0);
    for (auto& [group, segment] : layout.segments())
      segment.WorkingMem = reinterpret_cast<char*>(image_.bytes.data()) + (segment.Addr.getValue() - kBase);
    if (llvm::Error failed = layout.apply())
      done(std::move(failed));
    else
      done(std::make_unique<Allocation>());
  }

  void deallocate(std::vector<FinalizedAlloc> all, OnDeallocatedFunction done) override {
    for (FinalizedAlloc& each : all) each.release();
    done(llvm::Error::success());
  }

 private:
  struct Allocation final : InFlightAlloc {
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override { done(FinalizedAlloc(ExecutorAddr(kBase))); }
  };

  CodeImage& image_;
};

/// Only what the entries need is linked, and its absolute addresses may only be those of imports.
class ImagePlugin final : public orc::ObjectLinkingLayer::Plugin {
 public:
  explicit ImagePlugin(CodeImage& image) : image_(image) {}

  void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.emplace_back([this](jitlink::LinkGraph& graph) { return find_imports(graph); });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  llvm::Error find_imports(jitlink::LinkGraph& graph) {
    using namespace llvm::BitmaskEnumDetail;
    for (jitlink::Section& section : graph.sections())
      if (!section.empty() && (section.getMemProt() & llvm::orc::MemProt::Write) != llvm::orc::MemProt::None)
        return problem(fmt::format("section `{}` is writable", section.getName().str()));
    for (jitlink::Block* block : graph.blocks()) {
      for (const jitlink::Edge& edge : block->edges()) {
        const std::string name = edge.getTarget().hasName() ? edge.getTarget().getName().str() : "";
        if (edge.getKind() == jitlink::x86_64::Pointer64 && edge.getTarget().isExternal()) {
          image_.imports.push_back(
              {name, static_cast<uint32_t>((block->getAddress() + edge.getOffset()).getValue() - kBase)});
        } else if (!edge.isKeepAlive() && (edge.getTarget().isExternal() || is_absolute(edge.getKind()))) {
          return problem(
              fmt::format("relocation of kind {} to `{}`", jitlink::x86_64::getEdgeKindName(edge.getKind()), name));
        }
      }
    }
    return llvm::Error::success();
  }

  static bool is_absolute(jitlink::Edge::Kind kind) {
    using namespace jitlink::x86_64;
    return kind == Pointer64 || kind == Pointer32 || kind == Pointer32Signed || kind == Pointer16 || kind == Pointer8;
  }

  static llvm::Error problem(const std::string& text) {
    return llvm::make_error<llvm::StringError>(text, llvm::inconvertibleErrorCode());
  }

  CodeImage& image_;
};

/// Whatever the code asks for is there, out of reach.
class Outside final : public orc::DefinitionGenerator {
 public:
  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& library, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& names) override {
    orc::SymbolMap symbols;
    for (const auto& [name, flags] : names)
      if (*name != "scratch") symbols[name] = {ExecutorAddr(kOutside), llvm::JITSymbolFlags::Exported};
    return library.define(orc::absoluteSymbols(std::move(symbols)));
  }
};

}  // namespace

bool link_image(std::string_view object, CodeImage& image, std::string& error) {
  ImageMemory memory(image);
  orc::ExecutionSession session(std::make_unique<orc::UnsupportedExecutorProcessControl>());
  error.clear();
  auto report = [&](llvm::Error failed) { error += (error.empty() ? "" : "; ") + llvm::toString(std::move(failed)); };
  session.setErrorReporter(report);
  {
    orc::ObjectLinkingLayer layer(session, memory);
    layer.addPlugin(std::make_shared<ImagePlugin>(image));
    orc::JITDylib& kernel = session.createBareJITDylib("kernel");
    kernel.addGenerator(std::make_unique<Outside>());
    auto offset_of = [&](const char* name, orc::SymbolLookupFlags flags) {
      auto found = session.lookup({{&kernel, orc::JITDylibLookupFlags::MatchAllSymbols}},
                                  orc::SymbolLookupSet(session.intern(name), flags));
      if (!found) {
        report(found.takeError());
        return CodeImage::kNone;
      }
      if (found->empty()) return CodeImage::kNone;
      return static_cast<uint32_t>(found->begin()->second.getAddress().getValue() - kBase);
    };
    if (llvm::Error failed =
            layer.add(kernel, llvm::MemoryBuffer::getMemBuffer({llvm::StringRef(object), "kernel"}, false))) {
      report(std::move(failed));
    } else {
      image.run_offset = offset_of("run", orc::SymbolLookupFlags::RequiredSymbol);
      image.scratch_offset = offset_of("scratch", orc::SymbolLookupFlags::WeaklyReferencedSymbol);
    }
    if (llvm::Error failed = session.endSession()) report(std::move(failed));
  }
  return error.empty();
}

}  // namespace zephon
