// compile(): group -> key (text) -> memory of this process, or disk, or the generator -> image -> executable pages.
#include "runtime/kernels/kernel_compiler.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "runtime/kernels/kernel_cache.h"
#include "runtime/kernels/kernel_group.h"

namespace zephon {
namespace {

constexpr const char* kLibraryName = "libzephon_jit.so";
constexpr const char* kFactoryName = "zephon_make_kernel_generator";

std::string read_build_id(const char* notes, size_t size) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    size_t name = at + sizeof note, desc = name + ((note.n_namesz + 3) & ~3u);
    if (desc + note.n_descsz > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string hex;
      for (size_t i = 0; i < note.n_descsz; ++i) hex += fmt::format("{:02x}", static_cast<uint8_t>(notes[desc + i]));
      return hex;
    }
    at = desc + ((note.n_descsz + 3) & ~3u);
  }
  return {};
}

/// Of the running program (where the operators' kernels are), or "".
std::string program_build_id() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (const ElfW(Phdr)& p = info->dlpi_phdr[i]; p.p_type == PT_NOTE) {
            std::string found = read_build_id(reinterpret_cast<const char*>(info->dlpi_addr + p.p_vaddr), p.p_memsz);
            if (!found.empty()) *static_cast<std::string*>(out) = found;
          }
        return 1;  // the first object is the program
      },
      &id);
  return id;
}

/// Of a library on disk, without loading it, or "".
std::string file_build_id(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string id;
  ElfW(Ehdr) header;
  if (pread(fd, &header, sizeof header, 0) == sizeof header && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
    for (int i = 0; i < header.e_phnum && id.empty(); ++i) {
      ElfW(Phdr) p;
      auto at = static_cast<off_t>(header.e_phoff + static_cast<size_t>(i) * sizeof p);
      if (pread(fd, &p, sizeof p, at) != sizeof p || p.p_type != PT_NOTE || p.p_filesz > 65536) continue;
      std::string notes(p.p_filesz, '\0');
      if (pread(fd, notes.data(), notes.size(), static_cast<off_t>(p.p_offset)) == static_cast<ssize_t>(notes.size()))
        id = read_build_id(notes.data(), notes.size());
    }
  close(fd);
  return id;
}

/// Beside the program, or in ../lib of it.
std::string library_path() {
  char buffer[4096];
  ssize_t n = readlink("/proc/self/exe", buffer, sizeof buffer);
  if (n <= 0) return {};
  std::string dir(buffer, static_cast<size_t>(n));
  dir.resize(dir.rfind('/'));
  for (const std::string& place : {dir + "/", dir + "/../lib/", dir + "/../lib/zephon/"})
    if (access((place + kLibraryName).c_str(), R_OK) == 0) return place + kLibraryName;
  return {};
}

/// What the processor says of itself, as far as code generation depends on it.
std::string cpu_identity() {
  std::string text;
  unsigned a = 0, b = 0, c = 0, d = 0;
  auto leaf = [&](unsigned number, unsigned sub) {
    if (!__get_cpuid_count(number, sub, &a, &b, &c, &d)) a = b = c = d = 0;
  };
  leaf(0, 0);
  text += fmt::format("{:x}.{:x}.{:x}", b, c, d);
  leaf(1, 0);  // ebx tells the core that was asked: not part of it
  text += fmt::format(".{:x}.{:x}.{:x}", a, c, d);
  leaf(7, 0);
  text += fmt::format(".{:x}.{:x}.{:x}", b, c, d);
  leaf(7, 1);
  text += fmt::format(".{:x}", a);
  leaf(0x80000001, 0);
  text += fmt::format(".{:x}.{:x}", c, d);
  return text;
}

/// Pages with one image, executable and no longer writable.
class ExecutableCode {
 public:
  ~ExecutableCode() {
    if (base_) munmap(base_, size_);
  }
  ExecutableCode() = default;
  ExecutableCode(const ExecutableCode&) = delete;
  ExecutableCode& operator=(const ExecutableCode&) = delete;

  bool load(const CodeImage& image, std::string& error) {
    size_ = (image.bytes.size() + 4095) & ~size_t{4095};
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail("mmap", error);
    base_ = static_cast<uint8_t*>(memory);
    std::memcpy(base_, image.bytes.data(), image.bytes.size());
    for (const CodeImage::Import& import : image.imports) {
      void* address = import_address(import.name);
      if (!address || import.slot + 8 > image.bytes.size()) {
        error = fmt::format("kernel asks for unknown function `{}`", import.name);
        return false;
      }
      std::memcpy(base_ + import.slot, &address, 8);
    }
    if (mprotect(base_, size_, PROT_READ | PROT_EXEC) != 0) return fail("mprotect", error);
    return true;
  }
  const uint8_t* at(uint32_t offset) const { return base_ + offset; }

 private:
  static bool fail(const char* what, std::string& error) {
    error = fmt::format("no executable memory: {}: {}", what, std::strerror(errno));
    return false;
  }
  uint8_t* base_ = nullptr;
  size_t size_ = 0;
};

class LoadedKernel : public CompiledKernel {
 public:
  bool load(const Graph& graph, const KernelGroup& group, const CodeImage& image, std::string& error) {
    GroupExprs exprs(graph, group);
    for (int32_t local : image.resample_exprs) {
      const ResampleKernel* kernel = graph.expr(exprs.order[static_cast<size_t>(local)]).op->kernel.resample;
      functions_.push_back(reinterpret_cast<void*>(kernel->scratch_bytes));
      functions_.push_back(reinterpret_cast<void*>(kernel->horizontal));
      functions_.push_back(reinterpret_cast<void*>(kernel->vertical));
    }
    // Shapes that the code asks for, and those that they depend on, arguments before users.
    if (!image.shape_exprs.empty()) {
      std::vector<bool> needed(exprs.order.size());
      for (int32_t local : image.shape_exprs) needed[static_cast<size_t>(local)] = true;
      for (size_t i = exprs.order.size(); i-- > 0;)
        if (needed[i] && !exprs.is_leaf(exprs.order[i]))
          for (ExprId arg : graph.expr(exprs.order[i]).args) needed[static_cast<size_t>(exprs.local.at(arg))] = true;
      std::vector<int32_t> step_of(exprs.order.size(), -1);
      for (size_t i = 0; i < exprs.order.size(); ++i) {
        if (!needed[i]) continue;
        step_of[i] = static_cast<int32_t>(steps_.size());
        ShapeStep& step = steps_.emplace_back();
        step.expr = graph.expr(exprs.order[i]);
        if (auto leaf = exprs.leaf.find(exprs.order[i]); leaf != exprs.leaf.end())
          step.leaf = leaf->second;
        else
          for (ExprId arg : step.expr.args) step.args.push_back(step_of[static_cast<size_t>(exprs.local.at(arg))]);
      }
      for (int32_t local : image.shape_exprs) wanted_.push_back(step_of[static_cast<size_t>(local)]);
    }
    if (!code_.load(image, error)) return false;
    run_ = reinterpret_cast<RunFunction>(code_.at(image.run_offset));
    if (image.scratch_offset != CodeImage::kNone)
      scratch_ = reinterpret_cast<ScratchFunction>(code_.at(image.scratch_offset));
    return true;
  }

  void run(const KernelCall& call) const override {
    with_context(call, [&](const KernelContext* context) {
      if (context)
        run_(&call, context);
      else if (call.failed)
        std::memset(call.failed, 1, static_cast<size_t>(call.count));
    });
  }

  size_t scratch_bytes(const KernelCall& call) const override {
    if (!scratch_) return 0;
    int64_t bytes = 0;
    with_context(call, [&](const KernelContext* context) {
      if (context) bytes = scratch_(&call, context);
    });
    return static_cast<size_t>(bytes);
  }

 private:
  using RunFunction = void (*)(const KernelCall*, const KernelContext*);
  using ScratchFunction = int64_t (*)(const KernelCall*, const KernelContext*);
  struct ShapeStep {
    Expr expr;
    int32_t leaf = -1;
    std::vector<int32_t> args;
  };

  /// Calls `use` with the context, or with null where an interior shape cannot be (the sample fails).
  template <class F>
  void with_context(const KernelCall& call, F&& use) const {
    KernelContext context{nullptr, functions_.data()};
    if (wanted_.empty()) {
      use(&context);
      return;
    }
    std::vector<TensorRef> shapes(steps_.size());
    std::vector<TensorRef> args;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const ShapeStep& step = steps_[i];
      if (step.leaf >= 0) {
        shapes[i] = call.inputs[step.leaf];
      } else if (step.expr.constant) {
        const Value& value = *step.expr.constant;
        shapes[i].elem = value.elem();
        shapes[i].rank = static_cast<int32_t>(value.rank());
        std::copy(value.shape().begin(), value.shape().end(), shapes[i].shape);
        shapes[i].data = const_cast<uint8_t*>(value.bytes().data());  // read only
      } else {
        args.clear();
        for (int32_t arg : step.args) args.push_back(shapes[static_cast<size_t>(arg)]);
        if (!runtime_shape(step.expr, args, shapes[i])) {
          use(nullptr);
          return;
        }
      }
    }
    std::vector<int64_t> extents;
    for (int32_t step : wanted_)
      extents.insert(extents.end(), shapes[static_cast<size_t>(step)].shape,
                     shapes[static_cast<size_t>(step)].shape + kMaxRank);
    context.shapes = extents.data();
    use(&context);
  }

  std::vector<void*> functions_;
  std::vector<ShapeStep> steps_;
  std::vector<int32_t> wanted_;
  ExecutableCode code_;
  RunFunction run_ = nullptr;
  ScratchFunction scratch_ = nullptr;
};

/// The library with LLVM, loaded once per process and never closed.
class GeneratorLibrary {
 public:
  KernelGenerator* get(const KernelOptions& options, std::string& error) {
    if (!generator_) {
      std::string path = library_path();
      if (path.empty()) {
        error = fmt::format("{} is neither beside the program nor in ../lib", kLibraryName);
        return nullptr;
      }
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      void* factory = handle ? dlsym(handle, kFactoryName) : nullptr;
      if (!factory) {
        const char* why = dlerror();
        error = why ? why : "no factory";
        return nullptr;
      }
      generator_.reset(reinterpret_cast<KernelGenerator* (*)(const KernelOptions&)>(factory)(options));
    }
    return generator_.get();
  }

 private:
  std::unique_ptr<KernelGenerator> generator_;
};

class Compiler final : public CachingCompiler {
 public:
  explicit Compiler(KernelOptions options) : options_(std::move(options)) {}

  std::shared_ptr<const CompiledKernel> compile(const Graph& graph, const KernelGroup& group,
                                                std::string& error) override {
    if (group.kind == KernelGroup::Kind::Native) {
      error = "a native kernel needs no code";
      return nullptr;
    }
    std::lock_guard lock(mutex_);
    auto start = std::chrono::steady_clock::now();
    std::shared_ptr<const CompiledKernel> kernel = compile_locked(graph, group, error);
    stats_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return kernel;
  }

  KernelListing listing(const Graph& graph, const KernelGroup& group) override {
    std::lock_guard lock(mutex_);
    std::string error;
    KernelGenerator* generator = library_.get(options_, error);
    return generator ? generator->listing(graph, group) : KernelListing{error, {}, {}};
  }

  Stats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  std::string warning() const override {
    std::lock_guard lock(mutex_);
    return warning_;
  }

 private:
  void open_cache() {
    if (opened_) return;
    opened_ = true;
    if (!options_.use_cache) return;
    std::string program = program_build_id(), generator = file_build_id(library_path());
    if (program.empty() || generator.empty()) {
      warning_ = "kernel cache not used: the program or " + std::string(kLibraryName) + " has no build id";
      return;
    }
    cache_ = std::make_unique<KernelCache>(options_.cache_dir);
    warning_ = cache_->warning();
    prefix_ = fmt::format("{} {} {} {}\n", program, generator, cpu_identity(), options_.cpu);
  }

  std::shared_ptr<const CompiledKernel> compile_locked(const Graph& graph, const KernelGroup& group,
                                                       std::string& error) {
    open_cache();
    std::string key = prefix_ + group_key(graph, group);
    if (auto found = loaded_.find(key); found != loaded_.end()) return found->second;
    std::optional<CodeImage> image = cache_ ? cache_->find(key) : std::nullopt;
    if (image) {
      ++stats_.from_cache;
    } else {
      KernelGenerator* generator = library_.get(options_, error);
      image.emplace();
      if (!generator || !generator->generate(graph, group, *image, error)) return nullptr;
      ++stats_.compiled;
      if (cache_) cache_->store(key, *image);
    }
    auto kernel = std::make_shared<LoadedKernel>();
    if (!kernel->load(graph, group, *image, error)) return nullptr;
    loaded_.emplace(std::move(key), kernel);
    return kernel;
  }

  KernelOptions options_;
  mutable std::mutex mutex_;
  GeneratorLibrary library_;
  bool opened_ = false;
  std::unique_ptr<KernelCache> cache_;
  std::string prefix_, warning_;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> loaded_;
  Stats stats_;
};

}  // namespace

KernelOptions KernelOptions::from_environment() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  KernelOptions options;
  options.cpu = variable("ZEPHON_CPU");
  options.cache_dir = variable("ZEPHON_CACHE_DIR");
  if (options.cache_dir.empty()) {
    std::string base = variable("XDG_CACHE_HOME");
    if (base.empty()) base = variable("HOME").empty() ? "" : variable("HOME") + "/.cache";
    if (!base.empty()) options.cache_dir = base + "/zephon";
  }
  return options;
}

std::unique_ptr<CachingCompiler> make_kernel_compiler(KernelOptions options) {
  return std::make_unique<Compiler>(std::move(options));
}

}  // namespace zephon
