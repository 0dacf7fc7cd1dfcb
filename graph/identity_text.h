#pragma once

#include <string>

#include "graph/graph.h"

namespace zephon {

/// Everything that decides what is delivered, and nothing else: operators, attributes, constants to the bit, types, draw ids. Equal
/// texts deliver the same from the same data and seed, however the programs were written.
std::string identity_text(const Graph& graph);

}  // namespace zephon
