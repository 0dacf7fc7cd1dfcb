// What is told of the optimizer's work is what it did: each step begins where the one before ended, and the last one
// ends in the graph that is planned, also where the search has chosen another order than the one downhill.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "tests/random_programs.h"

namespace zephon {
namespace {

void expect_coherent(const Graph& graph) {
  OptimizeOptions options;
  options.texts = true;
  const OptimizeResult result = optimize(graph, options, all_ops());
  std::string now = to_text(graph), before;
  for (const Application& a : result.trace.applied) {
    if (is_physical(*a.rule)) continue;
    ASSERT_FALSE(a.after.empty()) << a.rule->name << " does not say what it made of\n" << now;
    if (a.before == before && a.after == now) continue;  // in one go with the one before
    ASSERT_EQ(a.before, now) << a.rule->name << " begins elsewhere";
    before = now;
    now = a.after;
  }
  EXPECT_EQ(now, to_text(result.graph));
}

void expect_coherent(const std::string& text) {
  SCOPED_TRACE(text);
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("story.zpl", text);
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  if (program) expect_coherent(program->graph);
}

TEST(Story, EndsInTheOrderThatTheSearchChose) {
  const std::string shared =
      "range(100) | x = sin(sin(f64(index + 1))) | z = sin(sin(f64(index)))"
      " | filter z > 0.6 | filter x > 0.2 | filter x < 0.9 | y = x";
  expect_coherent(shared);
  expect_coherent("stream a = " + shared + "\nstream b = range(50) | x = 1.5 | z = 0.5 | y = 1.0 | filter index > 3\n" +
                  "concatenate(a, b) | batch(4) | w = y * 2");
  expect_coherent(
      "files(\"examples/data/photos/*/*.jpg\") | image = bytes.decode_image() | filter image.mean() > 10"
      " | filter image.max() > 20 | filter path.name == \"a.jpg\" | filter image.height() > 3 | take(3)");
}

TEST(Story, OfRandomProgramsHasNoGaps) {
  for (uint64_t seed = 1; seed <= 200 && !testing::Test::HasFatalFailure(); ++seed)
    expect_coherent(random_program(seed, testing::TempDir()).text);
}

TEST(Story, ALongRowIsPassedAtOnce) {
  // One step of the story for one step of the program, however many it passes.
  std::string text = "range(100)";
  for (int i = 0; i < 50; ++i) text += " | x" + std::to_string(i) + " = index + " + std::to_string(i);
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("story.zpl", text + " | filter x49 % 3 == 0");
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  ASSERT_TRUE(program);
  const OptimizeResult result = optimize(program->graph, {}, all_ops());
  EXPECT_EQ(std::ranges::count_if(result.trace.applied,
                                  [](const Application& a) { return a.rule->name == "push_filter_below_assign"; }),
            1);
}

}  // namespace
}  // namespace zephon
