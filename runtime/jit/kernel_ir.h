#pragma once
// The scalar code of one kernel as a hash-consed graph of values, before LLVM sees it. Being data, it can be asked:
// which loops does a value depend on (it is computed in the outermost of them), in what range does an integer lie (so
// that checks vanish), which single byte of the input does it depend on (so that cheaper forms can be proved by trying
// all 256).

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/elem_limits.h"
#include "graph/kernel.h"
#include "graph/op_def.h"

namespace zephon {

enum class KOp : uint8_t {
  Const,        ///< imm: integer, or bits of the double
  Index,        ///< imm: loop
  Extent,       ///< imm: ExtentSource
  Load,         ///< imm: input, a: flat element index
  Table,        ///< imm: table of the kernel, a: index
  RowLoad,      ///< a: RowFill, b: element in the row
  Param,        ///< a running value of a reduction; imm: number
  ReduceValue,  ///< imm: reduction
  Prepare,      ///< effect: horizontal pass of resampler imm
  RowFill,      ///< effect: row a of resampler imm, after b (Prepare)
  Guard,        ///< effect: if a, the sample fails and nothing after it in this place is computed
  Fail,         ///< effect: if a, the sample fails
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRightLogical,
  ShiftRightArithmetic,
  Compare,
  Select,
  Fma,
  Sqrt,
  Floor,
  Ceil,
  Trunc,
  RoundEven,
  Abs,
  Minimum,
  Maximum,
  Convert,
  Bitcast,
  AddOverflows,
  SubOverflows,
  MulOverflows,  ///< bool, of signed integers
};

/// A set of loops, by number.
using LoopSet = uint64_t;

struct KNode {
  KOp op = KOp::Const;
  Elem elem = Elem::I64;  ///< Prepare, RowFill, Guard, Fail: unused
  Compare compare = Compare::Eq;
  int32_t a = -1, b = -1, c = -1;
  int64_t imm = 0;
  LoopSet loops = 0;         ///< in which it varies
  int64_t lo = 0, hi = 0;    ///< integers and bool: bounds, inclusive
  int32_t byte_source = -2;  ///< the one u8 Load of which it is a function; -1 constant; -2 otherwise
};

/// Where an extent comes from.
struct ExtentSource {
  enum Kind : uint8_t { Input, Output, Interior, Count } kind = Input;
  int32_t slot = 0;  ///< input, output, or entry of CodeImage::shape_exprs
  int32_t dim = 0;
  int64_t pack() const { return (int64_t{kind} << 40) | (int64_t{slot} << 8) | dim; }
  static ExtentSource unpack(int64_t v) {
    return {static_cast<Kind>(v >> 40), static_cast<int32_t>((v >> 8) & 0xffffffff), static_cast<int32_t>(v & 0xff)};
  }
};

/// Constants in memory: a tensor of the program, or a proved lookup table.
struct KTable {
  Elem elem = Elem::F32;
  std::vector<uint8_t> bytes;
  bool operator==(const KTable&) const = default;
};

class KernelIr : public IndexBuilder {
 public:
  explicit KernelIr(bool has_fma) : has_fma_(has_fma) {}

  const KNode& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  std::vector<KTable> tables;

  KVal value_of(int32_t id) const { return {id, node(id).elem}; }
  KVal integer(int64_t value, Elem elem = Elem::I64);
  bool is_constant(KVal v) const { return node(v.id).op == KOp::Const; }
  bool is_constant(KVal v, int64_t value) const { return is_constant(v) && node(v.id).imm == value; }
  KVal index(int32_t loop, KVal extent);
  KVal extent_of(ExtentSource source);
  KVal load(int32_t input, Elem elem, KVal flat, int64_t lo, int64_t hi);
  KVal table_element(const KTable& table, KVal flat);
  KVal param(int32_t number, Elem elem, LoopSet loops);
  KVal reduce_value(int32_t reduction, Elem elem, LoopSet loops);
  KVal row_load(KVal row, KVal flat, Elem elem);
  int32_t prepare(int32_t resampler);
  KVal row_fill(int32_t resampler, KVal y, int32_t prepared);
  int32_t effect(KOp op, KVal condition);
  /// `value` as a lookup table where it is a function of one byte whose computation is dearer than a look-up.
  KVal cheaper(KVal value);

  /// Effects in order of creation, since the last clear.
  std::vector<int32_t> effects;
  /// Conditions taken as known while building one version of the loops.
  std::map<int32_t, bool> assumed;
  /// While > 0, fail_if makes guards: the loads built after it rely on them.
  int guarding = 0;
  /// While set, nothing that is built can fail: the optimizer has proved it.
  bool cannot_fail = false;
  /// value = coefficient * index(loop) + rest, all of them nodes that do not vary in the loop; false if it is not of
  /// that form.
  bool linear(KVal value, int32_t loop, KVal& coefficient, KVal& rest);
  /// The tree of a value, for listings; nodes of `named` print as %id.
  std::string text(int32_t id, const std::set<int32_t>& named) const;
  std::string operation(int32_t id, const std::set<int32_t>& named) const;

  KVal constant(const Scalar& value) override;
  KVal add(KVal a, KVal b) override;
  KVal sub(KVal a, KVal b) override;
  KVal mul(KVal a, KVal b) override;
  KVal div(KVal a, KVal b) override;
  KVal rem(KVal a, KVal b) override { return binary(KOp::Rem, a, b); }
  KVal checked_add(KVal a, KVal b) override { return checked(KOp::Add, KOp::AddOverflows, a, b); }
  KVal checked_sub(KVal a, KVal b) override { return checked(KOp::Sub, KOp::SubOverflows, a, b); }
  KVal checked_mul(KVal a, KVal b) override { return checked(KOp::Mul, KOp::MulOverflows, a, b); }
  KVal bit_and(KVal a, KVal b) override;
  KVal bit_or(KVal a, KVal b) override;
  KVal bit_xor(KVal a, KVal b) override { return binary(KOp::Xor, a, b); }
  KVal shift_left(KVal a, KVal b) override { return binary(KOp::ShiftLeft, a, b); }
  KVal shift_right_logical(KVal a, KVal b) override { return binary(KOp::ShiftRightLogical, a, b); }
  KVal shift_right_arithmetic(KVal a, KVal b) override { return binary(KOp::ShiftRightArithmetic, a, b); }
  KVal compare(Compare c, KVal a, KVal b) override;
  KVal select(KVal cond, KVal a, KVal b) override;
  KVal fma(KVal a, KVal b, KVal c) override;
  KVal sqrt(KVal a) override { return unary(KOp::Sqrt, a); }
  KVal floor(KVal a) override { return unary(KOp::Floor, a); }
  KVal ceil(KVal a) override { return unary(KOp::Ceil, a); }
  KVal trunc(KVal a) override { return unary(KOp::Trunc, a); }
  KVal round_even(KVal a) override { return unary(KOp::RoundEven, a); }
  KVal abs(KVal a) override { return unary(KOp::Abs, a); }
  KVal minimum(KVal a, KVal b) override { return binary(KOp::Minimum, a, b); }
  KVal maximum(KVal a, KVal b) override { return binary(KOp::Maximum, a, b); }
  KVal convert(Elem to, KVal a) override;
  KVal bitcast(Elem to, KVal a) override;
  KVal table(Elem elem, std::span<const double> values, KVal index) override;
  void fail_if(KVal cond) override;

 private:
  KVal intern(KNode node);
  KVal unary(KOp op, KVal a);
  KVal binary(KOp op, KVal a, KVal b);
  KVal checked(KOp op, KOp overflow, KVal a, KVal b);
  KVal operation_node(KNode node);
  void set_range(KNode& node) const;
  bool foldable(const KNode& node) const;
  int64_t apply(const KNode& node, int64_t a, int64_t b, int64_t c) const;
  const std::vector<int64_t>& byte_table(int32_t id);
  int chain_cost(int32_t id, std::set<int32_t>& seen) const;

  bool has_fma_;
  std::vector<KNode> nodes_;
  std::unordered_multimap<uint64_t, int32_t> interned_;
  std::unordered_map<int32_t, std::vector<int64_t>> byte_tables_;
};

}  // namespace zephon
