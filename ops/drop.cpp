#include <fmt/format.h>

#include <algorithm>

#include "ops/stream_op.h"

namespace zephon {
namespace ops {
extern const OpDef Select;
}
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

std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op && inner.op != &ops::Select) return std::nullopt;
  MergedStep step{inner.op, inner.attrs};
  auto fields = inner.attrs.get<std::vector<std::string>>("fields");
  const auto& gone = outer.attrs.get<std::vector<std::string>>("fields");
  if (inner.op == outer.op)
    fields.insert(fields.end(), gone.begin(), gone.end());
  else
    std::erase_if(fields, [&](const std::string& field) { return dropped(outer, field); });
  step.attrs.set("fields", std::move(fields));
  return step;
}

}  // namespace

ZEPHON_OP_DEF(Drop) = {
    .name = "drop",
    .cls = OpClass::OneToOne,
    .signature = "stream, fields: strings -> stream",
    .summary = "Removes the named fields and keeps the others.",
    .example = "range(4) | x = index * 2 | drop index",
    .algebra = {.merge = merge},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
