#include "zephonc/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "zephonc/console.h"

namespace zephon {

// Batches that were ready when the first was delivered say nothing of the steady rate.
constexpr double kLeastSteadySeconds = 0.1;

double RunReport::samples_per_second() const {
  if (steady_samples > 0 && steady_seconds >= kLeastSteadySeconds)
    return static_cast<double>(steady_samples) / steady_seconds;
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

std::string RunReport::one_line() const {
  std::string out = fmt::format("{} samples", human_count(static_cast<double>(samples)));
  if (batched) out += fmt::format(" in {} batches", human_count(static_cast<double>(batches)));
  out += fmt::format(", {} samples/s, {} (start-up {}), peak {} over a base of {}", human_count(samples_per_second()),
                     human_seconds(seconds), human_seconds(startup_seconds),
                     human_bytes(static_cast<double>(peak_rss - std::min(base_rss, peak_rss))),
                     human_bytes(static_cast<double>(base_rss)));
  for (const auto& [policy, count] : errors) out += fmt::format("; {} failed: {}", count, policy);
  for (const auto& [file, count] : written) out += fmt::format("; {} written to {}", count, file);
  if (dropped_batches > 0) out += fmt::format("; {} batches of an incomplete round dropped", dropped_batches);
  if (!relaxations.empty()) out += fmt::format("; RELAXED: {}", fmt::join(relaxations, ", "));
  if (!plan.empty()) out += fmt::format("; {}", plan);
  return out;
}

std::string RunReport::table() const {
  size_t width = 8;
  for (const OperatorLine& op : operators) width = std::max(width, std::min<size_t>(op.name.size(), 48));
  std::string out = fmt::format("{:<{}} {:>5} {:>12} {:>12} {:>12} {:>10} {:>12} {:>10}\n", "operator", width, "line",
                                "samples in", "samples out", "bytes out", "CPU", "CPU/sample", "wait");
  double total = 0;
  for (const OperatorLine& op : operators) {
    double each = op.samples_in > 0 ? op.cpu_seconds / static_cast<double>(op.samples_in) : 0;
    total += op.cpu_seconds;
    out += fmt::format("{:<{}} {:>5} {:>12} {:>12} {:>12} {:>10} {:>12} {:>10}\n", op.name.substr(0, 48), width,
                       op.line > 0 ? std::to_string(op.line) : "", human_count(static_cast<double>(op.samples_in)),
                       human_count(static_cast<double>(op.samples)), human_bytes(static_cast<double>(op.bytes_out)),
                       human_seconds(op.cpu_seconds), human_seconds(each), human_seconds(op.wait_seconds));
  }
  out += fmt::format("CPU in operators {}, of the process {}; in flight at most {}", human_seconds(total),
                     human_seconds(cpu_seconds), human_bytes(static_cast<double>(peak_in_flight)));
  if (kept > 0) out += fmt::format("; {} kept by `cache`", human_bytes(static_cast<double>(kept)));
  out += "\n";
  return out;
}

std::string RunReport::json() const {
  using Json = nlohmann::ordered_json;
  Json handled = Json::object(), lines = Json::array();
  for (const auto& [policy, count] : errors) handled[policy] = handled.value(policy, uint64_t{0}) + count;
  for (const OperatorLine& op : operators) {
    lines.push_back({{"name", op.name},
                     {"line", op.line},
                     {"samples_in", op.samples_in},
                     {"samples", op.samples},
                     {"bytes_out", op.bytes_out},
                     {"cpu_seconds", op.cpu_seconds},
                     {"wait_seconds", op.wait_seconds}});
  }
  Json out{{"end", end},
           {"samples", samples},
           {"batches", batches},
           {"dropped_batches", dropped_batches},
           {"seconds", seconds},
           {"startup_seconds", startup_seconds},
           {"steady_seconds", steady_seconds},
           {"samples_per_second", samples_per_second()},
           {"cpu_seconds", cpu_seconds},
           {"peak_rss", peak_rss},
           {"base_rss", base_rss},
           {"peak_in_flight", peak_in_flight},
           {"kept", kept},
           {"digest", digest.empty() ? Json() : Json(digest)},
           {"errors", handled},
           {"relaxations", relaxations},
           {"plan_hash", plan_hash},
           {"operators", lines}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zephon
