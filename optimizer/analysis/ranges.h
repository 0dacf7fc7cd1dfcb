#pragma once
// Between what numbers the elements of an expression lie, and whether an operation can fail on such. Found by running
// the operators' own kernels on intervals, so nothing here knows an operator.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"

namespace zephon {

/// What holds for every element that is no failure.
struct ValueRange {
  Elem elem = Elem::I64;
  int64_t lo = 0, hi = 0;   ///< integers and bool
  double flo = 0, fhi = 0;  ///< f32 and f64, where not NaN; f16 and bf16: infinite
  bool nan = false;         ///< may be NaN
  bool is_narrow() const;   ///< integers: says more than the type
};

/// Attrs of expressions, facts that the optimizer found: bounds of a field (integers), and that a checked operation
/// cannot fail here. Not arguments of the operator: nobody prints them.
inline constexpr const char* kLeast = "least";
inline constexpr const char* kGreatest = "greatest";
inline constexpr const char* kTotal = "total";

ValueRange range_of_type(Elem elem);

class Ranges {
 public:
  explicit Ranges(const Graph& graph) : graph_(graph) {}
  /// Expressions never change, so each is looked at once.
  const ValueRange& of(ExprId expr);
  /// The operation itself may fail on good arguments.
  bool may_fail(ExprId expr) {
    of(expr);
    return facts_[static_cast<size_t>(expr.index)].may_fail;
  }

 private:
  struct Fact {
    ValueRange range;
    bool may_fail = false;
  };
  const Graph& graph_;
  std::deque<Fact> facts_;  // by expression, never moved: of() hands out references; arguments stand before their users
};

/// The operation may fail on some good arguments of the types that it has here. Strings: what the operator declares.
bool may_fail_by_type(const Graph& graph, const Expr& expr);

/// What the integer field lies between where `node` reads it, from the source or the step that makes it, looking up
/// some steps.
std::optional<ValueRange> field_range(const Graph& graph, Ranges& ranges, NodeId node, const std::string& field);

}  // namespace zephon
