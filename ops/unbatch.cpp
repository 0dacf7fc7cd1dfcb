#include "ops/stream_op.h"

namespace zephon {
namespace {

class UnbatchStream final : public InputStream {
 public:
  explicit UnbatchStream(StreamContext& context) : InputStream(context.open_input(0)) {}
  Item next() override {
    if (child_ == batch_.members.size()) {
      Item item = input_->next();
      if (is_no_arrival(item)) return item;
      batch_ = std::move(*item.sample);
      child_ = 0;
    }
    Sample sample = std::move(batch_.members[child_]);
    append_identity(sample, child_++);
    return {std::move(sample), std::nullopt};
  }

 private:
  Sample batch_;
  size_t child_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<UnbatchStream>(context); }

void infer(const Node&, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  out.batch.reset();
  out.domain = Domain::Data;
  if (!inputs[0].batch) error = "`unbatch` takes batches apart, and must stand below `batch`";
}

}  // namespace

ZEPHON_OP_DEF(Unbatch) = {
    .name = "unbatch",
    .cls = OpClass::OneToMany,
    .signature = "stream -> stream",
    .summary = "Takes batches apart into samples.",
    .prose = "The number of the sample in its batch is appended to its identity.",
    .example = "range(5) | batch(2) | unbatch()",
    .algebra = {.counts_arrivals = true},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
