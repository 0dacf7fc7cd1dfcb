#include "ops/stream_op.h"

namespace zephon {
namespace ops {
extern const OpDef Take;
}
namespace {

class SkipStream final : public InputStream {
 public:
  explicit SkipStream(StreamContext& context)
      : InputStream(context.open_input(0)), count_(static_cast<uint64_t>(context.node().attrs.integer("count"))) {}
  Item next() override {
    for (;;) {
      Item item = input_->next();
      if (is_no_arrival(item) || skipped_ == count_) return item;
      ++skipped_;
    }
  }
  uint64_t domain_size() override {
    const uint64_t size = input_->domain_size();
    return size > count_ ? size - count_ : 0;
  }
  Item at(uint64_t index) override { return input_->at(index + count_); }

 private:
  uint64_t count_;
  uint64_t skipped_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<SkipStream>(context); }

class SkipRows final : public RowOp {
 public:
  explicit SkipRows(const Node& node) : left_(static_cast<uint64_t>(node.attrs.integer("count"))) {}
  void push(Row row, RowSink& sink) override {
    if (left_ == 0) {
      sink.emit(row);
    } else {
      --left_;
    }
  }
  void save(RowState& state) const override { state.words = {left_}; }
  void load(const RowState& state) override { left_ = state.words.at(0); }

 private:
  uint64_t left_;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) { return std::make_unique<SkipRows>(node); }

uint64_t output_size(const Node& node, uint64_t size) {
  const auto count = static_cast<uint64_t>(node.attrs.integer("count"));
  if (size == UINT64_MAX) return size;  // endless
  return size > count ? size - count : 0;
}

constexpr IndexMap kIndexMap = {
    .output_size = output_size,
    .input_index = [](const Node& node, const EpochContext&, uint64_t,
                      uint64_t index) { return index + static_cast<uint64_t>(node.attrs.integer("count")); },
};

void infer(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string&) {
  out = inputs[0];
  if (out.domain != Domain::Indexed) out.domain = Domain::Data;
}

std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  const int64_t count = outer.attrs.integer("count");
  MergedStep step{inner.op, inner.attrs};
  if (inner.op == outer.op) {
    int64_t sum = 0;
    if (__builtin_add_overflow(count, inner.attrs.integer("count"), &sum)) return std::nullopt;
    step.attrs.set("count", sum);
    return step;
  }
  // More than there are. Where filters stand above, failed samples pass both.
  if (inner.op != &ops::Take || inner.type.domain != Domain::Indexed || inner.attrs.integer("count") > count)
    return std::nullopt;
  step.attrs.set("count", int64_t{0});
  return step;
}

}  // namespace

ZEPHON_OP_DEF(Skip) = {
    .name = "skip",
    .cls = OpClass::Subset,
    .signature = "stream, count: int >= 0 -> stream",
    .summary = "Drops the first `count` samples (batches, after `batch`).",
    .prose = "Fields of the samples skipped are not evaluated; only the filters above them are.",
    .example = "range(10) | skip(7)",
    .algebra = {.counts_arrivals = true, .merge = merge},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows, .index_map = &kIndexMap},
    .infer_stream = infer,
};

}  // namespace zephon
