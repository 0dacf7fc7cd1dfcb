#pragma once
// What a person may fix about a plan: the costs of the machine (`--costs FILE`), the knobs of a step (`--set
// STEP.KNOB=V`), a whole plan (`--plan FILE`, as `zephonc plan --format json` printed it).

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "graph/plan.h"
#include "optimizer/cost/machine.h"
#include "zephonc/command_line.h"

namespace zephon {

class Session;

/// A JSON object: numbers named as in Machine, `operators` and `data`. An exit code where it is none, or has an unknown
/// name.
std::optional<int> read_costs(const std::string& path, Machine& machine);
/// All that a machine says, as read_costs takes it, and back. What is measured of data names filters by their steps.
nlohmann::ordered_json json_of(const Machine& machine);
bool machine_of(const nlohmann::ordered_json& json, Machine& machine, std::string& error);
/// `place` is STEP.KNOB: STEP as `find_step` reads it; knobs: parallelism, chunk. Never changes what is delivered.
std::optional<int> set_knob(Plan& plan, const Session& session, const std::string& place, const std::string& value);

/// Plans follow from the program, the options and the costs: so a plan file keeps the options, sets them, and gives the
/// hash that the plan must have. What was measured is part of it: the figures on disk may have changed since.
std::optional<int> read_plan_file(const std::string& path, Options& options, std::string& hash);
std::string plan_options_json(const Options& options, const Machine& machine);

}  // namespace zephon
