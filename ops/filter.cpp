#include "ops/stream_op.h"

namespace zephon {
namespace {

// A predicate that fails leaves a verdict with the sample, for a later filter of the same region may still say false,
// and false beats failure.
class FilterStream final : public InputStream {
 public:
  explicit FilterStream(StreamContext& context) : InputStream(context.open_input(0)), context_(context) {}
  Item next() override {
    for (;;) {
      Item item = input_->next();
      if (!item.sample || keeps(*item.sample)) return item;
    }
  }
  Item at(uint64_t index) override {
    Item item = input_->at(index);
    if (item.sample && !keeps(*item.sample)) item.sample.reset();
    return item;
  }

 private:
  bool keeps(Sample& sample) {
    if (sample.settled) return true;
    const LazyValue verdict = context_.evaluate(context_.node().predicate, sample);
    const Value& value = verdict->force();
    if (!value.any_failed()) return value.at(0).i != 0;
    if (!sample.verdict || (sample.failed_by && is_written_before(context_.node(), *sample.failed_by))) {
      sample.verdict = std::make_shared<const Failure>(*value.failure());
      sample.failed_by = &context_.node();
    }
    return true;
  }

  StreamContext& context_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<FilterStream>(context); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (!reject_batches(node, inputs[0], error)) return;
  if (out.domain == Domain::Indexed) out.domain = Domain::Holes;
}

}  // namespace

ZEPHON_OP_DEF(Filter) = {
    .name = "filter",
    .cls = OpClass::Subset,
    .signature = "stream, predicate: bool -> stream",
    .summary = "Keeps the samples for which the predicate is true.",
    .prose =
        "Where the predicate fails, the sample fails, unless another filter says false before the next operator that "
        "counts samples (`take`, `batch`, ...): false beats failure, in whatever order the filters stand.",
    .example = "range(10) | filter index % 3 != 0",
    .algebra = {.on_batches = false},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
