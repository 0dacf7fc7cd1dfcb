#include "graph/philox.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

uint64_t key_of(const Node& node, const EpochContext& epoch) {
  return shuffle_key(epoch, static_cast<uint64_t>(node.attrs.integer("seed")), node.attrs.flag("reshuffle_each_epoch"));
}

// Which of `held` samples leaves as the `ordinal`-th: the upper half of a 128-bit product, as unbiased as 64 bits
// allow.
uint64_t slot(uint64_t key, uint64_t ordinal, uint64_t held) {
  const uint64_t words[] = {key, ordinal};
  PlainNumbers numbers;
  return integer_below(numbers, hash_words(words), held);
}

class WindowStream final : public InputStream {
 public:
  explicit WindowStream(StreamContext& context)
      : InputStream(context.open_input(0)),
        size_(static_cast<size_t>(context.node().attrs.integer("buffer_size"))),
        key_(key_of(context.node(), context.epoch())) {}

  Item next() override {
    while (!ended_ && held_.size() < size_) {
      Item item = input_->next();
      if (item.failure || (item.sample && item.sample->verdict)) return item;
      if (item.sample) {
        held_.push_back(std::move(*item.sample));
      } else {
        ended_ = true;
      }
    }
    if (held_.empty()) return {};
    const size_t i = slot(key_, emitted_++, held_.size());
    std::swap(held_[i], held_.back());
    Item item{std::move(held_.back()), std::nullopt};
    held_.pop_back();
    return item;
  }

 private:
  size_t size_;
  uint64_t key_;
  std::vector<Sample> held_;
  uint64_t emitted_ = 0;
  bool ended_ = false;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<WindowStream>(context); }

// The same, pushed: a row leaves as soon as the buffer is full.
class WindowRows final : public RowOp {
 public:
  WindowRows(const Node& node, const EpochContext& epoch)
      : size_(static_cast<size_t>(node.attrs.integer("buffer_size"))), key_(key_of(node, epoch)) {}
  void push(Row row, RowSink& sink) override {
    held_.push_back(row);
    if (held_.size() == size_) release(sink);
  }
  void end_of_input(int, RowSink& sink) override {
    while (!held_.empty()) release(sink);
  }
  void save(RowState& state) const override {
    state.words = {emitted_};
    state.rows = held_;
  }
  void load(const RowState& state) override {
    emitted_ = state.words.at(0);
    held_ = state.rows;
  }

 private:
  void release(RowSink& sink) {
    const size_t i = slot(key_, emitted_++, held_.size());
    std::swap(held_[i], held_.back());
    const Row row = held_.back();
    held_.pop_back();
    sink.emit(row);
  }

  size_t size_;
  uint64_t key_;
  std::vector<Row> held_;
  uint64_t emitted_ = 0;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext& epoch) {
  return std::make_unique<WindowRows>(node, epoch);
}

}  // namespace

ZEPHON_OP_DEF(ShuffleWindow) = {
    .name = "shuffle_window",
    .cls = OpClass::Reorder,
    .signature = "stream, buffer_size: int >= 1, seed: int = 0, reshuffle_each_epoch: bool = true -> stream",
    .summary = "Shuffles within a window: each sample that leaves is chosen at random among `buffer_size` held back.",
    .prose =
        "Written `shuffle(buffer_size=n)`. Works on any stream, and holds the samples of the window, so it is biased "
        "and needs memory; `shuffle()` is neither where the positions are known. The k-th sample to leave is "
        "number floor(h * held / 2^64) of those held, h = XXH3-64 of (key, k); the last one takes its place.",
    .example = "range(8) | filter index != 3 | shuffle(buffer_size=4, seed=7)",
    .surface = "shuffle",
    .effects = {.random = true},
    .algebra = {.counts_arrivals = true, .keeps_order = false},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows},
    .infer_stream = infer_counted,
};

}  // namespace zephon
