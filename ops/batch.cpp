#include <fmt/format.h>

#include "ops/stream_op.h"

namespace zephon {
namespace {

std::string shape_text(const Value& value) { return fmt::format("[{}]", fmt::join(value.shape(), ", ")); }

// A field of a member: its own value, if its shape is that of the first member's.
class SameShape final : public Thunk {
 public:
  SameShape(LazyValue own, LazyValue first, std::string field, const SampleId& first_id, Span where)
      : own_(std::move(own)),
        first_(std::move(first)),
        field_(std::move(field)),
        first_id_(to_string(first_id)),
        where_(where) {}
  const Value& force() override {
    if (!value_) {
      const Value& own = own_->force();
      const Value& first = first_->force();
      if (own.whole_failed() || first.whole_failed() || own.shape() == first.shape()) {
        value_ = own;
      } else {
        value_ = Value::failed({"R0410",
                                fmt::format("`{}` has shape {}, but {} in the first sample of its batch, {}", field_,
                                            shape_text(own), shape_text(first), first_id_),
                                where_});
      }
    }
    return *value_;
  }

 private:
  LazyValue own_, first_;
  std::string field_, first_id_;
  Span where_;
  std::optional<Value> value_;
};

class BatchStream final : public InputStream {
 public:
  explicit BatchStream(StreamContext& context)
      : InputStream(context.open_input(0)),
        node_(context.node()),
        size_(static_cast<size_t>(node_.attrs.integer("batch_size"))),
        drop_remainder_(node_.attrs.flag("drop_remainder")) {}

  Item next() override {
    while (members_.size() < size_) {
      Item item = input_->next();
      if (item.failure || (item.sample && item.sample->verdict)) return item;
      if (!item.sample) break;
      members_.push_back(std::move(*item.sample));
    }
    if (members_.empty() || (drop_remainder_ && members_.size() < size_)) return {};
    Sample batch;
    batch.members = std::exchange(members_, {});
    const Sample first = batch.members.front();
    for (size_t i = 1; i < batch.members.size(); ++i) {
      for (auto& [name, value] : batch.members[i].fields) {
        const Field* field = node_.type.find(name);
        if (field && field->type.has_static_shape()) continue;
        value = std::make_shared<SameShape>(value, first.find(name), name, first.id, node_.origin);
      }
    }
    return {std::move(batch), std::nullopt};
  }

 private:
  const Node& node_;
  size_t size_;
  bool drop_remainder_;
  std::vector<Sample> members_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<BatchStream>(context); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (!reject_batches(node, inputs[0], error)) return;
  out.domain = Domain::Data;
  out.batch = BatchShape{node.attrs.integer("batch_size"), node.attrs.flag("drop_remainder")};
}

}  // namespace

ZEPHON_OP_DEF(Batch) = {
    .name = "batch",
    .cls = OpClass::ManyToOne,
    .signature = "stream, batch_size: int >= 1, drop_remainder: bool = false -> stream",
    .summary = "Joins each `batch_size` samples in a row into one batch.",
    .prose =
        "The last batch may be smaller; `drop_remainder=true` drops it. The first member fixes the shape of each "
        "field; a member that deviates fails. Expressions below apply to each member, with the member's identity.",
    .example = "range(10) | batch(4)",
    .algebra = {.counts_arrivals = true, .on_batches = false},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
