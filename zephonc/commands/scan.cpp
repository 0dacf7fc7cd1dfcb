// zephonc scan FILE: walks the data once, by the engine of `run`, and lists every sample that fails. The program is
// changed for it: at its end stands an `on_error` that drops and reports; batches are taken apart, so that one sample
// does not hide another; each `repeat` passes once; what the program's own policies drop is reported too.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/steps.h"
#include "zephonc/tool_run.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

/// Counts, and the shapes of what a batch would have to join.
class Counter : public Sink {
 public:
  /// `masked`: whether a sample that is delivered failed all the same.
  Counter(RunWatch& watch, std::function<bool(const SampleId&)> masked) : watch_(watch), masked_(std::move(masked)) {}
  bool deliver(const RunRecord& record) override {
    watch_.delivered(1);
    good_ += !masked_(record.member_id(0));
    for (const RunRecord::Field& field : record.fields) {
      if (field.type->has_static_shape()) continue;
      shapes_[*field.name].insert({field.value.shape, field.value.shape + field.value.rank});
    }
    return true;
  }
  const std::map<std::string, std::set<std::vector<int64_t>>>& shapes() const { return shapes_; }
  uint64_t good() const { return good_; }

 private:
  RunWatch& watch_;
  std::function<bool(const SampleId&)> masked_;
  uint64_t good_ = 0;
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
    how.on_error = [&](const RunFailure& bad, const Node&, const std::string& policy) {
      if (policy == "mask") {  // it is delivered all the same
        std::lock_guard lock(mutex_);
        masked_.insert(bad.id.words);
      }
      report(bad);
    };
    ToolRun run(session_, expected());
    run_ = &run;
    for (const Json& sample : bad_) print_sample(sample);
    // Asked of each sample as it is delivered: a state that is saved then counts what it has, and nothing beyond it.
    Counter counter(run.watch(), [&](const SampleId& id) {
      std::lock_guard lock(mutex_);
      // Below the policy the identity may have grown.
      for (size_t n = masked_.empty() ? 0 : id.words.size(); n > 0; --n)
        if (masked_.contains({id.words.begin(), id.words.begin() + static_cast<ptrdiff_t>(n)})) return true;
      return false;
    });
    // Killed at any moment, it has lost what it did since it saved last.
    const uint64_t good_before = good_;
    how.state_seconds = 1;
    double saved_at = 0, cost = 0;  // seconds; a long list is written less often
    auto save = [&](const State& now) {
      const double begin = run.watch().seconds();
      if (begin - saved_at < 20 * cost) return;
      good_ = good_before + counter.good();
      if (auto problem = write_file_atomically(options_.save_state, progress(now))) {
        run.watch().say_above([&] { say(fmt::format("warning: {}; the scan goes on", problem->message)); });
      }
      saved_at = run.watch().seconds();
      cost = saved_at - begin;
    };
    if (how.save_state) how.on_state = save;
    RunResult result;
    if (auto code = run(sample_by_sample(session_.graph()), how, counter, result)) return *code;
    good_ = good_before + counter.good();
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

  /// From the threads of the run.
  void report(const RunFailure& bad) {
    const std::string id = to_string(bad.id);
    std::lock_guard lock(mutex_);
    if (!seen_.insert(id).second) return;  // before the scan was interrupted, or by two policies
    std::string step;
    if (auto node = step_at(session_.graph(), bad.failure.where)) step = numbers_.of(*node);
    bad_.push_back({{"id", id},
                    {"sample", sources_->describe(bad.id)},
                    {"code", bad.failure.code},
                    {"message", bad.failure.message},
                    {"step", step},
                    {"line", session_.line_of(bad.failure.where)},
                    {"command", session_.replay_command(bad)}});
    print_sample(bad_.back());
  }

  void print_sample(const Json& sample) {
    std::string text;
    if (options_.json) {
      text = text_of(sample);
    } else {
      auto word = [&](const char* key) { return sample.at(key).get<std::string>(); };
      const std::string step = word("step");
      text = fmt::format("{}: {}: {} (sample {}, step {}, line {})", word("sample"), word("code"), word("message"),
                         word("id"), step.empty() ? "?" : step, sample.at("line").get<uint32_t>());
    }
    run_->watch().say_above([&] {
      if (printed_ == kExitOk) printed_ = print(text + "\n");
    });
  }

  void summary(const Counter& counter) const {
    std::map<std::string, uint64_t> by_code;
    for (const Json& sample : bad_) ++by_code[sample.at("code").get<std::string>()];
    std::string codes;
    for (const auto& [code, count] : by_code) codes += fmt::format("{}{} {}", codes.empty() ? ": " : ", ", count, code);
    say(fmt::format("{} samples: {} good, {} bad{}", human_count(static_cast<double>(good_ + bad_.size())),
                    human_count(static_cast<double>(good_)), human_count(static_cast<double>(bad_.size())), codes));
    const Graph& graph = session_.graph();
    bool stacks = false;  // members as they are, and not padded
    for (NodeId id : graph.topological()) {
      const Node& node = graph.node(id);
      if (node.type.batch && !graph.node(node.inputs[0]).type.batch) stacks = !node.op->algebra.pads;
    }
    if (!stacks || !graph.node(graph.output()).type.batch) return;
    for (const auto& [field, shapes] : counter.shapes()) {
      if (shapes.size() < 2) continue;
      say(fmt::format("note: `{}` comes in {} shapes, and the members of a batch need equal ones (R0410)", field,
                      shapes.size()));
    }
  }

  /// One line; names of files need not be UTF-8.
  static std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

  std::string progress(const State& state) {
    std::lock_guard lock(mutex_);
    return text_of(Json{{"zephon_scan", 2},
                        {"saved_by", session_.command_line("scan")},
                        {"version", ZEPHON_VERSION},
                        {"state", to_json(state)},
                        {"good", good_},
                        {"bad", bad_}}) +
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
      if (read->program != fingerprint) {
        return refuse("it " + session_.why_not_resumed(file.value("saved_by", ""), file.value("version", "")));
      }
      state = *read;
      good_ = file.at("good").get<uint64_t>();
      bad_ = file.at("bad").get<std::vector<Json>>();
      for (const Json& sample : bad_) {
        for (const char* key : {"sample", "code", "message", "step", "command"}) sample.at(key).get<std::string>();
        sample.at("line").get<uint32_t>();
        seen_.insert(sample.at("id").get<std::string>());
      }
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
  std::mutex mutex_;                        ///< of what follows
  std::set<std::vector<uint64_t>> masked_;  ///< identities of samples that failed and are delivered
  std::vector<Json> bad_;       ///< samples as they are listed, of this scan and of those before that it continues
  std::set<std::string> seen_;  ///< their identities
  int printed_ = kExitOk;
};

}  // namespace

int command_scan(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Scan(session)();
}

}  // namespace zephon
