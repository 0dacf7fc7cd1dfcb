#include "ops/stream_op.h"

namespace zephon {
namespace {

// Nothing is evaluated here: each field gets a promise, kept where the value is needed.
class AssignStream final : public InputStream {
 public:
  explicit AssignStream(StreamContext& context) : InputStream(context.open_input(0)), context_(context) {}
  Item next() override { return assign(input_->next()); }
  Item at(uint64_t index) override { return assign(input_->at(index)); }

 private:
  Item assign(Item item) {
    if (item.sample) {
      for_each_member(*item.sample, [&](Sample& sample) {
        for (const Assign& a : context_.node().assigns) sample.assign(a.field, context_.evaluate(a.expr, sample));
      });
    }
    return item;
  }

  StreamContext& context_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<AssignStream>(context); }

}  // namespace

ZEPHON_OP_DEF(AssignFields) = {
    .name = "assign",
    .cls = OpClass::OneToOne,
    .signature = "stream -> stream",
    .summary = "Gives each sample a field, or a new value to an old one: `field = expression`.",
    .prose =
        "An assignment fails only for the samples whose value is needed, by a filter or by what is delivered. After "
        "`batch` it applies to each member.",
    .example = "range(4) | x = index * 2",
    .define = {.stream = define},
};

}  // namespace zephon
