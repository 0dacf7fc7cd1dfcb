// zephonc where FILE ID: the batch and the rank of a sample, or the step that dropped it.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/sample_view.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

class Where {
 public:
  explicit Where(Session& session)
      : session_(session),
        options_(session.options()),
        graph_(session.graph()),
        search_(session, options_.epoch) {}

  int operator()() {
    if (auto code = search_.open()) return *code;
    if (auto code = search_.read_id(options_.id, wanted_)) return *code;
    name_ = fmt::format("sample {} ({})", to_string(wanted_), search_.sources().describe(wanted_));
    auto stream = search_.run().open_stream(graph_.output(), options_.epoch);
    for (uint64_t record = 0;; ++record) {
      SampleStream::Item item = stream->next();
      if (item.failure) return ends_before(*item.failure, record);
      if (!item.sample) return lost();
      const Sample& sample = *item.sample;
      if (sample.verdict) {
        if (same_sample(sample.id, wanted_)) return fails(*sample.verdict);
        return ends_before({*sample.verdict, sample.id, options_.epoch}, record);
      }
      if (sample.members.empty() && same_sample(sample.id, wanted_)) {
        return found(fmt::format("{}: number {}", name_, record), record, *stream);
      }
      for (size_t m = 0; m < sample.members.size(); ++m) {
        if (!same_sample(sample.members[m].id, wanted_)) continue;
        return found(fmt::format("{}: batch {}, member {} of {}", name_, record, m, sample.members.size()), record,
                     *stream);
      }
    }
  }

 private:
  /// Record g goes to rank g mod W, unless its round is not complete.
  int found(std::string text, uint64_t record, SampleStream& stream) const {
    text += fmt::format(", epoch {}", options_.epoch);
    const auto ranks = static_cast<uint64_t>(options_.world_size);
    const uint64_t rank = record % ranks;
    if (ranks > 1) {
      uint64_t behind = rank + 1;
      while (behind < ranks && stream.next().sample) ++behind;
      text += behind == ranks ? fmt::format("; rank {} of {}, its record {}", rank, ranks, record / ranks)
                              : fmt::format("; no rank of {}: the last round is not complete, and dropped", ranks);
    }
    return print(text + "\n");
  }

  int lost() {
    std::optional<SampleSearch::Lost> at = search_.lost(graph_.output(), wanted_);
    if (!at) {
      say(fmt::format("zephonc: no source of the program has a sample {}", to_string(wanted_)));
      return kExitRun;
    }
    const Node& node = graph_.node(at->at);
    std::string text =
        fmt::format("{}: dropped by step {}, `{}`, line {}, epoch {}\n", name_, StepNumbers(graph_).of(at->at),
                    to_text(graph_, at->at), session_.line_of(node.origin), options_.epoch);
    if (at->failure) text += fmt::format("{}: {}\n", at->failure->code, at->failure->message);
    return print(text + search_.verdict(at->at, at->before));
  }

  int fails(const Failure& failure) const {
    session_.show_failure({failure, wanted_, options_.epoch}, search_.sources().describe(wanted_));
    return kExitRun;
  }

  int ends_before(const RunFailure& failure, uint64_t records) const {
    say(fmt::format("zephonc: the run ends after {} records, before {}", records, name_));
    session_.show_failure(failure, search_.sources().describe(failure.id));
    return kExitRun;
  }

  Session& session_;
  const Options& options_;
  const Graph& graph_;
  SampleSearch search_;
  SampleId wanted_;
  std::string name_;
};

}  // namespace

int command_where(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Where(session)();
}

}  // namespace zephon
