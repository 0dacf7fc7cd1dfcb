#pragma once
// A kernel group as loops over scalar code: what stands in which loop, before LLVM.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"
#include "runtime/jit/kernel_ir.h"
#include "runtime/kernels/kernel_group.h"

namespace zephon {

struct Store {
  int32_t output = 0;  ///< or -1: the picture that a resampler's input is written to
  int32_t index = 0;   ///< node: flat element index
  int32_t value = 0;   ///< node
  bool operator==(const Store&) const = default;
};

/// Loops, outermost first, around stores. A value stands in the outermost loop in which it does not vary.
struct Nest {
  std::vector<int32_t> loops;
  std::vector<Store> stores;
  std::vector<int32_t> effects;
  bool operator==(const Nest&) const = default;
};

/// 16 interleaved lanes in logical order over `loops` (outermost first), combined pairwise.
struct Reduction {
  std::vector<int32_t> loops;
  Elem elem = Elem::F32;
  int32_t init = 0;
  int32_t accumulator = 0, next = 0;        ///< next = combine(accumulator, element)
  int32_t left = 0, right = 0, merged = 0;  ///< merged = combine(left, right)
  std::vector<int32_t> effects, merge_effects;
};

/// A native two-pass resampler: `prepare` hands it the picture, `row` asks for one row.
struct Resampler {
  int32_t local = 0;  ///< number of its expression
  int32_t slot = 0;   ///< entry of CodeImage::resample_exprs
  Elem elem = Elem::U8;
  std::vector<int32_t> geometry;  ///< nodes, in the order of ResampleGeometry
  int32_t in_h() const { return geometry[0]; }
  int32_t in_w() const { return geometry[1]; }
  int32_t channels() const { return geometry[2]; }
  int32_t out_w() const { return geometry[4]; }
  int32_t input = -1;  ///< reads this input in place, from element `base`, rows `row_stride` elements apart ...
  int32_t base = 0, row_stride = 0;
  Nest copy;  ///< ... or, where input < 0, what these loops write to scratch
  bool operator==(const Resampler&) const = default;
};

struct Version {
  std::vector<std::pair<int32_t, bool>>
      assumed;                        ///< bool nodes outside of all loops, and the value for which this is right
  std::vector<int32_t> small_inputs;  ///< columns of which every element must lie in [0, kSmallInput)
  Nest nest;
};

/// Columns of i64 below this (positions, counts, labels) get loops of their own, where products by small constants stay
/// below 2^32: no overflow checks, and divisions in 32 bits, which vectors have.
inline constexpr int64_t kSmallInput = int64_t{1} << 28;

/// The loop in whose body pairs of lanes are merged: never a real loop.
inline constexpr int32_t kMergeLoop = 63;

class KernelProgram : public KernelIr {
 public:
  KernelProgram(const Graph& graph, const KernelGroup& group, bool has_fma);
  /// False and error() where the group holds something that no kernel is made of.
  bool build();
  const std::string& error() const { return error_; }

  const Graph& graph;
  const KernelGroup& group;
  GroupExprs exprs;
  std::vector<int32_t> loop_extents;  ///< node per loop
  std::vector<Reduction> reductions;
  std::vector<Resampler> resamplers;
  std::vector<Version> versions;  ///< all combinations of the assumptions
  std::vector<int32_t> shape_exprs, resample_exprs;
  /// All nodes on which `targets` depend and themselves, ascending (operands before users).
  std::vector<int32_t> closure(const std::vector<int32_t>& targets) const;
  /// Roots of everything in a nest: extents, stores, effects.
  std::vector<int32_t> targets(const Nest& nest) const;
  std::string listing() const;

  KVal extent(int arg, int dim) override;
  KVal element(int arg, std::span<const KVal> index) override;

 private:
  using Index = std::vector<KVal>;
  KVal value(ExprId id, const Index& index);
  KVal compute(ExprId id, const Index& index);
  KVal leaf_value(ExprId id, int32_t leaf, const Index& index);
  KVal constant_value(const Value& value, const Index& index);
  KVal pointwise(ExprId id, const Index& index);
  KVal view(ExprId id, const Index& index);
  KVal reduce(ExprId id, const Index& index);
  KVal resample(ExprId id, const Index& index);
  const std::vector<KVal>& dims(ExprId id);
  std::vector<KVal> compute_dims(ExprId id);
  KVal interior_extent(ExprId id, int dim);
  KVal signature_extent(ExprId id, int dim);
  KVal flat_index(const std::vector<KVal>& extents, const Index& index);
  std::vector<int32_t> loops_of(ExprId id, const std::vector<KVal>& extents);
  int32_t new_loop(KVal extent);
  bool is_flat(ExprId top);
  Nest columnar_nest();
  Nest sample_nest();
  void build_version();
  bool gains_from_small_inputs(const Nest& nest) const;
  std::vector<int32_t> choose_conditions(const Nest& nest) const;
  void order_loops(Nest& nest) const;
  KVal fail(const std::string& message);
  void list_nest(const Nest& nest, int depth, std::string& out) const;

  std::string error_;
  std::vector<int32_t> small_inputs_;  ///< assumed in the version being built
  KVal sample_;                        ///< columnar: number of the sample
  std::vector<ExprId> current_;
  std::map<std::pair<int32_t, std::vector<int32_t>>, KVal> values_;
  std::map<ExprId, std::vector<KVal>> dims_;
  std::map<ExprId, int32_t> resampler_of_;
  std::map<std::pair<ExprId, std::vector<int32_t>>, std::vector<int32_t>> loops_of_;
};

}  // namespace zephon
