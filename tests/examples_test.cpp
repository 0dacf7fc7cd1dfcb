// The example of every operator runs as it stands.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

class Example : public testing::TestWithParam<const OpDef*> {};

TEST_P(Example, Runs) {
  const OpDef& op = *GetParam();
  SourceMap sources;
  Diagnostics diags;
  std::string text = "zpl 1\n" + std::string(op.example) + "\n";
  Result<Program> program = compile(sources, sources.add("example.zpl", text), {}, all_ops(), diags);
  ASSERT_TRUE(program) << render(diags, sources) << text;
  Failure failure;
  ReferenceOptions options{.base_dir = ZEPHON_SOURCE_DIR};
  auto run = ReferenceRun::open(program->graph, options, failure);
  ASSERT_NE(run, nullptr) << failure.message;
  int records = 0;
  while (records < 3 && run->next()) ++records;
  EXPECT_FALSE(run->failure()) << run->failure()->failure.message << '\n' << text;
  EXPECT_GT(records, 0) << text;
}

INSTANTIATE_TEST_SUITE_P(Ops, Example, testing::ValuesIn(all_ops().all().begin(), all_ops().all().end()),
                         [](const auto& example) { return std::string(example.param->name); });

}  // namespace
}  // namespace zephon
