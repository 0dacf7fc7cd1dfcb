#include <fmt/format.h>

#include "ops/stream_op.h"

namespace zephon {
namespace {

struct Share {
  uint64_t count, index;
  explicit Share(const Node& node)
      : count(static_cast<uint64_t>(node.attrs.integer("num_shards"))),
        index(static_cast<uint64_t>(node.attrs.integer("index"))) {}
  bool holds(uint64_t ordinal) const { return ordinal % count == index; }
  uint64_t size(uint64_t of) const {
    if (of == UINT64_MAX) return of;  // endless
    return of > index ? (of - index - 1) / count + 1 : 0;
  }
  uint64_t input_index(uint64_t i) const { return i * count + index; }
};

class ShardStream final : public InputStream {
 public:
  explicit ShardStream(StreamContext& context) : InputStream(context.open_input(0)), share_(context.node()) {}
  Item next() override {
    for (;;) {
      Item item = input_->next();
      if (is_no_arrival(item) || share_.holds(arrived_++)) return item;
    }
  }
  uint64_t domain_size() override { return share_.size(input_->domain_size()); }
  Item at(uint64_t index) override { return input_->at(share_.input_index(index)); }

 private:
  Share share_;
  uint64_t arrived_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<ShardStream>(context); }

class ShardRows final : public RowOp {
 public:
  explicit ShardRows(const Node& node) : share_(node) {}
  void push(Row row, RowSink& sink) override {
    if (share_.holds(arrived_++)) sink.emit(row);
  }
  void save(RowState& state) const override { state.words = {arrived_}; }
  void load(const RowState& state) override { arrived_ = state.words.at(0); }

 private:
  Share share_;
  uint64_t arrived_ = 0;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) { return std::make_unique<ShardRows>(node); }

constexpr IndexMap kIndexMap = {
    .output_size = [](const Node& node, uint64_t size) { return Share(node).size(size); },
    .input_index = [](const Node& node, const EpochContext&, uint64_t,
                      uint64_t index) { return Share(node).input_index(index); },
};

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (out.domain != Domain::Indexed) out.domain = Domain::Data;
  const Share share(node);
  if (share.index >= share.count)
    error = fmt::format("`index` is {}, and there are {} shards, numbered from 0", share.index, share.count);
}

// Of each `count` the `index`-th, and of these each `outer.count` the `outer.index`-th.
std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op) return std::nullopt;
  const int64_t count = inner.attrs.integer("num_shards");
  int64_t shards = 0;
  if (__builtin_mul_overflow(count, outer.attrs.integer("num_shards"), &shards)) return std::nullopt;
  MergedStep step{outer.op, outer.attrs};
  step.attrs.set("num_shards", shards);
  step.attrs.set("index", inner.attrs.integer("index") + count * outer.attrs.integer("index"));
  return step;
}

}  // namespace

ZEPHON_OP_DEF(Shard) = {
    .name = "shard",
    .cls = OpClass::Subset,
    .signature = "stream, num_shards: int >= 1, index: int >= 0 -> stream",
    .summary = "Keeps each sample whose number in the stream, modulo `num_shards`, is `index`.",
    .example = "range(10) | shard(3, 1)",
    .algebra = {.counts_arrivals = true, .merge = merge},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows, .index_map = &kIndexMap},
    .infer_stream = infer,
};

}  // namespace zephon
