#include "zephonc/costs_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "ops/all_ops.h"
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

Json json_of(const Machine& machine) {
  Json out = Json::object();
  for (const CostName& cost : kCosts) out[cost.name] = machine.*cost.member;
  if (machine.operators) {
    std::map<std::string_view, const OperatorCost*> sorted;
    for (const auto& [op, cost] : machine.operators->operators) sorted[op->name] = &cost;
    Json operators = Json::object();
    for (const auto& [name, cost] : sorted) {
      Json types = Json::object();
      for (size_t i = 0; i < kElemTypes; ++i)
        if (cost->ns_by_elem[i] > 0) types[std::string(elem_name(static_cast<Elem>(i)))] = cost->ns_by_elem[i];
      operators[std::string(name)] = {{"ns_per_call", cost->cost.ns_per_call},
                                      {"ns_per_element", cost->cost.ns_per_element},
                                      {"ns_per_input_byte", cost->cost.ns_per_input_byte},
                                      {"types", types}};
    }
    out["operators"] = operators;
  }
  if (machine.data) {
    Json filters = Json::array(), operators = Json::object();
    for (const auto& [place, filter] : machine.data->filters)
      filters.push_back({{"step", place.first}, {"part", place.second}, {"kept", filter.kept}, {"rows", filter.rows}});
    std::map<std::string_view, const DataFacts::Operator*> sorted;
    for (const auto& [op, fact] : machine.data->operators) sorted[op->name] = &fact;
    for (const auto& [name, f] : sorted)
      operators[std::string(name)] = {{"calls", f->calls},
                                      {"ns", f->ns},
                                      {"elements", f->elements},
                                      {"input_bytes", f->input_bytes},
                                      {"scale", f->scale}};
    out["data"] = {{"filters", filters}, {"operators", operators}};
  }
  return out;
}

namespace {

const OpDef* operator_named(const std::string& name, std::string& error) {
  const OpDef* op = all_ops().find(name);
  if (op == nullptr) error = fmt::format("no operator `{}`", name);
  return op;
}

bool read_operators(const Json& json, Machine& machine, std::string& error) {
  OperatorCosts costs;
  for (const auto& [name, c] : json.items()) {
    const OpDef* op = operator_named(name, error);
    if (op == nullptr) return false;
    OperatorCost& cost = costs.operators[op];
    cost.cost = op->cost;
    for (const auto& [key, member] :
         {std::pair("ns_per_call", &OpCost::ns_per_call), std::pair("ns_per_element", &OpCost::ns_per_element),
          std::pair("ns_per_input_byte", &OpCost::ns_per_input_byte)}) {
      cost.cost.*member = c.value(key, cost.cost.*member);
      if (!(cost.cost.*member >= 0)) error = fmt::format("`{}` of `{}` needs a number of at least 0", key, name);
    }
    const Json types = c.value("types", Json::object());
    for (const auto& [type, ns] : types.items()) {
      const std::optional<Elem> elem = elem_from_name(type);
      if (elem) cost.ns_by_elem[static_cast<size_t>(*elem)] = ns.get<double>();
      if (!elem) error = fmt::format("no element type `{}`", type);
    }
  }
  machine.operators = std::make_shared<const OperatorCosts>(std::move(costs));
  return error.empty();
}

bool read_data(const Json& json, Machine& machine, std::string& error) {
  DataFacts facts;
  for (const Json& f : json.value("filters", Json::array())) {
    const DataFacts::Filter filter{f.at("kept").get<double>(), f.value("rows", int64_t{0})};
    if (!(filter.kept >= 0 && filter.kept <= 1)) error = "`kept` of a filter needs a number between 0 and 1";
    facts.filters[{f.at("step").get<int32_t>(), f.value("part", std::vector<int32_t>())}] = filter;
  }
  const Json operators = json.value("operators", Json::object());
  for (const auto& [name, f] : operators.items()) {
    const OpDef* op = operator_named(name, error);
    if (op == nullptr) return false;
    facts.operators[op] = {f.value("calls", int64_t{0}), f.value("ns", 0.0), f.value("elements", 0.0),
                           f.value("input_bytes", 0.0), f.value("scale", 1.0)};
    if (!(facts.operators[op].scale > 0)) error = fmt::format("`scale` of `{}` needs a positive number", name);
  }
  machine.data = std::make_shared<const DataFacts>(std::move(facts));
  return error.empty();
}

}  // namespace

bool machine_of(const Json& json, Machine& machine, std::string& error) {
  std::vector<std::string> names = {"operators", "data"};
  for (const CostName& cost : kCosts) names.emplace_back(cost.name);
  try {
    for (const auto& [name, value] : json.items()) {
      if (name == "operators" || name == "data") {
        if (!(name == "data" ? read_data : read_operators)(value, machine, error)) return false;
        continue;
      }
      const auto* found = std::ranges::find_if(kCosts, [&](const CostName& cost) { return name == cost.name; });
      if (found == std::end(kCosts)) {
        const std::string hint = did_you_mean(name, names);
        error = fmt::format("no cost `{}`{}", name, hint.empty() ? "" : "; " + hint);
        return false;
      }
      if (!value.is_number() || value.get<double>() <= 0) {
        error = fmt::format("`{}` needs a positive number", name);
        return false;
      }
      machine.*found->member = value.get<double>();
    }
  } catch (const Json::exception&) {
    error = "`operators` and `data` are written as `zephonc plan --json` shows them, under options, measured";
    return false;
  }
  return true;
}

std::optional<int> read_costs(const std::string& path, Machine& machine) {
  Json costs;
  if (auto code = read_json(path, costs)) return code;
  std::string error;
  if (!machine_of(costs, machine, error)) return usage(fmt::format("`{}`: {}", path, error));
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

std::string plan_options_json(const Options& o, const Machine& machine) {
  Json knobs = Json::array();
  for (const auto& [place, value] : o.knobs) knobs.push_back({place, value});
  Json out = {{"no_optimize", o.no_optimize}, {"disable", o.disable}, {"relax", o.relax}, {"chunk", o.chunk},
              {"threads", o.threads},         {"memory", o.memory},   {"knobs", knobs},   {"costs", o.costs}};
  if (o.costs.empty() && (machine.operators || machine.data)) out["measured"] = json_of(machine);
  return out.dump();
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
    options.measured = o.contains("measured") ? o["measured"].dump() : "{}";
    options.knobs.clear();
    for (const Json& knob : o.at("knobs"))
      options.knobs.emplace_back(knob.at(0).get<std::string>(), knob.at(1).get<std::string>());
  } catch (const Json::exception&) {
    return wrong();
  }
  return std::nullopt;
}

}  // namespace zephon
