#include "optimizer/cost/machine.h"

#include <algorithm>
#include <cmath>

namespace zephon {
namespace {

constexpr double kPriorCalls = 4;

}  // namespace

std::optional<double> DataFacts::kept(int32_t step, const std::vector<int32_t>& part) const {
  std::optional<double> kept;
  for (auto it = filters.lower_bound({step, part}); it != filters.end() && it->first.first == step; ++it) {
    const std::vector<int32_t>& known = it->first.second;
    if (known.size() < part.size() || !std::equal(part.begin(), part.end(), known.begin())) break;
    if (known == part) return it->second.kept;
    kept = kept.value_or(1) * it->second.kept;
  }
  return kept;
}

OpCost cost_of(const OpDef& op, const Machine& machine) {
  if (machine.operators)
    if (auto it = machine.operators->operators.find(&op); it != machine.operators->operators.end())
      return it->second.cost;
  return op.cost;
}

void use_data(Machine& machine, DataFacts facts, const OpTable& ops) {
  if (facts.extent > 0) machine.default_extent = facts.extent;
  if (facts.text_bytes > 0) machine.default_text_bytes = facts.text_bytes;
  if (facts.record_bytes > 0) machine.default_record_bytes = facts.record_bytes;
  if (facts.blob_bytes > 0) machine.default_blob_bytes = facts.blob_bytes;
  for (auto& [op, fact] : facts.operators) {
    const OpCost cost = cost_of(*op, machine);
    const double model =
        cost.ns_per_call + cost.ns_per_element * fact.elements + cost.ns_per_input_byte * fact.input_bytes;
    // A few calls say little: the model counts as much as kPriorCalls of them.
    const auto calls = static_cast<double>(fact.calls);
    const double weight = calls / (calls + kPriorCalls);
    const double own = std::max(fact.ns - machine.ns_per_kernel_call, 0.1 * fact.ns);
    fact.scale = model > 0 && own > 0 ? std::pow(std::clamp(own / model, 1e-3, 1e3), weight) : 1;
  }
  const auto share = [&](const OpDef* from, const OpDef* to) {
    auto it = facts.operators.find(from);
    if (it == facts.operators.end() || it->second.calls == 0) return;
    facts.operators.try_emplace(to, DataFacts::Operator{0, 0, 0, 0, it->second.scale});
  };
  for (const OpDef* op : ops.all()) {
    if (op->region_form == nullptr) continue;
    share(op, op->region_form);
    share(op->region_form, op);
  }
  machine.data = std::make_shared<const DataFacts>(std::move(facts));
}

}  // namespace zephon
