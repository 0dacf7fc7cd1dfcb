#pragma once
// Where a run stands: what --save-state writes and --resume reads. It names operators as written and positions in
// sources, never nodes of a plan, so that every plan can give it and take it.

#include <cstdint>
#include <optional>
#include <string>

namespace zephon {

struct State {
  std::string program;  ///< fingerprint of the program and its parameters
  std::string files;    ///< fingerprint of the files that the sources opened
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t records = 0;    ///< of this epoch and over all ranks, that lie behind
  uint64_t delivered = 0;  ///< over all epochs, by this rank
  uint64_t world_size = 1, rank = 0;
};

/// Why a run that stands at `now` (its beginning) cannot go on from `from`; empty where it can.
std::string mismatch(const State& from, const State& now);
std::string to_json(const State& state);
/// nullopt and a message for a person where `text` is no state of this version.
std::optional<State> parse_state(const std::string& text, std::string& error);

}  // namespace zephon
