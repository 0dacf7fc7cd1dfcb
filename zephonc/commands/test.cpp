// zephonc test FILE: runs the tests inside a program, by the reference interpreter.

#include <fmt/format.h>

#include <filesystem>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"

namespace zephon {
namespace {

/// "[1, 2, 3]", "\"a\"", with a few elements.
std::string value_text(const Value& value) {
  auto one = [&](int64_t i) {
    Scalar s = value.at(i);
    if (s.elem == Elem::Bool) return std::string(s.i != 0 ? "true" : "false");
    if (is_string(s.elem)) return to_string(Attr(s.s));
    return is_float(s.elem) ? fmt::format("{}", s.f) : std::to_string(s.i);
  };
  constexpr int64_t kShown = 12;
  std::string out = std::string(elem_name(value.elem()));
  for (size_t d = 0; d < value.shape().size(); ++d) out += (d == 0 ? "[" : ", ") + std::to_string(value.shape()[d]);
  out += value.shape().empty() ? " " : "] ";
  for (int64_t i = 0; i < value.size() && i < kShown; ++i) out += (i == 0 ? "" : ", ") + one(i);
  return out + (value.size() > kShown ? ", ..." : "");
}

/// Runs tests; says what does not hold.
class TestRun {
 public:
  TestRun(const SourceMap& sources, std::string base_dir) : sources_(sources), base_dir_(std::move(base_dir)) {}

  /// Whether everything holds.
  bool run(const TestPrograms& test) {
    problem_ = Diagnostic();
    problem_.kind = Kind::TestFails;
    problem_.primary = {test.span, ""};
    if (test.actual && !check_input(test)) return false;
    for (const auto& [program, span] : test.checks) {
      std::optional<Failure> failure;
      std::vector<ReferenceRecord> records = deliver(program, failure);
      if (failure) return fails(span, "the condition fails: " + failure->message);
      const Value* value = records.empty() ? nullptr : field(records[0], "check");
      if (value == nullptr || value->at(0).i == 0) return fails(span, "the condition is false");
    }
    return true;
  }
  const Diagnostic& problem() const { return problem_; }

 private:
  bool fails(const Span& span, const std::string& why) {
    problem_.message = why;
    problem_.primary = {span, ""};
    return false;
  }

  std::vector<ReferenceRecord> deliver(const Program& program, std::optional<Failure>& failure) {
    Failure why;
    ReferenceOptions options{.seed = program.seed, .base_dir = base_dir_, .write_quarantine = false};
    auto run = ReferenceRun::open(program.graph, options, why);
    std::vector<ReferenceRecord> records;
    if (run == nullptr) {
      failure = why;
      return records;
    }
    while (auto record = run->next()) records.push_back(std::move(*record));
    if (run->failure()) failure = run->failure()->failure;
    return records;
  }
  static const Value* field(const ReferenceRecord& record, const std::string& name) {
    for (const auto& [known, value] : record.fields)
      if (known == name) return &value;
    return nullptr;
  }

  bool check_input(const TestPrograms& test) {
    std::optional<Failure> failure;
    std::vector<ReferenceRecord> records = deliver(*test.actual, failure);
    if (test.fails) {
      if (!failure)
        return fails(test.span, fmt::format("a failure with `{}` is expected, and nothing fails", *test.fails));
      if (failure->message.find(*test.fails) == std::string::npos)
        return fails(test.span,
                     fmt::format("a failure with `{}` is expected, and it says: {}", *test.fails, failure->message));
    } else if (failure) {
      return fails(failure->where.valid() ? failure->where : test.span, failure->message);
    }
    if (!test.expects) return true;
    for (size_t i = 0; i < std::max(records.size(), test.expected.size()); ++i) {
      if (i >= records.size() || i >= test.expected.size())
        return fails(test.span, fmt::format("{} {} expected, and {} delivered", test.expected.size(),
                                            test.expected.size() == 1 ? "record is" : "records are", records.size()));
      std::optional<Failure> broken;
      std::vector<ReferenceRecord> wanted = deliver(test.expected[i], broken);
      if (broken || wanted.size() != 1)
        return fails(test.span, "what is expected fails: " + (broken ? broken->message : ""));
      for (const auto& [name, value] : wanted[0].fields) {
        const Value* found = field(records[i], name);
        if (found != nullptr && *found == value) continue;
        return fails(test.span, fmt::format("`{}` of record {} is {}, and {} is expected", name, i + 1,
                                            found == nullptr ? "missing" : value_text(*found), value_text(value)));
      }
    }
    return true;
  }

  const SourceMap& sources_;
  std::string base_dir_;
  Diagnostic problem_;
};

}  // namespace

int command_test(const Options& options) {
  RenderOptions how;
  how.colour = stderr_colour();
  Failure failure;
  std::optional<std::string> text = read_whole_file(options.file, failure);
  if (!text) {
    say("zephonc: " + failure.message);
    return kExitProgram;
  }
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(options.file, *text);
  Result<size_t> count = count_tests(sources, file, diags);
  if (!count) {
    say(render(diags, sources, how));
    return kExitProgram;
  }
  if (*count == 0) {
    say(fmt::format("zephonc: `{}` has no tests; `zephonc explain E0108` shows one", options.file));
    return kExitUsage;
  }
  std::string folder = std::filesystem::path(options.file).parent_path().string();
  TestRun run(sources, folder.empty() ? "." : folder);
  std::string report;
  size_t good = 0;
  for (size_t i = 0; i < *count; ++i) {
    Diagnostics found;
    Result<TestPrograms> test = compile_test(sources, file, i, all_ops(), found);
    bool holds = test.ok() && run.run(*test);
    if (!test) {
      say(render(found, sources, how));
    } else if (!holds) {
      say(fmt::format("test \"{}\"", test->name));
      say(render(run.problem(), sources, how));
    }
    good += holds ? 1 : 0;
    if (test) report += fmt::format("{} {}\n", holds ? "ok    " : "FAILED", test->name);
  }
  report += fmt::format("{} of {} tests hold\n", good, *count);
  int code = print(report);
  return good == *count ? code : kExitProgram;
}

}  // namespace zephon
