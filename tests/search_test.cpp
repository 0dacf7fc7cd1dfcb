// The search against brute force: no order of steps that the exact rules reach is cheaper than the one that is chosen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <unordered_map>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/analysis/order.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/stream_cost.h"
#include "optimizer/engine/rewrite.h"
#include "optimizer/optimizer.h"
#include "tests/random_programs.h"

namespace zephon {
namespace {

Graph compile_text(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("search.zpl", text);
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  EXPECT_TRUE(program) << render(diags, sources) << text;
  return program ? program->graph : Graph();
}

/// Applies one rule at one place of a graph; knows nothing of the engine or the memo.
class Once final : public Rewriter {
 public:
  Once(Graph& graph) : graph_(graph), live_(live_fields(graph)) {}

  bool apply(const Rule& rule, NodeId place) {
    Match match;
    match.outer = place;
    if (!rule.match_node(*this, place, match)) return false;
    for (const Guard& guard : rule.guards)
      if (!guard.cost && !guard.holds(*this, match)) return false;
    rule.apply_node(*this, match);
    return true;
  }

  Graph& graph() override { return graph_; }
  const OpTable& ops() const override { return all_ops(); }
  Reads& reads() override { return reads_; }
  int users(NodeId node) const override { return graph_.user_count(node) + (graph_.output() == node); }
  void exchange(NodeId outer, NodeId inner) override {
    redirect(outer, inner);
    exchange_steps(graph_, outer, inner);
  }
  void remove(NodeId node) override { redirect(node, graph_.node(node).inputs.at(0)); }
  double tree_ns(ExprId expr) const override { return zephon::tree_ns(graph_, {expr}, machine_); }
  double own_ns(ExprId expr) const override { return zephon::own_ns(graph_, expr, machine_); }
  double elements(ExprId expr) const override { return expected_elements(graph_.expr(expr).type, machine_); }
  const Machine& machine() const override { return machine_; }
  const std::vector<ExprId>& expr_users(ExprId) const override {
    static const std::vector<ExprId> kNone;
    return kNone;
  }
  bool is_live(NodeId node, const std::string& field) override {
    return live_.at(static_cast<size_t>(node.index)).contains(field);
  }

 private:
  void redirect(NodeId from, NodeId to) {
    for (NodeId id : graph_.topological())
      for (NodeId& input : graph_.node(id).inputs)
        if (input == from && id != to) input = to;
    if (graph_.output() == from) graph_.set_output(to);
  }

  Graph& graph_;
  Machine machine_;
  Reads reads_{graph_};
  std::vector<FieldSet> live_;
};

double cost_of(Graph graph) {
  Machine machine;
  Door door({}, false);
  SettledForms forms(graph, all_rules(), door, all_ops(), machine);
  return StreamCost(graph, machine, [&](const std::vector<ExprId>& roots) { return forms.of(roots); }).program_ns();
}

struct Closure {
  size_t graphs = 0;
  double least = 0;
  std::string cheapest;
};

/// Every graph that rules of Phase::Order reach from `written`; stops at `most`.
Closure closure(const Graph& written, size_t most) {
  Closure found;
  std::unordered_map<std::string, bool> seen;
  std::deque<Graph> open;
  auto see = [&](Graph graph) {
    const std::string text = to_text(graph);
    if (!seen.emplace(text, true).second) return;
    const double ns = cost_of(graph);
    if (found.graphs++ == 0 || ns < found.least) {
      found.least = ns;
      found.cheapest = text;
    }
    open.push_back(std::move(graph));
  };
  see(written);
  while (!open.empty() && found.graphs < most) {
    const Graph graph = std::move(open.front());
    open.pop_front();
    for (NodeId place : graph.topological())
      for (const RuleEntry& entry : all_rules()) {
        if (entry.phase != Phase::Order || !entry.rule->match_node) continue;
        Graph next = graph;
        if (Once(next).apply(*entry.rule, place)) see(std::move(next));
      }
  }
  return found;
}

/// The order alone: other phases would leave another graph than those of the closure.
OptimizeResult ordered(const Graph& graph) {
  OptimizeOptions options;
  options.verify = true;
  for (const RuleEntry& entry : all_rules())
    if (entry.phase == Phase::Merge || entry.phase == Phase::Shape) options.disabled.emplace(entry.rule->name);
  return optimize(graph, options, all_ops());
}

void expect_cheapest(const std::string& text, size_t most = 4000) {
  SCOPED_TRACE(text);
  const Graph graph = compile_text(text);
  const Closure all = closure(graph, most);
  ASSERT_LT(all.graphs, most) << "the closure is not whole";
  const OptimizeResult result = ordered(graph);
  EXPECT_EQ(fmt::format("{}", fmt::join(result.trace.problems, "\n")), "");
  EXPECT_FALSE(result.trace.search.bounded);
  const double chosen = cost_of(result.graph);
  EXPECT_LE(chosen, all.least * (1 + 1e-5)) << "of " << all.graphs << " graphs the cheapest is\n"
                                            << all.cheapest << "chosen was\n"
                                            << to_text(result.graph);
}

constexpr const char* kPhotos = "files(\"examples/data/photos/*/*.jpg\")";

TEST(Search, FindsTheCheapestOrder) {
  const std::string photos = kPhotos;
  // Filters that share costly work, so that their prices are not their own.
  expect_cheapest(photos +
                  " | image = bytes.decode_image() | filter image.mean() > 10 | filter image.max() > 20"
                  " | filter path.name == \"a.jpg\" | filter image.height() > 3");
  expect_cheapest(
      "range(100) | x = sin(f64(index)) | filter exp(x) > 1.1 | filter exp(x) * x < 2"
      " | filter index % 7 != 0 | filter cos(f64(index)) > 0 | y = exp(x)");
  // A filter, and the counting step that would part it from what it shares.
  expect_cheapest(photos +
                  " | image = bytes.decode_image() | filter image.mean() > 10 | small = resize(image, 8, 8)"
                  " | take(3) | y = small.mean()");
  expect_cheapest(photos +
                  " | image = bytes.decode_image() | filter image.mean() > 10 | shuffle(buffer_size=2)"
                  " | x = image.max() | filter x > 3 | skip(1)");
  expect_cheapest(photos +
                  " | shuffle() | image = bytes.decode_image() | filter image.mean() > 10 | gray = image.min()"
                  " | filter gray < 200 | batch(2) | z = gray + 1");
  expect_cheapest(
      "range(100) | x = sin(f64(index)) | y = exp(x) | shuffle(buffer_size=10) | take(50) | z = y + x"
      " | skip(2) | batch(4) | w = z * 2");
  expect_cheapest(
      "stream a = range(100) | x = exp(f64(index)) | filter x > 3 | take(10)\n"
      "stream b = range(50) | x = sin(f64(index)) | filter cos(x) > 0.5 | filter index % 2 == 0 | "
      "shuffle(buffer_size=4)\n"
      "concatenate(a, b) | y = x + 1 | filter y > 2 | filter index > 1");
}

TEST(Search, OrdersEightFilters) {
  // 40,320 orders: too many to enumerate in a test, but prices are their own here, and then the order by price is best.
  std::string text = "range(100)";
  for (int i = 8; i > 0; --i) {
    std::string expr = fmt::format("f64(index + {})", i);
    for (int k = 0; k < i; ++k) expr = "exp(" + expr + ")";
    text += fmt::format(" | filter {} > {}", expr, i);
  }
  const OptimizeResult result = ordered(compile_text(text));
  EXPECT_FALSE(result.trace.search.bounded) << result.trace.search.pairs;
  std::string downward = "range(100)";
  const size_t head = text.find(" | ");
  std::vector<std::string> filters;
  for (size_t at = head; at != std::string::npos;) {
    const size_t next = text.find(" | ", at + 1);
    filters.insert(filters.begin(), text.substr(at, next == std::string::npos ? next : next - at));
    at = next;
  }
  for (const std::string& f : filters) downward += f;
  EXPECT_NEAR(cost_of(result.graph), cost_of(compile_text(downward)), 1e-6);
}

TEST(Search, SharedWorkIsPaidOnce) {
  // By its own price `z > 0.6` is first. But one of the others makes `x` for both of them.
  const Graph graph = compile_text(
      "range(100) | x = sin(sin(f64(index + 1))) | z = sin(sin(f64(index)))"
      " | filter z > 0.6 | filter x > 0.2 | filter x < 0.9 | y = x");
  const OptimizeResult result = ordered(graph);
  Graph downhill = graph;
  Door door({}, false);
  rewrite(downhill, all_rules(), {Phase::Order}, door, all_ops(), Machine(), true);
  EXPECT_LT(cost_of(result.graph), cost_of(downhill) * 0.999);
}

TEST(Search, RandomProgramsGetTheCheapestOrder) {
  const std::string folder = testing::TempDir();
  int compared = 0;
  for (uint64_t seed = 1; compared < 60 && seed < 600; ++seed) {
    const RandomProgram random = random_program(seed, folder);
    SourceMap sources;
    Diagnostics diags;
    const FileId file = sources.add("search.zpl", random.text);
    Result<Program> program = compile(sources, file, {}, all_ops(), diags);
    if (!program) continue;
    const size_t most = 150;
    const Closure all = closure(program->graph, most);
    if (all.graphs >= most || all.graphs < 2) continue;
    ++compared;
    const OptimizeResult result = ordered(program->graph);
    EXPECT_EQ(fmt::format("{}", fmt::join(result.trace.problems, "\n")), "");
    if (result.trace.search.bounded) continue;
    EXPECT_LE(cost_of(result.graph), all.least * (1 + 1e-5))
        << random.text << "\nof " << all.graphs << " graphs the cheapest is\n"
        << all.cheapest << "chosen was\n"
        << to_text(result.graph);
  }
  EXPECT_GE(compared, 30);
}

TEST(Search, SaysWhenItMeetsItsBound) {
  std::string text = "range(100)";
  for (int i = 0; i < 30; ++i) text += fmt::format(" | filter index % {} != 1", i + 2);
  EXPECT_TRUE(ordered(compile_text(text)).trace.search.bounded);
}

}  // namespace
}  // namespace zephon
