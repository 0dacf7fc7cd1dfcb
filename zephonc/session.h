#pragma once
// What the commands on programs share: loading, what the optimizer is to do, showing what went wrong.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "graph/evaluator.h"
#include "optimizer/optimizer.h"
#include "runtime/flow/runner.h"
#include "runtime/reference/sources.h"
#include "zephonc/command_line.h"

namespace zephon {

/// A program that was read and checked, and the way in which messages about it are shown.
class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}

  /// Reads, parses and checks the program and shows what there is to say. An exit code where it is wrong.
  std::optional<int> load();
  /// What the optimizer is to do, from the command line. An exit code where that asks for what does not exist.
  std::optional<int> optimizer_options(OptimizeOptions& out) const;
  /// Runs the optimizer. An exit code (our bug) where the verifier found fault with what it did.
  std::optional<int> optimize_program(const OptimizeOptions& how, OptimizeResult& out) const;
  /// Of a graph made of the program's.
  std::optional<int> optimize_program(const Graph& graph, const OptimizeOptions& how, OptimizeResult& out) const;

  /// The hash that every plan must have (`--plan`); 64 where it cannot be had any more.
  void expect_plan(std::string hash) { expected_hash_ = std::move(hash); }

  const Options& options() const { return options_; }
  const SourceMap& sources() const { return sources_; }
  FileId file() const { return file_; }
  const Graph& graph() const { return program_->graph; }
  const Program& program() const { return *program_; }
  const std::string& base_dir() const { return base_dir_; }
  /// The relaxations that are on, sorted, each once.
  std::vector<std::string> relaxations() const;
  /// Of what the program means with these parameters and relaxations, the content of its side tables and our version,
  /// in hex.
  std::string fingerprint() const;
  /// Paths of what the program reads besides its sources: the files that it imports, and its side tables.
  std::vector<std::string> side_files() const;
  uint32_t line_of(const Span& span) const;
  /// The sources, opened once. Null, and why in `failure`, where they cannot be.
  std::shared_ptr<const OpenSources> open(Failure& failure) const;
  /// Where costs come from, as optimizer_options() found it.
  struct CostOrigin {
    std::string machine;   ///< when this machine was calibrated; empty: costs are those that operators declare
    std::string data;      ///< when runs over this data were measured; empty: never
    std::string fixed;     ///< the file of `--costs`, or of `--plan`
    bool ignored = false;  ///< asked to use nothing that was measured
  };
  const CostOrigin& cost_origin() const { return cost_origin_; }
  /// Keeps what a run has measured of its data, for the plans to come.
  void learn(const Plan& plan, const RunResult& result) const;
  /// What stands there, at most one line of it.
  std::string text_of(const Span& span) const;
  int threads() const;
  size_t memory() const;

  /// Lints that were shown.
  size_t warnings() const { return diags_.sorted().size() - diags_.error_count(); }

  /// Shows a failure: what, where in the program.
  void show_failure(const Failure& failure) const;
  /// And of which sample (`described`: its file), and the command that shows that sample again.
  void show_failure(const RunFailure& failure, const std::string& described) const;
  /// "zephonc COMMAND FILE param=value", as a shell takes it.
  std::string command_line(const std::string& command) const;
  /// Why a state with another fingerprint cannot be resumed here, from what it says of its origin (empty: nothing):
  /// "was saved by ...".
  std::string why_not_resumed(const std::string& saved_by, const std::string& version) const;
  /// "zephonc show FILE param=value --id ID --epoch N --at STEP", as a shell takes it.
  std::string replay_command(const RunFailure& failure) const;

 private:
  std::optional<int> use_costs(Machine& machine) const;
  bool uses_measured() const;
  std::string data_place() const;
  std::string data_identity(const OpenSources& sources) const;
  std::string data_constants() const;
  std::optional<std::string> how_to_drop(const Failure& failure) const;
  std::optional<Program> compile_with(const std::map<std::string, std::string>& params);

  const Options& options_;
  SourceMap sources_;
  Diagnostics diags_;
  FileId file_;
  std::optional<Program> program_;
  std::string base_dir_, expected_hash_;
  mutable CostOrigin cost_origin_;
  mutable std::shared_ptr<const OpenSources> opened_;
  mutable std::optional<Failure> not_opened_;
  mutable std::string constants_digest_;  // of data_constants(), once known
};

/// Without what a quoted text would have to escape: `?` stands for it.
std::string plain_text(std::string text);
/// Says that there is no such rule and which are near; 64.
int unknown_rule(const std::string& name);
/// The names that `--relax` takes, sorted.
std::vector<std::string> all_relaxations();
/// A problem of ours or of the machine that no place in a program explains; returns its exit code, 2 (R...) or 70
/// (B...).
int show_problem(const Failure& failure);

}  // namespace zephon
