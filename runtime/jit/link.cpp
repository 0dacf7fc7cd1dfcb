// LLVM's JITLink, made to link into an image instead of into this process: its memory is the image, at a made-up
// address; what it would look up in the process gets an address out of reach, so that every call of it goes through the
// global offset table, whose entries are the import slots that the loader fills.
#include "runtime/jit/link.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace zephon {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;

constexpr uint64_t kBase = 1 << 16;               // of the image
constexpr uint64_t kOutside = uint64_t{1} << 46;  // of what is imported

bool is_entry(llvm::StringRef name) { return name == "run" || name == "scratch"; }

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

class ImageContext final : public jitlink::JITLinkContext {
 public:
  ImageContext(CodeImage& image, std::string& error)
      : JITLinkContext(nullptr), image_(image), error_(error), memory_(image) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }

  void notifyFailed(llvm::Error failed) override { error_ = llvm::toString(std::move(failed)); }

  void lookup(const LookupMap& symbols, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> go_on) override {
    jitlink::AsyncLookupResult found;
    for (const auto& symbol : symbols) found[symbol.first] = {ExecutorAddr(kOutside), llvm::JITSymbolFlags::Exported};
    go_on->run(std::move(found));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || !is_entry(symbol->getName())) continue;
      auto offset = static_cast<uint32_t>(symbol->getAddress().getValue() - kBase);
      (symbol->getName() == "run" ? image_.run_offset : image_.scratch_offset) = offset;
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc memory) override { memory.release(); }

  /// Only what the entries need is linked.
  jitlink::LinkGraphPassFunction getMarkLivePass(const llvm::Triple&) const override {
    return [](jitlink::LinkGraph& graph) {
      for (jitlink::Symbol* symbol : graph.defined_symbols())
        if (symbol->hasName() && is_entry(symbol->getName())) symbol->setLive(true);
      return llvm::Error::success();
    };
  }

  llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.emplace_back([this](jitlink::LinkGraph& graph) { return find_imports(graph); });
    return llvm::Error::success();
  }

 private:
  /// Absolute addresses may only be those of imports.
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
  std::string& error_;
  ImageMemory memory_;
};

}  // namespace

bool link_image(std::string_view object, CodeImage& image, std::string& error) {
  auto graph = jitlink::createLinkGraphFromObject({llvm::StringRef(object), "kernel"});
  if (!graph) {
    error = llvm::toString(graph.takeError());
    return false;
  }
  error.clear();
  jitlink::link(std::move(*graph), std::make_unique<ImageContext>(image, error));  // synchronous, as its memory is
  return error.empty();
}

}  // namespace zephon
