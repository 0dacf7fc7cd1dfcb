#pragma once
// How a plan came to be, in words: the story rule by rule, and why a rule did something or nothing.

#include <string>
#include <vector>

#include "optimizer/optimizer.h"

namespace zephon {

class Session;

/// Nanoseconds for each row of a source, by the cost model.
double plan_ns(const Plan& plan);
/// "~1.24 ms": three digits
std::string cost_text(double ns);
/// "line 4", or "lib.zpl, line 4" in a file that the program imports. Empty for "no place".
std::string line_text(const Session& session, const Span& span);
/// Applications that are one to a reader, one after the other: a rule that moved one step several times, or that
/// changed several expressions in one go.
struct Chapter {
  size_t first = 0, end = 0;               ///< of Trace::applied
  double cost_before = 0, cost_after = 0;  ///< nanoseconds per sample of what changed, in sum
  std::vector<Span> places;                ///< each once
};
std::vector<Chapter> chapters(const Trace& trace);
/// "~570 us -> ~415 us a sample", or nothing.
std::string cost_change(double before, double after);
/// What a chapter changed, as a diff of steps. Empty where no texts were kept, as for the planner's rules.
std::string change_text(const Trace& trace, const Chapter& chapter, size_t context);
/// "line 9", "line 9, 11"
std::string lines_text(const Session& session, const std::vector<Span>& places);

/// Every chapter in order with its cost before and after and a diff, then what each rule saved, and the sum.
std::string steps_text(const Session& session, const OptimizeResult& result, double written_ns);

/// Answers RULE, RULE@LINE or RULE@FILE:LINE: where the rule was applied, which guard held it back, that its pattern
/// does not occur there, that it was not tried. An exit code.
int why(const Session& session, const OptimizeOptions& how, const OptimizeResult& result, const std::string& question);

}  // namespace zephon
