#pragma once
// What a run was: one line for people, a table of its operators, one JSON object.

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/diag/span.h"

namespace zephon {

struct OperatorLine {
  std::string name;
  uint32_t line = 0;  ///< 0: none
  int64_t samples_in = 0, samples = 0, bytes_out = 0;
  double cpu_seconds = 0, wait_seconds = 0;
};

struct RunReport {
  uint64_t samples = 0, batches = 0;
  bool batched = false;
  uint64_t dropped_batches = 0;
  double seconds = 0;          ///< of the process
  double startup_seconds = 0;  ///< from the start of the process to the first record
  double steady_seconds = 0;   ///< from the first record to the last
  uint64_t steady_samples = 0;
  double cpu_seconds = 0;
  size_t peak_rss = 0, base_rss = 0, peak_in_flight = 0, kept = 0;
  std::string digest, plan_hash, end;
  std::string plan;                                       ///< its operators, for the last line; empty: not shown
  std::vector<std::pair<std::string, uint64_t>> errors;   ///< by policy
  std::vector<std::pair<std::string, uint64_t>> written;  ///< samples in each file of `on_error(quarantine)`
  std::vector<std::string> relaxations;
  std::vector<OperatorLine> operators;

  double samples_per_second() const;
  std::string one_line() const;
  std::string table() const;
  std::string json() const;
};

}  // namespace zephon
