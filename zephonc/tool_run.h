#pragma once
// Runs a graph that a tool made of the program's (`scan`, `stats`) by its plan: the engine of `run`, with its progress
// line and its Ctrl-C.

#include <memory>
#include <string>

#include "runtime/flow/runner.h"
#include "zephonc/session.h"
#include "zephonc/watch.h"

namespace zephon {

/// The program without what makes one sample hide another: batches are taken apart, each `repeat` passes once, and whatever
/// fails is dropped and reported (RunOptions::on_error), by the program's own policies or by one at its end.
Graph sample_by_sample(const Graph& written);

class ToolRun {
 public:
  /// `expected_records` for the progress line; 0: unknown.
  explicit ToolRun(const Session& session, uint64_t expected_records = 0);
  /// Optimises and runs. Of `how` those matter that say what is delivered; threads, memory and stopping are set here.
  /// An exit code, after saying why, where it could not begin.
  std::optional<int> operator()(const Graph& graph, RunOptions how, Sink& sink, RunResult& result);
  RunWatch& watch() { return *watch_; }
  /// What the end of a run means: says it, and gives the exit code; 0 where it is complete, or ended by the sink.
  int end(const RunResult& result, const OpenSources& sources) const;

 private:
  const Session& session_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<RunWatch> watch_;
};

}  // namespace zephon
