// Where rules on streams meet what makes them hard: samples that fail in two filters, regions that end, policies,
// caches, draws, shards, resumption. Each program as written by the reference interpreter, and by the plan in many
// ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "optimizer/rules/all_rules.h"
#include "runtime/kernels/kernel_compiler.h"
#include "tests/subject.h"

namespace zephon {
namespace {

struct Case {
  const char* name;
  std::vector<std::string_view> fires;
  std::vector<std::string_view> keeps;
  const char* program;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class StreamRules : public testing::TestWithParam<Case> {};

TEST_P(StreamRules, AreExact) {
  const Case& c = GetParam();
  static const std::unique_ptr<KernelCompiler> compiler = make_kernel_compiler();
  const Subject subject(c.program, {}, ZEPHON_SOURCE_DIR, 2);
  ASSERT_TRUE(subject.good()) << subject.errors();
  const RunOptions plain = subject.options();
  const OptimizeResult result = subject.optimized({}, 2);
  for (std::string_view rule : c.fires) EXPECT_TRUE(result.trace.fired(rule)) << rule << "\n" << to_text(result.graph);
  for (std::string_view rule : c.keeps) EXPECT_FALSE(result.trace.fired(rule)) << rule << "\n" << to_text(result.graph);

  const Outcome expected = subject.reference();
  EXPECT_FALSE(expected.records.empty() && expected.failure.empty()) << "delivers nothing";
  auto same = [&](const std::string& way, const Outcome& found) {
    EXPECT_EQ(difference(expected, found), "") << way << "\n" << to_text(result.graph);
  };
  same("rewritten", subject.rewritten({}));
  for (const int threads : {1, 2})
    for (const int64_t chunk : {0, 1, 3}) {
      OptimizeOptions changes;
      changes.plan.chunk = chunk;
      RunOptions how = plain;
      how.threads = threads;
      same(fmt::format("{} threads, chunk {}", threads, chunk), subject.planned(changes, how, compiler.get()));
    }
  // Without each of the rules that fire: others see another graph.
  std::set<std::string, std::less<>> fired;
  for (const Application& a : result.trace.applied) fired.emplace(a.rule->name);
  for (const std::string& rule : fired) {
    OptimizeOptions changes;
    changes.disabled = {rule};
    same("without " + rule, subject.planned(changes, plain, compiler.get()));
  }
  // From hand to hand: each part by another plan.
  RunOptions in_three = plain;
  in_three.mark_seconds = 0;
  int part = 0;
  same("resumed", in_parts(3, in_three, [&](const RunOptions& how) {
         OptimizeOptions changes;
         changes.plan.chunk = part % 3;
         changes.no_optimize = part++ % 4 == 3;
         return subject.planned(changes, how, compiler.get());
       }));
  if (!expected.failure.empty()) return;
  const Outcome together =
      composed(2, plain, [&](const RunOptions& how) { return subject.planned({}, how, compiler.get()); });
  EXPECT_EQ(difference(whole_rounds(2, expected), together), "") << "2 ranks";
}

const Case kCases[] = {
    // Of several failures of a sample the first as written is reported, wherever the filters stand by then.
    {"BothFiltersFail",
     {"order_filters"},
     {},
     R"(range(6) | filter index * index * index % (index - 3) != 100 | filter 12 // (index - 3) == -12)"},
    {"BothFiltersFailQuarantined",
     {"order_filters"},
     {},
     R"(range(9) | filter index * index * index % ((index - 3) * (index - 5)) != 100 | filter 12 // (index - 3) != 100
| on_error(quarantine, file="/dev/null"))"},
    {"BothPartsFail",
     {"split_conjunctions", "order_filters"},
     {},
     R"(range(9) | filter ([1, 2] // (index - 3)).sum() != 100 and 12 // (index - 3) == -12 or index > 4
| filter ([1, 2] // (index - 3)).sum() != 100 and 12 // (index - 3) == -12)"},
    {"PartsFailAndAreFalse",
     {"split_conjunctions"},
     {},
     R"(range(12) | x = 12 // (index - 3) | filter (([1, 2, 3] + x).sum() > 5 and index != 3) and ([7, 8] // (index - 5)).sum() != 1
| on_error(skip) | y = x + 1)"},
    {"PartsOfAPart",
     {"split_conjunctions", "push_filter_below_assign"},
     {},
     R"(range(12) | p = ([1, 2] // (index - 4)).sum() != 0 and ([3, 4] // (index - 4)).sum() != 9
| filter p and ([5, 6] // (index - 4)).sum() > -20 | on_error(skip))"},
    {"EqualFilters",
     {"drop_equal_filters"},
     {},
     R"(range(12) | filter 12 // (index - 3) != 1 | filter index * index * index % (index - 3) == 0 or index > 2
| filter 12 // (index - 3) != 1 | on_error(skip))"},
    {"CountingTwice",
     {"merge_neighbours"},
     {},
     R"(range(40) | filter 12 // (index - 3) != 1 | skip(2) | skip(3) | shard(num_shards=2, index=1) | shard(num_shards=3, index=1)
| take(9) | take(4) | x = 7 // (index - 20) | on_error(mask))"},
    // A failed sample passes `take` and `skip`: none of it may be lost.
    {"FailedSamplesPassWhatCounts",
     {},
     {"merge_neighbours"},
     R"(range(9) | filter 12 // (index - 1) != 1 | take(3) | skip(3) | on_error(mask))"},
    {"NothingIsLeft", {"merge_neighbours"}, {}, R"(stream a = range(9) | take(3) | skip(3)
stream b = range(4)
concatenate(a, b))"},
    {"FieldsChosenTwice",
     {"merge_neighbours"},
     {},
     R"(range(9) | x = 12 // (index - 3) | y = index | z = y | drop index | drop z | select y, x | on_error(skip))"},
    {"HintsInTheWay",
     {"push_step_below_hint"},
     {},
     R"(range(30) | x = 60 // (index - 7) | prefetch(2) | filter x != 3 | shuffle() | prefetch(3) | take(20) | y = x + index
| prefetch() | on_error(skip) | shuffle(buffer_size=4) | batch(3) | prefetch(2) | z = y * 2)"},
    {"FilterIntoConcatenation",
     {"push_filter_below_merge", "push_filter_below_assign"},
     {},
     R"(stream a = range(8) | x = 12 // (index - 3) | filter 10 // (index - 5) != 10
stream b = range(20, 26) | x = 24 // (index - 21)
concatenate(a, b) | filter x != -4 | on_error(skip) | r = randint(0, 99))"},
    {"FilterIntoConcatenationThroughShuffle",
     {"push_filter_below_merge", "push_filter_below_shuffle"},
     {},
     R"(stream a = range(8) | x = 12 // (index - 3)
stream b = range(20, 26) | x = 24 // (index - 21)
concatenate(a, b) | shuffle(seed=3) | filter index % 4 != 1 | take(7) | on_error(mask) | r = randint(0, 99))"},
    {"FilterStaysBelowAnEarlierOne",
     {"order_filters"},
     {"push_filter_below_merge"},
     R"(stream a = range(8)
stream b = range(2, 6)
concatenate(a, b) | filter 9 // (index - randint(3, 4)) > -99 | filter index < 12 // (index - 3) or index > 3)"},
    {"FilterIntoNestedConcatenations",
     {"push_filter_below_merge"},
     {},
     R"(stream a = range(8) | x = 12 // (index - 3)
stream b = concatenate(a, a) | filter index != 6
stream c = range(3) | x = index
concatenate(b, c) | filter x != -4 | on_error(skip) | shard(num_shards=2, index=1))"},
    {"FilterIntoEachPass",
     {"push_filter_below_repeat"},
     {},
     R"(range(12) | filter 12 // (index - 3) != 1 | take(9) | r = randint(0, 9) | repeat(3) | filter r > 12 // (index - 4)
| on_error(skip) | shard(num_shards=2, index=1))"},
    {"FilterIntoEachPassOfADomain",
     {"push_filter_below_repeat", "push_filter_below_shuffle"},
     {},
     R"(range(12) | shuffle() | x = randint(0, 9) | repeat(3) | filter x > 2 and 12 // (index - 3) != 1 or index > 2)"},
    {"CacheKeepsMore",
     {"push_step_below_cache", "push_assign_below_draw"},
     {},
     R"(range(14) | x = ([1, 2, 3] + index).sum() | cache() | r = randint(0, 9) | y = (60 // (x - [9, 8])).sum() | filter 12 // (index - 4) != 3
| z = y + r | repeat(2) | on_error(skip))"},
    {"CacheKeepsTheOrder",
     {"order_filters"},
     {"push_step_below_cache"},
     R"(range(14) | x = ([1, 2, 3] + index).sum() | cache() | filter 9 // (index - randint(3, 4)) > -99
| filter index // (index - 3) == 1 or index < 4 | shuffle(buffer_size=3) | y = 12 // (x - 12) | on_error(skip))"},
    {"CacheAmongShufflesAndShards",
     {"push_step_below_cache"},
     {},
     R"(range(30) | x = 60 // (index - 7) | cache() | shuffle(seed=1) | shard(num_shards=2, index=0) | take(12) | filter x != 3
| repeat(2) | on_error(mask))"},
    {"BatchTakenApart",
     {"push_assign_below_unbatch", "push_assign_below_batch"},
     {},
     R"(range(14) | x = 60 // (index - 7) | batch(4) | unbatch() | y = 12 // (x - 12) | z = y + index | r = randint(0, 9)
| on_error(skip) | batch(3, drop_remainder=true))"},
};

std::string name_of(const testing::TestParamInfo<Case>& c) { return c.param.name; }

INSTANTIATE_TEST_SUITE_P(All, StreamRules, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace zephon
