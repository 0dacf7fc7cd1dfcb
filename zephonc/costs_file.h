#pragma once
// What a person may fix about a plan: the costs of the machine (`--costs FILE`), the knobs of a step (`--set
// STEP.KNOB=V`), a whole plan (`--plan FILE`, as `zephonc plan --format json` printed it).

#include <optional>
#include <string>

#include "graph/plan.h"
#include "optimizer/cost/machine.h"
#include "zephonc/command_line.h"

namespace zephon {

class Session;

/// A JSON object of numbers, named as in Machine. An exit code where it is none, or has an unknown name.
std::optional<int> read_costs(const std::string& path, Machine& machine);
/// `place` is STEP.KNOB: STEP as `find_step` reads it; knobs: parallelism, chunk. Never changes what is delivered.
std::optional<int> set_knob(Plan& plan, const Session& session, const std::string& place, const std::string& value);

/// Plans follow from the program, the options and the costs: so a plan file keeps the options, sets them, and gives the
/// hash that the plan must have.
std::optional<int> read_plan_file(const std::string& path, Options& options, std::string& hash);
std::string plan_options_json(const Options& options);

}  // namespace zephon
