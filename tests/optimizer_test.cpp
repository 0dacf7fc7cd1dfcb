// The optimizer on graphs made by hand: what the plan looks like, and that compiling stays fast.
#include "optimizer/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/signature.h"
#include "ops/all_ops.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {
namespace {

/// A program as the front end would make it, with a place for each step.
class Program {
 public:
  NodeId step(std::string_view op, std::vector<NodeId> inputs, Attrs attrs = {}, std::vector<Assign> assigns = {},
              ExprId predicate = {}) {
    Node n;
    n.op = all_ops().find(op);
    EXPECT_TRUE(n.op) << op;
    n.inputs = std::move(inputs);
    for (const Parameter& p : signature_of(*n.op).parameters)
      if (p.default_value && !attrs.has(p.name)) attrs.set(p.name, *p.default_value);
    n.attrs = std::move(attrs);
    n.assigns = std::move(assigns);
    n.predicate = predicate;
    n.step = ++steps_;
    n.origin = Span{FileId{1}, static_cast<uint32_t>(steps_ * 1000), static_cast<uint32_t>(steps_ * 1000 + 999)};
    std::vector<StreamType> types;
    for (NodeId input : n.inputs) types.push_back(graph.node(input).type);
    if (!types.empty()) n.type = types[0];
    std::string error;
    if (n.op->infer_stream) n.op->infer_stream(n, types, n.type, error);
    EXPECT_EQ(error, "");
    for (const Assign& a : n.assigns) {
      const Type type = graph.expr(a.expr).type;
      if (std::optional<size_t> at = n.type.fields.index(a.field))
        n.type.fields.set_type(*at, type);
      else
        n.type.fields.push_back({a.field, type});
    }
    const NodeId id = graph.add(std::move(n));
    graph.set_output(id);
    return id;
  }

  NodeId range(int64_t end) {
    Attrs attrs;
    attrs.set("end", end);
    return step("range", {}, attrs);
  }
  NodeId count(std::string_view op, NodeId input, int64_t n) {
    Attrs attrs;
    attrs.set(op == "batch" ? "batch_size" : op == "shuffle_window" ? "buffer_size" : "count", n);
    return step(op, {input}, attrs);
  }
  NodeId assign(NodeId input, const std::string& field, ExprId expr) {
    return step("assign", {input}, {}, {{field, expr}});
  }
  NodeId filter(NodeId input, ExprId predicate) { return step("filter", {input}, {}, {}, predicate); }
  NodeId select(NodeId input, std::vector<std::string> fields) {
    Attrs attrs;
    attrs.set("fields", std::move(fields));
    return step("select", {input}, attrs);
  }

  ExprId field(NodeId at, const std::string& name) {
    return add_field(graph, all_ops(), name, graph.node(at).type.find(name)->type);
  }
  ExprId integer(int64_t v) { return add_constant(graph, all_ops(), Value::scalar(Scalar::of_int(Elem::I64, v))); }
  ExprId op(std::string_view name, std::vector<ExprId> args, Attrs attrs = {}) {
    Expr e;
    e.op = all_ops().find(name);
    EXPECT_TRUE(e.op) << name;
    e.args = std::move(args);
    for (const Parameter& p : signature_of(*e.op).parameters)
      if (p.default_value && !attrs.has(p.name)) attrs.set(p.name, *p.default_value);
    e.attrs = std::move(attrs);
    std::vector<Type> types;
    std::vector<const Value*> constants;
    for (ExprId arg : e.args) {
      types.push_back(graph.expr(arg).type);
      constants.push_back(graph.expr(arg).constant.get());
    }
    std::string error;
    int bad = 0;
    const std::optional<Type> type = unify(*e.op, e.attrs, types, constants, error, bad);
    EXPECT_TRUE(type) << error;
    if (type) e.type = *type;
    if (e.op->cls == OpClass::Draw) e.draw_id = ++draws_;
    e.origin = {Span{FileId{1}, static_cast<uint32_t>((steps_ + 1) * 1000 + 10),
                     static_cast<uint32_t>((steps_ + 1) * 1000 + 20)}};
    return graph.add(std::move(e));
  }

  OptimizeResult optimize(OptimizeOptions options = {}) const {
    options.verify = true;
    OptimizeResult result = zephon::optimize(graph, options, all_ops());
    EXPECT_EQ(fmt::format("{}", fmt::join(result.trace.problems, "\n")), "");
    for (const Application& a : result.trace.applied)
      EXPECT_LE(a.cost_after, a.cost_before * (1 + 1e-9) + 1e-9) << a.rule->name << " at " << a.what;
    return result;
  }
  OptimizeResult as_written() const {
    OptimizeOptions options;
    options.no_optimize = true;
    OptimizeResult result = optimize(options);
    EXPECT_TRUE(result.trace.applied.empty());
    return result;
  }

  Graph graph;

 private:
  int steps_ = 0;
  uint64_t draws_ = 0;
};

std::vector<PlanNode::Kind> kinds(const Plan& plan) {
  std::vector<PlanNode::Kind> out;
  for (const PlanNode& n : plan.nodes) out.push_back(n.kind);
  return out;
}
using K = PlanNode::Kind;

TEST(Planner, ScalarPipelineIsOneStage) {
  Program p;
  NodeId n = p.range(50'000'000);
  n = p.assign(n, "x", p.op("add", {p.op("mul", {p.field(n, "index"), p.integer(3)}), p.integer(1)}));
  n = p.filter(n, p.op("ne", {p.op("mod", {p.field(n, "x"), p.integer(7)}), p.integer(0)}));
  n = p.select(n, {"x"});
  n = p.count("batch", n, 1024);
  const OptimizeResult r = p.optimize();
  EXPECT_EQ(kinds(r.plan), (std::vector{K::Source, K::Compute, K::Batch, K::Deliver})) << to_text(r.plan);
  const PlanNode& stage = r.plan.nodes[1];
  ASSERT_EQ(stage.steps.size(), 2u) << to_text(r.plan);
  EXPECT_EQ(stage.steps[0].group.kind, KernelGroup::Kind::Columnar);
  // The predicate and, since it is made on the way, the field.
  EXPECT_EQ(stage.steps[0].group.roots.size(), 2u) << to_text(r.plan);
  EXPECT_EQ(stage.chunk_rows, 8192);
  EXPECT_TRUE(r.trace.fired("push_filter_below_assign"));

  const OptimizeResult w = p.as_written();
  EXPECT_EQ(kinds(w.plan), (std::vector{K::Source, K::Compute, K::Batch, K::Deliver})) << to_text(w.plan);
  EXPECT_EQ(w.plan.nodes[1].steps.size(), 5u) << to_text(w.plan);
}

TEST(Planner, RenumberingsFoldIntoTheSource) {
  Program p;
  NodeId n = p.range(100);
  n = p.assign(n, "x", p.op("add", {p.field(n, "index"), p.integer(1)}));
  n = p.count("take", n, 50);
  n = p.step("shuffle", {n});
  n = p.count("repeat", n, 2);
  const OptimizeResult r = p.optimize();
  ASSERT_EQ(kinds(r.plan), (std::vector{K::Source, K::Compute, K::Deliver})) << to_text(r.plan);
  ASSERT_EQ(r.plan.nodes[0].index.size(), 3u);
  EXPECT_EQ(r.plan.graph.node(r.plan.nodes[0].index[0].node).op->name, "take");
  EXPECT_EQ(r.plan.graph.node(r.plan.nodes[0].index[2].node).op->name, "repeat");
  // Without rules: what stands above the shuffle must fold, what stands below runs on rows.
  const OptimizeResult w = p.as_written();
  ASSERT_EQ(kinds(w.plan), (std::vector{K::Source, K::Compute, K::Repeat, K::Deliver})) << to_text(w.plan);
  EXPECT_EQ(w.plan.nodes[0].index.size(), 2u);
}

TEST(Planner, ShuffleFoldsThroughFilters) {
  Program p;
  NodeId n = p.range(100);
  n = p.filter(n, p.op("ne", {p.field(n, "index"), p.integer(7)}));
  n = p.step("shuffle", {n});
  n = p.count("take", n, 5);
  for (const OptimizeResult& r : {p.optimize(), p.as_written()}) {
    EXPECT_EQ(kinds(r.plan), (std::vector{K::Source, K::Compute, K::Serial, K::Deliver})) << to_text(r.plan);
    EXPECT_EQ(r.plan.nodes[0].index.size(), 1u);
  }
}

TEST(Planner, ShuffledConcatenationIsOrdered) {
  Program p;
  NodeId a = p.range(10);
  a = p.assign(a, "x", p.op("add", {p.field(a, "index"), p.integer(1)}));
  NodeId b = p.range(20);
  b = p.count("take", b, 5);
  b = p.assign(b, "x", p.field(b, "index"));
  NodeId n = p.step("concatenate", {a, b});
  n = p.step("shuffle", {n});
  n = p.assign(n, "y", p.op("mul", {p.field(n, "x"), p.integer(2)}));
  for (const OptimizeResult& r : {p.optimize(), p.as_written()}) {
    const std::string text = to_text(r.plan);
    ASSERT_EQ(r.plan.nodes[r.plan.nodes.size() - 3].kind, K::Ordered) << text;
    int sources = 0;
    for (const PlanNode& node : r.plan.nodes) {
      if (node.kind != K::Source) continue;
      ASSERT_GE(node.index.size(), 2u) << text;
      EXPECT_EQ(node.index[node.index.size() - 2].arm, sources) << text;
      EXPECT_EQ(r.plan.graph.node(node.index.back().node).op->name, "shuffle");
      ++sources;
    }
    EXPECT_EQ(sources, 2);
    // Identities of an arm's rows end with its number, which draws of the arm must not see.
    for (const PlanNode& node : r.plan.nodes) {
      if (node.kind != K::Compute) continue;
      const bool below = node.inputs[0].index == static_cast<int>(r.plan.nodes.size()) - 3;
      EXPECT_EQ(node.outer_words, below ? 0 : 1);
    }
  }
}

TEST(Planner, BatchOfTensorsIsMadeInPlace) {
  Program p;
  NodeId n = p.range(100);
  n = p.filter(n, p.op("ne", {p.op("mod", {p.field(n, "index"), p.integer(7)}), p.integer(0)}));
  n = p.assign(n, "x", p.op("stack", {p.field(n, "index"), p.field(n, "index")}));
  n = p.select(n, {"x"});
  n = p.count("batch", n, 4);
  const OptimizeResult r = p.optimize();
  ASSERT_EQ(kinds(r.plan), (std::vector{K::Source, K::Compute, K::Compute, K::Batch, K::Deliver})) << to_text(r.plan);
  EXPECT_EQ(r.plan.nodes[2].chunk_rows, 4);
  EXPECT_TRUE(r.trace.fired("batch_in_place"));
  const OptimizeResult w = p.as_written();
  EXPECT_EQ(kinds(w.plan), (std::vector{K::Source, K::Compute, K::Batch, K::Deliver})) << to_text(w.plan);
}

TEST(Planner, StepsBelowBatchWorkOnMembers) {
  Program p;
  NodeId n = p.range(100);
  n = p.count("batch", n, 4);
  n = p.count("take", n, 3);
  n = p.assign(n, "x", p.op("add", {p.field(n, "index"), p.integer(1)}));
  n = p.step("unbatch", {n});
  for (const OptimizeResult& r : {p.optimize(), p.as_written()})
    EXPECT_EQ(kinds(r.plan), (std::vector{K::Source, K::Batch, K::Serial, K::Compute, K::Unbatch, K::Deliver}))
        << to_text(r.plan);
}

TEST(Planner, OnErrorKeepsWhatItGuards) {
  Program p;
  NodeId n = p.range(100);
  n = p.assign(n, "x", p.op("floor_div", {p.integer(12), p.field(n, "index")}));
  Attrs attrs;
  attrs.set("policy", std::string("skip"));
  n = p.step("on_error", {n}, attrs);
  p.graph.node(n).needed = {"x"};
  n = p.assign(n, "y", p.op("add", {p.field(n, "x"), p.integer(1)}));
  n = p.select(n, {"y"});
  for (const OptimizeResult& r : {p.optimize(), p.as_written()}) {
    EXPECT_EQ(kinds(r.plan), (std::vector{K::Source, K::Compute, K::Serial, K::Compute, K::Deliver}))
        << to_text(r.plan);
    EXPECT_EQ(r.plan.nodes[2].guarded, std::vector<std::string>{"x"});
  }
}

TEST(Planner, EveryGroupFindsItsInputs) {
  Program p;
  NodeId n = p.range(100);
  const ExprId index = p.field(n, "index");
  ExprId pair = p.op("stack", {index, p.op("mul", {index, p.integer(3)})});
  ExprId total = p.op("sum", {pair});
  ExprId scaled = p.op("mul", {pair, p.op("add", {total, p.integer(1)})});
  n = p.assign(n, "t", p.op("add", {total, index}));
  n = p.assign(n, "s", scaled);
  for (const OptimizeResult& r : {p.optimize(), p.as_written()})
    for (const PlanNode& node : r.plan.nodes) {
      std::set<ExprId> known;
      for (const ComputeStep& s : node.steps) {
        for (ExprId leaf : s.group.leaves)
          EXPECT_TRUE(known.contains(leaf) || r.plan.graph.expr(leaf).op->cls == OpClass::Leaf) << to_text(r.plan);
        known.insert(s.group.roots.begin(), s.group.roots.end());
      }
      if (node.kind != K::Compute) continue;
      for (const OutputField& f : node.outputs)
        EXPECT_TRUE(known.contains(f.expr) || r.plan.graph.expr(f.expr).op->cls == OpClass::Leaf) << to_text(r.plan);
    }
}

TEST(Rules, StandAfterWhatTheyName) {
  std::set<std::string_view> seen;
  for (const RuleEntry& entry : all_rules()) {
    for (std::string_view before : entry.after)
      EXPECT_TRUE(seen.contains(before)) << entry.rule->name << " after " << before;
    EXPECT_TRUE(seen.insert(entry.rule->name).second) << entry.rule->name;
    EXPECT_FALSE(entry.reason.empty() || entry.rule->law.empty() || entry.rule->ends.empty()) << entry.rule->name;
  }
}

TEST(Rules, EachCanBeDisabled) {
  Program p;
  NodeId n = p.range(100);
  n = p.assign(n, "x", p.op("add", {p.field(n, "index"), p.integer(1)}));
  n = p.assign(n, "y", p.op("mul", {p.field(n, "x"), p.integer(1)}));
  n = p.filter(n, p.op("ne", {p.field(n, "x"), p.integer(7)}));
  for (const RuleEntry& entry : all_rules()) {
    OptimizeOptions options;
    options.disabled = {std::string(entry.rule->name)};
    EXPECT_FALSE(p.optimize(options).trace.fired(entry.rule->name));
  }
}

TEST(Optimizer, AThousandOperators) {
  for (int shape = 0; shape < 3; ++shape) {
    Program p;
    NodeId n = p.range(100);
    std::string last = "index";
    for (int i = 0; i < 500; ++i) {
      const std::string name = shape == 1 ? "x" : fmt::format("x{}", i);
      n = p.assign(n, name, p.op("add", {p.field(n, last), p.integer(i)}));
      last = name;
      if (shape == 2 && i % 10 == 0) n = p.filter(n, p.op("ne", {p.field(n, last), p.integer(i)}));
    }
    EXPECT_TRUE(optimize(p.graph, {}, all_ops()).trace.problems.empty()) << shape;
  }
}

// An expression is a graph: as a tree this one has 2^60 leaves.
TEST(Optimizer, TheTextOfWhatIsUsedAgainIsShort) {
  Program p;
  NodeId n = p.range(100);
  std::string last = "index";
  for (int i = 0; i < 60; ++i) {
    const std::string name = fmt::format("x{}", i);
    n = p.assign(n, name, p.op("mul", {p.field(n, last), p.field(n, last)}));
    last = name;
  }
  const std::string text = to_text(optimize(p.graph, {}, all_ops()).graph);
  EXPECT_LT(text.size(), 20000u);
  EXPECT_NE(text.find("%0 = "), std::string::npos);
}

}  // namespace
}  // namespace zephon
