#pragma once
// Where a run stands: what --save-state writes and --resume reads. It names operators as written and positions in
// sources, never nodes of a plan, so that every plan can give it and take it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/identity.h"

namespace zephon {

/// Of an operator as written: what it counts, and the samples that it holds back or that wait for it. They are fetched
/// again by their positions.
struct OperatorState {
  int32_t step = 0;
  std::vector<uint64_t> words;
  std::vector<SampleId> rows;
  bool operator==(const OperatorState&) const = default;
};

/// A place in the run from which all the rest follows: where the source goes on, and what stood between it and the end.
struct Mark {
  uint64_t position = 0;  ///< of the source: index in its renumbered domain
  uint64_t records = 0;   ///< of the epoch, over all ranks, that had come out before
  uint64_t rejected = 0;  ///< of the epoch, over all ranks: samples that on_error had dealt with
  std::vector<OperatorState> operators;
};

struct State {
  std::string program;  ///< fingerprint of the program and its parameters
  std::string files;    ///< fingerprint of the files that the sources opened
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t records = 0;    ///< of this epoch and over all ranks, that lie behind
  uint64_t rejected = 0;   ///< of this epoch and over all ranks: samples that on_error has dealt with
  uint64_t delivered = 0;  ///< over all epochs, by this rank
  uint64_t world_size = 1, rank = 0;
  /// Where reading can begin; records from there to `records` are dropped again. A run whose steps are carried out by
  /// other operators than these begins at the start of the epoch instead.
  std::string steps;  ///< source, renumberings and operators of the mark, by their steps
  Mark mark;
};

/// Why a run that stands at `now` (its beginning) cannot go on from `from`; empty where it can.
std::string mismatch(const State& from, const State& now);
std::string to_json(const State& state);
/// nullopt and a message for a person where `text` is no state of this version.
std::optional<State> parse_state(const std::string& text, std::string& error);

}  // namespace zephon
