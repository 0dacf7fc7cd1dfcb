#pragma once
// Declared records are carried flat: each leaf is a column of its own, named by its path.
//
//   {b: {c: str?}, items: list<{id: i64}>}   ->   "b.c?": str,  "items[].id": i64
//
// In a stream the leaf `items[].id` is the field `items.id`, an i64[?]. What a tensor cannot say stands in companion fields beside it,
// which every step that moves the field moves too: `x?` (bool: x is missing; of a list with missing elements one per element, and
// then x holds zeros there) and, of lists of lists, `x#1`, `x#2` ... (i64: the lengths of the lists of that depth; x holds all
// elements one after the other).

#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace zephon {

struct LeafPath {
  struct Step {
    std::string key;        ///< empty: the elements of a list
    bool optional = false;  ///< what it leads to may be missing
  };
  std::vector<Step> steps;

  static LeafPath parse(std::string_view text);
  /// The field that carries it.
  std::string field() const;
  /// How many lists lie one in the other around the leaf.
  int lists() const;
  /// -1: never missing; 0: the whole value may be missing; d: an element at depth d of the lists may be. The shallowest
  /// where several may.
  int missing_depth() const;
  /// True where a missing value at `step` makes the leaf missing: it or something below it is optional.
  bool may_miss_from(size_t step) const;
};

}  // namespace zephon
