// The cost model: what is measured takes the place of what is assumed; a fused kernel is not the sum of its parts; what
// is kept on disk comes back whole or not at all.
#include "optimizer/cost/cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/frontend.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "optimizer/plan/groups.h"
#include "zephonc/cost_store.h"
#include "zephonc/costs_file.h"
#include "zephonc/lineage.h"

namespace zephon {
namespace {

Graph graph_of(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("cost.zpl", text), {}, all_ops(), diags);
  EXPECT_TRUE(program) << render(diags, sources) << text;
  return program ? program->graph : Graph();
}

ExprId assigned(const Graph& graph, const std::string& field) {
  ExprId found;
  for (NodeId id : graph.topological())
    for (const Assign& assign : graph.node(id).assigns)
      if (assign.field == field) found = assign.expr;
  return found;
}

double whole_ns(Graph graph, ExprId root, const Machine& machine) {
  ExprSet ready;
  double ns = 0;
  for (const KernelGroup& group : make_groups(graph, {root}, {}, ready, true))
    ns += kernel_ns(graph, group, interior(graph, group), machine);
  return ns;
}

TEST(Cost, OfAFusedKernelIsNotTheSumOfItsParts) {
  const Machine machine;
  const Graph graph = graph_of(
      "range(9) | a = [[1, 2, 3, 4], [5, 6, 7, 8]].f32 | x = a * 2.0 | y = a * 2.0 + 1.0 | "
      "z = (a * 2.0 + 1.0) * (a * 2.0)");
  // Three operations in one kernel: one call and one result in memory, and `a * 2.0` once for two readers.
  const double one = whole_ns(graph, assigned(graph, "x"), machine),
               two = whole_ns(graph, assigned(graph, "y"), machine);
  const double three = whole_ns(graph, assigned(graph, "z"), machine);
  const double own = own_ns(graph, assigned(graph, "x"), machine);
  EXPECT_NEAR(two - one, own, 1e-9);
  EXPECT_NEAR(three - two, own, 1e-9);
}

TEST(Cost, OfWhatAViewCutsAwayInTheSameKernelIsNothing) {
  const Machine machine;
  const Graph graph = graph_of(
      "range(9) | a = [[index, 2, 3, 4], [5, 6, 7, 8], [5, 6, 7, 8], [5, 6, 7, 8]].f32 | whole = a * 2.0 | "
      "cut = (a * 2.0).crop(box(0, 0, 1, 2))");
  KernelGroup group;
  const ExprId cut = assigned(graph, "cut");
  group.roots = {cut};
  group.leaves = {graph.expr(graph.expr(cut).args[0]).args[0], graph.expr(cut).args[1]};
  const std::vector<ExprId> inside = interior(graph, group);
  const double fused = kernel_ns(graph, group, inside, machine);
  const double product = own_ns(graph, graph.expr(cut).args[0], machine);  // of all 16 elements
  const OpCost cost = graph.expr(graph.expr(cut).args[0]).op->cost;
  double parts = machine.ns_per_row_and_step + machine.ns_per_kernel_call + 8 / machine.bytes_per_ns;
  for (ExprId id : inside) parts += own_ns(graph, id, machine);
  EXPECT_NEAR(parts - fused, product - (cost.ns_per_call + 2 * cost.ns_per_element), 1e-9) << "2 of 16 are asked for";
}

TEST(Cost, OfAReductionIsThatOfWhatItReads) {
  const Machine machine;
  const Graph graph = graph_of("range(9) | x = [index, 2].sum() | y = [index, 2, 3, 4, 5, 6, 7, 8].sum()");
  EXPECT_GT(own_ns(graph, assigned(graph, "y"), machine), own_ns(graph, assigned(graph, "x"), machine));
}

TEST(Cost, MeasuredOperatorsByTheirWidestType) {
  const Graph graph = graph_of("range(9) | x = [index, 2].f32 * 2.0 | y = [index, 2] * 3");
  Machine machine;
  OperatorCosts costs;
  OperatorCost& mul = costs.operators[all_ops().find("mul")];
  mul.cost = {.ns_per_call = 1, .ns_per_element = 10, .ns_per_input_byte = 0};
  mul.ns_by_elem[static_cast<size_t>(Elem::F32)] = 3;
  machine.operators = std::make_shared<const OperatorCosts>(costs);
  EXPECT_DOUBLE_EQ(own_ns(graph, assigned(graph, "x"), machine), 1 + 2 * 3);
  EXPECT_DOUBLE_EQ(own_ns(graph, assigned(graph, "y"), machine), 1 + 2 * 10) << "not measured: as for all types";
  machine.factor = [](const OpDef& op) { return op.name == "mul" ? 4.0 : 1.0; };
  EXPECT_DOUBLE_EQ(own_ns(graph, assigned(graph, "x"), machine), 4 * (1 + 2 * 3));
}

TEST(Cost, WhatStandsForAnotherIsAsSlow) {
  const OpDef* whole = all_ops().find("decode_image");
  ASSERT_NE(whole->region_form, nullptr);
  const Graph graph =
      graph_of("files(\"*.jpg\") | x = bytes.decode_image() | y = bytes.decode_image_region(box(0, 0, 8, 8))");
  const Machine assumed;
  Machine machine;
  DataFacts facts;
  const double model = own_ns(graph, assigned(graph, "x"), assumed);
  facts.operators[whole] = {1'000'000, 3 * model + assumed.ns_per_kernel_call, 256 * 256 * 3, 96e3, 1};
  use_data(machine, facts, all_ops());
  EXPECT_NEAR(own_ns(graph, assigned(graph, "x"), machine), 3 * model, 1e-3 * model);
  EXPECT_NEAR(own_ns(graph, assigned(graph, "y"), machine), 3 * own_ns(graph, assigned(graph, "y"), assumed),
              1e-3 * model);
  facts.operators[whole].calls = 1;
  use_data(machine, facts, all_ops());
  EXPECT_LT(own_ns(graph, assigned(graph, "x"), machine), 1.3 * model) << "one call says little";
}

TEST(Cost, MeasuredSharesAlsoOfParts) {
  DataFacts facts;
  facts.filters[{3, {}}] = {0.25, 100};
  facts.filters[{4, {0}}] = {0.5, 100};
  facts.filters[{4, {1}}] = {0.1, 100};
  EXPECT_EQ(facts.kept(3, {}), 0.25);
  EXPECT_EQ(facts.kept(3, {0}), std::nullopt) << "of a part nothing was measured";
  EXPECT_EQ(facts.kept(4, {1}), 0.1);
  EXPECT_DOUBLE_EQ(facts.kept(4, {}).value(), 0.05) << "of the whole: both";
  EXPECT_EQ(facts.kept(5, {}), std::nullopt);
}

/// The filters of a plan, from the source on.
std::string filters_of(const Graph& graph, const Machine& machine) {
  OptimizeOptions options;
  options.plan.machine = machine;
  const OptimizeResult result = optimize(graph, options, all_ops());
  std::string text;
  for (const PlanNode& node : result.plan.nodes)
    for (const ComputeStep& step : node.steps)
      if (step.filter.valid()) text += fmt::format("{} ", result.plan.graph.node(step.filter).step);
  return text;
}

TEST(Cost, MeasuredSharesOrderFilters) {
  const Graph graph = graph_of("range(9) | filter (index * 7 + 1) % 5 != 0 | filter (index * 3 + 2) % 4 != 0");
  for (const auto& [first, second, order] : {std::tuple(0.9, 0.1, "2 1 "), std::tuple(0.1, 0.9, "1 2 ")}) {
    Machine machine;
    DataFacts facts;
    facts.filters[{1, {}}] = {first, 1000};
    facts.filters[{2, {}}] = {second, 1000};
    use_data(machine, facts, all_ops());
    EXPECT_EQ(filters_of(graph, machine), order);
  }
}

TEST(Cost, LineageIsThatOfTheQuestion) {
  const auto only = [&](const std::string& text) { return filter_lineage(graph_of(text)).begin()->second; };
  const auto sources = [](const std::string& text) { return source_lineage(graph_of(text)); };
  const std::string key = only("range(9) | x = index * 2 | filter x > 3 | batch(2)");
  EXPECT_EQ(only("range(9) | filter index * 2 > 3 | batch(8)"), key) << "another name, another batch";
  EXPECT_EQ(only("range(9) | y = index | x = y * 2 | shuffle() | filter x > 3"), key);
  EXPECT_NE(only("range(9) | filter index * 2 > 4"), key);
  EXPECT_NE(only("range(8) | filter index * 2 > 3"), key) << "another source";
  EXPECT_NE(only("range(9) | index = index + 1 | filter index * 2 > 3"), key);
  EXPECT_EQ(sources("range(9) | x = index"), sources("range(9) | filter index > 3"));
  EXPECT_NE(sources("range(8) | x = index"), sources("range(9) | x = index"));
}

class Store : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "zephon_costs_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    if (const char* before = getenv("ZEPHON_CACHE_DIR")) before_ = before;
    setenv("ZEPHON_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    before_ ? setenv("ZEPHON_CACHE_DIR", before_->c_str(), 1) : unsetenv("ZEPHON_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string only_file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) found = entry.path();
    return found;
  }
  std::string folder_;
  std::optional<std::string> before_;
};

TEST_F(Store, KeepsACalibration) {
  const CostStore store;
  EXPECT_FALSE(store.calibration());
  CostStore::Calibration kept;
  kept.ns_per_kernel_call = 12.5;
  kept.ns_per_row_and_step = 0.5;
  kept.bytes_per_ns = 11;
  OperatorCost& add = kept.operators.operators[all_ops().find("add")];
  add.cost = {1.0 / 3, 0.1, 0};
  add.ns_by_elem[static_cast<size_t>(Elem::F64)] = 0.7;
  ASSERT_TRUE(store.keep(kept));
  const auto found = CostStore().calibration();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ns_per_kernel_call, 12.5);
  EXPECT_EQ(found->operators.operators.at(all_ops().find("add")).cost.ns_per_call, 1.0 / 3);
  EXPECT_EQ(found->operators.operators.at(all_ops().find("add")).ns_by_elem, add.ns_by_elem);
  EXPECT_EQ(store.clear(), 1);
  EXPECT_FALSE(CostStore().calibration());
}

TEST_F(Store, UsesNothingThatIsDamaged) {
  const CostStore store;
  CostStore::Facts facts;
  facts.filters["k"] = {100, 7, 0};
  ASSERT_TRUE(store.keep("place", "data", facts));
  ASSERT_TRUE(store.facts("place", "data"));
  EXPECT_FALSE(store.facts("place", "other data"));
  EXPECT_FALSE(store.facts("elsewhere", "data"));
  const std::string path = only_file();
  std::string text;
  {
    std::ifstream in(path);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  testing::internal::CaptureStderr();
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    std::ofstream(path, std::ios::trunc) << other;
    EXPECT_FALSE(store.facts("place", "data")) << "byte " << at;
    std::ofstream(path, std::ios::trunc) << text.substr(0, at);
    EXPECT_FALSE(store.facts("place", "data")) << "cut at " << at;
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is damaged and is not used; the next run writes it anew"),
            std::string::npos);
}

TEST(Facts, OfMoreRowsAndBehindFewerFiltersAreLearned) {
  CostStore::Facts known;
  known.filters["k"] = {100, 50, 1};
  CostStore::Facts run;
  run.filters["k"] = {1000, 10, 2};
  EXPECT_FALSE(known.learn(run)) << "what others have let through says less";
  run.filters["k"] = {90, 9, 0};
  EXPECT_TRUE(known.learn(run));
  EXPECT_EQ(known.filters["k"].kept, 9);
  EXPECT_FALSE(known.learn(run)) << "nothing new";
}

TEST(Costs, AsJsonAndBack) {
  Machine machine;
  machine.default_extent = 312.25;
  OperatorCosts costs;
  costs.operators[all_ops().find("resize")].cost = {1, 2.0 / 3, 3};
  machine.operators = std::make_shared<const OperatorCosts>(costs);
  DataFacts facts;
  facts.filters[{2, {1}}] = {0.125, 40};
  facts.operators[all_ops().find("decode_image")] = {7, 1e6, 3e5, 1e5, 1};
  use_data(machine, facts, all_ops());
  Machine back;
  std::string error;
  ASSERT_TRUE(machine_of(json_of(machine), back, error)) << error;
  EXPECT_EQ(json_of(back).dump(), json_of(machine).dump());
  const Graph graph = graph_of("files(\"*.jpg\") | x = bytes.decode_image().resize(3, 3) | filter x[0, 0, 0] > 3");
  EXPECT_EQ(own_ns(graph, assigned(graph, "x"), back), own_ns(graph, assigned(graph, "x"), machine));
  for (const char* wrong :
       {R"({"nonsense": 1})", R"({"bytes_per_ns": 0})", R"({"operators": {"nobody": {}}})",
        R"({"operators": {"add": {"ns_per_call": -1}}})", R"({"data": {"filters": [{"step": 1, "kept": 2}]}})",
        R"({"data": {"filters": [1]}})", R"({"operators": {"add": {"types": {"f31": 1}}}})"}) {
    error.clear();
    EXPECT_FALSE(machine_of(nlohmann::ordered_json::parse(wrong), back, error)) << wrong;
    EXPECT_NE(error, "") << wrong;
  }
}

}  // namespace
}  // namespace zephon
