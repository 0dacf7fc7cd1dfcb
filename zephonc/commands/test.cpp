// zephonc test FILE: runs the tests inside a program, by the reference interpreter.

#include <fmt/format.h>

#include <filesystem>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/sample_view.h"
#include "zephonc/value_diff.h"

namespace zephon {
namespace {

/// Runs tests; says what does not hold.
class TestRun {
 public:
  TestRun(const SourceMap& sources, std::string base_dir) : sources_(sources), base_dir_(std::move(base_dir)) {}

  /// Whether everything holds.
  bool run(const TestPrograms& test) {
    problem_ = Diagnostic();
    diff_.clear();
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
  /// Of what is expected and what is delivered; may be empty.
  const std::string& diff() const { return diff_; }

 private:
  bool fails(const Span& span, const std::string& why) {
    problem_.message = why;
    problem_.primary = {span, ""};
    return false;
  }

  std::vector<ReferenceRecord> deliver(const Program& program, std::optional<Failure>& failure) {
    Failure why;
    ReferenceOptions options{.seed = program.seed, .base_dir = base_dir_};
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
    for (size_t i = 0; i < std::min(records.size(), test.expected.size()); ++i) {
      if (!check_record(test.expected[i], records[i], *test.actual, i + 1)) return false;
    }
    return check_count(test, records);
  }

  static ComparedValue compared(const ReferenceRecord& record, const std::string& name, const Value& value,
                                const Program& program) {
    ComparedValue out{.value = &value, .missing = field(record, missing_field(name))};
    while (const Value* lengths = field(record, lengths_field(name, out.lengths.size() + 1)))
      out.lengths.push_back(lengths);
    const StreamType& type = program.graph.node(program.graph.output()).type;
    if (const Field* known = type.find(name); known != nullptr && (out.missing != nullptr || !out.lengths.empty())) {
      // Of its extents only how many there are: they belong to this one value.
      Field open = *known;
      for (Dim& dim : open.type.shape) dim = Dim::unknown();
      out.type = field_type_text(type, open);
    }
    return out;
  }

  bool check_record(const ExpectedRecord& expected, const ReferenceRecord& record, const Program& actual,
                    size_t number) {
    std::optional<Failure> broken;
    std::vector<ReferenceRecord> wanted = deliver(expected.program, broken);
    if (broken || wanted.size() != 1)
      return fails(expected.span, "what is expected fails: " + (broken ? broken->message : ""));
    for (const auto& [name, value] : wanted[0].fields) {
      if (is_companion(name)) continue;
      const Value* found = field(record, name);
      const ComparedValue left = compared(wanted[0], name, value, expected.program);
      ComparedValue right;
      if (found != nullptr) right = compared(record, name, *found, actual);
      const ValueDiff diff = value_diff(name, left, found == nullptr ? nullptr : &right);
      if (diff.text.empty()) continue;
      if (diff_.empty()) {
        diff_ = fmt::format("--- expected\n+++ delivered\nrecord {}\n", number);
        fails(expected.span, fmt::format("record {} is not what is expected", number));
        label(expected, name, diff.first, found);
      }
      diff_ += diff.text;
    }
    return diff_.empty();
  }

  /// Points at what is expected in the first place that differs.
  void label(const ExpectedRecord& expected, const std::string& name, int64_t at, const Value* found) {
    auto place = expected.places.find(name);
    if (place == expected.places.end()) return;
    problem_.primary = {place->second.value,
                        fmt::format("`{}` is delivered as {}", name, found == nullptr ? "nothing" : type_text(*found))};
    if (found == nullptr) return;
    if (at < 0) return;
    problem_.primary.text = fmt::format("`{}` differs", name);
    if (at < static_cast<int64_t>(place->second.elements.size()))
      problem_.primary.span = place->second.elements[static_cast<size_t>(at)];
  }

  bool check_count(const TestPrograms& test, const std::vector<ReferenceRecord>& records) {
    const size_t wanted = test.expected.size(), found = records.size();
    if (wanted == found) return true;
    fails(found < wanted ? test.expected[found].span : test.expect_span,
          fmt::format("{} {} expected, and {} delivered", wanted, wanted == 1 ? "record is" : "records are", found));
    diff_ = "--- expected\n+++ delivered\n";
    constexpr size_t kShown = 5;
    size_t shown = 0;
    auto add = [&](char sign, size_t number, const ReferenceRecord& record, const Program& program) {
      if (++shown > kShown) return;
      diff_ += fmt::format("{} record {}\n", sign, number);
      for (const auto& [name, value] : record.fields)
        if (!is_companion(name))
          diff_ += fmt::format("{}   {}: {}\n", sign, name, value_line(compared(record, name, value, program)));
    };
    for (size_t i = found; i < wanted; ++i) {
      std::optional<Failure> broken;
      for (const ReferenceRecord& record : deliver(test.expected[i].program, broken))
        add('-', i + 1, record, test.expected[i].program);
    }
    for (size_t i = wanted; i < found; ++i) add('+', i + 1, records[i], *test.actual);
    if (shown > kShown) diff_ += fmt::format("and {} more\n", shown - kShown);
    return false;
  }

  const SourceMap& sources_;
  std::string base_dir_;
  Diagnostic problem_;
  std::string diff_;
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
  const Result<std::vector<std::string>> names = test_names(sources, file, diags);
  if (!names) {
    say(render(diags, sources, how));
    return kExitProgram;
  }
  if (names->empty()) {
    say(fmt::format("zephonc: `{}` has no tests; `zephonc explain E0108` shows one", options.file));
    return kExitUsage;
  }
  std::string folder = std::filesystem::path(options.file).parent_path().string();
  TestRun run(sources, folder.empty() ? "." : folder);
  std::string report;
  size_t good = 0;
  for (size_t i = 0; i < names->size(); ++i) {
    Diagnostics found;
    Result<TestPrograms> test = compile_test(sources, file, i, all_ops(), found);
    bool holds = test.ok() && run.run(*test);
    if (!holds) {
      say(fmt::format("test \"{}\"", (*names)[i]));
      say(test ? render(run.problem(), sources, how) + run.diff() : render(found, sources, how));
    }
    good += holds ? 1 : 0;
    report += fmt::format("{} {}\n", holds ? "ok    " : "FAILED", (*names)[i]);
  }
  report += fmt::format("{} of {} tests hold\n", good, names->size());
  int code = print(report);
  return good == names->size() ? code : kExitProgram;
}

}  // namespace zephon
