#pragma once
// A set of expressions of one graph: a bit for each.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace zephon {

class ExprSet {
 public:
  ExprSet() = default;
  template <class Range>
  explicit ExprSet(const Range& ids) {
    insert_all(ids);
  }
  bool contains(ExprId id) const { return index(id) < bits_.size() && bits_[index(id)]; }
  /// False where it was there.
  bool insert(ExprId id) {
    if (index(id) >= bits_.size()) bits_.resize(index(id) + 1 + bits_.size() / 2);
    const bool fresh = !bits_[index(id)];
    bits_[index(id)] = true;
    return fresh;
  }
  template <class Range>
  void insert_all(const Range& ids) {
    for (ExprId id : ids) insert(id);
  }
  void clear() { bits_.clear(); }
  bool empty() const { return std::find(bits_.begin(), bits_.end(), true) == bits_.end(); }

 private:
  static size_t index(ExprId id) { return static_cast<size_t>(id.index); }
  std::vector<bool> bits_;
};

/// Adds `root` and all that it reaches to `known`; gives those that were not there, arguments before users.
std::vector<ExprId> add_below(const Graph& graph, ExprId root, ExprSet& known);

}  // namespace zephon
