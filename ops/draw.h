#pragma once
// How operators of class Draw use Philox: the key says which draw, the counter which sample and which block of the
// draw.

#include "graph/philox.h"
#include "ops/tensor_op.h"

namespace zephon {

class DrawSource {
 public:
  explicit DrawSource(DefineCall& call) : key_(call.draw_key()), identity_(call.identity()) {}
  explicit DrawSource(const NativeCall& call) : key_(call.draw_key), identity_(call.identity) {}
  RandomWords<PlainNumbers> block(int64_t i) const {
    PlainNumbers n;
    return philox(n, key_, identity_, static_cast<uint64_t>(i));
  }

 private:
  uint64_t key_, identity_;
};

/// A whole number in [low, high), high > low.
inline int64_t integer_between(uint64_t word, int64_t low, int64_t high) {
  PlainNumbers n;
  uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + integer_below(n, word, count));
}

}  // namespace zephon
