#pragma once
// The identity of a sample, and the random key derived from it (DESIGN section 5).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zephon {

/// A path of words: stream hash, source ordinal (among the sources of that stream, in the order of their steps), shard,
/// position, the passes of the repeats that stand below the source (EpochContext.passes, outermost first: they are
/// known when the source emits, so that draws differ from pass to pass wherever they stand), then what operators append
/// as the sample passes: the arm of a mix or concatenate, the child of an unbatch. No word has a tag: the program fixes
/// what each means. A batch's identity is the list of its members' identities.
struct SampleId {
  std::vector<uint64_t> words;
  /// XXH3-64 over the words, little-endian: what keys the draws.
  uint64_t hash() const;
  bool operator==(const SampleId&) const = default;
};
/// "3/0/17" style text: the words in decimal joined by `/`, the stream hash as its name when known; parse_id reads it.
std::string to_string(const SampleId& id);
bool parse_id(std::string_view text, SampleId& id);

uint64_t stream_hash(std::string_view stream_name);
uint64_t hash_words(std::span<const uint64_t> words);

/// Where in the run a stream stands: its epoch and the passes of the repeats around it. Shuffles are keyed by it.
struct EpochContext {
  uint64_t seed = 0;   ///< the reserved parameter `seed`
  uint64_t epoch = 0;
  std::vector<uint64_t> passes;  ///< outermost first
};

/// Philox key of a draw: a function of (seed, epoch, draw id). The counter is (identity hash, block of the draw).
uint64_t draw_key(uint64_t seed, uint64_t epoch, uint64_t draw_id);
/// Key of a shuffle: a function of (seed, operator's own seed, epoch and passes unless reshuffle is off).
uint64_t shuffle_key(const EpochContext& context, uint64_t op_seed, bool reshuffle_each_epoch);

/// The published keyed bijection on [0, n): a 4-round Feistel network over the smallest even-bit-width power-of-two domain
/// that holds n (at least 2 bits a half), round function = splitmix64 finalizer of (key, round, half), cycle-walked
/// into [0, n). O(1) memory; both directions.
uint64_t permute_index(uint64_t key, uint64_t n, uint64_t index);
uint64_t inverse_permute_index(uint64_t key, uint64_t n, uint64_t index);

}  // namespace zephon
