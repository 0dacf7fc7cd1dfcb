#pragma once
// What the code generator makes and the cache keeps: position-independent machine code, and what it must be given when
// it runs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

/// Handed to generated code beside the KernelCall. Code holds no address: native functions and shapes come from here.
struct KernelContext {
  const int64_t* shapes = nullptr;   ///< kMaxRank extents per entry of CodeImage::shape_exprs
  void* const* functions = nullptr;  ///< scratch_bytes, horizontal, vertical per entry of CodeImage::resample_exprs
};

/// Code and constants of one kernel, laid out once and moved anywhere. Its only relocations are import slots: 8 bytes
/// each that the loader fills with the address of a function of import_address().
struct CodeImage {
  struct Import {
    std::string name;
    uint32_t slot = 0;  ///< offset into bytes, 8-aligned
  };
  static constexpr uint32_t kNone = ~0u;
  std::vector<uint8_t> bytes;
  uint32_t run_offset = 0;          ///< void(const KernelCall*, const KernelContext*)
  uint32_t scratch_offset = kNone;  ///< int64_t(const KernelCall*, const KernelContext*), or no scratch
  std::vector<Import> imports;
  std::vector<int32_t> shape_exprs;     ///< local numbers of interior expressions whose extents the code asks for
  std::vector<int32_t> resample_exprs;  ///< local numbers of the resamplers it calls

  std::string serialize() const;
  /// False if `text` is no image that serialize() made.
  static bool parse(std::string_view text, CodeImage& image);
};

/// Address of a function that generated code may call (exact ones only: memory moves, fused multiply-add, rounding to
/// integral values, half precision conversion where the processor has none), or null.
void* import_address(std::string_view name);

struct KernelOptions {
  std::string cpu;        ///< "" the host, or x86-64, avx2, avx512
  std::string cache_dir;  ///< "" the default directory
  bool use_cache = true;
  static KernelOptions from_environment();  ///< ZEPHON_CPU, ZEPHON_CACHE_DIR, XDG_CACHE_HOME, HOME
};

/// Implemented by the library that holds LLVM. Not thread-safe.
class KernelGenerator {
 public:
  virtual ~KernelGenerator() = default;
  virtual bool generate(const Graph& graph, const KernelGroup& group, CodeImage& image, std::string& error) = 0;
  virtual KernelListing listing(const Graph& graph, const KernelGroup& group) = 0;
};

}  // namespace zephon
