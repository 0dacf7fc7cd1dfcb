#pragma once
// Samples for people: finding one in a stream by its identity, and saying what it is. By the reference interpreter.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/reference/reference.h"
#include "zephonc/session.h"

namespace zephon {

/// "u8[4, 5, 3]".
std::string type_text(const Value& value);
/// Small tensors whole, large ones by their minimum, maximum and mean; failures with code and message.
std::string content_text(const Value& value);

/// Identities grow on their way (arms, passes, children): the shorter is the beginning of the longer.
bool same_sample(const SampleId& a, const SampleId& b);

/// Looks for samples in the streams of a program, in one epoch.
class SampleSearch {
 public:
  SampleSearch(const Session& session, uint64_t epoch);
  /// An exit code, after saying why, where the sources cannot be opened.
  std::optional<int> open();
  /// `text` is an identity as messages print it, or the end of the name by which a source calls one sample: a file. An exit
  /// code, after saying why, where it is neither, or stands for several. After open().
  std::optional<int> read_id(const std::string& text, SampleId& id) const;
  ReferenceRun& run() { return *run_; }
  const OpenSources& sources() const { return run_->sources(); }

  /// The sample behind `node`; members of batches are samples.
  std::optional<Sample> find(NodeId node, const SampleId& wanted);
  std::optional<Sample> nth(NodeId node, uint64_t index);
  /// What ended the stream that was looked through last, if not its end.
  const std::optional<RunFailure>& ended_by() const { return ended_by_; }
  /// The way from the source of `wanted` to `node`; along first inputs where its source is not above `node`.
  std::vector<NodeId> path(NodeId node, const SampleId& wanted) const;

  /// The step above or at `node` that does not let the sample through, and the sample as it reached it.
  struct Lost {
    NodeId at;
    Sample before;
    std::optional<Failure> failure;  ///< for which a policy dropped it
  };
  std::optional<Lost> lost(NodeId node, const SampleId& wanted);

  /// The predicate of a filter for a sample that reaches it: its value, and of `and` and `or` each side, and the
  /// numbers that were compared. One line each, the first with the line of the program; empty where `at` is no filter.
  std::string verdict(NodeId at, const Sample& before) const;
  /// Each draw of the assignments of `at`; empty where it draws nothing.
  std::string draws(NodeId at, const Sample& before) const;

 private:
  const Session& session_;
  const Graph& graph_;
  uint64_t epoch_;
  std::unique_ptr<ReferenceRun> run_;
  std::optional<RunFailure> ended_by_;
};

}  // namespace zephon
