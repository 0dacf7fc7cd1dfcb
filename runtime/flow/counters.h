#pragma once
// What each node of the plan did. Always on; compiled out with ZEPHON_COUNTERS=0 to measure what they cost.

#include <time.h>

#include <atomic>
#include <cstdint>

namespace zephon {

#if ZEPHON_COUNTERS
/// Nanoseconds of CPU that the calling thread has used. A system call of some 200 ns: once or twice a chunk, never a
/// row.
inline int64_t thread_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}
#else
inline int64_t thread_cpu_ns() { return 0; }
#endif
inline int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

struct NodeCounters {
  std::atomic<int64_t> rows_in{0}, rows_out{0}, bytes_out{0}, chunks{0};
  std::atomic<int64_t> cpu_ns{0};
  std::atomic<int64_t> wait_ns{0};  ///< chunks ready, but not yet begun
  std::atomic<int64_t> failed_rows{0};
  std::atomic<int32_t> running{0};  ///< threads inside, for status reports
#if ZEPHON_COUNTERS
  static void add(std::atomic<int64_t>& counter, int64_t n) { counter.fetch_add(n, std::memory_order_relaxed); }
#else
  static void add(std::atomic<int64_t>&, int64_t) {}
#endif
};

/// What one step of a stage did. Times and sizes are of some rows only (`timed`), evenly chosen: to look at the clock
/// costs more than many a step.
struct StepTally {
  int64_t rows = 0, kept = 0;  ///< filters: that came, and went on
  int64_t timed = 0, ns = 0;   ///< kernels: of a clock on the wall
  int64_t elements = 0;        ///< of the first result, of the rows that were timed
  int64_t text_bytes = 0;      ///< what its strings point to
  int64_t input_bytes = 0;     ///< of all arguments
  StepTally& operator+=(const StepTally& other) {
    rows += other.rows;
    kept += other.kept;
    timed += other.timed;
    ns += other.ns;
    elements += other.elements;
    text_bytes += other.text_bytes;
    input_bytes += other.input_bytes;
    return *this;
  }
};

/// Adds the CPU time of its scope. pause() and resume() exclude what others measure.
class CpuScope {
 public:
  explicit CpuScope(NodeCounters& counters) : counters_(counters), start_(thread_cpu_ns()) {}
  ~CpuScope() {
    if (!paused_) pause();
  }
  void pause() {
    total_ = thread_cpu_ns() - start_;
    NodeCounters::add(counters_.cpu_ns, total_);
    paused_ = true;
  }
  void resume() {
    start_ = thread_cpu_ns();
    paused_ = false;
  }

 private:
  NodeCounters& counters_;
  int64_t start_, total_ = 0;
  bool paused_ = false;
};

}  // namespace zephon
