#pragma once
// Graphs and plans for people and for programs: text, Graphviz dot, SVG, JSON.

#include <optional>
#include <string>
#include <vector>

#include "frontend/diag/span.h"
#include "graph/plan.h"
#include "optimizer/engine/trace.h"

namespace zephon {

/// What belongs to a plan beside itself.
struct PlanFacts {
  const Trace& trace;
  double written_ns = 0;                 ///< of the program as written, for each row of a source
  std::vector<std::string> relaxations;  ///< that are on
  std::string costs = "{}";              ///< JSON: where they come from
};

/// The typed graph: a line a node, sources first, with the fields' types and source lines.
/// `as_written`: what stands for several operators (`split(...)`) is shown as it was written; else behind what it became.
std::string graph_text(const Graph& graph, const SourceMap& sources, bool as_written);
std::string graph_dot(const Graph& graph, const SourceMap& sources, const std::string& title);
std::string graph_json(const Graph& graph, const SourceMap& sources, const std::string& stage);

/// The physical plan: a line a stage, sources first, with what it computes, costs and source lines.
std::string plan_text(const Plan& plan, const SourceMap& sources, const std::vector<std::string>& relaxations);
std::string plan_dot(const Plan& plan, const SourceMap& sources, const std::string& title);
/// docs/CLI.md describes the fields. `options`: JSON text, kept under that key.
std::string plan_json(const Plan& plan, const SourceMap& sources, const PlanFacts& facts, const std::string& options);
/// "source -> decode_region, resize -> batch -> deliver".
std::string plan_one_line(const Plan& plan);

/// What stands for several operators, such as `split(part, by=x, train=0.9, val=0.1)`, as it is written in the program;
/// empty of any other step.
std::string composite_step(const SourceMap& sources, const Node& node);

/// "f32[3, 224, 224]" of each field, or the difference to the type before: what a step added or took away.
std::string type_change(const StreamType& type, const StreamType* before);
/// Kind and operator of a plan node: "source files(...)", "compute".
std::string headline_of(const Plan& plan, const PlanNode& node);
/// "~1.2 ms a row, 588.0 KiB a row, chunks of 64, in order"
std::string cost_of(const PlanNode& node);

/// Runs Graphviz: the text of `dot` as `format`, "svg" or "plain". Nothing and `error` set where it is not installed,
/// or does not like what it got.
std::optional<std::string> run_graphviz(const std::string& dot, const std::string& format, std::string& error);

}  // namespace zephon
