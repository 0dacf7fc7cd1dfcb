// zephonc verify FILE: the program as written, run by the reference interpreter, and its plan, over the same samples,
// in step. Where they differ, the plan is run again with each applied rule disabled, to name the guilty one.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/ast.h"
#include "frontend/parse_yaml.h"
#include "frontend/print.h"
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
    const VerifyOptions verifying{session_.program().seed, options_.epochs,   options_.take,  session_.base_dir(),
                                  session_.threads(),      session_.memory(), &watch_.stop(), !how.relaxed.empty()};
    const Comparison outcome = compare(session_.graph(), optimized.plan, verifying, sources_);
    if (outcome.stopped) return show_problem({"R0506", "asked to end", {}});
    if (!how.relaxed.empty() && !outcome.equal()) return relaxed(optimized, outcome);
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
    int printed =
        print(fmt::format("equal to the bit: {} records, {} samples, in order{}\n{}fields: {}\n{}", outcome.records,
                          outcome.samples, outcome.failure ? ", and the same failure at the end" : "",
                          how.relaxed.empty() ? "" : fmt::format("relaxed: {}\n", relaxations()),
                          fields.empty() ? "none" : fields, trailer(optimized, outcome)));
    return outcome.failure ? kExitRun : printed;
  }

 private:
  std::string relaxations() const { return fmt::format("{}", fmt::join(session_.relaxations(), ", ")); }

  static std::string trailer(const OptimizeResult& optimized, const Comparison& outcome) {
    const std::vector<std::string> rules = applied_rules(optimized.trace);
    return fmt::format("rules applied: {}\nplan {}, digest {}\n",
                       rules.empty() ? "none" : fmt::format("{}", fmt::join(rules, ", ")), optimized.plan.hash,
                       outcome.digest);
  }

  /// What was permitted is no fault: says how far the data are from the program as written.
  int relaxed(const OptimizeResult& optimized, const Comparison& outcome) const {
    std::string out =
        fmt::format("relaxed: {}\n{} records, {} samples compared, in order{}\n", relaxations(), outcome.records,
                    outcome.samples, outcome.failure ? ", and the same failure at the end" : "");
    size_t name_width = 5, type_width = 4;
    for (const auto& [name, type] : outcome.fields) {
      name_width = std::max(name_width, name.size());
      type_width = std::max(type_width, type.size());
    }
    out += fmt::format("{:<{}}  {:<{}}  {:>10}  {:>10}  {:>10}\n", "field", name_width, "type", type_width, "differ",
                       "mean", "largest");
    for (const auto& [name, type] : outcome.fields) {
      auto found = outcome.differences.find(name);
      if (found == outcome.differences.end()) continue;
      const FieldDifference& far = found->second;
      const double part = far.elements > 0 ? static_cast<double>(far.unequal) / static_cast<double>(far.elements) : 0;
      out += fmt::format("{:<{}}  {:<{}}  {:>9.3f}%  {:>10.4g}  {:>10.4g}{}\n", name, name_width, type, type_width,
                         100 * part, far.mean(), far.largest, far.at.empty() ? "" : "  at " + far.at);
    }
    if (!outcome.problem.empty())
      out += fmt::format("compared up to record {}, where other data are delivered: {}\n", outcome.at_record,
                         outcome.problem);
    const int printed = print(out + trailer(optimized, outcome));
    if (outcome.failure) session_.show_failure(*outcome.failure, sources_->describe(outcome.failure->id));
    return outcome.failure ? kExitRun : printed;
  }

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
    if (options_.shrink) print(smallest_that_differs(program_text(), how, verifying));
    return kExitBug;
  }

  ProgramText program_text() const {
    const Program& program = session_.program();
    ProgramText out{options_.file, std::string(session_.sources().text(session_.file())), {}, program.name};
    for (const ProgramParameter& p : program.parameters)
      if (p.given) out.params[p.name] = p.value;
    out.params["seed"] = std::to_string(program.seed);
    if (form_of(options_.file) == Form::Yaml) {
      SourceMap sources;
      Diagnostics diags;
      const Result<ast::File> tree = parse_yaml(sources, sources.add(options_.file, out.zpl), diags);
      out.zpl = zephon::print(*tree, out.zpl, Form::Yaml, Form::Zpl);
      out.name += ".zpl";
    }
    return out;
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
