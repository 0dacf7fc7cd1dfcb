// The runtime, on plans built by hand: order, budget, failures, every serial operator, ranks, states, ends of a run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "graph/signature.h"
#include "ops/all_ops.h"
#include "runtime/flow/runner.h"

namespace zephon {
namespace {

// ---- tiny operators ----------------------------------------------------------------------------------------------

std::atomic<int> evaluations{0};  // of `affine`
std::atomic<bool> stuck{false};   // `affine` waits while true

int64_t input_of(const NativeCall& call) { return *static_cast<const int64_t*>(call.inputs[0].data); }

// 3 x + 1; fails where x % 10 equals attr "bad".
bool affine(NativeCall& call) {
  ++evaluations;
  while (stuck) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  int64_t x = input_of(call);
  if (x % 10 == call.expr->attrs.integer("bad")) return false;
  *static_cast<int64_t*>(call.output->data) = 3 * x + 1;
  return true;
}
Value define_affine(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.any_failed()) return x;
  if (x.at(0).i % 10 == call.expr().attrs.integer("bad"))
    return Value::failed(call.failure("R0404", fmt::format("{} is bad", x.at(0).i)));
  return Value::scalar(Scalar::of_int(Elem::I64, 3 * x.at(0).i + 1));
}
// x % 7 != attr "not"; fails where x % 10 equals attr "bad".
bool keep(NativeCall& call) {
  int64_t x = input_of(call);
  if (x % 10 == call.expr->attrs.integer("bad")) return false;
  *static_cast<bool*>(call.output->data) = x % 7 != call.expr->attrs.integer("not");
  return true;
}
Value define_keep(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.any_failed()) return x;
  if (x.at(0).i % 10 == call.expr().attrs.integer("bad")) return Value::failed(call.failure("R0404", "no verdict"));
  return Value::scalar(Scalar::of_bool(x.at(0).i % 7 != call.expr().attrs.integer("not")));
}
// f32[1000]: x, x + 1, ...
bool wave(NativeCall& call) {
  auto* out = static_cast<float*>(call.output->data);
  for (int i = 0; i < 1000; ++i) out[i] = static_cast<float>(input_of(call) + i);
  return true;
}
// i64[n], n = x % attr "most" + 1.
bool ragged(NativeCall& call) {
  int64_t n = input_of(call) % call.expr->attrs.integer("most") + 1;
  call.output->rank = 1;
  call.output->shape[0] = n;
  call.output->data = call.alloc(static_cast<size_t>(n) * 8);
  for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(call.output->data)[i] = input_of(call) * 100 + i;
  return true;
}
// i64[n] of x, n = (x % attr "cycle" + 1) * attr "unit".
bool bulky(NativeCall& call) {
  int64_t n = (input_of(call) % call.expr->attrs.integer("cycle") + 1) * call.expr->attrs.integer("unit");
  call.output->rank = 1;
  call.output->shape[0] = n;
  call.output->data = call.alloc(static_cast<size_t>(n) * 8);
  call.will_use(1000);
  std::fill_n(static_cast<int64_t*>(call.output->data), n, input_of(call));
  return true;
}
// The text of x.
bool text(NativeCall& call) {
  std::string s = "row " + std::to_string(input_of(call));
  auto* chars = static_cast<char*>(call.alloc(s.size()));
  std::memcpy(chars, s.data(), s.size());
  *static_cast<StringRef*>(call.output->data) = {chars, s.size()};
  return true;
}
Value no_definition(DefineCall& call) { return Value::failed(call.failure("B0900", "not used")); }

const OpDef kField = {.name = "field", .cls = OpClass::Leaf, .signature = "name: string -> f64"};
const OpDef* const kLeaves[] = {&kField};
const OpDef kAffine = {.name = "affine",
                       .signature = "x: i64, bad: int = -1 -> i64",
                       .define = {.tensor = define_affine},
                       .kernel = {.native = affine}};
const OpDef kKeep = {.name = "keep",
                     .signature = "x: i64, bad: int = -1, not: int = 0 -> bool",
                     .define = {.tensor = define_keep},
                     .kernel = {.native = keep}};
const OpDef kWave = {.name = "wave",
                     .signature = "x: i64 -> f32[1000]",
                     .define = {.tensor = no_definition},
                     .kernel = {.native = wave}};
const OpDef kRagged = {.name = "ragged",
                       .signature = "x: i64, most: int = 3 -> i64[?]",
                       .define = {.tensor = no_definition},
                       .kernel = {.native = ragged}};
const OpDef kBulky = {.name = "bulky",
                      .signature = "x: i64, unit: int = 1 -> i64[?]",
                      .define = {.tensor = no_definition},
                      .kernel = {.native = bulky}};
const OpDef kText = {
    .name = "text", .signature = "x: i64 -> str", .define = {.tensor = no_definition}, .kernel = {.native = text}};

// ---- plans -------------------------------------------------------------------------------------------------------

const Type kI64 = Type::scalar(Elem::I64);

class PlanMaker {
 public:
  Plan plan;

  NodeId node(const char* op, Attrs attrs, std::vector<NodeId> inputs, std::vector<Field> fields) {
    Node n;
    n.op = all_ops().find(op);
    EXPECT_NE(n.op, nullptr) << op;
    n.attrs = std::move(attrs);
    n.inputs = std::move(inputs);
    n.type.fields = std::move(fields);
    n.step = ++steps_;
    return plan.graph.add(std::move(n));
  }
  PlanNodeId add(PlanNode n) {
    if (n.label.empty()) n.label = fmt::format("node {}", plan.nodes.size());
    n.steps_written = {static_cast<int32_t>(plan.nodes.size())};
    plan.nodes.push_back(std::move(n));
    return {static_cast<int32_t>(plan.nodes.size()) - 1};
  }
  ExprId field(const std::string& name, Type type = kI64) {
    return add_field(plan.graph, OpTable(kLeaves), name, type);
  }
  ExprId call(const OpDef& op, ExprId x, Type type, Attrs attrs = {}) {
    Expr e;
    e.op = &op;
    e.args = {x};
    e.type = std::move(type);
    e.attrs = std::move(attrs);
    return plan.graph.add(std::move(e));
  }
  ExprId affine_of(ExprId x, int64_t bad = -1) {
    Attrs attrs;
    attrs.set("bad", bad);
    return call(kAffine, x, kI64, attrs);
  }
  ExprId keep_of(ExprId x, int64_t bad = -1, int64_t not_this = 0) {
    Attrs attrs;
    attrs.set("bad", bad);
    attrs.set("not", not_this);
    return call(kKeep, x, Type::scalar(Elem::Bool), attrs);
  }

  PlanNodeId range(int64_t size, int64_t chunk_rows, const char* stream = "", int64_t begin = 0) {
    Attrs attrs;
    attrs.set("begin", begin);
    attrs.set("end", begin + size);
    PlanNode n;
    n.kind = PlanNode::Kind::Source;
    n.node = node("range", attrs, {}, {{"index", kI64}});
    plan.graph.node(n.node).stream = stream;
    n.outputs = {{"index", field("index"), 8}};
    n.chunk_rows = chunk_rows;
    return add(std::move(n));
  }
  ComputeStep evaluate(ExprId e) {
    ComputeStep s;
    s.group.kind = KernelGroup::Kind::Native;
    s.group.roots = {e};
    s.group.leaves = plan.graph.expr(e).args;
    return s;
  }
  ComputeStep filter(ExprId e) {
    ComputeStep s;
    s.kind = ComputeStep::Kind::Filter;
    s.predicate = e;
    return s;
  }
  PlanNodeId compute(PlanNodeId input, std::vector<ComputeStep> steps, std::vector<OutputField> outputs,
                     int64_t chunk_rows = 0) {
    PlanNode n;
    n.kind = PlanNode::Kind::Compute;
    n.inputs = {input};
    n.steps = std::move(steps);
    n.outputs = std::move(outputs);
    n.chunk_rows = chunk_rows;
    return add(std::move(n));
  }
  PlanNodeId serial(PlanNode::Kind kind, const char* op, Attrs attrs, std::vector<PlanNodeId> inputs,
                    std::vector<Field> fields = {}, bool on_batches = false) {
    PlanNode n;
    n.kind = kind;
    n.inputs = inputs;
    std::vector<NodeId> graph_inputs;
    for (PlanNodeId input : inputs) graph_inputs.push_back(graph_node(input));
    n.node = node(op, std::move(attrs), graph_inputs, std::move(fields));
    n.on_batches = on_batches;
    return add(std::move(n));
  }
  PlanNodeId row_op(const char* op, const char* attr, int64_t value, PlanNodeId input, bool on_batches = false) {
    Attrs attrs;
    attrs.set(attr, value);
    return serial(PlanNode::Kind::Serial, op, attrs, {input}, {}, on_batches);
  }
  PlanNodeId batch(PlanNodeId input, int64_t size, bool drop_remainder = false) {
    Attrs attrs;
    attrs.set("batch_size", size);
    attrs.set("drop_remainder", drop_remainder);
    return serial(PlanNode::Kind::Batch, "batch", attrs, {input});
  }
  Plan& deliver(PlanNodeId input, std::vector<OutputField> outputs, bool batched) {
    PlanNode n;
    n.kind = PlanNode::Kind::Deliver;
    n.inputs = {input};
    n.outputs = std::move(outputs);
    n.on_batches = batched;
    n.label = "deliver";
    add(std::move(n));
    plan.graph.set_output(graph_node(input));
    return plan;
  }
  NodeId graph_node(PlanNodeId id) {
    const PlanNode& n = plan.at(id);
    return n.node.valid() ? n.node : graph_node(n.inputs[0]);
  }

 private:
  int32_t steps_ = 0;
};

// ---- sinks -------------------------------------------------------------------------------------------------------

struct Collected {
  uint64_t epoch, ordinal;
  std::vector<SampleId> ids;
  std::map<std::string, Value> fields;
  bool operator==(const Collected&) const = default;
};

class Collect : public Sink {
 public:
  std::vector<Collected> records;
  size_t refuse_at = SIZE_MAX;
  std::function<void()> on_deliver;
  bool deliver(const RunRecord& record) override {
    if (on_deliver) on_deliver();
    if (records.size() == refuse_at) return false;
    Collected c{record.epoch, record.ordinal, {}, {}};
    for (int64_t i = 0; i < record.members; ++i) c.ids.push_back(record.member_id(i));
    for (const RunRecord::Field& f : record.fields) c.fields.emplace(*f.name, to_value(f.value));
    records.push_back(std::move(c));
    return true;
  }
  /// One field of all records, one after the other.
  std::vector<int64_t> numbers(const std::string& name) const {
    std::vector<int64_t> out;
    for (const Collected& c : records)
      for (int64_t i = 0; i < c.fields.at(name).size(); ++i) out.push_back(c.fields.at(name).at(i).i);
    return out;
  }
};

RunResult run(const Plan& plan, Sink& sink, RunOptions options = {}) {
  return Runner(plan, std::move(options), {}, sink).run();
}

RunOptions with_threads(int threads, size_t memory = size_t{1} << 28) {
  RunOptions options;
  options.threads = threads;
  options.memory = memory;
  return options;
}

// range | x = affine(index, bad) | filter keep(index) | batch(size)
Plan linear(int64_t rows, int64_t chunk, int64_t batch, int64_t bad = -1, bool drop = false) {
  PlanMaker m;
  ExprId index = m.field("index"), x = m.affine_of(index, bad), kept = m.keep_of(index);
  PlanNodeId stage = m.compute(m.range(rows, chunk), {m.evaluate(kept), m.filter(kept), m.evaluate(x)},
                               {{"index", index, 8}, {"x", x, 8}});
  return m.deliver(m.batch(stage, batch, drop), {{"index", index, 8}, {"x", m.field("x"), 8}}, true);
}
std::vector<int64_t> kept_indices(int64_t rows) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < rows; ++i)
    if (i % 7 != 0) out.push_back(i);
  return out;
}

// ---- order, batches, budget --------------------------------------------------------------------------------------

TEST(Flow, DeliversInOrderForAnyThreadsChunksAndBudget) {
  const std::vector<int64_t> expected = kept_indices(5000);
  for (int threads : {1, 2, 8}) {
    for (int64_t chunk : {1, 7, 64, 1000}) {
      for (size_t memory : {kUncountedBytes + 150'000, size_t{1} << 28}) {
        Collect sink;
        RunResult result = run(linear(5000, chunk, 32), sink, with_threads(threads, memory));
        ASSERT_EQ(result.end, RunResult::End::Complete);
        ASSERT_EQ(sink.numbers("index"), expected) << threads << " " << chunk << " " << memory;
        std::vector<int64_t> x = sink.numbers("x");
        for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], 3 * expected[i] + 1);
        for (size_t i = 0; i + 1 < sink.records.size(); ++i) ASSERT_EQ(sink.records[i].ids.size(), 32u);
        ASSERT_EQ(sink.records[1].ids[3].words.back(), static_cast<uint64_t>(expected[35]));
        ASSERT_EQ(result.samples, expected.size());
        ASSERT_EQ(result.records, (expected.size() + 31) / 32);
      }
    }
  }
}

Plan keeping(Plan plan) {
  for (PlanNode& n : plan.nodes) n.keeps_rows = n.kind == PlanNode::Kind::Compute;
  return plan;
}

TEST(Flow, WhatIsKeptIsMadeOnceAndGivenInEveryEpoch) {
  const size_t small = kUncountedBytes + 800'000;
  for (int threads : {1, 2}) {
    for (size_t memory : {size_t{1} << 28, small}) {
      RunOptions options = with_threads(threads, memory);
      options.epochs = 3;
      Collect sink, plain;
      evaluations = 0;
      const RunResult result = run(keeping(linear(3000, 64, 32)), sink, options);
      const int made = evaluations;
      evaluations = 0;
      run(linear(3000, 64, 32), plain, options);
      ASSERT_EQ(result.end, RunResult::End::Complete) << (result.failure ? result.failure->failure.message : "");
      EXPECT_TRUE(sink.records == plain.records) << threads << " " << memory;
      EXPECT_GT(result.kept_bytes, 0u);
      if (memory == small) {
        EXPECT_LT(made, evaluations);
        EXPECT_GT(made, evaluations / 3);
      } else {
        EXPECT_EQ(made, evaluations / 3);
      }
    }
  }
}

TEST(Flow, DropRemainderDropsIt) {
  Collect sink;
  run(linear(100, 16, 32, -1, true), sink);
  EXPECT_EQ(sink.records.size(), 2u);
}

TEST(Flow, TensorsAreDeliveredStackedAndStayWithinTheBudget) {
  PlanMaker m;
  ExprId index = m.field("index");
  const Type type = Type::tensor(Elem::F32, {Dim::of(1000)});
  ExprId w = m.call(kWave, index, type);
  PlanNodeId stage = m.compute(m.range(3000, 16), {m.evaluate(w)}, {{"w", w, 4000}}, 16);
  m.plan.nodes.back().est_bytes_per_row = 4000;
  const Plan& plan = m.deliver(m.batch(stage, 16), {{"w", m.field("w", type), 4000}}, true);
  for (int threads : {1, 4}) {
    Collect sink;
    RunOptions options = with_threads(threads, kUncountedBytes + 400'000);
    RunResult result = run(plan, sink, options);
    ASSERT_EQ(result.end, RunResult::End::Complete);
    ASSERT_EQ(sink.records.size(), 188u);
    EXPECT_EQ(sink.records[5].fields.at("w").shape(), (std::vector<int64_t>{16, 1000}));
    EXPECT_EQ(sink.records[5].fields.at("w").at(1000 * 3 + 17).f, 5 * 16 + 3 + 17);
    EXPECT_LE(result.peak_bytes, 400'000u) << threads;
  }
}

// Rows whose size shows only when they are made: 80 kB to 560 kB where `unit` is 10,000.
PlanNodeId bulky_rows(PlanMaker& m, PlanNodeId input, int64_t unit, double ns_per_row = 0, int64_t cycle = 7) {
  Attrs attrs;
  attrs.set("cycle", cycle);
  attrs.set("unit", unit);
  ExprId b = m.call(kBulky, m.field("index"), Type::tensor(Elem::I64, {Dim::unknown()}), attrs);
  PlanNodeId stage = m.compute(input, {m.evaluate(b)}, {{"b", b}});
  m.plan.nodes.back().est_ns_per_row = ns_per_row;
  return stage;
}
const Type kBulkyType = Type::tensor(Elem::I64, {Dim::unknown()});

// Looks at what is delivered without keeping it.
class CheckBulky : public Sink {
 public:
  explicit CheckBulky(int64_t unit, int64_t cycle = 7) : unit_(unit), cycle_(cycle) {}
  std::vector<int64_t> rows;
  bool deliver(const RunRecord& record) override {
    const TensorRef& value = record.fields[0].value;
    const auto* at = static_cast<const int64_t*>(value.data);
    const int64_t each = value.size() / record.members;
    for (int64_t i = 0; i < record.members; ++i, at += each) {
      EXPECT_EQ(each, (*at % cycle_ + 1) * unit_);
      EXPECT_TRUE(std::all_of(at, at + each, [&](int64_t x) { return x == *at; }));
      EXPECT_EQ(record.member_id(i).words[3], static_cast<uint64_t>(*at % 10'000));
      rows.push_back(*at);
    }
    return true;
  }

 private:
  int64_t unit_, cycle_;
};

TEST(FlowMemory, WhatIsKnownOnlyLaterStaysWithinTheBudgetToo) {
  constexpr size_t kBudget = 1'000'000;
  for (int threads : {1, 2, 8}) {
    for (int64_t chunk : {1, 2, 8}) {
      for (double ns : {0.0, 1e7}) {  // heavy rows are made in parallel
        PlanMaker m;
        const Plan& plan =
            m.deliver(bulky_rows(m, m.range(100, chunk), 10'000, ns), {{"b", m.field("b", kBulkyType)}}, false);
        CheckBulky sink(10'000);
        RunResult result = run(plan, sink, with_threads(threads, kUncountedBytes + kBudget));
        ASSERT_EQ(result.end, RunResult::End::Complete) << result.failure->failure.message;
        EXPECT_LE(result.peak_bytes, kBudget);
        ASSERT_EQ(sink.rows.size(), 100u);
        for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(sink.rows[static_cast<size_t>(i)], i);
        // What is done twice is counted once.
        EXPECT_EQ(result.operators[0].samples, 100);
        EXPECT_EQ(result.operators[1].samples, 100);
      }
    }
  }
}

TEST(FlowMemory, SeveralLanesShareTheBudget) {
  constexpr size_t kBudget = 1'800'000;
  for (int threads : {1, 2, 8}) {
    PlanMaker m;
    Attrs attrs;
    attrs.set("weights", std::vector<int64_t>{2, 1});
    attrs.set("stop", std::string("all"));
    attrs.set("seed", int64_t{0});
    PlanNodeId a = bulky_rows(m, m.range(60, 3, "a"), 10'000);
    PlanNodeId b = bulky_rows(m, m.range(30, 2, "b", 10'000), 10'000);
    PlanNodeId mixed = m.serial(PlanNode::Kind::Serial, "mix", attrs, {a, b});
    const Plan& plan = m.deliver(mixed, {{"b", m.field("b", kBulkyType)}}, false);
    CheckBulky sink(10'000);
    RunResult result = run(plan, sink, with_threads(threads, kUncountedBytes + kBudget));
    ASSERT_EQ(result.end, RunResult::End::Complete) << threads << ": " << result.failure->failure.message;
    EXPECT_LE(result.peak_bytes, kBudget);
    EXPECT_EQ(sink.rows.size(), 90u);
  }
}

TEST(FlowMemory, BatchesAreStackedWithinTheBudget) {
  constexpr size_t kBudget = 1'000'000;
  for (int threads : {1, 2, 8}) {
    PlanMaker m;
    const Plan& plan =
        m.deliver(m.batch(bulky_rows(m, m.range(100, 5), 10'000, 0, 1), 4), {{"b", m.field("b", kBulkyType)}}, true);
    CheckBulky sink(10'000, 1);
    RunResult result = run(plan, sink, with_threads(threads, kUncountedBytes + kBudget));
    ASSERT_EQ(result.end, RunResult::End::Complete) << threads << ": " << result.failure->failure.message;
    EXPECT_LE(result.peak_bytes, kBudget);
    ASSERT_EQ(sink.rows.size(), 100u);
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(sink.rows[static_cast<size_t>(i)], i);
  }
}

TEST(FlowMemory, ASampleThatDoesNotFitEndsTheRunAndSaysWhatWould) {
  for (int threads : {1, 2, 8}) {
    size_t memory = kUncountedBytes + 300'000;
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 2);
      PlanMaker m;
      const Plan& plan = m.deliver(bulky_rows(m, m.range(100, 8), 10'000), {{"b", m.field("b", kBulkyType)}}, false);
      CheckBulky sink(10'000);
      RunResult result = run(plan, sink, with_threads(threads, memory));
      EXPECT_LE(result.peak_bytes, memory - kUncountedBytes);
      if (result.end == RunResult::End::Complete) {
        EXPECT_EQ(sink.rows.size(), 100u);
        break;
      }
      // Rows 0 to 2 fit: 80, 160 and 240 kB.
      ASSERT_TRUE(result.failure);
      EXPECT_EQ(result.failure->failure.code, "R0504");
      EXPECT_EQ(sink.rows, (std::vector<int64_t>{0, 1, 2}));
      EXPECT_EQ(result.failure->id.words.back(), 3u);
      const std::string& message = result.failure->failure.message;
      const size_t at = message.find("--memory ");
      ASSERT_NE(at, std::string::npos) << message;
      memory = std::stoull(message.substr(at + 9)) << 20;
    }
  }
}

TEST(FlowMemory, AWindowThatDoesNotFitEndsTheRun) {
  for (int threads : {1, 2}) {
    PlanMaker m;
    Attrs window;
    window.set("buffer_size", int64_t{50});
    window.set("seed", int64_t{1});
    window.set("reshuffle_each_epoch", true);
    PlanNodeId shuffled =
        m.serial(PlanNode::Kind::Serial, "shuffle_window", window, {bulky_rows(m, m.range(100, 2), 10'000)});
    const Plan& plan = m.deliver(shuffled, {{"b", m.field("b", kBulkyType)}}, false);
    CheckBulky sink(10'000);
    RunResult result = run(plan, sink, with_threads(threads, kUncountedBytes + 4'000'000));
    ASSERT_EQ(result.end, RunResult::End::Failed);
    EXPECT_EQ(result.failure->failure.code, "R0504");
    EXPECT_LE(result.peak_bytes, 4'000'000u);
    EXPECT_TRUE(sink.rows.empty());
  }
}

TEST(Flow, StringsAndRaggedValuesOutliveTheirChunk) {
  PlanMaker m;
  ExprId index = m.field("index");
  const Type str = Type::scalar(Elem::Str), list = Type::tensor(Elem::I64, {Dim::unknown()});
  Attrs most;
  most.set("most", int64_t{3});
  ExprId t = m.call(kText, index, str), r = m.call(kRagged, index, list, most);
  PlanNodeId stage = m.compute(m.range(500, 10), {m.evaluate(t), m.evaluate(r)}, {{"t", t}, {"r", r}});
  Attrs window;
  window.set("buffer_size", int64_t{50});
  window.set("seed", int64_t{1});
  window.set("reshuffle_each_epoch", true);
  PlanNodeId shuffled = m.serial(PlanNode::Kind::Serial, "shuffle_window", window, {stage});
  const Plan& plan = m.deliver(shuffled, {{"t", m.field("t", str)}, {"r", m.field("r", list)}}, false);
  Collect sink;
  run(plan, sink, with_threads(2));
  ASSERT_EQ(sink.records.size(), 500u);
  std::set<std::string> seen;
  bool moved = false;
  for (size_t i = 0; i < 500; ++i) {
    const Collected& c = sink.records[i];
    int64_t n = static_cast<int64_t>(c.ids[0].words.back());
    moved |= n != static_cast<int64_t>(i);
    EXPECT_EQ(c.fields.at("t").string_items()[0], "row " + std::to_string(n));
    EXPECT_EQ(c.fields.at("r").size(), n % 3 + 1);
    EXPECT_EQ(c.fields.at("r").at(0).i, n * 100);
    seen.insert(c.fields.at("t").string_items()[0]);
  }
  EXPECT_EQ(seen.size(), 500u);
  EXPECT_TRUE(moved);
}

TEST(Flow, HeldRowsDoNotHoldTheirChunks) {
  PlanMaker m;
  const Type type = Type::tensor(Elem::F32, {Dim::of(1000)});
  ExprId w = m.call(kWave, m.field("index"), type);
  PlanNodeId stage = m.compute(m.range(5000, 100), {m.evaluate(w)}, {{"index", m.field("index"), 8}, {"w", w, 4000}});
  Attrs window;
  window.set("buffer_size", int64_t{100});
  window.set("seed", int64_t{1});
  window.set("reshuffle_each_epoch", true);
  PlanNodeId shuffled = m.serial(PlanNode::Kind::Serial, "shuffle_window", window, {stage});
  Collect sink;
  RunResult result =
      run(m.deliver(shuffled, {{"index", m.field("index"), 8}, {"w", m.field("w", type), 4000}}, false), sink);
  ASSERT_EQ(sink.records.size(), 5000u);
  for (const Collected& c : sink.records) ASSERT_EQ(c.fields.at("w").at(17).f, c.fields.at("index").at(0).i + 17);
  // 100 rows held, a chunk that comes and one that leaves, 4 kB a row: not the chunks that the rows came from.
  EXPECT_LT(result.peak_bytes, 2'200'000u);
}

TEST(Flow, MemberOfAnotherShapeFails) {
  for (int64_t most : {1, 2}) {
    PlanMaker m;
    const Type list = Type::tensor(Elem::I64, {Dim::unknown()});
    Attrs attrs;
    attrs.set("most", most);
    ExprId r = m.call(kRagged, m.field("index"), list, attrs);
    PlanNodeId stage = m.compute(m.range(10, 4), {m.evaluate(r)}, {{"r", r}});
    const Plan& plan = m.deliver(m.batch(stage, 5), {{"r", m.field("r", list)}}, true);
    Collect sink;
    RunResult result = run(plan, sink);
    if (most == 1) {
      EXPECT_EQ(sink.records[0].fields.at("r").shape(), (std::vector<int64_t>{5, 1}));
      continue;
    }
    ASSERT_EQ(result.end, RunResult::End::Failed);
    EXPECT_EQ(result.failure->failure.code, "R0410");
    EXPECT_EQ(result.failure->failure.message, "`r` has shape [2], but [1] in the first sample of its batch, 0/0/0/0");
    EXPECT_EQ(to_string(result.failure->id), "0/0/0/1");
  }
}

// ---- failures ----------------------------------------------------------------------------------------------------

TEST(Flow, FailureCommitsInOrder) {
  for (int threads : {1, 2, 8}) {
    for (int64_t chunk : {1, 7, 256}) {
      Collect sink;
      RunResult result = run(linear(1000, chunk, 4, 9), sink, with_threads(threads));
      // 1..6 and 8 are good, 9 fails: the second batch is not delivered.
      ASSERT_EQ(result.end, RunResult::End::Failed);
      EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{1, 2, 3, 4}));
      EXPECT_EQ(result.failure->failure.message, "9 is bad");
      EXPECT_EQ(to_string(result.failure->id), "0/0/0/9");
    }
  }
}

TEST(Flow, FalseBeatsFailureInARegion) {
  PlanMaker m;
  ExprId index = m.field("index"), a = m.keep_of(index, 3, 0), b = m.keep_of(index, -1, 3);
  // a fails for 3, 13, 23, ...; b is false for 3, 10, 17, 24, ...: 3 is dropped, 13 ends the run.
  PlanNodeId stage =
      m.compute(m.range(100, 10), {m.evaluate(a), m.filter(a), m.evaluate(b), m.filter(b)}, {{"index", index, 8}});
  const Plan& plan = m.deliver(stage, {{"index", index, 8}}, false);
  Collect sink;
  RunResult result = run(plan, sink, with_threads(2));
  ASSERT_EQ(result.end, RunResult::End::Failed);
  EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{1, 2, 4, 5, 6, 8, 9, 11, 12}));
  EXPECT_EQ(result.failure->failure.message, "no verdict");
  EXPECT_EQ(to_string(result.failure->id), "0/0/0/13");
}

TEST(Flow, FailureOfWhatIsNotDeliveredIsNone) {
  PlanMaker m;
  ExprId index = m.field("index"), x = m.affine_of(index, 3);
  PlanNodeId stage = m.compute(m.range(20, 6), {m.evaluate(x)}, {{"index", index, 8}, {"x", x, 8}});
  Collect sink;
  EXPECT_EQ(run(m.deliver(m.batch(stage, 4), {{"index", index, 8}}, true), sink).end, RunResult::End::Complete);
  EXPECT_EQ(sink.records.size(), 5u);
}

Plan with_policy(const char* policy, std::optional<int64_t> max_errors = {}) {
  PlanMaker m;
  ExprId index = m.field("index"), x = m.affine_of(index, 3), kept = m.keep_of(index, 5, 0);
  PlanNodeId stage =
      m.compute(m.range(30, 4), {m.evaluate(kept), m.filter(kept), m.evaluate(x)}, {{"index", index, 8}, {"x", x, 8}});
  Attrs attrs;
  attrs.set("policy", std::string(policy));
  attrs.set("file", std::string("unused.jsonl"));
  if (max_errors) attrs.set("max_errors", *max_errors);
  std::vector<Field> fields = {{"index", kI64}, {"x", kI64}};
  m.plan.graph.node(m.graph_node(stage)).type.fields = fields;
  bool mask = std::string(policy) == "mask";
  if (mask) fields.push_back({"valid", Type::scalar(Elem::Bool)});
  PlanNodeId handled = m.serial(PlanNode::Kind::Serial, "on_error", attrs, {stage}, fields);
  m.plan.nodes.back().guarded = {"x"};
  m.plan.graph.node(m.plan.nodes[0].node).type.fields = {{"index", kI64}};
  std::vector<OutputField> outputs = {{"index", index, 8}, {"x", m.field("x"), 8}};
  if (mask) outputs.push_back({"valid", m.field("valid", Type::scalar(Elem::Bool)), 1});
  return m.deliver(handled, outputs, false);
}

TEST(Flow, OnErrorSkipsAndCounts) {
  std::vector<std::string> rejected;
  RunOptions options = with_threads(2);
  options.on_error = [&](const RunFailure& f, const Node&, const std::string& policy) {
    rejected.push_back(policy + " " + to_string(f.id) + " " + f.failure.message);
  };
  Collect sink;
  RunResult result = run(with_policy("skip"), sink, options);
  ASSERT_EQ(result.end, RunResult::End::Complete);
  std::vector<int64_t> expected;
  for (int64_t i : kept_indices(30))
    if (i % 10 != 3 && i % 10 != 5) expected.push_back(i);
  EXPECT_EQ(sink.numbers("index"), expected);
  ASSERT_EQ(rejected.size(), 6u);
  EXPECT_EQ(rejected[0], "skip 0/0/0/3 3 is bad");
  EXPECT_EQ(rejected[1], "skip 0/0/0/5 no verdict");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].count, 6u);
  EXPECT_EQ(result.errors[0].policy, "skip");
}

TEST(Flow, FailuresAreKeptToo) {
  RunOptions options = with_threads(2);
  options.epochs = 2;
  Collect sink, plain;
  const RunResult result = run(keeping(with_policy("skip")), sink, options);
  const RunResult expected = run(with_policy("skip"), plain, options);
  EXPECT_TRUE(sink.records == plain.records);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].count, expected.errors[0].count);
}

TEST(Flow, OnErrorMasksWithZeros) {
  Collect sink;
  RunResult result = run(with_policy("mask"), sink);
  ASSERT_EQ(result.end, RunResult::End::Complete);
  std::vector<int64_t> valid = sink.numbers("valid"), x = sink.numbers("x"), index = sink.numbers("index");
  ASSERT_EQ(valid.size(), kept_indices(30).size());
  for (size_t i = 0; i < valid.size(); ++i) {
    bool good = index[i] % 10 != 3 && index[i] % 10 != 5;
    EXPECT_EQ(valid[i], good) << index[i];
    if (good || index[i] % 10 == 3) {
      EXPECT_EQ(x[i], good ? 3 * index[i] + 1 : 0);
    }
  }
}

TEST(Flow, OnErrorFailsWhenTheTurnComesAndAtTheLimit) {
  Collect sink;
  RunResult result = run(with_policy("fail"), sink);
  EXPECT_EQ(result.end, RunResult::End::Failed);
  EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{1, 2}));
  Collect limited;
  result = run(with_policy("skip", 1), limited);
  EXPECT_EQ(limited.numbers("index"), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(result.failure->failure.code, "R0411");
  EXPECT_EQ(result.failure->failure.message, "2 samples failed, and max_errors is 1; the last: no verdict");
}

// ---- serial operators --------------------------------------------------------------------------------------------

std::vector<int64_t> through(PlanMaker& m, PlanNodeId last, bool batched = false,
                             RunOptions options = with_threads(2)) {
  Collect sink;
  RunResult result = run(m.deliver(last, {{"index", m.field("index"), 8}}, batched), sink, std::move(options));
  EXPECT_EQ(result.end, RunResult::End::Complete);
  return sink.numbers("index");
}

TEST(Flow, TakeSkipShardOnRowsAndOnBatches) {
  {
    PlanMaker m;
    EXPECT_EQ(through(m, m.row_op("take", "count", 5, m.row_op("skip", "count", 3, m.range(1'000'000'000, 2)))),
              (std::vector<int64_t>{3, 4, 5, 6, 7}));
  }
  {
    PlanMaker m;
    EXPECT_EQ(through(m, m.row_op("take", "count", 0, m.range(10, 2))), std::vector<int64_t>{});
  }
  {
    PlanMaker m;
    Attrs attrs;
    attrs.set("num_shards", int64_t{3});
    attrs.set("index", int64_t{1});
    EXPECT_EQ(through(m, m.serial(PlanNode::Kind::Serial, "shard", attrs, {m.range(10, 4)})),
              (std::vector<int64_t>{1, 4, 7}));
  }
  {
    PlanMaker m;
    EXPECT_EQ(
        through(m, m.row_op("skip", "count", 1, m.row_op("take", "count", 3, m.batch(m.range(100, 7), 2), true), true),
                true),
        (std::vector<int64_t>{2, 3, 4, 5}));
  }
}

TEST(Flow, ConcatenateMixAndUnbatch) {
  PlanMaker m;
  PlanNodeId joined =
      m.serial(PlanNode::Kind::Serial, "concatenate", {}, {m.range(5, 2, "a"), m.range(4, 3, "b", 100)});
  Collect sink;
  run(m.deliver(joined, {{"index", m.field("index"), 8}}, false), sink, with_threads(2));
  EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{0, 1, 2, 3, 4, 100, 101, 102, 103}));
  EXPECT_EQ(sink.records[6].ids[0].words.size(), 5u);
  EXPECT_EQ(sink.records[6].ids[0].words[3], 1u);  // position
  EXPECT_EQ(sink.records[6].ids[0].words[4], 1u);  // arm

  for (size_t memory : {kUncountedBytes + 20'000, size_t{1} << 28}) {
    PlanMaker n;
    Attrs attrs;
    attrs.set("weights", std::vector<int64_t>{3, 1});
    attrs.set("stop", std::string("all"));
    attrs.set("seed", int64_t{0});
    PlanNodeId mixed =
        n.serial(PlanNode::Kind::Serial, "mix", attrs, {n.range(2000, 5, "a"), n.range(1000, 3, "b", 10'000)});
    std::vector<int64_t> out = through(n, mixed, false, with_threads(2, memory));
    ASSERT_EQ(out.size(), 3000u);
    int64_t a = 0, b = 10'000, of_b = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], out[i] < 10'000 ? a++ : b++);
      if (i < 2000) of_b += out[i] >= 10'000;
    }
    EXPECT_NEAR(static_cast<double>(of_b), 500, 80);
  }

  PlanMaker u;
  PlanNodeId rows = u.serial(PlanNode::Kind::Unbatch, "unbatch", {}, {u.batch(u.range(10, 3), 4)});
  Collect unbatched;
  run(u.deliver(rows, {{"index", u.field("index"), 8}}, false), unbatched);
  EXPECT_EQ(unbatched.numbers("index").size(), 10u);
  EXPECT_EQ(to_string(unbatched.records[6].ids[0]), "0/0/0/6/2");
}

TEST(Flow, RepeatRunsWhatIsAboveAgain) {
  PlanMaker m;
  Attrs attrs;
  attrs.set("count", int64_t{3});
  PlanNodeId taken = m.row_op("take", "count", 2, m.range(10, 4));
  PlanNodeId last = m.serial(PlanNode::Kind::Repeat, "repeat", attrs, {taken});
  Collect sink;
  run(m.deliver(last, {{"index", m.field("index"), 8}}, false), sink, with_threads(2));
  EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(to_string(sink.records[3].ids[0]), "0/0/0/1/1");
  {
    PlanMaker endless;
    PlanNodeId again = endless.serial(PlanNode::Kind::Repeat, "repeat", {}, {endless.range(3, 4)});
    EXPECT_EQ(through(endless, endless.row_op("take", "count", 7, again)), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0}));
  }
  {
    PlanMaker empty;
    EXPECT_EQ(through(empty, empty.serial(PlanNode::Kind::Repeat, "repeat", {}, {empty.range(0, 4)})),
              std::vector<int64_t>{});
  }
}

TEST(Flow, IndexStepsRenumber) {
  PlanMaker m;
  PlanNodeId source = m.range(10, 3);
  NodeId range = m.graph_node(source);
  Attrs skip, repeat, take;
  skip.set("count", int64_t{7});
  repeat.set("count", int64_t{2});
  take.set("count", int64_t{5});
  NodeId skipped = m.node("skip", skip, {range}, {}), repeated = m.node("repeat", repeat, {skipped}, {});
  NodeId taken = m.node("take", take, {repeated}, {});
  m.plan.nodes[0].index = {{skipped, -1}, {repeated, -1}, {taken, -1}};
  Collect sink;
  run(m.deliver(source, {{"index", m.field("index"), 8}}, false), sink);
  EXPECT_EQ(sink.numbers("index"), (std::vector<int64_t>{7, 8, 9, 7, 8}));
  EXPECT_EQ(to_string(sink.records[4].ids[0]), "0/0/0/8/1");
}

TEST(Flow, OrderedMergesTheArmsOfAShuffledConcatenation) {
  PlanMaker m;
  PlanNodeId a = m.range(30, 4, "a"), b = m.range(20, 3, "b", 100);
  NodeId both = m.node("concatenate", {}, {m.graph_node(a), m.graph_node(b)}, {{"index", kI64}});
  Attrs attrs;
  attrs.set("seed", int64_t{0});
  attrs.set("reshuffle_each_epoch", true);
  NodeId shuffled = m.node("shuffle", attrs, {both}, {{"index", kI64}});
  m.plan.nodes[0].index = {{both, 0}, {shuffled, -1}};
  m.plan.nodes[1].index = {{both, 1}, {shuffled, -1}};
  PlanNode ordered;
  ordered.kind = PlanNode::Kind::Ordered;
  ordered.inputs = {a, b};
  ordered.node = shuffled;
  std::vector<int64_t> out = through(m, m.add(ordered));
  std::vector<int64_t> expected;
  uint64_t key = shuffle_key({0, 0, {}}, 0, true);
  for (uint64_t g = 0; g < 50; ++g) {
    auto i = static_cast<int64_t>(permute_index(key, 50, g));
    expected.push_back(i < 30 ? i : i + 70);
  }
  EXPECT_EQ(out, expected);
}

// ---- epochs, ranks, states ---------------------------------------------------------------------------------------

TEST(Flow, EpochsAndTake) {
  Collect sink;
  RunOptions options = with_threads(2);
  options.epochs = 3;
  RunResult result = run(linear(100, 9, 10), sink, options);
  EXPECT_EQ(sink.records.size(), 27u);
  EXPECT_EQ(sink.records[9].epoch, 1u);
  EXPECT_EQ(sink.records[9].ordinal, 0u);
  Collect some;
  options.take = 11;
  result = run(linear(100, 9, 10), some, options);
  EXPECT_EQ(result.end, RunResult::End::Complete);
  EXPECT_EQ(some.records, std::vector<Collected>(sink.records.begin(), sink.records.begin() + 11));
  Collect none;
  options.take = 0;
  EXPECT_EQ(run(linear(100, 9, 10), none, options).end, RunResult::End::Complete);
  EXPECT_TRUE(none.records.empty());
}

// range | x = affine | batch, in batches from the start: what is not wanted need not be computed.
Plan batched_stage(int64_t rows, int64_t batch) {
  PlanMaker m;
  ExprId index = m.field("index"), x = m.affine_of(index);
  PlanNodeId stage = m.compute(m.range(rows, batch), {m.evaluate(x)}, {{"x", x, 8}}, batch);
  return m.deliver(m.batch(stage, batch), {{"x", m.field("x"), 8}}, true);
}

TEST(Flow, RanksComposeToTheWhole) {
  for (const Plan& plan : {linear(500, 20, 8), batched_stage(500, 8)}) {
    Collect whole;
    run(plan, whole, with_threads(2));
    for (uint64_t world : {2, 3}) {
      std::vector<Collected> joined(whole.records.size() / world * world);
      for (uint64_t rank = 0; rank < world; ++rank) {
        Collect part;
        RunOptions options = with_threads(2);
        options.rank = rank;
        options.world_size = world;
        RunResult result = run(plan, part, options);
        EXPECT_EQ(part.records.size(), whole.records.size() / world);
        EXPECT_EQ(result.dropped_records, rank < whole.records.size() % world ? 1u : 0u);
        for (const Collected& record : part.records) joined.at(record.ordinal) = record;
      }
      joined.resize(whole.records.size() / world * world);
      EXPECT_EQ(joined, std::vector<Collected>(whole.records.begin(),
                                               whole.records.begin() + static_cast<int64_t>(joined.size())));
    }
  }
}

TEST(Flow, BatchesOfOtherRanksAreNotComputed) {
  evaluations = 0;
  Collect sink;
  RunOptions options;
  options.world_size = 4;
  run(batched_stage(400, 10), sink, options);
  EXPECT_EQ(sink.records.size(), 10u);
  EXPECT_EQ(evaluations, 100);
}

TEST(Flow, ResumesAfterEveryRecord) {
  for (const Plan& plan : {linear(200, 17, 8), batched_stage(100, 8)}) {
    RunOptions options = with_threads(2);
    options.epochs = 2;
    options.program_fingerprint = "p";
    Collect whole;
    run(plan, whole, options);
    for (uint64_t k = 0; k <= whole.records.size(); ++k) {
      Collect first, rest;
      RunOptions part = options;
      part.take = k;
      State state = run(plan, first, part).state;
      std::string error;
      std::optional<State> read = parse_state(to_json(state), error);
      ASSERT_TRUE(read) << error;
      part = options;
      part.resume = &*read;
      RunResult result = run(plan, rest, part);
      ASSERT_EQ(result.end, RunResult::End::Complete);
      EXPECT_EQ(result.state.delivered, whole.records.size());
      first.records.insert(first.records.end(), rest.records.begin(), rest.records.end());
      ASSERT_EQ(first.records, whole.records) << k;
    }
  }
}

// range | filter keep | x = affine | shuffle(buffer_size) | skip | in chunks of a batch: w = wave | batch
Plan with_state(int64_t rows) {
  PlanMaker m;
  ExprId index = m.field("index"), x = m.affine_of(index), kept = m.keep_of(index);
  PlanNodeId stage = m.compute(m.range(rows, 9), {m.evaluate(kept), m.filter(kept), m.evaluate(x)}, {{"x", x, 8}});
  Attrs window;
  window.set("buffer_size", int64_t{20});
  window.set("seed", int64_t{1});
  window.set("reshuffle_each_epoch", true);
  PlanNodeId shuffled = m.serial(PlanNode::Kind::Serial, "shuffle_window", window, {stage});
  PlanNodeId skipped = m.row_op("skip", "count", 3, shuffled);
  ExprId again = m.affine_of(m.field("x"));
  PlanNodeId last = m.compute(skipped, {m.evaluate(again)}, {{"x", m.field("x"), 8}, {"y", again, 8}}, 8);
  return m.deliver(m.batch(last, 8), {{"x", m.field("x"), 8}, {"y", m.field("y"), 8}}, true);
}

TEST(Flow, ResumesFromTheMarksOfOperators) {
  for (const Plan& plan : {with_state(400), linear(400, 9, 8), batched_stage(400, 8)}) {
    for (uint64_t world : {1, 2}) {
      RunOptions options = with_threads(2);
      options.epochs = 2;
      options.world_size = world;
      Collect whole;
      evaluations = 0;
      run(plan, whole, options);
      const int all = evaluations;
      for (uint64_t k = 0; k <= whole.records.size(); ++k) {
        Collect first, rest;
        RunOptions part = options;
        part.take = k;
        part.mark_seconds = 0;
        part.save_state = true;
        State state = run(plan, first, part).state;
        std::string error;
        std::optional<State> read = parse_state(to_json(state), error);
        ASSERT_TRUE(read) << error << to_json(state);
        ASSERT_EQ(read->mark.operators, state.mark.operators);
        part = options;
        part.resume = &*read;
        evaluations = 0;
        ASSERT_EQ(run(plan, rest, part).end, RunResult::End::Complete);
        first.records.insert(first.records.end(), rest.records.begin(), rest.records.end());
        ASSERT_EQ(first.records, whole.records) << k;
        if (k > 10 * whole.records.size() / 20 - 3) {
          ASSERT_LT(evaluations, all * 6 / 10) << to_json(state);
        }
      }
    }
  }
}

TEST(Flow, RefusesTheStateOfSomethingElse) {
  Collect sink;
  State state = run(linear(50, 5, 8), sink).state;
  for (int what = 0; what < 3; ++what) {
    State other = state;
    if (what == 0) other.program = "q";
    if (what == 1) other.files = "changed";
    if (what == 2) other.seed = 7;
    RunOptions options;
    options.resume = &other;
    RunResult result = run(linear(50, 5, 8), sink, options);
    ASSERT_EQ(result.end, RunResult::End::Failed);
    EXPECT_EQ(result.failure->failure.code, "R0507");
  }
  std::string error;
  EXPECT_FALSE(parse_state("{\"zephon_state\": 2}", error));
  EXPECT_FALSE(parse_state("not json", error));
  EXPECT_FALSE(parse_state(to_json(state) + "x", error));
}

// ---- ends --------------------------------------------------------------------------------------------------------

TEST(Flow, SinkThatRefusesEndsTheRun) {
  for (int threads : {1, 4}) {
    Collect sink;
    sink.refuse_at = 3;
    RunResult result = run(linear(1'000'000'000, 100, 8), sink, with_threads(threads));
    EXPECT_EQ(result.end, RunResult::End::SinkClosed);
    EXPECT_EQ(result.records, 3u);
  }
}

TEST(Flow, StopFlagEndsTheRun) {
  std::atomic<bool> stop{false};
  Collect sink;
  sink.on_deliver = [&] { stop = sink.records.size() >= 5; };
  RunOptions options = with_threads(2);
  options.stop = &stop;
  RunResult result = run(linear(1'000'000'000, 10, 8), sink, options);
  EXPECT_EQ(result.end, RunResult::End::Stopped);
  EXPECT_GE(result.records, 6u);
}

TEST(Flow, StallIsReportedAndEndsTheRun) {
  std::string report;
  RunOptions options = with_threads(2);
  options.stall_timeout = 0.2;
  options.on_stall = [&](const StallReport& stall) {
    report = stall.status;
    stuck = false;
  };
  stuck = true;
  Collect sink;
  RunResult result = run(linear(100, 10, 8), sink, options);
  EXPECT_EQ(result.end, RunResult::End::Stalled);
  EXPECT_NE(report.find("at work"), std::string::npos) << report;
}

TEST(Flow, CountersSayWhatWasDone) {
  Collect sink;
  RunResult result = run(linear(700, 50, 10), sink, with_threads(2));
  ASSERT_EQ(result.operators.size(), 4u);
#if ZEPHON_COUNTERS
  EXPECT_EQ(result.operators[0].samples, 700);
  EXPECT_EQ(result.operators[1].samples_in, 700);
  EXPECT_EQ(result.operators[1].samples, 600);
  EXPECT_EQ(result.operators[1].bytes_out, 600 * 16);
  EXPECT_EQ(result.operators[2].samples, 60);
  EXPECT_EQ(result.operators[3].samples, 60);
  EXPECT_GT(result.operators[1].cpu_seconds, 0);
#endif
}

TEST(Flow, SourceThatCannotBeOpenedFails) {
  PlanMaker m;
  Attrs attrs;
  attrs.set("glob", std::string("/nowhere/*.jpg"));
  PlanNode n;
  n.kind = PlanNode::Kind::Source;
  const Type path = Type::scalar(Elem::Path);
  n.node = m.node("files", attrs, {}, {{"path", path}});
  n.outputs = {{"path", m.field("path", path)}};
  PlanNodeId source = m.add(n);
  Collect sink;
  RunResult result = run(m.deliver(source, {{"path", m.field("path", path)}}, false), sink);
  ASSERT_EQ(result.end, RunResult::End::Failed);
  EXPECT_EQ(result.failure->failure.code, "R0400");
}

}  // namespace
}  // namespace zephon
