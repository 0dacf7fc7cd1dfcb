#pragma once
// Memory of what is in flight: pooled, byte-counted buffers, and arenas on top of them.
//
// Everything that a chunk holds comes from one BufferPool, so that "bytes in flight" is one number that work is
// admitted by. The number is a limit: what would pass it is not taken, and whoever wants it (a MemoryClaim) waits,
// gives back what it has, or fails. A buffer goes back to the pool when its last user lets go; on the steady path
// nothing is allocated from the system.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace zephon {

class BufferPool;

/// Thrown by who asks for memory out of turn: what was begun is dropped, and done again when more is free.
struct MemoryPostponed {};
/// Thrown where the budget does not hold what must be held at once.
struct MemoryExceeded : std::runtime_error {
  explicit MemoryExceeded(size_t wanted, size_t held)
      : std::runtime_error("out of the memory budget"), bytes(wanted), in_use(held) {}
  size_t bytes, in_use;  ///< asked for; in use at that time
};

/// On whose behalf a thread works.
class MemoryClaim {
 public:
  virtual ~MemoryClaim() = default;
  /// Bytes that may be in use once it has what it asks for.
  virtual size_t limit() const = 0;
  /// `bytes` do not fit below limit(). Returns once they are charged to the pool; throws MemoryPostponed or
  /// MemoryExceeded.
  virtual void obtain(BufferPool& pool, size_t bytes) = 0;
  /// Whether several threads may work for it at once; they do while `in_parallel`.
  virtual bool may_share() const { return true; }
  std::atomic<bool> in_parallel{false};
};

/// While it lives, the thread works for `claim` (null: nobody, and no limit holds).
class ClaimScope {
 public:
  explicit ClaimScope(MemoryClaim* claim);
  ~ClaimScope();
  ClaimScope(const ClaimScope&) = delete;
  ClaimScope& operator=(const ClaimScope&) = delete;
  static MemoryClaim* current();

 private:
  MemoryClaim* before_;
};

/// A buffer of the pool, or nothing. Copies share it; thread-safe like shared_ptr.
class BufferRef {
 public:
  struct Block {
    std::atomic<int32_t> refs{0};
    BufferPool* pool = nullptr;
    std::byte* data = nullptr;  ///< 64-byte aligned
    size_t capacity = 0;        ///< bytes, that of the size class
    uint32_t size_class = 0;
  };

  BufferRef() = default;
  explicit BufferRef(Block* block) : block_(block) { add(); }
  BufferRef(const BufferRef& other) : block_(other.block_) { add(); }
  BufferRef(BufferRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BufferRef() { drop(); }

  std::byte* data() const { return block_ ? block_->data : nullptr; }
  size_t capacity() const { return block_ ? block_->capacity : 0; }
  explicit operator bool() const { return block_ != nullptr; }
  /// True where nobody else holds it: it may be written in place.
  bool unique() const { return block_ && block_->refs.load(std::memory_order_acquire) == 1; }

 private:
  void add() {
    if (block_) block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  void drop();
  Block* block_ = nullptr;
};

/// Thread-safe. Buffers must not outlive their pool.
class BufferPool {
 public:
  /// `limit`: bytes; free buffers are kept for reuse only while they and those in use stay within it. What a thread
  /// without a claim takes is counted, never refused.
  explicit BufferPool(size_t limit);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A buffer of at least `bytes` bytes, content undefined. Throws std::bad_alloc, and as MemoryClaim says.
  BufferRef take(size_t bytes);
  /// Counts memory that is taken elsewhere; throws as MemoryClaim says.
  void reserve(size_t bytes);
  void unreserve(size_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// Counts `bytes` where in_use() stays within `limit`; no claim is asked.
  bool try_charge(size_t bytes, size_t limit);
  size_t limit() const { return limit_; }
  size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// Whether a result of `bytes` should be written past the caches (KernelCall::stream): before it is read it has left
  /// the core's own cache for its size, and the last cache for all that is in use meanwhile.
  bool past_caches(size_t bytes) const;
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  friend class BufferRef;
  void give_back(BufferRef::Block* block);
  void charge(size_t bytes);
  /// Takes free buffers out, the largest first, until they fit beside what is in use.
  void evict_locked(std::vector<BufferRef::Block*>& evicted);
  void release_memory(BufferRef::Block* block);

  std::mutex mutex_;
  std::vector<std::vector<BufferRef::Block*>> free_;  ///< by size class
  size_t limit_;
  size_t cached_ = 0;  ///< bytes in free_
  std::atomic<size_t> in_use_{0}, peak_{0};
};

inline void BufferRef::drop() {
  if (block_ && block_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) block_->pool->give_back(block_);
}

/// Bump allocation for values whose size is known late. One thread at a time; what it gave lives until reset or
/// destruction.
class Arena {
 public:
  explicit Arena(BufferPool& pool) : pool_(&pool) {}
  /// 64-byte aligned, content undefined; never null (also for 0 bytes).
  void* allocate(size_t bytes);
  /// Forgets everything; keeps one block that would have held it all, if that is small.
  void reset();
  /// Forgets everything that is not small.
  void release() noexcept;
  bool empty() const { return blocks_.empty(); }
  /// Shaped for NativeCall::allocate; `context` is an Arena.
  static void* allocate_from(void* context, size_t bytes) { return static_cast<Arena*>(context)->allocate(bytes); }

 private:
  /// Idle memory is in use by nobody who could give it back: only little of it is kept.
  bool is_large() const;
  BufferPool* pool_;
  std::vector<BufferRef> blocks_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  size_t total_ = 0;
};

}  // namespace zephon
