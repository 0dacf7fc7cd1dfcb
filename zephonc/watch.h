#pragma once
// Watches a run from a thread of its own: signals, status on request, the progress line, stalls.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "zephonc/signals.h"

namespace zephon {

struct WatchOptions {
  bool progress = false;
  uint64_t expected_records = 0;            ///< 0: unknown
  std::function<std::string()> status;      ///< what every operator is doing; from the watcher's thread
  double quiet_seconds = 30;                ///< a silence that is worth a word, and what every operator is doing
  std::function<std::string()> bottleneck;  ///< name of the operator that holds up the others, or ""
};

class RunWatch {
 public:
  explicit RunWatch(WatchOptions options);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// Begins to watch; what `options` calls must be there from now on until finish().
  void start();
  /// Calls `print` with the progress line out of the way.
  template <class Print>
  void say_above(Print&& print) {
    std::lock_guard lock(terminal_);
    clear_progress();
    print();
  }
  /// One more record with so many members. From one thread at a time.
  void delivered(uint64_t members);
  /// Set when the run is asked to end.
  const std::atomic<bool>& stop() const { return stop_; }
  /// Says where it stands; ends the process if the run does not end by itself within a grace period.
  void stalled(const std::string& message);
  /// Ends the thread and clears the progress line.
  void finish();

  uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  double first_record_at() const { return first_at_; }  ///< seconds after construction; 0: none
  double last_record_at() const { return last_at_; }
  uint64_t first_samples() const { return first_samples_; }
  double seconds() const;

 private:
  void loop();
  void break_silence();
  void draw_progress();
  void clear_progress();

  WatchOptions options_;
  SignalScope signals_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<bool> stop_{false}, stalled_{false};
  std::atomic<uint64_t> records_{0}, samples_{0};
  double first_at_ = 0, last_at_ = 0;
  uint64_t first_samples_ = 0;
  double shown_at_ = 0, shown_rate_ = 0;
  uint64_t shown_samples_ = 0;
  uint64_t heard_records_ = 0;  ///< when `heard_at_` was noted; negative `heard_at_`: it was said
  double heard_at_ = 0;
  bool shown_ = false;
  std::mutex mutex_, terminal_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace zephon
