// batch padded_batch bucket_by_length.
#include <fmt/format.h>

#include <algorithm>

#include "graph/padding.h"
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

// A field of the members of a padded batch: all of them are needed to know the shape that each takes.
class PaddedField {
 public:
  PaddedField(const Node& node, std::string field, std::vector<LazyValue> members)
      : node_(node), field_(std::move(field)), members_(std::move(members)) {}
  Value member(size_t i) {
    const Value& own = members_[i]->force();
    if (own.whole_failed()) return own;
    if (!shape_) {
      std::vector<std::vector<int64_t>> shapes;
      for (const LazyValue& member : members_)
        if (const Value& value = member->force(); !value.whole_failed()) shapes.push_back(value.shape());
      shape_ = padded_shape(node_, shapes);
    }
    if (std::string problem = longer_than(field_, own.shape(), *shape_); !problem.empty())
      return Value::failed({"R0410", std::move(problem), node_.origin});
    return padded(own, *shape_, padding_of(node_, field_, own.elem()));
  }

 private:
  const Node& node_;
  std::string field_;
  std::vector<LazyValue> members_;
  std::optional<std::vector<int64_t>> shape_;
};

class PaddedMember final : public Thunk {
 public:
  PaddedMember(std::shared_ptr<PaddedField> field, size_t member) : field_(std::move(field)), member_(member) {}
  const Value& force() override {
    if (!value_) value_ = field_->member(member_);
    return *value_;
  }

 private:
  std::shared_ptr<PaddedField> field_;
  size_t member_;
  std::optional<Value> value_;
};

// What the input of the batch leaves open is padded.
void pad_members(const Node& node, const StreamType& input, std::vector<Sample>& members) {
  for (const Field& field : input.fields) {
    if (field.type.has_static_shape()) continue;
    std::vector<LazyValue> values;
    for (const Sample& member : members)
      if (LazyValue value = member.find(field.name)) values.push_back(std::move(value));
    if (values.size() != members.size()) continue;
    auto shared = std::make_shared<PaddedField>(node, field.name, std::move(values));
    for (size_t i = 0; i < members.size(); ++i)
      members[i].assign(field.name, std::make_shared<PaddedMember>(shared, i));
  }
}

class BatchStream final : public InputStream {
 public:
  explicit BatchStream(StreamContext& context)
      : InputStream(context.open_input(0)),
        node_(context.node()),
        input_type_(context.graph().node(node_.inputs[0]).type),
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
    if (node_.op->algebra.pads) {
      pad_members(node_, input_type_, batch.members);
      return {std::move(batch), std::nullopt};
    }
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
  const StreamType& input_type_;
  size_t size_;
  bool drop_remainder_;
  std::vector<Sample> members_;
};

// One batch in the making for each bucket; at the end those that are left come in order of the buckets.
class BucketStream final : public InputStream {
 public:
  explicit BucketStream(StreamContext& context)
      : InputStream(context.open_input(0)),
        context_(context),
        node_(context.node()),
        sizes_(node_.attrs.get<std::vector<int64_t>>("batch_sizes")),
        buckets_(sizes_.size()) {}

  Item next() override {
    while (!ended_) {
      Item item = input_->next();
      if (item.failure || (item.sample && item.sample->verdict)) return item;
      if (!item.sample) {
        ended_ = true;
        break;
      }
      const Value length = context_.evaluate(node_.predicate, *item.sample)->force();
      if (length.any_failed()) {
        item.sample->verdict = std::make_shared<const Failure>(*length.failure());
        item.sample->settled = true;
        return item;
      }
      const std::vector<int64_t>& bounds = node_.attrs.get<std::vector<int64_t>>("boundaries");
      const auto bucket =
          static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), length.at(0).i) - bounds.begin());
      buckets_[bucket].push_back(std::move(*item.sample));
      if (buckets_[bucket].size() == static_cast<size_t>(sizes_[bucket])) return emit(bucket);
    }
    for (; at_ < buckets_.size(); ++at_)
      if (!buckets_[at_].empty() && !node_.attrs.flag("drop_remainder")) return emit(at_);
    return {};
  }

 private:
  Item emit(size_t bucket) {
    Sample batch;
    batch.members = std::exchange(buckets_[bucket], {});
    pad_members(node_, context_.graph().node(node_.inputs[0]).type, batch.members);
    return {std::move(batch), std::nullopt};
  }

  StreamContext& context_;
  const Node& node_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<Sample>> buckets_;
  bool ended_ = false;
  size_t at_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<BatchStream>(context); }
std::unique_ptr<SampleStream> define_buckets(StreamContext& context) { return std::make_unique<BucketStream>(context); }

// Lists of lists cannot be members of a batch; lists only of a padded one.
bool reject_lists(const Node& node, const StreamType& input, std::string& error) {
  for (const Field& field : input.fields) {
    if (is_companion(field.name) || field.name.starts_with('$')) continue;
    const bool lists = input.find(lengths_field(field.name, 1)) != nullptr;
    const bool varies = std::ranges::any_of(field.type.shape, is_varying);
    if (lists) {
      error =
          fmt::format("`{0}` is `{1}`: lists of lists cannot be batched; take one of them, `{0} = {0}[0]`, or drop it",
                      field.name, field_type_text(input, field));
    } else if (varies && !node.op->algebra.pads) {
      error =
          fmt::format("`{}` is `{}`, whose length differs from sample to sample: write `padded_batch({})`, or drop it",
                      field.name, field_type_text(input, field), node.attrs.integer("batch_size"));
    } else if (node.op->algebra.pads && error.empty()) {
      error = padding_problem(node, field);
    }
    if (!error.empty()) return false;
  }
  return true;
}

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (!reject_batches(node, inputs[0], error) || !reject_lists(node, inputs[0], error)) return;
  out.domain = Domain::Data;
  out.batch = BatchShape{node.attrs.integer("batch_size"), node.attrs.flag("drop_remainder")};
}

void infer_padded(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  infer(node, inputs, out, error);
  if (!node.attrs.has("length")) return;
  for (size_t i = 0; i < out.fields.size(); ++i) {
    Type type = out.fields[i].type;
    if (type.has_static_shape() || type.is_scalar()) continue;
    type.shape[0] = Dim::of(node.attrs.integer("length"));
    out.fields.set_type(i, std::move(type));
  }
}

void infer_buckets(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  const auto& bounds = node.attrs.get<std::vector<int64_t>>("boundaries");
  const auto& sizes = node.attrs.get<std::vector<int64_t>>("batch_sizes");
  if (!reject_batches(node, inputs[0], error) || !reject_lists(node, inputs[0], error)) return;
  for (size_t i = 1; i < bounds.size(); ++i)
    if (bounds[i] <= bounds[i - 1]) error = "the boundaries of `bucket_by_length` must rise";
  if (sizes.size() != bounds.size() + 1)
    error = fmt::format("{} boundaries make {} buckets, and {} batch sizes are given", bounds.size(), bounds.size() + 1,
                        sizes.size());
  if (!error.empty()) return;
  out.domain = Domain::Data;
  // Buckets differ in size: none is promised.
  out.batch = BatchShape{*std::ranges::max_element(sizes), false};
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

ZEPHON_OP_DEF(PaddedBatch) = {
    .name = "padded_batch",
    .cls = OpClass::ManyToOne,
    .signature =
        "stream, batch_size: int >= 1, padding: number = 0, length: int? >= 1, drop_remainder: bool = false -> stream",
    .summary = "Joins samples into batches as `batch` does, and pads fields whose shapes differ to the largest member.",
    .prose =
        "Every dimension that the type of a field leaves open grows at its end; what is new holds `padding`, or the "
        "value "
        "given for the field: `padded_batch(8, padding={tokens: -1})`, or shorter `padded_batch(8, tokens=-1)`. "
        "Strings are padded with \"\". `length` fixes the "
        "first "
        "dimension of all such fields, and a longer member fails. To know the true lengths, assign them above: `n = "
        "len(x)`.",
    .example =
        "jsonl(\"examples/data/reviews.jsonl\", schema={tags: list<str>}) | n = len(tags) | padded_batch(2, "
        "tags=\"-\")",
    .algebra = {.counts_arrivals = true, .on_batches = false, .pads = true},
    .define = {.stream = define},
    .infer_stream = infer_padded,
};

ZEPHON_OP_DEF(BucketByLength) = {
    .name = "bucket_by_length",
    .cls = OpClass::ManyToOne,
    .signature =
        "stream, length: i64, boundaries: ints, batch_sizes: ints >= 1, padding: number = 0, drop_remainder: bool = "
        "false "
        "-> stream",
    .summary = "Padded batches of samples of similar length.",
    .prose =
        "A sample goes into bucket i where i of the rising `boundaries` are not above its `length`. A bucket that "
        "holds "
        "batch_sizes[i] samples comes out at once as a batch, in order of arrival. At the end what is left comes out "
        "bucket "
        "by bucket, or is dropped with `drop_remainder=true`. Padding as in `padded_batch`.",
    .example =
        "jsonl(\"examples/data/reviews.jsonl\", schema={tags: list<str>})\n"
        "| bucket_by_length(len(tags), boundaries=[2], batch_sizes=[3, 2])",
    .algebra = {.counts_arrivals = true, .on_batches = false, .pads = true},
    .define = {.stream = define_buckets},
    .infer_stream = infer_buckets,
};

}  // namespace zephon
