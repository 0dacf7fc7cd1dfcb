#pragma once
// Order, number and identity of rows: what a dataset operator does to them. Facts, changes nothing.

#include <cstdint>
#include <optional>

#include "graph/graph.h"
#include "graph/op_def.h"

namespace zephon {

/// One row in, the same row out, with other fields: assignments and projections.
bool is_one_to_one(const Node& node);
/// A filter: drops rows by their values, one by one.
bool is_filter(const Node& node);
/// shuffle() of the whole domain: a renumbering, which commutes with filters.
bool permutes_domain(const Node& node);
/// Drops or reorders rows by their arrival number only, never looks at values: take, skip, shard, windowed shuffle.
bool moves_by_arrival(const Node& node);
/// Only renumbers an indexed domain, and its input is one: may be folded into the source's index.
bool is_renumbering(const Graph& graph, const Node& node);
/// How many repeats stand on each way from a source by `node` to the output; none where the ways differ.
std::optional<int32_t> pass_count(const Graph& graph, NodeId node);

}  // namespace zephon
