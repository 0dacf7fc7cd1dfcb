#include "ops/stream_op.h"

namespace zephon {
namespace {

constexpr uint64_t kEndless = UINT64_MAX;

uint64_t passes_of(const Node& node) {
  return node.attrs.has("count") ? static_cast<uint64_t>(node.attrs.integer("count")) : kEndless;
}

uint64_t output_size(const Node& node, uint64_t size) {
  uint64_t product = 0;
  return __builtin_mul_overflow(passes_of(node), size, &product) ? kEndless : product;
}

// Opens its input once per pass, so that shuffles, draws and identities above know the pass.
class RepeatStream final : public SampleStream {
 public:
  explicit RepeatStream(StreamContext& context) : context_(context), passes_(passes_of(context.node())) {}

  Item next() override {
    for (; pass_ < passes_; ++pass_, input_.reset()) {
      const bool fresh = !input_;
      if (fresh) input_ = context_.open_input(0, {pass_});
      Item item = input_->next();
      if (item.sample || item.failure) return item;
      if (passes_ == kEndless && fresh && nothing_comes()) break;
    }
    passes_ = pass_;
    return {};
  }
  uint64_t domain_size() override {
    if (!indexed_) indexed_ = context_.open_input(0, {0});
    return output_size(context_.node(), indexed_->domain_size());
  }
  Item at(uint64_t index) override {
    if (!indexed_) indexed_ = context_.open_input(0, {0});
    const uint64_t size = indexed_->domain_size();
    const uint64_t pass = index / size;
    if (pass != indexed_pass_) {
      indexed_ = context_.open_input(0, {pass});
      indexed_pass_ = pass;
    }
    return indexed_->at(index % size);
  }

 private:
  // For ever through nothing: the domain is empty, or where there is none to ask, a pass was.
  bool nothing_comes() {
    const NodeId input = context_.node().inputs[0];
    return context_.graph().node(input).type.domain == Domain::Data || input_->domain_size() == 0;
  }

  StreamContext& context_;
  uint64_t passes_;
  uint64_t pass_ = 0;
  StreamPtr input_;
  StreamPtr indexed_;
  uint64_t indexed_pass_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<RepeatStream>(context); }

constexpr IndexMap kIndexMap = {
    .output_size = output_size,
    .input_index = [](const Node&, const EpochContext&, uint64_t size, uint64_t index) { return index % size; },
    .appends_pass = true,
};

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string&) {
  out = inputs[0];
  if (!node.attrs.has("count")) out.endless = true;
}

}  // namespace

ZEPHON_OP_DEF(Repeat) = {
    .name = "repeat",
    .cls = OpClass::Repeat,
    .signature = "stream, count: int? >= 0 -> stream",
    .summary = "Goes through its input `count` times, or for ever.",
    .prose =
        "Each pass draws anew and shuffles anew; its number is part of the identity of the samples. An endless repeat "
        "ends at once where its domain is empty or, below operators that count samples, where a pass was. Epochs "
        "(`--epochs`) are the outermost repeat.",
    .example = "range(3) | repeat(2)",
    .define = {.stream = define},
    .kernel = {.index_map = &kIndexMap},
    .infer_stream = infer,
};

}  // namespace zephon
