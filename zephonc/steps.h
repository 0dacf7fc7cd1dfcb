#pragma once
// Numbers of steps, the same everywhere: `check` prints them, `--at` and `--set` take them, messages name them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"

namespace zephon {

class Session;

/// A step as written is N, from 1, in the order of `check`. Where it became several nodes (a source and what it assigns
/// by itself; what rules split), those are N.1, N.2, ... from the source on.
class StepNumbers {
 public:
  explicit StepNumbers(const Graph& graph);
  const std::string& of(NodeId id) const { return numbers_.at(id); }

 private:
  std::map<NodeId, std::string> numbers_;
};

/// The number of a step without regard to its parts.
inline int32_t step_number(int32_t step) { return step + 1; }

/// The node that a person means, in the graph as written: a number as `check` prints it, `@LINE` (the last step that
/// the line is part of), or the name of an operator (the last of that name). A whole step is its last node. nullopt and
/// a message where there is none.
std::optional<NodeId> find_step(const Session& session, const std::string& word, std::string& error);

/// The node to which a place in the program belongs: the last whose step stands there, or which uses the expression
/// that stands there (in a function). nullopt where there is none.
std::optional<NodeId> step_at(const Graph& graph, const Span& place);

}  // namespace zephon
