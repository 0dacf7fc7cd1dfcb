#include "tests/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

std::string text_of(const RunFailure& failure, const std::string& policy) {
  return fmt::format("{} {} {} {} {}", policy, failure.epoch, failure.failure.code, to_string(failure.id),
                     failure.failure.message);
}

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
  for (size_t i = 0; i < std::max(expected.rejected.size(), found.rejected.size()); ++i) {
    auto at = [&](const Outcome& of) { return i < of.rejected.size() ? "`" + of.rejected[i] + "`" : "nothing"; };
    if (at(expected) != at(found))
      return fmt::format("on_error dealt with {} as number {}, not with {}", at(found), i, at(expected));
  }
  return {};
}

Outcome in_parts(uint64_t every, RunOptions how, const Run& run) {
  Outcome all;
  std::optional<State> state;
  how.take = every;
  how.save_state = true;
  for (bool more = true; more;) {
    how.resume = state ? &*state : nullptr;
    Outcome part = run(how);
    more = part.records.size() == every;
    std::ranges::move(part.records, std::back_inserter(all.records));
    std::ranges::move(part.rejected, std::back_inserter(all.rejected));
    all.failure = part.failure;
    state = part.state;
  }
  return all;
}

Outcome composed(uint64_t world, RunOptions how, const Run& run) {
  Outcome all;
  how.world_size = world;
  for (how.rank = 0; how.rank < world; ++how.rank) {
    Outcome part = run(how);
    std::ranges::move(part.records, std::back_inserter(all.records));
    std::ranges::move(part.rejected, std::back_inserter(all.rejected));
  }
  std::ranges::sort(all.records, {}, [](const Delivered& d) { return std::pair(d.epoch, d.ordinal); });
  std::ranges::sort(all.rejected);
  return all;
}

Outcome whole_rounds(uint64_t world, const Outcome& expected) {
  std::map<uint64_t, uint64_t> counts;
  for (const Delivered& record : expected.records) ++counts[record.epoch];
  Outcome out;
  for (const Delivered& record : expected.records)
    if (record.ordinal < counts[record.epoch] / world * world) out.records.push_back(record);
  out.rejected = expected.rejected;
  std::ranges::sort(out.rejected);
  return out;
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
  auto run = ReferenceRun::open(graph, {program_->seed, epochs_, folder_}, failure,
                                as_written ? opened_ : nullptr);
  if (!run) {
    out.failure = text_of(RunFailure{failure, {}});
    return out;
  }
  run->on_rejected([&](const Rejected& r) { out.rejected.push_back(text_of(r.failure, r.policy)); });
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
  if (!result.trace.problems.empty()) return {{}, "our bug: " + result.trace.problems[0], {}, {}};
  return interpreted(result.graph);
}

Outcome Subject::planned(const OptimizeOptions& changes, const RunOptions& how, KernelCompiler* compiler) const {
  const OptimizeResult result = optimized(changes, how.threads);
  if (!result.trace.problems.empty()) return {{}, "our bug: " + result.trace.problems[0], {}, {}};
  Collector collector;
  std::vector<std::string> rejected;
  RunOptions running = how;
  running.on_error = [&](const RunFailure& failure, const Node&, const std::string& policy) {
    rejected.push_back(text_of(failure, policy));
  };
  std::function<KernelCompiler*()> kernels;
  if (compiler) kernels = [compiler] { return compiler; };
  Runner runner(result.plan, running, kernels, collector);
  RunResult done = runner.run();
  return {std::move(collector.records), text_of(done.failure), std::move(rejected), std::move(done.state)};
}

}  // namespace zephon
