#include "graph/identity.h"

#include <xxhash.h>

#include <bit>
#include <charconv>

namespace zephon {

uint64_t hash_words(std::span<const uint64_t> words) {
  static_assert(std::endian::native == std::endian::little);
  return XXH3_64bits(words.data(), words.size_bytes());
}

uint64_t SampleId::hash() const { return hash_words(words); }

std::string to_string(const SampleId& id) {
  std::string text;
  for (uint64_t word : id.words) {
    if (!text.empty()) text += '/';
    text += std::to_string(word);
  }
  return text;
}

bool parse_id(std::string_view text, SampleId& id) {
  id.words.clear();
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    uint64_t word = 0;
    auto [next, error] = std::from_chars(at, end, word);
    if (error != std::errc()) return false;
    id.words.push_back(word);
    if (next == end) return true;
    if (*next != '/') return false;
    at = next + 1;
  }
  return false;
}

uint64_t stream_hash(std::string_view stream_name) {
  return stream_name.empty() ? 0 : XXH3_64bits(stream_name.data(), stream_name.size());
}

uint64_t draw_key(uint64_t seed, uint64_t epoch, uint64_t draw_id) {
  const uint64_t words[] = {seed, epoch, draw_id};
  return hash_words(words);
}

uint64_t shuffle_key(const EpochContext& context, uint64_t op_seed, bool reshuffle_each_epoch) {
  std::vector<uint64_t> words = {context.seed, op_seed};
  if (reshuffle_each_epoch) {
    words.push_back(context.epoch);
    words.insert(words.end(), context.passes.begin(), context.passes.end());
  }
  return hash_words(words);
}

namespace {

constexpr int kRounds = 4;

uint64_t mix64(uint64_t x) {  // finalizer of splitmix64 (Steele, Lea, Flood 2014)
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Feistel {
  uint64_t key;
  int half_bits;
  uint64_t mask;

  Feistel(uint64_t k, uint64_t n) : key(k) {
    int bits = n <= 1 ? 1 : std::bit_width(n - 1);
    half_bits = std::max(2, (bits + 1) / 2);
    mask = (uint64_t{1} << half_bits) - 1;
  }
  uint64_t round(int r, uint64_t half) const {
    return mix64(key + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(r + 1) + mix64(half)) & mask;
  }
  uint64_t forward(uint64_t x) const {
    uint64_t left = x >> half_bits, right = x & mask;
    for (int r = 0; r < kRounds; ++r) {
      const uint64_t next = left ^ round(r, right);
      left = right;
      right = next;
    }
    return left << half_bits | right;
  }
  uint64_t backward(uint64_t x) const {
    uint64_t left = x >> half_bits, right = x & mask;
    for (int r = kRounds - 1; r >= 0; --r) {
      const uint64_t previous = right ^ round(r, left);
      right = left;
      left = previous;
    }
    return left << half_bits | right;
  }
};

}  // namespace

uint64_t permute_index(uint64_t key, uint64_t n, uint64_t index) {
  const Feistel feistel(key, n);
  uint64_t x = index;
  do x = feistel.forward(x);
  while (x >= n);
  return x;
}

uint64_t inverse_permute_index(uint64_t key, uint64_t n, uint64_t index) {
  const Feistel feistel(key, n);
  uint64_t x = index;
  do x = feistel.backward(x);
  while (x >= n);
  return x;
}

}  // namespace zephon
