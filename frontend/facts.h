// What the front end learns on its way through a program, for editors: what stands where, and where it was declared.
// Filled as far as the program is right. A function has the facts of each of its calls.
#pragma once

#include <string>
#include <vector>

#include "frontend/diag/span.h"
#include "graph/op_def.h"
#include "graph/types.h"

namespace zephon {

struct Facts {
  struct Value {
    Span span;
    std::string type;   // "f32[3, h, w]"
    std::string known;  // the value, where it is known before the run
  };
  struct Use {
    Span span, declared;
  };
  struct Operator {
    Span span;  // of its name
    const OpDef* op;
  };
  struct Step {
    Span span, pipe;
    StreamType type;  // after it
  };
  std::vector<Value> values;
  std::vector<Use> uses;
  std::vector<Operator> operators;
  std::vector<Step> steps;
};

}  // namespace zephon
