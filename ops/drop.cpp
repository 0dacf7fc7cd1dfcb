#include <fmt/format.h>

#include <algorithm>

#include "ops/stream_op.h"

namespace zephon {
namespace {

bool dropped(const Node& node, const std::string& field) {
  const auto& fields = node.attrs.get<std::vector<std::string>>("fields");
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

class DropStream final : public InputStream {
 public:
  explicit DropStream(StreamContext& context) : InputStream(context.open_input(0)), node_(context.node()) {}
  Item next() override { return drop(input_->next()); }
  Item at(uint64_t index) override { return drop(input_->at(index)); }

 private:
  Item drop(Item item) {
    if (item.sample) {
      for_each_member(*item.sample, [&](Sample& sample) {
        std::erase_if(sample.fields, [&](const auto& field) { return dropped(node_, field.first); });
      });
    }
    return item;
  }

  const Node& node_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<DropStream>(context); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  for (const std::string& name : node.attrs.get<std::vector<std::string>>("fields"))
    if (!inputs[0].find(name)) error = fmt::format("no field `{}` here", name);
  out.fields.erase_if([&](const Field& field) { return dropped(node, field.name); });
}

}  // namespace

ZEPHON_OP_DEF(Drop) = {
    .name = "drop",
    .cls = OpClass::OneToOne,
    .signature = "stream, fields: strings -> stream",
    .summary = "Removes the named fields and keeps the others.",
    .example = "range(4) | x = index * 2 | drop index",
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
