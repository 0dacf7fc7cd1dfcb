#include <fmt/format.h>

#include "ops/stream_op.h"

namespace zephon {
namespace {

enum class Policy { Fail, Skip, Quarantine, Mask };

struct Settings {
  std::string name;
  Policy policy;
  uint64_t most;  ///< errors allowed
  explicit Settings(const Node& node)
      : name(node.attrs.text("policy")),
        policy(name == "fail"   ? Policy::Fail
               : name == "skip" ? Policy::Skip
               : name == "mask" ? Policy::Mask
                                : Policy::Quarantine),
        most(node.attrs.has("max_errors") ? static_cast<uint64_t>(node.attrs.integer("max_errors")) : UINT64_MAX) {}
};

class OnErrorStream final : public InputStream {
 public:
  explicit OnErrorStream(StreamContext& context)
      : InputStream(context.open_input(0)), context_(context), node_(context.node()), settings_(node_) {}

  Item next() override {
    for (;;) {
      Item item = input_->next();
      if (!item.sample) return item;
      Sample& sample = *item.sample;
      const std::optional<Failure> failure = find_failure(sample);
      if (settings_.policy == Policy::Mask) sample.assign("valid", ready(Value::scalar(Scalar::of_bool(!failure))));
      if (!failure) return item;
      if (settings_.policy == Policy::Fail) {
        sample.verdict = std::make_shared<const Failure>(*failure);
        sample.settled = true;
        return item;
      }
      if (++errors_ > settings_.most) {
        const auto message = fmt::format("{} samples failed, and max_errors is {}; the last: {}", errors_,
                                         settings_.most, failure->message);
        return {std::nullopt, RunFailure{{"R0411", message, failure->where}, sample.id}};
      }
      context_.count_error({*failure, sample.id}, settings_.name);
      if (settings_.policy == Policy::Mask) {
        mask(sample);
        return item;
      }
    }
  }

 private:
  // The verdict of the filters first, then the guarded fields in their order.
  std::optional<Failure> find_failure(const Sample& sample) const {
    if (sample.verdict) return *sample.verdict;
    for (const std::string& name : node_.needed) {
      if (const LazyValue field = sample.find(name); field && field->force().any_failed())
        return *field->force().failure();
    }
    return std::nullopt;
  }
  void mask(Sample& sample) const {
    sample.verdict.reset();
    sample.settled = false;
    for (const std::string& name : node_.needed) {
      const LazyValue field = sample.find(name);
      const Field* declared = node_.type.find(name);
      if (!field || !field->force().any_failed() || !declared || !declared->type.has_static_shape()) continue;
      std::vector<int64_t> shape;
      for (const Dim& d : declared->type.shape) shape.push_back(d.extent);
      sample.assign(name, ready(Value(declared->type.elem, shape)));
    }
  }

  StreamContext& context_;
  const Node& node_;
  Settings settings_;
  uint64_t errors_ = 0;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<OnErrorStream>(context); }

class OnErrorRows final : public RowOp {
 public:
  explicit OnErrorRows(const Node& node) : settings_(node) {}
  void push(Row row, RowSink& sink) override {
    if (!row.failed || settings_.policy == Policy::Fail) return sink.emit(row);
    if (++errors_ > settings_.most) return sink.reject(row, "limit");
    if (settings_.policy == Policy::Mask) return sink.mask(row);
    sink.reject(row, settings_.name);
  }
  void save(RowState& state) const override { state.words = {errors_}; }
  void load(const RowState& state) override { errors_ = state.words.at(0); }

 private:
  Settings settings_;
  uint64_t errors_ = 0;
};

std::unique_ptr<RowOp> make_rows(const Node& node, const EpochContext&) { return std::make_unique<OnErrorRows>(node); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  if (!reject_batches(node, inputs[0], error)) return;
  out.domain = Domain::Data;
  if (Settings(node).policy != Policy::Mask) return;
  if (out.find("valid")) {
    error = "`on_error(mask)` adds a field `valid`, and there is one already";
  } else {
    out.fields.push_back({"valid", Type::scalar(Elem::Bool)});
  }
}

}  // namespace

ZEPHON_OP_DEF(OnError) = {
    .name = "on_error",
    .cls = OpClass::Policy,
    .signature =
        "stream, policy: enum(fail, skip, quarantine, mask), max_errors: int? >= 0, "
        "file: string = \"quarantine.jsonl\" -> stream",
    .summary = "Says what becomes of the samples that fail here.",
    .prose =
        "A sample fails here if a filter above failed on it, or a field that is assigned above and needed below. "
        "`fail` ends the run when the sample's turn comes; `skip` drops the sample and counts it; `quarantine` also "
        "writes one line of JSON to `file`, which each run begins anew; `mask` keeps it, with `valid` false and "
        "zeros in the fields that failed (where their shape is static; others still fail when they are delivered). "
        "One error more than `max_errors`, counted from the start of the pass, ends the run.",
    .example = "range(6) | x = 12 // (index - 3) | on_error(skip)",
    .algebra = {.counts_arrivals = true, .on_batches = false},
    .define = {.stream = define},
    .kernel = {.row_op = make_rows},
    .infer_stream = infer,
};

}  // namespace zephon
