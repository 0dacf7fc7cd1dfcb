// zephonc run FILE: runs a pipeline, by its plan or by the reference interpreter, and reports.

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "ops/all_ops.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/delivery.h"
#include "zephonc/machine_limits.h"
#include "zephonc/plan_view.h"
#include "zephonc/reference_run.h"
#include "zephonc/run_report.h"
#include "zephonc/session.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/watch.h"

namespace zephon {
namespace {

/// What is known before the run, for the manifest.
std::string manifest_head(const Session& session, const std::string& plan_hash) {
  const Options& o = session.options;
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  for (const auto& [name, value] : o.params) params[name] = value;
  nlohmann::ordered_json head{{"zephon", ZEPHON_VERSION},
                              {"program", o.file},
                              {"program_fingerprint", session.fingerprint},
                              {"params", params},
                              {"seed", session.seed},
                              {"epochs", o.epochs},
                              {"rank", o.rank},
                              {"world_size", o.world_size},
                              {"plan_hash", plan_hash},
                              {"relaxations", o.allow}};
  return head.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<std::string> read_file(const std::string& path, Failure& failure) {
  std::string text;
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file != nullptr) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, n);
    bool good = std::ferror(file) == 0;
    std::fclose(file);
    if (good) return text;
  }
  failure = {"R0401", fmt::format("cannot read `{}`: {}", path, std::strerror(errno)), {}};
  return std::nullopt;
}

/// The sink of both runtimes: converts, counts, remembers the first problem of a writer.
class Receiver : public Sink {
 public:
  Receiver(Delivery& delivery, RunWatch& watch) : delivery_(delivery), watch_(watch) {}

  bool deliver(const Record& record) override {
    watch_.delivered(1, static_cast<uint64_t>(record.members));
    if (!delivery_.wants_records()) return true;
    DeliveredRecord out;
    out.epoch = record.epoch;
    out.ordinal = record.ordinal;
    out.batched = record.batched;
    for (const Record::Field& field : record.fields) {
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

/// Samples that a policy put aside: the first few are shown, all of them go to a file where there is an output folder.
class Rejected {
 public:
  explicit Rejected(Session& session) : session_(session) {}
  void add(const RunFailure& failure, int32_t step, const std::string& policy) {
    ++counts_[{step, policy}];
    if (++total_ > kShown) return;
    say(fmt::format("{}: sample {} at step {}: {} ({}); {}", policy, to_string(failure.id), step, failure.failure.message,
                    failure.failure.code, session_.replay_command(failure.id, failure.failure.where)));
    if (total_ == kShown) say("further samples are counted, not shown");
  }

 private:
  static constexpr uint64_t kShown = 5;
  Session& session_;
  std::map<std::pair<int32_t, std::string>, uint64_t> counts_;
  uint64_t total_ = 0;
};

}  // namespace

int command_run(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  session.show_diagnostics();
  OptimizeOptions how;
  if (auto code = session.optimizer_options(how)) return *code;
  if (options.reference) return reference_run(session);

  OptimizeResult optimized = optimize(session.graph, how, all_ops());
  for (const std::string& problem : optimized.trace.problems) say("zephonc: our bug: " + problem);
  if (!optimized.trace.problems.empty()) return kExitBug;
  const Plan& plan = optimized.plan;
  return 0;
}

}  // namespace zephon
