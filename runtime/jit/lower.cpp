// Pull model: the value of an expression at an index asks its arguments for theirs, down to loads from the leaves. What
// is pulled twice at the same index is one node.
#include "runtime/jit/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "graph/expr_set.h"
#include "graph/op_def.h"
#include "graph/signature.h"

namespace zephon {
namespace {

constexpr int64_t kUnrolledDim = 4;   // channels of a picture
constexpr int64_t kUnrolledAll = 16;  // a tensor this small needs no loop
constexpr size_t kMaxConditions = 2;  // versions of the loops: at most 4

/// Dimension `dim` of a shape of rank `rank` that matches `pattern`: which entry of the pattern it is, and, inside of a
/// pack, which dimension of the pack.
std::pair<size_t, size_t> pattern_entry(const std::vector<DimPattern>& pattern, size_t rank, size_t dim) {
  size_t packed = rank + 1 - pattern.size();  // dimensions of the pack, if there is one
  for (size_t entry = 0, at = 0; entry < pattern.size(); ++entry) {
    size_t width = pattern[entry].kind == DimPattern::Kind::Pack ? packed : 1;
    if (dim < at + width) return {entry, dim - at};
    at += width;
  }
  return {pattern.size(), 0};
}

bool only(LoopSet loops, LoopSet allowed) { return (loops & ~allowed) == 0; }

}  // namespace

KernelProgram::KernelProgram(const Graph& g, const KernelGroup& k, bool has_fma)
    : KernelIr(has_fma), graph(g), group(k), exprs(g, k) {}

KVal KernelProgram::fail(const std::string& message) {
  if (error_.empty()) error_ = message;
  return integer(0);
}

bool KernelProgram::build() {
  for (ExprId id : exprs.order)
    if (is_string(graph.expr(id).type.elem)) fail(fmt::format("`{}` makes text", graph.expr(id).op->name));
  if (error_.empty()) build_version();
  if (!error_.empty()) return false;
  if (group.kind == KernelGroup::Kind::Columnar) {
    if (!gains_from_small_inputs(versions[0].nest)) return true;
    for (size_t l = 0; l < group.leaves.size(); ++l) {
      const Expr& leaf = graph.expr(group.leaves[l]);
      if (leaf.type.elem == Elem::I64 && !leaf.attrs.has("lo")) small_inputs_.push_back(static_cast<int32_t>(l));
    }
    if (small_inputs_.empty()) return true;
    build_version();
    versions.back().small_inputs = small_inputs_;
    std::swap(versions[0], versions[1]);  // the general one last
    return error_.empty();
  }
  // A condition outside of the loops that decides between two indices inside (flip or not) would make every load a
  // gather: make the loops for both outcomes.
  std::vector<int32_t> conditions = choose_conditions(versions[0].nest);
  if (conditions.empty()) return true;
  versions.clear();
  for (size_t outcome = 0; outcome < size_t{1} << conditions.size(); ++outcome) {
    assumed.clear();
    for (size_t i = 0; i < conditions.size(); ++i) assumed[conditions[i]] = (outcome >> i & 1) != 0;
    build_version();
    for (auto [condition, outcome_here] : assumed) versions.back().assumed.emplace_back(condition, outcome_here);
  }
  return error_.empty();
}

/// Whether there are checks or 64-bit divisions that bounds of the inputs may remove.
bool KernelProgram::gains_from_small_inputs(const Nest& nest) const {
  for (int32_t id : closure(targets(nest))) {
    const KNode& n = node(id);
    if (n.op == KOp::AddOverflows || n.op == KOp::SubOverflows || n.op == KOp::MulOverflows) return true;
    if ((n.op == KOp::Div || n.op == KOp::Rem) && n.elem == Elem::I64) return true;
  }
  return false;
}

void KernelProgram::build_version() {
  values_.clear();
  dims_.clear();
  resampler_of_.clear();
  effects.clear();
  Nest nest = group.kind == KernelGroup::Kind::Columnar ? columnar_nest() : sample_nest();
  nest.effects = effects;
  order_loops(nest);
  Version version;
  version.nest = std::move(nest);
  versions.push_back(std::move(version));
}

Nest KernelProgram::columnar_nest() {
  Nest nest;
  KVal count = extent_of({ExtentSource::Count, 0, 0});
  nest.loops = {loops_of(ExprId{}, {count})[0]};
  sample_ = index(nest.loops[0], count);
  for (size_t r = 0; r < group.roots.size(); ++r) {
    if (!graph.expr(group.roots[r]).type.is_scalar()) fail("a columnar kernel has scalar results");
    KVal result = cheaper(value(group.roots[r], {}));
    nest.stores.push_back({static_cast<int32_t>(r), sample_.id, result.id});
  }
  return nest;
}

Nest KernelProgram::sample_nest() {
  Nest nest;
  if (group.roots.size() != 1) {
    fail("a kernel per sample has one result");
    return nest;
  }
  ExprId root = group.roots[0];
  const Expr& expr = graph.expr(root);
  std::vector<KVal> extents;
  bool from_arguments = expr.op->cls == OpClass::Pointwise && !exprs.is_leaf(root);
  for (size_t d = 0; d < expr.type.rank(); ++d) {
    KVal stored = extent_of({ExtentSource::Output, 0, static_cast<int32_t>(d)});
    if (expr.type.shape[d].is_static()) {
      extents.push_back(integer(expr.type.shape[d].extent));
    } else if (from_arguments) {
      extents.push_back(dims(root)[d]);
      effect(KOp::Guard, compare(Compare::Ne, extents.back(), stored));
    } else {
      extents.push_back(stored);
    }
  }
  dims_[root] = extents;

  std::vector<Index> stored_at;
  if (is_flat(root)) {
    KVal total = integer(1);
    for (KVal e : extents) total = mul(total, e);
    nest.loops = {loops_of(root, {total})[0]};
    Index at(extents.size(), integer(0));
    at.back() = index(nest.loops[0], total);
    stored_at.push_back(at);
  } else {
    int64_t all = 1, unrolled = 1;
    for (const Dim& d : expr.type.shape) all = d.is_static() && all <= kUnrolledAll ? all * d.extent : kUnrolledAll + 1;
    stored_at.emplace_back();
    std::vector<int32_t> loops = loops_of(root, extents);
    for (size_t d = 0; d < extents.size(); ++d) {
      int64_t fixed = expr.type.shape[d].extent;
      bool small = fixed >= 0 && fixed <= kUnrolledDim && unrolled * fixed <= 2 * kUnrolledDim;
      if (all <= kUnrolledAll || small) {
        unrolled *= fixed;
        std::vector<Index> wider;
        for (const Index& at : stored_at)
          for (int64_t i = 0; i < fixed; ++i) {
            wider.push_back(at);
            wider.back().push_back(integer(i));
          }
        stored_at = std::move(wider);
      } else {
        nest.loops.push_back(loops[d]);
        for (Index& at : stored_at) at.push_back(index(loops[d], extents[d]));
      }
    }
  }
  for (const Index& at : stored_at) {
    KVal result = cheaper(value(root, at));
    nest.stores.push_back({0, flat_index(extents, at).id, result.id});
  }
  return nest;
}

/// Elementwise work over operands of one shape is a single loop, whatever the rank.
bool KernelProgram::is_flat(ExprId top) {
  const std::vector<KVal> shape = dims(top);
  if (shape.size() < 2) return false;
  std::vector<ExprId> stack{top};
  ExprSet seen;
  while (!stack.empty()) {
    ExprId id = stack.back();
    stack.pop_back();
    if (!seen.insert(id)) continue;
    const Expr& expr = graph.expr(id);
    bool leaf = exprs.is_leaf(id) || expr.constant;
    if (!leaf && expr.op->cls != OpClass::Pointwise) return false;
    const std::vector<KVal> own = dims(id);
    if (!own.empty() && own.size() != shape.size()) return false;
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d].id != shape[d].id) return false;
    if (!leaf) stack.insert(stack.end(), expr.args.begin(), expr.args.end());
  }
  return true;
}

/// Rows of a resampler are made in the loop over its y: that loop goes outside of those that do not need it.
void KernelProgram::order_loops(Nest& nest) const {
  LoopSet first = 0;
  for (int32_t id : closure(targets(nest)))
    if (node(id).op == KOp::RowFill) first |= node(id).loops;
  std::stable_partition(nest.loops.begin(), nest.loops.end(), [&](int32_t loop) { return (first >> loop & 1) != 0; });
}

std::vector<int32_t> KernelProgram::choose_conditions(const Nest& nest) const {
  std::vector<int32_t> found;
  for (int32_t id : closure(targets(nest))) {
    const KNode& n = node(id);
    if (n.op != KOp::Select || n.elem != Elem::I64 || n.loops == 0 || node(n.a).loops != 0) continue;
    if (std::find(found.begin(), found.end(), n.a) == found.end() && found.size() < kMaxConditions)
      found.push_back(n.a);
  }
  return found;
}

// ---- values
// -----------------------------------------------------------------------------------------------------------

KVal KernelProgram::value(ExprId id, const Index& index) {
  std::pair<int32_t, std::vector<int32_t>> key{id.index, {}};
  for (KVal i : index) key.second.push_back(i.id);
  if (auto found = values_.find(key); found != values_.end()) return found->second;
  KVal result = compute(id, index);
  values_.emplace(std::move(key), result);
  return result;
}

KVal KernelProgram::compute(ExprId id, const Index& index) {
  const Expr& expr = graph.expr(id);
  if (auto leaf = exprs.leaf.find(id); leaf != exprs.leaf.end()) return leaf_value(id, leaf->second, index);
  if (expr.constant) return constant_value(*expr.constant, index);
  if (expr.op->cls == OpClass::Pointwise && expr.op->kernel.pointwise) return pointwise(id, index);
  if (expr.op->cls == OpClass::View && expr.op->kernel.view) return view(id, index);
  if (expr.op->cls == OpClass::Reduce && expr.op->kernel.reduce.init) return reduce(id, index);
  if (expr.op->cls == OpClass::Resample && expr.op->kernel.resample) return resample(id, index);
  return fail(fmt::format("`{}` cannot be inside a kernel", expr.op->name));
}

KVal KernelProgram::leaf_value(ExprId id, int32_t leaf, const Index& index) {
  const Expr& expr = graph.expr(id);
  int64_t lo = expr.attrs.has("lo") ? expr.attrs.integer("lo") : INT64_MIN;
  int64_t hi = expr.attrs.has("hi") ? expr.attrs.integer("hi") : INT64_MAX;
  if (std::find(small_inputs_.begin(), small_inputs_.end(), leaf) != small_inputs_.end()) {
    lo = 0;
    hi = kSmallInput - 1;
  }
  if (group.kind == KernelGroup::Kind::Columnar && !expr.type.is_scalar())
    return fail("a columnar kernel reads scalars");
  KVal flat = group.kind == KernelGroup::Kind::Columnar ? sample_ : flat_index(dims(id), index);
  return load(leaf, expr.type.elem, flat, lo, hi);
}

KVal KernelProgram::constant_value(const Value& constant_tensor, const Index& index) {
  if (constant_tensor.rank() == 0) return constant(constant_tensor.at(0));
  std::vector<KVal> extents;
  for (int64_t e : constant_tensor.shape()) extents.push_back(integer(e));
  KTable table{constant_tensor.elem(), {constant_tensor.bytes().begin(), constant_tensor.bytes().end()}};
  if (table.bytes.empty()) table.bytes.resize(elem_size(table.elem));  // a load that a failed sample makes is harmless
  return table_element(table, flat_index(extents, index));
}

KVal KernelProgram::pointwise(ExprId id, const Index& index) {
  const Expr& expr = graph.expr(id);
  std::vector<KVal> args;
  const std::vector<KVal> own = dims(id);
  for (ExprId arg : expr.args) {
    const std::vector<KVal> extents = dims(arg);
    Index at;
    size_t skip = index.size() - extents.size();
    for (size_t d = 0; d < extents.size(); ++d) {
      KVal i = index[skip + d];
      // Broadcast: an extent of 1 repeats.
      bool same = extents[d].id == own[skip + d].id;
      at.push_back(same ? i : select(compare(Compare::Eq, extents[d], integer(1)), integer(0), i));
    }
    args.push_back(value(arg, at));
  }
  cannot_fail = expr.attrs.has("total");
  const KVal result = expr.op->kernel.pointwise(*this, expr, args);
  cannot_fail = false;
  return result;
}

KVal KernelProgram::view(ExprId id, const Index& index) {
  const Expr& expr = graph.expr(id);
  Index in(graph.expr(expr.args[0]).type.rank());
  size_t before = effects.size();
  current_.push_back(id);
  bool columnar = group.kind == KernelGroup::Kind::Columnar;
  if (!columnar) ++guarding;
  expr.op->kernel.view(*this, expr, index, in);
  if (!columnar) --guarding;
  current_.pop_back();
  // In a columnar loop the other samples go on: a failed index reads element 0 (only constants are tensors there).
  if (columnar)
    for (size_t e = before; e < effects.size(); ++e)
      for (KVal& i : in) i = select(value_of(node(effects[e]).a), integer(0), i);
  return value(expr.args[0], in);
}

KVal KernelProgram::extent(int arg, int dim) {
  return dims(graph.expr(current_.back()).args[static_cast<size_t>(arg)])[static_cast<size_t>(dim)];
}

KVal KernelProgram::element(int arg, std::span<const KVal> index) {
  ExprId id = graph.expr(current_.back()).args[static_cast<size_t>(arg)];
  return value(id, Index(index.begin(), index.end()));
}

KVal KernelProgram::reduce(ExprId id, const Index& index) {
  const Expr& expr = graph.expr(id);
  const std::vector<KVal> in = dims(expr.args[0]);
  std::vector<bool> reduced(in.size(), !expr.attrs.has("axes"));
  if (expr.attrs.has("axes"))
    for (int64_t axis : expr.attrs.get<std::vector<int64_t>>("axes"))
      reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.size()) : axis)] = true;
  bool keeps = expr.type.rank() == in.size();

  std::vector<KVal> extents;
  KVal count = integer(1);
  for (size_t d = 0; d < in.size(); ++d)
    if (reduced[d]) {
      extents.push_back(in[d]);
      count = mul(count, in[d]);
    }
  // A whole elementwise tensor is read in memory order: one loop.
  bool flat = extents.size() == in.size() && is_flat(expr.args[0]);
  if (flat) extents = {count};
  const auto& kernel = expr.op->kernel.reduce;
  KVal init = kernel.init(*this, expr);
  if (extents.empty()) {
    // One element in lane 0; the other lanes keep their first value.
    KVal lane = kernel.combine(*this, expr, init, value(expr.args[0], index)), others = init;
    for (int step = 8; step > 0; step /= 2) {
      lane = kernel.combine(*this, expr, lane, others);
      others = kernel.combine(*this, expr, others, others);
    }
    return kernel.finish(*this, expr, lane, count);
  }
  std::vector<int32_t> loops = loops_of(id, extents);
  LoopSet own = 0;
  for (int32_t loop : loops) own |= LoopSet{1} << loop;
  Index at;
  size_t next_kept = 0, next_loop = 0;
  for (size_t d = 0; d < in.size(); ++d) {
    if (flat) {
      at.push_back(d + 1 == in.size() ? this->index(loops[0], count) : integer(0));
    } else if (reduced[d]) {
      at.push_back(this->index(loops[next_loop], in[d]));
      ++next_loop;
      if (keeps) ++next_kept;
    } else {
      at.push_back(index[next_kept++]);
    }
  }

  // What can fail inside belongs to the loops of the reduction; the rest to those around.
  auto split_effects = [&](LoopSet inside, std::vector<int32_t>& mine, std::vector<int32_t>& outer) {
    for (int32_t e : effects) ((node(e).loops & inside) ? mine : outer).push_back(e);
    effects = outer;
  };
  Reduction reduction;
  reduction.loops = loops;
  reduction.init = init.id;
  reduction.elem = init.elem;
  auto number = static_cast<int32_t>(reductions.size());
  reductions.emplace_back();  // keeps the number: the body may hold reductions
  std::vector<int32_t> outer = std::move(effects);
  effects.clear();
  KVal x = cheaper(value(expr.args[0], at));
  KVal accumulator = param(3 * number, init.elem, own);
  KVal next = kernel.combine(*this, expr, accumulator, x);
  split_effects(own, reduction.effects, outer);
  effects.clear();
  LoopSet merge = LoopSet{1} << kMergeLoop;
  KVal left = param(3 * number + 1, init.elem, merge), right = param(3 * number + 2, init.elem, merge);
  KVal merged = kernel.combine(*this, expr, left, right);
  split_effects(merge, reduction.merge_effects, outer);
  effects = outer;
  if (next.elem != init.elem || merged.elem != init.elem)
    return fail(fmt::format("`{}` changes the type of its running value", expr.op->name));
  reduction.accumulator = accumulator.id;
  reduction.next = next.id;
  reduction.left = left.id;
  reduction.right = right.id;
  reduction.merged = merged.id;
  reductions[static_cast<size_t>(number)] = reduction;

  LoopSet varies = node(next.id).loops | node(init.id).loops;
  for (KVal e : extents) varies |= node(e.id).loops;
  KVal result = reduce_value(number, init.elem, varies & ~own);
  return kernel.finish(*this, expr, result, count);
}

KVal KernelProgram::resample(ExprId id, const Index& index) {
  const Expr& expr = graph.expr(id);
  ExprId source = expr.args[0];
  if (index.size() != 3 || group.kind == KernelGroup::Kind::Columnar)
    return fail(fmt::format("`{}` wants a picture", expr.op->name));
  auto found = resampler_of_.find(id);
  if (found == resampler_of_.end()) {
    auto number = static_cast<int32_t>(resamplers.size());
    found = resampler_of_.emplace(id, number).first;
    resamplers.emplace_back();  // keeps the number: the input may hold resamplers
    const std::vector<KVal> in = dims(source), out = dims(id);
    Resampler r;
    r.local = exprs.local.at(id);
    auto slot = std::find(resample_exprs.begin(), resample_exprs.end(), r.local);
    r.slot = static_cast<int32_t>(slot - resample_exprs.begin());
    if (slot == resample_exprs.end()) resample_exprs.push_back(r.local);
    r.elem = expr.type.elem;
    std::vector<KVal> parts{in[0], in[1], integer(0), integer(0), out[0], out[1], integer(0), integer(0)};
    if (expr.op->kernel.resample->parts) {
      current_.push_back(id);
      expr.op->kernel.resample->parts(*this, expr, parts);
      current_.pop_back();
    }
    r.geometry = {in[0].id, in[1].id, in[2].id, out[0].id, out[1].id};
    for (KVal part : parts) r.geometry.push_back(part.id);
    // In place, if what is pulled is a leaf whose rows are contiguous; else through a copy.
    r.copy.loops = loops_of(id, in);
    Index at;
    for (size_t d = 0; d < 3; ++d) at.push_back(this->index(r.copy.loops[d], in[d]));
    std::vector<int32_t> outer = std::move(effects);
    effects.clear();
    KVal pulled = value(source, at);
    LoopSet own = 0;
    for (int32_t loop : r.copy.loops) own |= LoopSet{1} << loop;
    for (int32_t e : effects) ((node(e).loops & own) ? r.copy.effects : outer).push_back(e);
    effects = outer;
    KNode n = node(pulled.id);
    KVal cy, cx, cc, rest_y, rest_x, base;
    if (n.op == KOp::Load && linear(value_of(n.a), r.copy.loops[0], cy, rest_y) &&
        linear(rest_y, r.copy.loops[1], cx, rest_x) && linear(rest_x, r.copy.loops[2], cc, base) &&
        cx.id == r.channels() && is_constant(cc, 1) && only(node(base.id).loops | node(cy.id).loops, 0)) {
      r.input = static_cast<int32_t>(n.imm);
      r.base = base.id;
      r.row_stride = cy.id;
    } else {
      r.copy.stores.push_back({-1, flat_index(in, at).id, pulled.id});
    }
    // Another version of the loops may have made the same.
    if (auto same = std::find(resamplers.begin(), resamplers.end(), r); same != resamplers.end())
      found->second = static_cast<int32_t>(same - resamplers.begin());
    else
      resamplers[static_cast<size_t>(number)] = std::move(r);
  }
  const Resampler& r = resamplers[static_cast<size_t>(found->second)];
  KVal row = row_fill(found->second, index[0], prepare(found->second));
  return row_load(row, add(mul(index[1], value_of(r.channels())), index[2]), r.elem);
}

// ---- shapes
// -----------------------------------------------------------------------------------------------------------

const std::vector<KVal>& KernelProgram::dims(ExprId id) {
  if (auto found = dims_.find(id); found != dims_.end()) return found->second;
  std::vector<KVal> computed = compute_dims(id);
  return dims_[id] = std::move(computed);
}

std::vector<KVal> KernelProgram::compute_dims(ExprId id) {
  const Expr& expr = graph.expr(id);
  std::vector<KVal> out;
  if (expr.constant && !exprs.is_leaf(id)) {
    for (int64_t e : expr.constant->shape()) out.push_back(integer(e));
    return out;
  }
  auto leaf = exprs.leaf.find(id);
  for (size_t d = 0; d < expr.type.rank(); ++d) {
    const Dim& dim = expr.type.shape[d];
    auto number = static_cast<int32_t>(d);
    if (dim.is_static()) {
      out.push_back(integer(dim.extent));
    } else if (leaf != exprs.leaf.end()) {
      out.push_back(extent_of({ExtentSource::Input, leaf->second, number}));
    } else if (expr.op->cls == OpClass::Pointwise) {
      // The extent of the arguments that have this dimension; those that differ from it must be 1.
      KVal extent = integer(1);
      for (ExprId arg : expr.args) {
        const std::vector<KVal> extents = dims(arg);
        size_t skip = expr.type.rank() - extents.size();
        if (d < skip) continue;
        KVal other = extents[d - skip];
        KVal is_one = compare(Compare::Eq, extent, integer(1));
        KVal wrong = bit_and(compare(Compare::Ne, other, integer(1)), compare(Compare::Ne, other, extent));
        wrong = bit_and(wrong, compare(Compare::Ne, extent, integer(1)));
        if (!is_constant(wrong, 0)) effect(KOp::Guard, wrong);
        extent = select(is_one, other, extent);
      }
      out.push_back(extent);
    } else if (expr.op->cls == OpClass::Reduce) {
      const std::vector<KVal> in = dims(expr.args[0]);
      std::vector<bool> reduced(in.size(), !expr.attrs.has("axes"));
      if (expr.attrs.has("axes"))
        for (int64_t axis : expr.attrs.get<std::vector<int64_t>>("axes"))
          reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.size()) : axis)] = true;
      std::vector<KVal> kept;
      for (size_t k = 0; k < in.size(); ++k)
        if (!reduced[k] || expr.type.rank() == in.size()) kept.push_back(reduced[k] ? integer(1) : in[k]);
      out.push_back(kept[d]);
    } else {
      out.push_back(signature_extent(id, number));
    }
  }
  return out;
}

/// A dimension that the signature binds to one of an argument, or to the box; else asked for at run time.
KVal KernelProgram::signature_extent(ExprId id, int dim) {
  const Expr& expr = graph.expr(id);
  const Signature& signature = signature_of(*expr.op);
  const std::vector<DimPattern>& result = signature.result.shape;
  auto [entry, inside] = pattern_entry(result, expr.type.rank(), static_cast<size_t>(dim));
  if (expr.op->infer || entry >= result.size() || result[entry].symbol.empty()) return interior_extent(id, dim);
  size_t arg = 0;
  for (const Parameter& p : signature.parameters) {
    if (p.static_kind != StaticKind::None) continue;
    if (p.variadic || arg >= expr.args.size()) break;
    const std::vector<DimPattern>& pattern = p.pattern.shape;
    for (size_t e = 0, at = 0; e < pattern.size(); ++e) {
      bool pack = pattern[e].kind == DimPattern::Kind::Pack;
      if (pattern[e].kind == result[entry].kind && pattern[e].symbol == result[entry].symbol) {
        if (p.pattern.box) return value(expr.args[arg], {integer(static_cast<int64_t>(e) + 2)});
        return dims(expr.args[arg])[at + inside];
      }
      at += pack ? graph.expr(expr.args[arg]).type.rank() + 1 - pattern.size() : 1;
    }
    ++arg;
  }
  return interior_extent(id, dim);
}

KVal KernelProgram::interior_extent(ExprId id, int dim) {
  int32_t local = exprs.local.at(id);
  auto slot = std::find(shape_exprs.begin(), shape_exprs.end(), local);
  auto number = static_cast<int32_t>(slot - shape_exprs.begin());
  if (slot == shape_exprs.end()) shape_exprs.push_back(local);
  return extent_of({ExtentSource::Interior, number, dim});
}

KVal KernelProgram::flat_index(const std::vector<KVal>& extents, const Index& index) {
  // Sum of index * stride, so that each part stands in the loop that it belongs to.
  KVal flat = integer(0), stride = integer(1);
  for (size_t d = index.size(); d-- > 0;) {
    flat = add(mul(index[d], stride), flat);
    if (d > 0) stride = mul(stride, extents[d]);
  }
  return flat;
}

/// The loops of an expression are the same in each version and each place where it stands: it is never inside of
/// itself.
std::vector<int32_t> KernelProgram::loops_of(ExprId id, const std::vector<KVal>& extents) {
  std::vector<int32_t> key;
  for (KVal e : extents) key.push_back(e.id);
  std::vector<int32_t>& loops = loops_of_[{id, key}];
  while (loops.size() < extents.size()) loops.push_back(new_loop(extents[loops.size()]));
  return loops;
}

int32_t KernelProgram::new_loop(KVal extent) {
  if (loop_extents.size() >= kMergeLoop) {
    fail("too many loops in one kernel");
    return 0;
  }
  loop_extents.push_back(extent.id);
  return static_cast<int32_t>(loop_extents.size()) - 1;
}

std::vector<int32_t> KernelProgram::targets(const Nest& nest) const {
  std::vector<int32_t> out = nest.effects;
  for (int32_t loop : nest.loops) out.push_back(loop_extents[static_cast<size_t>(loop)]);
  for (const Store& store : nest.stores) {
    out.push_back(store.index);
    out.push_back(store.value);
  }
  return out;
}

std::vector<int32_t> KernelProgram::closure(const std::vector<int32_t>& roots) const {
  std::vector<bool> seen(static_cast<size_t>(node_count()));
  std::vector<int32_t> stack = roots, out;
  while (!stack.empty()) {
    int32_t id = stack.back();
    stack.pop_back();
    if (id < 0 || seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    out.push_back(id);
    const KNode& n = node(id);
    for (int32_t arg : {n.a, n.b, n.c}) stack.push_back(arg);
    if (n.op == KOp::ReduceValue) {
      const Reduction& r = reductions[static_cast<size_t>(n.imm)];
      for (int32_t loop : r.loops) stack.push_back(loop_extents[static_cast<size_t>(loop)]);
      stack.insert(stack.end(), {r.init, r.next, r.merged});
      stack.insert(stack.end(), r.effects.begin(), r.effects.end());
      stack.insert(stack.end(), r.merge_effects.begin(), r.merge_effects.end());
    }
    if (n.op == KOp::Prepare) {
      const Resampler& r = resamplers[static_cast<size_t>(n.imm)];
      stack.insert(stack.end(), r.geometry.begin(), r.geometry.end());
      if (r.input >= 0) {
        stack.insert(stack.end(), {r.base, r.row_stride});
      } else {
        std::vector<int32_t> copy = targets(r.copy);
        stack.insert(stack.end(), copy.begin(), copy.end());
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

// ---- the loop nest as text
// ----------------------------------------------------------------------------------------------

void KernelProgram::list_nest(const Nest& nest, int depth, std::string& out) const {
  // Named: what is used more than once, or made outside of the loop that uses it.
  std::vector<int32_t> all = closure(targets(nest));
  std::map<int32_t, int> uses;
  std::set<int32_t> named;
  for (int32_t id : all)
    for (int32_t arg : {node(id).a, node(id).b, node(id).c}) {
      if (arg < 0) continue;
      if (++uses[arg] > 1 || node(arg).loops != node(id).loops) named.insert(arg);
    }
  std::set<int32_t> shown;
  std::string indent(static_cast<size_t>(depth) * 2, ' ');
  LoopSet active = 0;
  auto body = [&](const std::string& margin) {
    for (int32_t id : all) {
      const KNode& n = node(id);
      bool reduction = n.op == KOp::ReduceValue, effect_here = n.op >= KOp::Prepare && n.op <= KOp::Fail;
      if (!only(n.loops, active) || n.op <= KOp::Extent || n.op == KOp::Param) continue;
      if (!(named.contains(id) || reduction || effect_here) || !shown.insert(id).second) continue;
      if (reduction) {
        const Reduction& r = reductions[static_cast<size_t>(n.imm)];
        std::string loops;
        for (int32_t loop : r.loops)
          loops += fmt::format("{}i{} < {}", loops.empty() ? "" : ", ", loop,
                               text(loop_extents[static_cast<size_t>(loop)], named));
        out += fmt::format("{}%{} = reduce{} in 16 lanes over {}: acc{} = {}, from {}\n", margin, id, n.imm, loops,
                           node(r.accumulator).imm, operation(r.next, {}), text(r.init, named));
        named.insert(id);
      } else if (n.op == KOp::RowFill) {
        out += fmt::format("{}%{} = {}\n", margin, id, operation(id, named));
        named.insert(id);
      } else if (effect_here) {
        out += fmt::format("{}{}\n", margin, operation(id, named));
      } else {
        out += fmt::format("{}%{}: {} = {}\n", margin, id, elem_name(n.elem), operation(id, named));
      }
    }
  };
  body(indent);
  for (int32_t loop : nest.loops) {
    out += fmt::format("{}for i{} < {}:\n", indent, loop, text(loop_extents[static_cast<size_t>(loop)], named));
    indent += "  ";
    active |= LoopSet{1} << loop;
    body(indent);
  }
  for (const Store& store : nest.stores)
    out += fmt::format("{}{}[{}] = {}\n", indent, store.output < 0 ? "picture" : fmt::format("out{}", store.output),
                       text(store.index, named), text(store.value, named));
}

std::string KernelProgram::listing() const {
  std::string out;
  for (size_t i = 0; i < group.leaves.size(); ++i)
    out +=
        fmt::format("in{}: {} = {}\n", i, to_string(graph.expr(group.leaves[i]).type), to_text(graph, group.leaves[i]));
  for (size_t i = 0; i < group.roots.size(); ++i)
    out +=
        fmt::format("out{}: {} = {}\n", i, to_string(graph.expr(group.roots[i]).type), to_text(graph, group.roots[i]));
  for (const Version& version : versions) {
    std::string condition;
    for (auto [id, outcome] : version.assumed)
      condition += fmt::format("{}{}{}", condition.empty() ? "" : " and ", outcome ? "" : "not ", text(id, {}));
    for (int32_t input : version.small_inputs)
      condition += fmt::format("{}0 <= in{} < {}", condition.empty() ? "" : " and ", input, kSmallInput);
    if (!condition.empty()) out += fmt::format("when {}:\n", condition);
    if (condition.empty() && versions.size() > 1) out += "else:\n";
    list_nest(version.nest, versions.size() > 1 ? 1 : 0, out);
  }
  return out;
}

}  // namespace zephon
