// zephonc run FILE: runs a pipeline, by its plan or by the reference interpreter, and reports.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ops/file_io.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/costs_file.h"
#include "zephonc/delivery.h"
#include "zephonc/files.h"
#include "zephonc/machine_limits.h"
#include "zephonc/plan_view.h"
#include "zephonc/reference_run.h"
#include "zephonc/run_report.h"
#include "zephonc/session.h"
#include "zephonc/sinks/folder.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/sinks/trace.h"
#include "zephonc/watch.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

/// What tells one content of a file from another: size and modification time, or size and a hash of all of it.
Json file_entry(const std::string& path, bool hash_content) {
  Json entry{{"path", path}};
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return entry;
  entry["size"] = status.st_size;
  if (!hash_content) {
    entry["mtime_ns"] = status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec;
  } else if (auto hash = file_digest(path)) {
    entry["xxh3_128"] = *hash;
  }
  return entry;
}

/// What is known before the run, for the manifest.
std::string manifest_head(const Session& session, const std::string& plan_hash, const OpenSources& sources) {
  const Options& o = session.options();
  Json params = Json::object();
  for (const ProgramParameter& p : session.program().parameters) params[p.name] = p.value;
  Json files = Json::array();
  for (const std::string& path : sources.files()) files.push_back(file_entry(path, o.hash_content));
  for (const std::string& path : session.side_files()) files.push_back(file_entry(path, o.hash_content));
  Json head{{"zephon", ZEPHON_VERSION},
            {"versions", ZEPHON_LIBRARIES},
            {"program", o.file},
            {"program_fingerprint", session.fingerprint()},
            {"params", params},
            {"seed", session.program().seed},
            {"epochs", o.epochs},
            {"rank", o.rank},
            {"world_size", o.world_size},
            {"plan_hash", plan_hash},
            {"relaxations", session.relaxations()},
            {"files", files}};
  return head.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Takes records from either runtime: counts, converts, and remembers what a writer could not do.
class Receiver : public Sink {
 public:
  Receiver(Delivery& delivery, RunWatch& watch) : delivery_(delivery), watch_(watch) {}

  bool deliver(const RunRecord& record) override {
    watch_.delivered(static_cast<uint64_t>(record.members));
    if (!delivery_.wants_records()) return true;
    DeliveredRecord out;
    out.epoch = record.epoch;
    out.ordinal = record.ordinal;
    out.batched = record.batched;
    for (const RunRecord::Field& field : record.fields) {
      const TensorRef& value = field.value;
      out.fields.push_back({*field.name, value.elem, {value.shape, value.shape + value.rank}, value.data});
    }
    if (delivery_.wants_members()) {
      for (int64_t m = 0; m < record.members; ++m) out.members.push_back(record.member_id(m));
    }
    failure_ = delivery_.deliver(out);
    return !failure_;
  }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  Delivery& delivery_;
  RunWatch& watch_;
  std::optional<Failure> failure_;
};

/// A state with what wrote it, for the message where it does not fit. The form of a state knows no escapes.
std::string with_origin(std::string state, const Session& session) {
  const size_t end = state.rfind('}');
  return state.insert(end, fmt::format(", \"saved_by\": \"{}\", \"version\": \"{}\"",
                                       plain_text(session.command_line("run")), ZEPHON_VERSION));
}

/// The same with what a killed run leaves of its output, for `keep_output`.
std::string with_output(std::string state, const OutputMark& mark) {
  if (mark.folder.empty()) return state;
  auto bytes_of = [](const std::string& path) {  // names may hold anything
    std::string hex;
    for (unsigned char c : path) hex += fmt::format("{:02x}", c);
    return hex;
  };
  const size_t end = state.rfind('}');
  return state.insert(
      end, fmt::format(", \"out\": \"{}\", \"out_partial\": \"{}\", \"out_bytes\": {}, \"out_epoch\": {}, "
                       "\"out_ordinal\": {}, \"out_records\": {}",
                       bytes_of(std::filesystem::absolute(mark.folder).string()),
                       bytes_of(std::filesystem::absolute(mark.partial).string()), mark.bytes, mark.epoch, mark.ordinal,
                       mark.records));
}

/// Where the run that saved the state was killed: its output up to the state takes its name.
std::optional<Failure> keep_output(const std::string& path) {
  Failure failure;
  auto text = read_whole_file(path, failure);
  const Json saved = text ? Json::parse(*text, nullptr, false) : Json();
  if (!saved.is_object() || !saved.contains("out")) return std::nullopt;
  OutputMark mark;
  try {
    auto name = [&](const char* key) {
      const auto hex = saved.at(key).get<std::string>();
      std::string out;
      for (size_t i = 0; i + 1 < hex.size(); i += 2)
        out += static_cast<char>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16));
      return out;
    };
    auto number = [&](const char* key) { return saved.at(key).get<uint64_t>(); };
    mark = {name("out"),         name("out_partial"),   number("out_bytes"),
            number("out_epoch"), number("out_ordinal"), number("out_records")};
  } catch (const Json::exception&) {
    return Failure{
        "R0507", fmt::format("cannot resume from `{}`: it says of no output what `--save-state` says", path), {}};
  }
  bool kept = false;
  if (auto problem = keep_marked(mark, kept)) return problem;
  if (kept)
    say(fmt::format("`{}` holds the {} records before `{}`, which the run that was killed had written",
                    shown_file(mark.folder), mark.records, path));
  return std::nullopt;
}

std::optional<State> read_state(const Session& session, Failure& failure) {
  auto text = read_whole_file(session.options().resume, failure);
  if (!text) return std::nullopt;
  std::string error;
  std::optional<State> state = parse_state(*text, error);
  if (!state) {
    failure = {"R0507", fmt::format("cannot resume from `{}`: {}", session.options().resume, error), {}};
  } else if (state->program != session.fingerprint()) {
    const Json saved = Json::parse(*text, nullptr, false);
    failure = {"R0507",
               fmt::format("`{}` {}", session.options().resume,
                           session.why_not_resumed(saved.value("saved_by", ""), saved.value("version", ""))),
               {}};
    state.reset();
  }
  return state;
}

std::string busiest(const std::vector<OperatorReport>& operators) {
  const OperatorReport* most = nullptr;
  for (const OperatorReport& op : operators) {
    if (most == nullptr || op.cpu_seconds > most->cpu_seconds) most = &op;
  }
  return most != nullptr ? most->name : "";
}

/// A field that arrays cannot hold, where they are asked for.
std::optional<Failure> format_problem(const Graph& graph, const Options& options) {
  if (options.out.empty() || options.format == "jsonl") return std::nullopt;
  const StreamType& type = graph.node(graph.output()).type;
  for (const Field& field : type.fields) {
    if (!is_companion(field.name)) continue;
    const std::string name = field.name.substr(0, field.name.find_first_of("?#"));
    const bool missing = field.name.ends_with('?');
    return Failure{
        "R0508",
        fmt::format("`{}` is `{}`, which the format {} cannot hold: {}, or write --format=jsonl", name,
                    field_type_text(type, *type.find(name)), options.format,
                    missing ? fmt::format("say what stands for a missing value, `{0} = default({0}, ...)`", name)
                            : fmt::format("take one of the lists, `{0} = {0}[0]`", name)),
        {}};
  }
  return std::nullopt;
}

/// One run, from open sources to a report.
class Run {
 public:
  explicit Run(Session& session) : session_(session), options_(session.options()) {}

  int operator()() {
    if (auto code = prepare()) return *code;
    RunResult result = execute();
    return finish(result);
  }

 private:
  std::optional<int> prepare() {
    OptimizeOptions how;
    if (auto code = session_.optimizer_options(how)) return code;
    if (!options_.reference) {
      if (auto code = session_.optimize_program(how, optimized_)) return code;
      if (optimized_.plan.least_memory > session_.memory()) {
        return show_problem({"R0504",
                             fmt::format("{} of memory is below the {} that this program needs at least",
                                         human_bytes(static_cast<double>(session_.memory())),
                                         human_bytes(static_cast<double>(optimized_.plan.least_memory))),
                             {}});
      }
    }
    if (auto problem = format_problem(session_.graph(), options_)) return show_problem(*problem);
    Failure failure;
    sources_ = session_.open(failure);
    if (sources_ == nullptr) {
      session_.show_failure(failure);
      return kExitRun;
    }
    if (!options_.resume.empty()) {
      resume_ = read_state(session_, failure);
      if (!resume_) return show_problem(failure);
      if (auto problem = keep_output(options_.resume)) return show_problem(*problem);
    }
    if (auto broken = begin_quarantine()) {
      session_.show_failure(*broken);
      return kExitRun;
    }
    auto problem = delivery_.open(
        options_, options_.manifest.empty() ? "" : manifest_head(session_, optimized_.plan.hash, *sources_));
    if (!problem && !options_.trace.empty()) problem = trace_.open(options_.trace);
    if (problem) return show_problem(*problem);
    return std::nullopt;
  }

  /// "no record was delivered for 5 s; 812 samples were read, 812 dropped by p.zpl:4".
  std::string stall_text(const StallReport& report) const {
    std::string text = fmt::format("error[R0505]: no record was delivered for {}; {} samples were read",
                                   human_seconds(options_.stall_timeout), report.samples_read);
    for (const StallReport::Dropped& dropped : report.dropped) {
      text += fmt::format("{} {} by line {}", &dropped == &report.dropped.front() ? ", and dropped:" : ",",
                          dropped.samples, session_.line_of(dropped.where));
      text += fmt::format(" (`{}`)", session_.text_of(dropped.where));
    }
    return text + "\n" + report.status;
  }

  RunResult execute() {
    RunOptions how;
    how.threads = session_.threads();
    how.memory = session_.memory();
    how.epochs = options_.epochs;
    how.take = options_.take;
    how.rank = static_cast<uint64_t>(options_.rank);
    how.world_size = static_cast<uint64_t>(options_.world_size);
    how.stall_timeout = options_.stall_timeout;
    how.program_fingerprint = session_.fingerprint();
    how.resume = resume_ ? &*resume_ : nullptr;
    how.save_state = !options_.save_state.empty();
    if (how.save_state && options_.save_every > 0) {
      how.state_seconds = options_.save_every;
      how.on_state = [&](const State& state) { save_on_the_way(state); };
    }
    how.on_error = [&](const RunFailure& failure, const Node& node, const std::string& policy) {
      rejected(failure, node, policy);
    };

    if (!options_.trace.empty()) {
      how.on_span = [&](const WorkSpan& span) {
        trace_.add(span.node->label.empty() ? "deliver" : span.node->label, span.begin_ns, span.end_ns, span.rows);
      };
    }

    std::unique_ptr<Runner> runner;
    WatchOptions watching;
    watching.progress = options_.progress == "always" || (options_.progress == "auto" && stderr_is_terminal());
    watching.expected_records = options_.take.value_or(0);
    watching.status = [&] { return runner ? runner->status() : std::string("the reference interpreter is running"); };
    watching.bottleneck = [&] { return runner ? busiest(runner->operators()) : std::string(); };
    watch_ = std::make_unique<RunWatch>(std::move(watching));
    how.stop = &watch_->stop();
    how.on_stall = [&](const StallReport& report) { watch_->stalled(stall_text(report)); };
    receiver_ = std::make_unique<Receiver>(delivery_, *watch_);
    setup_seconds_ = seconds_since_start();
    RunResult result;
    if (options_.reference) {
      watch_->start();
      result = run_reference(session_.graph(), session_.program().seed, session_.base_dir(), how, *receiver_, sources_);
    } else {
      auto compiler = make_kernel_compiler();
      runner = std::make_unique<Runner>(
          optimized_.plan, how, [&] { return compiler.get(); }, *receiver_);
      watch_->start();
      result = runner->run();
      watch_->finish();
      runner.reset();
      if (const std::string warning = compiler->warning(); !warning.empty()) say("warning: " + warning);
    }
    watch_->finish();
    return result;
  }

  /// Killed at any moment, a run has lost what it did since. Between two deliveries; a long state is written less
  /// often.
  void save_on_the_way(const State& state) {
    const double begin = watch_->seconds();
    if (begin - saved_at_ < 20 * save_cost_) return;
    OutputMark mark;
    std::optional<Failure> problem = delivery_.mark(mark);
    if (!problem)
      problem = write_file_atomically(options_.save_state, with_output(with_origin(to_json(state), session_), mark));
    if (problem) watch_->say_above([&] { say(fmt::format("warning: {}; the run goes on", problem->message)); });
    saved_at_ = watch_->seconds();
    save_cost_ = saved_at_ - begin;
  }

  void rejected(const RunFailure& failure, const Node& node, const std::string& policy) {
    if (policy == "quarantine") quarantine(failure, node);
    constexpr uint64_t kShown = 5;
    if (++rejected_ > kShown) return;
    watch_->say_above([&] {
      say(fmt::format("{}: sample {} ({}): {}: {}", policy, to_string(failure.id), sources_->describe(failure.id),
                      failure.failure.code, failure.failure.message));
      if (rejected_ == kShown) say("further samples are counted, not shown");
    });
  }

  /// The file that a step `on_error(quarantine)` names.
  std::string quarantine_file(const Node& node) const {
    return resolve_path(session_.base_dir(), node.attrs.text("file"));
  }

  /// Each run begins these files anew; of several ranks the first does, and a run that resumes goes on in them: there a
  /// run that was killed may have written of samples that this one comes to again.
  std::optional<Failure> begin_quarantine() {
    for (NodeId id : session_.graph().topological()) {
      const Node& node = session_.graph().node(id);
      if (node.op->cls != OpClass::Policy || node.attrs.text("policy") != "quarantine") continue;
      const std::string path = quarantine_file(node);
      const bool anew = options_.resume.empty() && options_.rank == 0;
      std::ofstream out(path, anew ? std::ios::trunc | std::ios::binary : std::ios::app | std::ios::binary);
      if (!out)
        return Failure{"R0501", fmt::format("cannot write `{}`: {}", shown_file(path), std::strerror(errno)),
                       node.origin};
      Quarantine& file = quarantined_[path];
      if (options_.resume.empty()) continue;
      std::ifstream in(path, std::ios::binary);
      uintmax_t whole = 0;
      std::string line;
      while (std::getline(in, line) && !in.eof()) whole += file.there.insert(line + "\n").first->size();
      std::error_code ignored;
      if (!line.empty()) std::filesystem::resize_file(path, whole, ignored);  // it was killed within a line
    }
    return std::nullopt;
  }

  /// Appends a line to the file that the step names.
  void quarantine(const RunFailure& failure, const Node& node) {
    const std::string path = quarantine_file(node);
    const std::string line = quarantine_line(*sources_, failure);
    Quarantine& file = quarantined_[path];
    ++file.lines;
    if (file.there.erase(line) > 0) return;
    std::ofstream out(path, std::ios::app | std::ios::binary);
    out << line;
    out.flush();
    if (!out && !quarantine_failure_)
      quarantine_failure_ = Failure{"R0501", "cannot write `" + path + "`", node.origin};
  }

  int finish(const RunResult& result) {
    int code = kExitOk;
    using End = RunResult::End;
    switch (result.end) {
      case End::Complete:
        break;
      case End::Failed: {
        const RunFailure& failure = *result.failure;
        session_.show_failure(failure, sources_->describe(failure.id));
        code = failure.failure.code.starts_with('B') ? kExitBug : kExitRun;
        break;
      }
      case End::Stopped:
        code = show_problem({"R0506", "asked to end", {}});
        break;
      case End::SinkClosed:
        code = show_problem(*receiver_->failure());
        break;
      case End::Stalled:
        code = kExitRun;
        break;
    }
    if (code == kExitOk && quarantine_failure_) {
      session_.show_failure(*quarantine_failure_);
      code = kExitRun;
    }
    // What a saved state continues is what was delivered: a failed run can be resumed once its cause is gone. So the
    // output up to there is kept together with the state, or neither is.
    const bool resumable =
        !options_.save_state.empty() && result.end != End::SinkClosed && !result.state.program.empty();
    bool kept = true;
    if (code == kExitOk || (resumable && watch_->records() > 0)) {
      if (auto problem = delivery_.close()) {
        code = show_problem(*problem);
        kept = false;
      }
    }
    if (resumable && kept) {
      if (auto problem = write_file_atomically(options_.save_state, with_origin(to_json(result.state), session_))) {
        code = show_problem(*problem);
      } else if (code != kExitOk && !options_.out.empty() && watch_->records() > 0) {
        say(fmt::format("`{}` holds the {} records before `{}`; --resume goes on from there, into another folder",
                        options_.out, watch_->records(), options_.save_state));
      }
    }
    // Without its output a state from the way would leave records out.
    if (!(resumable && kept) && saved_at_ > 0) unlink(options_.save_state.c_str());
    if (code == kExitOk && !options_.trace.empty()) {
      if (auto problem = trace_.close()) code = show_problem(*problem);
    }
    if (!options_.reference) session_.learn(optimized_.plan, result);
    RunReport report = make_report(result);
    if (options_.json) {
      if (int printed = print(report.json()); code == kExitOk) code = printed;
    } else if (options_.digest && code == kExitOk) {
      code = print(report.digest + "\n");
    }
    if (options_.stats) say(report.table());
    if (code == kExitOk) say(report.one_line());
    if (code == kExitOk && result.records == 0) hint_at_nothing(result);
    return code;
  }

  /// Why a run delivered nothing, where an incomplete batch is the reason.
  void hint_at_nothing(const RunResult& result) const {
    for (const OperatorReport& op : result.operators) {
      if (op.samples_in == 0 || op.samples > 0) continue;
      for (NodeId id : session_.graph().topological()) {
        const Node& node = session_.graph().node(id);
        if (!node.attrs.has("drop_remainder") || !node.attrs.flag("drop_remainder")) continue;
        if (std::find(op.steps.begin(), op.steps.end(), node.step) == op.steps.end()) continue;
        say(fmt::format(
            "hint: the {} samples that come to `{}` (line {}) do not fill a batch of {}, and drop_remainder "
            "drops them; give a smaller batch_size, or leave drop_remainder out",
            op.samples_in, node.op->name, session_.line_of(node.origin), node.attrs.integer("batch_size")));
      }
    }
  }

  RunReport make_report(const RunResult& result) const {
    RunReport out;
    out.end = result.end == RunResult::End::Complete  ? "complete"
              : result.end == RunResult::End::Failed  ? "failed"
              : result.end == RunResult::End::Stopped ? "interrupted"
              : result.end == RunResult::End::Stalled ? "stalled"
                                                      : "output failed";
    out.batched = session_.graph().node(session_.graph().output()).type.batch.has_value();
    out.samples = watch_->samples();
    out.batches = out.batched ? watch_->records() : 0;
    out.dropped_batches = result.dropped_records;
    out.seconds = seconds_since_start();
    out.startup_seconds = setup_seconds_ + watch_->first_record_at();
    out.steady_seconds = watch_->last_record_at() - watch_->first_record_at();
    out.steady_samples = out.samples - watch_->first_samples();
    out.cpu_seconds = cpu_seconds_used();
    out.peak_rss = peak_resident_bytes();
    out.base_rss = result.base_rss;
    out.peak_in_flight = result.peak_bytes;
    out.kept = result.kept_bytes;
    out.digest = delivery_.digest();
    out.plan_hash = optimized_.plan.hash;
    if (!options_.reference) out.relaxations = session_.relaxations();
    if (options_.stats) out.plan = options_.reference ? "reference interpreter" : plan_one_line(optimized_.plan);
    for (const RunResult::Errors& errors : result.errors) out.errors.emplace_back(errors.policy, errors.count);
    for (const auto& [path, file] : quarantined_) {
      if (file.lines > 0) out.written.emplace_back(shown_file(path), file.lines);
    }
    for (const OperatorReport& op : result.operators) {
      uint32_t line = op.origins.empty() ? 0 : session_.line_of(op.origins.front());
      out.operators.push_back(
          {op.name, line, op.samples_in, op.samples, op.bytes_out, op.cpu_seconds, op.wait_seconds});
    }
    return out;
  }

  Session& session_;
  const Options& options_;
  OptimizeResult optimized_;
  std::shared_ptr<const OpenSources> sources_;
  std::optional<State> resume_;
  Delivery delivery_;
  TraceFile trace_;
  std::unique_ptr<RunWatch> watch_;
  std::unique_ptr<Receiver> receiver_;
  double setup_seconds_ = 0;
  double saved_at_ = 0, save_cost_ = 0;  ///< seconds
  uint64_t rejected_ = 0;
  struct Quarantine {
    uint64_t lines = 0;           ///< of this run
    std::set<std::string> there;  ///< where it resumes: what stood in the file, and was not met again
  };
  std::map<std::string, Quarantine> quarantined_;  ///< by file
  std::optional<Failure> quarantine_failure_;
};

}  // namespace

int command_run(const Options& given) {
  Options options = given;
  std::string hash;
  if (!options.plan.empty()) {
    if (auto code = read_plan_file(options.plan, options, hash)) return *code;
  }
  Session session(options);
  if (auto code = session.load()) return *code;
  session.expect_plan(hash);
  return Run(session)();
}

}  // namespace zephon
