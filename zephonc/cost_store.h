#pragma once
// What was measured, kept on disk beside the compiled kernels: what operators cost on this machine, what filters keep
// of this data. It changes plans, never data. A file that is damaged, or of another version, is not used.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/plan.h"
#include "optimizer/cost/machine.h"
#include "runtime/flow/runner.h"

namespace zephon {

/// One place where costs are kept: the folder of the kernel cache, or none.
class CostStore {
 public:
  CostStore();
  bool usable() const { return !folder_.empty(); }

  struct Calibration {
    OperatorCosts operators;
    double ns_per_kernel_call = 0, ns_per_row_and_step = 0, bytes_per_ns = 0;  ///< as in Machine
    std::string when;                                                          ///< "2026-11-30 08:12"
  };
  /// Of this processor and this version of zephonc; none where it was never measured.
  std::optional<Calibration> calibration() const;
  /// False where it cannot be written.
  bool keep(const Calibration& calibration) const;

  /// What is known of data: filters by their lineage (and which part of a step).
  struct Facts {
    struct Filter {
      int64_t rows = 0, kept = 0;
      int behind = 0;  ///< how many filters stood above: the fewer, the better it speaks for all rows
    };
    std::map<std::string, Filter> filters;
    std::map<const OpDef*, DataFacts::Operator> operators;
    double extent = 0, text_bytes = 0, blob_bytes = 0;
    int64_t sized = 0;  ///< rows that these three are the means of
    std::string when;
    /// Takes over what says more: of more rows, or behind fewer filters. False where nothing does.
    bool learn(const Facts& run);
  };
  /// `place` says which sources of which folder. There is something to ask `facts` for.
  bool has_facts(const std::string& place) const;
  /// Of data that is `identity`; none of other data.
  std::optional<Facts> facts(const std::string& place, const std::string& identity) const;
  bool keep(const std::string& place, const std::string& identity, const Facts& facts) const;

  /// Removes all that is kept. How many files there were.
  int clear() const;
  std::string folder() const { return folder_; }

 private:
  std::string calibration_path() const;
  std::string facts_path(const std::string& place) const;
  std::string folder_;
};

/// Facts as the cost model takes them, for a program with these filters.
DataFacts known_of(const CostStore::Facts& facts, const std::map<int32_t, std::string>& lineage);
/// What a run has measured. `lineage` is that of the program as written.
CostStore::Facts facts_of_run(const Plan& plan, const RunResult& result, const std::map<int32_t, std::string>& lineage);

}  // namespace zephon
