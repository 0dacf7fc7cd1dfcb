// The runtime forms of dataset operators (rows pushed in order, renumbered domains) against their definitions, and the
// definitions against small cases written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "ops/all_ops.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

using Ids = std::vector<SampleId>;

Attrs attrs_of(std::vector<std::pair<std::string, Attr>> list) {
  Attrs attrs;
  for (auto& [name, value] : list) attrs.set(name, value);
  return attrs;
}

NodeId range_node(Graph& graph, int64_t n, std::string stream = {}) {
  Node node;
  node.op = all_ops().find("range");
  node.attrs = attrs_of({{"begin", n}});
  node.stream = std::move(stream);
  std::string error;
  node.op->infer_stream(node, {}, node.type, error);
  return graph.add(std::move(node));
}

NodeId op_node(Graph& graph, std::string_view name, std::vector<NodeId> inputs, Attrs attrs = {}) {
  Node node;
  node.op = all_ops().find(name);
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  std::vector<StreamType> types;
  for (NodeId input : inputs) types.push_back(graph.node(input).type);
  std::string error;
  node.op->infer_stream(node, types, node.type, error);
  EXPECT_EQ(error, "");
  return graph.add(std::move(node));
}

Ids run(Graph& graph, NodeId output, uint64_t seed = 1) {
  graph.set_output(output);
  Failure failure;
  auto run = ReferenceRun::open(graph, {.seed = seed}, failure);
  Ids ids;
  while (auto record = run->next()) ids.insert(ids.end(), record->ids.begin(), record->ids.end());
  EXPECT_FALSE(run->failure());
  return ids;
}

std::vector<uint64_t> positions(const Ids& ids) {
  std::vector<uint64_t> out;
  for (const SampleId& id : ids) out.push_back(id.words[3]);
  return out;
}

// Pushes the samples of the inputs through a RowOp, one at a time, saving and loading its state after each row.
Ids push(const Graph& graph, NodeId id, std::vector<Ids> inputs, const EpochContext& epoch) {
  class Sink final : public RowSink {
   public:
    explicit Sink(Ids& all) : all_(all) {}
    void emit(Row row) override {
      SampleId sample = all_[row.handle];
      sample.words.insert(sample.words.end(), words_.begin(), words_.end());
      words_.clear();
      out.push_back(sample);
    }
    void append_identity(uint64_t word) override { words_.push_back(word); }
    void reject(Row, const std::string& policy) override { rejected.push_back(policy); }
    void mask(Row) override { rejected.push_back("mask"); }
    Ids out;
    std::vector<std::string> rejected;

   private:
    Ids& all_;
    std::vector<uint64_t> words_;
  };
  Ids all;
  Sink sink(all);
  std::vector<size_t> next(inputs.size());
  const Node& node = graph.node(id);
  std::unique_ptr<RowOp> op = node.op->kernel.row_op(node, epoch);
  std::vector<uint64_t> ordinals(inputs.size());
  while (!op->done()) {
    const auto input = static_cast<size_t>(op->wanted_input());
    if (next[input] == inputs[input].size()) {
      op->end_of_input(static_cast<int>(input), sink);
      if (inputs.size() == 1) break;
      continue;
    }
    all.push_back(inputs[input][next[input]++]);
    op->push({all.size() - 1, ordinals[input]++, static_cast<int32_t>(input), false}, sink);
    RowState state;
    op->save(state);
    op = node.op->kernel.row_op(node, epoch);
    op->load(state);
  }
  return sink.out;
}

struct Case {
  std::string op;
  Attrs attrs;
};
std::vector<Case> unary_cases() {
  const Attr on = true, off = false;
  auto i = [](int64_t v) { return Attr(v); };
  return {{"take", attrs_of({{"count", i(0)}})},
          {"take", attrs_of({{"count", i(7)}})},
          {"take", attrs_of({{"count", i(1000)}})},
          {"skip", attrs_of({{"count", i(0)}})},
          {"skip", attrs_of({{"count", i(7)}})},
          {"skip", attrs_of({{"count", i(1000)}})},
          {"shard", attrs_of({{"num_shards", i(3)}, {"index", i(2)}})},
          {"shard", attrs_of({{"num_shards", i(40)}, {"index", i(39)}})},
          {"shuffle", attrs_of({{"seed", i(3)}, {"reshuffle_each_epoch", on}})},
          {"shuffle", attrs_of({{"seed", i(3)}, {"reshuffle_each_epoch", off}})},
          {"shuffle_window", attrs_of({{"seed", i(3)}, {"reshuffle_each_epoch", on}, {"buffer_size", i(1)}})},
          {"shuffle_window", attrs_of({{"seed", i(3)}, {"reshuffle_each_epoch", on}, {"buffer_size", i(5)}})},
          {"shuffle_window", attrs_of({{"seed", i(3)}, {"reshuffle_each_epoch", off}, {"buffer_size", i(500)}})},
          {"repeat", attrs_of({{"count", i(3)}})},
          {"repeat", attrs_of({{"count", i(0)}})}};
}

TEST(StreamOpsTest, RowsPushedAndDomainsRenumberedAgreeWithTheDefinition) {
  const EpochContext epoch{1, 0, {}};
  for (int64_t size : {0, 1, 5, 31}) {
    for (const Case& c : unary_cases()) {
      Graph graph;
      const NodeId source = range_node(graph, size);
      const NodeId node = op_node(graph, c.op, {source}, c.attrs);
      const Ids input = run(graph, source), expected = run(graph, node);
      const OpDef& op = *graph.node(node).op;
      if (op.kernel.row_op) {
        EXPECT_EQ(push(graph, node, {input}, epoch), expected) << c.op << " of " << size;
      }
      if (const IndexMap* map = op.kernel.index_map) {
        const auto n = static_cast<uint64_t>(size);
        ASSERT_EQ(map->output_size(graph.node(node), n), expected.size()) << c.op << " of " << size;
        for (uint64_t i = 0; i < expected.size(); ++i) {
          SampleId id = input[map->input_index(graph.node(node), epoch, n, i)];
          if (map->appends_pass) id.words.push_back(i / n);
          EXPECT_EQ(id, expected[i]) << c.op << " of " << size << " at " << i;
        }
      }
    }
  }
}

TEST(StreamOpsTest, Orders) {
  Graph graph;
  const NodeId source = range_node(graph, 10);
  using Positions = std::vector<uint64_t>;
  EXPECT_EQ(positions(run(graph, op_node(graph, "take", {source}, attrs_of({{"count", int64_t{3}}})))),
            (Positions{0, 1, 2}));
  EXPECT_EQ(positions(run(graph, op_node(graph, "skip", {source}, attrs_of({{"count", int64_t{7}}})))),
            (Positions{7, 8, 9}));
  EXPECT_EQ(positions(run(graph, op_node(graph, "shard", {source},
                                         attrs_of({{"num_shards", int64_t{4}}, {"index", int64_t{1}}})))),
            (Positions{1, 5, 9}));
  const NodeId shuffled =
      op_node(graph, "shuffle", {source}, attrs_of({{"seed", int64_t{0}}, {"reshuffle_each_epoch", true}}));
  const Ids order = run(graph, shuffled);
  Positions sorted = positions(order);
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (Positions{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_NE(run(graph, shuffled, 2), order);
}

TEST(StreamOpsTest, PassesShuffleAnewAndStandInIdentities) {
  Graph graph;
  const NodeId source = range_node(graph, 6);
  const NodeId shuffled =
      op_node(graph, "shuffle", {source}, attrs_of({{"seed", int64_t{0}}, {"reshuffle_each_epoch", true}}));
  const NodeId inner = op_node(graph, "repeat", {shuffled}, attrs_of({{"count", int64_t{2}}}));
  const NodeId outer = op_node(graph, "repeat", {inner}, attrs_of({{"count", int64_t{2}}}));
  const Ids ids = run(graph, outer);
  ASSERT_EQ(ids.size(), 24u);
  EXPECT_EQ((std::vector<uint64_t>(ids[6].words.begin() + 4, ids[6].words.end())), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ((std::vector<uint64_t>(ids[12].words.begin() + 4, ids[12].words.end())), (std::vector<uint64_t>{1, 0}));
  std::set<std::vector<uint64_t>> orders;
  for (long pass = 0; pass < 4; ++pass)
    orders.insert(positions(Ids(ids.begin() + 6 * pass, ids.begin() + 6 * pass + 6)));
  EXPECT_GE(orders.size(), 3u);
}

TEST(StreamOpsTest, AnEndlessRepeatOfNothingEnds) {
  Graph graph;
  EXPECT_TRUE(run(graph, op_node(graph, "repeat", {range_node(graph, 0)})).empty());
  const NodeId endless = op_node(graph, "repeat", {range_node(graph, 3)});
  EXPECT_TRUE(graph.node(endless).type.endless);
  const NodeId taken = op_node(graph, "take", {endless}, attrs_of({{"count", int64_t{7}}}));
  EXPECT_FALSE(graph.node(taken).type.endless);
  EXPECT_EQ(positions(run(graph, taken)), (std::vector<uint64_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(StreamOpsTest, MergesAgreeWithTheirRowForms) {
  for (const std::string stop : {"first", "all"}) {
    Graph graph;
    const NodeId a = range_node(graph, 20, "a"), b = range_node(graph, 5, "b"), c = range_node(graph, 0, "c");
    const NodeId mix =
        op_node(graph, "mix", {a, b, c},
                attrs_of({{"weights", std::vector<int64_t>{3, 2, 1}}, {"stop", stop}, {"seed", int64_t{0}}}));
    const Ids expected = run(graph, mix);
    EXPECT_EQ(push(graph, mix, {run(graph, a), run(graph, b), run(graph, c)}, {1, 0, {}}), expected);
    if (stop == "all") {
      EXPECT_EQ(expected.size(), 25u);
    }
  }
  Graph graph;
  const NodeId a = range_node(graph, 4, "a"), b = range_node(graph, 0, "b"), c = range_node(graph, 3, "c");
  const NodeId all = op_node(graph, "concatenate", {a, b, c});
  const Ids expected = run(graph, all);
  EXPECT_EQ(push(graph, all, {run(graph, a), run(graph, b), run(graph, c)}, {1, 0, {}}), expected);
  EXPECT_EQ(positions(expected), (std::vector<uint64_t>{0, 1, 2, 3, 0, 1, 2}));
  EXPECT_EQ(expected[4].words.back(), 2u);
}

TEST(StreamOpsTest, MixFollowsItsWeights) {
  Graph graph;
  const NodeId a = range_node(graph, 100000, "a"), b = range_node(graph, 100000, "b");
  const NodeId mix =
      op_node(graph, "mix", {a, b},
              attrs_of({{"weights", std::vector<int64_t>{7, 3}}, {"stop", "first"}, {"seed", int64_t{0}}}));
  const NodeId some = op_node(graph, "take", {mix}, attrs_of({{"count", int64_t{20000}}}));
  int from_a = 0;
  for (const SampleId& id : run(graph, some)) from_a += id.words.back() == 0;
  EXPECT_NEAR(from_a, 14000, 260);  // four standard deviations
}

TEST(StreamOpsTest, BatchesAndBack) {
  Graph graph;
  const NodeId source = range_node(graph, 7);
  auto batch = [&](bool drop) {
    return op_node(graph, "batch", {source}, attrs_of({{"batch_size", int64_t{3}}, {"drop_remainder", drop}}));
  };
  graph.set_output(batch(false));
  Failure failure;
  auto batches = ReferenceRun::open(graph, {}, failure);
  auto first = batches->next();
  ASSERT_TRUE(first && first->is_batch);
  EXPECT_EQ(first->fields[0].second.shape(), (std::vector<int64_t>{3}));
  EXPECT_EQ(first->fields[0].second.at(2).i, 2);
  EXPECT_EQ(batches->next()->ids.size(), 3u);
  EXPECT_EQ(batches->next()->ids.size(), 1u);
  EXPECT_FALSE(batches->next());
  EXPECT_EQ(run(graph, batch(true)).size(), 6u);
  const Ids back = run(graph, op_node(graph, "unbatch", {batch(false)}));
  ASSERT_EQ(back.size(), 7u);
  EXPECT_EQ(back[4].words, (std::vector<uint64_t>{0, 0, 0, 4, 1}));
}

TEST(StreamOpsTest, TypesRefuseWhatCannotBe) {
  Graph graph;
  const NodeId source = range_node(graph, 7);
  const NodeId batch =
      op_node(graph, "batch", {source}, attrs_of({{"batch_size", int64_t{3}}, {"drop_remainder", false}}));
  auto error_of = [&](std::string_view name, NodeId input, Attrs attrs) {
    Node node;
    node.op = all_ops().find(name);
    node.attrs = std::move(attrs);
    StreamType type = graph.node(input).type;
    std::string error;
    node.op->infer_stream(node, {&type, 1}, node.type, error);
    return error;
  };
  EXPECT_NE(error_of("filter", batch, {}), "");
  EXPECT_NE(error_of("unbatch", source, {}), "");
  EXPECT_NE(error_of("shard", source, attrs_of({{"num_shards", int64_t{3}}, {"index", int64_t{3}}})), "");
  EXPECT_NE(error_of("select", source, attrs_of({{"fields", std::vector<std::string>{"x"}}})), "");
  EXPECT_NE(error_of("shuffle", op_node(graph, "repeat", {source}), {}), "");
}

}  // namespace
}  // namespace zephon
