#pragma once
// `--trace FILE`: a timeline in the JSON form of Chrome's trace events, which Perfetto (ui.perfetto.dev) opens. Written
// as the run goes; the file appears when it is whole.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "zephonc/sinks/staged.h"

namespace zephon {

class TraceFile {
 public:
  std::optional<Failure> open(const std::string& path);
  /// A task of the calling thread; times in nanoseconds of CLOCK_MONOTONIC. Thread-safe.
  void add(const std::string& name, int64_t begin_ns, int64_t end_ns, int64_t rows);
  std::optional<Failure> close();

 private:
  std::mutex mutex_;
  StagedFile file_;
  std::optional<Failure> failure_;
  std::map<std::thread::id, int> threads_;
  int64_t zero_ns_ = 0;
  std::string line_;
};

}  // namespace zephon
