#pragma once
// A memo of the ways to order a stretch of a stream. A group is a set of streams that deliver the same rows; its
// members are steps over groups, so that n steps which may stand in any order have n! orders, 2^n groups and n 2^(n-1)
// members. Rules are tried on each member with each member right above it, and what they give joins the group: both are
// kept. Then the cheapest way is taken, by dynamic programming over groups and over what stands ready in them. After G.
// Graefe, "The Cascades Framework for Query Optimization", 1995; costs of shared work are our own.

#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "optimizer/cost/stream_cost.h"
#include "optimizer/engine/rule.h"

namespace zephon {

struct SearchBounds {
  int pairs = 6000;  ///< of members tried, in one stretch
  int fronts = 16;   ///< kept of one group: ways that differ in what stands ready below them
};

class Memo final : public Rewriter {
 public:
  Memo(Graph& graph, std::span<const Rule* const> rules, const OpTable& ops, const Machine& machine, StreamCost& cost,
       SearchBounds bounds);

  /// One step of the way that was found, with the rule that made it; none for a step as it stood.
  struct Step {
    NodeId node;
    const Rule* rule = nullptr;
  };
  struct Way {
    std::vector<Step> steps;  ///< source outward
    Front front;              ///< below the last of them
    double ns = 0;            ///< with all that is needed below made
  };
  /// `chains`: ways that deliver the same, to begin with; of each, the steps with one input and one reader, source
  /// outward. Their nodes are not changed. Says whether there is more than one way now. Once a memo.
  bool explore(const std::vector<std::vector<NodeId>>& chains);
  /// `above`: the place over the chains; `live`: the fields of the last step that something below needs. The nodes of
  /// the way still read what they were made over.
  Way cheapest(const Front& above, const FieldSet& live);

  int members() const { return static_cast<int>(members_.size()); }
  int groups() const { return static_cast<int>(groups_.size()); }
  int pairs() const { return pairs_; }
  bool bounded() const { return bounded_; }

  Graph& graph() override { return graph_; }
  const OpTable& ops() const override { return ops_; }
  Reads& reads() override { return reads_; }
  int users(NodeId) const override { return 1; }
  void exchange(NodeId outer, NodeId inner) override;
  void remove(NodeId node) override;
  double tree_ns(ExprId expr) const override;
  double own_ns(ExprId expr) const override;
  const Machine& machine() const override { return machine_; }
  double elements(ExprId expr) const override;
  const std::vector<ExprId>& expr_users(ExprId) const override;
  bool is_live(NodeId, const std::string&) override { return true; }

 private:
  struct Member {
    NodeId node;
    int group = 0;
    int below = 0;  ///< the group that it reads; -1: none, what `chain` stands over
    const Rule* rule = nullptr;
  };
  struct Group {
    std::vector<int> members, readers;  ///< readers: members of other groups
  };
  /// A way to a group, as a list that shares its beginning with others.
  struct Partial {
    Front front;
    int member = -1;
    const Partial* rest = nullptr;
  };

  int add_group();
  int add_member(NodeId node, int group, int below, const Rule* rule);
  /// Adds what of the chain is new; gives the group of its last step, which is `group` unless that is negative.
  int add_chain(const std::vector<NodeId>& chain, int below, int group, const Rule* rule);
  int find(const Node& node, int below) const;
  /// Both deliver the same.
  void unite(int group, int other);
  size_t hash(const Node& node, int below) const;
  void try_rules(int outer, int inner);
  void take_result(int outer, int inner, const Rule& rule);
  const std::vector<Partial>& ways(int group, const FieldSet& live);
  bool holds_exactly(const Rule& rule, const Match& match);

  Graph& graph_;
  std::span<const Rule* const> rules_;
  const OpTable& ops_;
  const Machine& machine_;
  StreamCost& cost_;
  const SearchBounds bounds_;
  Reads reads_{graph_};
  std::vector<Group> groups_;
  std::vector<Member> members_;
  std::unordered_multimap<size_t, int> known_;
  std::vector<std::pair<int, int>> work_;  // pairs (outer, inner) to try
  std::map<std::pair<int, FieldSet>, std::vector<Partial>> ways_;
  std::vector<Partial> above_;  // the one way to the base
  int top_group_ = 0;           // of the whole chain
  NodeId upper_, lower_;        // copies that rules try their hands on
  NodeId top_, base_;           // of the pair that a rule is working on
  int pairs_ = 0;
  bool bounded_ = false;
};

}  // namespace zephon
