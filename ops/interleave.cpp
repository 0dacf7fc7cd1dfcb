#include <algorithm>

#include "ops/stream_op.h"

namespace zephon {
namespace {

// Whose turn it is. `cycle_length` streams are open at a time, in places 0, 1, ...; each in turn gives `block_length`
// samples. A stream that ends leaves its place to the next that is not open yet; places without a stream are passed
// over.
class Turns {
 public:
  explicit Turns(const Node& node)
      : block_(static_cast<uint64_t>(node.attrs.integer("block_length"))), arms_(node.inputs.size()) {
    const int64_t cycle = node.attrs.has("cycle_length") ? node.attrs.integer("cycle_length") : INT64_MAX;
    next_ = static_cast<uint64_t>(std::min<int64_t>(cycle, static_cast<int64_t>(arms_)));
    for (uint64_t arm = 0; arm < next_; ++arm) places_.push_back(arm);
  }
  bool done() const {
    return std::ranges::all_of(places_, [](uint64_t arm) { return arm == kNone; });
  }
  uint64_t arm() const { return done() ? 0 : places_[place_]; }
  void advance() {
    if (++given_ < block_) return;
    turn();
  }
  void end() {
    if (next_ < arms_) {
      places_[place_] = next_++;
      given_ = 0;
      return;
    }
    places_[place_] = kNone;
    if (!done()) turn();
  }

  std::vector<uint64_t> words() const {
    std::vector<uint64_t> words = {next_, place_, given_};
    words.insert(words.end(), places_.begin(), places_.end());
    return words;
  }
  void load(const std::vector<uint64_t>& words) {
    next_ = words.at(0);
    place_ = words.at(1);
    given_ = words.at(2);
    places_.assign(words.begin() + 3, words.end());
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  void turn() {
    given_ = 0;
    do place_ = (place_ + 1) % places_.size();
    while (places_[place_] == kNone);
  }

  uint64_t block_, arms_, next_ = 0, place_ = 0, given_ = 0;
  std::vector<uint64_t> places_;
};

class InterleaveStream final : public SampleStream {
 public:
  explicit InterleaveStream(StreamContext& context) : turns_(context.node()) {
    for (size_t i = 0; i < context.node().inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }
  Item next() override {
    while (!turns_.done()) {
      const uint64_t arm = turns_.arm();
      Item item = arms_[arm]->next();
      if (item.sample) append_identity(*item.sample, arm);
      if (item.failure || (item.sample && item.sample->verdict)) return item;
      if (item.sample) {
        turns_.advance();
        return item;
      }
      turns_.end();
    }
    return {};
  }

 private:
  Turns turns_;
  std::vector<StreamPtr> arms_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<InterleaveStream>(context); }

class InterleaveRows final : public RowOp {
 public:
  explicit InterleaveRows(const Node& node) : turns_(node) {}
  int wanted_input() const override { return static_cast<int>(turns_.arm()); }
  void push(Row row, RowSink& sink) override {
    sink.append_identity(static_cast<uint64_t>(row.input));
    sink.emit(row);
    turns_.advance();
  }
  // The runtime says so when the stream is wanted, and has nothing more.
  void end_of_input(int, RowSink&) override { turns_.end(); }
  bool done() const override { return turns_.done(); }
  void save(RowState& state) const override { state.words = turns_.words(); }
  void load(const RowState& state) override { turns_.load(state.words); }

 private:
  Turns turns_;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) {
  return std::make_unique<InterleaveRows>(node);
}

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  if (!merge_arms(node, inputs, out, error)) return;
  out.domain = Domain::Data;
}

}  // namespace

ZEPHON_OP_DEF(Interleave) = {
    .name = "interleave",
    .cls = OpClass::Merge,
    .signature = "stream, cycle_length: int? >= 1, block_length: int = 1 >= 1 -> stream",
    .summary = "Takes `block_length` samples from each of its streams in turn, until all have ended.",
    .prose =
        "`cycle_length` streams take part at a time, all where it is not given. A stream that ends leaves its place to "
        "the "
        "next one that has not begun, which goes on there at once; when none is left, the others go on without it. The "
        "number "
        "of the stream is appended to the identity of its samples. The files of one pattern are read in turn by the "
        "arguments of the same names of their source: `jsonl(\"web/*.jsonl\", schema={text: str}, cycle_length=4)`.",
    .example = "stream a = range(6)\nstream b = range(4)\ninterleave(a, b, block_length=2)",
    .algebra = {.counts_arrivals = true},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows},
    .infer_stream = infer,
};

}  // namespace zephon
