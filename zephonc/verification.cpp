#include "zephonc/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/reference_run.h"
#include "zephonc/shrink.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/json_text.h"

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

Value value_of(const DeliveredField& field) {
  Value out(field.elem, field.shape);
  std::memcpy(out.mutable_bytes().data(), field.data, out.mutable_bytes().size());
  return out;
}

/// Adds how far `found` is from `expected`, of the same type and shape. The element that is farther than all so far, or
/// -1.
int64_t measure(const DeliveredField& expected, const DeliveredField& found, FieldDifference& out) {
  const int64_t count = expected.count();
  out.elements += count;
  int64_t farthest = -1;
  auto add = [&](int64_t i, double far) {
    if (far == 0) return;
    ++out.unequal;
    out.sum += far;
    if (far <= out.largest) return;
    out.largest = far;
    farthest = i;
  };
  if (is_string(expected.elem)) {
    for (int64_t i = 0; i < count; ++i) add(i, expected.strings()[i].view() != found.strings()[i].view());
    return farthest;
  }
  const Value a = value_of(expected), b = value_of(found);
  for (int64_t i = 0; i < count; ++i) {
    const Scalar x = a.at(i), y = b.at(i);
    if (!is_float(expected.elem)) {
      add(i, std::abs(static_cast<double>(x.i) - static_cast<double>(y.i)));
    } else if (!(x.f == y.f || (std::isnan(x.f) && std::isnan(y.f)))) {
      const double far = std::abs(x.f - y.f);
      add(i, std::isnan(far) ? std::numeric_limits<double>::infinity() : far);
    }
  }
  return farthest;
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

std::string rejection_text(const RunFailure& failure, const std::string& policy) {
  return fmt::format("`{}` of sample {} ({}: {})", policy, to_string(failure.id), failure.failure.code,
                     failure.failure.message);
}

/// Pulls the reference interpreter along with the plan.
class Comparer : public Sink {
 public:
  Comparer(ReferenceRun& reference, const StreamType& type, bool relaxed, Comparison& out)
      : reference_(reference), type_(type), relaxed_(relaxed), out_(out) {
    reference_.on_rejected(
        [this](const Rejected& rejected) { as_written_.push_back(rejection_text(rejected.failure, rejected.policy)); });
  }
  /// Of the plan, in order.
  void rejected(const RunFailure& failure, const std::string& policy) {
    found_.push_back(rejection_text(failure, policy));
  }
  /// Since the last record: what on_error dealt with in both.
  bool same_rejections() {
    const std::vector<std::string> should = std::exchange(as_written_, {}), is = std::exchange(found_, {});
    if (relaxed_ || should == is) return true;
    const auto [s, i] = std::mismatch(should.begin(), should.end(), is.begin(), is.end());
    return differ(fmt::format("before it the plan has {}, the program as written {}", i == is.end() ? "no more" : *i,
                              s == should.end() ? "no more" : *s));
  }

  bool deliver(const RunRecord& record) override {
    std::optional<ReferenceRecord> expected = reference_.next();
    if (reference_.stopped()) return false;
    if (!expected) {
      const auto& failure = reference_.failure();
      return differ(failure ? fmt::format("the program as written fails here ({}: {}), the plan goes on",
                                          failure->failure.code, failure->failure.message)
                            : "the program as written ends here, the plan goes on");
    }
    if (!same_rejections()) return false;
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
      const DeliveredField expects = delivered(field), finds = delivered(*other);
      const int64_t each =
          record.batched ? std::max<int64_t>(field.value.size() / std::max<int64_t>(view.members, 1), 1) : 1;
      auto sample = [&](int64_t at) {
        const SampleId id = view.member_id(record.batched ? at / each : 0);
        return fmt::format("sample {} ({})", to_string(id), reference_.sources().describe(id));
      };
      if (relaxed_ && expects.elem == finds.elem && expects.shape == finds.shape) {
        FieldDifference& far = out_.differences[*field.name];
        if (const int64_t at = measure(expects, finds, far); at >= 0) far.at = sample(at);
      } else {
        int64_t at = 0;
        const std::string what = difference(expects, finds, at);
        if (!what.empty()) return differ(fmt::format("{}: field `{}`: {}", sample(at), *field.name, what));
      }
      out_.fields.emplace(*field.name, to_string(*field.type));
      all.fields.push_back(finds);
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
  const bool relaxed_;
  Comparison& out_;
  RunDigest digest_;
  std::vector<std::string> as_written_, found_;  // rejections since the last record
};

std::string failure_text(const std::optional<RunFailure>& failure) {
  if (!failure) return "ends";
  return fmt::format("fails at sample {} ({}: {})", to_string(failure->id), failure->failure.code,
                     failure->failure.message);
}

}  // namespace

bool Comparison::equal() const {
  return problem.empty() && std::all_of(differences.begin(), differences.end(),
                                        [](const auto& entry) { return entry.second.unequal == 0; });
}

Comparison compare(const Graph& written, const Plan& plan, const VerifyOptions& options,
                   std::shared_ptr<const OpenSources> sources) {
  Comparison out;
  Failure failure;
  ReferenceOptions as_written{options.seed, options.epochs, options.base_dir, options.stop};
  auto reference = ReferenceRun::open(written, as_written, failure, std::move(sources));
  Comparer comparer(*reference, written.node(written.output()).type, options.relaxed, out);
  RunOptions how;
  how.threads = options.threads;
  how.memory = options.memory;
  how.epochs = options.epochs;
  how.take = options.take;
  how.stop = options.stop;
  how.on_error = [&](const RunFailure& rejected, const Node&, const std::string& policy) {
    comparer.rejected(rejected, policy);
  };
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
  if (options.take && out.records >= *options.take && !result.failure) return out;
  const bool more = reference->next().has_value();
  out.stopped = reference->stopped();
  if (out.stopped) return out;
  const std::string as_is = more ? "goes on" : failure_text(reference->failure());
  const std::string planned = failure_text(result.failure);
  if (as_is != planned) {
    out.problem = fmt::format("here the plan {}, the program as written {}", planned, as_is);
    out.at_record = out.records;
    return out;
  }
  comparer.same_rejections();
  return out;
}

Suspects suspects(const Graph& written, const OptimizeOptions& how, const Trace& trace, const Comparison& found,
                  const VerifyOptions& options, const std::shared_ptr<const OpenSources>& sources) {
  VerifyOptions up_to_there = options;
  up_to_there.take = found.at_record + 1;
  auto equal_with = [&](const OptimizeOptions& changed) {
    const Comparison again = compare(written, optimize(written, changed, all_ops()).plan, up_to_there, sources);
    return !again.stopped && again.problem.empty();
  };
  Suspects out;
  for (const std::string& name : applied_rules(trace)) {
    OptimizeOptions without = how;
    without.disabled.insert(name);
    if (equal_with(without)) out.rules.push_back(name);
  }
  if (out.rules.empty()) {
    OptimizeOptions none = how;
    none.no_optimize = true;
    out.equal_without_any = equal_with(none);
  }
  return out;
}

std::string smallest_that_differs(const ProgramText& program, const OptimizeOptions& how,
                                  const VerifyOptions& options) {
  auto differs = [&](const std::string& text) {
    if (options.stop != nullptr && *options.stop) return false;
    SourceMap sources;
    Diagnostics diags;
    const FileId file = sources.add(program.name, text);
    std::map<std::string, std::string> params;  // what the smaller one still has
    for (const DeclaredParameter& declared : declared_parameters(sources, file))
      if (auto it = program.params.find(declared.name); it != program.params.end()) params.insert(*it);
    if (auto seed = program.params.find("seed"); seed != program.params.end()) params.insert(*seed);
    CompileOptions compiling;
    const auto names = pipeline_names(sources, file, diags);
    if (names && names->size() > 1) compiling.pipeline = program.pipeline;
    const Result<Program> smaller = compile(sources, file, params, all_ops(), diags, compiling);
    if (!smaller) return false;
    Failure failure;
    auto opened = open_sources(smaller->graph, {options.base_dir}, failure);
    if (opened == nullptr) return false;
    OptimizeOptions again = how;
    again.plan.seed = smaller->seed;
    VerifyOptions verifying = options;
    verifying.seed = smaller->seed;
    return !compare(smaller->graph, optimize(smaller->graph, again, all_ops()).plan, verifying, opened).problem.empty();
  };
  return shrink(program.zpl, differs).text;
}

std::vector<std::string> applied_rules(const Trace& trace) {
  std::set<std::string> names;
  for (const Application& application : trace.applied) names.emplace(application.rule->name);
  return {names.begin(), names.end()};
}

}  // namespace zephon
