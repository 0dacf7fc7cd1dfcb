#pragma once
// The trace for people: `zephonc plan --steps` and `--why`.

#include <string>
#include <string_view>

#include "frontend/diag/span.h"
#include "optimizer/engine/trace.h"

namespace zephon {

/// One diff of the graph per application, headed by the rule, its place and the cost before and after. Needs a trace
/// that keeps texts. `costs` off: without numbers, for golden tests.
std::string steps_text(const Trace& trace, const SourceMap& sources, bool costs = true);

/// Where the rule was applied, and which guard refused it elsewhere; only on `line` where that is not 0.
std::string why_text(const Trace& trace, const SourceMap& sources, std::string_view rule, uint32_t line = 0);

/// Lines that differ, `-` and `+`, with those that do not around them.
std::string line_diff(const std::string& before, const std::string& after);

}  // namespace zephon
