#include "zephonc/reference_run.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "zephonc/machine_limits.h"

namespace zephon {

ReferenceRecordView::ReferenceRecordView(const ReferenceRecord& record, const StreamType& type, uint64_t number)
    : record_(record) {
  batched = record.is_batch;
  members = static_cast<int64_t>(record.ids.size());
  epoch = record.epoch;
  ordinal = number;
  strings_.reserve(record.fields.size());
  for (const auto& [name, value] : record.fields) {
    Field field;
    field.name = &name;
    field.type = &type.find(name)->type;
    field.value.elem = value.elem();
    field.value.rank = static_cast<int32_t>(value.rank());
    std::copy(value.shape().begin(), value.shape().end(), field.value.shape);
    if (is_string(value.elem())) {
      std::vector<StringRef>& refs = strings_.emplace_back();
      for (const std::string& item : value.string_items()) refs.push_back({item.data(), item.size()});
      field.value.data = refs.data();
    } else {
      field.value.data = const_cast<uint8_t*>(value.bytes().data());
    }
    fields.push_back(field);
  }
}

namespace {

/// Stops the interpreter when it is asked to, or when nothing is delivered for too long.
class ReferenceWatch {
 public:
  ReferenceWatch(const Graph& graph, const ReferenceRun& run, const RunOptions& options, std::atomic<bool>& stop)
      : graph_(graph), run_(run), options_(options), stop_(stop), thread_([this] { loop(); }) {}
  ~ReferenceWatch() { finish(); }
  void finish() {
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::atomic<bool> in_sink = false, stalled = false;
  std::atomic<uint64_t> delivered = 0;

 private:
  void loop() {
    using Clock = std::chrono::steady_clock;
    uint64_t seen = 0;
    Clock::time_point since = Clock::now();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return finished_; })) {
      if (options_.stop != nullptr && *options_.stop) stop_ = true;
      if (delivered != seen || in_sink) {
        seen = delivered;
        since = Clock::now();
      }
      if (options_.stall_timeout <= 0 || stop_ ||
          std::chrono::duration<double>(Clock::now() - since).count() <= options_.stall_timeout)
        continue;
      stalled = true;
      stop_ = true;
      if (options_.on_stall) options_.on_stall(report());
    }
  }
  StallReport report() const {
    StallReport out;
    out.status = "the reference interpreter is running\n";
    for (NodeId id : graph_.topological()) {
      const Node& node = graph_.node(id);
      if (node.op->cls == OpClass::Source) out.samples_read += run_.samples_out(id);
      if (!node.predicate.valid() && node.op->cls != OpClass::Policy) continue;
      const int64_t dropped = run_.samples_out(node.inputs[0]) - run_.samples_out(id);
      if (dropped > 0) out.dropped.push_back({node.origin, dropped});
    }
    return out;
  }

  const Graph& graph_;
  const ReferenceRun& run_;
  const RunOptions& options_;
  std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace

RunResult run_reference(const Graph& graph, uint64_t seed, const std::string& base_dir, const RunOptions& options,
                        Sink& sink, std::shared_ptr<const OpenSources> sources) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  RunResult result;
  const Clock::time_point begin = Clock::now();
  Clock::time_point first = begin, last = begin;
  result.base_rss = resident_bytes();
  result.state.program = options.program_fingerprint;
  result.state.seed = seed;
  result.state.rank = options.rank;
  result.state.world_size = options.world_size;
  const uint64_t skip_epochs = options.resume != nullptr ? options.resume->epoch : 0;
  const uint64_t skip_records = options.resume != nullptr ? options.resume->records : 0;
  result.state.epoch = skip_epochs;
  result.state.records = skip_records;
  result.state.delivered = options.resume != nullptr ? options.resume->delivered : 0;

  Failure failure;
  std::atomic<bool> stop = false;  // by a signal, or because nothing is delivered
  auto run = ReferenceRun::open(graph, {seed, options.epochs, base_dir, &stop}, failure, std::move(sources));
  if (run == nullptr) {
    result.end = RunResult::End::Failed;
    result.failure = RunFailure{failure, {}};
    return result;
  }
  result.state.files = fmt::format("{:016x}", stream_hash(run->sources().fingerprint()));
  if (options.resume != nullptr && options.resume->files != result.state.files) {
    result.end = RunResult::End::Failed;
    result.failure = RunFailure{{"R0507", "the files have changed since the state was saved", {}}, {}};
    return result;
  }
  std::map<std::pair<int32_t, std::string>, uint64_t> errors;
  uint64_t epoch = 0, ordinal = 0, round = 0;
  // As the plan's run does: of several ranks it is told by the one whose record comes next, and of a run that resumes
  // nothing that the one before it told.
  uint64_t rejections = 0, rejections_epoch = 0;
  run->on_rejected([&](const Rejected& rejected) {
    const uint64_t now = rejected.failure.epoch;
    rejections = now == rejections_epoch ? rejections + 1 : 1;
    rejections_epoch = now;
    if ((now == epoch ? ordinal : 0) % options.world_size != options.rank) return;
    if (now < skip_epochs ||
        (now == skip_epochs && options.resume != nullptr && rejections <= options.resume->rejected))
      return;
    int32_t step = graph.node(rejected.node).step;
    ++errors[{step, rejected.policy}];
    if (options.on_error) options.on_error(rejected.failure, graph.node(rejected.node), rejected.policy);
  });

  ReferenceWatch watch(graph, *run, options, stop);
  const StreamType& type = graph.node(graph.output()).type;
  std::optional<ReferenceRecord> held;  // ours, until its round is known to be whole
  while (true) {
    if (options.take && result.records >= *options.take) break;
    std::optional<ReferenceRecord> record = run->next();
    if (!record || record->epoch != epoch) {
      result.dropped_records += round;
      held.reset();
      round = ordinal = 0;
    }
    if (!record) break;
    epoch = record->epoch;
    const uint64_t number = ordinal++;
    if (number % options.world_size == options.rank) held = std::move(record);
    if (++round < options.world_size) continue;
    round = 0;
    if (epoch < skip_epochs || (epoch == skip_epochs && number < skip_records)) continue;
    ReferenceRecordView view(*held, type, number - (options.world_size - 1) + options.rank);
    last = Clock::now();
    if (result.records == 0) first = last;
    watch.in_sink = true;
    const bool more = sink.deliver(view);
    watch.in_sink = false;
    ++watch.delivered;
    if (!more) {
      result.end = RunResult::End::SinkClosed;
      break;
    }
    ++result.records;
    result.samples += held->ids.size();
    result.state.epoch = epoch;
    result.state.records = ordinal;
    ++result.state.delivered;
  }
  watch.finish();
  if (stop && result.end == RunResult::End::Complete) {
    result.end = watch.stalled ? RunResult::End::Stalled : RunResult::End::Stopped;
  } else if (run->failure()) {
    result.end = RunResult::End::Failed;
    result.failure = *run->failure();
  }
  for (const auto& [place, count] : errors) result.errors.push_back({place.first, place.second, count});
  if (rejections_epoch > result.state.epoch) {  // no record of it yet
    result.state.epoch = rejections_epoch;
    result.state.records = 0;
  }
  result.state.rejected = rejections_epoch == result.state.epoch ? rejections : 0;
  result.startup_seconds = seconds(first - begin);
  result.steady_seconds = seconds(last - first);
  return result;
}

}  // namespace zephon
