#include "ops/stream_op.h"

namespace zephon {
namespace {

class ConcatenateStream final : public SampleStream {
 public:
  explicit ConcatenateStream(StreamContext& context) {
    for (size_t i = 0; i < context.node().inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }
  Item next() override {
    for (; arm_ < arms_.size(); ++arm_) {
      Item item = arms_[arm_]->next();
      if (item.sample || item.failure) return marked(std::move(item), arm_);
    }
    return {};
  }
  uint64_t domain_size() override {
    uint64_t size = 0;
    for (const StreamPtr& arm : arms_)
      if (__builtin_add_overflow(size, arm->domain_size(), &size)) return UINT64_MAX;
    return size;
  }
  Item at(uint64_t index) override {
    for (size_t arm = 0; arm < arms_.size(); ++arm) {
      const uint64_t size = arms_[arm]->domain_size();
      if (index < size) return marked(arms_[arm]->at(index), arm);
      index -= size;
    }
    return {};
  }

 private:
  static Item marked(Item item, size_t arm) {
    if (item.sample) append_identity(*item.sample, arm);
    return item;
  }

  std::vector<StreamPtr> arms_;
  size_t arm_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<ConcatenateStream>(context); }

class ConcatenateRows final : public RowOp {
 public:
  explicit ConcatenateRows(const Node& node) : ended_(node.inputs.size()) {}
  int wanted_input() const override { return static_cast<int>(arm_); }
  void push(Row row, RowSink& sink) override {
    sink.append_identity(static_cast<uint64_t>(row.input));
    sink.emit(row);
  }
  void end_of_input(int input, RowSink&) override {
    ended_[static_cast<size_t>(input)] = 1;
    while (arm_ + 1 < ended_.size() && ended_[arm_]) ++arm_;
  }
  bool done() const override { return arm_ + 1 == ended_.size() && ended_[arm_]; }
  void save(RowState& state) const override {
    state.words = {arm_};
    state.words.insert(state.words.end(), ended_.begin(), ended_.end());
  }
  void load(const RowState& state) override {
    arm_ = state.words.at(0);
    ended_.assign(state.words.begin() + 1, state.words.end());
  }

 private:
  size_t arm_ = 0;
  std::vector<uint8_t> ended_;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) {
  return std::make_unique<ConcatenateRows>(node);
}

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  merge_arms(node, inputs, out, error);
}

}  // namespace

ZEPHON_OP_DEF(Concatenate) = {
    .name = "concatenate",
    .cls = OpClass::Merge,
    .signature = "stream -> stream",
    .summary = "Goes through its streams one after the other.",
    .prose =
        "The streams must have the same fields. The number of the stream is appended to the identity of its samples.",
    .example = "stream a = range(2)\nstream b = range(3)\nconcatenate(a, b)",
    .define = {.stream = define},
    .kernel = {.row_op = make_rows},
    .infer_stream = infer,
};

}  // namespace zephon
