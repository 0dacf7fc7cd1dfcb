// 500 random programs: the reference interpreter, and the optimised plan in the flow runtime in many ways: without
// rules, without random subsets of rules, threads, chunk sizes, interrupted and resumed, ranks composed. Everything
// delivered is compared: identities, fields, the failure at the end. ZEPHON_PROGRAM=N runs one of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "optimizer/rules/all_rules.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "runtime/reference/reference.h"
#include "tests/random_programs.h"
#include "zephonc/reference_run.h"
#include "zephonc/sinks/digest.h"

namespace zephon {
namespace {

constexpr uint64_t kPrograms = 500;
constexpr uint64_t kParts = 10;  // as many test cases, so that they run side by side

struct Delivered {
  uint64_t epoch = 0, ordinal = 0;
  std::string ids;
  RecordDigest digest;
  bool operator==(const Delivered&) const = default;
};

struct Outcome {
  std::vector<Delivered> records;
  std::string failure;
  State state;
};

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

std::string text_of(const std::optional<RunFailure>& failure) {
  return failure ? failure->failure.code + " " + to_string(failure->id) + " " + failure->failure.message : "";
}

class Subject {
 public:
  Subject(const RandomProgram& random, std::string folder, KernelCompiler& compiler)
      : folder_(std::move(folder)), compiler_(compiler), epochs_(random.description.epochs) {
    const FileId file = sources_.add("random.zpl", random.text);
    auto program = compile(sources_, file, {{"seed", std::to_string(random.description.seed)}}, all_ops(), diags_);
    if (program) program_ = std::move(*program);
  }
  bool good() const { return program_.has_value(); }
  std::string errors() const { return render(diags_, sources_); }

  RunOptions options() const {
    RunOptions out;
    out.epochs = epochs_;
    out.threads = 2;
    return out;
  }

  Outcome reference() const {
    Collector collector;
    Failure failure;
    RunOptions how = options();
    auto opened = open_sources(program_->graph, {folder_}, failure);
    RunResult result = run_reference(program_->graph, program_->seed, folder_, how, collector, opened);
    return {std::move(collector.records), text_of(result.failure), result.state};
  }

  Outcome planned(const OptimizeOptions& changes, const RunOptions& how) const {
    OptimizeOptions optimizing = changes;
    optimizing.verify = true;
    optimizing.plan.seed = program_->seed;
    optimizing.plan.base_dir = folder_;
    optimizing.plan.threads = how.threads;
    OptimizeResult optimized = optimize(program_->graph, optimizing, all_ops());
    if (!optimized.trace.problems.empty()) return {{}, "our bug: " + optimized.trace.problems[0], {}};
    Collector collector;
    Runner runner(
        optimized.plan, how, [this] { return &compiler_; }, collector);
    RunResult result = runner.run();
    return {std::move(collector.records), text_of(result.failure), result.state};
  }

 private:
  std::string folder_;
  KernelCompiler& compiler_;
  uint64_t epochs_;
  SourceMap sources_;
  Diagnostics diags_;
  std::optional<Program> program_;
};

/// "CODE ID message" with the identity down to its position: a sample that fails ends the run with the identity that it
/// had where it failed, which in the plan may lie above a merge that would have appended its arm.
std::string without_arms(const std::string& failure) {
  const size_t id = failure.find(' ') + 1, message = failure.find(' ', id);
  if (failure.empty() || message == std::string::npos) return failure;
  size_t end = id;
  for (int word = 0; word < 4 && end < message; ++word) end = std::min(failure.find('/', end + 1), message);
  return failure.substr(0, end) + failure.substr(message);
}

std::string difference(const Outcome& expected, const Outcome& found) {
  for (size_t i = 0; i < std::min(expected.records.size(), found.records.size()); ++i) {
    const Delivered &e = expected.records[i], &f = found.records[i];
    if (e == f) continue;
    return fmt::format("record {}: epoch {} number {} of [{}] {}, not epoch {} number {} of [{}] {}", i, f.epoch,
                       f.ordinal, f.ids, hex(f.digest), e.epoch, e.ordinal, e.ids, hex(e.digest));
  }
  if (expected.records.size() != found.records.size()) {
    return fmt::format("{} records ({}), not {} ({})", found.records.size(), found.failure, expected.records.size(),
                       expected.failure);
  }
  if (without_arms(expected.failure) != without_arms(found.failure))
    return fmt::format("ends with `{}`, not `{}`", found.failure, expected.failure);
  return {};
}

/// Every one of the ways is taken by every program that the generator's seed leads there; all by some.
void check(const Subject& subject, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Outcome expected = subject.reference();
  auto same = [&](const char* way, const Outcome& found) { EXPECT_EQ(difference(expected, found), "") << way; };
  RunOptions plain = subject.options();
  OptimizeOptions all_rules_on;
  same("as planned", subject.planned(all_rules_on, plain));
  OptimizeOptions none;
  none.no_optimize = true;
  same("without rules", subject.planned(none, plain));

  OptimizeOptions some;
  std::string names;
  for (const RuleEntry& entry : all_rules()) {
    if (random() % 3 != 0) continue;
    some.disabled.emplace(entry.rule->name);
    names += std::string(entry.rule->name) + " ";
  }
  constexpr int64_t kChunks[] = {1, 7, 64};
  constexpr int kThreads[] = {1, 2, 8};
  some.plan.chunk = kChunks[random() % 3];
  RunOptions how = plain;
  how.threads = kThreads[random() % 3];
  same(fmt::format("threads {}, chunk {}, disabled {}", how.threads, some.plan.chunk, names).c_str(),
       subject.planned(some, how));

  const uint64_t every = 1 + random() % 10;
  Outcome resumed;
  std::optional<State> state;
  while (true) {
    RunOptions part = how;
    part.take = every;
    part.resume = state ? &*state : nullptr;
    part.save_state = true;
    Outcome found = subject.planned(random() % 2 ? all_rules_on : some, part);
    resumed.records.insert(resumed.records.end(), found.records.begin(), found.records.end());
    resumed.failure = found.failure;
    state = found.state;
    if (found.records.size() < every) break;
  }
  same(fmt::format("resumed after every {} records", every).c_str(), resumed);

  if (!expected.failure.empty()) return;  // which rank sees a failure first is no part of the meaning
  const uint64_t world = 2 + random() % 2;
  std::map<std::pair<uint64_t, uint64_t>, Delivered> composed;
  for (uint64_t rank = 0; rank < world; ++rank) {
    RunOptions part = plain;
    part.rank = rank;
    part.world_size = world;
    for (Delivered& record : subject.planned(all_rules_on, part).records) {
      EXPECT_EQ(record.ordinal % world, rank);
      composed.emplace(std::pair{record.epoch, record.ordinal}, std::move(record));
    }
  }
  std::map<uint64_t, uint64_t> counts;
  for (const Delivered& record : expected.records) ++counts[record.epoch];
  Outcome whole_rounds, found;
  for (const Delivered& record : expected.records) {
    if (record.ordinal < counts[record.epoch] / world * world) whole_rounds.records.push_back(record);
  }
  for (auto& [key, record] : composed) found.records.push_back(std::move(record));
  EXPECT_EQ(difference(whole_rounds, found), "") << world << " ranks";
}

class Equivalence : public testing::TestWithParam<uint64_t> {};

TEST_P(Equivalence, OfRandomPrograms) {
  std::string pattern = testing::TempDir() + "zephon_equivalence_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  auto compiler = make_kernel_compiler();
  for (uint64_t seed = GetParam(); seed < kPrograms && !HasFailure(); seed += kParts) {
    if (const char* only = std::getenv("ZEPHON_PROGRAM"); only && std::to_string(seed) != only) continue;
    RandomProgram random = random_program(seed, pattern);
    SCOPED_TRACE(fmt::format("program {}\n{}", seed, random.text));
    Subject subject(random, pattern, *compiler);
    ASSERT_TRUE(subject.good()) << subject.errors();
    check(subject, seed);
  }
  std::filesystem::remove_all(pattern);
}

INSTANTIATE_TEST_SUITE_P(Part, Equivalence, testing::Range<uint64_t>(0, kParts));

}  // namespace
}  // namespace zephon
