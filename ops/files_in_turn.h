#pragma once
// `cycle_length`, `block_length` of sources whose rows lie in several files: `interleave` of the files of one pattern.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/op_def.h"

namespace zephon {

/// "" or what is wrong with the arguments.
std::string files_in_turn_problem(const Node& node);
/// How many files are read side by side; 1 where they are read one after the other.
uint64_t files_at_a_time(const Node& node);

/// `source`, whose positions go through files of `rows` rows each, one file after the other; or, where `node` has a
/// `cycle_length`, the same rows in turn: so many files are open at a time, each gives `block_length` rows, and one
/// that ends leaves its place to the next, which gives its rows at once. Positions are those in this order.
std::unique_ptr<Source> files_in_turn(std::unique_ptr<Source> source, const std::vector<uint64_t>& rows,
                                      const Node& node);

}  // namespace zephon
