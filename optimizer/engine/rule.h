#pragma once
// A rewrite rule, declared once: what it does, why it is exact, why it ends, what holds it back, and examples that the
// tests run. See optimizer/README.md for the laws that rules keep.
//
// "Above" is nearer the source, where the rows come from; "below" is nearer the output: as the steps stand in a
// program. A name such as push_filter_below_assign speaks of the printed tree, where the source is at the bottom.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"
#include "optimizer/analysis/fields.h"
#include "optimizer/cost/machine.h"

namespace zephon {

/// What a rule matched: the lower node and the one that it reads, or an expression and one of its arguments.
struct Match {
  NodeId outer, inner;
  ExprId expr, arg;
  /// Steps that the outer one passes at once, lowest first; none: it passes the inner one.
  std::vector<NodeId> row;
  /// Assignments of steps of the row, lowest first, whose work the outer step does by itself when it has passed them.
  std::vector<std::pair<NodeId, Assign>> taken;
  std::vector<Assign> taken_of_row() const {
    std::vector<Assign> found;
    for (const auto& [step, assign] : taken)
      if (std::find(row.begin(), row.end(), step) != row.end()) found.push_back(assign);
    return found;
  }
};

/// What a rule may ask and change. Nodes are edited in place; expressions are immutable.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Graph& graph() = 0;
  virtual const OpTable& ops() const = 0;
  virtual Reads& reads() = 0;
  /// How many nodes read the output of `node` (the end of the pipeline counts as one).
  virtual int users(NodeId node) const = 0;
  /// The one node that reads it; invalid where there are several or none.
  virtual NodeId reader(NodeId) const { return {}; }
  /// How many steps a rule may pass at once.
  virtual size_t reach() const { return 1; }
  /// Exchanges `outer` and its only input `inner`, which has no other user: whoever read `outer` reads `inner` from now
  /// on.
  virtual void exchange(NodeId outer, NodeId inner) = 0;
  /// Whoever read `node` reads its only input from now on.
  virtual void remove(NodeId node) = 0;
  /// `step` between `user` and its input of that number, for `user` alone. References to nodes are lost.
  virtual NodeId insert_above(NodeId user, size_t input, Node step) {
    step.inputs = {graph().node(user).inputs.at(input)};
    const NodeId id = graph().add(std::move(step));
    graph().node(user).inputs[input] = id;
    return id;
  }
  /// Cost model: nanoseconds per sample of an expression, everything below included.
  virtual double tree_ns(ExprId expr) const = 0;
  virtual double own_ns(ExprId expr) const = 0;
  virtual double elements(ExprId expr) const = 0;
  virtual const Machine& machine() const = 0;
  /// Uses of `expr` among the expressions of the node that is being rewritten: the expressions that have it as an
  /// argument, and an invalid id for each assignment or predicate that it is.
  virtual const std::vector<ExprId>& expr_users(ExprId expr) const = 0;
  /// Something below needs the field of the node's output. May say yes where no has become true.
  virtual bool is_live(NodeId node, const std::string& field) = 0;
};

/// Holds back a match. The name completes "unchanged: ...": it says what is required. Physical rules give only the
/// name: the planner decides.
struct Guard {
  std::string_view name;
  bool (*holds)(Rewriter& rewriter, const Match& match);
  /// The rule is exact without it, too: it keeps a rule from making things dearer. Where costs of the whole are
  /// compared, it is not asked.
  bool cost = false;
};

struct Rule {
  std::string_view name;     ///< an order; also the file, the value of --disable and the heading in RULES.md
  std::string_view summary;  ///< what it does and why that pays
  std::string_view law;      ///< the equation
  std::string_view ends;     ///< why it cannot go on for ever
  std::span<const Guard> guards = {};
  /// At most one pair is set. Nodes: is `outer` the lowest node of the pattern? Then change the graph.
  bool (*match_node)(Rewriter& rewriter, NodeId outer, Match& match) = nullptr;
  void (*apply_node)(Rewriter& rewriter, const Match& match) = nullptr;
  /// Expressions: is `expr` the root of the pattern? Then the expression that replaces it.
  bool (*match_expr)(Rewriter& rewriter, ExprId expr, Match& match) = nullptr;
  ExprId (*apply_expr)(Rewriter& rewriter, const Match& match) = nullptr;
  /// Nodes that the pattern spans, for the cost before and after; 0 where the cost does not change.
  int depth = 1;
  /// `fires` and `keeps` sections; see optimizer/README.md.
  std::string_view examples;
  /// Not empty: what is delivered may change, and only who names this relaxation (`--relax`) gets the rule.
  std::string_view relaxation = {};
};

/// Physical rules have neither pair: the planner carries them out, through the same door.
inline bool is_physical(const Rule& rule) { return !rule.match_node && !rule.match_expr; }

#define ZEPHON_RULE_DEF(Name) \
  namespace rules {           \
  extern const Rule Name;     \
  }                           \
  constinit const Rule rules::Name

}  // namespace zephon
