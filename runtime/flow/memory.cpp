#include "runtime/flow/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

// Free buffers are marked, so that the address sanitizer finds their use.
#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(void const volatile* address, size_t size);
extern "C" void __asan_unpoison_memory_region(void const volatile* address, size_t size);
#define ASAN_POISON_MEMORY_REGION(address, size) __asan_poison_memory_region(address, size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) __asan_unpoison_memory_region(address, size)
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)0)
#endif

namespace zephon {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 256;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kFirstBlock = size_t{16} << 10;
constexpr size_t kLargestBlock = size_t{1} << 20;

// Four classes for each doubling: at most a quarter of a buffer is not used.
uint32_t size_class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  size_t step = (size_t{1} << power) / 4;
  size_t quarter = (bytes - (size_t{1} << power) + step - 1) / step;  // 1 .. 4
  return static_cast<uint32_t>(static_cast<size_t>(power - 8) * 4 + quarter);
}

size_t class_bytes(uint32_t size_class) {
  if (size_class == 0) return kSmallest;
  uint32_t power = (size_class - 1) / 4 + 8;
  size_t step = (size_t{1} << power) / 4;
  return (size_t{1} << power) + step * ((size_class - 1) % 4 + 1);
}

}  // namespace

namespace {
thread_local MemoryClaim* current_claim = nullptr;
}

ClaimScope::ClaimScope(MemoryClaim* claim) : before_(current_claim) { current_claim = claim; }
ClaimScope::~ClaimScope() { current_claim = before_; }
MemoryClaim* ClaimScope::current() { return current_claim; }

bool BufferPool::try_charge(size_t bytes, size_t limit) {
  size_t before = in_use_.load(std::memory_order_relaxed);
  do {
    if (before + bytes > limit) return false;
  } while (!in_use_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  const size_t now = before + bytes;
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void BufferPool::charge(size_t bytes) {
  MemoryClaim* claim = ClaimScope::current();
  if (!try_charge(bytes, claim ? claim->limit() : SIZE_MAX)) claim->obtain(*this, bytes);
}

void BufferPool::evict_locked(std::vector<BufferRef::Block*>& evicted) {
  for (size_t i = free_.size(); i-- > 0 && in_use() + cached_ > limit_;) {
    while (!free_[i].empty() && in_use() + cached_ > limit_) {
      evicted.push_back(free_[i].back());
      free_[i].pop_back();
      cached_ -= evicted.back()->capacity;
    }
  }
}

void BufferPool::reserve(size_t bytes) {
  charge(bytes);
  std::vector<BufferRef::Block*> evicted;
  {
    std::lock_guard lock(mutex_);
    evict_locked(evicted);
  }
  for (BufferRef::Block* old : evicted) release_memory(old);
}

BufferPool::BufferPool(size_t limit) : limit_(limit) {
  // Left alone, the allocator learns from what is freed to keep large blocks in its heap, where they stay resident: the
  // process would then hold several times what is counted here. The same for what libraries take (decoders).
  static const int fixed = mallopt(M_MMAP_THRESHOLD, 128 << 10);
  (void)fixed;
}

BufferPool::~BufferPool() {
  for (auto& blocks : free_)
    for (BufferRef::Block* block : blocks) release_memory(block);
}

BufferRef BufferPool::take(size_t bytes) {
  uint32_t size_class = size_class_of(bytes);
  charge(class_bytes(size_class));
  BufferRef::Block* block = nullptr;
  std::vector<BufferRef::Block*> evicted;
  {
    std::lock_guard lock(mutex_);
    if (size_class < free_.size() && !free_[size_class].empty()) {
      block = free_[size_class].back();
      free_[size_class].pop_back();
      cached_ -= block->capacity;
    } else {
      evict_locked(evicted);  // free buffers of other sizes make room before the process grows
    }
  }
  for (BufferRef::Block* old : evicted) release_memory(old);
  if (!block) {
    block = new BufferRef::Block;
    block->pool = this;
    block->size_class = size_class;
    block->capacity = class_bytes(size_class);
    // Large columns are walked from end to end by several threads: huge pages save most of the page faults and TLB
    // misses.
    bool huge = block->capacity >= 2 * kHugePage;
    size_t alignment = huge ? kHugePage : kAlignment;
    size_t size = (block->capacity + alignment - 1) / alignment * alignment;
    block->data = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
    if (!block->data) {
      unreserve(block->capacity);
      delete block;
      throw std::bad_alloc();
    }
    if (huge) madvise(block->data, size, MADV_HUGEPAGE);
  }
  ASAN_UNPOISON_MEMORY_REGION(block->data, block->capacity);
  return BufferRef(block);
}

bool BufferPool::past_caches(size_t bytes) const {
  auto size = [](int which) { return static_cast<size_t>(std::max(sysconf(which), 0L)); };
  static const size_t own = std::max(size(_SC_LEVEL2_CACHE_SIZE), size_t{1} << 20);
  static const size_t shared = std::max(size(_SC_LEVEL3_CACHE_SIZE), own);
  // A quarter of the last cache: the rest is for what is read, and for others.
  return bytes > own && in_use() > shared / 4;
}

void BufferPool::give_back(BufferRef::Block* block) {
  in_use_.fetch_sub(block->capacity, std::memory_order_relaxed);
  ASAN_POISON_MEMORY_REGION(block->data, block->capacity);
  {
    std::lock_guard lock(mutex_);
    if (in_use() + cached_ + block->capacity <= limit_) {
      if (free_.size() <= block->size_class) free_.resize(block->size_class + 1);
      free_[block->size_class].push_back(block);
      cached_ += block->capacity;
      return;
    }
  }
  release_memory(block);
}

void BufferPool::release_memory(BufferRef::Block* block) {
  ASAN_UNPOISON_MEMORY_REGION(block->data, block->capacity);
  std::free(block->data);
  delete block;
}

void* Arena::allocate(size_t bytes) {
  size_t size = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (static_cast<size_t>(end_ - next_) < size) {
    const size_t block = std::max(size, std::min(kLargestBlock, std::max(kFirstBlock, total_)));
    if (size > block / 8 && size > kFirstBlock) {  // a block of its own: half of a larger one might stay empty
      blocks_.push_back(pool_->take(size));
      total_ += blocks_.back().capacity();
      return blocks_.back().data();
    }
    blocks_.push_back(pool_->take(block));
    next_ = blocks_.back().data();
    end_ = next_ + blocks_.back().capacity();
    total_ += blocks_.back().capacity();
  }
  void* out = next_;
  next_ += size;
  return out;
}

bool Arena::is_large() const { return total_ > std::min(kLargestBlock, pool_->limit() / 64); }

void Arena::release() noexcept {
  if (blocks_.size() < 2 && !is_large()) return;
  blocks_.clear();
  next_ = end_ = nullptr;
  total_ = 0;
}

void Arena::reset() {
  if (is_large()) release();
  if (blocks_.empty()) return;
  if (blocks_.size() > 1) {
    const size_t total = total_;
    release();
    blocks_.push_back(pool_->take(total));
  }
  next_ = blocks_.back().data();
  end_ = next_ + blocks_.back().capacity();
  total_ = blocks_.back().capacity();
}

}  // namespace zephon
