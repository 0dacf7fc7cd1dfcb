#include <fmt/format.h>

#include "ops/stream_op.h"

namespace zephon {
namespace {

class ZipStream final : public SampleStream {
 public:
  explicit ZipStream(StreamContext& context) {
    for (size_t i = 0; i < context.node().inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }
  Item next() override {
    return pair([](SampleStream& arm) { return arm.next(); });
  }
  uint64_t domain_size() override { return arms_[0]->domain_size(); }
  Item at(uint64_t index) override {
    return pair([&](SampleStream& arm) { return arm.at(index); });
  }

 private:
  template <class Take>
  Item pair(Take&& take) {
    Item out = take(*arms_[0]);
    if (!out.sample) return out;
    for (size_t i = 1; i < arms_.size(); ++i) {
      Item other = take(*arms_[i]);
      if (!other.sample) return other;
      out.sample->id.words.insert(out.sample->id.words.end(), other.sample->id.words.begin(),
                                  other.sample->id.words.end());
      for (auto& field : other.sample->fields) out.sample->fields.push_back(std::move(field));
    }
    return out;
  }

  std::vector<StreamPtr> arms_;
};

std::unique_ptr<SampleStream> define(StreamContext& context) { return std::make_unique<ZipStream>(context); }

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  auto arm = [&](size_t i) {
    return i < node.input_names.size() ? fmt::format("`{}`", node.input_names[i]) : fmt::format("stream {}", i + 1);
  };
  for (size_t i = 0; i < inputs.size() && error.empty(); ++i) {
    const StreamType& input = inputs[i];
    if (input.batch) {
      error = fmt::format("`zip` pairs samples, and {} has batches: write `batch` below it", arm(i));
    } else if (input.domain != Domain::Indexed) {
      error = fmt::format(
          "`zip` needs streams whose lengths are known before the run; that of {} depends on the data, which "
          "would pair samples that do not belong together: filter below `zip`",
          arm(i));
    } else if (input.endless != inputs[0].endless) {
      error = fmt::format("{} is endless, {} is not", arm(input.endless ? i : 0), arm(input.endless ? 0 : i));
    } else if (i > 0) {
      for (const Field& field : input.fields) {
        if (out.find(field.name)) {
          error = fmt::format("{} and a stream before it both have a field `{}`: drop it, or assign it to another name",
                              arm(i), field.name);
          break;
        }
        out.fields.push_back(field);
      }
    }
  }
}

}  // namespace

ZEPHON_OP_DEF(Zip) = {
    .name = "zip",
    .cls = OpClass::Merge,
    .signature = "stream -> stream",
    .summary = "Pairs its streams: sample i has the fields of sample i of each.",
    .prose =
        "Written `zip(images, labels)`. The streams have no field in common, and as many samples each: that is known "
        "before "
        "the run, so nothing may stand in them that drops samples by their content, and is compared when the run "
        "begins. The "
        "identity of a pair is that of its members, one behind the other. `shuffle()` works below it.",
    .example = "stream a = range(6) | x = index * 2 | drop index\nstream b = range(10, 16)\nzip(a, b)",
    .algebra = {.counts_arrivals = true, .on_batches = false},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
