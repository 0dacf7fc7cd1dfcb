#pragma once
// What the steps of a stream cost, in their order: the planner's stages, as far as costs depend on them. Steps of one
// region share what they compute; a step that needs rows in memory has all that is needed below it made and written.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "graph/expr_set.h"
#include "graph/graph.h"
#include "optimizer/analysis/fields.h"
#include "optimizer/cost/machine.h"

namespace zephon {

/// A place between two steps of a stream: what the cost of the steps below it depends on. Right below a step that made
/// rows in memory: nothing but `rows` and `ns`.
struct Front {
  Environment env;          ///< field -> expression over the columns of the last stage; others are columns
  ExprSet ready;            ///< computed on the way from there
  uint64_t ready_hash = 0;  ///< of `ready`, whatever its order
  double rows = 1;          ///< for each row of the source
  double ns = 0;            ///< of CPU so far, for each row of the source
};

class StreamCost {
 public:
  /// What the expressions of one step become before they are planned.
  using Forms = std::function<std::vector<ExprId>(const std::vector<ExprId>&)>;
  /// Without `forms` they stay as they are.
  StreamCost(Graph& graph, const Machine& machine, Forms forms = {})
      : graph_(graph), machine_(machine), forms_(std::move(forms)), reads_(graph) {}

  /// One step down. `live`: the fields of the node's output that something below needs.
  void pass(Front& front, const Node& node, const FieldSet& live);
  /// Makes and writes `needed`; afterwards nothing is pending.
  void flush(Front& front, const FieldSet& needed);
  /// Equal for fronts of which every continuation costs the same, but for what they have cost so far.
  uint64_t key(const Front& front, const FieldSet& live) const;

  /// Nanoseconds for each row of a source, of the whole program.
  double program_ns();

 private:
  struct Work {
    double ns = 0;
    std::vector<ExprId> made;
  };
  Front stream(NodeId top, const std::vector<FieldSet>& live);
  double evaluate(Front& front, const std::vector<ExprId>& roots);
  const std::vector<ExprId>& form(const std::vector<ExprId>& roots);

  Graph& graph_;
  const Machine& machine_;
  const Forms forms_;
  Reads reads_;
  std::map<std::vector<ExprId>, std::vector<ExprId>> known_forms_;
  std::map<std::pair<uint64_t, std::vector<ExprId>>, Work> known_;  // by what is ready and what is asked for
};

}  // namespace zephon
