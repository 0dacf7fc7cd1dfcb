#pragma once
// The scalar kernel IR (what `.kernel` of an operator builds), the calling convention of kernels, and the interface
// of whoever compiles them.
//
// Contract of every kernel, compiled or native: if it reports success, the output is bit-identical to `.define`; if it
// reports failure for a sample, the caller evaluates that sample's expression again with the reference evaluator, whose verdict,
// value and message are the truth (a failed element may be one that is cut away later). So kernels need not know
// why something failed, and failure semantics exist once.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/types.h"
#include "graph/value.h"

namespace zephon {

/// A scalar in a kernel being built.
struct KVal {
  int32_t id = -1;
  Elem elem = Elem::I64;
};

enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };  // ordered for floats: false with NaN, except Ne

/// Builds scalar SSA code. Integer arithmetic wraps in the operand type unless checked; float arithmetic is IEEE, one
/// rounding per operation in the operand type (f16, bf16: computed in f32 and rounded), never contracted. Implemented by
/// runtime/jit (to LLVM IR) and usable by rules for range analysis.
class KernelBuilder {
 public:
  virtual ~KernelBuilder() = default;
  virtual KVal constant(const Scalar& value) = 0;
  virtual KVal add(KVal a, KVal b) = 0;
  virtual KVal sub(KVal a, KVal b) = 0;
  virtual KVal mul(KVal a, KVal b) = 0;
  virtual KVal div(KVal a, KVal b) = 0;        ///< float: IEEE; integer: truncating, b != 0 and no overflow guaranteed by the caller
  virtual KVal rem(KVal a, KVal b) = 0;        ///< integer, truncating
  virtual KVal checked_add(KVal a, KVal b) = 0;  ///< signed integer; fails the sample on overflow
  virtual KVal checked_sub(KVal a, KVal b) = 0;
  virtual KVal checked_mul(KVal a, KVal b) = 0;
  virtual KVal bit_and(KVal a, KVal b) = 0;    ///< integers and bool
  virtual KVal bit_or(KVal a, KVal b) = 0;
  virtual KVal bit_xor(KVal a, KVal b) = 0;
  virtual KVal shift_left(KVal a, KVal b) = 0;
  virtual KVal shift_right_logical(KVal a, KVal b) = 0;
  virtual KVal shift_right_arithmetic(KVal a, KVal b) = 0;
  virtual KVal compare(Compare c, KVal a, KVal b) = 0;
  virtual KVal select(KVal cond, KVal a, KVal b) = 0;
  virtual KVal fma(KVal a, KVal b, KVal c) = 0;
  virtual KVal sqrt(KVal a) = 0;
  virtual KVal floor(KVal a) = 0;
  virtual KVal ceil(KVal a) = 0;
  virtual KVal trunc(KVal a) = 0;
  virtual KVal round_even(KVal a) = 0;
  virtual KVal abs(KVal a) = 0;                ///< float: clears the sign; integer: wraps
  virtual KVal minimum(KVal a, KVal b) = 0;    ///< IEEE 754-2019 minimum for floats
  virtual KVal maximum(KVal a, KVal b) = 0;
  /// Value conversion where it is exact or rounds to nearest even; float to integer: value must be in range (callers clamp);
  /// integer to narrower integer: wraps; bool to numeric: 0 or 1.
  virtual KVal convert(Elem to, KVal a) = 0;
  virtual KVal bitcast(Elem to, KVal a) = 0;   ///< same size
  virtual KVal table(Elem elem, std::span<const double> values, KVal index) = 0;  ///< values[index], index a u8 below their number
  virtual void fail_if(KVal cond) = 0;
};

/// What a view or shaped kernel may ask about one of its arguments.
class IndexBuilder : public KernelBuilder {
 public:
  virtual KVal extent(int arg, int dim) = 0;               ///< i64 runtime extent of argument `arg`
  virtual KVal element(int arg, std::span<const KVal> index) = 0;  ///< element of a small argument (box, flag), i64 indices
};

/// Which part of a resampled picture is made, and of which part of the input. Generated code fills it as an array of i64, in this order.
struct ResampleGeometry {
  int64_t in_h = 0, in_w = 0, channels = 0;  ///< the input that is at hand
  int64_t out_h = 0, out_w = 0;              ///< the rows and columns to make
  int64_t whole_in_h = 0, whole_in_w = 0, in_top = 0, in_left = 0;      ///< the input is a part of this, and begins here
  int64_t whole_out_h = 0, whole_out_w = 0, out_top = 0, out_left = 0;  ///< so is what is made
  static ResampleGeometry whole(int64_t in_h, int64_t in_w, int64_t channels, int64_t out_h, int64_t out_w) {
    return {in_h, in_w, channels, out_h, out_w, in_h, in_w, 0, 0, out_h, out_w, 0, 0};
  }
};
inline constexpr size_t kResampleSizes = 5, kResampleParts = 8;  ///< the first line or two of it, and the rest

/// The two-pass separable resampler of class Resample (see ops/resample.h). All functions are native; generated code calls
/// `horizontal` once per picture and `vertical` once per output row, then consumes the row.
struct ResampleKernel {
  /// Bytes of scratch needed; some number where the geometry is impossible.
  size_t (*scratch_bytes)(Elem elem, const ResampleGeometry& geometry) = nullptr;
  /// Runs the horizontal pass over a contiguous HWC picture with `row_stride` bytes between rows into scratch. False, and nothing is
  /// written, where the geometry is impossible or the input does not hold all that the output is made of.
  bool (*horizontal)(Elem elem, const void* in, int64_t row_stride, const ResampleGeometry& geometry, void* scratch) = nullptr;
  /// Makes row y of what is made (out_w * channels elements) from scratch.
  void (*vertical)(Elem elem, const void* scratch, int64_t y, void* row) = nullptr;
  /// The last kResampleParts numbers of the geometry, from extents and small arguments; null: the whole of both.
  void (*parts)(IndexBuilder& b, const Expr& expr, std::span<KVal> parts) = nullptr;
};

/// What a native kernel is called with, for one sample.
struct NativeCall {
  const Expr* expr = nullptr;
  std::span<const TensorRef> inputs;
  TensorRef* output = nullptr;   ///< elem set; data and shape set too where the caller already owns the place (batch in place):
                                 ///< then the kernel must write there if the shape matches, and fail otherwise
  uint64_t identity = 0;         ///< SampleId::hash(), for draws
  uint64_t draw_key = 0;         ///< draw_key(seed, epoch, expr->draw_id), for draws
  void* (*allocate)(void* context, size_t bytes) = nullptr;  ///< 64-byte aligned, lives as long as the chunk
  void* context = nullptr;
  void* alloc(size_t bytes) const { return allocate(context, bytes); }
  /// Counts, until the kernel returns, bytes that a library is about to take by itself; null: nobody counts. Both may throw
  /// where the memory budget is used up: call them while nothing is held that must be released by hand.
  void (*reserve)(void* context, size_t bytes) = nullptr;
  void will_use(size_t bytes) const { if (reserve) reserve(context, bytes); }
};
using NativeKernel = bool (*)(NativeCall& call);  ///< false: failed

/// Which expressions are compiled together. Interior expressions lie between roots and leaves; only roots are stored.
struct KernelGroup {
  enum class Kind : uint8_t {
    Columnar,   ///< every leaf and root is a fixed-size scalar: one loop over the samples of a chunk
    PerSample,  ///< one call per sample, one root, any ranks
    Native,     ///< one root, whose operator has a native kernel; leaves are its arguments, one for one (constants too)
  };
  Kind kind = Kind::PerSample;
  std::vector<ExprId> roots;
  /// Inputs: fields, data constants, results of earlier groups. Constants (op `const`) are no leaves of generated code: they are part of it.
  std::vector<ExprId> leaves;
};

/// Columnar: `count` samples, inputs[l].data and outputs[r].data point to `count` contiguous elements, failed to `count` bytes.
/// PerSample: count = 1; outputs[0] has its shape and data set by the caller (Type::shape, or infer at run time).
struct KernelCall {
  int64_t count = 1;
  const TensorRef* inputs = nullptr;   ///< one per leaf
  TensorRef* outputs = nullptr;        ///< one per root
  uint8_t* failed = nullptr;           ///< set to 1 where a checked operation failed, else untouched
  void* scratch = nullptr;             ///< scratch_bytes(call) bytes, 64-byte aligned
  bool stream = false;                 ///< nobody finds the outputs in a cache: they may be written past the caches
};

class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;
  virtual void run(const KernelCall& call) const = 0;
  virtual size_t scratch_bytes(const KernelCall& call) const = 0;
};

struct KernelListing { std::string loop_nest, llvm_ir, assembly; };

/// Implemented by runtime/jit, a library that is loaded only when a kernel is needed.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  /// Throws nothing; returns null and sets `error` where the code cannot be made (our bug).
  virtual std::shared_ptr<const CompiledKernel> compile(const Graph& graph, const KernelGroup& group, std::string& error) = 0;
  virtual KernelListing listing(const Graph& graph, const KernelGroup& group) = 0;
  struct Stats { int compiled = 0, from_cache = 0; double seconds = 0; };
  virtual Stats stats() const = 0;
};

}  // namespace zephon
