#pragma once
// The typed graph, two levels of one program: dataset nodes form a graph of streams, expressions form, per sample, a graph
// of tensor operators. Both live in arenas of a Graph and are named by strong ids. Expressions are immutable and
// hash-consed: equal expressions are one expression (draws are equal only if their draw ids are).

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/diag/span.h"
#include "graph/attrs.h"
#include "graph/types.h"
#include "graph/value.h"

namespace zephon {

struct OpDef;

struct ExprId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const ExprId&) const = default;
};
struct NodeId {
  int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const NodeId&) const = default;
};

/// A tensor expression over the fields of the sample that reaches the node which owns it.
/// Leaves: op `field` (attr "name"), op `const` (`constant` set), op `data_const` (an expression of strings known when the data
/// set is opened, such as dirs(root): same value for every sample, evaluated once).
struct Expr {
  const OpDef* op = nullptr;
  std::vector<ExprId> args;
  Attrs attrs;
  Type type;
  uint64_t draw_id = 0;                  ///< draws only, never 0 there
  std::shared_ptr<const Value> constant; ///< op `const` only
  std::vector<Span> origin;              ///< what the person wrote; not part of equality
};

struct Assign {
  std::string field;
  ExprId expr;
  bool operator==(const Assign&) const = default;
};

/// A dataset operator. Which members are used is the operator's business:
/// `assign` uses assigns (evaluated in order; a later one may read an earlier one's field through op `field`); `select`/`drop` keep
/// attrs "fields"; `filter` uses predicate, operators with a key (bucket_by_length) too; sources use attrs; data-dependent string arguments of sources (glob) use attrs.
struct Node {
  const OpDef* op = nullptr;
  std::vector<NodeId> inputs;
  std::vector<std::string> input_names;  ///< mix(web=7, code=3): the names of the streams
  Attrs attrs;
  std::vector<Assign> assigns;
  ExprId predicate;
  std::vector<std::string> needed;  ///< on_error: fields assigned above and statically needed below, as written
  StreamType type;
  std::string stream;  ///< the stream (declared name, "" for the pipeline's own) that this step was written in
  int32_t step = 0;    ///< ordinal of the step as written, in the whole program; survives rewriting
  std::vector<int32_t> part;  ///< of a step that was taken apart (filter a and b): which part of which part, in order
  Span origin;
};

/// `a` stands before `b` in the program as written: of filters that fail on a sample, it is the first that has failed.
inline bool is_written_before(const Node& a, const Node& b) {
  return a.step != b.step ? a.step < b.step : a.part < b.part;
}

class Graph {
 public:
  /// Interns; returns the existing id of an equal expression.
  ExprId add(Expr expr);
  /// What the person wrote lives on in what it becomes: adds places to an expression (origins are not part of equality).
  void add_origin(ExprId id, const std::vector<Span>& places);
  /// The same, of all places of `from`: what it has become is `to`. Costs nothing where they were added before.
  void inherit_origin(ExprId to, ExprId from);
  NodeId add(Node node);
  const Expr& expr(ExprId id) const { return exprs_[static_cast<size_t>(id.index)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id.index)]; }
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id.index)]; }
  size_t expr_count() const { return exprs_.size(); }
  size_t node_count() const { return nodes_.size(); }

  NodeId output() const { return output_; }
  void set_output(NodeId id) { output_ = id; }

  /// Nodes reachable from the output, inputs before users.
  std::vector<NodeId> topological() const;
  /// How many reachable nodes use `id`.
  int user_count(NodeId id) const;
  /// Expressions reachable from `root`, arguments before users.
  std::vector<ExprId> topological(ExprId root) const;
  /// Copy of `root` in which every `field` named in `replacement` is the expression given there.
  ExprId substitute(ExprId root, const std::map<std::string, ExprId>& replacement);
  /// `id` over other arguments: what `map` says of each.
  template <class F>
  ExprId with_args(ExprId id, F&& map);
  /// Rebuilds `root` with `map` applied to each expression bottom-up (after its arguments were rebuilt).
  template <class F>
  ExprId rewrite(ExprId root, F&& map);

 private:
  std::vector<Expr> exprs_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, int32_t> interned_;
  struct SpanHash {
    size_t operator()(const Span& span) const {
      return (uint64_t{span.file.value} << 32 ^ span.begin) * 0x9E3779B97F4A7C15u ^ span.end;
    }
  };
  std::unordered_map<int32_t, std::unordered_set<Span, SpanHash>> places_;  // of expressions with many of them
  std::unordered_map<uint64_t, size_t> inherited_;                          // (from, to) -> how many places
  NodeId output_;
};

template <class F>
ExprId Graph::with_args(ExprId id, F&& map) {
  const Expr& e = expr(id);
  if (std::all_of(e.args.begin(), e.args.end(), [&](ExprId arg) { return map(arg) == arg; })) return id;
  Expr copy{e.op, {}, e.attrs, e.type, e.draw_id, e.constant, {}};
  for (ExprId arg : e.args) copy.args.push_back(map(arg));
  const ExprId made = add(std::move(copy));
  inherit_origin(made, id);
  return made;
}

template <class F>
ExprId Graph::rewrite(ExprId root, F&& map) {
  std::map<ExprId, ExprId> done;
  for (ExprId id : topological(root)) {
    done[id] = map(with_args(id, [&](ExprId arg) { return done.at(arg); }));
  }
  return done.at(root);
}

class OpTable;
/// Leaves.
ExprId add_field(Graph& graph, const OpTable& ops, const std::string& name, const Type& type, Span origin = {});
ExprId add_constant(Graph& graph, const OpTable& ops, Value value, Span origin = {});

/// Invariants: types agree with the operators' signatures, fields exist, ids are in range, no cycles. Returns problems, empty if well.
std::vector<std::string> verify_graph(const Graph& graph);

/// Deterministic text of the reachable graph: one line a node, output first, inputs indented below with box-drawing characters;
/// a node used twice prints once as `#1 =` and then as `#1`. Expressions print in ZPL syntax.
struct TextOptions {
  bool types = false;   ///< fields with their types after each step
  bool lines = false;   ///< source lines
};
std::string to_text(const Graph& graph, const TextOptions& options = {});
std::string to_text(const Graph& graph, ExprId expr);
/// One node, without its inputs.
std::string to_text(const Graph& graph, NodeId node);

}  // namespace zephon
