// zephonc verify FILE: the program as written, run by the reference interpreter, and its plan, over the same samples,
// in step. Where they differ, the plan is run again with each applied rule disabled, to name the guilty one.

#include <fmt/format.h>

#include <cstring>

#include "optimizer/rules/all_rules.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/reference_run.h"
#include "zephonc/session.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/watch.h"

namespace zephon {
namespace {

DeliveredField delivered(const RunRecord::Field& field) {
  const TensorRef& value = field.value;
  return {*field.name, value.elem, {value.shape, value.shape + value.rank}, value.data};
}

std::string shape_text(const DeliveredField& field) {
  std::string out(elem_name(field.elem));
  for (size_t i = 0; i < field.shape.size(); ++i) out += (i == 0 ? "[" : ", ") + std::to_string(field.shape[i]);
  return out + (field.shape.empty() ? "" : "]");
}

/// One element, as JSON.
std::string element_text(const DeliveredField& field, int64_t i) {
  DeliveredField one = field;
  one.shape.clear();
  one.data = static_cast<const char*>(field.data) + static_cast<size_t>(i) * elem_size(field.elem);
  std::string out;
  append_json(out, one);
  return out.size() > 80 ? out.substr(0, 80) + "..." : out;
}

std::string index_text(const DeliveredField& field, int64_t flat) {
  std::string out;
  for (size_t d = field.shape.size(); d-- > 0;) {
    out = std::to_string(flat % field.shape[d]) + (out.empty() ? "" : ", ") + out;
    flat /= field.shape[d];
  }
  return "[" + out + "]";
}

/// Why two fields are not the same to the bit, or ""; `at`: the element where they differ.
std::string difference(DeliveredField expected, DeliveredField found, int64_t& at) {
  at = 0;
  if (expected.elem != found.elem || expected.shape != found.shape) {
    return fmt::format("is {}, as written it is {}", shape_text(found), shape_text(expected));
  }
  std::vector<uint8_t> scratch[2];
  make_nans_canonical(expected, scratch[0]);
  make_nans_canonical(found, scratch[1]);
  const size_t size = elem_size(expected.elem);
  for (int64_t i = 0; i < expected.count(); ++i) {
    bool same = is_string(expected.elem)
                    ? expected.strings()[i].view() == found.strings()[i].view()
                    : std::memcmp(static_cast<const char*>(expected.data) + static_cast<size_t>(i) * size,
                                  static_cast<const char*>(found.data) + static_cast<size_t>(i) * size, size) == 0;
    if (same) continue;
    at = i;
    return fmt::format("element {} is {}, as written it is {}", index_text(expected, i), element_text(found, i),
                       element_text(expected, i));
  }
  return {};
}

/// Outcome of one comparison. `problem` is empty where all is equal.
struct Comparison {
  uint64_t records = 0, samples = 0;
  std::string problem;
  uint64_t at_record = 0;
  bool stopped = false, stalled = false;
  std::optional<RunFailure> failure;  ///< both ended with this one
  std::string digest;
  std::map<std::string, std::string> fields;  ///< name and type of what was compared
};

/// Pulls the reference interpreter along with the plan.
class Comparer : public Sink {
 public:
  Comparer(ReferenceRun& reference, const StreamType& type, Comparison& out)
      : reference_(reference), type_(type), out_(out) {}

  bool deliver(const RunRecord& record) override {
    std::optional<ReferenceRecord> expected = reference_.next();
    if (reference_.stopped()) return false;
    if (!expected) {
      const auto& failure = reference_.failure();
      return differ(failure ? fmt::format("the program as written fails here ({}: {}), the plan goes on",
                                          failure->failure.code, failure->failure.message)
                            : "the program as written ends here, the plan goes on");
    }
    ReferenceRecordView view(*expected, type_, record.ordinal);
    if (view.members != record.members) {
      return differ(fmt::format("has {} members, as written it has {}", record.members, view.members));
    }
    for (int64_t m = 0; m < view.members; ++m) {
      SampleId is = record.member_id(m), should = view.member_id(m);
      if (is.words != should.words) {
        return differ(fmt::format("member {} is sample {}, as written it is {}", m, to_string(is), to_string(should)));
      }
    }
    DeliveredRecord all;
    for (const RunRecord::Field& field : view.fields) {
      const RunRecord::Field* other = nullptr;
      for (const RunRecord::Field& candidate : record.fields) {
        if (*candidate.name == *field.name) other = &candidate;
      }
      if (other == nullptr) return differ(fmt::format("field `{}` is missing", *field.name));
      int64_t at = 0;
      std::string what = difference(delivered(field), delivered(*other), at);
      if (!what.empty()) {
        const int64_t each =
            record.batched ? std::max<int64_t>(field.value.size() / std::max<int64_t>(view.members, 1), 1) : 1;
        const SampleId id = view.member_id(record.batched ? at / each : 0);
        return differ(fmt::format("sample {} ({}): field `{}`: {}", to_string(id), reference_.sources().describe(id),
                                  *field.name, what));
      }
      out_.fields.emplace(*field.name, to_string(*field.type));
      all.fields.push_back(delivered(field));
    }
    if (view.fields.size() != record.fields.size()) return differ("has fields that the program as written has not");
    std::sort(all.fields.begin(), all.fields.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::vector<std::vector<uint8_t>> scratch(all.fields.size());
    for (size_t i = 0; i < scratch.size(); ++i) make_nans_canonical(all.fields[i], scratch[i]);
    digest_.add(digest_of(all));
    out_.digest = hex(digest_.value());
    ++out_.records;
    out_.samples += static_cast<uint64_t>(record.members);
    return true;
  }

 private:
  bool differ(std::string what) {
    out_.problem = std::move(what);
    out_.at_record = out_.records;
    return false;
  }

  ReferenceRun& reference_;
  const StreamType& type_;
  Comparison& out_;
  RunDigest digest_;
};

std::string failure_text(const std::optional<RunFailure>& failure) {
  if (!failure) return "ends";
  return fmt::format("fails at sample {} ({}: {})", to_string(failure->id), failure->failure.code,
                     failure->failure.message);
}

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
    Comparison outcome = compare(optimized.plan, options_.take);
    if (outcome.stopped) return show_problem({"R0506", "asked to end", {}});
    if (!outcome.problem.empty()) return guilty(how, optimized.trace, outcome);
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
    for (const std::string& name : fired(optimized.trace)) rules += (rules.empty() ? "" : ", ") + name;
    int printed = print(fmt::format(
        "equal to the bit: {} records, {} samples, in order{}\nfields: {}\nrules applied: {}\nplan {}, digest {}\n",
        outcome.records, outcome.samples, outcome.failure ? ", and the same failure at the end" : "",
        fields.empty() ? "none" : fields, rules.empty() ? "none" : rules, optimized.plan.hash, outcome.digest));
    return outcome.failure ? kExitRun : printed;
  }

 private:
  static std::vector<std::string> fired(const Trace& trace) {
    std::vector<std::string> out;
    for (const RuleEntry& entry : all_rules()) {
      if (trace.fired(entry.rule->name)) out.emplace_back(entry.rule->name);
    }
    return out;
  }

  Comparison compare(const Plan& plan, std::optional<uint64_t> take) {
    Comparison out;
    Failure failure;
    ReferenceOptions as_written{session_.program().seed, options_.epochs, session_.base_dir(), false, &watch_.stop()};
    auto reference = ReferenceRun::open(session_.graph(), as_written, failure, sources_);
    const StreamType& type = session_.graph().node(session_.graph().output()).type;
    Comparer comparer(*reference, type, out);
    RunOptions how;
    how.threads = session_.threads();
    how.memory = session_.memory();
    how.epochs = options_.epochs;
    how.take = take;
    how.stop = &watch_.stop();
    auto compiler = make_kernel_compiler();
    RunResult result;
    {
      Runner runner(
          plan, how, [&] { return compiler.get(); }, comparer);
      result = runner.run();
    }
    out.stopped = result.end == RunResult::End::Stopped || reference->stopped();
    if (out.stopped || !out.problem.empty()) return out;
    out.failure = result.failure;
    if (take && out.records >= *take && !result.failure) return out;
    bool more = reference->next().has_value();
    out.stopped = reference->stopped();
    if (out.stopped) return out;
    std::string written = more ? "goes on" : failure_text(reference->failure());
    std::string planned = failure_text(result.failure);
    if (written != planned) {
      out.problem = fmt::format("here the plan {}, the program as written {}", planned, written);
      out.at_record = out.records;
    }
    return out;
  }

  /// Names the rule without which the difference vanishes.
  int guilty(const OptimizeOptions& how, const Trace& trace, const Comparison& outcome) {
    Diagnostic shown;
    shown.kind = Kind::PlanDiffers;
    shown.message = fmt::format("record {}: {}", outcome.at_record, outcome.problem);
    const uint64_t take = outcome.at_record + 1;
    auto equal_with = [&](const OptimizeOptions& changed) {
      OptimizeResult again;
      if (session_.optimize_program(changed, again)) return false;
      return compare(again.plan, take).problem.empty();
    };
    std::vector<std::string> names;
    for (const std::string& name : fired(trace)) {
      OptimizeOptions without = how;
      without.disabled.insert(name);
      if (equal_with(without)) names.push_back(name);
    }
    if (!names.empty()) {
      for (const std::string& name : names) shown.notes.push_back(fmt::format("equal with --disable={}", name));
    } else {
      OptimizeOptions none = how;
      none.no_optimize = true;
      shown.notes.push_back(equal_with(none) ? "no single rule is the cause: equal with --no-optimize"
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
