#include "zephonc/cost_store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/all_ops.h"
#include "runtime/kernels/code_image.h"
#include "runtime/kernels/kernel_cache.h"
#include "zephonc/console.h"
#include "zephonc/costs_file.h"
#include "zephonc/files.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kMagic = "zephon costs 1 ";
constexpr std::string_view kSuffix = ".costs";
constexpr size_t kMostFiles = 512;

std::string now() { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::time(nullptr))); }

/// The processor as the kernel names it.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

/// The content of a file of ours; nothing where there is none, and a warning where it is damaged.
std::optional<Json> read(const std::string& path, const char* remedy) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto damaged = [&]() -> std::optional<Json> {
    say(fmt::format("warning: `{}` is damaged and is not used; {} writes it anew", path, remedy));
    return std::nullopt;
  };
  Failure failure;
  const std::optional<std::string> text = read_whole_file(path, failure);
  if (!text || !text->starts_with(kMagic)) return damaged();
  const size_t line = text->find('\n');
  if (line == std::string::npos) return damaged();
  const std::string_view body = std::string_view(*text).substr(line + 1);
  if (text->substr(kMagic.size(), line - kMagic.size()) != hex_digest(body)) return damaged();
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return damaged();
  return json;
}

bool write(const std::string& path, const Json& json) {
  const std::string body = json.dump(1) + "\n";
  return !write_file_atomically(path, fmt::format("{}{}\n{}", kMagic, hex_digest(body), body));
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == kSuffix) found.push_back(it->path());
  return found;
}

}  // namespace

CostStore::CostStore() {
  const KernelOptions options = KernelOptions::from_environment();
  if (KernelCache(options.cache_dir).usable()) folder_ = options.cache_dir;
}

std::string CostStore::calibration_path() const {
  return fmt::format("{}/machine-{}{}", folder_, hex_digest(processor() + "\n" + ZEPHON_VERSION).substr(0, 16),
                     kSuffix);
}
std::string CostStore::facts_path(const std::string& place) const {
  return fmt::format("{}/data-{}{}", folder_, hex_digest(place + "\n" + ZEPHON_VERSION).substr(0, 16), kSuffix);
}

std::optional<CostStore::Calibration> CostStore::calibration() const {
  if (!usable()) return std::nullopt;
  const std::optional<Json> json = read(calibration_path(), "`zephonc calibrate`");
  if (!json) return std::nullopt;
  Calibration out;
  Machine machine;
  std::string error;
  if (json->value("processor", "") != processor() || !machine_of(json->value("costs", Json::object()), machine, error))
    return std::nullopt;
  if (machine.operators) out.operators = *machine.operators;
  out.ns_per_kernel_call = machine.ns_per_kernel_call;
  out.ns_per_row_and_step = machine.ns_per_row_and_step;
  out.bytes_per_ns = machine.bytes_per_ns;
  out.when = json->value("when", "");
  return out;
}

bool CostStore::keep(const Calibration& calibration) const {
  Machine machine;
  machine.operators = std::make_shared<const OperatorCosts>(calibration.operators);
  machine.ns_per_kernel_call = calibration.ns_per_kernel_call;
  machine.ns_per_row_and_step = calibration.ns_per_row_and_step;
  machine.bytes_per_ns = calibration.bytes_per_ns;
  return usable() && write(calibration_path(), {{"processor", processor()},
                                                {"version", ZEPHON_VERSION},
                                                {"when", calibration.when.empty() ? now() : calibration.when},
                                                {"costs", json_of(machine)}});
}

bool CostStore::has_facts(const std::string& place) const {
  std::error_code error;
  return usable() && fs::exists(facts_path(place), error);
}

std::optional<CostStore::Facts> CostStore::facts(const std::string& place, const std::string& identity) const {
  if (!usable()) return std::nullopt;
  const std::optional<Json> json = read(facts_path(place), "the next run");
  if (!json || json->value("data", "") != identity) return std::nullopt;
  Facts out;
  try {
    out.when = json->at("when").get<std::string>();
    for (const auto& [key, f] : json->at("filters").items()) {
      const Facts::Filter filter{f.at("rows").get<int64_t>(), f.at("kept").get<int64_t>(), f.at("behind").get<int>()};
      if (filter.rows > 0 && filter.kept >= 0 && filter.kept <= filter.rows) out.filters[key] = filter;
    }
    for (const auto& [name, f] : json->at("operators").items()) {
      const OpDef* op = all_ops().find(name);
      const DataFacts::Operator fact{f.at("calls").get<int64_t>(), f.at("ns").get<double>(),
                                     f.at("elements").get<double>(), f.at("input_bytes").get<double>(), 1};
      if (op != nullptr && fact.calls > 0 && fact.ns > 0) out.operators[op] = fact;
    }
    out.extent = json->at("extent").get<double>();
    out.text_bytes = json->at("text_bytes").get<double>();
    out.blob_bytes = json->at("blob_bytes").get<double>();
    out.sized = json->at("sized").get<int64_t>();
  } catch (const Json::exception&) {
    return std::nullopt;  // of another build of this version
  }
  return out;
}

bool CostStore::keep(const std::string& place, const std::string& identity, const Facts& facts) const {
  if (!usable()) return false;
  Json filters = Json::object(), operators = Json::object();
  for (const auto& [key, f] : facts.filters) filters[key] = {{"rows", f.rows}, {"kept", f.kept}, {"behind", f.behind}};
  std::map<std::string_view, const DataFacts::Operator*> sorted;
  for (const auto& [op, f] : facts.operators) sorted[op->name] = &f;
  for (const auto& [name, f] : sorted)
    operators[std::string(name)] = {
        {"calls", f->calls}, {"ns", f->ns}, {"elements", f->elements}, {"input_bytes", f->input_bytes}};
  // The oldest go, so that programs that nobody runs any more leave nothing behind.
  std::vector<fs::path> files = files_in(folder_);
  if (files.size() >= kMostFiles) {
    std::error_code error;
    std::ranges::sort(files, {}, [&](const fs::path& p) { return fs::last_write_time(p, error); });
    for (size_t i = 0; i < files.size() / 4; ++i)
      if (files[i] != calibration_path()) fs::remove(files[i], error);
  }
  return write(facts_path(place), {{"data", identity},
                                   {"when", now()},
                                   {"filters", filters},
                                   {"operators", operators},
                                   {"extent", facts.extent},
                                   {"text_bytes", facts.text_bytes},
                                   {"blob_bytes", facts.blob_bytes},
                                   {"sized", facts.sized}});
}

int CostStore::clear() const {
  int count = 0;
  std::error_code error;
  if (usable())
    for (const fs::path& path : files_in(folder_)) count += fs::remove(path, error);
  return count;
}

bool CostStore::Facts::learn(const Facts& run) {
  bool learned = false;
  for (const auto& [key, filter] : run.filters) {
    auto [it, fresh] = filters.try_emplace(key, filter);
    const Filter& known = it->second;
    const bool better = filter.behind < known.behind || (filter.behind == known.behind && filter.rows > known.rows);
    if (better) it->second = filter;
    learned |= fresh || better;
  }
  for (const auto& [op, fact] : run.operators) {
    auto [it, fresh] = operators.try_emplace(op, fact);
    const bool better = fact.calls > it->second.calls;
    if (better) it->second = fact;
    learned |= fresh || better;
  }
  if (run.sized > sized) {
    extent = run.extent;
    text_bytes = run.text_bytes;
    blob_bytes = run.blob_bytes;
    sized = run.sized;
    learned = true;
  }
  return learned;
}

namespace {

/// "KEY.0.1" of a part of a filter.
std::string filter_key(const std::string& lineage, const std::vector<int32_t>& part) {
  std::string key = lineage;
  for (int32_t p : part) key += fmt::format(".{}", p);
  return key;
}

std::vector<int32_t> part_of(std::string_view key) {
  std::vector<int32_t> part;
  for (char c : key) {
    if (c == '.')
      part.push_back(0);
    else if (c >= '0' && c <= '9' && !part.empty())
      part.back() = part.back() * 10 + (c - '0');
  }
  return part;
}

/// By plan node: filters that stand above what it begins with.
std::vector<int> filters_above(const Plan& plan) {
  std::vector<int> above(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i)
    for (PlanNodeId input : plan.nodes[i].inputs) {
      int count = above[static_cast<size_t>(input.index)];
      for (const ComputeStep& step : plan.at(input).steps) count += step.kind == ComputeStep::Kind::Filter;
      above[i] = std::max(above[i], count);
    }
  return above;
}

/// A mean over rows.
struct Mean {
  double sum = 0;
  int64_t count = 0;
  void add(double value, int64_t times) {
    sum += value * static_cast<double>(times);
    count += times;
  }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

}  // namespace

DataFacts known_of(const CostStore::Facts& facts, const std::map<int32_t, std::string>& lineage) {
  DataFacts known;
  for (const auto& [step, key] : lineage)
    for (auto it = facts.filters.lower_bound(key); it != facts.filters.end() && it->first.starts_with(key); ++it) {
      const auto rows = static_cast<double>(it->second.rows), kept = static_cast<double>(it->second.kept);
      // Few rows say little: as if one more had been kept, and one more dropped.
      known.filters[{step, part_of(std::string_view(it->first).substr(key.size()))}] = {(kept + 1) / (rows + 2),
                                                                                        it->second.rows};
    }
  known.operators = facts.operators;
  known.extent = facts.extent;
  known.text_bytes = facts.text_bytes;
  known.blob_bytes = facts.blob_bytes;
  return known;
}

CostStore::Facts facts_of_run(const Plan& plan, const RunResult& result,
                              const std::map<int32_t, std::string>& lineage) {
  CostStore::Facts facts;
  struct Total {
    int64_t timed = 0;
    double ns = 0, elements = 0, input_bytes = 0;
  };
  std::map<const OpDef*, Total> totals;
  Mean extent, text, blob;
  const std::vector<int> above = filters_above(plan);
  for (const StepReport& report : result.steps) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(report.node)];
    const ComputeStep& step = node.steps[static_cast<size_t>(report.step)];
    const StepTally& tally = report.tally;
    if (step.kind == ComputeStep::Kind::Filter) {
      if (!step.filter.valid() || tally.rows == 0) continue;
      const Node& filter = plan.graph.node(step.filter);
      auto it = lineage.find(filter.step);
      if (it == lineage.end()) continue;
      int behind = above[static_cast<size_t>(report.node)];
      for (int i = 0; i < report.step; ++i)
        behind += node.steps[static_cast<size_t>(i)].kind == ComputeStep::Kind::Filter;
      CostStore::Facts::Filter& fact = facts.filters[filter_key(it->second, filter.part)];
      fact.behind = fact.rows == 0 ? behind : std::min(fact.behind, behind);
      fact.rows += tally.rows;  // in several arms of a merge
      fact.kept += tally.kept;
      continue;
    }
    if (tally.timed == 0 || step.group.kind == KernelGroup::Kind::Columnar) continue;
    const Expr& made = plan.graph.expr(step.group.roots[0]);
    const auto timed = static_cast<double>(tally.timed);
    if (step.group.kind == KernelGroup::Kind::Native) {
      Total& total = totals[made.op];
      total.timed += tally.timed;
      total.ns += static_cast<double>(tally.ns);
      total.elements += static_cast<double>(tally.elements);
      total.input_bytes += static_cast<double>(tally.input_bytes);
    }
    if (is_string(made.type.elem)) {
      if (tally.elements > 0)
        (made.type.elem == Elem::Bytes ? blob : text)
            .add(static_cast<double>(tally.text_bytes) / static_cast<double>(tally.elements), tally.timed);
    } else if (!made.type.has_static_shape() && tally.elements > 0) {
      double known = 1;
      int open = 0;
      for (const Dim& dim : made.type.shape) dim.is_static() ? known *= static_cast<double>(dim.extent) : ++open;
      const double each = static_cast<double>(tally.elements) / timed / std::max(known, 1.0);
      extent.add(std::pow(std::max(each, 1.0), 1.0 / open), tally.timed);
    }
  }
  for (const auto& [op, total] : totals) {
    const auto count = static_cast<double>(total.timed);
    facts.operators[op] = {total.timed, total.ns / count, total.elements / count, total.input_bytes / count, 1};
  }
  facts.extent = extent.value();
  facts.text_bytes = text.value();
  facts.blob_bytes = blob.value();
  facts.sized = extent.count + text.count + blob.count;
  return facts;
}

}  // namespace zephon
