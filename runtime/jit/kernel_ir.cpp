#include "runtime/jit/kernel_ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace zephon {
namespace {

__extension__ using Wide = __int128;

double as_double(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t as_bits(double value) { return std::bit_cast<int64_t>(value); }

int64_t wrap(Elem elem, int64_t v) {
  switch (elem) {
    case Elem::Bool:
      return v & 1;
    case Elem::U8:
      return static_cast<uint8_t>(v);
    case Elem::U16:
      return static_cast<uint16_t>(v);
    case Elem::I8:
      return static_cast<int8_t>(v);
    case Elem::I16:
      return static_cast<int16_t>(v);
    case Elem::I32:
      return static_cast<int32_t>(v);
    default:
      return v;
  }
}

uint64_t as_unsigned(Elem elem, int64_t v) {
  size_t bits = elem_size(elem) * 8;
  return bits == 64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(v) & ((uint64_t{1} << bits) - 1);
}

double minimum_of(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double maximum_of(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

/// One operation in `T`, rounded by T's arithmetic.
template <class T>
T float_op(KOp op, T a, T b, T c) {
  switch (op) {
    case KOp::Add:
      return a + b;
    case KOp::Sub:
      return a - b;
    case KOp::Mul:
      return a * b;
    case KOp::Div:
      return a / b;
    case KOp::Fma:
      return std::fma(a, b, c);
    case KOp::Sqrt:
      return std::sqrt(a);
    case KOp::Floor:
      return std::floor(a);
    case KOp::Ceil:
      return std::ceil(a);
    case KOp::Trunc:
      return std::trunc(a);
    case KOp::RoundEven:
      return std::nearbyint(a);
    case KOp::Abs:
      return std::fabs(a);
    case KOp::Minimum:
      return static_cast<T>(minimum_of(a, b));
    case KOp::Maximum:
      return static_cast<T>(maximum_of(a, b));
    default:
      return T{};
  }
}

Wide exact(KOp op, int64_t a, int64_t b) {
  switch (op) {
    case KOp::Add:
    case KOp::AddOverflows:
      return Wide{a} + b;
    case KOp::Sub:
    case KOp::SubOverflows:
      return Wide{a} - b;
    default:
      return Wide{a} * b;
  }
}

bool fits(Elem elem, Wide v) { return v >= least_of(elem) && v <= greatest_of(elem); }

uint64_t bits_of(Elem elem, int64_t v) {
  switch (elem) {
    case Elem::F16:
      return f16_from_double(as_double(v));
    case Elem::BF16:
      return bf16_from_double(as_double(v));
    case Elem::F32:
      return std::bit_cast<uint32_t>(static_cast<float>(as_double(v)));
    default:
      return as_unsigned(elem, v);
  }
}

constexpr std::string_view kNames[] = {
    "const",   "index",        "extent",  "load",    "table",         "row",           "param",        "reduce",
    "prepare", "resample_row", "guard",   "fail",    "add",           "sub",           "mul",          "div",
    "rem",     "and",          "or",      "xor",     "shl",           "lshr",          "ashr",         "cmp",
    "select",  "fma",          "sqrt",    "floor",   "ceil",          "trunc",         "round_even",   "abs",
    "minimum", "maximum",      "convert", "bitcast", "add_overflows", "sub_overflows", "mul_overflows"};
constexpr std::string_view kCompareNames[] = {"==", "!=", "<", "<=", ">", ">="};

}  // namespace

// ---- evaluation ----------------------------------------------------------------------------------------------------

/// The value of an operation on constants, as emitted code would compute it. Floats travel as bits of a double.
int64_t KernelIr::apply(const KNode& n, int64_t a, int64_t b, int64_t c) const {
  Elem from = n.a >= 0 ? node(n.a).elem : n.elem;
  switch (n.op) {
    case KOp::Table: {
      const KTable& table = tables[static_cast<size_t>(n.imm)];
      const uint8_t* at = table.bytes.data() + static_cast<size_t>(a) * elem_size(table.elem);
      if (is_float(table.elem)) {
        if (table.elem == Elem::F64) return std::bit_cast<int64_t>(*reinterpret_cast<const uint64_t*>(at));
        if (table.elem == Elem::F32) {
          float value;
          std::memcpy(&value, at, 4);
          return as_bits(value);
        }
        uint16_t bits;
        std::memcpy(&bits, at, 2);
        return as_bits(table.elem == Elem::F16 ? f16_to_double(bits) : bf16_to_double(bits));
      }
      int64_t value = 0;
      std::memcpy(&value, at, elem_size(table.elem));
      return wrap(table.elem, value);
    }
    case KOp::Select:
      return a ? b : c;
    case KOp::AddOverflows:
    case KOp::SubOverflows:
    case KOp::MulOverflows:
      return !fits(from, exact(n.op, a, b));
    case KOp::Compare:
      if (is_float(from)) {
        double x = as_double(a), y = as_double(b);
        const bool results[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
        return results[static_cast<int>(n.compare)];
      } else {
        const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
        return results[static_cast<int>(n.compare)];
      }
    case KOp::Convert:
      if (is_float(from)) {
        double v = as_double(a);
        if (is_float(n.elem)) return as_bits(round_to(n.elem, v));
        // Out of range is excluded by the caller; whatever is computed there is not used.
        if (!(v > -9.3e18 && v < 9.3e18)) return 0;
        return wrap(n.elem, std::fabs(v) >= 9223372036854775808.0 ? 0 : static_cast<int64_t>(v));
      }
      if (n.elem == Elem::F64) return as_bits(static_cast<double>(a));
      if (n.elem == Elem::F32) return as_bits(static_cast<float>(a));
      if (is_float(n.elem)) return as_bits(round_to(n.elem, static_cast<double>(a)));  // foldable() bounds a
      if (n.elem == Elem::Bool) return a != 0;
      return wrap(n.elem, a);
    case KOp::Bitcast: {
      uint64_t bits = from == Elem::F64 ? static_cast<uint64_t>(a) : bits_of(from, a);
      switch (n.elem) {
        case Elem::F64:
          return static_cast<int64_t>(bits);
        case Elem::F32:
          return as_bits(std::bit_cast<float>(static_cast<uint32_t>(bits)));
        case Elem::F16:
          return as_bits(f16_to_double(static_cast<uint16_t>(bits)));
        case Elem::BF16:
          return as_bits(bf16_to_double(static_cast<uint16_t>(bits)));
        default:
          return wrap(n.elem, static_cast<int64_t>(bits));
      }
    }
    default:
      break;
  }
  if (n.elem == Elem::F64) return as_bits(float_op<double>(n.op, as_double(a), as_double(b), as_double(c)));
  if (is_float(n.elem)) {
    float value = float_op<float>(n.op, static_cast<float>(as_double(a)), static_cast<float>(as_double(b)),
                                  static_cast<float>(as_double(c)));
    return as_bits(n.elem == Elem::F32 ? value : round_to(n.elem, value));
  }
  uint64_t ua = as_unsigned(n.elem, a), ub = as_unsigned(n.elem, b);
  int bits = static_cast<int>(elem_size(n.elem) * 8);
  switch (n.op) {
    case KOp::Add:
      return wrap(n.elem, static_cast<int64_t>(ua + ub));
    case KOp::Sub:
      return wrap(n.elem, static_cast<int64_t>(ua - ub));
    case KOp::Mul:
      return wrap(n.elem, static_cast<int64_t>(ua * ub));
    case KOp::Div:
      return b == 0 || (b == -1 && a == least_of(n.elem)) ? 0 : a / b;
    case KOp::Rem:
      return b == 0 || b == -1 ? 0 : a % b;
    case KOp::And:
      return a & b;
    case KOp::Or:
      return a | b;
    case KOp::Xor:
      return wrap(n.elem, a ^ b);
    case KOp::ShiftLeft:
      return ub >= static_cast<uint64_t>(bits) ? 0 : wrap(n.elem, static_cast<int64_t>(ua << ub));
    case KOp::ShiftRightLogical:
      return ub >= static_cast<uint64_t>(bits) ? 0 : wrap(n.elem, static_cast<int64_t>(ua >> ub));
    case KOp::ShiftRightArithmetic:
      return ub >= static_cast<uint64_t>(bits) ? 0 : a >> ub;
    case KOp::Abs:
      return a < 0 ? wrap(n.elem, static_cast<int64_t>(-static_cast<uint64_t>(a))) : a;
    case KOp::Minimum:
      return std::min(a, b);
    case KOp::Maximum:
      return std::max(a, b);
    default:
      return 0;
  }
}

bool KernelIr::foldable(const KNode& n) const {
  if (n.op < KOp::Add && n.op != KOp::Table) return false;
  // int -> f16, bf16 of more than 53 bits would round twice here
  if (n.op == KOp::Convert && (n.elem == Elem::F16 || n.elem == Elem::BF16)) {
    const KNode& a = node(n.a);
    if (!is_float(a.elem) && (a.lo < -(int64_t{1} << 53) || a.hi > int64_t{1} << 53)) return false;
  }
  return true;
}

/// The 256 values of a function of one byte.
const std::vector<int64_t>& KernelIr::byte_table(int32_t id) {
  if (auto found = byte_tables_.find(id); found != byte_tables_.end()) return found->second;
  // Operands have smaller numbers; their tables are made first. Chains are short enough for recursion over distinct
  // nodes, but generated programs may be deep: walk with a stack.
  std::vector<int32_t> stack{id};
  while (!stack.empty()) {
    int32_t at = stack.back();
    const KNode n = node(at);
    if (byte_tables_.contains(at)) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    if (n.byte_source != at)
      for (int32_t arg : {n.a, n.b, n.c})
        if (arg >= 0 && node(arg).op != KOp::Const && !byte_tables_.contains(arg)) {
          stack.push_back(arg);
          ready = false;
        }
    if (!ready) continue;
    std::vector<int64_t> values(256);
    auto operand = [&](int32_t arg, size_t i) {
      if (arg < 0) return int64_t{0};
      return node(arg).op == KOp::Const ? node(arg).imm : byte_tables_.at(arg)[i];
    };
    for (size_t i = 0; i < 256; ++i)
      values[i] =
          n.byte_source == at ? static_cast<int64_t>(i) : apply(n, operand(n.a, i), operand(n.b, i), operand(n.c, i));
    byte_tables_.emplace(at, std::move(values));
    stack.pop_back();
  }
  return byte_tables_.at(id);
}

// ---- making nodes ---------------------------------------------------------------------------------------------------

KVal KernelIr::intern(KNode n) {
  uint64_t hash =
      static_cast<uint64_t>(n.op) * 31 + static_cast<uint64_t>(n.elem) * 7 + static_cast<uint64_t>(n.compare);
  for (int64_t part : {int64_t{n.a}, int64_t{n.b}, int64_t{n.c}, n.imm})
    hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  auto [from, to] = interned_.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    const KNode& other = node(it->second);
    if (other.op == n.op && other.elem == n.elem && other.compare == n.compare && other.a == n.a && other.b == n.b &&
        other.c == n.c && other.imm == n.imm && other.lo == n.lo && other.hi == n.hi)
      return {it->second, n.elem};
  }
  auto id = static_cast<int32_t>(nodes_.size());
  if (n.byte_source == -3) n.byte_source = id;
  nodes_.push_back(n);
  interned_.emplace(hash, id);
  return {id, n.elem};
}

/// Fills in what follows from the operands; folds constants and what its range decides.
KVal KernelIr::operation_node(KNode n) {
  bool all_constant = true;
  int32_t source = -1;
  for (int32_t arg : {n.a, n.b, n.c}) {
    if (arg < 0) continue;
    const KNode& operand = node(arg);
    n.loops |= operand.loops;
    all_constant &= operand.op == KOp::Const;
    if (operand.byte_source != -1) source = source == -1 || source == operand.byte_source ? operand.byte_source : -2;
  }
  n.byte_source = source;
  if (foldable(n) && all_constant) {
    auto value = [&](int32_t arg) { return arg < 0 ? int64_t{0} : node(arg).imm; };
    KNode folded;
    folded.elem = n.elem;
    folded.imm = apply(n, value(n.a), value(n.b), value(n.c));
    folded.byte_source = -1;
    set_range(folded);
    return intern(folded);
  }
  set_range(n);
  if (!foldable(n) && n.op >= KOp::Add) n.byte_source = -2;
  if (!is_float(n.elem) && n.lo == n.hi && n.op >= KOp::Add) return integer(n.lo, n.elem);
  return intern(n);
}

void KernelIr::set_range(KNode& n) const {
  if (is_float(n.elem)) return;
  n.lo = least_of(n.elem);
  n.hi = greatest_of(n.elem);
  auto set = [&](Wide lo, Wide hi) {
    if (!fits(n.elem, lo) || !fits(n.elem, hi)) return;  // wraps: anything
    n.lo = static_cast<int64_t>(lo);
    n.hi = static_cast<int64_t>(hi);
  };
  if (n.op == KOp::Const) return set(n.imm, n.imm);
  if (n.a < 0) return;
  const KNode& a = node(n.a);
  const KNode& b = n.b >= 0 ? node(n.b) : a;
  bool floats = is_float(a.elem);
  switch (n.op) {
    case KOp::Add:
      return set(Wide{a.lo} + b.lo, Wide{a.hi} + b.hi);
    case KOp::Sub:
      return set(Wide{a.lo} - b.hi, Wide{a.hi} - b.lo);
    case KOp::Mul: {
      Wide products[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi};
      return set(*std::min_element(products, products + 4), *std::max_element(products, products + 4));
    }
    case KOp::Div:
      if (b.lo > 0) {
        Wide quotients[] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
        return set(*std::min_element(quotients, quotients + 4), *std::max_element(quotients, quotients + 4));
      }
      return;
    case KOp::Rem: {
      Wide most = std::max(b.hi < 0 ? -Wide{b.hi} : Wide{b.hi}, b.lo < 0 ? -Wide{b.lo} : Wide{b.lo}) - 1;
      if (most < 0) return;
      return set(a.lo >= 0 ? Wide{0} : std::max(-most, Wide{a.lo}), a.hi <= 0 ? Wide{0} : std::min(most, Wide{a.hi}));
    }
    case KOp::And:
      if (a.lo >= 0 && b.lo >= 0) return set(0, std::min(a.hi, b.hi));
      if (a.lo >= 0 || b.lo >= 0) return set(0, a.lo >= 0 ? a.hi : b.hi);
      return;
    case KOp::Or:
    case KOp::Xor:
      if (a.lo >= 0 && b.lo >= 0)
        set(0, static_cast<int64_t>((std::bit_ceil(static_cast<uint64_t>(std::max(a.hi, b.hi)) + 1)) - 1));
      return;
    case KOp::ShiftRightArithmetic:
      if (b.lo == b.hi && b.lo >= 0 && b.lo < 64) return set(a.lo >> b.lo, a.hi >> b.lo);
      return;
    case KOp::ShiftRightLogical:
      if (b.lo == b.hi && b.lo >= 0 && b.lo < 64 && a.lo >= 0) return set(a.lo >> b.lo, a.hi >> b.lo);
      return;
    case KOp::Minimum:
      return set(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
    case KOp::Maximum:
      return set(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
    case KOp::Abs:
      if (a.lo >= 0) return set(a.lo, a.hi);
      return set(a.hi <= 0 ? -Wide{a.hi} : Wide{0}, std::max(-Wide{a.lo}, Wide{a.hi}));
    case KOp::Select: {
      const KNode& c = node(n.c);
      return set(std::min(b.lo, c.lo), std::max(b.hi, c.hi));
    }
    case KOp::Convert:
      if (!floats && n.elem != Elem::Bool) return set(a.lo, a.hi);
      return;
    case KOp::AddOverflows:
      if (fits(a.elem, Wide{a.lo} + b.lo) && fits(a.elem, Wide{a.hi} + b.hi)) n.hi = 0;
      return;
    case KOp::SubOverflows:
      if (fits(a.elem, Wide{a.lo} - b.hi) && fits(a.elem, Wide{a.hi} - b.lo)) n.hi = 0;
      return;
    case KOp::MulOverflows: {
      bool all = true;
      for (Wide product : {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi})
        all &= fits(a.elem, product);
      if (all) n.hi = 0;
      return;
    }
    case KOp::Compare: {
      if (floats) return;
      bool always = false, never = false;
      bool same = n.a == n.b;
      switch (n.compare) {
        case Compare::Eq:
          always = same || (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo);
          never = a.hi < b.lo || a.lo > b.hi;
          break;
        case Compare::Ne:
          always = a.hi < b.lo || a.lo > b.hi;
          never = same || (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo);
          break;
        case Compare::Lt:
          always = a.hi < b.lo;
          never = same || a.lo >= b.hi;
          break;
        case Compare::Le:
          always = same || a.hi <= b.lo;
          never = a.lo > b.hi;
          break;
        case Compare::Gt:
          always = a.lo > b.hi;
          never = same || a.hi <= b.lo;
          break;
        case Compare::Ge:
          always = same || a.lo >= b.hi;
          never = a.hi < b.lo;
          break;
      }
      if (always) n.lo = 1;
      if (never) n.hi = 0;
      return;
    }
    default:
      return;
  }
}

KVal KernelIr::integer(int64_t value, Elem elem) {
  KNode n;
  n.elem = elem;
  n.imm = wrap(elem, value);
  n.byte_source = -1;
  set_range(n);
  return intern(n);
}

KVal KernelIr::constant(const Scalar& value) {
  if (!is_float(value.elem)) return integer(value.i, value.elem);
  KNode n;
  n.elem = value.elem;
  n.imm = as_bits(value.f);
  n.byte_source = -1;
  return intern(n);
}

KVal KernelIr::index(int32_t loop, KVal extent) {
  KNode n;
  n.op = KOp::Index;
  n.imm = loop;
  n.loops = LoopSet{1} << loop;
  n.hi = std::max<int64_t>(node(extent.id).hi - 1, 0);
  return intern(n);
}

KVal KernelIr::extent_of(ExtentSource source) {
  KNode n;
  n.op = KOp::Extent;
  n.imm = source.pack();
  n.hi = int64_t{1} << 40;
  return intern(n);
}

KVal KernelIr::load(int32_t input, Elem elem, KVal flat, int64_t lo, int64_t hi) {
  KNode n;
  n.op = KOp::Load;
  n.elem = elem;
  n.imm = input;
  n.a = flat.id;
  n.loops = node(flat.id).loops;
  n.lo = std::max(lo, least_of(elem));
  n.hi = std::min(hi, greatest_of(elem));
  n.byte_source = elem == Elem::U8 ? -3 : -2;  // -3: intern puts its own number
  return intern(n);
}

KVal KernelIr::table_element(const KTable& table, KVal flat) {
  size_t number = 0;
  while (number < tables.size() && !(tables[number] == table)) ++number;
  if (number == tables.size()) tables.push_back(table);
  KNode n;
  n.op = KOp::Table;
  n.elem = table.elem;
  n.imm = static_cast<int64_t>(number);
  n.a = flat.id;
  return operation_node(n);
}

KVal KernelIr::param(int32_t number, Elem elem, LoopSet loops) {
  KNode n;
  n.op = KOp::Param;
  n.elem = elem;
  n.imm = number;
  n.loops = loops;
  set_range(n);
  return intern(n);
}

KVal KernelIr::reduce_value(int32_t reduction, Elem elem, LoopSet loops) {
  KNode n;
  n.op = KOp::ReduceValue;
  n.elem = elem;
  n.imm = reduction;
  n.loops = loops;
  set_range(n);
  return intern(n);
}

KVal KernelIr::row_load(KVal row, KVal flat, Elem elem) {
  KNode n;
  n.op = KOp::RowLoad;
  n.elem = elem;
  n.a = row.id;
  n.b = flat.id;
  n.loops = node(row.id).loops | node(flat.id).loops;
  set_range(n);
  n.byte_source = elem == Elem::U8 ? -3 : -2;
  return intern(n);
}

int32_t KernelIr::prepare(int32_t resampler) {
  KNode n;
  n.op = KOp::Prepare;
  n.imm = resampler;
  return intern(n).id;
}

KVal KernelIr::row_fill(int32_t resampler, KVal y, int32_t prepared) {
  KNode n;
  n.op = KOp::RowFill;
  n.imm = resampler;
  n.a = y.id;
  n.b = prepared;
  n.loops = node(y.id).loops;
  return intern(n);
}

int32_t KernelIr::effect(KOp op, KVal condition) {
  KNode n;
  n.op = op;
  n.a = condition.id;
  n.loops = node(condition.id).loops;
  int32_t id = intern(n).id;
  if (std::find(effects.begin(), effects.end(), id) == effects.end()) effects.push_back(id);
  return id;
}

void KernelIr::fail_if(KVal cond) {
  if (cannot_fail || is_constant(cond, 0)) return;
  const KNode& n = node(cond.id);
  if (n.byte_source >= 0) {
    const std::vector<int64_t>& values = byte_table(cond.id);
    if (std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; })) return;
  }
  effect(guarding > 0 ? KOp::Guard : KOp::Fail, cond);
}

KVal KernelIr::unary(KOp op, KVal a) {
  KNode n;
  n.op = op;
  n.elem = a.elem;
  n.a = a.id;
  if (!is_float(a.elem) && op != KOp::Abs) return a;  // rounding of an integer
  if (op == KOp::Abs && !is_float(a.elem) && node(a.id).lo >= 0) return a;
  return operation_node(n);
}

KVal KernelIr::binary(KOp op, KVal a, KVal b) {
  KNode n;
  n.op = op;
  n.elem = a.elem;
  n.a = a.id;
  n.b = b.id;
  return operation_node(n);
}

KVal KernelIr::checked(KOp op, KOp overflow, KVal a, KVal b) {
  if (!cannot_fail) {
    KNode n;
    n.op = overflow;
    n.elem = Elem::Bool;
    n.a = a.id;
    n.b = b.id;
    fail_if(operation_node(n));
  }
  return op == KOp::Add ? add(a, b) : op == KOp::Sub ? sub(a, b) : mul(a, b);
}

KVal KernelIr::add(KVal a, KVal b) {
  if (!is_float(a.elem)) {
    if (is_constant(a, 0)) return b;
    if (is_constant(b, 0)) return a;
  }
  return binary(KOp::Add, a, b);
}

KVal KernelIr::sub(KVal a, KVal b) {
  if (!is_float(a.elem)) {
    if (is_constant(b, 0)) return a;
    if (a.id == b.id) return integer(0, a.elem);
  }
  return binary(KOp::Sub, a, b);
}

KVal KernelIr::mul(KVal a, KVal b) {
  if (!is_float(a.elem)) {
    if (is_constant(a, 1) || is_constant(b, 0)) return b;
    if (is_constant(b, 1) || is_constant(a, 0)) return a;
  }
  return binary(KOp::Mul, a, b);
}

// A quotient of a function of one byte by a constant d: x * r, or fma(x, r, x * r') with r + r' nearer to 1 / d, where
// trying all 256 inputs proves the same bits. Division costs 5 to 10 times as much.
KVal KernelIr::div(KVal a, KVal b) {
  KNode n;
  n.op = KOp::Div;
  n.elem = a.elem;
  n.a = a.id;
  n.b = b.id;
  if ((a.elem != Elem::F32 && a.elem != Elem::F64) || !is_constant(b) || node(a.id).byte_source < 0)
    return operation_node(n);
  double divisor = as_double(node(b.id).imm);
  if (!(std::fabs(divisor) > 1e-30 && std::fabs(divisor) < 1e30)) return operation_node(n);
  const std::vector<int64_t> inputs = byte_table(a.id);
  auto equal = [&](KVal candidate) {
    const std::vector<int64_t>& values = byte_table(candidate.id);
    for (size_t i = 0; i < 256; ++i)
      if (values[i] != apply(n, inputs[i], node(b.id).imm, 0)) return false;
    return true;
  };
  double reciprocal = round_to(a.elem, 1 / divisor);
  KVal r = constant(Scalar::of_float(a.elem, reciprocal));
  if (KVal product = mul(a, r); equal(product)) return product;
  if (has_fma_) {
    // 1 / d - r, from the exact remainder 1 - r d
    double rest = round_to(a.elem, std::fma(-reciprocal, divisor, 1.0) / divisor);
    KVal low = mul(a, constant(Scalar::of_float(a.elem, rest)));
    if (KVal sum = fma(a, r, low); equal(sum)) return sum;
  }
  return operation_node(n);
}

KVal KernelIr::bit_and(KVal a, KVal b) {
  if (a.elem == Elem::Bool) {
    if (is_constant(a, 1) || is_constant(b, 0)) return b;
    if (is_constant(b, 1) || is_constant(a, 0)) return a;
  }
  return a.id == b.id ? a : binary(KOp::And, a, b);
}

KVal KernelIr::bit_or(KVal a, KVal b) {
  if (is_constant(a, 0)) return b;
  if (is_constant(b, 0)) return a;
  return a.id == b.id ? a : binary(KOp::Or, a, b);
}

KVal KernelIr::compare(Compare c, KVal a, KVal b) {
  KNode n;
  n.op = KOp::Compare;
  n.elem = Elem::Bool;
  n.compare = c;
  n.a = a.id;
  n.b = b.id;
  return operation_node(n);
}

KVal KernelIr::select(KVal cond, KVal a, KVal b) {
  if (is_constant(cond)) return node(cond.id).imm ? a : b;
  if (auto known = assumed.find(cond.id); known != assumed.end()) return known->second ? a : b;
  if (a.id == b.id) return a;
  KNode n;
  n.op = KOp::Select;
  n.elem = a.elem;
  n.a = cond.id;
  n.b = a.id;
  n.c = b.id;
  return operation_node(n);
}

KVal KernelIr::fma(KVal a, KVal b, KVal c) {
  KNode n;
  n.op = KOp::Fma;
  n.elem = a.elem;
  n.a = a.id;
  n.b = b.id;
  n.c = c.id;
  return operation_node(n);
}

KVal KernelIr::convert(Elem to, KVal a) {
  if (to == a.elem) return a;
  KNode n;
  n.op = KOp::Convert;
  n.elem = to;
  n.a = a.id;
  return operation_node(n);
}

KVal KernelIr::bitcast(Elem to, KVal a) {
  if (to == a.elem) return a;
  KNode n;
  n.op = KOp::Bitcast;
  n.elem = to;
  n.a = a.id;
  return operation_node(n);
}

KVal KernelIr::table(Elem elem, std::span<const double> values, KVal at) {
  KTable table{elem, std::vector<uint8_t>(values.size() * elem_size(elem))};
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = elem == Elem::F64
                              ? std::bit_cast<uint64_t>(values[i])
                              : bits_of(elem, is_float(elem) ? as_bits(values[i]) : static_cast<int64_t>(values[i]));
    std::memcpy(table.bytes.data() + i * elem_size(elem), &bits, elem_size(elem));
  }
  return table_element(table, convert(Elem::I64, at));
}

// ---- questions
// --------------------------------------------------------------------------------------------------------

bool KernelIr::linear(KVal value, int32_t loop, KVal& coefficient, KVal& rest) {
  const KNode n = node(value.id);
  if ((n.loops >> loop & 1) == 0) {
    coefficient = integer(0);
    rest = value;
    return true;
  }
  auto operand = [&](int32_t id, KVal& k, KVal& r) { return linear(value_of(id), loop, k, r); };
  KVal ka, ra, kb, rb;
  switch (n.op) {
    case KOp::Index:
      coefficient = integer(1);
      rest = integer(0);
      return true;
    case KOp::Add:
    case KOp::Sub:
      if (n.elem != Elem::I64 || !operand(n.a, ka, ra) || !operand(n.b, kb, rb)) return false;
      coefficient = n.op == KOp::Add ? add(ka, kb) : sub(ka, kb);
      rest = n.op == KOp::Add ? add(ra, rb) : sub(ra, rb);
      return true;
    case KOp::Mul:
      if (n.elem != Elem::I64 || !operand(n.a, ka, ra) || !operand(n.b, kb, rb)) return false;
      if (is_constant(kb, 0)) {
        coefficient = mul(ka, rb);
      } else if (is_constant(ka, 0)) {
        coefficient = mul(kb, ra);
      } else {
        return false;
      }
      rest = mul(ra, rb);
      return true;
    case KOp::Select:
      if (n.elem != Elem::I64 || (node(n.a).loops >> loop & 1) || !operand(n.b, ka, ra) || !operand(n.c, kb, rb))
        return false;
      coefficient = select(value_of(n.a), ka, kb);
      rest = select(value_of(n.a), ra, rb);
      return true;
    default:
      return false;
  }
}

/// Rough cost of a vectorised chain from its byte, in simple instructions.
int KernelIr::chain_cost(int32_t id, std::set<int32_t>& seen) const {
  const KNode& n = node(id);
  if (n.op == KOp::Const || n.byte_source == id || !seen.insert(id).second) return 0;
  int cost = n.op == KOp::Div || n.op == KOp::Sqrt || n.op == KOp::Rem ? 8 : 1;
  if (n.elem == Elem::BF16) cost += 6;
  if (n.elem == Elem::F16) cost += 2;
  if (n.elem == Elem::F64 || n.elem == Elem::I64) cost *= 2;
  for (int32_t arg : {n.a, n.b, n.c})
    if (arg >= 0) cost += chain_cost(arg, seen);
  return cost;
}

KVal KernelIr::cheaper(KVal value) {
  constexpr int kLookUp =
      28;  // measured: a gathered element costs about as much as this many simple vector instructions
  const KNode n = node(value.id);
  if (n.byte_source < 0 || n.byte_source == value.id || n.elem == Elem::Bool) return value;
  std::set<int32_t> seen;
  if (chain_cost(value.id, seen) < kLookUp) return value;
  KTable table{n.elem, std::vector<uint8_t>(256 * elem_size(n.elem))};
  const std::vector<int64_t>& values = byte_table(value.id);
  for (size_t i = 0; i < 256; ++i) {
    uint64_t bits = n.elem == Elem::F64 ? static_cast<uint64_t>(values[i]) : bits_of(n.elem, values[i]);
    std::memcpy(table.bytes.data() + i * elem_size(n.elem), &bits, elem_size(n.elem));
  }
  return table_element(table, convert(Elem::I64, value_of(n.byte_source)));
}

// ---- listings
// -----------------------------------------------------------------------------------------------------------

std::string KernelIr::text(int32_t id, const std::set<int32_t>& named) const {
  const KNode& n = node(id);
  if (n.op == KOp::Const) return is_float(n.elem) ? fmt::format("{}", as_double(n.imm)) : fmt::format("{}", n.imm);
  if (n.op == KOp::Index) return fmt::format("i{}", n.imm);
  if (n.op == KOp::Param) return fmt::format("acc{}", n.imm);
  if (n.op == KOp::Extent) {
    ExtentSource source = ExtentSource::unpack(n.imm);
    if (source.kind == ExtentSource::Count) return "count";
    constexpr const char* kinds[] = {"in", "out", "inner"};
    return fmt::format("{}{}.{}", kinds[source.kind], source.slot, source.dim);
  }
  if (named.contains(id)) return fmt::format("%{}", id);
  return operation(id, named);
}

std::string KernelIr::operation(int32_t id, const std::set<int32_t>& named) const {
  const KNode& n = node(id);
  auto arg = [&](int32_t operand) { return text(operand, named); };
  switch (n.op) {
    case KOp::Load:
      return fmt::format("in{}[{}]", n.imm, arg(n.a));
    case KOp::Table:
      return fmt::format("table{}[{}]", n.imm, arg(n.a));
    case KOp::RowLoad:
      return fmt::format("{}[{}]", arg(n.a), arg(n.b));
    case KOp::RowFill:
      return fmt::format("resample{}.row({})", n.imm, arg(n.a));
    case KOp::Prepare:
      return fmt::format("resample{}.prepare()", n.imm);
    case KOp::ReduceValue:
      return fmt::format("reduce{}", n.imm);
    case KOp::Guard:
    case KOp::Fail:
      return fmt::format("fail if {}", arg(n.a));
    case KOp::Compare:
      return fmt::format("({} {} {})", arg(n.a), kCompareNames[static_cast<int>(n.compare)], arg(n.b));
    case KOp::Convert:
      return fmt::format("{}({})", elem_name(n.elem), arg(n.a));
    case KOp::Add:
      return fmt::format("({} + {})", arg(n.a), arg(n.b));
    case KOp::Sub:
      return fmt::format("({} - {})", arg(n.a), arg(n.b));
    case KOp::Mul:
      return fmt::format("({} * {})", arg(n.a), arg(n.b));
    case KOp::Div:
      return fmt::format("({} / {})", arg(n.a), arg(n.b));
    default:
      break;
  }
  std::string out = fmt::format("{}(", kNames[static_cast<int>(n.op)]);
  for (int32_t operand : {n.a, n.b, n.c})
    if (operand >= 0) out += (operand == n.a ? "" : ", ") + arg(operand);
  return out + ")";
}

}  // namespace zephon
