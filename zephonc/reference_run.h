#pragma once
// The reference interpreter behind the interface of the flow runtime, so that commands need not know which one runs.

#include <functional>

#include "runtime/flow/runner.h"
#include "runtime/reference/reference.h"

namespace zephon {

/// A record of the reference interpreter in the form in which sinks take it.
class ReferenceRecordView : public RunRecord {
 public:
  ReferenceRecordView(const ReferenceRecord& record, const StreamType& type, uint64_t number);
  SampleId member_id(int64_t member) const override { return record_.ids[static_cast<size_t>(member)]; }

 private:
  const ReferenceRecord& record_;
  std::vector<std::vector<StringRef>> strings_;
};

/// Runs the program as written. Of `options` those matter that change what is delivered: epochs, take, rank,
/// world_size, resume, stop.
RunResult run_reference(const Graph& graph, uint64_t seed, const std::string& base_dir, const RunOptions& options,
                        Sink& sink, std::shared_ptr<const OpenSources> sources);

}  // namespace zephon
