#pragma once
// The kernel cache on disk. It holds code that will be executed: so the directory must be the user's alone, the full
// key is stored and compared, and a checksum covers everything.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/kernels/code_image.h"

namespace zephon {

class KernelCache {
 public:
  /// Creates `directory` (mode 0700) where it is missing. A directory that others own or may enter, or that cannot be
  /// made, is not used: usable() is false and warning() says why.
  explicit KernelCache(std::string directory, uint64_t max_bytes = 64 << 20);
  bool usable() const { return warning_.empty(); }
  const std::string& warning() const { return warning_; }
  /// The image stored under exactly `key`; nothing where absent, damaged, another's or of another key.
  std::optional<CodeImage> find(std::string_view key) const;
  /// Writes atomically; a failure (full disk) is silent, as the cache is only a convenience. The oldest entries go
  /// where the directory would grow beyond its bound, or by little more: it is counted from time to time.
  void store(std::string_view key, const CodeImage& image) const;
  std::string path_of(std::string_view key) const;

 private:
  void make_room(uint64_t bytes) const;
  std::string directory_, warning_;
  uint64_t max_bytes_;
  mutable std::atomic<uint64_t> uncounted_{UINT64_MAX};  ///< bytes stored since the directory was last counted
};

}  // namespace zephon
