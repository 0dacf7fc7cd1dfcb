#include "ops/stream_op.h"

namespace zephon {
namespace {

uint64_t key_of(const Node& node, const EpochContext& epoch) {
  return shuffle_key(epoch, static_cast<uint64_t>(node.attrs.integer("seed")), node.attrs.flag("reshuffle_each_epoch"));
}

// Walks the domain in permuted order. What a filter above has dropped stays dropped, so that shuffling before or after
// a filter is the same.
class ShuffleStream final : public InputStream {
 public:
  explicit ShuffleStream(StreamContext& context)
      : InputStream(context.open_input(0)), key_(key_of(context.node(), context.epoch())) {}
  Item next() override {
    const uint64_t size = input_->domain_size();
    while (index_ < size) {
      Item item = at(index_++);
      if (item.sample || item.failure) return item;
    }
    return {};
  }
  Item at(uint64_t index) override { return input_->at(permute_index(key_, input_->domain_size(), index)); }

 private:
  uint64_t key_;
  uint64_t index_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<ShuffleStream>(context); }

constexpr IndexMap kIndexMap = {
    .output_size = [](const Node&, uint64_t size) { return size; },
    .input_index = [](const Node& node, const EpochContext& epoch, uint64_t size,
                      uint64_t index) { return permute_index(key_of(node, epoch), size, index); },
};

void infer(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (out.endless)
    error = "an endless stream has no order to draw from; shuffle above `repeat`, or give a `buffer_size`";
}

}  // namespace

ZEPHON_OP_DEF(Shuffle) = {
    .name = "shuffle",
    .cls = OpClass::Reorder,
    .signature = "stream, seed: int = 0, reshuffle_each_epoch: bool = true -> stream",
    .summary = "Puts the whole data set into a pseudo-random order, without memory.",
    .prose =
        "The order is a keyed bijection of the positions: a Feistel network of 4 rounds with cycle walking. Needs a "
        "stream whose positions are known before the data is read; elsewhere use `shuffle(buffer_size=n)`. Filters "
        "above leave holes, so a filter may stand before or after: the samples and their order are the same.",
    .example = "range(8) | shuffle(seed=7)",
    .effects = {.random = true},
    .algebra = {.needs_domain = true, .keeps_order = false},
    .define = {.stream = define},
    .kernel = {.index_map = &kIndexMap},
    .infer_stream = infer,
};

}  // namespace zephon
