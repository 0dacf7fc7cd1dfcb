#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "graph/pairs.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

// One behind the other: words of the identities, and fields, without those that are there already.
void join_into(Sample& pair, Sample other) {
  pair.id.words.insert(pair.id.words.end(), other.id.words.begin(), other.id.words.end());
  for (auto& field : other.fields)
    if (!pair.find(field.first)) pair.fields.push_back(std::move(field));
}

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
      join_into(*out.sample, std::move(*other.sample));
    }
    return out;
  }

  std::vector<StreamPtr> arms_;
};

// By key: graph/pairs.h has the rule.
class JoinStream final : public SampleStream {
 public:
  explicit JoinStream(StreamContext& context)
      : node_(context.node()),
        most_(static_cast<size_t>(node_.attrs.integer("buffer_size"))),
        waiting_(node_.inputs.size()) {
    for (size_t i = 0; i < node_.inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }

  Item next() override {
    while (!first_ended_) {
      if (!current_) {
        Item item = arms_[0]->next();
        if (item.failure) return item;
        if (!item.sample) {
          first_ended_ = true;
          break;
        }
        if (Item out; !admit(item, out)) return out;
        current_ = std::move(item.sample);
        arm_ = 1;
      }
      for (; arm_ < arms_.size(); ++arm_) {
        Item item;
        if (!find_partner(item)) return item;
      }
      Item out;
      out.sample = *std::exchange(current_, std::nullopt);
      for (size_t i = 1; i < arms_.size(); ++i) {
        auto partner = at(i, key_);
        join_into(*out.sample, std::move(partner->sample));
        waiting_[i].erase(partner);
      }
      return out;
    }
    for (; last_ < arms_.size(); ++last_) {
      if (!waiting_[last_].empty()) {
        Waiting one = std::move(waiting_[last_].front());
        waiting_[last_].pop_front();
        return failed(std::move(one.sample), never_asked_for(node_, one.key, last_));
      }
      Item item = arms_[last_]->next();
      if (item.failure) return item;
      if (!item.sample) continue;
      if (Item out; !admit(item, out)) return out;
      return failed(std::move(*item.sample), never_asked_for(node_, key_, last_));
    }
    return {};
  }

 private:
  struct Waiting {
    std::string key;
    Sample sample;
  };
  std::deque<Waiting>::iterator at(size_t arm, const std::string& key) {
    return std::ranges::find(waiting_[arm], key, &Waiting::key);
  }
  // True where the stream of `arm_` has the partner of the current sample; else what comes out before it.
  bool find_partner(Item& out) {
    std::deque<Waiting>& waiting = waiting_[arm_];
    const std::string wanted = key_;
    while (at(arm_, wanted) == waiting.end()) {
      if (waiting.size() == most_) {
        out = failed(*std::exchange(current_, std::nullopt), no_partner(node_, wanted, arm_, false));
        return false;
      }
      Item item = arms_[arm_]->next();
      if (item.failure) {
        out = std::move(item);
        return false;
      }
      if (!item.sample) {
        out = failed(*std::exchange(current_, std::nullopt), no_partner(node_, wanted, arm_, true));
        return false;
      }
      const bool good = admit(item, out);
      if (good && at(arm_, key_) != waiting.end()) {
        out = failed(std::move(*item.sample), key_twice(node_, key_, arm_));
        key_ = wanted;
        return false;
      }
      if (good) waiting.push_back({key_, std::move(*item.sample)});
      key_ = wanted;
      if (!good) return false;
    }
    return true;
  }
  // Its key into `key_`; false where the sample, or its key, has failed: then it comes out as it is.
  bool admit(Item& item, Item& out) {
    Sample& sample = *item.sample;
    if (!sample.verdict) {
      const Value& key = sample.find(node_.attrs.text("key"))->force();
      if (!key.any_failed()) {
        key_ = join_key(key);
        return true;
      }
      sample.verdict = std::make_shared<const Failure>(*key.failure());
    }
    const Failure why = *sample.verdict;
    out = failed(std::move(sample), why);
    return false;
  }
  // A sample that has no partner has failed in the fields that these would have.
  Item failed(Sample sample, const Failure& why) const {
    if (!sample.verdict) sample.verdict = std::make_shared<const Failure>(why);
    sample.settled = true;
    for (const Field& field : node_.type.fields)
      if (!sample.find(field.name)) sample.assign(field.name, ready(Value::failed(*sample.verdict)));
    Item out;
    out.sample = std::move(sample);
    return out;
  }

  const Node& node_;
  size_t most_;
  std::vector<StreamPtr> arms_;
  std::vector<std::deque<Waiting>> waiting_;  // by stream; of the first none
  std::optional<Sample> current_;             // of the first stream
  std::string key_;
  size_t arm_ = 1, last_ = 1;
  bool first_ended_ = false;
};

std::unique_ptr<SampleStream> define(StreamContext& context) {
  if (joins_rows(context.node())) return std::make_unique<JoinStream>(context);
  return std::make_unique<ZipStream>(context);
}

void infer(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
  out = inputs[0];
  auto arm = [&](size_t i) {
    return i < node.input_names.size() ? fmt::format("`{}`", node.input_names[i]) : fmt::format("stream {}", i + 1);
  };
  const bool by_key = node.attrs.has("key");
  const std::string key = by_key ? node.attrs.text("key") : "";
  if (!by_key && node.attrs.has("buffer_size")) error = "`buffer_size` is of `zip` with `key=`: without, nothing waits";
  for (size_t i = 0; i < inputs.size() && error.empty(); ++i) {
    const StreamType& input = inputs[i];
    const Field* own = by_key ? input.find(key) : nullptr;
    if (input.batch) {
      error = fmt::format("`zip` pairs samples, and {} has batches: write `batch` below it", arm(i));
    } else if (by_key && input.endless) {
      error = fmt::format("{} is endless: whether a key has a partner could never be said", arm(i));
    } else if (by_key && !own) {
      error = fmt::format("{} has no field `{}`, which is the key", arm(i), key);
    } else if (by_key && (input.find(missing_field(key)) || !own->type.is_scalar() ||
                          !(is_string(own->type.elem) || is_integer(own->type.elem)))) {
      error = fmt::format("the key `{}` is a string or an integer that is never missing; in {} it is `{}`", key, arm(i),
                          field_type_text(input, *own));
    } else if (by_key && own->type != inputs[0].find(key)->type) {
      error = fmt::format("the key `{}` is `{}` in {}, `{}` in {}", key, to_string(inputs[0].find(key)->type), arm(0),
                          to_string(own->type), arm(i));
    } else if (!by_key && input.domain != Domain::Indexed) {
      error = fmt::format(
          "`zip` needs streams whose lengths are known before the run; that of {} depends on the data, which "
          "would pair samples that do not belong together: filter below `zip`, or pair them by a `key=`",
          arm(i));
    } else if (input.endless != inputs[0].endless) {
      error = fmt::format("{} is endless, {} is not", arm(input.endless ? i : 0), arm(input.endless ? 0 : i));
    } else if (i > 0) {
      for (const Field& field : input.fields) {
        if (by_key && field.name == key) continue;
        if (out.find(field.name)) {
          error = fmt::format("{} and a stream before it both have a field `{}`: drop it, or assign it to another name",
                              arm(i), field.name);
          break;
        }
        out.fields.push_back(field);
      }
    }
  }
  if (by_key) out.domain = Domain::Data;
}

}  // namespace

ZEPHON_OP_DEF(Zip) = {
    .name = "zip",
    .cls = OpClass::Merge,
    .signature = "stream, key: column?, buffer_size: int? >= 1 -> stream",
    .summary = "Pairs its streams: sample i has the fields of sample i of each, or of the samples with an equal key.",
    .prose =
        "Written `zip(images, labels)`. The streams have no field in common, and as many samples each: that is known "
        "before "
        "the run, so nothing may stand in them that drops samples by their content, and is compared when the run "
        "begins. The "
        "identity of a pair is that of its members, one behind the other. `shuffle()` works below it.\n"
        "`zip(images, labels, key=id)` pairs by the field `id`, a string or an integer that all streams have; the rest "
        "of them may be in any order. The order is that of the first stream. For each of its samples the others are "
        "read "
        "until the partner is there; at most `buffer_size` samples (1000) of each wait for theirs. A sample that finds "
        "no "
        "partner fails, as does one of the others that nobody asked for when the first stream has ended, and a second "
        "one with a key that waits already: `on_error` below deals with them.",
    .example = "stream a = range(6) | x = index * 2 | drop index\nstream b = range(10, 16)\nzip(a, b)",
    .algebra = {.counts_arrivals = true, .on_batches = false},
    .define = {.stream = define},
    .infer_stream = infer,
};

}  // namespace zephon
