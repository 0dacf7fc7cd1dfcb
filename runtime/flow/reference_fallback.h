#pragma once
// The reference evaluator, for rows whose kernel failed and for operators without a kernel.

#include <memory>

#include "graph/plan.h"
#include "runtime/flow/compute.h"

namespace zephon {

std::unique_ptr<RowFallback> make_reference_fallback(const Plan& plan);

}  // namespace zephon
