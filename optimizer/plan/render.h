#pragma once
// Plans and graphs for people and for programs: text, dot, JSON.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/plan.h"

namespace zephon {

std::string_view kind_name(PlanNode::Kind kind);
std::string_view kind_name(KernelGroup::Kind kind);

/// What a plan node does, on one line.
std::string headline(const Plan& plan, const PlanNode& node);

/// The steps of a compute stage, with names for what lies between them. `graph`: a copy of the plan's, to which
/// printing adds expressions; one serves for all stages.
class StageText {
 public:
  StageText(Graph& graph, const PlanNode& node);
  std::vector<std::string> lines();
  std::string name_of(ExprId expr) const;

 private:
  std::string definition(ExprId root);
  Graph& graph_;
  const PlanNode& node_;
  std::map<ExprId, std::string> names_;
  const OpDef* field_op_ = nullptr;
};

}  // namespace zephon
