#pragma once
// What operators cost on this machine: each is taken from its own example, fed with that example's values and with
// larger ones made of them, and run as a plan would run it. No operator is named here.

#include <functional>
#include <string>
#include <vector>

#include "optimizer/cost/machine.h"
#include "zephonc/cost_store.h"

namespace zephon {

struct CalibrationResult {
  CostStore::Calibration measured;
  /// Operators that were not measured, and why not.
  std::vector<std::pair<const OpDef*, std::string>> left_out;
  double seconds = 0;
};

/// Some seconds of one thread. `progress` is called before each operator.
CalibrationResult calibrate(const std::function<void(const OpDef& op)>& progress);

}  // namespace zephon
