// Plan -> TBB flow graph.
//
// The plan falls into LANES and GROUPS. A lane is what may run in parallel: the reading of a source, if it begins with
// one, and the Compute nodes that follow. A group is a set of serial operators with no Compute node between them; one
// TBB node of concurrency 1 runs it, and puts what its lanes send back into order. Lanes and groups alternate down to
// Deliver.
//
// TBB nodes are fed by dispatch() and not by edges from a limiter: a chunk enters a lane when its bytes are expected to
// fit, lanes nearest to the end first. Tokens are the bytes that the pool has given out plus what chunks under way are
// expected to take; both are counted where memory is, so a dropped row or a failure cannot lose one.
//
// What a chunk really takes is often known only on the way (files, pictures). The pool is the limit: all that is not
// the oldest shares half of the budget; a packet that would pass it is POSTPONED: it gives back all that it took and
// begins again later, for a stage is a function of what comes to it. The oldest may use the whole budget. Where that is
// not free, packets that are done and wait for their turn are RECALLED, youngest first: postponed as well. If the
// oldest is alone and still does not fit it is cut in half, down to one row; and if that does not fit, the run has
// failed. Serial operators cannot begin again: they wait until the others are out of the way.
//
// Failures are rows like any other until Deliver. A body never throws: what its work throws becomes the end of the run.

#include <fmt/format.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "graph/pairs.h"
#include "runtime/flow/compute.h"
#include "runtime/flow/reference_fallback.h"
#include "runtime/flow/runner.h"
#include "runtime/flow/serial.h"
#include "runtime/flow/source_reader.h"

namespace zephon {
namespace {

constexpr int64_t kLightChunkRows = 16384;
constexpr double kChunkNs = 2e6;   // chunks of a source are cut to take about this long
constexpr double kBundleNs = 2e5;  // small chunks travel together until they are worth a task
constexpr auto kMemoryPoll = std::chrono::milliseconds(1);

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Lane;

struct Packet {
  Lane* lane = nullptr;
  uint64_t sequence = 0;         // in its lane
  std::vector<ChunkPtr> inputs;  // lane with a queue: what it begins with, until it is taken in
  std::vector<ChunkPtr> chunks;  // what has become of it
  uint64_t begin = 0, end = 0;   // source: indices to read
  bool last = false;
  bool skipped = false;             // all of it is counted only
  bool partial = false;             // the rest follows under the same number
  bool forced = false;              // the oldest: nothing else was under way when it entered
  std::atomic<bool> oldest{false};  // the whole budget is its own
  bool alone = false;               // one thread for its rows
  std::shared_ptr<Mark> mark;       // goes before its rows
  size_t reserved = 0;              // bytes
  struct Count {
    int64_t rows_in = 0, rows_out = 0, bytes = 0, chunks = 0;
  };
  std::vector<Count> counts;  // by stage; told when it is taken in, for it may be done again
  int64_t rows_read = 0;
  int64_t ready_ns = 0;
};
using PacketPtr = std::shared_ptr<Packet>;
using PacketNode = tbb::flow::function_node<PacketPtr, tbb::flow::continue_msg>;

struct Group;

// Parallel part of the plan; see above. All fields that change are guarded by the engine's mutex.
struct Lane final : Outlet {
  std::unique_ptr<SourceReader> reader;
  NodeCounters* reader_counters = nullptr;
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<NodeCounters*> stage_counters;
  const PlanNode* first = nullptr;
  std::unique_ptr<PacketNode> node;
  Group* group = nullptr;  // where its packets go, and there to
  SerialOp* target = nullptr;
  int target_port = 0;
  SerialOp* feeder = nullptr;  // the serial operator that fills the queue
  bool skips = false;          // its chunks are batches to be: those not wanted need not be computed
  bool shifted = false;        // in this pass they are not: a resumed batch already had some rows

  std::deque<ChunkPtr> queue;
  bool queue_ended = false;
  uint64_t next_index = 0;
  int64_t chunk_rows = 1;
  uint64_t next_sequence = 0, next_batch = 0;
  bool exhausted = false, closed = false;
  int in_flight = 0;                   // packets not yet taken in by the group
  std::map<uint64_t, PacketPtr> done;  // wait for their turn, by number
  std::deque<PacketPtr> postponed;     // by number; before all that has not yet begun
  uint64_t taken_in = 0;               // number of the next packet that the group takes in
  bool partial_under_way = false;      // the rest of that packet must wait
  double bytes_per_row = 0, ns_per_row = 0;

  std::function<void(ChunkPtr)> enqueue;
  std::function<void()> enqueue_end;
  void push(ChunkPtr chunk) override { enqueue(std::move(chunk)); }
  void end() override { enqueue_end(); }
  bool has_work() const {
    return !closed && (!postponed.empty() || (!exhausted && (reader != nullptr || !queue.empty() || queue_ended)));
  }
  void postpone(PacketPtr packet) {
    auto at = std::find_if(postponed.begin(), postponed.end(),
                           [&](const PacketPtr& other) { return other->sequence >= packet->sequence; });
    postponed.insert(at, std::move(packet));
  }
};

struct Group {
  std::unique_ptr<PacketNode> node;
  size_t index = 0;  // the nearest to Deliver is 0
};

// Serial operator to serial operator of the same group: a call.
struct DirectOutlet final : Outlet {
  SerialOp* to = nullptr;
  int port = 0;
  void push(ChunkPtr chunk) override {
    if (!to->done()) to->take(port, chunk);
  }
  void end() override {
    if (!to->done()) to->end(port);
  }
};

}  // namespace

class Runner::Engine final : public SerialEvents {
  /// For what stages keep from epoch to epoch: half of the budget, less where the rest would be below the least.
  static size_t kept_budget(const Plan& plan, const RunOptions& options) {
    const bool keeps =
        std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const PlanNode& n) { return n.keeps_rows; });
    const size_t flows = options.memory - std::min(options.memory, kUncountedBytes);
    return keeps ? std::min(flows / 2, options.memory - std::min(options.memory, plan.least_memory)) : 0;
  }
  /// From now on options_.memory is what the pool of what flows may give.
  static size_t budget(RunOptions& options, size_t kept) {
    options.memory -= std::min(options.memory, kUncountedBytes + kept);
    return options.memory;
  }

 public:
  Engine(const Plan& plan, RunOptions options, std::function<KernelCompiler*()> compiler, Sink& sink)
      : plan_(plan),
        options_(std::move(options)),
        compiler_(std::move(compiler)),
        sink_(sink),
        kept_pool_(kept_budget(plan, options_)),
        pool_(budget(options_, kept_pool_.limit())) {}

  RunResult run();
  std::string status() const;
  std::vector<OperatorReport> operators() const;
  std::vector<StepReport> steps() const;
  /// Reports the task that began then to whoever draws a timeline.
  void trace(const NodeCounters& counters, int64_t begin_ns, int64_t rows) const;

  void rejected(const Rejection& rejection);
  void fail(RunFailure failure) override;
  void again(SerialOp& repeat, uint64_t pass) override;
  bool is_empty_domain(NodeId node) const override { return domain_size(plan_.graph, *sources_, node) == 0; }

 private:
  class DeliverOp;
  friend class DeliverOp;

  // Building.
  bool build(Failure& failure);
  struct Input {  // of a serial operator: one of the two
    Lane* lane = nullptr;
    SerialOp* op = nullptr;
  };
  /// All that ends in a plan node, for the serial operator `below` of `group`; and the columns that come out of it.
  Input build_above(PlanNodeId id, const PlanNode& below, Group* group, std::vector<std::string>& columns,
                    Failure& failure);
  SerialOp* build_serial(PlanNodeId id, Group* group, std::vector<std::string>& columns, Failure& failure);
  void connect(const std::vector<Input>& inputs, SerialOp* target);
  void find_skips();
  void find_markable();

  // Running. Locked: the engine's mutex is held.
  void begin_pass(SerialOp* below, const EpochContext& context);
  void restart_locked(SerialOp* below, const EpochContext& context);
  void dispatch_locked();
  bool dispatch_one_locked(Lane& lane, bool forced);
  void launch_locked(const PacketPtr& packet);
  // Memory; see above.
  class LaneClaim;
  class GroupClaim;
  size_t young_limit() const { return options_.memory / 2; }
  bool is_oldest_locked(const Packet& packet) const;
  /// The chunks of a lane that begins with `first` are the batches that the operator below it wants.
  bool makes_batches(const PlanNode& first, const PlanNode& below) const;
  bool is_batch_to_be(const Lane& lane) const;
  bool others_move_locked(int asking) const;
  bool recall_one_locked();
  void obtain_for_lane(Packet& packet, bool in_parallel, size_t bytes);
  void obtain_for_group(const Group& group, size_t bytes);
  bool can_split(const Packet& packet) const;
  void split_locked(Packet& packet);
  void fail_memory(const MemoryExceeded& what, const SerialOp* op);
  void run_packet(Packet& packet);
  bool blocked_locked(const Lane& lane) const;
  Lane* wanted_locked() const;
  bool is_wanted_locked(SerialOp* at) const;
  void lane_body(const PacketPtr& packet);
  void group_body(Group& group, const PacketPtr& packet);
  void finish_task();
  void close_above_locked(SerialOp* op);
  void end_run(RunResult::End end);
  void fail_machine(const std::string& what);
  bool batch_wanted(uint64_t ordinal) const;
  State state() const;
  /// From the delivering operator: calls on_state where it is time.
  void tell_state();
  bool restore_locked(const State& from);
  void watch();
  StallReport stall_report() const;

  const Plan& plan_;
  RunOptions options_;
  std::function<KernelCompiler*()> compiler_;
  Sink& sink_;
  BufferPool kept_pool_;
  BufferPool pool_;
  std::shared_ptr<const OpenSources> sources_;
  std::unique_ptr<RowFallback> fallback_;
  StageContext stage_context_;
  std::vector<std::unique_ptr<NodeCounters>> node_counters_;  // by plan node
  std::vector<std::unique_ptr<SerialOp>> serial_;             // inputs before users
  std::map<const PlanNode*, SerialOp*> serial_of_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // inputs before users
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<DirectOutlet>> direct_;
  std::map<SerialOp*, std::vector<Input>> inputs_;        // by port
  std::map<SerialOp*, std::pair<SerialOp*, int>> below_;  // operator and port that it feeds, in the same group
  std::map<SerialOp*, Lane*> lane_below_;
  DeliverOp* deliver_ = nullptr;
  std::unique_ptr<tbb::flow::graph> flow_;

  // Recursive: operators that say at (re)start that they want nothing end the queues below them from inside.
  mutable std::recursive_mutex mutex_;
  int active_ = 0;     // tasks that TBB has or has been given
  int executing_ = 0;  // of them, those that a thread is in
  int waiting_ = 0;    // of those, packets that wait for memory
  std::multiset<size_t> waiting_groups_;
  bool linear_ = true;  // all operators have one input
  size_t reserved_ = 0;
  std::vector<SerialOp*> repeats_;  // want a new pass; in different arms, several may
  std::map<SerialOp*, uint64_t> passes_;
  uint64_t epoch_ = 0;
  bool epoch_done_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> delivered_{0};
  std::atomic<bool> in_sink_{false}, built_{false};
  RunResult result_;
  std::map<std::pair<int32_t, std::string>, uint64_t> errors_;
  std::chrono::steady_clock::time_point started_, first_record_, last_record_;
  std::map<SerialOp*, EpochContext> context_of_;
  // One source, operators with one input each: states can be noted. Source outward.
  Lane* marked_source_ = nullptr;
  std::vector<SerialOp*> marked_;
  std::string marked_steps_;
  int64_t last_mark_ns_ = 0, last_state_ns_ = monotonic_ns();
  std::vector<SerialOp*> begun_;
  std::mutex watch_mutex_;
  std::condition_variable watch_signal_;
  bool finished_ = false;
};

// The end: checks that what is delivered is good, and hands it to the sink.
class Runner::Engine::DeliverOp final : public SerialOp {
 public:
  DeliverOp(Engine& engine, const PlanNode& node) : SerialOp(node, engine.pool_), engine_(engine) {}

  void bind(const std::vector<std::string>& columns, bool batched) {
    batched_ = batched;
    for (const OutputField& output : node_.outputs) {
      if (output.name.starts_with('$')) continue;  // hidden fields are not delivered
      const Expr& expr = engine_.plan_.graph.expr(output.expr);
      const std::string& name = expr.op->name == "field" ? expr.attrs.text("name") : output.name;
      auto at = std::find(columns.begin(), columns.end(), name);
      if (at == columns.end()) {
        problem_ = "no column `" + name + "` is delivered";
        return;
      }
      columns_.push_back(static_cast<int32_t>(at - columns.begin()));
      record_.fields.push_back({&output.name, &expr.type, {}});
    }
    record_.batched = batched;
  }
  const std::string& problem() const { return problem_; }

  void begin(const EpochContext& context) override {
    record_.epoch = context.epoch;
    ordinal_ = 0;
    rejections_ = 0;
    passed_ = skip_;
    mark_ = {};
    held_.reset();
  }
  void accept(int, const ChunkPtr& chunk) override {
    if (engine_.stopping_) return;
    if (chunk->mark) {
      // Not while a record is held back, which lies before the mark and is not delivered yet.
      if (held_) return;
      mark_ = *chunk->mark;
      mark_.records = ordinal_;
      mark_.rejected = rejections_;
      engine_.tell_state();
      return;
    }
    if (batched_) {
      unit(chunk, -1);
      return;
    }
    for (int64_t row = 0; row < chunk->rows && !engine_.stopping_; ++row) unit(chunk, row);
  }
  void end(int) override {
    if (held_) ++engine_.result_.dropped_records;
    held_.reset();
    engine_.epoch_done_ = true;
  }
  uint64_t epoch() const { return record_.epoch; }
  /// Records of the epoch that lie behind: delivered, skipped or another rank's.
  uint64_t passed() const { return passed_; }
  /// Samples of the epoch that on_error dealt with, over all ranks.
  uint64_t rejections() const { return rejections_; }
  const Mark& mark() const { return mark_; }
  void save(OperatorState&) const override {}
  void restore(const OperatorState&, const ChunkPtr&) override {}
  /// The records before the mark lie behind.
  void go_on_from(const Mark& mark) {
    mark_ = mark;
    ordinal_ = mark.records;
    rejections_ = mark.rejected;
  }
  /// The first `ordinal` records of the epoch, and the first `rejections`, were dealt with in an earlier run.
  void skip_to(uint64_t ordinal, uint64_t rejections) {
    skip_ = ordinal;
    skip_rejections_ = rejections;
  }
  uint64_t skip() const { return skip_; }

 private:
  struct OneRecord final : RunRecord {
    const Chunk* chunk = nullptr;
    int64_t row = 0;
    SampleId member_id(int64_t member) const override { return chunk->id(batched ? member : row); }
  };
  struct Held {
    ChunkPtr chunk;
    int64_t row;
    uint64_t ordinal;
  };

  // In the order of what is delivered, and nothing behind its end. Of several ranks it is told by the one whose record
  // comes next.
  void pass_on(const ChunkPtr& rejected) override {
    const RunOptions& options = engine_.options_;
    for (const RejectedAt& each : rejected->rejected) {
      if (engine_.stopping_) return;
      if (rejections_++ >= skip_rejections_ && ordinal_ % options.world_size == options.rank)
        engine_.rejected(*each.what);
    }
  }

  // A batch (row < 0) or a row.
  void unit(const ChunkPtr& chunk, int64_t row) {
    bool failed_row = batched_ ? is_failed_row(*chunk) : !chunk->issues.empty() && chunk->row_failed(row);
    if (failed_row) {
      const Issue* issue = chunk->issue(std::max<int64_t>(row, 0), Issue::kFailedRow);
      engine_.fail({*issue->value->failure(), chunk->id(issue->row)});
      return;
    }
    uint64_t ordinal = ordinal_++;
    const RunOptions& options = engine_.options_;
    if (ordinal < skip_) return;
    if (options.world_size == 1) {
      deliver(chunk, row, ordinal);
      return;
    }
    // A record is delivered when its round is known to be complete.
    if (ordinal % options.world_size == options.rank) held_ = Held{chunk, row, ordinal};
    if (ordinal % options.world_size == options.world_size - 1 && held_) {
      Held held = std::move(*held_);
      held_.reset();
      deliver(held.chunk, held.row, held.ordinal);
    }
  }

  void deliver(const ChunkPtr& chunk, int64_t row, uint64_t ordinal) {
    if (!chunk->issues.empty() && !check(*chunk, row)) return;
    int64_t members = batched_ ? chunk->rows : 1;
    record_.chunk = chunk.get();
    record_.row = row;
    record_.members = members;
    record_.ordinal = ordinal;
    std::vector<BufferRef> stacked;
    for (size_t f = 0; f < columns_.size(); ++f) {
      const Column& column = chunk->columns[static_cast<size_t>(columns_[f])];
      record_.fields[f].value = batched_ ? stack(column, members, stacked) : column.at(row);
    }
    auto now = std::chrono::steady_clock::now();
    if (engine_.result_.records == 0) engine_.first_record_ = now;
    engine_.last_record_ = now;
    engine_.in_sink_ = true;
    bool more = engine_.sink_.deliver(record_);
    engine_.in_sink_ = false;
    ++engine_.delivered_;
    if (!more) {
      engine_.end_run(RunResult::End::SinkClosed);
      return;
    }
    passed_ = ordinal + 1;
    ++engine_.result_.records;
    engine_.result_.samples += static_cast<uint64_t>(members);
    NodeCounters::add(counters.rows_in, members);
    NodeCounters::add(counters.rows_out, 1);
    const RunOptions& options = engine_.options_;
    if (options.take && engine_.result_.records >= *options.take) engine_.end_run(RunResult::End::Complete);
    engine_.tell_state();
  }
  // In order of members, then of fields.
  bool check(const Chunk& chunk, int64_t row) {
    for (const Issue& issue : chunk.issues) {
      if (row >= 0 && issue.row != row) continue;
      if (std::find(columns_.begin(), columns_.end(), issue.column) == columns_.end()) continue;
      const Issue* first = &issue;
      for (int32_t column : columns_) {
        if (const Issue* found = chunk.issue(issue.row, column)) {
          first = found;
          break;
        }
      }
      engine_.fail({*first->value->failure(), chunk.id(issue.row)});
      return false;
    }
    return true;
  }

  TensorRef stack(const Column& column, int64_t members, std::vector<BufferRef>& stacked) {
    TensorRef row = column.at(0);
    TensorRef all;
    all.elem = row.elem;
    all.rank = row.rank + 1;
    all.shape[0] = members;
    std::copy(row.shape, row.shape + row.rank, all.shape + 1);
    if (column.fixed() || members == 1) {
      all.data = row.data;
      return all;
    }
    size_t bytes = row.byte_size();
    stacked.push_back(pool_.take(bytes * static_cast<size_t>(members)));
    for (int64_t i = 0; i < members; ++i)
      std::memcpy(stacked.back().data() + static_cast<size_t>(i) * bytes, column.refs[i].data, bytes);
    all.data = stacked.back().data();
    return all;
  }

  Engine& engine_;
  bool batched_ = false;
  std::string problem_;
  std::vector<int32_t> columns_;
  OneRecord record_;
  uint64_t ordinal_ = 0, skip_ = 0, passed_ = 0;
  uint64_t rejections_ = 0, skip_rejections_ = 0;
  std::optional<Held> held_;
  Mark mark_;
};

// ---- building ----------------------------------------------------------------------------------------------------

bool Runner::Engine::build(Failure& failure) {
  for (size_t i = 0; i < plan_.nodes.size(); ++i) node_counters_.push_back(std::make_unique<NodeCounters>());
  sources_ = open_sources(plan_.graph, {plan_.base_dir}, failure);
  if (!sources_) return false;
  fallback_ = make_reference_fallback(plan_);
  stage_context_ = {&plan_, &pool_, fallback_.get(), compiler_, options_.threads, &kept_pool_};
  const PlanNode& last = plan_.nodes.back();
  groups_.push_back(std::make_unique<Group>());
  auto deliver = std::make_unique<DeliverOp>(*this, last);
  deliver_ = deliver.get();
  serial_of_[&last] = deliver_;
  std::vector<std::string> columns;
  connect({build_above(last.inputs.at(0), last, groups_[0].get(), columns, failure)}, deliver_);
  serial_.push_back(std::move(deliver));
  if (!failure.code.empty()) return false;
  deliver_->bind(columns, last.on_batches);
  if (!deliver_->problem().empty()) {
    failure = {"B0900", deliver_->problem(), {}};
    return false;
  }
  find_skips();
  find_markable();
  return true;
}

void Runner::Engine::connect(const std::vector<Input>& inputs, SerialOp* target) {
  for (size_t port = 0; port < inputs.size(); ++port) {
    if (Lane* lane = inputs[port].lane) {
      lane->target = target;
      lane->target_port = static_cast<int>(port);
    } else {
      auto outlet = std::make_unique<DirectOutlet>();
      outlet->to = target;
      outlet->port = static_cast<int>(port);
      inputs[port].op->out = outlet.get();
      direct_.push_back(std::move(outlet));
      below_[inputs[port].op] = {target, static_cast<int>(port)};
    }
  }
  linear_ = linear_ && inputs.size() == 1;
  inputs_[target] = inputs;
}

SerialOp* Runner::Engine::build_serial(PlanNodeId id, Group* group, std::vector<std::string>& columns,
                                       Failure& failure) {
  const PlanNode& node = plan_.at(id);
  std::vector<Input> inputs;
  const bool serial = node.kind == PlanNode::Kind::Serial;
  const bool pairs = serial && pairs_rows(plan_.graph.node(node.node));
  const bool joins = serial && joins_rows(plan_.graph.node(node.node));
  for (size_t port = 0; port < node.inputs.size(); ++port) {
    std::vector<std::string> arm;
    inputs.push_back(build_above(node.inputs[port], node, group, arm, failure));
    if (joins && port > 0) std::erase(arm, plan_.graph.node(node.node).attrs.text("key"));
    if (pairs || joins) {
      columns.insert(columns.end(), arm.begin(), arm.end());
      continue;
    }
    if (port > 0 && arm != columns && failure.code.empty())
      failure = {"B0900", "the inputs of " + node.label + " differ in their columns", {}};
    columns = std::move(arm);
  }
  serial_.push_back(make_serial_op(plan_, node, columns, pool_, *this));
  SerialOp* op = serial_.back().get();
  connect(inputs, op);
  serial_of_[&node] = op;
  columns = output_columns(plan_, node, columns);
  return op;
}

Runner::Engine::Input Runner::Engine::build_above(PlanNodeId id, const PlanNode& below, Group* group,
                                                  std::vector<std::string>& columns, Failure& failure) {
  auto index_of = [&](const PlanNode* node) { return static_cast<size_t>(node - plan_.nodes.data()); };
  // From the bottom up, the Compute nodes that go into one lane.
  std::vector<const PlanNode*> chain;
  const PlanNode* top = &plan_.at(id);
  bool regroups = false;
  while (top->kind == PlanNode::Kind::Compute && !regroups) {
    chain.insert(chain.begin(), top);
    const PlanNode& input = plan_.at(top->inputs.at(0));
    regroups = top->chunk_rows > 0 && !top->on_batches &&
               !(input.kind == PlanNode::Kind::Source && input.chunk_rows == top->chunk_rows);
    top = &input;
  }
  if (chain.empty() && top->kind != PlanNode::Kind::Source) return {nullptr, build_serial(id, group, columns, failure)};
  auto owned = std::make_unique<Lane>();
  Lane* lane = owned.get();
  lane->group = group;
  if (top->kind == PlanNode::Kind::Source && !regroups) {
    lane->first = top;
    lane->reader = std::make_unique<SourceReader>(plan_, *top, *sources_, pool_);
    lane->reader_counters = node_counters_[index_of(top)].get();
    columns = lane->reader->columns();
    lane->chunk_rows = top->chunk_rows;
  } else {
    lane->first = chain[0];
    lane->enqueue = [this, lane](ChunkPtr chunk) {
      std::lock_guard lock(mutex_);
      if (!lane->closed) lane->queue.push_back(std::move(chunk));
    };
    lane->enqueue_end = [this, lane] {
      std::lock_guard lock(mutex_);
      lane->queue_ended = true;
    };
    groups_.push_back(std::make_unique<Group>());
    Group* above = groups_.back().get();
    above->index = groups_.size() - 1;
    if (regroups) {
      serial_.push_back(make_regroup(*chain[0], chain[0]->chunk_rows, makes_batches(*chain[0], below), pool_));
      lane->feeder = serial_.back().get();
      connect({build_above(chain[0]->inputs[0], *chain[0], above, columns, failure)}, lane->feeder);
    } else {
      lane->feeder = build_serial(chain[0]->inputs[0], above, columns, failure);
    }
    lane->feeder->out = lane;
    lane_below_[lane->feeder] = lane;
  }
  for (const PlanNode* node : chain) {
    if (!failure.code.empty()) break;
    std::string error;
    lane->stages.push_back(std::make_unique<Stage>(stage_context_, *node, columns, error));
    lane->stage_counters.push_back(node_counters_[index_of(node)].get());
    if (!error.empty()) failure = {"B0900", error, node->origins.empty() ? Span{} : node->origins[0]};
    columns.clear();
    for (const OutputField& output : node->outputs) columns.push_back(output.name);
    lane->ns_per_row += node->est_ns_per_row;
    lane->bytes_per_row = std::max(lane->bytes_per_row, node->est_bytes_per_row);
  }
  if (lane->reader && lane->chunk_rows <= 0) {
    lane->chunk_rows = kLightChunkRows;
    if (lane->ns_per_row > 0)
      lane->chunk_rows = std::clamp<int64_t>(static_cast<int64_t>(kChunkNs / lane->ns_per_row), 1, kLightChunkRows);
  }
  lanes_.push_back(std::move(owned));
  return {lane, nullptr};
}

// Where every chunk of a lane is a batch to be, and nothing between it and Deliver drops one, batches that are not
// wanted (of another rank, or from before the run was resumed) are counted without being computed.
void Runner::Engine::find_skips() {
  for (const auto& lane : lanes_) {
    SerialOp* batch = lane->target;
    if (!is_batch_to_be(*lane)) continue;
    bool keeps = true;
    for (const auto& stage : lane->stages) keeps = keeps && stage->keeps_rows();
    SerialOp* next = nullptr;
    if (auto below = below_.find(batch); below != below_.end()) next = below->second.first;
    if (auto below = lane_below_.find(batch); below != lane_below_.end()) next = below->second->target;
    lane->skips = keeps && next == deliver_ && !(lane->reader && lane->reader->has_gaps());
  }
}

void Runner::Engine::find_markable() {
  Lane* source = nullptr;
  std::vector<SerialOp*> ops;
  std::string steps;
  for (SerialOp* op = deliver_; op;) {
    const std::vector<Input>& inputs = inputs_.at(op);
    const PlanNode& node = op->plan_node();
    if (inputs.size() != 1 || node.kind == PlanNode::Kind::Unbatch || node.kind == PlanNode::Kind::Repeat) return;
    // What masks changes rows; those held below could not be had again from the source.
    if (node.kind == PlanNode::Kind::Serial && plan_.graph.node(node.node).op->cls == OpClass::Policy &&
        plan_.graph.node(node.node).attrs.text("policy") == "mask")
      return;
    if (node.kind == PlanNode::Kind::Serial && node.on_batches &&
        plan_.graph.node(node.node).op->cls == OpClass::Reorder)
      return;  // holds batches
    if (op != deliver_) {
      ops.insert(ops.begin(), op);
      steps = fmt::format("{} ", op->step()) + steps;
    }
    if (inputs[0].lane && inputs[0].lane->reader) source = inputs[0].lane;
    op = inputs[0].lane ? inputs[0].lane->feeder : inputs[0].op;
  }
  if (!source || source->reader->has_gaps()) return;
  for (size_t i = source->first->index.size(); i-- > 0;)
    steps = fmt::format("{} ", plan_.graph.node(source->first->index[i].node).step) + steps;
  marked_source_ = source;
  marked_ = std::move(ops);
  marked_steps_ = fmt::format("{} ", plan_.graph.node(source->first->node).step) + steps;
}

// Begins at the mark of `from`, where this plan has the same operators; false where the data are not what they were.
bool Runner::Engine::restore_locked(const State& from) {
  const Mark& mark = from.mark;
  if (!marked_source_ || from.steps != marked_steps_ || mark.operators.size() != marked_.size()) return true;
  for (size_t i = 0; i < marked_.size(); ++i) {
    ChunkPtr rows;
    const std::vector<SampleId>& ids = mark.operators[i].rows;
    if (!ids.empty()) {
      rows = marked_source_->reader->read_again(ids);
      for (const auto& lane : lanes_) {  // source outward, down to this operator
        const bool above =
            std::find(marked_.begin() + static_cast<int64_t>(i), marked_.end(), lane->feeder) == marked_.end();
        NodeCounters uncounted;
        for (size_t s = 0; above && rows && s < lane->stages.size(); ++s) rows = lane->stages[s]->run(rows, uncounted);
      }
      if (!rows || rows->rows != static_cast<int64_t>(ids.size())) return false;
    }
    marked_[i]->restore(mark.operators[i], rows);
  }
  marked_source_->next_index = std::min(mark.position, marked_source_->reader->size());
  for (const auto& lane : lanes_) {
    lane->next_batch = mark.records;
    for (size_t i = 0; i < marked_.size(); ++i)
      if (marked_[i] == lane->target) lane->shifted = !mark.operators[i].rows.empty();
  }
  deliver_->go_on_from(mark);
  return true;
}

// ---- running -----------------------------------------------------------------------------------------------------

// Everything above `below` starts afresh. Only while nothing is under way.
void Runner::Engine::begin_pass(SerialOp* below, const EpochContext& context) {
  for (const Input& input : inputs_[below]) {
    SerialOp* op = input.op;
    if (Lane* lane = input.lane) {
      lane->queue.clear();
      lane->queue_ended = lane->exhausted = lane->closed = false;
      lane->next_index = lane->next_sequence = lane->next_batch = 0;
      lane->in_flight = 0;
      lane->taken_in = 0;
      lane->done.clear();
      lane->postponed.clear();
      lane->partial_under_way = lane->shifted = false;
      for (const auto& stage : lane->stages) stage->begin_epoch(context.epoch);
      if (lane->reader) lane->reader->begin(context);
      op = lane->feeder;
    }
    if (!op) continue;
    op->begin(context);
    std::erase(repeats_, op);  // what it wanted was of the pass that has ended
    context_of_[op] = context;
    EpochContext above = context;
    if (op->plan_node().kind == PlanNode::Kind::Repeat && serial_of_.count(&op->plan_node())) above.passes.push_back(0);
    begin_pass(op, above);
    begun_.push_back(op);
  }
}

bool Runner::Engine::batch_wanted(uint64_t ordinal) const {
  return ordinal >= deliver_->skip() && ordinal % options_.world_size == options_.rank;
}

// Somebody between the lane and Deliver has enough to do for now.
bool Runner::Engine::blocked_locked(const Lane& lane) const {
  const size_t enough = static_cast<size_t>(options_.threads) + 2;
  SerialOp* op = lane.target;
  int port = lane.target_port;
  for (;;) {
    if (op->backlog(port) >= enough) return true;
    if (auto next = lane_below_.find(op); next != lane_below_.end()) return next->second->queue.size() >= enough;
    auto next = below_.find(op);
    if (next == below_.end()) return false;
    std::tie(op, port) = next->second;
  }
}

// Nobody below, who would drop what comes, is done.
bool Runner::Engine::is_wanted_locked(SerialOp* at) const {
  while (at != deliver_) {
    if (auto next = lane_below_.find(at); next != lane_below_.end()) {
      if (next->second->closed) return false;
      at = next->second->target;
    } else {
      at = below_.at(at).first;
    }
    if (at->done()) return false;
  }
  return true;
}

// The lane that Deliver is waiting for. Only while nothing is under way.
Lane* Runner::Engine::wanted_locked() const {
  SerialOp* op = deliver_;
  while (op && !op->done()) {
    const Input& input = inputs_.at(op)[static_cast<size_t>(op->wanted())];
    if (!input.lane) {
      op = input.op;
    } else if (input.lane->has_work()) {
      return input.lane;
    } else {
      op = input.lane->feeder;
    }
  }
  return nullptr;
}

bool Runner::Engine::dispatch_one_locked(Lane& lane, bool forced) {
  if (!lane.has_work()) return false;
  auto fits = [&](size_t bytes) { return forced || pool_.in_use() + reserved_ + bytes <= young_limit(); };
  if (!lane.postponed.empty()) {
    const PacketPtr packet = lane.postponed.front();
    if (lane.partial_under_way || (!fits(packet->reserved) && !is_oldest_locked(*packet))) return false;
    lane.postponed.pop_front();
    lane.partial_under_way = packet->partial;
    packet->forced = forced;
    launch_locked(packet);
    return true;
  }
  const int most = options_.threads == 1 ? 1 : options_.threads + 2;
  if (!forced && (lane.in_flight >= most || blocked_locked(lane))) return false;
  auto packet = std::make_shared<Packet>();
  packet->lane = &lane;
  packet->forced = forced;
  int64_t rows = 0;
  if (lane.reader) {
    uint64_t size = lane.reader->size();
    packet->begin = lane.next_index;
    packet->end = packet->begin + std::min<uint64_t>(static_cast<uint64_t>(lane.chunk_rows), size - packet->begin);
    rows = static_cast<int64_t>(packet->end - packet->begin);
    packet->last = packet->end == size;
  } else if (!lane.queue.empty()) {
    rows = lane.queue.front()->rows;
  }
  auto bytes = static_cast<size_t>(static_cast<double>(rows) * lane.bytes_per_row);
  if (!fits(bytes)) return false;
  auto skipped_chunk = [](int64_t of_rows) {
    auto skipped = std::make_shared<Chunk>();
    skipped->rows = of_rows;
    skipped->skipped = true;
    return skipped;
  };
  if (lane.reader) {
    lane.next_index = packet->end;
    if (&lane == marked_source_ && options_.save_state && packet->begin > 0 &&
        static_cast<double>(monotonic_ns() - last_mark_ns_) >= options_.mark_seconds * 1e9) {
      last_mark_ns_ = monotonic_ns();
      packet->mark = std::make_shared<Mark>();
      packet->mark->position = packet->begin;
    }
    if (lane.skips && !lane.shifted && rows > 0 && !batch_wanted(lane.next_batch++)) {
      packet->inputs.push_back(skipped_chunk(rows));
      packet->skipped = true;
      bytes = 0;
    }
  } else {
    double ns = 0;
    while (!lane.queue.empty() && (packet->inputs.empty() || ns < kBundleNs)) {
      ChunkPtr chunk = std::move(lane.queue.front());
      lane.queue.pop_front();
      if (chunk->rows == 0) {  // a mark, or rejections
        packet->inputs.push_back(std::move(chunk));
        continue;
      }
      if (lane.skips && !lane.shifted && chunk->issues.empty() && !batch_wanted(lane.next_batch))
        chunk = skipped_chunk(chunk->rows);
      ++lane.next_batch;
      // Without an estimate, one by one.
      ns += chunk->skipped ? 0 : lane.ns_per_row > 0 ? lane.ns_per_row * static_cast<double>(chunk->rows) : kBundleNs;
      packet->inputs.push_back(std::move(chunk));
    }
    packet->last = lane.queue.empty() && lane.queue_ended;
  }
  lane.exhausted = packet->last;
  packet->sequence = lane.next_sequence++;
  packet->reserved = bytes;
  ++lane.in_flight;
  launch_locked(packet);
  return true;
}

void Runner::Engine::launch_locked(const PacketPtr& packet) {
  packet->oldest = packet->forced && (is_batch_to_be(*packet->lane) || !can_split(*packet));
  packet->ready_ns = monotonic_ns();
  reserved_ += packet->reserved;
  ++active_;
  packet->lane->node->try_put(packet);
}

// ---- memory ------------------------------------------------------------------------------------------------------

class Runner::Engine::LaneClaim final : public MemoryClaim {
 public:
  LaneClaim(Engine& engine, Packet& packet) : engine_(engine), packet_(packet) {}
  size_t limit() const override { return packet_.oldest ? engine_.options_.memory : engine_.young_limit(); }
  void obtain(BufferPool&, size_t bytes) override { engine_.obtain_for_lane(packet_, in_parallel, bytes); }
  bool may_share() const override { return !packet_.alone; }

 private:
  Engine& engine_;
  Packet& packet_;
};

class Runner::Engine::GroupClaim final : public MemoryClaim {
 public:
  GroupClaim(Engine& engine, const Group& group) : engine_(engine), group_(group) {}
  size_t limit() const override { return engine_.options_.memory; }
  void obtain(BufferPool&, size_t bytes) override { engine_.obtain_for_group(group_, bytes); }

 private:
  Engine& engine_;
  const Group& group_;
};

// Deliver waits for this packet. With several inputs the operators know what they want, and they are asked only while
// nothing is under way: then the oldest is the one that was forced.
bool Runner::Engine::is_oldest_locked(const Packet& packet) const {
  if (packet.forced) return true;
  for (SerialOp* op = deliver_; op && linear_;) {
    const Input& input = inputs_.at(op)[0];
    if (const Lane* lane = input.lane) {
      if (lane->in_flight > 0 || !lane->queue.empty())
        return lane == packet.lane && packet.sequence == lane->taken_in && lane->in_flight > 0;
      op = lane->feeder;
    } else {
      op = input.op;
    }
  }
  return false;
}

// Some thread is at work that does not wait for memory and is not one of `asking`, or is free to begin what waits.
bool Runner::Engine::others_move_locked(int asking) const {
  const int stopped = waiting_ + static_cast<int>(waiting_groups_.size()) + asking;
  return executing_ > stopped || (active_ > executing_ && executing_ < options_.threads);
}

// Postpones what is done and waits for its turn: of the lane farthest from the end, the youngest.
bool Runner::Engine::recall_one_locked() {
  for (const auto& lane : lanes_) {
    for (auto it = lane->done.rbegin(); it != lane->done.rend(); ++it) {
      const PacketPtr packet = it->second;
      if (packet->skipped) continue;
      lane->done.erase(std::next(it).base());
      if (packet->partial) lane->partial_under_way = false;
      packet->chunks.clear();
      lane->postpone(packet);
      return true;
    }
  }
  return false;
}

void Runner::Engine::obtain_for_lane(Packet& packet, bool in_parallel, size_t bytes) {
  for (bool last_try = false;;) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_ || packet.lane->closed) throw MemoryPostponed();
      if (!is_oldest_locked(packet)) throw MemoryPostponed();
      // Only one sample, or one batch, may have more than its share.
      if (!is_batch_to_be(*packet.lane) && can_split(packet)) throw MemoryExceeded(bytes, pool_.in_use());
      packet.oldest = true;
      if (pool_.try_charge(bytes, options_.memory)) return;
      if (recall_one_locked()) continue;
      if (last_try) throw MemoryExceeded(bytes, pool_.in_use());
      if (in_parallel) {
        // One thread would have to wait for what another holds: row by row instead.
        packet.alone = true;
        throw MemoryPostponed();
      }
      const bool others = others_move_locked(1);
      if (!others && !waiting_groups_.empty()) throw MemoryPostponed();
      last_try = !others;
      if (last_try) continue;
      ++waiting_;
    }
    std::this_thread::sleep_for(kMemoryPoll);
    std::lock_guard lock(mutex_);
    --waiting_;
  }
}

void Runner::Engine::obtain_for_group(const Group& group, size_t bytes) {
  struct Waiting {
    Waiting(Engine& e, size_t i) : engine(e), index(i) {
      std::lock_guard lock(engine.mutex_);
      engine.waiting_groups_.insert(index);
    }
    ~Waiting() {
      std::lock_guard lock(engine.mutex_);
      engine.waiting_groups_.erase(engine.waiting_groups_.find(index));
    }
    Engine& engine;
    size_t index;
  } waiting(*this, group.index);
  for (bool last_try = false;;) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_) throw MemoryPostponed();
      if (pool_.try_charge(bytes, options_.memory)) return;
      if (recall_one_locked()) continue;
      if (last_try) throw MemoryExceeded(bytes, pool_.in_use());
      // Packets give way to groups, and groups to those nearer to the end.
      last_try = !others_move_locked(0) && waiting_ == 0 && *waiting_groups_.begin() >= group.index;
      if (last_try) continue;
    }
    std::this_thread::sleep_for(kMemoryPoll);
  }
}

bool Runner::Engine::makes_batches(const PlanNode& first, const PlanNode& below) const {
  if (below.kind != PlanNode::Kind::Batch || first.chunk_rows <= 0) return false;
  const Attrs& attrs = plan_.graph.node(below.node).attrs;
  return attrs.has("batch_size") && first.chunk_rows == attrs.integer("batch_size");
}
bool Runner::Engine::is_batch_to_be(const Lane& lane) const {
  return makes_batches(*lane.first, lane.target->plan_node());
}

bool Runner::Engine::can_split(const Packet& packet) const {
  if (packet.lane->reader) return packet.end - packet.begin > 1;
  return packet.inputs.size() > 1 ||
         (!packet.lane->first->on_batches && !packet.inputs.empty() && packet.inputs[0]->rows > 1);
}

// Postpones the packet in two parts.
void Runner::Engine::split_locked(Packet& packet) {
  Lane& lane = *packet.lane;
  auto part = [&](bool first) {
    auto out = std::make_shared<Packet>();
    out->lane = &lane;
    out->sequence = packet.sequence;
    out->begin = packet.begin;
    out->end = packet.end;
    out->alone = true;
    out->reserved = packet.reserved / 2;
    out->partial = first || packet.partial;
    out->last = !first && packet.last;
    if (first) out->mark = packet.mark;
    return out;
  };
  PacketPtr head = part(true), tail = part(false);
  if (lane.reader) {
    head->end = tail->begin = packet.begin + (packet.end - packet.begin) / 2;
  } else if (packet.inputs.size() > 1) {
    const auto middle = packet.inputs.begin() + static_cast<int64_t>(packet.inputs.size() / 2);
    head->inputs.assign(packet.inputs.begin(), middle);
    tail->inputs.assign(middle, packet.inputs.end());
  } else {
    const ChunkPtr& whole = packet.inputs[0];
    const int64_t middle = whole->rows / 2;
    head->inputs = {slice(whole, 0, middle)};
    tail->inputs = {slice(whole, middle, whole->rows - middle)};
  }
  lane.postpone(std::move(tail));
  lane.postpone(std::move(head));
}

void Runner::Engine::fail_memory(const MemoryExceeded& what, const SerialOp* op) {
  auto size = [](size_t bytes) {
    return bytes < size_t{10} << 20 ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20))
                                    : fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
  };
  RunFailure failure;
  std::string who = op ? op->plan_node().label : "a sample";
  if (op && !op->plan_node().origins.empty()) failure.failure.where = op->plan_node().origins[0];
  if (const auto* row = dynamic_cast<const RowExceedsMemory*>(&what)) {
    failure.id = row->id;
    failure.failure.where = row->where;
    who = "`" + row->op + "`";
  }
  // A quarter more, for what comes after it; where rows are kept, what flows has only half.
  const size_t enough = (what.in_use + what.bytes) / 4 * 5 * (kept_pool_.limit() > 0 ? 2 : 1);
  failure.failure.code = "R0504";
  const std::string held =
      what.in_use < what.bytes / 64 ? "" : fmt::format(" beside the {} that must be held meanwhile", size(what.in_use));
  failure.failure.message = fmt::format(
      "{} needs {}{}, more than a memory budget of {} has room for; --memory {}M would do", who, size(what.bytes), held,
      size(options_.memory + kUncountedBytes), ((enough + kUncountedBytes) >> 20) + 1);
  fail(std::move(failure));
}

// ---- running, again ----------------------------------------------------------------------------------------------

void Runner::Engine::dispatch_locked() {
  if (options_.stop && *options_.stop) {
    if (!stopping_) result_.end = RunResult::End::Stopped;
    stopping_ = true;
  }
  // Who waits for memory gets it first.
  while (!stopping_ && waiting_groups_.empty()) {
    bool any = false;
    if (repeats_.empty() && !epoch_done_) {
      // What is nearest to the end goes first: it frees memory.
      for (size_t i = lanes_.size(); i-- > 0;)
        while (dispatch_one_locked(*lanes_[i], false)) any = true;
    }
    if (any || active_ > 0) return;
    if (!repeats_.empty()) {
      SerialOp* repeat = repeats_.back();
      repeats_.pop_back();
      if (epoch_done_ || !is_wanted_locked(repeat)) continue;
      EpochContext context = context_of_.at(repeat);
      context.passes.push_back(passes_.at(repeat));
      restart_locked(repeat, context);
    } else if (epoch_done_) {
      if (++epoch_ >= options_.epochs) {
        result_.end = RunResult::End::Complete;
        stopping_ = true;
        return;
      }
      deliver_->skip_to(0, 0);
      restart_locked(deliver_, {plan_.seed, epoch_, {}});
    } else if (Lane* lane = wanted_locked()) {
      dispatch_one_locked(*lane, true);
    } else {
      result_.end = RunResult::End::Failed;
      result_.failure = RunFailure{{"B0900", "the run came to a halt before its end", {}}, {}};
      stopping_ = true;
    }
  }
}

void Runner::Engine::restart_locked(SerialOp* below, const EpochContext& context) {
  begun_.clear();
  if (below == deliver_) {
    epoch_done_ = false;
    deliver_->begin(context);
    fallback_->begin_epoch(context.epoch);
  }
  begin_pass(below, context);
  // Operators that want nothing say so at once; nobody else is here while nothing is under way.
  for (SerialOp* op : std::vector<SerialOp*>(begun_)) op->start();
  for (SerialOp* op : begun_)
    if (op->done()) close_above_locked(op);
}

// What it makes of its inputs is left in `packet.chunks`.
void Runner::Engine::run_packet(Packet& packet) {
  struct Running {
    explicit Running(NodeCounters& c) : counters(c) { ++counters.running; }
    ~Running() { --counters.running; }
    NodeCounters& counters;
  };
  Lane& lane = *packet.lane;
  int64_t begin = monotonic_ns();
  NodeCounters& first = lane.reader ? *lane.reader_counters : *lane.stage_counters[0];
  NodeCounters::add(first.wait_ns, begin - packet.ready_ns);
  packet.chunks = packet.inputs;
  std::vector<Packet::Count>& counts = packet.counts;
  counts.assign(lane.stages.size(), {});
  int64_t rows = 0;
  size_t bytes = 0;
  if (lane.reader && packet.chunks.empty()) {
    Running running(*lane.reader_counters);
    CpuScope cpu(*lane.reader_counters);
    packet.chunks.push_back(lane.reader->read(packet.begin, packet.end));
    packet.rows_read = packet.chunks[0]->rows;
    trace(*lane.reader_counters, begin, packet.rows_read);
  }
  for (ChunkPtr& chunk : packet.chunks) {
    rows += chunk->rows;
    for (size_t s = 0; s < lane.stages.size() && chunk->rows > 0 && !chunk->skipped; ++s) {
      Running running(*lane.stage_counters[s]);
      counts[s].rows_in += chunk->rows;
      int64_t stage_begin = options_.on_span ? monotonic_ns() : 0;
      chunk = lane.stages[s]->run(chunk, *lane.stage_counters[s]);
      trace(*lane.stage_counters[s], stage_begin, chunk->rows);
      counts[s].rows_out += chunk->rows;
      counts[s].bytes += static_cast<int64_t>(chunk->bytes);
      ++counts[s].chunks;
    }
    bytes += chunk->bytes;
  }
  if (packet.mark) {
    auto mark = std::make_shared<Chunk>();
    mark->mark = packet.mark;
    packet.chunks.insert(packet.chunks.begin(), std::move(mark));
  }
  if (rows > 0) {
    std::lock_guard lock(mutex_);
    lane.bytes_per_row = std::max(0.9 * lane.bytes_per_row, static_cast<double>(bytes) / static_cast<double>(rows));
    lane.ns_per_row =
        0.75 * lane.ns_per_row + 0.25 * static_cast<double>(monotonic_ns() - begin) / static_cast<double>(rows);
  }
}

void Runner::Engine::lane_body(const PacketPtr& packet) {
  Lane& lane = *packet->lane;
  {
    std::lock_guard lock(mutex_);
    ++executing_;
  }
  bool postponed = false, halved = false;
  if (!stopping_) {
    try {
      LaneClaim claim(*this, *packet);
      ClaimScope scope(&claim);
      run_packet(*packet);
    } catch (const MemoryPostponed&) {
      postponed = true;
    } catch (const MemoryExceeded& e) {
      packet->chunks.clear();
      std::lock_guard lock(mutex_);
      halved = can_split(*packet);
      if (halved) {
        split_locked(*packet);
      } else {
        fail_memory(e, nullptr);
      }
    } catch (const std::exception& e) {
      fail_machine(e.what());
    }
  }
  if (postponed || halved) packet->chunks.clear();
  bool done = false;
  {
    std::lock_guard lock(mutex_);
    reserved_ -= packet->reserved;
    if (packet->partial && (postponed || halved)) lane.partial_under_way = false;
    if (lane.closed || stopping_) {
      packet->chunks.clear();
    } else if (postponed) {
      // It takes more than was expected; how much, is not known.
      packet->reserved = std::max(2 * packet->reserved, young_limit() / 4);
      lane.postpone(packet);
    } else if (!halved) {
      lane.done[packet->sequence] = packet;
      done = true;
      ++active_;
    }
  }
  if (done) lane.group->node->try_put(packet);
  finish_task();
}

void Runner::Engine::group_body(Group& group, const PacketPtr& arrived) {
  Lane& lane = *arrived->lane;
  {
    std::lock_guard lock(mutex_);
    ++executing_;
  }
  for (;;) {
    PacketPtr packet;
    {
      std::lock_guard lock(mutex_);
      if (lane.closed || stopping_) lane.done.clear();
      if (lane.done.empty() || lane.done.begin()->first != lane.taken_in) break;
      packet = std::move(lane.done.begin()->second);
      lane.done.erase(lane.done.begin());
      packet->inputs.clear();
      if (packet->partial) {
        lane.partial_under_way = false;
      } else {
        ++lane.taken_in;
        --lane.in_flight;
      }
    }
    if (lane.reader) NodeCounters::add(lane.reader_counters->rows_out, packet->rows_read);
    for (size_t s = 0; s < packet->counts.size(); ++s) {
      NodeCounters& counters = *lane.stage_counters[s];
      const Packet::Count& count = packet->counts[s];
      NodeCounters::add(counters.rows_in, count.rows_in);
      NodeCounters::add(counters.rows_out, count.rows_out);
      NodeCounters::add(counters.bytes_out, count.bytes);
      NodeCounters::add(counters.chunks, count.chunks);
    }
    SerialOp* op = lane.target;
    SerialOp* measured = &group == groups_[0].get() ? deliver_ : op;
    try {
      GroupClaim claim(*this, group);
      ClaimScope scope(&claim);
      CpuScope cpu(measured->counters);
      ++measured->counters.running;
      int64_t begin = options_.on_span ? monotonic_ns() : 0, rows = 0;
      for (ChunkPtr& chunk : packet->chunks) {
        rows += chunk->rows;
        const bool empty = chunk->rows == 0 && chunk->rejected.empty() && !chunk->mark;
        if (!empty && !op->done() && !stopping_) op->take(lane.target_port, chunk);
        chunk.reset();
      }
      if (packet->last && !op->done() && !stopping_) op->end(lane.target_port);
      --measured->counters.running;
      trace(measured->counters, begin, rows);
    } catch (const MemoryPostponed&) {  // the run is ending
    } catch (const MemoryExceeded& e) {
      fail_memory(e, measured);
    } catch (const std::exception& e) {
      fail_machine(e.what());
    }
    // Whoever wants nothing more stops what is above it.
    std::lock_guard lock(mutex_);
    while (op && op != deliver_) {
      if (op->done()) close_above_locked(op);
      auto below = below_.find(op);
      op = below == below_.end() ? nullptr : below->second.first;
    }
  }
  finish_task();
}

void Runner::Engine::finish_task() {
  std::lock_guard lock(mutex_);
  --active_;
  --executing_;
  dispatch_locked();
}

void Runner::Engine::close_above_locked(SerialOp* op) {
  for (const Input& input : inputs_[op]) {
    SerialOp* above = input.op;
    if (input.lane) {
      if (input.lane->closed) continue;
      input.lane->closed = true;
      input.lane->queue.clear();
      input.lane->done.clear();
      input.lane->postponed.clear();
      above = input.lane->feeder;
    }
    if (above) close_above_locked(above);
  }
}

void Runner::Engine::rejected(const Rejection& rejection) {
  const Node& node = plan_.graph.node(rejection.node);
  RunFailure dated = rejection.failure;
  {
    std::lock_guard lock(mutex_);
    ++errors_[{node.step, rejection.policy}];
    dated.epoch = epoch_;
  }
  if (options_.on_error) options_.on_error(dated, node, rejection.policy);
}

void Runner::Engine::fail(RunFailure failure) {
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  result_.failure = std::move(failure);
  result_.failure->epoch = epoch_;
  result_.end = RunResult::End::Failed;
  stopping_ = true;
}

void Runner::Engine::fail_machine(const std::string& what) {
  fail({{"B0900", "the run could not go on: " + what, {}}, {}});
}

void Runner::Engine::end_run(RunResult::End end) {
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  result_.end = end;
  stopping_ = true;
}

void Runner::Engine::again(SerialOp& repeat, uint64_t pass) {
  std::lock_guard lock(mutex_);
  repeats_.push_back(&repeat);
  passes_[&repeat] = pass;
}

void Runner::Engine::tell_state() {
  if (!options_.on_state) return;
  const int64_t now = monotonic_ns();
  if (static_cast<double>(now - last_state_ns_) < options_.state_seconds * 1e9) return;
  last_state_ns_ = now;
  options_.on_state(state());
}

State Runner::Engine::state() const {
  State out;
  out.program = options_.program_fingerprint;
  out.files = fmt::format("{:016x}", stream_hash(sources_->fingerprint()));
  out.seed = plan_.seed;
  out.epoch = deliver_->epoch();
  out.records = deliver_->passed();
  out.rejected = deliver_->rejections();
  out.delivered = result_.records + (options_.resume ? options_.resume->delivered : 0);
  out.rank = options_.rank;
  out.world_size = options_.world_size;
  out.steps = marked_steps_;
  out.mark = deliver_->mark();
  return out;
}

std::string Runner::Engine::status() const {
  std::string text;
  if (!built_) return "opening files, compiling\n";
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    auto serial = serial_of_.find(&node);
    const NodeCounters& counters = serial != serial_of_.end() ? serial->second->counters : *node_counters_[i];
    text += fmt::format("{}: {} rows in, {} out, {} at work\n", node.label, counters.rows_in.load(),
                        counters.rows_out.load(), counters.running.load());
  }
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock)
    for (const auto& lane : lanes_)
      text += fmt::format("before {}: {} chunks wait, {} in flight{}\n", lane->first->label, lane->queue.size(),
                          lane->in_flight, lane->exhausted ? ", no more to come" : "");
  text += fmt::format("{} bytes in flight of {}{}\n", pool_.in_use(), options_.memory,
                      in_sink_ ? "; waiting for the consumer" : "");
  return text;
}

StallReport Runner::Engine::stall_report() const {
  StallReport out;
  out.status = status();
  for (size_t i = 0; i < plan_.nodes.size() && built_; ++i) {
    const PlanNode& node = plan_.nodes[i];
    auto serial = serial_of_.find(&node);
    const NodeCounters& counters = serial != serial_of_.end() ? serial->second->counters : *node_counters_[i];
    if (node.kind == PlanNode::Kind::Source) out.samples_read += counters.rows_out;
    const int64_t dropped = counters.rows_in - counters.rows_out;
    if (dropped <= 0) continue;
    std::vector<int32_t> by;  // steps
    for (const ComputeStep& step : node.steps)
      if (step.kind == ComputeStep::Kind::Filter) by.push_back(step.step);
    if (node.kind == PlanNode::Kind::Serial && plan_.graph.node(node.node).op->cls == OpClass::Policy)
      by.push_back(plan_.graph.node(node.node).step);
    for (int32_t step : by) {
      auto at = std::find(node.steps_written.begin(), node.steps_written.end(), step);
      const auto place = static_cast<size_t>(at - node.steps_written.begin());
      if (place < node.origins.size()) out.dropped.push_back({node.origins[place], dropped});
    }
  }
  return out;
}

void Runner::Engine::trace(const NodeCounters& counters, int64_t begin_ns, int64_t rows) const {
  if (!options_.on_span) return;
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    auto serial = serial_of_.find(&node);
    if (&counters != (serial != serial_of_.end() ? &serial->second->counters : node_counters_[i].get())) continue;
    options_.on_span({&node, begin_ns, monotonic_ns(), rows});
  }
}

std::vector<OperatorReport> Runner::Engine::operators() const {
  std::vector<OperatorReport> out;
  if (!built_) return out;
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    auto serial = serial_of_.find(&node);
    const NodeCounters& counters = serial != serial_of_.end() ? serial->second->counters : *node_counters_[i];
    out.push_back({node.label, node.steps_written, node.origins, counters.rows_in, counters.rows_out,
                   counters.bytes_out, static_cast<double>(counters.cpu_ns) * 1e-9,
                   static_cast<double>(counters.wait_ns) * 1e-9});
  }
  return out;
}

std::vector<StepReport> Runner::Engine::steps() const {
  std::vector<StepReport> out;
  for (const auto& lane : lanes_)
    for (const auto& stage : lane->stages) {
      const std::vector<StepTally> tallies = stage->tallies();
      for (size_t i = 0; i < tallies.size(); ++i)
        out.push_back({static_cast<int>(&stage->node() - plan_.nodes.data()), static_cast<int>(i), tallies[i]});
    }
  return out;
}

RunResult Runner::Engine::run() {
  started_ = first_record_ = last_record_ = std::chrono::steady_clock::now();
  Failure failure;
  auto failed = [&](Failure f) {
    result_.end = RunResult::End::Failed;
    result_.failure = RunFailure{std::move(f), {}};
    return std::move(result_);
  };
  if (!build(failure)) return failed(failure);
  built_ = true;  // from now on others may look at the counters
  uint64_t first_ordinal = 0;
  if (const State* resume = options_.resume) {
    State now = state();
    if (std::string problem = mismatch(*resume, now); !problem.empty()) return failed({"R0507", problem, {}});
    epoch_ = resume->epoch;
    first_ordinal = resume->records;
  }
  deliver_->skip_to(first_ordinal, options_.resume ? options_.resume->rejected : 0);
  deliver_->begin({plan_.seed, epoch_, {}});
  result_.base_rss = resident_bytes();
  std::thread watchdog;
  if (options_.stall_timeout > 0) watchdog = std::thread([this] { watch(); });
  {
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(options_.threads));
    tbb::task_arena arena(options_.threads);
    arena.execute([&] {
      flow_ = std::make_unique<tbb::flow::graph>();
      for (const auto& lane : lanes_) {
        lane->node = std::make_unique<PacketNode>(*flow_, tbb::flow::unlimited, [this](const PacketPtr& packet) {
          lane_body(packet);
          return tbb::flow::continue_msg();
        });
      }
      for (const auto& group : groups_) {
        Group* raw = group.get();
        group->node = std::make_unique<PacketNode>(*flow_, tbb::flow::serial, [this, raw](const PacketPtr& packet) {
          group_body(*raw, packet);
          return tbb::flow::continue_msg();
        });
      }
      if (epoch_ >= options_.epochs || options_.take == 0u) {
        stopping_ = true;
      } else {
        std::lock_guard lock(mutex_);
        ++active_;
        restart_locked(deliver_, {plan_.seed, epoch_, {}});
        if (options_.resume && !restore_locked(*options_.resume)) {
          result_.end = RunResult::End::Failed;
          result_.failure = RunFailure{{"R0507", "a sample that the state names cannot be had any more", {}}, {}};
          stopping_ = true;
        }
        --active_;
        dispatch_locked();
      }
      flow_->wait_for_all();
      for (const auto& lane : lanes_) lane->node.reset();
      for (const auto& group : groups_) group->node.reset();
      flow_.reset();
    });
  }
  if (watchdog.joinable()) {
    {
      std::lock_guard lock(watch_mutex_);
      finished_ = true;
    }
    watch_signal_.notify_all();
    watchdog.join();
  }
  result_.startup_seconds = std::chrono::duration<double>(first_record_ - started_).count();
  result_.steady_seconds = std::chrono::duration<double>(last_record_ - first_record_).count();
  result_.peak_bytes = pool_.peak();
  result_.kept_bytes = kept_pool_.in_use();
  for (const auto& [key, count] : errors_) result_.errors.push_back({key.first, key.second, count});
  result_.operators = operators();
  result_.steps = steps();
  result_.state = state();
  return std::move(result_);
}

// A thread of its own: no record for too long is reported, and ends the run. A consumer that does not take is no stall.
void Runner::Engine::watch() {
  uint64_t seen = delivered_;
  auto since = std::chrono::steady_clock::now();
  std::unique_lock lock(watch_mutex_);
  while (!watch_signal_.wait_for(lock, std::chrono::milliseconds(50), [this] { return finished_; })) {
    if (delivered_ != seen || in_sink_) {
      seen = delivered_;
      since = std::chrono::steady_clock::now();
    } else if (seconds_since(since) > options_.stall_timeout) {
      end_run(RunResult::End::Stalled);
      if (options_.on_stall) options_.on_stall(stall_report());
      return;
    }
  }
}

// ---- the door ----------------------------------------------------------------------------------------------------

Runner::Runner(const Plan& plan, RunOptions options, std::function<KernelCompiler*()> compiler, Sink& sink)
    : engine_(std::make_unique<Engine>(plan, std::move(options), std::move(compiler), sink)) {}
Runner::~Runner() = default;
RunResult Runner::run() { return engine_->run(); }
std::string Runner::status() const { return engine_->status(); }
std::vector<OperatorReport> Runner::operators() const { return engine_->operators(); }

}  // namespace zephon
