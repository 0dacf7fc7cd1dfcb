// zephonc verify FILE: the program as written, run by the reference interpreter, and its plan, over the same samples,
// in step. Where they differ, the plan is run again with each applied rule disabled, to name the guilty one.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/session.h"
#include "zephonc/verification.h"
#include "zephonc/watch.h"

namespace zephon {
namespace {

class Verifier {
 public:
  explicit Verifier(Session& session) : session_(session), options_(session.options()), watch_({}) { watch_.start(); }

  int operator()() {
    OptimizeOptions how;
    if (auto code = session_.optimizer_options(how)) return *code;
    Failure failure;
    sources_ = open_sources(session_.graph(), {session_.base_dir()}, failure);
    if (sources_ == nullptr) {
      session_.show_failure(failure);
      return kExitRun;
    }
    OptimizeResult optimized;
    if (auto code = session_.optimize_program(how, optimized)) return *code;
    const VerifyOptions verifying{session_.program().seed, options_.epochs,   options_.take, session_.base_dir(),
                                  session_.threads(),      session_.memory(), &watch_.stop()};
    const Comparison outcome = compare(session_.graph(), optimized.plan, verifying, sources_);
    if (outcome.stopped) return show_problem({"R0506", "asked to end", {}});
    if (!outcome.problem.empty()) return differs(how, optimized.trace, outcome, verifying);
    if (outcome.failure) {
      session_.show_failure(*outcome.failure, sources_->describe(outcome.failure->id));
    }
    if (outcome.records == 0 && !outcome.failure) {
      const int printed =
          print(fmt::format("0 records compared: neither the plan nor the program as written delivers any\nplan {}\n",
                            optimized.plan.hash));
      say("hint: `zephonc run FILE --stats` shows how many samples come to each step");
      return printed;
    }
    std::string fields;
    for (const auto& [name, type] : outcome.fields)
      fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", name, type);
    std::string rules;
    for (const std::string& name : applied_rules(optimized.trace)) rules += (rules.empty() ? "" : ", ") + name;
    int printed = print(fmt::format(
        "equal to the bit: {} records, {} samples, in order{}\nfields: {}\nrules applied: {}\nplan {}, digest {}\n",
        outcome.records, outcome.samples, outcome.failure ? ", and the same failure at the end" : "",
        fields.empty() ? "none" : fields, rules.empty() ? "none" : rules, optimized.plan.hash, outcome.digest));
    return outcome.failure ? kExitRun : printed;
  }

 private:
  /// Says where, and names the rule without which the difference vanishes.
  int differs(const OptimizeOptions& how, const Trace& trace, const Comparison& outcome,
              const VerifyOptions& verifying) {
    Diagnostic shown;
    shown.kind = Kind::PlanDiffers;
    shown.message = fmt::format("record {}: {}", outcome.at_record, outcome.problem);
    const Suspects guilty = suspects(session_.graph(), how, trace, outcome, verifying, sources_);
    for (const std::string& name : guilty.rules) shown.notes.push_back(fmt::format("equal with --disable={}", name));
    if (guilty.rules.empty()) {
      shown.notes.push_back(guilty.equal_without_any ? "no single rule is the cause: equal with --no-optimize"
                                                     : "not a rule: it differs with --no-optimize as well");
    }
    say(render(shown, session_.sources()));
    return kExitBug;
  }

  Session& session_;
  const Options& options_;
  RunWatch watch_;
  std::shared_ptr<const OpenSources> sources_;
};

}  // namespace

int command_verify(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Verifier(session)();
}

}  // namespace zephon
