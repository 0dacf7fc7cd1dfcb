#pragma once
// The plan as one HTML page that needs nothing else: `zephonc plan FILE --format html`.

#include <string>
#include <string_view>

#include "optimizer/cost/machine.h"
#include "zephonc/plan_view.h"

namespace zephon {

class Session;
struct OptimizeResult;

/// The text of the page; `result` keeps the texts of its trace.
std::string plan_page(const Session& session, const OptimizeResult& result, const PlanFacts& facts,
                      const Machine& machine);

/// zephonc/page/NAME ("page.css", "page.js"), embedded by the build.
std::string_view page_asset(std::string_view name);

}  // namespace zephon
