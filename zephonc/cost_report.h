#pragma once
// Which costs a plan was chosen by: calibrated on this machine, measured of this data, or assumed; and from when.

#include <string>

#include "optimizer/optimizer.h"
#include "zephonc/session.h"

namespace zephon {

/// Some lines below a plan.
std::string costs_text(const Session& session, const OptimizeResult& result, const Machine& machine);
/// One JSON object; docs/CLI.md describes it.
std::string costs_json(const Session& session, const OptimizeResult& result, const Machine& machine);

}  // namespace zephon
