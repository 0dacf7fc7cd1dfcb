#pragma once
// What a filter asks, and of what: the same in every program that asks it, whatever stands around it.

#include <map>
#include <string>

#include "graph/graph.h"

namespace zephon {

/// Of a program as written, by step: a hash of the filter's predicate and of all that it reads, from the sources on.
/// Draw ids and the steps that only move rows are no part of it.
std::map<int32_t, std::string> filter_lineage(const Graph& graph);
/// A hash of its sources.
std::string source_lineage(const Graph& graph);

}  // namespace zephon
