#pragma once
// What the cost model assumes of a machine and of data: one struct, so that calibration or a file can replace it as a
// whole. As it stands it is the fixed model that tests use: nothing in it is measured.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_def.h"

namespace zephon {

inline constexpr size_t kElemTypes = static_cast<size_t>(Elem::Path) + 1;

/// What an operator costs on this machine.
struct OperatorCost {
  OpCost cost;
  /// Nanoseconds an element by the widest type among result and arguments, where that was measured; 0: as `cost` says.
  std::array<double, kElemTypes> ns_by_elem{};
};

/// What calibration has measured; operators that are not in it cost what they declare.
struct OperatorCosts {
  std::map<const OpDef*, OperatorCost> operators;
};

/// What runs have measured of the data that a program reads.
struct DataFacts {
  struct Filter {
    double kept = 0.5;  ///< of the rows that came, between 0 and 1
    int64_t rows = 0;   ///< that came
  };
  /// An operator that runs on its own, per sample.
  struct Operator {
    int64_t calls = 0;
    double ns = 0, elements = 0, input_bytes = 0;  ///< means: of the time, call included, of what it makes and reads
    double scale = 1;                              ///< its time over what the model says; set by `settle`
  };
  /// By the filter's step as written, and which part of it.
  std::map<std::pair<int32_t, std::vector<int32_t>>, Filter> filters;
  std::map<const OpDef*, Operator> operators;
  double extent = 0, text_bytes = 0, record_bytes = 0, blob_bytes = 0;  ///< means, instead of Machine's; 0: not known

  /// The share of rows that the step keeps; of a step that was measured in parts only, their product.
  std::optional<double> kept(int32_t step, const std::vector<int32_t>& part) const;
};

struct Machine {
  double ns_per_kernel_call = 15;                  ///< to call a compiled kernel for one sample
  double ns_per_row_and_step = 0.2;                ///< bookkeeping of one step of a stage, per row
  double bytes_per_ns = 8;                         ///< writing a result to memory and reading it back
  double default_extent = 256;                     ///< of a dimension whose size is not known before the run (pictures)
  double default_text_bytes = 48;                  ///< of a str or path
  double default_record_bytes = 256;               ///< of a source's own record: a line of a table
  double default_blob_bytes = 96e3;                ///< of a bytes value: a small picture file
  std::shared_ptr<const OperatorCosts> operators;  ///< null: as declared
  std::shared_ptr<const DataFacts> data;           ///< null: nothing is known
  std::function<double(const OpDef&)> factor;  ///< on the cost of an operator; empty: 1. Tests perturb costs with it
};

/// What the operator costs there, for all element types alike, data not considered.
OpCost cost_of(const OpDef& op, const Machine& machine);
/// Makes the model say of operators what was measured of them on this data, and puts the sizes that were measured in
/// the place of the assumed. Operators that stand for one another (a picture and a region of it) are slower or faster
/// together: else the one that was not measured would look better, or worse, than it is.
void use_data(Machine& machine, DataFacts facts, const OpTable& ops);

}  // namespace zephon
