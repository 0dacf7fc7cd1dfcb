// zephonc scan FILE: walks the data once, by the engine of `run`, and lists every sample that fails. The program is
// changed for it: at its end stands an `on_error` that drops and reports; batches are taken apart, so that one sample
// does not hide another; each `repeat` passes once; what the program's own policies drop is reported too.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/steps.h"
#include "zephonc/tool_run.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

/// Counts, and the shapes of what a batch would have to join.
class Counter : public Sink {
 public:
  explicit Counter(RunWatch& watch) : watch_(watch) {}
  bool deliver(const RunRecord& record) override {
    watch_.delivered(1);
    for (const RunRecord::Field& field : record.fields) {
      if (field.type->has_static_shape()) continue;
      shapes_[*field.name].insert({field.value.shape, field.value.shape + field.value.rank});
    }
    return true;
  }
  const std::map<std::string, std::set<std::vector<int64_t>>>& shapes() const { return shapes_; }

 private:
  RunWatch& watch_;
  std::map<std::string, std::set<std::vector<int64_t>>> shapes_;
};

class Scan {
 public:
  explicit Scan(Session& session) : session_(session), options_(session.options()), numbers_(session.graph()) {}

  int operator()() {
    Failure failure;
    sources_ = open_sources(session_.graph(), {session_.base_dir()}, failure);
    if (sources_ == nullptr) {
      session_.show_failure(failure);
      return kExitRun;
    }
    RunOptions how;
    how.program_fingerprint = "scan of " + session_.fingerprint();
    how.save_state = !options_.save_state.empty();
    State state;
    if (!options_.resume.empty()) {
      if (auto code = read_progress(how.program_fingerprint, state)) return *code;
      how.resume = &state;
    }
    how.on_error = [&](const RunFailure& bad, const Node&, const std::string&) { report(bad); };
    ToolRun run(session_, expected());
    run_ = &run;
    Counter counter(run.watch());
    RunResult result;
    if (auto code = run(sample_by_sample(session_.graph()), how, counter, result)) return *code;
    good_ += result.samples;
    int code = run.end(result, *sources_);
    if (!options_.save_state.empty()) {
      if (auto problem = write_file_atomically(options_.save_state, progress(result.state)))
        return show_problem(*problem);
    }
    if (code == kExitOk) code = printed_;
    summary(counter);
    return code != kExitOk ? code : bad_.empty() ? kExitOk : kExitRun;
  }

 private:
  /// For the progress line: known where every sample of the sources comes to the end.
  uint64_t expected() const {
    uint64_t sum = 0;
    for (NodeId id : session_.graph().topological()) {
      const Node& node = session_.graph().node(id);
      if (node.op->cls == OpClass::Source) sum += sources_->at(id).size();
      if (node.op->cls == OpClass::Subset || node.op->cls == OpClass::OneToMany || node.op->cls == OpClass::Merge)
        return 0;
    }
    return sum;
  }

  /// From the threads of the run, one at a time.
  void report(const RunFailure& bad) {
    const std::string id = to_string(bad.id);
    if (!bad_.insert(id).second) return;  // seen before the scan was interrupted, or by two policies
    ++codes_[bad.failure.code];
    const std::string sample = sources_->describe(bad.id);
    std::string step;
    if (auto node = step_at(session_.graph(), bad.failure.where)) step = numbers_.of(*node);
    const uint32_t line = session_.line_of(bad.failure.where);
    std::string text;
    if (options_.json) {
      text = "{\"id\": ";
      append_json_string(text, id);
      text += ", \"sample\": ";
      append_json_string(text, sample);
      text += fmt::format(", \"code\": \"{}\", \"message\": ", bad.failure.code);
      append_json_string(text, bad.failure.message);
      text += fmt::format(", \"step\": \"{}\", \"line\": {}, \"command\": ", step, line);
      append_json_string(text, session_.replay_command(bad));
      text += "}\n";
    } else {
      text = fmt::format("{}: {}: {} (sample {}, step {}, line {})\n", sample, bad.failure.code, bad.failure.message,
                         id, step.empty() ? "?" : step, line);
    }
    run_->watch().say_above([&] {
      if (printed_ == kExitOk) printed_ = print(text);
    });
  }

  void summary(const Counter& counter) const {
    std::string codes;
    for (const auto& [code, count] : codes_) codes += fmt::format("{}{} {}", codes.empty() ? ": " : ", ", count, code);
    say(fmt::format("{} samples: {} good, {} bad{}", human_count(static_cast<double>(good_ + bad_.size())),
                    human_count(static_cast<double>(good_)), human_count(static_cast<double>(bad_.size())), codes));
    if (!session_.graph().node(session_.graph().output()).type.batch) return;
    for (const auto& [field, shapes] : counter.shapes()) {
      if (shapes.size() < 2) continue;
      say(fmt::format("note: `{}` comes in {} shapes, and the members of a batch need equal ones (R0410)", field,
                      shapes.size()));
    }
  }

  std::string progress(const State& state) const {
    return Json{{"zephon_scan", 1}, {"state", to_json(state)}, {"good", good_}, {"bad", bad_}, {"codes", codes_}}
               .dump() +
           "\n";
  }

  std::optional<int> read_progress(const std::string& fingerprint, State& state) {
    Failure failure;
    auto text = read_whole_file(options_.resume, failure);
    if (!text) return show_problem(failure);
    auto refuse = [&](const std::string& why) {
      return show_problem({"R0507", fmt::format("cannot resume from `{}`: {}", options_.resume, why), {}});
    };
    try {
      const Json file = Json::parse(*text);
      std::string error;
      std::optional<State> read = parse_state(file.at("state").get<std::string>(), error);
      if (!read) return refuse(error);
      if (read->program != fingerprint) return refuse("it was saved by another program, or with other parameters");
      state = *read;
      good_ = file.at("good").get<uint64_t>();
      bad_ = file.at("bad").get<std::set<std::string>>();
      codes_ = file.at("codes").get<std::map<std::string, uint64_t>>();
    } catch (const Json::exception&) {
      return refuse("it is no state of a scan");
    }
    return std::nullopt;
  }

  Session& session_;
  const Options& options_;
  StepNumbers numbers_;
  std::shared_ptr<const OpenSources> sources_;
  ToolRun* run_ = nullptr;
  uint64_t good_ = 0;
  std::set<std::string> bad_;  ///< identities, of this scan and of those before that it continues
  std::map<std::string, uint64_t> codes_;
  int printed_ = kExitOk;
};

}  // namespace

int command_scan(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Scan(session)();
}

}  // namespace zephon
