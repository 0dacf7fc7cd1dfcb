#include <algorithm>
#include <numeric>

#include "graph/philox.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

// Chooses arms. The choice for an output is made among all arms by weight; only where the arm chosen has ended, among
// those that have not: so it does not matter how early an end is noticed.
class Chooser {
 public:
  Chooser(const Node& node, const EpochContext& epoch)
      : key_(shuffle_key(epoch, static_cast<uint64_t>(node.attrs.integer("seed")), true)),
        stop_at_first_(node.attrs.text("stop") == "first"),
        weights_(node.attrs.get<std::vector<int64_t>>("weights")),
        ended_(weights_.size()) {}

  bool done() const {
    if (stop_at_first_) return ended_[pick(weights_)];
    return std::all_of(ended_.begin(), ended_.end(), [](uint8_t e) { return e != 0; });
  }
  // Only where not done.
  size_t arm() const {
    const size_t first = pick(weights_);
    if (!ended_[first]) return first;
    std::vector<int64_t> alive = weights_;
    for (size_t i = 0; i < alive.size(); ++i)
      if (ended_[i]) alive[i] = 0;
    return pick(alive);
  }
  void advance() { ++ordinal_; }
  void end(size_t arm) { ended_[arm] = 1; }

  std::vector<uint64_t> words() const {
    std::vector<uint64_t> words = {ordinal_};
    words.insert(words.end(), ended_.begin(), ended_.end());
    return words;
  }
  void load(const std::vector<uint64_t>& words) {
    ordinal_ = words.at(0);
    ended_.assign(words.begin() + 1, words.end());
  }

 private:
  size_t pick(const std::vector<int64_t>& weights) const {
    const uint64_t words[] = {key_, ordinal_};
    const auto total = static_cast<uint64_t>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
    PlainNumbers numbers;
    auto point = static_cast<int64_t>(integer_below(numbers, hash_words(words), total));
    size_t arm = 0;
    for (; arm + 1 < weights.size() && point >= weights[arm]; ++arm) point -= weights[arm];
    return arm;
  }

  uint64_t key_;
  bool stop_at_first_;
  std::vector<int64_t> weights_;
  std::vector<uint8_t> ended_;
  uint64_t ordinal_ = 0;
};

class MixStream final : public SampleStream {
 public:
  explicit MixStream(StreamContext& context) : chooser_(context.node(), context.epoch()) {
    for (size_t i = 0; i < context.node().inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }
  Item next() override {
    while (!chooser_.done()) {
      const size_t arm = chooser_.arm();
      Item item = arms_[arm]->next();
      if (item.sample) append_identity(*item.sample, arm);
      if (item.failure || (item.sample && item.sample->verdict)) return item;
      if (item.sample) {
        chooser_.advance();
        return item;
      }
      chooser_.end(arm);
    }
    return {};
  }

 private:
  Chooser chooser_;
  std::vector<StreamPtr> arms_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<MixStream>(context); }

class MixRows final : public RowOp {
 public:
  MixRows(const Node& node, const EpochContext& epoch) : chooser_(node, epoch) {}
  int wanted_input() const override { return static_cast<int>(chooser_.arm()); }
  void push(Row row, RowSink& sink) override {
    sink.append_identity(static_cast<uint64_t>(row.input));
    sink.emit(row);
    chooser_.advance();
  }
  void end_of_input(int input, RowSink&) override { chooser_.end(static_cast<size_t>(input)); }
  bool done() const override { return chooser_.done(); }
  void save(RowState& state) const override { state.words = chooser_.words(); }
  void load(const RowState& state) override { chooser_.load(state.words); }

 private:
  Chooser chooser_;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext& epoch) {
  return std::make_unique<MixRows>(node, epoch);
}

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  if (!merge_arms(node, inputs, out, error)) return;
  out.domain = Domain::Data;
  auto endless = [](const StreamType& t) { return t.endless; };
  if (node.attrs.text("stop") == "first") out.endless = std::all_of(inputs.begin(), inputs.end(), endless);
  constexpr int64_t kLargest = int64_t{1} << 40;  // sums must not overflow
  for (int64_t weight : node.attrs.get<std::vector<int64_t>>("weights"))
    if (weight < 1 || weight > kLargest) error = "weights are whole numbers from 1 to 2^40";
}

}  // namespace

ZEPHON_OP_DEF(Mix) = {
    .name = "mix",
    .cls = OpClass::Merge,
    .signature = "stream, weights: ints, stop: enum(first, all) = first, seed: int = 0 -> stream",
    .summary = "Draws each sample from one of its streams, chosen at random by whole-number weights.",
    .prose =
        "Written `mix(web=7, code=3)`. The choice for output k is floor(h * sum of weights / 2^64), h = XXH3-64 of "
        "(key, k), with the key of a shuffle. `stop=first`: ends when a stream that has ended is chosen; `stop=all`: "
        "then one of the others is chosen by the same h, until all have ended.",
    .example = "stream a = range(6)\nstream b = range(4)\nmix(a=2, b=1)",
    .effects = {.random = true},
    .algebra = {.counts_arrivals = true},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows},
    .infer_stream = infer,
};

}  // namespace zephon
