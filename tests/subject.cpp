#include "tests/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "ops/all_ops.h"
#include "zephonc/reference_run.h"

namespace zephon {
namespace {

class Collector : public Sink {
 public:
  bool deliver(const RunRecord& record) override {
    Delivered out;
    out.epoch = record.epoch;
    out.ordinal = record.ordinal;
    for (int64_t m = 0; m < record.members; ++m) out.ids += to_string(record.member_id(m)) + " ";
    DeliveredRecord all;
    all.batched = record.batched;
    for (const RunRecord::Field& field : record.fields) {
      const TensorRef& value = field.value;
      all.fields.push_back({*field.name, value.elem, {value.shape, value.shape + value.rank}, value.data});
    }
    std::sort(all.fields.begin(), all.fields.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::vector<std::vector<uint8_t>> scratch(all.fields.size());
    for (size_t i = 0; i < scratch.size(); ++i) make_nans_canonical(all.fields[i], scratch[i]);
    out.digest = digest_of(all);
    records.push_back(std::move(out));
    return true;
  }
  std::vector<Delivered> records;
};

/// Of a run: what on_error dealt with, from whichever thread.
class Rejections {
 public:
  void attach(RunOptions& how) {
    how.on_error = [this](const RunFailure& failure, const Node&, const std::string& policy) {
      std::lock_guard lock(mutex_);
      all_.push_back(
          fmt::format("{} {} {} {}", policy, failure.failure.code, to_string(failure.id), failure.failure.message));
    };
  }
  std::vector<std::string> take() {
    std::sort(all_.begin(), all_.end());
    return std::move(all_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

std::string text_of(const std::optional<RunFailure>& failure) {
  return failure ? failure->failure.code + " " + to_string(failure->id) + " " + failure->failure.message : "";
}

/// "CODE ID message" with the identity down to its position: a sample that fails ends the run with the identity that it
/// had where it failed, which in the plan may lie above a merge that would have appended its arm.
std::string without_arms(const std::string& failure) {
  const size_t id = failure.find(' ') + 1, message = failure.find(' ', id);
  if (failure.empty() || message == std::string::npos) return failure;
  size_t end = id;
  for (int word = 0; word < 4 && end < message; ++word) end = std::min(failure.find('/', end + 1), message);
  return failure.substr(0, end) + failure.substr(message);
}

}  // namespace

std::string difference(const Outcome& expected, const Outcome& found) {
  for (size_t i = 0; i < std::min(expected.records.size(), found.records.size()); ++i) {
    const Delivered &e = expected.records[i], &f = found.records[i];
    if (e == f) continue;
    return fmt::format("record {}: epoch {} number {} of [{}] {}, not epoch {} number {} of [{}] {}", i, f.epoch,
                       f.ordinal, f.ids, hex(f.digest), e.epoch, e.ordinal, e.ids, hex(e.digest));
  }
  if (expected.records.size() != found.records.size())
    return fmt::format("{} records ({}), not {} ({})", found.records.size(), found.failure, expected.records.size(),
                       expected.failure);
  if (without_arms(expected.failure) != without_arms(found.failure))
    return fmt::format("ends with `{}`, not `{}`", found.failure, expected.failure);
  // A run that a failure ends may have dealt with samples that lie behind it.
  if (!expected.complete || !found.complete || !expected.failure.empty()) return {};
  // Nor may it read no further than it must: `take` below ends it. But nothing may be lost.
  std::vector<std::string> lost;
  std::ranges::set_difference(expected.rejected, found.rejected, std::back_inserter(lost));
  if (!lost.empty()) return fmt::format("on_error did not deal with `{}`", lost[0]);
  return {};
}

Subject::Subject(const std::string& text, const std::map<std::string, std::string>& params, std::string folder,
                 uint64_t epochs, std::optional<uint64_t> take)
    : folder_(std::move(folder)), epochs_(epochs), take_(take) {
  auto program = compile(sources_, sources_.add("random.zpl", text), params, all_ops(), diags_);
  if (program) program_ = std::move(*program);
}

std::string Subject::errors() const { return render(diags_, sources_); }

RunOptions Subject::options() const {
  RunOptions out;
  out.epochs = epochs_;
  out.threads = 2;
  out.take = take_;
  return out;
}

Outcome Subject::interpreted(const Graph& graph) const {
  Outcome out;
  Failure failure;
  const bool as_written = &graph == &program_->graph;
  if (as_written && !opened_) opened_ = open_sources(graph, {folder_}, failure);
  auto run = ReferenceRun::open(graph, {program_->seed, epochs_, folder_, false, nullptr}, failure,
                                as_written ? opened_ : nullptr);
  if (!run) {
    out.failure = text_of(RunFailure{failure, {}});
    return out;
  }
  run->on_rejected([&](const Rejected& r) {
    out.rejected.push_back(fmt::format("{} {} {} {}", r.policy, r.failure.failure.code, to_string(r.failure.id),
                                       r.failure.failure.message));
  });
  Collector collector;
  const StreamType& type = graph.node(graph.output()).type;
  uint64_t epoch = 0, ordinal = 0;
  while (!take_ || collector.records.size() < *take_) {
    std::optional<ReferenceRecord> record = run->next();
    if (!record) break;
    ordinal = record->epoch == epoch ? ordinal : 0;
    epoch = record->epoch;
    ReferenceRecordView view(*record, type, ordinal++);
    collector.deliver(view);
  }
  out.records = std::move(collector.records);
  out.failure = text_of(run->failure());
  out.complete = !take_;
  std::sort(out.rejected.begin(), out.rejected.end());
  return out;
}

Outcome Subject::reference() const { return interpreted(program_->graph); }

OptimizeResult Subject::optimized(const OptimizeOptions& changes, int threads) const {
  OptimizeOptions optimizing = changes;
  optimizing.verify = true;
  optimizing.plan.seed = program_->seed;
  optimizing.plan.base_dir = folder_;
  optimizing.plan.threads = threads;
  return optimize(program_->graph, optimizing, all_ops());
}

Outcome Subject::rewritten(const OptimizeOptions& changes) const {
  const OptimizeResult result = optimized(changes, 1);
  if (!result.trace.problems.empty()) return {{}, "our bug: " + result.trace.problems[0], {}, true, {}};
  return interpreted(result.graph);
}

Outcome Subject::planned(const OptimizeOptions& changes, const RunOptions& how, KernelCompiler* compiler) const {
  const OptimizeResult result = optimized(changes, how.threads);
  if (!result.trace.problems.empty()) return {{}, "our bug: " + result.trace.problems[0], {}, true, {}};
  Collector collector;
  Rejections rejections;
  RunOptions running = how;
  rejections.attach(running);
  std::function<KernelCompiler*()> kernels;
  if (compiler) kernels = [compiler] { return compiler; };
  Runner runner(result.plan, running, kernels, collector);
  RunResult done = runner.run();
  Outcome out{std::move(collector.records), text_of(done.failure), rejections.take(), true, std::move(done.state)};
  out.complete = how.resume == nullptr && !how.take && how.world_size == 1;
  return out;
}

}  // namespace zephon
