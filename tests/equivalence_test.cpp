// 500 random programs: the reference interpreter, and the optimised plan in the flow runtime in many ways: without
// rules, without random subsets of rules, threads, chunk sizes, interrupted and resumed, ranks composed. Everything
// delivered is compared: identities, fields, the failure at the end. ZEPHON_PROGRAM=N runs one of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "runtime/kernels/kernel_compiler.h"
#include "tests/random_programs.h"
#include "tests/subject.h"

namespace zephon {
namespace {

constexpr uint64_t kPrograms = 500;
constexpr uint64_t kParts = 10;  // as many test cases, so that they run side by side

/// Every one of the ways is taken by every program that the generator's seed leads there; all by some.
void check(const Subject& subject, uint64_t seed, KernelCompiler& compiler) {
  std::mt19937_64 random(seed);
  const Outcome expected = subject.reference();
  auto same = [&](const char* way, const Outcome& found) { EXPECT_EQ(difference(expected, found), "") << way; };
  RunOptions plain = subject.options();
  OptimizeOptions all_rules_on;
  same("as planned", subject.planned(all_rules_on, plain, &compiler));
  OptimizeOptions none;
  none.no_optimize = true;
  same("without rules", subject.planned(none, plain, &compiler));

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
       subject.planned(some, how, &compiler));

  const uint64_t every = 1 + random() % 10;
  same(fmt::format("resumed after every {} records", every).c_str(), in_parts(every, how, [&](const RunOptions& part) {
         return subject.planned(random() % 2 ? all_rules_on : some, part, &compiler);
       }));

  if (!expected.failure.empty()) return;  // which rank sees a failure first is no part of the meaning
  const uint64_t world = 2 + random() % 2;
  const Outcome together =
      composed(world, plain, [&](const RunOptions& part) { return subject.planned(all_rules_on, part, &compiler); });
  EXPECT_EQ(difference(whole_rounds(world, expected), together), "") << world << " ranks";
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
    Subject subject(random.text, {{"seed", std::to_string(random.description.seed)}}, pattern,
                    random.description.epochs);
    ASSERT_TRUE(subject.good()) << subject.errors();
    check(subject, seed, *compiler);
  }
  std::filesystem::remove_all(pattern);
}

INSTANTIATE_TEST_SUITE_P(Part, Equivalence, testing::Range<uint64_t>(0, kParts));

}  // namespace
}  // namespace zephon
