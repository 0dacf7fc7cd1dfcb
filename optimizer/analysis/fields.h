#pragma once
// Which fields are read, written and needed: facts, changes nothing.

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "optimizer/analysis/ranges.h"

namespace zephon {

/// Names, in their order. Copies share them until one is changed: streams hand on long sets with small changes.
class FieldSet {
 public:
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string*;
    using reference = const std::string&;
    const_iterator() = default;
    explicit const_iterator(const std::string* const* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    const_iterator& operator++() {
      ++at_;
      return *this;
    }
    const_iterator operator++(int) { return const_iterator(at_++); }
    bool operator==(const const_iterator&) const = default;

   private:
    const std::string* const* at_ = nullptr;
  };

  size_t size() const { return names_ ? names_->size() : 0; }
  bool empty() const { return size() == 0; }
  const_iterator begin() const { return const_iterator(names_ ? names_->data() : nullptr); }
  const_iterator end() const { return const_iterator(names_ ? names_->data() + names_->size() : nullptr); }
  bool contains(std::string_view name) const;
  /// False where it was there.
  bool insert(std::string_view name);
  void insert_all(const FieldSet& others);
  /// False where it was not there.
  bool erase(std::string_view name);
  template <class Predicate>
  void erase_if(Predicate&& gone) {
    if (std::any_of(begin(), end(), gone)) std::erase_if(own(), [&](const std::string* name) { return gone(*name); });
  }
  friend bool operator==(const FieldSet& a, const FieldSet& b) {
    return a.names_ == b.names_ || a.names() == b.names();
  }
  /// Some order, the same within one run.
  friend bool operator<(const FieldSet& a, const FieldSet& b) { return a.names_ != b.names_ && a.names() < b.names(); }

 private:
  using Names = std::vector<const std::string*>;  // equal names are one string
  const Names& names() const;
  Names& own();
  size_t place_of(std::string_view name) const;

  std::shared_ptr<Names> names_;
};

/// True for fields that are never delivered: what sources and planners keep for themselves (`$row`).
inline bool is_hidden(std::string_view field) { return !field.empty() && field.front() == '$'; }

/// The fields that expressions read. Expressions never change, so each is looked at once.
class Reads {
 public:
  explicit Reads(const Graph& graph) : graph_(graph), ranges_(graph) {}
  const FieldSet& of(ExprId expr);
  /// What else is known of expressions.
  Ranges& ranges() { return ranges_; }

 private:
  const Graph& graph_;
  Ranges ranges_;
  std::vector<FieldSet> fields_;  // by expression; arguments have smaller ids than their users
};

/// Adds the fields that `root` reads.
void add_reads(const Graph& graph, ExprId root, FieldSet& fields);
/// Fields that the node assigns.
FieldSet writes_of(const Node& node);

/// For each node by index: the fields of its output that something below needs: delivered, read by an expression, or
/// guarded by on_error. Nodes that are not reachable have none.
std::vector<FieldSet> live_fields(const Graph& graph);

/// Given what is needed of a node's output: what is needed of its inputs (of each, for a merge).
FieldSet live_above(const Graph& graph, const Node& node, FieldSet live);

using Environment = std::map<std::string, ExprId>;

/// `expr` with the fields that `env` names replaced.
ExprId resolve(Graph& graph, Reads& reads, ExprId expr, const Environment& env);
/// Values of the fields after `assigns`, as expressions over the fields before: `env` is extended in order.
void apply_assigns(Graph& graph, Reads& reads, const std::vector<Assign>& assigns, Environment& env);

}  // namespace zephon
