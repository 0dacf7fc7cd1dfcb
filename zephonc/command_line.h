#pragma once
// What was asked for. The only file that knows CLI11 is command_line.cpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zephon {

/// Exit codes of every command.
enum Exit : int {
  kExitOk = 0,
  kExitProgram = 1,  ///< the program is wrong
  kExitRun = 2,      ///< the data or the machine failed while running
  kExitUsage = 64,
  kExitBug = 70,
};

struct Options {
  std::string command;
  std::string file;                                         ///< as typed, without `:PIPELINE`
  std::string pipeline;                                     ///< of a file with several: FILE:NAME or --pipeline NAME
  std::vector<std::string> files;                           ///< fmt
  bool check_only = false, from_stdin = false;              ///< fmt
  std::vector<std::pair<std::string, std::string>> params;  ///< param=value
  std::string name;                                         ///< ops, rules, explain
  bool markdown = false;                                    ///< ops, rules: the whole reference page

  uint64_t epochs = 1;
  std::optional<uint64_t> take;
  int threads = 0;                                         ///< 0: what the machine and its cgroup give
  size_t memory = 0;                                       ///< bytes; 0: half of what the machine and its cgroup give
  int64_t chunk = 0;                                       ///< 0: the planner decides
  std::vector<std::pair<std::string, std::string>> knobs;  ///< STEP.KNOB, value
  std::string out, format;
  bool digest = false, json = false, stats = false;
  std::string manifest, trace, sheet, progress = "auto", save_state, resume;
  int rank = 0, world_size = 1;
  double stall_timeout = 0;  ///< seconds; 0: off
  double save_every = 5;     ///< seconds between states; 0: only at the end
  bool no_optimize = false, reference = false;
  bool shrink = false;  ///< verify
  std::vector<std::string> disable, relax;
  std::string plan, costs;
  std::string measured;      ///< JSON: what a plan file says was measured; "" where none is replayed
  bool no_measured = false;  ///< nothing that was measured is used, and nothing kept
  bool clear = false;        ///< calibrate

  std::string stage = "physical";
  bool steps = false;
  std::string why;

  bool deny_warnings = false;
  bool hash_content = false;

  std::optional<uint64_t> index;
  std::string id, at, png, field;
  uint64_t epoch = 0;
};

/// What the command line takes, for completion and for the manual page: the declarations that --help prints.
struct OptionInfo {
  std::string name;      ///< "--epochs"
  std::string argument;  ///< "N"; empty: a flag
  std::string help;
  std::vector<std::string> choices;  ///< of the argument; empty: any
};
struct CommandInfo {
  std::string name, summary;
  std::vector<std::string> words;  ///< in their order: "FILE", "[NAME]", "param=value..."
  std::vector<OptionInfo> options;
};
std::vector<CommandInfo> command_table();

/// Reads the command line. An exit code instead where nothing is to be run: help and version are printed to standard
/// output, a usage error to standard error.
std::optional<int> parse_command_line(int argc, const char* const* argv, Options& options);

}  // namespace zephon
