#pragma once
// The meaning of expressions: one expression, one sample, by `.define` alone.

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "graph/op_def.h"

namespace zephon {

/// A data constant is an expression that is known when the data set is opened: a leaf with a definition (dirs(root)),
/// or `data_const` over such. Each is evaluated once. Thread-safe.
class DataConstants {
 public:
  DataConstants(const Graph& graph, std::string base_dir) : graph_(&graph), base_dir_(std::move(base_dir)) {}
  const Value& get(ExprId id) const;
  const std::string& base_dir() const { return base_dir_; }

 private:
  const Graph* graph_;
  std::string base_dir_;
  mutable std::recursive_mutex mutex_;
  mutable std::map<ExprId, Value> values_;
};

/// Evaluates expressions for one sample. Every element of what it gives is a value or a failure.
/// Elementwise definitions broadcast as NumPy does; an element fails with the first of its arguments that failed. Views
/// fail where the element that they show failed. A tensor definition asks for its arguments when it needs them.
class SampleEvaluator {
 public:
  /// The value of a field of the sample, failures included. Called at most once per field.
  using FieldLookup = std::function<Value(const std::string& field)>;
  SampleEvaluator(const Graph& graph, const DataConstants& constants, FieldLookup fields, uint64_t identity,
                  const EpochContext& epoch)
      : graph_(graph), constants_(constants), fields_(std::move(fields)), identity_(identity), epoch_(epoch) {}

  /// Evaluated at most once; the reference is good as long as the evaluator.
  const Value& evaluate(ExprId id);

 private:
  class Call;
  Value compute(ExprId id);
  Value pointwise(const Expr& expr);
  Value view(const Expr& expr);

  const Graph& graph_;
  const DataConstants& constants_;
  FieldLookup fields_;
  uint64_t identity_;
  const EpochContext& epoch_;
  std::map<ExprId, Value> values_;
};

}  // namespace zephon
