#include "runtime/flow/serial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <unordered_map>

#include "graph/op_def.h"
#include "graph/padding.h"
#include "graph/pairs.h"

namespace zephon {
namespace {

constexpr size_t kFlushRows = 16384;
constexpr std::string_view kTooManyErrors = "R0411";
constexpr size_t kIsolateBytes = 1024;  // a row as large as this is held without its chunk

struct Place {
  ChunkPtr chunk;
  int64_t row = 0;  // unused for batches
};

// Rows on their way out, made into chunks: whole chunks and slices of them are passed on as they are. Between them,
// what happened.
class Gatherer {
 public:
  void add(const ChunkPtr& chunk, int64_t row) {
    ++rows_;
    if (!parts_.empty() && parts_.back().chunk == chunk && parts_.back().start + parts_.back().rows == row) {
      ++parts_.back().rows;
    } else {
      parts_.push_back({chunk, row, 1});
    }
  }
  void add_rejected(std::shared_ptr<const Rejection> what) { rejected_.push_back({rows_, std::move(what)}); }
  size_t size() const { return static_cast<size_t>(rows_); }
  bool empty() const { return rows_ == 0 && rejected_.empty(); }
  ChunkPtr take(BufferPool& pool) {
    runs_.clear();
    for (const Part& part : parts_) runs_.push_back({&part.chunk, part.start, part.rows});
    ChunkPtr out = gather(pool, runs_);
    parts_.clear();
    rows_ = 0;
    if (rejected_.empty()) return out;
    auto with = std::make_shared<Chunk>(*out);
    with->rejected = std::exchange(rejected_, {});
    return with;
  }

 private:
  struct Part {
    ChunkPtr chunk;
    int64_t start, rows;
  };
  std::vector<Part> parts_;
  int64_t rows_ = 0;
  std::vector<RejectedAt> rejected_;
  std::vector<RowRun> runs_;
};

/// Where the chunks of several inputs wait until their rows are wanted; and what happened before each, until it is.
class Ports {
 public:
  explicit Ports(size_t count) : ports_(count), sizes_(std::make_unique<std::atomic<size_t>[]>(count)) { clear(); }
  void clear() {
    for (size_t i = 0; i < ports_.size(); ++i) {
      ports_[i] = {};
      sizes_[i] = 0;
    }
  }
  void accept(int port, const ChunkPtr& chunk) {
    if (chunk->rejected.empty()) {
      if (chunk->rows > 0) at(port).chunks.push_back(chunk);
    } else {
      for (ChunkPtr& part : split_at_rejections(chunk)) at(port).chunks.push_back(std::move(part));
    }
    sizes_[static_cast<size_t>(port)] = at(port).chunks.size();
  }
  void end(int port) { at(port).ended = true; }
  /// The next row of this port is wanted: what happened before it has come to pass.
  template <typename Tell>
  void ask(int port, Tell tell) {
    while (!empty(port) && front(port)->rows == 0) {
      for (const RejectedAt& rejected : front(port)->rejected) tell(rejected.what);
      advance(port, true);
    }
  }
  /// After ask().
  bool empty(int port) const { return ports_[static_cast<size_t>(port)].chunks.empty(); }
  bool ended(int port) const { return ports_[static_cast<size_t>(port)].ended; }
  const ChunkPtr& front(int port) { return at(port).chunks.front(); }
  int64_t row(int port) { return at(port).row; }
  /// Takes the next row, or the whole chunk.
  void advance(int port, bool whole) {
    Port& p = at(port);
    if (!whole && ++p.row < p.chunks.front()->rows) return;
    p.row = 0;
    p.chunks.pop_front();
    sizes_[static_cast<size_t>(port)] = p.chunks.size();
  }
  size_t backlog(int port) const { return sizes_[static_cast<size_t>(port)].load(std::memory_order_relaxed); }
  int count() const { return static_cast<int>(ports_.size()); }

 private:
  struct Port {
    std::deque<ChunkPtr> chunks;
    int64_t row = 0;
    bool ended = false;
  };
  Port& at(int port) { return ports_[static_cast<size_t>(port)]; }
  std::vector<Port> ports_;
  std::unique_ptr<std::atomic<size_t>[]> sizes_;
};

// Runs a RowOp. Only operators that reorder hold rows back; what others do not emit is dropped.
class RowOpNode final : public SerialOp, private RowSink {
 public:
  RowOpNode(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool)
      : SerialOp(node, pool),
        graph_node_(plan.graph.node(node.node)),
        ports_(node.inputs.size()),
        ordinals_(node.inputs.size()),
        holds_(graph_node_.op->cls == OpClass::Reorder),
        policy_(graph_node_.op->cls == OpClass::Policy),
        merges_(graph_node_.op->cls == OpClass::Merge),
        adds_valid_(output_columns(plan, node, columns).size() > columns.size()) {
    for (const std::string& name : node.guarded) {
      auto at = std::find(columns.begin(), columns.end(), name);
      if (at == columns.end()) continue;
      const Field* field = graph_node_.type.find(name);
      guarded_.push_back({static_cast<int32_t>(at - columns.begin()), field && field->type.has_static_shape()});
    }
  }

  void begin(const EpochContext& context) override {
    op_ = graph_node_.op->kernel.row_op(graph_node_, context);
    ports_.clear();
    std::fill(ordinals_.begin(), ordinals_.end(), 0);
    held_.clear();
    free_.clear();
    finished_ = false;
  }
  void start() override { process(); }
  void take(int port, const ChunkPtr& chunk) override { accept(port, chunk); }
  void accept(int port, const ChunkPtr& chunk) override {
    if (finished_ || passes_mark(chunk)) return;
    if (chunk->rows > 0) NodeCounters::add(counters.rows_in, node_.on_batches ? 1 : chunk->rows);
    ports_.accept(port, chunk);
    process();
  }
  void end(int port) override {
    ports_.end(port);
    process();
  }
  void save(OperatorState& state) const override {
    RowState own;
    op_->save(own);
    state.words = {ordinals_[0]};
    state.words.insert(state.words.end(), own.words.begin(), own.words.end());
    for (const Row& row : own.rows) state.rows.push_back(held_[row.handle].chunk->id(held_[row.handle].row));
  }
  void restore(const OperatorState& state, const ChunkPtr& rows) override {
    RowState own;
    ordinals_[0] = state.words.at(0);
    own.words.assign(state.words.begin() + 1, state.words.end());
    for (size_t i = 0; i < state.rows.size(); ++i) {
      held_.push_back({rows, static_cast<int64_t>(i)});
      own.rows.push_back({i, 0, 0, false});
    }
    op_->load(own);
  }
  bool done() const override { return finished_ || op_->done(); }
  int wanted() const override { return op_->wanted_input(); }
  size_t backlog(int port) const override { return ports_.backlog(port); }

 private:
  void process() {
    while (!finished_ && !op_->done()) {
      int port = op_->wanted_input();
      ports_.ask(port, [this](const std::shared_ptr<const Rejection>& what) { tell(what); });
      if (!ports_.empty(port)) {
        take_row(port);
      } else if (ports_.ended(port)) {
        op_->end_of_input(port, *this);
        if (ports_.count() == 1) {
          flush();
          finish();
          return;
        }
        if (!op_->done() && op_->wanted_input() == port) break;  // nothing more will come from anywhere
      } else {
        break;
      }
    }
    flush();
    if (!finished_ && op_->done()) finish();
  }

  void take_row(int port) {
    current_ = {&ports_.front(port), ports_.row(port)};
    push_row(port);
    ports_.advance(port, node_.on_batches);
  }
  void push_row(int port) {
    const Chunk& chunk = **current_.chunk;
    const bool marked = !chunk.issues.empty() && (node_.on_batches || chunk.has_issue(current_.row));
    const bool failed_row = marked && (node_.on_batches ? is_failed_row(chunk) : chunk.row_failed(current_.row));
    // No arrival, but it is known by the arm that it came from. What ends the run no policy below may handle.
    const bool ends_run = failed_row && find_failure()->failure()->code == kTooManyErrors;
    if (failed_row && (!policy_ || ends_run)) {
      if (ends_run) flush();  // it ends the run as the sample that it is, whatever others have become
      if (merges_ && !ends_run) word_ = static_cast<uint64_t>(port);
      emit_place(*current_.chunk, current_.row);
      if (ends_run) flush();
      return;
    }
    Row row;
    row.ordinal = ordinals_[static_cast<size_t>(port)]++;
    row.input = port;
    row.failed = policy_ && marked && find_failure() != nullptr;
    if (holds_) {
      const bool large = !node_.on_batches && chunk.rows > 1 && row_bytes(chunk, current_.row) >= kIsolateBytes;
      Place place = large ? Place{isolate(pool_, chunk, current_.row), 0} : Place{*current_.chunk, current_.row};
      if (free_.empty()) {
        row.handle = held_.size();
        held_.push_back(std::move(place));
      } else {
        row.handle = free_.back();
        free_.pop_back();
        held_[row.handle] = std::move(place);
      }
    }
    op_->push(row, *this);
  }

  const Value* find_failure() const {
    const Chunk& chunk = **current_.chunk;
    if (chunk.issues.empty()) return nullptr;
    if (const Issue* issue = chunk.issue(current_.row, Issue::kFailedRow)) return issue->value.get();
    for (const Guarded& guarded : guarded_)
      if (const Issue* issue = chunk.issue(current_.row, guarded.column)) return issue->value.get();
    return nullptr;
  }

  void emit(Row row) override {
    if (holds_) {
      const Place place = std::move(held_[row.handle]);
      free_.push_back(row.handle);
      return emit_place(place.chunk, place.row);
    }
    if (!policy_ || !row.failed || (*current_.chunk)->row_failed(current_.row))
      return emit_place(*current_.chunk, current_.row);
    auto failed = std::make_shared<Chunk>(*current_slice());  // on_error(fail): its turn has come
    failed->issues.insert(failed->issues.begin(),
                          {0, Issue::kFailedRow, std::make_shared<Value>(Value::failed(*find_failure()->failure()))});
    emit_place(failed, 0);
  }
  ChunkPtr current_slice() const { return slice(*current_.chunk, current_.row, 1); }
  void append_identity(uint64_t word) override { word_ = word; }
  void reject(Row, const std::string& policy) override {
    if (policy != "limit") return count_rejected(policy);
    RunFailure failure{*find_failure()->failure(), (*current_.chunk)->id(current_.row)};
    const int64_t most = graph_node_.attrs.integer("max_errors");
    failure.failure.message =
        fmt::format("{} samples failed, and max_errors is {}; the last: {}", most + 1, most, failure.failure.message);
    failure.failure.code = kTooManyErrors;
    flush();
    auto failed = std::make_shared<Chunk>(*current_slice());
    failed->issues = {{0, Issue::kFailedRow, std::make_shared<Value>(Value::failed(failure.failure))}};
    emit_place(failed, 0);
  }
  void mask(Row) override {
    count_rejected("mask");
    // Failed values of static shape are zeros already; only the marks go.
    auto masked = std::make_shared<Chunk>(*current_slice());
    std::erase_if(masked->issues, [&](const Issue& issue) {
      if (issue.column == Issue::kFailedRow) return true;
      return std::any_of(guarded_.begin(), guarded_.end(),
                         [&](const Guarded& g) { return g.column == issue.column && g.is_static; });
    });
    masked_ = true;
    emit_place(masked, 0);
  }

  void count_rejected(const std::string& policy) {
    tell(std::make_shared<Rejection>(
        Rejection{node_.node, {*find_failure()->failure(), (*current_.chunk)->id(current_.row)}, policy}));
  }
  void tell(const std::shared_ptr<const Rejection>& what) {
    if (node_.on_batches) return push(only_rejected({what}));
    pending_.add_rejected(what);
  }
  void emit_place(const ChunkPtr& chunk, int64_t row) {
    if (node_.on_batches) {
      push(word_ ? zephon::append_identity(pool_, chunk, std::span(&*word_, 1)) : chunk);
      word_.reset();
      return;
    }
    if (word_) {
      words_.resize(pending_.size());
      words_.push_back(*word_);
      word_.reset();
    }
    if (adds_valid_) valid_.push_back(!masked_);
    masked_ = false;
    pending_.add(chunk, row);
    if (pending_.size() >= kFlushRows) flush();
  }

  void flush() {
    if (pending_.empty()) return;
    ChunkPtr chunk = pending_.take(pool_);
    if (chunk->rows == 0) return push(std::move(chunk));
    if (!words_.empty()) {
      words_.resize(static_cast<size_t>(chunk->rows));
      chunk = zephon::append_identity(pool_, chunk, words_);
      words_.clear();
    }
    if (adds_valid_) {
      auto with = std::make_shared<Chunk>(*chunk);
      TensorRef shape;
      shape.elem = Elem::Bool;
      with->columns.push_back(make_fixed_column(pool_, shape, chunk->rows));
      std::copy(valid_.begin(), valid_.end(), reinterpret_cast<uint8_t*>(with->columns.back().data));
      valid_.clear();
      chunk = with;
    }
    push(std::move(chunk));
  }
  void finish() {
    finished_ = true;
    ports_.clear();
    held_.clear();
    out->end();
  }

  struct Guarded {
    int32_t column;
    bool is_static;
  };
  const Node& graph_node_;
  std::unique_ptr<RowOp> op_;
  Ports ports_;
  std::vector<uint64_t> ordinals_;
  std::vector<Guarded> guarded_;
  bool holds_, policy_, merges_, adds_valid_;
  bool finished_ = false, masked_ = false;
  struct {
    const ChunkPtr* chunk = nullptr;
    int64_t row = 0;
  } current_;  // at the front of its port
  std::vector<Place> held_;
  std::vector<uint64_t> free_;
  Gatherer pending_;
  std::optional<uint64_t> word_;
  std::vector<uint64_t> words_;
  std::vector<uint8_t> valid_;
};

// Members of one batch, whole: its shapes are those of the first member, or padded.
class Stacker {
 public:
  Stacker(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool)
      : graph_node_(plan.graph.node(node.node)), columns_(columns), pool_(pool) {
    const StreamType& input = plan.graph.node(graph_node_.inputs[0]).type;
    for (const std::string& name : columns) {
      const Field* field = input.find(name);
      open_.push_back(field && !field->type.has_static_shape());
    }
  }
  ChunkPtr stack(std::vector<ChunkPtr>& parts) {
    ChunkPtr batch = parts[0];
    if (parts.size() > 1) {
      places_.clear();
      for (const ChunkPtr& part : parts)
        for (int64_t row = 0; row < part->rows; ++row) places_.push_back({&part, row});
      batch = gather(pool_, places_);
    }
    parts.clear();
    return graph_node_.op->algebra.pads ? pad(std::move(batch)) : check_shapes(std::move(batch));
  }
  const Node& graph_node() const { return graph_node_; }

 private:
  // The first member fixes the shape of each field; one that deviates fails.
  ChunkPtr check_shapes(ChunkPtr batch) const {
    std::vector<Issue> found;
    for (size_t c = 0; c < batch->columns.size(); ++c) {
      const Column& column = batch->columns[c];
      if (column.fixed() || batch->rows < 2) continue;
      auto index = static_cast<int32_t>(c);
      std::vector<int64_t> first, own;
      if (!shape_of(*batch, index, 0, first)) continue;
      for (int64_t row = 1; row < batch->rows; ++row) {
        if (!shape_of(*batch, index, row, own) || own == first) continue;
        found.push_back(
            {row, index,
             std::make_shared<Value>(Value::failed(
                 {"R0410",
                  fmt::format("`{}` has shape [{}], but [{}] in the first sample of its batch, {}", columns_[c],
                              fmt::join(own, ", "), fmt::join(first, ", "), to_string(batch->id(0))),
                  graph_node_.origin}))});
      }
    }
    if (found.empty()) return batch;
    auto out_batch = std::make_shared<Chunk>(*batch);
    for (const Issue& issue : found) {
      std::erase_if(out_batch->issues,
                    [&](const Issue& old) { return old.row == issue.row && old.column == issue.column; });
      out_batch->issues.push_back(issue);
    }
    std::sort(out_batch->issues.begin(), out_batch->issues.end(),
              [](const Issue& a, const Issue& b) { return std::pair(a.row, a.column) < std::pair(b.row, b.column); });
    return out_batch;
  }
  // Dimensions that the type of a field leaves open grow to those of the largest member.
  ChunkPtr pad(ChunkPtr batch) const {
    std::shared_ptr<Chunk> out;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<int64_t> own;
    for (size_t c = 0; c < batch->columns.size(); ++c) {
      if (!open_[c]) continue;
      const auto index = static_cast<int32_t>(c);
      const Column& column = batch->columns[c];
      shapes.clear();
      for (int64_t row = 0; row < batch->rows; ++row)
        if (shape_of(*batch, index, row, own)) shapes.push_back(own);
      if (shapes.empty()) continue;
      const std::vector<int64_t> shape = padded_shape(graph_node_, shapes);
      if (column.fixed() && std::ranges::all_of(shapes, [&](const auto& s) { return s == shape; })) continue;
      if (!out) out = std::make_shared<Chunk>(*batch);
      TensorRef row_ref;
      row_ref.elem = column.row.elem;
      row_ref.rank = static_cast<int32_t>(shape.size());
      std::ranges::copy(shape, row_ref.shape);
      out->columns[c] = make_fixed_column(pool_, row_ref, batch->rows);
      Value padding = Value::scalar(padding_of(graph_node_, columns_[c], row_ref.elem));
      StringRef text;
      const void* element = padding.bytes().data();
      if (is_string(row_ref.elem)) {
        auto kept = std::make_shared<const std::string>(padding.string_items()[0]);
        text = {kept->data(), kept->size()};
        element = &text;
        out->keep.push_back(kept);
      }
      for (int64_t row = 0; row < batch->rows; ++row) {
        std::byte* to = out->columns[c].data + static_cast<size_t>(row) * out->columns[c].row_bytes;
        TensorRef from = column.at(row);
        const Issue* issue = batch->issue(row, index);
        std::string problem;
        if (issue ||
            !(problem = longer_than(columns_[c], {from.shape, static_cast<size_t>(from.rank)}, shape)).empty()) {
          std::memset(to, 0, out->columns[c].row_bytes);
          Value value = !issue                         ? Value::failed({"R0410", problem, graph_node_.origin})
                        : issue->value->whole_failed() ? *issue->value
                                                       : padded_issue(*issue->value, shape, c);
          std::erase_if(out->issues, [&](const Issue& old) { return old.row == row && old.column == index; });
          out->issues.push_back({row, index, std::make_shared<Value>(std::move(value))});
          continue;
        }
        pad_into(from, shape, element, to);
      }
      // Strings still point into the members.
      if (column.indirect()) out->keep.push_back(batch);
    }
    if (!out) return batch;
    std::sort(out->issues.begin(), out->issues.end(),
              [](const Issue& a, const Issue& b) { return std::pair(a.row, a.column) < std::pair(b.row, b.column); });
    return out;
  }
  Value padded_issue(const Value& value, const std::vector<int64_t>& shape, size_t column) const {
    if (std::string problem = longer_than(columns_[column], value.shape(), shape); !problem.empty())
      return Value::failed({"R0410", std::move(problem), graph_node_.origin});
    return padded(value, shape, padding_of(graph_node_, columns_[column], value.elem()));
  }
  static bool shape_of(const Chunk& batch, int32_t column, int64_t row, std::vector<int64_t>& shape) {
    if (const Issue* issue = batch.issue(row, column)) {
      if (issue->value->whole_failed()) return false;
      shape = issue->value->shape();
      return true;
    }
    const TensorRef ref = batch.columns[static_cast<size_t>(column)].at(row);
    shape.assign(ref.shape, ref.shape + ref.rank);
    return true;
  }

  const Node& graph_node_;
  std::vector<std::string> columns_;
  std::vector<bool> open_;  // columns whose type leaves dimensions open
  BufferPool& pool_;
  std::vector<RowPlace> places_;
};

class BatchNode final : public SerialOp {
 public:
  BatchNode(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool)
      : SerialOp(node, pool), stacker_(plan, node, columns, pool) {
    size_ = stacker_.graph_node().attrs.integer("batch_size");
    drop_remainder_ = stacker_.graph_node().attrs.flag("drop_remainder");
  }
  void begin(const EpochContext&) override { clear(); }
  void accept(int, const ChunkPtr& chunk) override {
    if (passes_mark(chunk)) return;
    NodeCounters::add(counters.rows_in, chunk->rows);
    int64_t row = 0;
    while (row < chunk->rows) {
      int64_t end = std::min(chunk->rows, row + size_ - count_);
      // A failed row passes: it is no arrival.
      if (!chunk->issues.empty()) {
        for (const Issue& issue : chunk->issues) {
          if (issue.column != Issue::kFailedRow || issue.row < row) continue;
          end = std::min(end, issue.row);
          break;
        }
        if (end == row && chunk->row_failed(row)) {
          out->push(slice(chunk, row, 1));
          ++row;
          continue;
        }
      }
      parts_.push_back(slice(chunk, row, end - row));
      count_ += end - row;
      row = end;
      if (count_ == size_) emit();
    }
  }
  void save(OperatorState& state) const override {
    for (const ChunkPtr& part : parts_)
      for (int64_t row = 0; row < part->rows; ++row) state.rows.push_back(part->id(row));
  }
  void restore(const OperatorState&, const ChunkPtr& rows) override {
    if (rows) accept(0, rows);
  }
  void end(int) override {
    if (count_ > 0 && !drop_remainder_) emit();
    clear();
    out->end();
  }

 private:
  void clear() {
    parts_.clear();
    count_ = 0;
  }
  void emit() {
    NodeCounters::add(counters.rows_out, 1);
    ChunkPtr batch = stacker_.stack(parts_);
    clear();
    out->push(std::move(batch));
  }
  Stacker stacker_;
  int64_t size_ = 1, count_ = 0;
  bool drop_remainder_ = false;
  std::vector<ChunkPtr> parts_;
};

// One batch in the making for each bucket; the column that the predicate names says which is a row's.
class BucketNode final : public SerialOp {
 public:
  BucketNode(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool)
      : SerialOp(node, pool), stacker_(plan, node, columns, pool) {
    const Node& graph_node = stacker_.graph_node();
    bounds_ = graph_node.attrs.get<std::vector<int64_t>>("boundaries");
    sizes_ = graph_node.attrs.get<std::vector<int64_t>>("batch_sizes");
    drop_remainder_ = graph_node.attrs.flag("drop_remainder");
    const std::string& name = plan.graph.expr(graph_node.predicate).attrs.text("name");
    key_ = static_cast<int32_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
    buckets_.resize(sizes_.size());
  }
  void begin(const EpochContext&) override { clear(); }
  void accept(int, const ChunkPtr& chunk) override {
    if (passes_mark(chunk)) return;
    NodeCounters::add(counters.rows_in, chunk->rows);
    for (int64_t row = 0; row < chunk->rows; ++row) {
      if (!chunk->issues.empty() && chunk->row_failed(row)) {
        out->push(slice(chunk, row, 1));
        continue;
      }
      if (const Issue* issue = chunk->issue(row, key_)) {  // without a length it belongs to no batch
        auto failed = std::make_shared<Chunk>(*slice(chunk, row, 1));
        failed->issues.insert(failed->issues.begin(),
                              {0, Issue::kFailedRow, std::make_shared<Value>(Value::failed(*issue->value->failure()))});
        out->push(failed);
        continue;
      }
      const int64_t length = *static_cast<const int64_t*>(chunk->columns[static_cast<size_t>(key_)].at(row).data);
      const auto b = static_cast<size_t>(std::upper_bound(bounds_.begin(), bounds_.end(), length) - bounds_.begin());
      const bool large = chunk->rows > 1 && row_bytes(*chunk, row) >= kIsolateBytes;
      buckets_[b].push_back(large ? isolate(pool_, *chunk, row) : slice(chunk, row, 1));
      if (static_cast<int64_t>(buckets_[b].size()) == sizes_[b]) emit(buckets_[b]);
    }
  }
  void save(OperatorState& state) const override {
    for (const auto& bucket : buckets_)
      for (const ChunkPtr& member : bucket) state.rows.push_back(member->id(0));
  }
  // Each goes back into its bucket, none of which is full.
  void restore(const OperatorState&, const ChunkPtr& rows) override {
    if (rows) accept(0, rows);
  }
  void end(int) override {
    for (auto& bucket : buckets_)
      if (!bucket.empty() && !drop_remainder_) emit(bucket);
    clear();
    out->end();
  }

 private:
  void clear() {
    for (auto& bucket : buckets_) bucket.clear();
  }
  void emit(std::vector<ChunkPtr>& bucket) {
    NodeCounters::add(counters.rows_out, 1);
    out->push(stacker_.stack(bucket));
  }

  Stacker stacker_;
  std::vector<int64_t> bounds_, sizes_;
  bool drop_remainder_ = false;
  int32_t key_ = 0;
  std::vector<std::vector<ChunkPtr>> buckets_;
};

class UnbatchNode final : public SerialOp {
 public:
  using SerialOp::SerialOp;
  void begin(const EpochContext&) override {}
  void save(OperatorState&) const override {}
  void restore(const OperatorState&, const ChunkPtr&) override {}
  void accept(int, const ChunkPtr& chunk) override {
    NodeCounters::add(counters.rows_in, 1);
    if (is_failed_row(*chunk)) {
      out->push(chunk);
      return;
    }
    std::vector<uint64_t> numbers;
    for (int64_t row = 0; row < chunk->rows; ++row) numbers.push_back(static_cast<uint64_t>(row));
    NodeCounters::add(counters.rows_out, chunk->rows);
    out->push(append_identity(pool_, chunk, numbers));
  }
  void end(int) override { out->end(); }
};

class RepeatNode final : public SerialOp {
 public:
  /// The pass stands in the identities already: sources emit it.
  RepeatNode(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool,
             SerialEvents& events)
      : SerialOp(node, pool), events_(events), input_(plan.graph.node(node.node).inputs[0]) {
    const Attrs& attrs = plan.graph.node(node.node).attrs;
    is_data_ = plan.graph.node(input_).type.domain == Domain::Data;
    auto verdict = std::find(columns.begin(), columns.end(), "$verdict");
    if (verdict != columns.end()) verdict_ = static_cast<int32_t>(verdict - columns.begin());
    if (attrs.has("count") && attrs.integer("count") >= 0) passes_ = static_cast<uint64_t>(attrs.integer("count"));
  }
  void begin(const EpochContext&) override {
    pass_ = 0;
    came_ = false;
    finished_ = false;
  }
  void start() override {
    if (passes_ > 0) return;
    finished_ = true;
    out->end();
  }
  bool done() const override { return finished_; }
  void save(OperatorState&) const override {}
  void restore(const OperatorState&, const ChunkPtr&) override {}
  void accept(int, const ChunkPtr& chunk) override {
    if (done() || chunk->rows == 0) return;
    NodeCounters::add(counters.rows_in, chunk->rows);
    came_ = came_ || some_come(*chunk);
    push(chunk);
  }
  void end(int) override {
    if (finished_) return;
    if (pass_ + 1 >= passes_ || (!came_ && nothing_comes())) {
      finished_ = true;
      out->end();
      return;
    }
    ++pass_;
    came_ = false;
    events_.again(*this, pass_);
  }

 private:
  // The domain is empty, or, where there is none to ask and it would go on for ever, a pass was.
  bool nothing_comes() const { return is_data_ ? passes_ == UINT64_MAX : events_.is_empty_domain(input_); }
  // Rows of which the filters above have said false are still here where their verdict is a column.
  bool some_come(const Chunk& chunk) const {
    if (verdict_ < 0) return true;
    const Column& column = chunk.columns[static_cast<size_t>(verdict_)];
    for (int64_t row = 0; row < chunk.rows; ++row) {
      if (chunk.row_failed(row) || chunk.issue(row, verdict_)) return true;
      if (*static_cast<const uint8_t*>(column.at(row).data) != 0) return true;
    }
    return false;
  }

  SerialEvents& events_;
  uint64_t passes_ = UINT64_MAX, pass_ = 0;
  NodeId input_;
  bool is_data_ = false;
  int32_t verdict_ = -1;  // column of the filters above that a filter below may overrule
  bool came_ = false;     // something, in this pass
  bool finished_ = false;
};

// Rows of several inputs, taken as soon as every input that has not ended offers one; nothing of it is state.
class MergingOp : public SerialOp {
 public:
  MergingOp(const PlanNode& node, BufferPool& pool) : SerialOp(node, pool), ports_(node.inputs.size()) {}
  void begin(const EpochContext&) override {
    ports_.clear();
    finished_ = false;
  }
  void save(OperatorState&) const override {}
  void restore(const OperatorState&, const ChunkPtr&) override {}
  void take(int port, const ChunkPtr& chunk) override { accept(port, chunk); }
  void accept(int port, const ChunkPtr& chunk) override {
    NodeCounters::add(counters.rows_in, chunk->rows);
    ports_.accept(port, chunk);
    process();
  }
  void end(int port) override {
    ports_.end(port);
    process();
  }
  int wanted() const override {
    for (int port = 0; port < ports_.count(); ++port)
      if (ports_.empty(port) && !ports_.ended(port)) return port;
    return 0;
  }
  size_t backlog(int port) const override { return ports_.backlog(port); }

 protected:
  virtual void process() = 0;

  Ports ports_;
  bool finished_ = false;
};

// One row of each input makes one row. The inputs have equally many, and none of them fails as a row: no filter stands
// there.
class ZipNode final : public MergingOp {
 public:
  ZipNode(const PlanNode& node, BufferPool& pool)
      : MergingOp(node, pool), outer_words_(static_cast<size_t>(node.outer_words)) {}

 private:
  void process() override {
    for (;;) {
      int64_t rows = INT64_MAX;
      for (int port = 0; port < ports_.count(); ++port) {
        ports_.ask(port, [this](const std::shared_ptr<const Rejection>& what) { push(only_rejected({what})); });
        if (!ports_.empty(port)) {
          rows = std::min(rows, ports_.front(port)->rows - ports_.row(port));
          continue;
        }
        if (ports_.ended(port) && !finished_) {
          finished_ = true;
          out->end();
        }
        return;
      }
      push(pair(rows));
    }
  }
  ChunkPtr pair(int64_t rows) {
    auto joined = std::make_shared<Chunk>();
    joined->rows = rows;
    std::vector<ChunkPtr> parts;
    int32_t columns = 0;
    for (int port = 0; port < ports_.count(); ++port) {
      const ChunkPtr& part = parts.emplace_back(slice(ports_.front(port), ports_.row(port), rows));
      for (int64_t i = 0; i < rows; ++i) ports_.advance(port, false);
      joined->columns.insert(joined->columns.end(), part->columns.begin(), part->columns.end());
      joined->keep.push_back(part);
      joined->bytes += part->bytes;
      for (Issue issue : part->issues) {
        if (issue.column != Issue::kFailedRow) issue.column += columns;
        joined->issues.push_back(std::move(issue));
      }
      columns += static_cast<int32_t>(part->columns.size());
    }
    std::stable_sort(joined->issues.begin(), joined->issues.end(), [](const Issue& a, const Issue& b) {
      return std::pair(a.row, a.column) < std::pair(b.row, b.column);
    });
    joined->order = parts[0]->order;
    std::vector<uint64_t> words, own;
    std::vector<uint32_t> offsets = {0};
    for (int64_t row = 0; row < rows; ++row) {
      for (const ChunkPtr& part : parts) {
        part->ids.words(row, own);
        // Each source has appended the arms that the pair stands in; the pair has them once.
        if (part != parts.back()) own.resize(own.size() - outer_words_);
        words.insert(words.end(), own.begin(), own.end());
      }
      offsets.push_back(static_cast<uint32_t>(words.size()));
    }
    joined->ids = Ids::dense(pool_, words, offsets);
    return joined;
  }

  size_t outer_words_;
};

// One row of each input makes one row where their keys are equal: graph/pairs.h has the rule.
class JoinNode final : public MergingOp {
 public:
  JoinNode(const Plan& plan, const PlanNode& node, const std::vector<std::string>& columns, BufferPool& pool)
      : MergingOp(node, pool),
        graph_node_(plan.graph.node(node.node)),
        most_(static_cast<size_t>(graph_node_.attrs.integer("buffer_size"))) {
    for (const std::string& name : columns) types_.push_back(graph_node_.type.find(name)->type);
    for (NodeId input : graph_node_.inputs) {
      // Each input has its columns in the order of their names.
      std::vector<std::string> names;
      for (const std::string& name : columns)
        if (plan.graph.node(input).type.find(name)) names.push_back(name);
      std::ranges::sort(names);
      Arm& arm = arms_.emplace_back();
      for (const std::string& name : names) {
        if (name == graph_node_.attrs.text("key")) arm.key = static_cast<int32_t>(arm.to.size());
        arm.to.push_back(static_cast<int32_t>(std::ranges::find(columns, name) - columns.begin()));
      }
    }
  }
  void begin(const EpochContext& context) override {
    MergingOp::begin(context);
    for (Arm& arm : arms_) {
      arm.waiting.clear();
      arm.by_key.clear();
    }
    current_.reset();
    first_ended_ = over_ = false;
    arm_ = last_ = 1;
  }
  int wanted() const override {
    const size_t port = first_ended_ ? last_ : current_ ? arm_ : 0;
    return static_cast<int>(std::min(port, arms_.size() - 1));
  }

 private:
  struct Waiting {
    std::string key;
    ChunkPtr row;
  };
  struct Arm {
    std::vector<int32_t> to;  // for each of its columns, the place among those of a pair
    int32_t key = 0;
    std::list<Waiting> waiting;  // in order of arrival
    std::unordered_map<std::string, std::list<Waiting>::iterator> by_key;
  };

  void process() override {
    while (step()) {
    }
    if (!pending_.empty()) push(pending_.take(pool_));
    if (!over_ || finished_) return;
    finished_ = true;
    out->end();
  }
  // False where it waits, or all is over.
  bool step() {
    if (over_) return false;
    if (first_ended_) return step_of_the_rest();
    ChunkPtr row;
    if (!current_) {
      if (!take_row(0, row)) {
        first_ended_ = ports_.ended(0);
        return first_ended_;
      }
      if (!admit(row, 0)) return true;
      current_ = std::move(row);
      wanted_ = key_;
      arm_ = 1;
      return true;
    }
    if (arm_ == arms_.size()) {
      std::vector<ChunkPtr> parts = {std::exchange(current_, nullptr)};
      for (size_t i = 1; i < arms_.size(); ++i) {
        auto at = arms_[i].by_key.find(wanted_);
        parts.push_back(std::move(at->second->row));
        arms_[i].waiting.erase(at->second);
        arms_[i].by_key.erase(at);
      }
      add(joined(parts, nullptr));
      return true;
    }
    Arm& arm = arms_[arm_];
    if (arm.by_key.contains(wanted_)) {
      ++arm_;
    } else if (arm.waiting.size() == most_) {
      fail(std::exchange(current_, nullptr), 0, no_partner(graph_node_, wanted_, arm_, false));
    } else if (!take_row(static_cast<int>(arm_), row)) {
      if (!ports_.ended(static_cast<int>(arm_))) return false;
      fail(std::exchange(current_, nullptr), 0, no_partner(graph_node_, wanted_, arm_, true));
    } else if (admit(row, arm_)) {
      if (arm.by_key.contains(key_)) {
        fail(std::move(row), arm_, key_twice(graph_node_, key_, arm_));
        return true;
      }
      // What waits for long must not hold the chunk that it came in.
      arm.waiting.push_back({key_, key_ == wanted_ ? row : isolate(pool_, *row, 0)});
      arm.by_key.emplace(key_, std::prev(arm.waiting.end()));
    }
    return true;
  }
  bool step_of_the_rest() {
    if (last_ == arms_.size()) {
      over_ = true;
      return false;
    }
    Arm& arm = arms_[last_];
    ChunkPtr row;
    if (!arm.waiting.empty()) {
      fail(std::move(arm.waiting.front().row), last_, never_asked_for(graph_node_, arm.waiting.front().key, last_));
      arm.waiting.pop_front();
    } else if (take_row(static_cast<int>(last_), row)) {
      if (admit(row, last_)) fail(row, last_, never_asked_for(graph_node_, key_, last_));
    } else if (ports_.ended(static_cast<int>(last_))) {
      ++last_;
    } else {
      return false;
    }
    return true;
  }

  bool take_row(int port, ChunkPtr& row) {
    ports_.ask(port, [this](const std::shared_ptr<const Rejection>& what) { pending_.add_rejected(what); });
    if (ports_.empty(port)) return false;
    row = slice(ports_.front(port), ports_.row(port), 1);
    ports_.advance(port, false);
    return true;
  }
  // Its key into `key_`; false where the row, or its key, has failed: then it comes out as it is.
  bool admit(const ChunkPtr& row, size_t arm) {
    if (const Issue* issue = row->issue(0, Issue::kFailedRow)) {
      fail(row, arm, *issue->value->failure());
    } else if (const Issue* bad = row->issue(0, arms_[arm].key)) {
      fail(row, arm, *bad->value->failure());
    } else {
      key_ = join_key(to_value(row->columns[static_cast<size_t>(arms_[arm].key)].at(0)));
      return true;
    }
    return false;
  }
  void fail(const ChunkPtr& row, size_t arm, const Failure& why) {
    std::vector<ChunkPtr> parts(arms_.size());
    parts[arm] = row;
    add(joined(parts, &why));
  }
  void add(ChunkPtr row) {
    pending_.add(row, 0);
    if (pending_.size() >= kFlushRows) push(pending_.take(pool_));
  }

  // A pair, or a failed row of one input: what the others would have given has failed too.
  ChunkPtr joined(const std::vector<ChunkPtr>& parts, const Failure* why) {
    auto out_row = std::make_shared<Chunk>();
    out_row->rows = 1;
    out_row->columns.resize(types_.size());
    std::vector<uint8_t> given(types_.size());
    std::vector<uint64_t> words, own;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i]) continue;
      const Chunk& part = *parts[i];
      parts[i]->ids.words(0, own);
      words.insert(words.end(), own.begin(), own.end());
      out_row->bytes += part.bytes;
      out_row->keep.push_back(parts[i]);
      for (size_t c = 0; c < part.columns.size(); ++c) {
        const auto to = static_cast<size_t>(arms_[i].to[c]);
        if (given[to]) continue;  // the key, once more
        given[to] = 1;
        out_row->columns[to] = part.columns[c];
        if (const Issue* issue = part.issue(0, static_cast<int32_t>(c)))
          out_row->issues.push_back({0, arms_[i].to[c], issue->value});
      }
    }
    for (size_t c = 0; c < types_.size() && why; ++c) {
      if (given[c]) continue;
      out_row->columns[c] = zeros(types_[c]);
      out_row->issues.push_back({0, static_cast<int32_t>(c), std::make_shared<Value>(Value::failed(*why))});
    }
    if (why) out_row->issues.push_back({0, Issue::kFailedRow, std::make_shared<Value>(Value::failed(*why))});
    std::ranges::sort(out_row->issues, {}, &Issue::column);
    const uint32_t offsets[] = {0, static_cast<uint32_t>(words.size())};
    out_row->ids = Ids::dense(pool_, words, offsets);
    return out_row;
  }
  Column zeros(const Type& type) {
    TensorRef row;
    row.elem = type.elem;
    row.rank = static_cast<int32_t>(type.rank());
    for (size_t d = 0; d < type.rank(); ++d) row.shape[d] = std::max<int64_t>(type.shape[d].extent, 0);
    if (type.has_static_shape()) {
      Column column = make_fixed_column(pool_, row, 1);
      std::memset(column.data, 0, column.row_bytes);
      return column;
    }
    static std::byte none[1];
    Column column = make_ref_column(pool_, row.elem, row.rank, 1);
    row.data = none;
    column.refs[0] = row;
    return column;
  }

  const Node& graph_node_;
  size_t most_;
  std::vector<Type> types_;  // of the columns of a pair
  std::vector<Arm> arms_;
  ChunkPtr current_;  // of the first input, with its key
  std::string wanted_, key_;
  size_t arm_ = 1, last_ = 1;
  bool first_ended_ = false, over_ = false;
  Gatherer pending_;
};

class OrderedNode final : public MergingOp {
 public:
  using MergingOp::MergingOp;

 private:
  void process() override {
    for (;;) {
      int least = -1;
      uint64_t least_order = 0;
      bool waits = false;
      for (int port = 0; port < ports_.count(); ++port) {
        ports_.ask(port, [this](const std::shared_ptr<const Rejection>& what) { pending_.add_rejected(what); });
        if (ports_.empty(port)) {
          waits |= !ports_.ended(port);
          continue;
        }
        uint64_t order = ports_.front(port)->order[static_cast<size_t>(ports_.row(port))];
        if (least >= 0 && order >= least_order) continue;
        least = port;
        least_order = order;
      }
      if (waits || least < 0) {
        if (!pending_.empty()) push(pending_.take(pool_));
        if (!waits && !finished_) {
          finished_ = true;
          out->end();
        }
        return;
      }
      pending_.add(ports_.front(least), ports_.row(least));
      ports_.advance(least, false);
      if (pending_.size() >= kFlushRows) push(pending_.take(pool_));
    }
  }
  Gatherer pending_;
};

class RegroupNode final : public SerialOp {
 public:
  RegroupNode(const PlanNode& node, int64_t rows, bool batches, BufferPool& pool)
      : SerialOp(node, pool), size_(rows), batches_(batches) {}
  void begin(const EpochContext&) override {
    clear();
    rejected_.clear();
  }
  void take(int port, const ChunkPtr& chunk) override {
    if (batches_ || chunk->rejected.empty()) return SerialOp::take(port, chunk);
    const int64_t waiting = rows_waiting();
    for (const RejectedAt& each : chunk->rejected) rejected_.push_back({waiting + each.row, each.what});
    auto bare = std::make_shared<Chunk>(*chunk);
    bare->rejected.clear();
    accept(port, bare);
  }
  void accept(int, const ChunkPtr& chunk) override {
    if (chunk->mark && !rejected_.empty()) emit();  // what has happened lies before the mark
    if (passes_mark(chunk)) return;
    int64_t row = 0;
    while (row < chunk->rows) {
      int64_t end = std::min(chunk->rows, row + size_ - good_);
      int64_t good = end - row;
      if (!chunk->issues.empty()) {
        good = 0;
        for (end = row; end < chunk->rows && good < size_ - good_; ++end) good += !chunk->row_failed(end);
      }
      parts_.push_back(slice(chunk, row, end - row));
      good_ += good;
      row = end;
      if (good_ == size_) emit();
    }
  }
  void save(OperatorState& state) const override {
    for (const ChunkPtr& part : parts_)
      for (int64_t row = 0; row < part->rows; ++row) state.rows.push_back(part->id(row));
  }
  void restore(const OperatorState&, const ChunkPtr& rows) override {
    if (rows) accept(0, rows);
  }
  void end(int) override {
    emit();
    out->end();
  }

 private:
  // The rows that wait are a batch to be. If one of them has failed, it ends the run when its turn comes: nothing lies
  // behind it.
  void pass_on(const ChunkPtr& rejected) override {
    if (rows_waiting() == good_) out->push(rejected);
  }
  int64_t rows_waiting() const {
    int64_t rows = 0;
    for (const ChunkPtr& part : parts_) rows += part->rows;
    return rows;
  }
  void clear() {
    parts_.clear();
    good_ = 0;
  }
  void emit() {
    if (parts_.empty() && rejected_.empty()) return;
    ChunkPtr chunk = parts_.empty() ? std::make_shared<Chunk>() : parts_[0];
    if (parts_.size() > 1) {
      std::vector<RowPlace> places;
      for (const ChunkPtr& part : parts_)
        for (int64_t row = 0; row < part->rows; ++row) places.push_back({&part, row});
      chunk = gather(pool_, places);
    }
    if (!rejected_.empty()) {
      auto with = std::make_shared<Chunk>(*chunk);
      std::vector<RejectedAt> later;
      for (RejectedAt& each : rejected_) {
        if (each.row <= chunk->rows) {
          with->rejected.push_back(std::move(each));
        } else {
          later.push_back({each.row - chunk->rows, std::move(each.what)});
        }
      }
      rejected_ = std::move(later);
      chunk = with;
    }
    clear();
    out->push(std::move(chunk));
  }
  int64_t size_, good_ = 0;
  bool batches_;
  std::vector<ChunkPtr> parts_;
  std::vector<RejectedAt> rejected_;  // between the rows that wait, of which the first is row 0
};

}  // namespace

std::unique_ptr<SerialOp> make_serial_op(const Plan& plan, const PlanNode& node,
                                         const std::vector<std::string>& columns, BufferPool& pool,
                                         SerialEvents& events) {
  switch (node.kind) {
    case PlanNode::Kind::Batch:
      if (plan.graph.node(node.node).predicate.valid()) return std::make_unique<BucketNode>(plan, node, columns, pool);
      return std::make_unique<BatchNode>(plan, node, columns, pool);
    case PlanNode::Kind::Unbatch:
      return std::make_unique<UnbatchNode>(node, pool);
    case PlanNode::Kind::Repeat:
      return std::make_unique<RepeatNode>(plan, node, columns, pool, events);
    case PlanNode::Kind::Ordered:
      return std::make_unique<OrderedNode>(node, pool);
    default:
      if (pairs_rows(plan.graph.node(node.node))) return std::make_unique<ZipNode>(node, pool);
      if (joins_rows(plan.graph.node(node.node))) return std::make_unique<JoinNode>(plan, node, columns, pool);
      return std::make_unique<RowOpNode>(plan, node, columns, pool);
  }
}

std::unique_ptr<SerialOp> make_regroup(const PlanNode& node, int64_t rows, bool batches, BufferPool& pool) {
  return std::make_unique<RegroupNode>(node, rows, batches, pool);
}

std::vector<std::string> output_columns(const Plan& plan, const PlanNode& node,
                                        const std::vector<std::string>& columns) {
  std::vector<std::string> out = columns;
  if (node.kind != PlanNode::Kind::Serial) return out;
  // A policy that masks adds a field of its own.
  const Node& graph_node = plan.graph.node(node.node);
  if (graph_node.op->cls == OpClass::Policy && graph_node.attrs.text("policy") == "mask" &&
      std::find(out.begin(), out.end(), "valid") == out.end())
    out.push_back("valid");
  return out;
}

}  // namespace zephon
