#include "zephonc/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/expr_set.h"
#include "graph/identity_text.h"
#include "ops/all_ops.h"
#include "ops/file_io.h"
#include "optimizer/rules/all_rules.h"
#include "runtime/reference/sample_evaluator.h"
#include "zephonc/console.h"
#include "zephonc/cost_store.h"
#include "zephonc/costs_file.h"
#include "zephonc/files.h"
#include "zephonc/lineage.h"
#include "zephonc/machine_limits.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

/// As a shell would take it back.
std::string quoted(const std::string& word) {
  bool plain = !word.empty() && word[0] != '~', printable = !find_invalid_utf8(word);
  for (char c : word) {
    plain &= std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_./=@:+,%~", c) != nullptr;
    printable &= static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  }
  if (plain) return word;
  // What a terminal cannot show and a message not carry: the form that bash, zsh and the latest POSIX read.
  std::string out = printable ? "'" : "$'";
  for (char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (printable) {
      out += c == '\'' ? "'\\''" : std::string(1, c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return out + "'";
}

RenderOptions render_options() {
  RenderOptions out;
  out.colour = stderr_colour();
  out.limit = 20;
  return out;
}

int no_such(const std::string& what, const std::string& name, const std::vector<std::string>& known) {
  std::string hint = did_you_mean(name, known);
  say(fmt::format("zephonc: no {} `{}`{}", what, name, hint.empty() ? "" : "; " + hint));
  return kExitUsage;
}

}  // namespace

std::string plain_text(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return text;
}

std::vector<std::string> all_relaxations() {
  std::set<std::string> names;
  for (const RuleEntry& entry : all_rules())
    if (!entry.rule->relaxation.empty()) names.emplace(entry.rule->relaxation);
  return {names.begin(), names.end()};
}

int unknown_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const RuleEntry& entry : all_rules()) names.emplace_back(entry.rule->name);
  return no_such("rule", name, names);
}

int show_problem(const Failure& failure) {
  Diagnostic shown;
  const KindInfo* kind = find_kind(failure.code);
  shown.kind = kind != nullptr ? kind->kind : Kind::Internal;
  shown.message = failure.message;
  say(render(shown, SourceMap(), render_options()));
  return info(shown.kind).severity == Severity::Bug ? kExitBug : kExitRun;
}

std::optional<Program> Session::compile_with(const std::map<std::string, std::string>& params) {
  Result<Program> result = compile(sources_, file_, params, all_ops(), diags_, {options_.pipeline, {}});
  if (!result) return std::nullopt;
  return std::move(*result);
}

std::optional<int> Session::load() {
  Failure failure;
  auto text = read_whole_file(options_.file, failure);
  if (!text) {
    say("zephonc: " + failure.message);
    return kExitProgram;
  }
  file_ = sources_.add(options_.file, std::move(*text));
  std::filesystem::path folder = std::filesystem::path(options_.file).parent_path();
  base_dir_ = folder.empty() ? "." : folder.string();

  std::map<std::string, std::string> params;
  for (const auto& [name, value] : options_.params) params[name] = value;
  program_ = compile_with(params);
  // Paths in a program start in its folder; those typed on the command line start where the person is.
  bool moved = false;
  if (program_ && base_dir_ != ".") {
    for (const ProgramParameter& p : program_->parameters) {
      if (!p.given || p.type != "path" || params[p.name].empty() || params[p.name].starts_with('/')) continue;
      std::error_code error;
      params[p.name] = (std::filesystem::current_path(error) / params[p.name]).string();
      moved = true;
    }
  }
  if (moved) {
    diags_.clear();
    program_ = compile_with(params);
  }
  if (!diags_.empty()) say(render(diags_, sources_, render_options()));
  if (!program_) return kExitProgram;
  return std::nullopt;
}

std::string Session::fingerprint() const {
  // What the program means, not how it is written: imports are part of it, comments and layout are not.
  std::string all = fmt::format("{}\nseed={}\n{}", ZEPHON_VERSION, program_->seed, identity_text(program_->graph));
  for (const std::string& name : relaxations()) all += "relaxed: " + name + "\n";
  const std::string constants = data_constants();
  constants_digest_ = hex_digest(constants);
  return hex_digest(all + constants);
}

/// The content of side tables and the names of folders that the program means by its constants.
std::string Session::data_constants() const {
  std::string all;
  DataConstants constants(graph(), base_dir_);
  ExprSet seen;
  auto add = [&](ExprId root) {
    for (ExprId id : graph().topological(root)) {
      if (!is_data_constant(graph().expr(id)) || !seen.insert(id)) continue;
      const Value& value = constants.get(id);
      all += fmt::format("\0{}:", to_text(graph(), id));
      all.append(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
      for (const std::string& item : value.string_items()) all += item + '\0';
    }
  };
  for (NodeId id : graph().topological()) {
    for (const Assign& assign : graph().node(id).assigns) add(assign.expr);
    if (graph().node(id).predicate.valid()) add(graph().node(id).predicate);
  }
  return all;
}

std::shared_ptr<const OpenSources> Session::open(Failure& failure) const {
  if (!opened_ && !not_opened_) {
    Failure why;
    opened_ = open_sources(graph(), {base_dir_}, why);
    if (!opened_) not_opened_ = std::move(why);
  }
  if (not_opened_) failure = *not_opened_;
  return opened_;
}

bool Session::uses_measured() const {
  const char* variable = std::getenv("ZEPHON_MEASURED");
  return !options_.no_measured && options_.costs.empty() && options_.measured.empty() &&
         (variable == nullptr || std::string_view(variable) != "off");
}

std::string Session::data_place() const {
  std::error_code error;
  return std::filesystem::weakly_canonical(base_dir_, error).string() + "\n" + source_lineage(graph());
}

std::string Session::data_identity(const OpenSources& sources) const {
  if (constants_digest_.empty()) constants_digest_ = hex_digest(data_constants());
  return hex_digest(sources.fingerprint() + constants_digest_);
}

std::optional<int> Session::use_costs(Machine& machine) const {
  cost_origin_ = {};
  if (!options_.costs.empty()) {
    cost_origin_.fixed = options_.costs;
    return read_costs(options_.costs, machine);
  }
  if (!options_.measured.empty()) {
    cost_origin_.fixed = options_.plan;
    std::string error;
    const auto json = nlohmann::ordered_json::parse(options_.measured, nullptr, false);
    if (machine_of(json, machine, error)) return std::nullopt;
    say(fmt::format("zephonc: `{}`: {}", options_.plan, error));
    return kExitUsage;
  }
  cost_origin_.ignored = !uses_measured();
  if (cost_origin_.ignored) return std::nullopt;
  const CostStore store;
  if (const auto calibration = store.calibration()) {
    machine.operators = std::make_shared<const OperatorCosts>(calibration->operators);
    machine.ns_per_kernel_call = calibration->ns_per_kernel_call;
    machine.ns_per_row_and_step = calibration->ns_per_row_and_step;
    machine.bytes_per_ns = calibration->bytes_per_ns;
    cost_origin_.machine = calibration->when;
  }
  // Sources are opened for it only where there is something to know of them.
  const std::string place = data_place();
  if (!store.has_facts(place)) return std::nullopt;
  Failure failure;
  const auto sources = open(failure);
  if (!sources) return std::nullopt;  // a run will say so
  const auto facts = store.facts(place, data_identity(*sources));
  if (!facts) return std::nullopt;
  use_data(machine, known_of(*facts, filter_lineage(graph())), all_ops());
  cost_origin_.data = facts->when;
  return std::nullopt;
}

void Session::learn(const Plan& plan, const RunResult& result) const {
  if (!uses_measured() || result.steps.empty()) return;
  const CostStore store;
  Failure failure;
  const auto sources = open(failure);
  if (!store.usable() || !sources) return;
  const std::string place = data_place(), identity = data_identity(*sources);
  CostStore::Facts facts;
  if (store.has_facts(place)) facts = store.facts(place, identity).value_or(CostStore::Facts());
  if (facts.learn(facts_of_run(plan, result, filter_lineage(graph())))) store.keep(place, identity, facts);
}

std::vector<std::string> Session::side_files() const {
  std::vector<std::string> paths = program_->imports;
  std::set<std::string> tables;
  for (size_t i = 0; i < graph().expr_count(); ++i) {
    const Expr& expr = graph().expr({static_cast<int32_t>(i)});
    if (!is_data_constant(expr) || !expr.attrs.has("path")) continue;
    tables.insert(resolve_path(base_dir_, expr.attrs.text("path")));
  }
  paths.insert(paths.end(), tables.begin(), tables.end());
  return paths;
}

std::optional<int> Session::optimizer_options(OptimizeOptions& out) const {
  out.no_optimize = options_.no_optimize;
  for (const std::string& name : options_.disable) {
    if (find_rule(name) == nullptr) return unknown_rule(name);
    out.disabled.insert(name);
  }
  for (const std::string& name : options_.relax) {
    const std::vector<std::string> known = all_relaxations();
    if (std::find(known.begin(), known.end(), name) == known.end()) return no_such("relaxation", name, known);
    out.relaxed.insert(name);
  }
  out.plan.chunk = options_.chunk;
  out.plan.threads = threads();
  out.plan.memory = memory();
  out.plan.seed = program_->seed;
  out.plan.base_dir = base_dir_;
  return use_costs(out.plan.machine);
}

std::optional<int> Session::optimize_program(const Graph& graph, const OptimizeOptions& how,
                                             OptimizeResult& out) const {
  out = optimize(graph, how, all_ops());
  for (const std::string& problem : out.trace.problems) say("bug[B0900]: " + problem);
  return out.trace.problems.empty() ? std::nullopt : std::optional<int>(kExitBug);
}

std::optional<int> Session::optimize_program(const OptimizeOptions& how, OptimizeResult& out) const {
  if (auto code = optimize_program(graph(), how, out)) return code;
  for (const auto& [place, value] : options_.knobs) {
    if (auto code = set_knob(out.plan, *this, place, value)) return code;
  }
  if (!expected_hash_.empty() && out.plan.hash != expected_hash_) {
    say(fmt::format("zephonc: the plan of `{}` cannot be had any more: it was {}, now it is {}", options_.plan,
                    expected_hash_, out.plan.hash));
    return kExitUsage;
  }
  return std::nullopt;
}

std::vector<std::string> Session::relaxations() const {
  const std::set<std::string> names(options_.relax.begin(), options_.relax.end());
  return {names.begin(), names.end()};
}

uint32_t Session::line_of(const Span& span) const {
  return span.valid() ? sources_.position(span.file, span.begin).line : 0;
}

std::string Session::text_of(const Span& span) const {
  if (!span.valid()) return "";
  const std::string_view text = sources_.text(span);
  return std::string(text.substr(0, text.find('\n')));
}

int Session::threads() const { return options_.threads > 0 ? options_.threads : usable_cores(); }
size_t Session::memory() const { return options_.memory > 0 ? options_.memory : usable_memory() / 2; }

std::string Session::command_line(const std::string& command) const {
  // A name that looks like an option is a path again.
  std::string out = fmt::format("zephonc {} {}", command,
                                quoted((options_.file.starts_with('-') ? "./" : "") + options_.file +
                                       (options_.pipeline.empty() ? "" : ":" + options_.pipeline)));
  for (const auto& [name, value] : options_.params) out += " " + quoted(name + "=" + value);
  // Part of what is delivered, by the commands that run a plan.
  if (!options_.relax.empty() && command == options_.command)
    out += fmt::format(" --relax={}", fmt::join(relaxations(), ","));
  return out;
}

std::string Session::why_not_resumed(const std::string& saved_by, const std::string& version) const {
  const std::string command = command_line(options_.command);
  if (saved_by.empty())
    return fmt::format(
        "was saved by another program, or with other parameters, than `{}`: resume with the file and "
        "the parameters of the run that saved it",
        command);
  if (version != ZEPHON_VERSION)
    return fmt::format("was saved by zephonc {}, and this is {}: a state is of one version", version, ZEPHON_VERSION);
  if (saved_by != plain_text(command))
    return fmt::format("was saved by another program, or with other parameters: by `{}`, and this is `{}`", saved_by,
                       command);
  return fmt::format(
      "was saved by `{}`, and the program has changed since (or what it imports, its folders or its side "
      "tables)",
      saved_by);
}

std::string Session::replay_command(const RunFailure& failure) const {
  std::string out = command_line("show");
  out += " --id " + to_string(failure.id);
  if (failure.epoch != 0) out += fmt::format(" --epoch {}", failure.epoch);
  if (auto node = step_at(graph(), failure.failure.where)) {
    out += fmt::format(" --at {}", step_number(graph().node(*node).step));
  }
  return out;
}

/// For a program that has no `on_error`, and a sample that fails where one could stand below it.
std::optional<std::string> Session::how_to_drop(const Failure& failure) const {
  if (options_.command != "run" && options_.command != "init" && options_.command != "verify") return std::nullopt;
  if (failure.code == "R0410" || failure.code == "R0411" || !failure.code.starts_with("R04")) return std::nullopt;
  const std::optional<NodeId> at = step_at(graph(), failure.where);
  if (!at) return std::nullopt;
  const Node& failed = graph().node(*at);
  if (!failed.inputs.empty() && graph().node(failed.inputs[0]).type.batch) return std::nullopt;
  std::string batch;
  for (NodeId id : graph().topological()) {
    const Node& node = graph().node(id);
    if (node.op->cls == OpClass::Policy) return std::nullopt;
    if (node.type.batch && !node.inputs.empty() && !graph().node(node.inputs[0]).type.batch) batch = node.op->name;
  }
  return batch.empty() ? "to drop such samples, put `| on_error(skip)` at the end"
                       : fmt::format("to drop such samples, put `| on_error(skip)` above `{}`", batch);
}

void Session::show_failure(const Failure& failure) const { show_failure({failure, {}}, {}); }

void Session::show_failure(const RunFailure& failed, const std::string& described) const {
  const Failure& failure = failed.failure;
  Diagnostic shown;
  const KindInfo* kind = find_kind(failure.code);
  shown.kind = kind != nullptr ? kind->kind : Kind::Internal;
  shown.message = failure.message;
  shown.primary = {failure.where, ""};
  if (!failed.id.words.empty()) {
    std::string name = to_string(failed.id);
    shown.notes.push_back(described.empty() || described == name ? fmt::format("sample {}", name)
                                                                 : fmt::format("sample {}: {}", name, described));
    shown.hints.push_back(fmt::format("see that sample alone: {}", replay_command(failed)));
    if (auto how = how_to_drop(failure)) shown.hints.push_back(*how);
  }
  say(render(shown, sources_, render_options()));
}

}  // namespace zephon
