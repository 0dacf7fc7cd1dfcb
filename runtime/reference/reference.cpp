#include "runtime/reference/reference.h"

#include <algorithm>

namespace zephon {
namespace {

// Evaluates when asked, and remembers. Holds the fields as they were where the expression was assigned.
class ExprThunk final : public Thunk {
 public:
  ExprThunk(const Graph& graph, const DataConstants& constants, ExprId expr, const Sample& sample, EpochContext epoch)
      : graph_(graph),
        constants_(constants),
        expr_(expr),
        fields_(sample.fields),
        id_(sample.id),
        epoch_(std::move(epoch)) {}

  const Value& force() override {
    if (!value_) {
      auto lookup = [this](const std::string& name) -> Value {
        for (const auto& [field, value] : fields_)
          if (field == name) return value->force();
        ZEPHON_CHECK(false, "no field `{}`", name);
      };
      SampleEvaluator evaluator(graph_, constants_, lookup, id_.hash(), epoch_);
      value_ = evaluator.evaluate(expr_);
      fields_.clear();
    }
    return *value_;
  }

 private:
  const Graph& graph_;
  const DataConstants& constants_;
  ExprId expr_;
  std::vector<std::pair<std::string, LazyValue>> fields_;
  SampleId id_;
  EpochContext epoch_;
  std::optional<Value> value_;
};

// Memory for what a source reads at one position.
class Scratch {
 public:
  static void* allocate(void* self, size_t bytes) {
    auto& blocks = static_cast<Scratch*>(self)->blocks_;
    constexpr std::align_val_t kAlign{64};
    blocks.emplace_back(::operator new(bytes, kAlign), [](void* p) { ::operator delete (p, std::align_val_t{64}); });
    return blocks.back().get();
  }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
};

class SourceStream final : public SampleStream {
 public:
  SourceStream(const OpenSources& sources, const Node& node, NodeId id, const EpochContext& epoch)
      : sources_(sources), source_(sources.at(id)), node_(node), id_(id), epoch_(epoch) {}
  Item next() override { return position_ < source_.size() ? at(position_++) : Item{}; }
  uint64_t domain_size() override { return source_.size(); }
  Item at(uint64_t position) override {
    Scratch scratch;
    NativeCall allocator;
    allocator.allocate = Scratch::allocate;
    allocator.context = &scratch;
    std::vector<TensorRef> columns(node_.type.fields.size());
    source_.read(position, columns, allocator);
    Sample sample;
    sample.id = sources_.identity(id_, position, epoch_);
    for (size_t i = 0; i < columns.size(); ++i)
      sample.fields.emplace_back(node_.type.fields[i].name, ready(to_value(columns[i])));
    return {std::move(sample), std::nullopt};
  }

 private:
  const OpenSources& sources_;
  const Source& source_;
  const Node& node_;
  NodeId id_;
  EpochContext epoch_;
  uint64_t position_ = 0;
};

// What an operator that counts arrivals reads: filters below it cannot overrule a verdict any more.
class RegionEnd final : public SampleStream {
 public:
  explicit RegionEnd(std::unique_ptr<SampleStream> input) : input_(std::move(input)) {}
  Item next() override { return settle(input_->next()); }
  uint64_t domain_size() override { return input_->domain_size(); }
  Item at(uint64_t index) override { return settle(input_->at(index)); }

 private:
  static Item settle(Item item) {
    if (item.sample && item.sample->verdict) item.sample->settled = true;
    return item;
  }
  std::unique_ptr<SampleStream> input_;
};

}  // namespace

// What the definition of one node sees, in one epoch and pass.
class ReferenceContext final : public StreamContext {
 public:
  ReferenceContext(ReferenceRun& run, NodeId id, EpochContext epoch)
      : run_(run), id_(id), node_(run.graph_.node(id)), epoch_(std::move(epoch)) {}
  const Graph& graph() const override { return run_.graph_; }
  const Node& node() const override { return node_; }
  const EpochContext& epoch() const override { return epoch_; }
  std::unique_ptr<SampleStream> open_input(size_t i, std::vector<uint64_t> passes) override {
    EpochContext inner = epoch_;
    inner.passes.insert(inner.passes.end(), passes.begin(), passes.end());
    auto input = open(run_, node_.inputs[i], std::move(inner));
    if (!node_.op->algebra.counts_arrivals) return input;
    return std::make_unique<RegionEnd>(std::move(input));
  }
  LazyValue evaluate(ExprId expr, const Sample& sample) override {
    return std::make_shared<ExprThunk>(run_.graph_, run_.constants_, expr, sample, epoch_);
  }
  void count_error(const RunFailure& failure, const std::string& policy) override {
    run_.reject({{failure.failure, failure.id, epoch_.epoch}, policy, id_});
  }

  static std::unique_ptr<SampleStream> open(ReferenceRun& run, NodeId id, EpochContext epoch);
  SampleStream::Item passed(SampleStream::Item item) { return run_.passed(id_, std::move(item)); }

 private:
  ReferenceRun& run_;
  NodeId id_;
  const Node& node_;
  EpochContext epoch_;
};

namespace {

// A stream together with the context that its operator keeps a reference to.
class NodeStream final : public SampleStream {
 public:
  NodeStream(ReferenceRun& run, NodeId id, EpochContext epoch, const OpDef& op)
      : context_(run, id, std::move(epoch)), stream_(op.define.stream(context_)) {}
  NodeStream(ReferenceRun& run, NodeId id, EpochContext epoch, std::unique_ptr<SampleStream> source)
      : context_(run, id, std::move(epoch)), stream_(std::move(source)) {}
  Item next() override { return context_.passed(stream_->next()); }
  uint64_t domain_size() override { return stream_->domain_size(); }
  Item at(uint64_t index) override { return context_.passed(stream_->at(index)); }

 private:
  ReferenceContext context_;
  std::unique_ptr<SampleStream> stream_;
};

}  // namespace

std::unique_ptr<SampleStream> ReferenceContext::open(ReferenceRun& run, NodeId id, EpochContext epoch) {
  const Node& node = run.graph_.node(id);
  if (node.op->cls == OpClass::Source)
    return std::make_unique<NodeStream>(run, id, epoch, std::make_unique<SourceStream>(*run.sources_, node, id, epoch));
  ZEPHON_CHECK(node.op->define.stream, "operator `{}` has no definition", node.op->name);
  return std::make_unique<NodeStream>(run, id, std::move(epoch), *node.op);
}

ReferenceRun::ReferenceRun(const Graph& graph, ReferenceOptions options, std::shared_ptr<const OpenSources> sources)
    : graph_(graph),
      options_(std::move(options)),
      sources_(std::move(sources)),
      constants_(graph, options_.base_dir),
      samples_out_(std::make_unique<std::atomic<int64_t>[]>(graph.node_count())) {}

ReferenceRun::~ReferenceRun() = default;

std::unique_ptr<ReferenceRun> ReferenceRun::open(const Graph& graph, ReferenceOptions options, Failure& failure,
                                                 std::shared_ptr<const OpenSources> sources) {
  if (!sources) sources = open_sources(graph, {options.base_dir}, failure);
  if (!sources) return nullptr;
  return std::unique_ptr<ReferenceRun>(new ReferenceRun(graph, std::move(options), std::move(sources)));
}

std::unique_ptr<SampleStream> ReferenceRun::open_stream(NodeId node, uint64_t epoch) {
  return ReferenceContext::open(*this, node, {options_.seed, epoch, {}});
}

SampleStream::Item ReferenceRun::passed(NodeId node, SampleStream::Item item) {
  if (options_.stop && *options_.stop) {
    stopped_ = true;
    return {std::nullopt, RunFailure{{"R0506", "asked to end", {}}, {}}};
  }
  if (item.sample) samples_out_[static_cast<size_t>(node.index)].fetch_add(1, std::memory_order_relaxed);
  return item;
}

std::optional<Sample> ReferenceRun::next_sample() {
  while (!failure_ && !stopped_ && epoch_ < options_.epochs) {
    if (!stream_) stream_ = open_stream(graph_.output(), epoch_);
    SampleStream::Item item = stream_->next();
    if (stopped_) break;
    if (item.failure) {
      failure_ = std::move(item.failure);
      failure_->epoch = epoch_;
    } else if (!item.sample) {
      stream_.reset();
      ++epoch_;
    } else if (item.sample->verdict) {
      failure_ = RunFailure{*item.sample->verdict, item.sample->id, epoch_};
    } else {
      return std::move(item.sample);
    }
  }
  stream_.reset();
  return std::nullopt;
}

std::optional<ReferenceRecord> ReferenceRun::next() {
  std::optional<Sample> sample = next_sample();
  return sample ? deliver(*sample) : std::nullopt;
}

std::optional<ReferenceRecord> ReferenceRun::deliver(const Sample& sample) {
  ReferenceRecord record;
  record.is_batch = !sample.members.empty();
  record.epoch = epoch_;
  const FieldList& fields = graph_.node(graph_.output()).type.fields;
  std::vector<std::vector<const Value*>> values(fields.size());
  // Member by member, so that the first sample to fail is the one reported.
  auto collect = [&](const Sample& member) {
    record.ids.push_back(member.id);
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].name.starts_with('$')) continue;
      const LazyValue field = member.find(fields[i].name);
      ZEPHON_CHECK(field, "no field `{}` to deliver", fields[i].name);
      const Value& value = field->force();
      if (value.any_failed()) {
        failure_ = RunFailure{*value.failure(), member.id, epoch_};
        return false;
      }
      values[i].push_back(&value);
    }
    return true;
  };
  if (record.is_batch) {
    for (const Sample& member : sample.members)
      if (!collect(member)) return std::nullopt;
  } else if (!collect(sample)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (values[i].empty()) continue;
    record.fields.emplace_back(fields[i].name, record.is_batch ? stack_values(values[i]) : *values[i][0]);
  }
  return record;
}

void ReferenceRun::reject(const Rejected& rejected) {
  ++errors_[rejected.policy];
  if (on_rejected_) on_rejected_(rejected);
}

Value stack_values(const std::vector<const Value*>& values) {
  const Value& first = *values.front();
  std::vector<int64_t> shape = first.shape();
  shape.insert(shape.begin(), static_cast<int64_t>(values.size()));
  Value out(first.elem(), shape);
  size_t at = 0;
  for (const Value* value : values) {
    if (is_string(first.elem())) {
      for (const std::string& s : value->string_items()) out.mutable_string_items()[at++] = s;
    } else {
      std::copy(value->bytes().begin(), value->bytes().end(), out.mutable_bytes().begin() + static_cast<int64_t>(at));
      at += value->bytes().size();
    }
  }
  return out;
}

}  // namespace zephon
