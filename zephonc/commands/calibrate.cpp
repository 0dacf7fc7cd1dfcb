// zephonc calibrate: what operators cost on this machine, kept for the plans to come.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "graph/op_def.h"
#include "zephonc/calibration.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/costs_file.h"

namespace zephon {
namespace {

std::string figures(const CalibrationResult& result) {
  std::map<std::string_view, const OperatorCost*> sorted;
  for (const auto& [op, cost] : result.measured.operators.operators) sorted[op->name] = &cost;
  std::string out = fmt::format("{:<24} {:>10} {:>12} {:>12}  {}\n", "operator", "ns a call", "ns an element",
                                "ns an in-byte", "ns an element by type");
  for (const auto& [name, cost] : sorted) {
    out += fmt::format("{:<24} {:>10.4g} {:>12.4g} {:>12.4g} ", name, cost->cost.ns_per_call, cost->cost.ns_per_element,
                       cost->cost.ns_per_input_byte);
    for (size_t i = 0; i < kElemTypes; ++i)
      if (cost->ns_by_elem[i] > 0)
        out += fmt::format(" {} {:.3g}", elem_name(static_cast<Elem>(i)), cost->ns_by_elem[i]);
    out += "\n";
  }
  for (const auto& [op, why] : result.left_out) out += fmt::format("{:<24} as declared: {}\n", op->name, why);
  return out + fmt::format("a kernel call {:.3g} ns, a step {:.3g} ns a row, memory {:.3g} bytes/ns\n",
                           result.measured.ns_per_kernel_call, result.measured.ns_per_row_and_step,
                           result.measured.bytes_per_ns);
}

}  // namespace

int command_calibrate(const Options& options) {
  const CostStore store;
  if (options.clear) {
    const int count = store.clear();
    say(fmt::format("{} files of costs removed", count));
    return kExitOk;
  }
  const CalibrationResult result = calibrate([](const OpDef&) {});
  if (options.json) {
    Machine machine;
    machine.operators = std::make_shared<const OperatorCosts>(result.measured.operators);
    machine.ns_per_kernel_call = result.measured.ns_per_kernel_call;
    machine.ns_per_row_and_step = result.measured.ns_per_row_and_step;
    machine.bytes_per_ns = result.measured.bytes_per_ns;
    if (int code = print(json_of(machine).dump(2) + "\n"); code != kExitOk) return code;
  } else if (int code = print(figures(result)); code != kExitOk) {
    return code;
  }
  if (!store.keep(result.measured)) {
    say("zephonc: the costs cannot be kept: the folder of the kernel cache (ZEPHON_CACHE_DIR) cannot be written");
    return kExitRun;
  }
  say(fmt::format("{} operators measured in {:.1f} s and kept in `{}`", result.measured.operators.operators.size(),
                  result.seconds, store.folder()));
  return kExitOk;
}

}  // namespace zephon
