#include <algorithm>

#include "ops/stream_op.h"

namespace zephon {
namespace {

class TakeStream final : public InputStream {
 public:
  explicit TakeStream(StreamContext& context)
      : InputStream(context.open_input(0)), count_(static_cast<uint64_t>(context.node().attrs.integer("count"))) {}
  Item next() override {
    if (taken_ == count_) return {};
    Item item = input_->next();
    if (!is_no_arrival(item)) ++taken_;
    return item;
  }
  uint64_t domain_size() override { return std::min(count_, input_->domain_size()); }

 private:
  uint64_t count_;
  uint64_t taken_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<TakeStream>(context); }

class TakeRows final : public RowOp {
 public:
  explicit TakeRows(const Node& node) : count_(static_cast<uint64_t>(node.attrs.integer("count"))) {}
  void push(Row row, RowSink& sink) override {
    if (done()) return;
    ++taken_;
    sink.emit(row);
  }
  bool done() const override { return taken_ == count_; }
  void save(RowState& state) const override { state.words = {taken_}; }
  void load(const RowState& state) override { taken_ = state.words.at(0); }

 private:
  uint64_t count_;
  uint64_t taken_ = 0;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) { return std::make_unique<TakeRows>(node); }

constexpr IndexMap kIndexMap = {
    .output_size = [](const Node& node,
                      uint64_t size) { return std::min(size, static_cast<uint64_t>(node.attrs.integer("count"))); },
    .input_index = [](const Node&, const EpochContext&, uint64_t, uint64_t index) { return index; },
};

void infer(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string&) {
  out = inputs[0];
  out.endless = false;
  if (out.domain != Domain::Indexed) out.domain = Domain::Data;
}

std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op) return std::nullopt;
  const bool less = outer.attrs.integer("count") < inner.attrs.integer("count");
  return MergedStep{outer.op, less ? outer.attrs : inner.attrs};
}

}  // namespace

ZEPHON_OP_DEF(Take) = {
    .name = "take",
    .cls = OpClass::Subset,
    .signature = "stream, count: int >= 0 -> stream",
    .summary = "Keeps the first `count` samples (batches, after `batch`).",
    .prose = "Nothing past them is read.",
    .example = "range(10) | take(3)",
    .algebra = {.counts_arrivals = true, .merge = merge},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows, .index_map = &kIndexMap},
    .infer_stream = infer,
};

}  // namespace zephon
