#include "runtime/flow/compute.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "runtime/reference/sample_evaluator.h"

namespace zephon {
namespace {

constexpr double kHeavyChunkNs = 2e6;  // rows of a chunk that takes longer run in parallel
constexpr double kGrainNs = 3e5;       // in pieces of about this long
constexpr double kSlowStepNs = 1e4;  // a step that takes longer is timed at each row
constexpr size_t kNever = SIZE_MAX;

TensorRef static_shape(const Type& type) {
  TensorRef ref;
  ref.elem = type.elem;
  ref.rank = static_cast<int32_t>(type.rank());
  for (size_t i = 0; i < type.rank(); ++i) ref.shape[i] = type.shape[i].extent;
  return ref;
}

bool same_shape(const TensorRef& a, const TensorRef& b) {
  return a.elem == b.elem && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

/// What it takes to look at the clock.
int64_t clock_ns() {
  static const int64_t ns = [] {
    int64_t least = 1000;
    for (int i = 0; i < 32; ++i) {
      const int64_t begin = monotonic_ns();
      least = std::min(least, monotonic_ns() - begin);
    }
    return least;
  }();
  return ns;
}

/// A constant as kernels read it.
struct HeldConstant {
  Value value;
  std::shared_ptr<const Value> failed;  // then `value` holds zeros, and every row that reads it fails
  std::vector<StringRef> strings;
  TensorRef ref;
  void bind() {
    ref.elem = value.elem();
    ref.rank = static_cast<int32_t>(value.rank());
    std::copy(value.shape().begin(), value.shape().end(), ref.shape);
    if (is_string(ref.elem)) {
      for (const std::string& s : value.string_items()) strings.push_back({s.data(), s.size()});
      ref.data = strings.data();
    } else {
      ref.data = value.mutable_bytes().data();
    }
  }
};

/// Copies a good value to memory of the shape of `to`; strings go to the arena.
void store(const Value& value, void* to, Arena& arena) {
  if (is_string(value.elem())) {
    auto* refs = static_cast<StringRef*>(to);
    for (const std::string& s : value.string_items()) {
      auto* text = static_cast<char*>(arena.allocate(s.size()));
      std::copy(s.begin(), s.end(), text);
      *refs++ = {text, s.size()};
    }
  } else {
    std::copy(value.bytes().begin(), value.bytes().end(), static_cast<uint8_t*>(to));
  }
}

/// What the kernel of one row takes.
class RowMemory {
 public:
  RowMemory(BufferPool& pool, Arena& arena) : pool_(pool), arena_(arena) {}
  ~RowMemory() {
    if (reserved_ > 0) pool_.unreserve(reserved_);
  }
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;

  static void* allocate(void* self, size_t bytes) {
    auto& memory = *static_cast<RowMemory*>(self);
    memory.allocated_ += bytes;
    return memory.arena_.allocate(bytes);
  }
  static void reserve(void* self, size_t bytes) { static_cast<RowMemory*>(self)->add(bytes); }
  void reserve_for_reference(std::span<const TensorRef> inputs) {
    size_t bytes = 3 * allocated_;  // value, marks of failed elements, and what they are made of
    for (const TensorRef& input : inputs)
      for (int64_t i = 0; is_string(input.elem) && i < input.size(); ++i)
        bytes += 2 * static_cast<const StringRef*>(input.data)[i].size;
    if (bytes > kSmallCopies) add(bytes);
  }

 private:
  static constexpr size_t kSmallCopies = size_t{64} << 10;
  void add(size_t bytes) {
    pool_.reserve(bytes);
    reserved_ += bytes;
  }
  BufferPool& pool_;
  Arena& arena_;
  size_t allocated_ = 0, reserved_ = 0;
};

bool has_shape(const Value& value, const TensorRef& ref) {
  return value.elem() == ref.elem && value.rank() == ref.rank &&
         std::equal(value.shape().begin(), value.shape().end(), ref.shape);
}

}  // namespace

// Where the value of an expression is found.
struct Stage::Slot {
  enum class Kind : uint8_t { Constant, Input, Root } kind = Kind::Root;
  ExprId expr;
  int input = -1;   // Input: column
  TensorRef shape;  // Root: elem and rank, and the shape where it is static
  bool is_static = false;
  bool row_local = false;  // Root: lives in scratch, for one row
  size_t last_use = 0;     // step; kNever: an output
  std::unique_ptr<HeldConstant> constant;
};

struct Stage::Step {
  bool filter = false;
  int predicate = -1;
  int place = 0;  // of a filter, as written
  KernelGroup::Kind kind = KernelGroup::Kind::PerSample;
  std::vector<int> leaves, roots;  // slots; Native: leaves are the operator's arguments in order
  bool fits_shape = false;         // to be asked at each row: the shape of some leaf is not known before the run
  std::shared_ptr<const CompiledKernel> kernel;
  NativeKernel native = nullptr;
  const Expr* expr = nullptr;  // of the first root
  uint64_t draw_key = 0;
  // PerSample with a shape known only at run time: expressions from the leaves to the root, arguments first.
  struct Interior {
    const Expr* expr;
    std::vector<int> args;  // >= 0: an earlier interior; < 0: leaf ~i
  };
  std::vector<Interior> interior;
  std::vector<std::unique_ptr<HeldConstant>> interior_constants;
};

struct Stage::Segment {
  bool columnar = false;
  size_t begin = 0, end = 0;  // steps
};

struct SlotIssue {
  int64_t row;
  int slot;
  std::shared_ptr<const Value> value;
  int place = 0;  // slot -1: of the filter that has failed

  // Filters run in whatever order: that which stands first in the program has failed.
  void filter_failed_too(const std::shared_ptr<const Value>& why, int where) {
    if (where >= place) return;
    value = why;
    place = where;
  }
};

// One chunk on its way through the stage.
struct Stage::Work {
  const ChunkPtr& in;
  NodeCounters& counters;
  int64_t rows;
  std::vector<Column> columns;       // by slot
  std::vector<uint32_t> origin;      // row of `in`, by row; empty: the same
  std::vector<uint8_t> alive;        // row segments: 0 after a filter said false; empty: all
  std::vector<uint8_t> failed_rows;  // came as FAILED ROWS; empty: none
  std::vector<SlotIssue> issues;     // of slots and, with slot -1, of filters; sorted after each segment
  std::vector<std::shared_ptr<const void>> keep;
  std::mutex mutex;              // merges of what parallel pieces found
  std::vector<SlotIssue> found;  // by them; others still read `issues`, so they join at sort_issues()

  int64_t origin_of(int64_t row) const { return origin.empty() ? row : origin[static_cast<size_t>(row)]; }
  const SlotIssue* issue(int64_t row, int slot) const {
    if (issues.empty()) return nullptr;
    auto at = std::lower_bound(issues.begin(), issues.end(), std::pair(row, slot),
                               [](const SlotIssue& a, const auto& key) { return std::pair(a.row, a.slot) < key; });
    return at != issues.end() && at->row == row && at->slot == slot ? &*at : nullptr;
  }
  SlotIssue* issue(int64_t row, int slot) { return const_cast<SlotIssue*>(std::as_const(*this).issue(row, slot)); }
  void sort_issues() {
    issues.insert(issues.end(), found.begin(), found.end());
    found.clear();
    std::stable_sort(issues.begin(), issues.end(), [](const SlotIssue& a, const SlotIssue& b) {
      return std::pair(a.row, a.slot) < std::pair(b.row, b.slot);
    });
  }
};

// What one thread works with; kept from chunk to chunk.
struct Stage::Local {
  explicit Local(BufferPool& pool) : scratch(pool) {}
  Arena scratch;                  // one row (or one columnar step)
  std::shared_ptr<Arena> arena;   // values that live as long as the chunk
  std::vector<TensorRef> values;  // by slot: row-local roots
  std::vector<uint8_t> bad;       // by slot: this row's value failed
  std::vector<SlotIssue> issues;
  std::vector<TensorRef> inputs, outputs, shapes;
  // The shape found last, by step: pictures of one size are common.
  struct Memo {
    std::vector<int64_t> key;
    TensorRef shape;
    bool ok = false;
  };
  std::map<const Step*, Memo> memo;
  std::vector<int64_t> key;
  std::vector<StepTally> tallies;  // by step; empty but for those that it was lent for
  std::vector<double> usual_ns;    // by step: what a row takes most often; 0: not known yet
};

class Stage::LocalLease {
 public:
  /// For steps from `begin` to `end`.
  LocalLease(const Stage& stage, Work& work, size_t begin, size_t end)
      : stage_(stage), work_(work), begin_(begin), end_(end) {
    {
      std::lock_guard lock(stage.locals_mutex_);
      if (!stage.locals_.empty()) {
        local_ = std::move(stage.locals_.back());
        stage.locals_.pop_back();
      }
    }
    if (!local_) local_ = std::make_unique<Local>(*stage.context_.pool);
    local_->arena = std::make_shared<Arena>(*stage.context_.pool);
    local_->values.resize(stage.slots_.size());
    local_->bad.assign(stage.slots_.size(), 0);
    local_->tallies.resize(stage.steps_.size());
    local_->usual_ns.resize(stage.steps_.size());
  }
  ~LocalLease() {
    local_->scratch.release();
    {
      std::lock_guard lock(work_.mutex);
      if (!local_->arena->empty()) work_.keep.push_back(local_->arena);
      work_.found.insert(work_.found.end(), local_->issues.begin(), local_->issues.end());
    }
    local_->arena.reset();
    local_->issues.clear();
    std::lock_guard lock(stage_.locals_mutex_);
    for (size_t i = begin_; i < end_; ++i) {
      stage_.tallies_[i] += local_->tallies[i];
      local_->tallies[i] = {};
    }
    stage_.locals_.push_back(std::move(local_));
  }
  LocalLease(const LocalLease&) = delete;
  LocalLease& operator=(const LocalLease&) = delete;
  Local& operator*() const { return *local_; }

 private:
  const Stage& stage_;
  Work& work_;
  size_t begin_, end_;
  std::unique_ptr<Local> local_;
};

Stage::~Stage() = default;

Stage::Stage(const StageContext& context, const PlanNode& node, const std::vector<std::string>& input,
             std::string& error)
    : context_(context), node_(node), graph_(context.plan->graph), ns_per_row_(node.est_ns_per_row) {
  for (const ComputeStep& from : node.steps) {
    Step& step = steps_.emplace_back();
    if (from.kind == ComputeStep::Kind::Filter) {
      step.filter = true;
      step.predicate = slot_of(from.predicate, input, error);
      step.place = from.place;
      keeps_rows_ = false;
      continue;
    }
    step.kind = from.group.kind;
    step.expr = &graph_.expr(from.group.roots.at(0));
    const auto& leaves = step.kind == KernelGroup::Kind::Native ? step.expr->args : from.group.leaves;
    for (ExprId leaf : leaves) step.leaves.push_back(slot_of(leaf, input, error));
    for (ExprId root : from.group.roots) {
      Slot slot;
      slot.expr = root;
      const Type& type = graph_.expr(root).type;
      slot.is_static = type.has_static_shape();
      slot.shape = slot.is_static ? static_shape(type) : TensorRef{};
      slot.shape.elem = type.elem;
      slot.shape.rank = static_cast<int32_t>(type.rank());
      step.roots.push_back(static_cast<int>(slots_.size()));
      slots_.push_back(std::move(slot));
    }
    if (step.kind == KernelGroup::Kind::Native) {
      step.native = step.expr->op->kernel.native;
      draws_ |= step.expr->draw_id != 0;
    } else if (context.compiler) {
      KernelCompiler* compiler = context.compiler();
      std::string problem = "no compiler";
      if (compiler) step.kernel = compiler->compile(graph_, from.group, problem);
      if (!step.kernel) error = problem;
    }
    if (!error.empty()) return;
    prepare_step(step, error);
  }
  for (const OutputField& output : node.outputs) output_slots_.push_back(slot_of(output.expr, input, error));
  if (error.empty()) plan_segments();
  tallies_.resize(steps_.size());
  if (node.keeps_rows) kept_ = std::make_unique<KeptRows>(*context.kept, node.pass_words);
}

// Whether somebody asks for more than its shape.
bool Stage::read_whole(int slot) const {
  if (std::ranges::find(output_slots_, slot) != output_slots_.end()) return true;
  return std::ranges::any_of(steps_, [&](const Step& step) {
    if (step.filter) return step.predicate == slot;
    for (size_t i = 0; i < step.leaves.size(); ++i)
      if (step.leaves[i] == slot && !(step.native && i == 0 && step.expr->op->shape_only)) return true;
    return false;
  });
}

int Stage::slot_of(ExprId id, const std::vector<std::string>& input, std::string& error) {
  // Roots of earlier steps first: a stage may read and make the same field.
  for (size_t i = slots_.size(); i-- > 0;)
    if (slots_[i].expr == id) return static_cast<int>(i);
  const Expr& expr = graph_.expr(id);
  Slot slot;
  slot.expr = id;
  if (expr.op->name == "field") {
    slot.kind = Slot::Kind::Input;
    auto at = std::find(input.begin(), input.end(), expr.attrs.text("name"));
    if (at == input.end()) {
      error = "no column `" + expr.attrs.text("name") + "` comes to " + node_.label;
    } else {
      slot.input = static_cast<int>(at - input.begin());
    }
  } else if (expr.constant || is_data_constant(expr)) {
    slot.kind = Slot::Kind::Constant;
    slot.constant = std::make_unique<HeldConstant>();
    slot.constant->value = expr.constant ? *expr.constant : context_.fallback->constant(id);
    if (slot.constant->value.any_failed()) {
      slot.constant->failed = std::make_shared<const Value>(std::move(slot.constant->value));
      std::vector<int64_t> shape;
      for (const Dim& dim : expr.type.shape) shape.push_back(dim.is_static() ? dim.extent : 0);
      slot.constant->value = Value(expr.type.elem, std::move(shape));
    }
    slot.constant->bind();
  } else {
    error = "`" + to_text(graph_, id) + "` is read before it is evaluated in " + node_.label;
  }
  slots_.push_back(std::move(slot));
  return static_cast<int>(slots_.size()) - 1;
}

// Finds how the shape of a PerSample root follows from those of its leaves.
void Stage::prepare_step(Step& step, std::string& error) {
  // A result of known shape may be made of arguments whose shape is not: those that do not fit fail.
  step.fits_shape = std::any_of(step.leaves.begin(), step.leaves.end(), [&](int leaf) {
    return !graph_.expr(slots_[static_cast<size_t>(leaf)].expr).type.has_static_shape();
  });
  if (step.kind != KernelGroup::Kind::PerSample ||
      (!step.fits_shape && slots_[static_cast<size_t>(step.roots[0])].is_static))
    return;
  std::map<ExprId, int> place;
  for (size_t i = 0; i < step.leaves.size(); ++i)
    place[slots_[static_cast<size_t>(step.leaves[i])].expr] = ~static_cast<int>(i);
  std::vector<std::pair<ExprId, bool>> stack{{slots_[static_cast<size_t>(step.roots[0])].expr, false}};
  while (!stack.empty()) {
    auto [id, expanded] = stack.back();
    stack.pop_back();
    if (place.count(id)) continue;
    const Expr& expr = graph_.expr(id);
    if (!expanded) {
      stack.push_back({id, true});
      for (ExprId arg : expr.args) stack.push_back({arg, false});
      continue;
    }
    Step::Interior interior{&expr, {}};
    for (ExprId arg : expr.args) interior.args.push_back(place.at(arg));
    if (expr.op->name == "field") error = "kernel of " + node_.label + " reads a column that is not its leaf";
    place[id] = static_cast<int>(step.interior.size());
    step.interior.push_back(std::move(interior));
    auto& held = step.interior_constants.emplace_back();
    if (expr.constant) {
      held = std::make_unique<HeldConstant>();
      held->value = *expr.constant;
      held->bind();
    }
  }
}

void Stage::plan_segments() {
  auto is_row_step = [&](const Step& step) { return !step.filter && step.kind != KernelGroup::Kind::Columnar; };
  for (size_t i = 0; i < steps_.size(); ++i) {
    // A filter belongs to the segment before it: there its predicate is at hand.
    bool columnar = steps_[i].filter ? segments_.empty() || segments_.back().columnar : !is_row_step(steps_[i]);
    if (segments_.empty() || segments_.back().columnar != columnar) segments_.push_back({columnar, i, i});
    segments_.back().end = i + 1;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (int leaf : steps_[i].leaves) slots_[static_cast<size_t>(leaf)].last_use = i;
    if (steps_[i].filter) slots_[static_cast<size_t>(steps_[i].predicate)].last_use = i;
  }
  for (int slot : output_slots_) slots_[static_cast<size_t>(slot)].last_use = kNever;
  for (const Segment& segment : segments_) {
    if (segment.columnar) continue;
    for (size_t i = segment.begin; i < segment.end; ++i)
      for (int root : steps_[i].roots)
        slots_[static_cast<size_t>(root)].row_local = slots_[static_cast<size_t>(root)].last_use < segment.end;
  }
  // Native kernels may answer with views into the strings that they read (`where`, a part of a path), which then live
  // as long as the answer. Readers stand behind what they read.
  for (size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].filter) continue;
    bool kept = false;
    for (int root : steps_[i].roots) {
      const Slot& slot = slots_[static_cast<size_t>(root)];
      kept |= is_string(slot.shape.elem) && !slot.row_local;
    }
    if (!kept) continue;
    for (int leaf : steps_[i].leaves)
      if (Slot& slot = slots_[static_cast<size_t>(leaf)]; is_string(slot.shape.elem)) slot.row_local = false;
  }
}

std::vector<StepTally> Stage::tallies() const {
  std::lock_guard lock(locals_mutex_);
  return tallies_;
}

void Stage::begin_epoch(uint64_t epoch) {
  for (Step& step : steps_)
    if (step.native && step.expr->draw_id != 0)
      step.draw_key = draw_key(context_.plan->seed, epoch, step.expr->draw_id);
}

ChunkPtr Stage::run(const ChunkPtr& in, NodeCounters& counters) const {
  if (in->skipped) return in;
  if (in->rejected.empty()) return run_rows_of(in, counters);
  // What happened before a row that is dropped happened before the next.
  auto out = std::make_shared<Chunk>(*run_rows_of(in, counters));
  std::vector<int64_t> made = rows_made(*in, *out);
  int64_t next = out->rows;
  for (size_t row = made.size(); row-- > 0;) next = made[row] = made[row] < 0 ? next : made[row];
  made.push_back(out->rows);
  for (const RejectedAt& rejected : in->rejected)
    out->rejected.push_back({made[static_cast<size_t>(rejected.row)], rejected.what});
  return out;
}

ChunkPtr Stage::run_rows_of(const ChunkPtr& in, NodeCounters& counters) const {
  if (in->rows == 0 || !kept_) return compute(in, counters);
  std::vector<KeptRows::Answer> answers;
  std::vector<RowPlace> unknown;
  ChunkPtr part = in;
  {
    CpuScope cpu(counters);
    answers = kept_->find(*in);
    for (int64_t row = 0; row < in->rows; ++row)
      if (!answers[static_cast<size_t>(row)].known) unknown.push_back({&in, row});
    if (!unknown.empty() && static_cast<int64_t>(unknown.size()) < in->rows) part = gather(*context_.pool, unknown);
  }
  ChunkPtr made;
  std::vector<int64_t> made_of;
  if (!unknown.empty()) {
    made = compute(part, counters);
    CpuScope cpu(counters);
    made_of = rows_made(*part, *made);
    kept_->add(*part, *made, made_of);
    if (part == in) return made;
  }
  CpuScope cpu(counters);
  std::vector<RowPlace> places;
  std::vector<uint32_t> rows;
  size_t next_unknown = 0;
  for (int64_t row = 0; row < in->rows; ++row) {
    const KeptRows::Answer& answer = answers[static_cast<size_t>(row)];
    const int64_t at = answer.known ? -1 : made_of[next_unknown++];
    if (!answer.row && at < 0) continue;  // dropped
    places.push_back(answer.row ? RowPlace{&answer.row, 0} : RowPlace{&made, at});
    rows.push_back(static_cast<uint32_t>(row));
  }
  return places.empty() ? compute(slice(in, 0, 0), counters) : join_kept(*in, places, rows);
}

// `places` are what was kept or made of `rows` of `in`. A row that is kept has the identity of the pass, and the place
// in the order, in which it came first.
ChunkPtr Stage::join_kept(const Chunk& in, const std::vector<RowPlace>& places,
                          const std::vector<uint32_t>& rows) const {
  auto out = std::make_shared<Chunk>(*gather(*context_.pool, places));
  out->ids = static_cast<int64_t>(rows.size()) == in.rows ? in.ids : in.ids.select(*context_.pool, rows);
  out->order.clear();
  for (uint32_t row : rows)
    if (!in.order.empty()) out->order.push_back(in.order[row]);
  out->bytes = 0;
  for (int64_t row = 0; row < out->rows; ++row) out->bytes += row_bytes(*out, row);
  return out;
}

ChunkPtr Stage::compute(const ChunkPtr& in, NodeCounters& counters) const {
  CpuScope cpu(counters);
  int64_t begin_ns = monotonic_ns();
  Work work{in, counters, in->rows, std::vector<Column>(slots_.size()), {}, {}, {}, {}, in->keep, {}};
  for (const Issue& issue : in->issues) {
    if (issue.column != Issue::kFailedRow) continue;
    work.failed_rows.resize(static_cast<size_t>(in->rows), 0);
    work.failed_rows[static_cast<size_t>(issue.row)] = 1;
  }
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].kind == Slot::Kind::Constant && slots_[s].constant->failed)
      for (int64_t row = 0; row < work.rows; ++row)
        work.issues.push_back({row, static_cast<int>(s), slots_[s].constant->failed});
    if (slots_[s].kind != Slot::Kind::Input) continue;
    work.columns[s] = in->columns[static_cast<size_t>(slots_[s].input)];
    for (const Issue& issue : in->issues)
      if (issue.column == slots_[s].input) work.issues.push_back({issue.row, static_cast<int>(s), issue.value});
  }
  work.sort_issues();
  double ns_per_row = ns_per_row_.load(std::memory_order_relaxed);
  bool parallel = false;
  for (const Segment& segment : segments_) {
    if (segment.columnar) {
      run_columnar(segment, work);
    } else {
      for (size_t i = segment.begin; i < segment.end; ++i) {
        for (int root : steps_[i].roots) {
          const Slot& slot = slots_[static_cast<size_t>(root)];
          if (slot.row_local) continue;
          work.columns[static_cast<size_t>(root)] =
              slot.is_static ? make_fixed_column(*context_.pool, slot.shape, work.rows)
                             : make_ref_column(*context_.pool, slot.shape.elem, slot.shape.rank, work.rows);
        }
      }
      bool filters = false;
      for (size_t i = segment.begin; i < segment.end; ++i) filters |= steps_[i].filter;
      if (filters) work.alive.assign(static_cast<size_t>(work.rows), 1);
      MemoryClaim* claim = ClaimScope::current();
      if (context_.threads > 1 && work.rows > 1 && (!claim || claim->may_share()) &&
          ns_per_row * static_cast<double>(work.rows) > kHeavyChunkNs) {
        parallel = true;
        cpu.pause();
        // In turn for memory, one thread at a time: two that each hold a part would wait for each other.
        if (claim) claim->in_parallel = true;
        auto grain = static_cast<size_t>(std::max(1.0, kGrainNs / ns_per_row));
        // Isolated: a thread that waits here must not pick up another chunk, which would hold the memory of both.
        tbb::this_task_arena::isolate([&] {
          tbb::parallel_for(
              tbb::blocked_range<int64_t>(0, work.rows, grain),
              [&](const tbb::blocked_range<int64_t>& range) {
                ClaimScope scope(claim);
                CpuScope piece(counters);
                run_rows(segment, work, range.begin(), range.end());
              },
              tbb::simple_partitioner());
        });
        if (claim) claim->in_parallel = false;
        cpu.resume();
      } else {
        run_rows(segment, work, 0, work.rows);
      }
      work.sort_issues();
      if (filters) {
        std::vector<uint32_t> rows;
        for (int64_t row = 0; row < work.rows; ++row)
          if (work.alive[static_cast<size_t>(row)]) rows.push_back(static_cast<uint32_t>(row));
        work.alive.clear();
        if (static_cast<int64_t>(rows.size()) < work.rows) compact(work, rows, segment.end);
      }
    }
    for (size_t s = 0; s < slots_.size(); ++s)
      if (slots_[s].last_use < segment.end) work.columns[s] = {};
  }
  // Learned from chunks whose rows ran one after the other: there wall time is that of the rows.
  if (!parallel && in->rows > 0) {
    double measured = static_cast<double>(monotonic_ns() - begin_ns) / static_cast<double>(in->rows);
    ns_per_row_.store(ns_per_row > 0 ? 0.75 * ns_per_row + 0.25 * measured : measured, std::memory_order_relaxed);
  }
  return finish(work);
}

void Stage::run_columnar(const Segment& segment, Work& work) const {
  for (size_t i = segment.begin; i < segment.end && work.rows > 0; ++i) {
    const Step& step = steps_[i];
    if (!step.filter) {
      {
        LocalLease lease(*this, work, i, i + 1);
#if ZEPHON_COUNTERS
        const int64_t begin_ns = monotonic_ns();
        evaluate_columnar(step, work, *lease);
        StepTally& tally = (*lease).tallies[i];
        tally.ns = monotonic_ns() - begin_ns;
        tally.timed = tally.elements = work.rows;
#else
        evaluate_columnar(step, work, *lease);
#endif
      }
      if (!work.found.empty()) work.sort_issues();
      continue;
    }
    work.sort_issues();
    const Column& column = work.columns[static_cast<size_t>(step.predicate)];
    HeldConstant* constant = slots_[static_cast<size_t>(step.predicate)].constant.get();
    auto rows = static_cast<size_t>(work.rows);
    std::vector<uint32_t> selected(rows);
    size_t count = 0;
    const auto* truth = reinterpret_cast<const uint8_t*>(column.data);
    if (!constant && work.issues.empty() && work.failed_rows.empty()) {
      for (size_t row = 0; row < rows; ++row) {
        selected[count] = static_cast<uint32_t>(row);
        count += truth[row] != 0;
      }
    } else {
      for (size_t row = 0; row < rows; ++row) {
        bool keep = constant ? *static_cast<const uint8_t*>(constant->ref.data) != 0 : truth[row] != 0;
        auto at = static_cast<int64_t>(row);
        if (!work.failed_rows.empty() && work.failed_rows[row]) {
          keep = true;
        } else if (const SlotIssue* issue = work.issue(at, step.predicate)) {
          keep = true;
          if (SlotIssue* verdict = work.issue(at, -1)) {
            verdict->filter_failed_too(issue->value, step.place);
          } else {
            work.issues.push_back({at, -1, issue->value, step.place});
            work.sort_issues();
          }
        }
        selected[count] = static_cast<uint32_t>(row);
        count += keep;
      }
    }
    selected.resize(count);
#if ZEPHON_COUNTERS
    {
      std::lock_guard lock(locals_mutex_);
      tallies_[i].rows += work.rows;
      tallies_[i].kept += static_cast<int64_t>(count);
    }
#endif
    if (count < rows) compact(work, selected, i + 1);
  }
  work.sort_issues();
}

void Stage::evaluate_columnar(const Step& step, Work& work, Local& local) const {
  auto rows = static_cast<size_t>(work.rows);
  local.scratch.reset();
  local.inputs.clear();
  local.outputs.clear();
  for (int leaf : step.leaves) {
    const Slot& slot = slots_[static_cast<size_t>(leaf)];
    TensorRef ref;
    if (slot.kind == Slot::Kind::Constant) {
      ref = slot.constant->ref;
      size_t size = elem_size(ref.elem);
      auto* to = static_cast<std::byte*>(local.scratch.allocate(size * rows));
      for (size_t row = 0; row < rows; ++row) std::memcpy(to + row * size, ref.data, size);
      ref.data = to;
    } else {
      const Column& column = work.columns[static_cast<size_t>(leaf)];
      ref = column.row;
      ref.data = column.data;
      if (!column.fixed()) {  // scalars that came row by row
        size_t size = elem_size(ref.elem);
        auto* to = static_cast<std::byte*>(local.scratch.allocate(size * rows));
        for (size_t row = 0; row < rows; ++row) {
          if (column.refs[row].data) {
            std::memcpy(to + row * size, column.refs[row].data, size);
          } else {
            std::memset(to + row * size, 0, size);
          }
        }
        ref.data = to;
      }
    }
    local.inputs.push_back(ref);
  }
  for (int root : step.roots) {
    Column& column = work.columns[static_cast<size_t>(root)];
    column = make_fixed_column(*context_.pool, slots_[static_cast<size_t>(root)].shape, work.rows);
    TensorRef ref = column.row;
    ref.data = column.data;
    local.outputs.push_back(ref);
  }
  auto* failed = static_cast<uint8_t*>(local.scratch.allocate(rows));
  std::memset(failed, step.kernel ? 0 : 1, rows);
  if (step.kernel) {
    KernelCall call{work.rows, local.inputs.data(), local.outputs.data(), failed, nullptr};
    call.scratch = local.scratch.allocate(step.kernel->scratch_bytes(call));
    step.kernel->run(call);
  }
  for (const SlotIssue& issue : work.issues)
    if (std::find(step.leaves.begin(), step.leaves.end(), issue.slot) != step.leaves.end()) failed[issue.row] = 1;
  const uint8_t* row = failed;
  while ((row = static_cast<const uint8_t*>(std::memchr(row, 1, rows - static_cast<size_t>(row - failed))))) {
    int64_t index = row - failed;
    for (int root : step.roots) fall_back(slots_[static_cast<size_t>(root)].expr, root, work, local, index, false);
    if (static_cast<size_t>(++row - failed) == rows) break;
  }
}

void Stage::run_rows(const Segment& segment, Work& work, int64_t begin, int64_t end) const {
  LocalLease lease(*this, work, segment.begin, segment.end);
  Local& local = *lease;
  for (int64_t row = begin; row < end; ++row) {
    // What has failed as a whole is evaluated too: on_error may mask it, and then its other fields are delivered.
    const bool came_failed = !work.failed_rows.empty() && work.failed_rows[static_cast<size_t>(row)];
    local.scratch.reset();
    // One of 64, and of a small chunk that in the middle: the first is the dearest.
    const bool due = ZEPHON_COUNTERS && (row & 63) == std::min<int64_t>(work.rows, 64) / 2;
    for (size_t i = segment.begin; i < segment.end; ++i) {
      const Step& step = steps_[i];
      if (!step.filter) {
        try {
          const bool timed = due || local.usual_ns[i] > kSlowStepNs;
          const int64_t begin_ns = timed ? monotonic_ns() : 0;
          evaluate_row(step, work, local, row);
          if (timed) tally_row(step, work, local, row, begin_ns);
        } catch (const MemoryExceeded& e) {
          throw RowExceedsMemory(e, work.in->id(work.origin_of(row)),
                                 step.expr->origin.empty() ? Span{} : step.expr->origin[0],
                                 std::string(step.expr->op->name));
        }
        continue;
      }
      if (came_failed) continue;
      ++local.tallies[i].rows;
      ++local.tallies[i].kept;
      const Slot& slot = slots_[static_cast<size_t>(step.predicate)];
      const std::shared_ptr<const Value>* problem = nullptr;
      if (slot.row_local || i > segment.begin) {
        if (local.bad[static_cast<size_t>(step.predicate)])
          for (const SlotIssue& issue : local.issues)
            if (issue.row == row && issue.slot == step.predicate) problem = &issue.value;
      }
      if (!problem)
        if (const SlotIssue* issue = work.issue(row, step.predicate)) problem = &issue->value;
      if (problem) {
        SlotIssue* verdict = work.issue(row, -1);
        for (SlotIssue& issue : local.issues)
          if (issue.row == row && issue.slot == -1) verdict = &issue;
        if (verdict)
          verdict->filter_failed_too(std::shared_ptr(*problem), step.place);
        else
          local.issues.push_back({row, -1, *problem, step.place});
        continue;
      }
      const void* data = slot.kind == Slot::Kind::Constant ? slot.constant->ref.data
                         : slot.row_local                  ? local.values[static_cast<size_t>(step.predicate)].data
                                          : work.columns[static_cast<size_t>(step.predicate)].at(row).data;
      if (*static_cast<const uint8_t*>(data) == 0) {
        work.alive[static_cast<size_t>(row)] = 0;
        --local.tallies[i].kept;
        break;
      }
    }
  }
}

// The shape of a PerSample root, from the leaves in local.inputs.
bool Stage::shape_of_root(const Step& step, Local& local, TensorRef& out) const {
  local.key.clear();
  for (const TensorRef& leaf : local.inputs) {
    local.key.insert(local.key.end(), leaf.shape, leaf.shape + leaf.rank);
    // Values of boxes and the like shape the result.
    if (leaf.rank <= 1 && is_integer(leaf.elem) && leaf.data && leaf.size() <= kMaxRank) {
      const auto* bytes = static_cast<const uint8_t*>(leaf.data);
      for (size_t i = 0; i < leaf.byte_size(); ++i) local.key.push_back(bytes[i]);
    }
  }
  Local::Memo& memo = local.memo[&step];
  if (memo.key == local.key && !memo.key.empty()) {
    out = memo.shape;
    return memo.ok;
  }
  memo.key = local.key;
  memo.ok = true;
  local.shapes.resize(step.interior.size());
  std::vector<TensorRef> args;
  for (size_t i = 0; i < step.interior.size() && memo.ok; ++i) {
    const Step::Interior& interior = step.interior[i];
    if (step.interior_constants[i]) {
      local.shapes[i] = step.interior_constants[i]->ref;
      continue;
    }
    args.clear();
    for (int arg : interior.args)
      args.push_back(arg < 0 ? local.inputs[static_cast<size_t>(~arg)] : local.shapes[static_cast<size_t>(arg)]);
    TensorRef shape;
    memo.ok = runtime_shape(*interior.expr, args, shape);
    shape.data = nullptr;
    local.shapes[i] = shape;
    memo.shape = shape;
  }
  out = memo.shape;
  return memo.ok;
}

void Stage::evaluate_row(const Step& step, Work& work, Local& local, int64_t row) const {
  local.inputs.clear();
  bool bad = false;
  for (int leaf : step.leaves) {
    const Slot& slot = slots_[static_cast<size_t>(leaf)];
    if (slot.kind == Slot::Kind::Constant) {
      bad |= slot.constant->failed != nullptr;
      local.inputs.push_back(slot.constant->ref);
    } else if (slot.row_local) {
      bad |= local.bad[static_cast<size_t>(leaf)] != 0;
      local.inputs.push_back(local.values[static_cast<size_t>(leaf)]);
    } else {
      bad |= local.bad[static_cast<size_t>(leaf)] != 0 || work.issue(row, leaf) != nullptr;
      local.inputs.push_back(work.columns[static_cast<size_t>(leaf)].at(row));
    }
  }
  int root = step.roots[0];
  const Slot& slot = slots_[static_cast<size_t>(root)];
  Column& column = work.columns[static_cast<size_t>(root)];
  Arena& arena = slot.row_local ? local.scratch : *local.arena;
  local.bad[static_cast<size_t>(root)] = 0;
  TensorRef out = slot.shape;
  bool ok = !bad;
  RowMemory memory(*context_.pool, arena);
  if (ok && step.native) {
    NativeCall call;
    call.expr = step.expr;
    call.inputs = local.inputs;
    call.output = &out;
    if (slot.is_static) out.data = slot.row_local ? arena.allocate(out.byte_size()) : column.at(row).data;
    if (step.expr->draw_id != 0) {
      call.identity = work.in->ids.hash(work.origin_of(row), node_.outer_words);
      call.draw_key = step.draw_key;
    }
    call.allocate = RowMemory::allocate;
    call.reserve = RowMemory::reserve;
    call.context = &memory;
    const void* place = out.data;
    TensorRef shape;
    ok = !step.fits_shape || step.expr->op->cls != OpClass::Pointwise || runtime_shape(*step.expr, local.inputs, shape);
    ok = ok && step.native(call);
    if (ok && out.data == nullptr && out.size() > 0 && read_whole(root)) ok = false;  // nobody may read it
    if (ok && slot.is_static && out.data != place) {
      // The kernel answered with memory of its own: the column must be contiguous.
      ok = same_shape(out, slot.shape);
      if (ok && !slot.row_local) std::memcpy(column.at(row).data, out.data, out.byte_size());
    }
  } else if (ok && step.kernel) {
    if (!slot.is_static || step.fits_shape) ok = shape_of_root(step, local, out);
    if (ok) {
      out.data = slot.is_static && !slot.row_local ? column.at(row).data : arena.allocate(out.byte_size());
      uint8_t failed = 0;
      KernelCall call{1, local.inputs.data(), &out, &failed, nullptr};
      // A result that this stage reads again is wanted in the cache, as is what is gathered row by row.
      call.stream = slot.is_static && !slot.row_local && slot.last_use == kNever &&
                    context_.pool->past_caches(column.row_bytes * static_cast<size_t>(work.rows));
      if (size_t bytes = step.kernel->scratch_bytes(call)) call.scratch = local.scratch.allocate(bytes);
      step.kernel->run(call);
      ok = failed == 0;
    }
  } else {
    ok = false;
  }
  if (!ok) {
    // The reference evaluator works on copies of what is read and made.
    if (!bad) memory.reserve_for_reference(local.inputs);
    for (int each : step.roots)
      fall_back(slots_[static_cast<size_t>(each)].expr, each, work, local, row,
                slots_[static_cast<size_t>(each)].row_local);
    return;
  }
  if (slot.row_local) {
    local.values[static_cast<size_t>(root)] = out;
  } else if (!slot.is_static) {
    column.refs[row] = out;
  }
}

void Stage::tally_row(const Step& step, const Work& work, Local& local, int64_t row, int64_t begin_ns) const {
  const auto place = static_cast<size_t>(&step - steps_.data());
  StepTally& tally = local.tallies[place];
  const int64_t ns = std::max<int64_t>(monotonic_ns() - begin_ns - clock_ns(), 1);
  // The first time tables are made, and memory is touched; and another process may have had the processor meanwhile.
  // What takes many times as long as most rows does not count.
  double& usual = local.usual_ns[place];
  const auto took = static_cast<double>(ns);
  const bool interrupted = usual <= 0 || took > 8 * usual;
  usual = usual <= 0 ? took : took < usual ? (usual + took) / 2 : std::min(took, usual * 1.05);
  if (interrupted) return;
  tally.ns += ns;
  ++tally.timed;
  const auto text_bytes = [](const TensorRef& ref) {
    size_t bytes = 0;
    if (is_string(ref.elem) && ref.data != nullptr)
      for (int64_t i = 0; i < ref.size(); ++i) bytes += static_cast<const StringRef*>(ref.data)[i].size;
    return static_cast<int64_t>(bytes);
  };
  for (const TensorRef& input : local.inputs)
    tally.input_bytes += is_string(input.elem) ? text_bytes(input) : static_cast<int64_t>(input.byte_size());
  const auto root = static_cast<size_t>(step.roots[0]);
  if (local.bad[root]) return;
  const TensorRef made = slots_[root].row_local ? local.values[root] : work.columns[root].at(row);
  tally.elements += made.size();
  tally.text_bytes += text_bytes(made);
}

// The reference evaluator's verdict on one row, over the columns that came to the stage.
void Stage::fall_back(ExprId root, int root_slot, Work& work, Local& local, int64_t row, bool local_only) const {
  const Chunk& in = *work.in;
  int64_t from = work.origin_of(row);
  SampleId id = in.id(from);
  id.words.resize(id.words.size() - static_cast<size_t>(node_.outer_words));
  auto field = [&](const std::string& name) -> Value {
    for (const Slot& slot : slots_) {
      if (slot.kind != Slot::Kind::Input || graph_.expr(slot.expr).attrs.text("name") != name) continue;
      if (const Issue* issue = in.issue(from, slot.input)) return *issue->value;
      return to_value(in.columns[static_cast<size_t>(slot.input)].at(from));
    }
    return Value::failed({"B0900", "no column `" + name + "`", {}});
  };
  auto value = std::make_shared<Value>(context_.fallback->evaluate(root, field, id));
  const Slot& slot = slots_[static_cast<size_t>(root_slot)];
  Column& column = work.columns[static_cast<size_t>(root_slot)];
  Arena& arena = local_only ? local.scratch : *local.arena;
  bool good = !value->any_failed() && (!slot.is_static || has_shape(*value, slot.shape));
  local.bad[static_cast<size_t>(root_slot)] = !good;
  TensorRef out = slot.shape;
  if (good) {
    out.elem = value->elem();
    out.rank = static_cast<int32_t>(value->rank());
    std::copy(value->shape().begin(), value->shape().end(), out.shape);
    out.data = slot.is_static && !local_only ? column.at(row).data : arena.allocate(out.byte_size());
    store(*value, out.data, arena);
  } else {
    NodeCounters::add(work.counters.failed_rows, 1);
    if (!value->any_failed())
      *value = Value::failed({"B0900", "`" + to_text(graph_, root) + "` has an unexpected shape", {}});
    local.issues.push_back({row, root_slot, std::move(value)});
    if (slot.is_static) {
      out.data = local_only ? arena.allocate(out.byte_size()) : column.at(row).data;
      std::memset(out.data, 0, out.byte_size());
    }
  }
  if (local_only) {
    local.values[static_cast<size_t>(root_slot)] = out;
  } else if (!slot.is_static) {
    column.refs[row] = out;
  }
}

// Keeps only `rows` of everything that step `next_step` or a later one reads.
void Stage::compact(Work& work, const std::vector<uint32_t>& rows, size_t next_step) const {
  auto count = static_cast<int64_t>(rows.size());
  for (size_t s = 0; s < slots_.size(); ++s) {
    Column& column = work.columns[s];
    if (!column.buffer) continue;
    if (slots_[s].last_use < next_step) {
      column = {};
      continue;
    }
    // What this stage made and nobody else has seen is compacted in place.
    bool in_place = column.buffer.unique();
    Column out = in_place         ? column
                 : column.fixed() ? make_fixed_column(*context_.pool, column.row, count)
                                  : make_ref_column(*context_.pool, column.row.elem, column.row.rank, count);
    if (!column.fixed()) {
      for (int64_t i = 0; i < count; ++i) out.refs[i] = column.refs[rows[static_cast<size_t>(i)]];
    } else if (column.row_bytes == 8) {
      const auto* from = reinterpret_cast<const uint64_t*>(column.data);
      auto* to = reinterpret_cast<uint64_t*>(out.data);
      for (uint32_t row : rows) *to++ = from[row];
    } else if (column.row_bytes == 4) {
      const auto* from = reinterpret_cast<const uint32_t*>(column.data);
      auto* to = reinterpret_cast<uint32_t*>(out.data);
      for (uint32_t row : rows) *to++ = from[row];
    } else {
      std::byte* to = out.data;
      for (uint32_t row : rows) {
        std::memmove(to, column.data + row * column.row_bytes, column.row_bytes);
        to += column.row_bytes;
      }
    }
    column = std::move(out);
  }
  std::vector<SlotIssue> issues;
  for (SlotIssue& issue : work.issues) {
    auto at = std::lower_bound(rows.begin(), rows.end(), static_cast<uint32_t>(issue.row));
    if (at == rows.end() || *at != issue.row) continue;
    issues.push_back({at - rows.begin(), issue.slot, std::move(issue.value), issue.place});
  }
  work.issues = std::move(issues);
  if (!work.failed_rows.empty()) {
    for (size_t i = 0; i < rows.size(); ++i) work.failed_rows[i] = work.failed_rows[rows[i]];
    work.failed_rows.resize(rows.size());
  }
  if (work.origin.empty()) {
    work.origin = rows;
  } else {
    for (size_t i = 0; i < rows.size(); ++i) work.origin[i] = work.origin[rows[i]];
    work.origin.resize(rows.size());
  }
  work.rows = count;
}

ChunkPtr Stage::finish(Work& work) const {
  auto out = std::make_shared<Chunk>();
  const Chunk& in = *work.in;
  out->rows = work.rows;
  out->columns.reserve(output_slots_.size());
  bool indirect = false;
  size_t bytes = 0;
  for (int index : output_slots_) {
    const Slot& slot = slots_[static_cast<size_t>(index)];
    Column column = work.columns[static_cast<size_t>(index)];
    if (slot.kind == Slot::Kind::Constant) {
      column = make_fixed_column(*context_.pool, slot.constant->ref, work.rows);
      for (int64_t row = 0; row < work.rows; ++row)
        std::memcpy(column.at(row).data, slot.constant->ref.data, column.row_bytes);
    } else if (!column.buffer) {  // no row reached the step that makes it
      column = slot.is_static ? make_fixed_column(*context_.pool, slot.shape, 0)
                              : make_ref_column(*context_.pool, slot.shape.elem, slot.shape.rank, 0);
    }
    indirect |= column.indirect();
    if (column.fixed()) {
      bytes += column.row_bytes * static_cast<size_t>(work.rows);
      for (int64_t row = 0; column.row.elem == Elem::Bytes && row < work.rows; ++row)
        for (int64_t i = 0; i < column.row.size(); ++i) bytes += static_cast<StringRef*>(column.at(row).data)[i].size;
    } else {
      for (int64_t row = 0; row < work.rows; ++row) bytes += column.refs[row].byte_size();
    }
    out->columns.push_back(std::move(column));
  }
  out->ids = work.origin.empty() ? in.ids : in.ids.select(*context_.pool, work.origin);
  if (!in.order.empty())
    for (int64_t row = 0; row < work.rows; ++row)
      out->order.push_back(in.order[static_cast<size_t>(work.origin_of(row))]);
  for (int64_t row = 0; row < work.rows && !work.failed_rows.empty(); ++row)
    if (work.failed_rows[static_cast<size_t>(row)])
      out->issues.push_back({row, Issue::kFailedRow, in.issue(work.origin_of(row), Issue::kFailedRow)->value});
  for (const SlotIssue& issue : work.issues) {
    if (issue.slot == -1) out->issues.push_back({issue.row, Issue::kFailedRow, issue.value});
    for (size_t c = 0; c < output_slots_.size(); ++c)
      if (output_slots_[c] == issue.slot) out->issues.push_back({issue.row, static_cast<int32_t>(c), issue.value});
  }
  std::stable_sort(out->issues.begin(), out->issues.end(), [](const Issue& a, const Issue& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
  if (indirect) out->keep = std::move(work.keep);
  out->bytes = bytes;
  return out;
}

}  // namespace zephon
