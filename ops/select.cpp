#include <fmt/format.h>

#include <algorithm>

#include "ops/stream_op.h"

namespace zephon {
namespace ops {
extern const OpDef Drop;
}
namespace {

const std::vector<std::string>& fields_of(const Node& node) {
  return node.attrs.get<std::vector<std::string>>("fields");
}

class SelectStream final : public InputStream {
 public:
  explicit SelectStream(StreamContext& context) : InputStream(context.open_input(0)), node_(context.node()) {}
  Item next() override { return select(input_->next()); }
  Item at(uint64_t index) override { return select(input_->at(index)); }

 private:
  Item select(Item item) {
    if (item.sample) {
      for_each_member(*item.sample, [&](Sample& sample) {
        std::vector<std::pair<std::string, LazyValue>> kept;
        for (const std::string& name : fields_of(node_)) kept.emplace_back(name, sample.find(name));
        sample.fields = std::move(kept);
      });
    }
    return item;
  }

  const Node& node_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<SelectStream>(context); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  out.fields.clear();
  for (const std::string& name : fields_of(node)) {
    const Field* field = inputs[0].find(name);
    if (!field) {
      error = fmt::format("no field `{}` here", name);
    } else if (out.find(name)) {
      error = fmt::format("field `{}` is named twice", name);
    } else {
      out.fields.push_back(*field);
    }
  }
}

// Of what another choice has left, which is all that was there.
std::optional<MergedStep> merge(const Node& outer, const Node& inner) {
  if (inner.op != outer.op && inner.op != &ops::Drop) return std::nullopt;
  return MergedStep{outer.op, outer.attrs};
}

}  // namespace

ZEPHON_OP_DEF(Select) = {
    .name = "select",
    .cls = OpClass::OneToOne,
    .signature = "stream, fields: strings -> stream",
    .summary = "Keeps the named fields, in the order named.",
    .example = "range(4) | x = index * 2 | select x",
    .algebra = {.merge = merge},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
