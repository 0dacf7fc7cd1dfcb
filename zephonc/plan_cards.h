#pragma once
// A graph and the plan made of it as cards with a row for each operator, and what belongs together: an operator and
// what became of it, a rule and what it touched. What the page draws (plan_page.h).

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/diag/span.h"
#include "optimizer/optimizer.h"

namespace zephon {

class Session;

/// One operator on the fields of a sample.
struct CardRow {
  enum class State : uint8_t { Same, Gone, Made };  ///< as written: is it in the plan? As planned: was it written?
  std::string label;                                ///< itself, its arguments as "…"; "image = ….resize(…)"
  std::string text;                                 ///< with its arguments
  std::string type;
  double ns = 0;    ///< per sample that comes to it
  size_t card = 0;  ///< of its graph
  int kernel = -1;  ///< of the card's kernels, where it shares one
  State state = State::Same;
  std::vector<Span> places;
  std::vector<size_t> args;   ///< rows of its graph
  std::vector<size_t> twins;  ///< rows of the other graph that are the same operator
  std::vector<size_t> applications;
};

/// Rows [first, end) that are computed together.
struct CardKernel {
  std::string name;
  size_t first = 0, end = 0;
};

/// A step as written, or a node of the plan.
struct Card {
  std::string title, text, note, cost;
  std::vector<std::string> fields;  ///< "image: u8[?, ?, 3]", of what comes out
  size_t first_row = 0, end_row = 0;
  std::vector<CardKernel> kernels;
  std::vector<size_t> inputs;  ///< cards
  std::vector<int32_t> steps;
  std::vector<Span> places;
  std::vector<size_t> applications;
};

struct CardGraph {
  std::vector<Card> cards;    ///< inputs before users
  std::vector<CardRow> rows;  ///< card by card
};

/// What a rule touched, of both graphs.
struct Touched {
  std::vector<size_t> rows[2], cards[2];
};

struct PlanCards {
  CardGraph written, planned;
  std::vector<Touched> applications, refusals;  ///< as in the trace
};

PlanCards plan_cards(const Session& session, const OptimizeResult& result, const Machine& machine);

}  // namespace zephon
