#include "zephonc/cost_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "graph/op_def.h"
#include "optimizer/cost/cost.h"
#include "optimizer/plan/groups.h"
#include "zephonc/console.h"

namespace zephon {
namespace {

struct FilterCost {
  NodeId node;
  double kept = 0;
  int64_t rows = 0;  ///< that it was measured on; 0: assumed
  bool measured = false;
};

struct Origins {
  std::set<std::string_view> measured, calibrated, declared;  ///< operators that the plan computes with
  std::vector<FilterCost> filters;
};

Origins origins_of(const Plan& plan, const Machine& machine) {
  Origins out;
  for (const PlanNode& node : plan.nodes)
    for (const ComputeStep& step : node.steps) {
      if (step.kind == ComputeStep::Kind::Filter) {
        if (!step.filter.valid()) continue;
        const Node& filter = plan.graph.node(step.filter);
        FilterCost cost{step.filter, kept_share(plan.graph, filter, machine), 0, false};
        cost.measured = machine.data && machine.data->kept(filter.step, filter.part);
        if (cost.measured) {
          auto it = machine.data->filters.find({filter.step, filter.part});
          if (it != machine.data->filters.end()) cost.rows = it->second.rows;
        }
        out.filters.push_back(cost);
        continue;
      }
      for (ExprId id : interior(plan.graph, step.group)) {
        const OpDef* op = plan.graph.expr(id).op;
        if (machine.data && machine.data->operators.contains(op))
          out.measured.insert(op->name);
        else if (machine.operators && machine.operators->operators.contains(op))
          out.calibrated.insert(op->name);
        else
          out.declared.insert(op->name);
      }
    }
  return out;
}

}  // namespace

std::string costs_text(const Session& session, const OptimizeResult& result, const Machine& machine) {
  const Session::CostOrigin& from = session.cost_origin();
  const Origins origins = origins_of(result.plan, machine);
  std::string out = "costs: ";
  if (!from.fixed.empty()) {
    out += fmt::format("as `{}` says\n", from.fixed);
  } else if (from.ignored) {
    out += "assumed, what was measured is not used\n";
  } else if (from.machine.empty() && from.data.empty()) {
    out += "assumed; `zephonc calibrate` measures this machine, and a run its data\n";
  } else {
    std::vector<std::string> parts;
    if (!from.data.empty())
      parts.push_back(
          fmt::format("of this data by runs until {}: {}", from.data,
                      origins.measured.empty() ? "no operator" : fmt::to_string(fmt::join(origins.measured, ", "))));
    if (!from.machine.empty() && !origins.calibrated.empty())
      parts.push_back(fmt::format("of this machine {}: {}", from.machine, fmt::join(origins.calibrated, ", ")));
    if (!origins.declared.empty()) parts.push_back(fmt::format("assumed: {}", fmt::join(origins.declared, ", ")));
    out += fmt::format("measured {}\n", fmt::join(parts, "; "));
  }
  for (const FilterCost& filter : origins.filters) {
    const Node& node = result.plan.graph.node(filter.node);
    out += fmt::format(
        "  line {} keeps {:.3g}%, {}: {}\n", session.line_of(node.origin), 100 * filter.kept,
        filter.measured ? fmt::format("measured on {} rows", human_count(static_cast<double>(filter.rows))) : "assumed",
        to_text(result.plan.graph, filter.node));
  }
  return out;
}

std::string costs_json(const Session& session, const OptimizeResult& result, const Machine& machine) {
  using Json = nlohmann::ordered_json;
  const Session::CostOrigin& from = session.cost_origin();
  const Origins origins = origins_of(result.plan, machine);
  Json filters = Json::array();
  for (const FilterCost& filter : origins.filters) {
    const Node& node = result.plan.graph.node(filter.node);
    filters.push_back({{"line", session.line_of(node.origin)},
                       {"text", to_text(result.plan.graph, filter.node)},
                       {"kept", filter.kept},
                       {"measured", filter.measured},
                       {"rows", filter.rows}});
  }
  return Json{{"file", from.fixed},
              {"machine", from.machine},
              {"data", from.data},
              {"operators",
               {{"measured", origins.measured}, {"calibrated", origins.calibrated}, {"assumed", origins.declared}}},
              {"filters", filters}}
      .dump();
}

}  // namespace zephon
