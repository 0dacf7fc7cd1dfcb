#include "zephonc/costs_file.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/session.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

struct CostName {
  const char* name;
  double Machine::*member;
};
constexpr CostName kCosts[] = {
    {"ns_per_kernel_call", &Machine::ns_per_kernel_call},
    {"ns_per_row_and_step", &Machine::ns_per_row_and_step},
    {"bytes_per_ns", &Machine::bytes_per_ns},
    {"default_extent", &Machine::default_extent},
    {"default_text_bytes", &Machine::default_text_bytes},
    {"default_record_bytes", &Machine::default_record_bytes},
    {"default_blob_bytes", &Machine::default_blob_bytes},
};

int usage(const std::string& message) {
  say("zephonc: " + message);
  return kExitUsage;
}

std::optional<int> read_json(const std::string& path, Json& out) {
  Failure failure;
  auto text = read_whole_file(path, failure);
  if (!text) return show_problem(failure);
  out = Json::parse(*text, nullptr, false);
  if (!out.is_object()) return usage(fmt::format("`{}` is not a JSON object", path));
  return std::nullopt;
}

}  // namespace

std::optional<int> read_costs(const std::string& path, Machine& machine) {
  Json costs;
  if (auto code = read_json(path, costs)) return code;
  for (const auto& [name, value] : costs.items()) {
    const CostName* found = nullptr;
    std::vector<std::string> names;
    for (const CostName& cost : kCosts) {
      names.emplace_back(cost.name);
      if (name == cost.name) found = &cost;
    }
    if (found == nullptr) {
      std::string hint = did_you_mean(name, names);
      return usage(fmt::format("`{}`: no cost `{}`{}", path, name, hint.empty() ? "" : "; " + hint));
    }
    if (!value.is_number() || value.get<double>() <= 0)
      return usage(fmt::format("`{}`: `{}` needs a positive number", path, name));
    machine.*found->member = value.get<double>();
  }
  return std::nullopt;
}

std::optional<int> set_knob(Plan& plan, const Session& session, const std::string& place, const std::string& value) {
  size_t dot = place.rfind('.');
  int64_t number = 0;
  auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (dot == std::string::npos) return usage(fmt::format("--set {}={}: write STEP.KNOB=VALUE", place, value));
  if (bad != std::errc() || stop != value.data() + value.size() || number < 1) {
    return usage(fmt::format("--set {}: needs a whole number of at least 1, not `{}`", place, value));
  }
  std::string error, knob = place.substr(dot + 1);
  std::optional<NodeId> meant = find_step(session, place.substr(0, dot), error);
  if (!meant) return usage("--set: " + error);
  const int32_t step = session.graph().node(*meant).step;
  if (knob != "parallelism" && knob != "chunk") {
    std::string hint = did_you_mean(knob, std::vector<std::string>{"parallelism", "chunk"});
    return usage(fmt::format("--set: no knob `{}`: there are `parallelism` and `chunk`{}", knob,
                             hint.empty() ? "" : "; " + hint));
  }
  bool found = false;
  for (PlanNode& node : plan.nodes) {
    if (std::find(node.steps_written.begin(), node.steps_written.end(), step) == node.steps_written.end()) continue;
    found = true;
    // What must run in order stays in order.
    if (knob == "parallelism" && node.concurrency != 1) node.concurrency = static_cast<int>(number);
    if (knob == "chunk") node.chunk_rows = number;
  }
  if (!found) return usage(fmt::format("--set: nothing of `{}` is left in the plan", place.substr(0, dot)));
  return std::nullopt;
}

std::string plan_options_json(const Options& o) {
  Json knobs = Json::array();
  for (const auto& [place, value] : o.knobs) knobs.push_back({place, value});
  return Json{{"no_optimize", o.no_optimize}, {"disable", o.disable}, {"relax", o.relax}, {"chunk", o.chunk},
              {"threads", o.threads},         {"memory", o.memory},   {"knobs", knobs},   {"costs", o.costs}}
      .dump();
}

std::optional<int> read_plan_file(const std::string& path, Options& options, std::string& hash) {
  Json file;
  if (auto code = read_json(path, file)) return code;
  auto wrong = [&] { return usage(fmt::format("`{}` is no plan: write one with `zephonc plan --format json`", path)); };
  if (!file.contains("hash") || !file["hash"].is_string() || !file.contains("options") ||
      !file["options"].is_object()) {
    return wrong();
  }
  try {
    const Json& o = file["options"];
    hash = file["hash"].get<std::string>();
    options.no_optimize = o.at("no_optimize").get<bool>();
    options.disable = o.at("disable").get<std::vector<std::string>>();
    options.relax = o.at("relax").get<std::vector<std::string>>();
    options.chunk = o.at("chunk").get<int64_t>();
    options.threads = o.at("threads").get<int>();
    options.memory = o.at("memory").get<size_t>();
    options.costs = o.at("costs").get<std::string>();
    options.knobs.clear();
    for (const Json& knob : o.at("knobs"))
      options.knobs.emplace_back(knob.at(0).get<std::string>(), knob.at(1).get<std::string>());
  } catch (const Json::exception&) {
    return wrong();
  }
  return std::nullopt;
}

}  // namespace zephon
