// The examples inside the rules: `fires` fires, `keeps` is held back by the guard that it names, and the reference
// interpreter delivers the same before and after. RULES.md is made of all that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "optimizer/rules/all_rules.h"
#include "optimizer/rules/document.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

struct Case {
  const Rule* rule;
  RuleExample example;
  size_t number;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.rule->name << " " << c.number; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const RuleEntry& entry : all_rules()) {
    size_t number = 0;
    for (RuleExample& example : examples_of(*entry.rule)) cases.push_back({entry.rule, std::move(example), number++});
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}", info.param.rule->name, info.param.number,
                     info.param.example.fires ? "fires" : "keeps");
}

std::optional<Program> compile_text(const std::string& text, std::string& errors) {
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("example.zpl", text);
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  if (!program) {
    errors = render(diags, sources);
    return std::nullopt;
  }
  return *std::move(program);
}

/// `relaxation`: of the rule that is looked at; empty: none.
OptimizeResult optimize_program(const Program& program, std::string_view relaxation) {
  OptimizeOptions options;
  if (!relaxation.empty()) options.relaxed.emplace(relaxation);
  options.verify = true;
  options.texts = true;
  options.plan.seed = program.seed;
  options.plan.base_dir = ZEPHON_SOURCE_DIR;
  return optimize(program.graph, options, all_ops());
}

/// What the reference interpreter delivers of the first records, as text that shows every bit.
std::string delivered(const Graph& graph, uint64_t seed) {
  ReferenceOptions options;
  options.seed = seed;
  options.base_dir = ZEPHON_SOURCE_DIR;
  Failure failure;
  const std::unique_ptr<ReferenceRun> run = ReferenceRun::open(graph, options, failure);
  if (!run) return "cannot open: " + failure.message;
  std::string out;
  for (int i = 0; i < 40; ++i) {
    const std::optional<ReferenceRecord> record = run->next();
    if (!record) break;
    for (const SampleId& id : record->ids) out += to_string(id) + " ";
    for (const auto& [name, value] : record->fields) {
      out += fmt::format("{}[{}]=", name, fmt::join(value.shape(), ","));
      for (uint8_t byte : value.bytes()) out += fmt::format("{:02x}", byte);
      for (const std::string& s : value.string_items()) out += s;
      out += " ";
    }
    out += "\n";
  }
  if (run->failure())
    out += fmt::format("{} of {}: {}\n", run->failure()->failure.code, to_string(run->failure()->id),
                       run->failure()->failure.message);
  return out;
}

class RuleExamples : public testing::TestWithParam<Case> {};

TEST_P(RuleExamples, Holds) {
  const auto& [rule, example, number] = GetParam();
  std::string errors;
  const std::optional<Program> program = compile_text(example.program, errors);
  ASSERT_TRUE(program) << errors;
  const OptimizeResult result = optimize_program(*program, rule->relaxation);
  EXPECT_TRUE(result.trace.problems.empty()) << result.trace.problems.front();
  EXPECT_EQ(result.trace.fired(rule->name), example.fires) << to_text(result.graph) << to_text(result.plan);
  if (!example.fires) {
    std::string guards;
    for (const Refusal& r : result.trace.refused)
      if (r.rule == rule) guards += std::string(r.guard) + "\n";
    EXPECT_NE(guards.find(example.expected + "\n"), std::string::npos) << "refused by: " << guards;
  }
  for (const Application& a : result.trace.applied)
    EXPECT_LE(a.cost_after, a.cost_before * (1 + 1e-9) + 1e-9) << a.rule->name << ": " << a.what;
  const std::string before = delivered(program->graph, program->seed);
  const std::string after = delivered(result.graph, program->seed);
  if (rule->relaxation.empty() || !example.fires)
    EXPECT_EQ(before, after);
  else
    EXPECT_NE(before, after) << "a relaxation that changes nothing is a rule";
  EXPECT_FALSE(before.starts_with("cannot open")) << before;

  // The same without the rule, and with no rule: plans exist for all of it.
  OptimizeOptions options;
  options.disabled = {std::string(rule->name)};
  EXPECT_FALSE(optimize(program->graph, options, all_ops()).trace.fired(rule->name));
  options.no_optimize = true;
  EXPECT_TRUE(optimize(program->graph, options, all_ops()).trace.applied.empty());
}

INSTANTIATE_TEST_SUITE_P(All, RuleExamples, testing::ValuesIn(all_cases()), case_name);

TEST(RuleCoverage, EachFiresAndEachGuardRefuses) {
  for (const RuleEntry& entry : all_rules()) {
    const std::vector<RuleExample> examples = examples_of(*entry.rule);
    EXPECT_TRUE(std::any_of(examples.begin(), examples.end(), [](const RuleExample& e) { return e.fires; }))
        << entry.rule->name;
    for (const Guard& guard : entry.rule->guards)
      EXPECT_TRUE(std::any_of(examples.begin(), examples.end(),
                              [&](const RuleExample& e) { return !e.fires && e.expected == guard.name; }))
          << entry.rule->name << ": " << guard.name;
    const std::filesystem::path file =
        std::filesystem::path(ZEPHON_SOURCE_DIR) / "optimizer/rules" / fmt::format("{}.cpp", entry.rule->name);
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
}

std::string rules_page() {
  std::string page =
      "# Rules\n\nMade from the declarations in this folder; `ZEPHON_BLESS=1` and the tests write it.\n\n";
  for (const RuleEntry& entry : all_rules()) {
    page += document(*entry.rule);
    for (const RuleExample& example : examples_of(*entry.rule)) {
      std::string errors;
      const std::optional<Program> program = compile_text(example.program, errors);
      if (!program) return errors;
      page += fmt::format("\n{}{}\n\n```\n{}\n```\n", example.fires ? "Fires" : "Keeps: only if " + example.expected,
                          example.note.empty() ? "." : ". " + example.note + ".", example.program);
      if (!example.fires) continue;
      const OptimizeResult result = optimize_program(*program, entry.rule->relaxation);
      page += fmt::format("\n```\n{}```\n", is_physical(*entry.rule) ? to_text(result.plan) : to_text(result.graph));
    }
    page += "\n";
  }
  page.pop_back();
  return page;
}

TEST(RuleCoverage, PageIsMadeOfTheDeclarations) {
  const std::string file = std::string(ZEPHON_SOURCE_DIR) + "/optimizer/rules/RULES.md";
  const std::string page = rules_page();
  if (std::getenv("ZEPHON_BLESS")) {
    std::ofstream(file, std::ios::trunc) << page;
    return;
  }
  std::stringstream found;
  found << std::ifstream(file).rdbuf();
  EXPECT_EQ(found.str(), page) << "bless: cmake --build --preset dev --target bless";
}

}  // namespace
}  // namespace zephon
