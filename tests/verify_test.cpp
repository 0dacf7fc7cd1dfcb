// `verify` against a plan that is wrong: it names the first sample, field and element that differ, both values, and the
// rule that is the cause. The optimizer runs with one more rule, which breaks the law.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "zephonc/verification.h"

namespace zephon {
namespace {

bool is_square(Rewriter& rewriter, ExprId expr, Match&) {
  const Expr& e = rewriter.graph().expr(expr);
  return e.op->name == "mul" && e.args[0] == e.args[1];
}
// x * x -> x + x: equal for 0 and 2 only.
ExprId doubled(Rewriter& rewriter, const Match& match) {
  Expr sum = rewriter.graph().expr(match.expr);
  sum.op = rewriter.ops().find("add");
  return rewriter.graph().add(std::move(sum));
}
constexpr Rule kSquareByDoubling = {.name = "square_by_doubling",
                                    .summary = "Wrong on purpose.",
                                    .law = "x * x = x + x",
                                    .ends = "one product fewer",
                                    .match_expr = is_square,
                                    .apply_expr = doubled};

struct Verified {
  Comparison found;
  Suspects suspects;
};

Verified verify(const std::string& text, const std::vector<RuleEntry>& more) {
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags);
  EXPECT_TRUE(program.ok()) << render(diags, sources);
  std::vector<RuleEntry> rules(all_rules().begin(), all_rules().end());
  rules.insert(rules.end(), more.begin(), more.end());
  OptimizeOptions how;
  how.rules = rules;
  how.plan.seed = program->seed;
  const OptimizeResult optimized = optimize(program->graph, how, all_ops());
  Failure failure;
  auto opened = open_sources(program->graph, {"."}, failure);
  EXPECT_NE(opened, nullptr) << failure.message;
  VerifyOptions options;
  options.seed = program->seed;
  options.base_dir = ".";
  Verified out{compare(program->graph, optimized.plan, options, opened), {}};
  if (!out.found.problem.empty())
    out.suspects = suspects(program->graph, how, optimized.trace, out.found, options, opened);
  return out;
}

const std::vector<RuleEntry> kBroken = {{Phase::Expressions, &kSquareByDoubling, {}, "the test's"}};

TEST(Verify, NamesWhatDiffersFirst) {
  const std::string program =
      "range(8) | y = [index, 7] | x = [index, 5 - index, 2] | z = x * x | select y, z | batch(3)";
  EXPECT_EQ(verify(program, {}).found.problem, "");
  EXPECT_EQ(verify(program, {}).found.records, 3u);
  const Verified broken = verify(program, kBroken);
  EXPECT_EQ(broken.found.at_record, 0u);
  EXPECT_EQ(broken.found.problem, "sample 0/0/0/0 (index 0): field `z`: element [0, 1] is 10, as written it is 25");
  EXPECT_EQ(broken.suspects.rules, std::vector<std::string>{"square_by_doubling"});
}

TEST(Verify, NamesTheSampleInItsRecord) {
  // Samples 0 and 2 are right by chance; 1 is dropped.
  const Verified broken = verify("range(9) | filter index != 1 | x = index * index | shuffle() | batch(4)", kBroken);
  EXPECT_NE(broken.found.problem.find("field `x`: element ["), std::string::npos) << broken.found.problem;
  const Verified late = verify("range(9) | filter index != 1 | x = index * index | batch(2)", kBroken);
  EXPECT_EQ(late.found.at_record, 1u);
  EXPECT_EQ(late.found.problem, "sample 0/0/0/3 (index 3): field `x`: element [0] is 6, as written it is 9");
  EXPECT_EQ(late.found.records, 1u);
}

TEST(Verify, MakesTheProgramSmall) {
  const std::string program = R"(zpl 1
fn twice(x) = x * 2
stream a = range(50) | v = twice(index) + 3 | filter v % 7 != 0 | select v
pipeline p(n: int = 3, mode: enum(train, val) = train) {
  concatenate(a, a)
  | if mode == train { w = v * v - 1 } else { w = v }
  | x = [w, v, n][0]
  | shuffle(seed=4)
  | select w, x
  | batch(4)
}
)";
  std::vector<RuleEntry> rules(all_rules().begin(), all_rules().end());
  rules.insert(rules.end(), kBroken.begin(), kBroken.end());
  OptimizeOptions how;
  how.rules = rules;
  VerifyOptions options;
  options.base_dir = ".";
  EXPECT_EQ(smallest_that_differs({"t.zpl", program, {{"n", "5"}, {"seed", "2"}}, "p"}, how, options),
            "zpl 1\n\nrange(2) | v = index | w = v * v\n");
}

// A filter that reads what is wrong: other samples come through.
TEST(Verify, NamesAnotherSample) {
  const Verified broken = verify("range(9) | x = index * index | filter x % 3 == 1 | select index", kBroken);
  EXPECT_EQ(broken.found.at_record, 0u);
  EXPECT_EQ(broken.found.problem, "member 0 is sample 0/0/0/2, as written it is 0/0/0/1");
  EXPECT_EQ(broken.suspects.rules, std::vector<std::string>{"square_by_doubling"});
}

}  // namespace
}  // namespace zephon
