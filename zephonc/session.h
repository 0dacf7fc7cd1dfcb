#pragma once
// What the commands on programs share: loading, optimizing, showing what went wrong.

#include <functional>
#include <optional>
#include <string>

#include "frontend/diag/diagnostic.h"
#include "graph/evaluator.h"
#include "optimizer/optimizer.h"
#include "zephonc/command_line.h"

namespace zephon {

/// A program that was read and checked.
struct Session {
  const Options& options;
  SourceMap sources;
  Diagnostics diags;
  FileId file;
  Graph graph;               ///< as written
  uint64_t seed = 0;
  std::string base_dir;      ///< folder of the program
  std::string fingerprint;   ///< of the program as written with its parameters, in hex

  explicit Session(const Options& o) : options(o) {}
  /// Reads, parses and checks the program. An exit code, after the diagnostics were shown, where it is wrong.
  std::optional<int> load();
  /// What the optimizer is to do, from the command line. An exit code where it asks for what does not exist.
  std::optional<int> optimizer_options(OptimizeOptions& out) const;
  /// Shows diagnostics that were collected (lints too), once.
  void show_diagnostics();
  /// Shows a failure: what, where in the program, which sample, and how to see that sample again.
  void show_failure(const Failure& failure, const SampleId* id = nullptr);
  /// "zephonc show FILE param=value --id ID --at STEP".
  std::string replay_command(const SampleId& id, const Span& where) const;
  uint32_t line_of(const Span& span) const;
  size_t memory_budget() const;
  int threads() const;
};

/// Says that there is no such rule and which are near; 64.
int unknown_rule(const std::string& name);

}  // namespace zephon
