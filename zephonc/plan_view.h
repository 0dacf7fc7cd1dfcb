#pragma once
// Graphs and plans for people and for programs: text, Graphviz dot, SVG, JSON.

#include <optional>
#include <string>

#include "frontend/diag/span.h"
#include "graph/plan.h"

namespace zephon {

/// The typed graph: a line a node, sources first, with the fields' types and source lines.
std::string graph_text(const Graph& graph, const SourceMap& sources);
std::string graph_dot(const Graph& graph, const SourceMap& sources, const std::string& title);
std::string graph_json(const Graph& graph, const SourceMap& sources, const std::string& stage);

/// The physical plan: a line a stage, sources first, with what it computes, costs and source lines.
std::string plan_text(const Plan& plan, const SourceMap& sources);
std::string plan_dot(const Plan& plan, const SourceMap& sources, const std::string& title);
/// `options`: JSON text, kept under that key.
std::string plan_json(const Plan& plan, const SourceMap& sources, const std::string& options);
/// "source -> decode_region, resize -> batch -> deliver".
std::string plan_one_line(const Plan& plan);

/// Runs Graphviz. Nothing and `error` set where it is not installed, or does not like what it got.
std::optional<std::string> dot_to_svg(const std::string& dot, std::string& error);

}  // namespace zephon
