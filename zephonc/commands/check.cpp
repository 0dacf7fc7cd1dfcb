// zephonc check FILE: parse, type-check, lint; the type of every field after every step.

#include <fmt/format.h>

#include <algorithm>

#include "ops/all_ops.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {

namespace {

/// Whether the tests inside the program can be run; `zephonc test` runs them. Says what is wrong.
bool check_tests(const Options& options) {
  Failure failure;
  std::optional<std::string> text = read_whole_file(options.file, failure);
  if (!text || text->find("test") == text->npos) return true;
  SourceMap sources;
  Diagnostics parsing;
  const FileId file = sources.add(options.file, *text);
  const Result<std::vector<std::string>> names = test_names(sources, file, parsing);
  if (!names) return true;  // said before
  bool good = true;
  RenderOptions how;
  how.colour = stderr_colour();
  for (size_t i = 0; i < names->size(); ++i) {
    Diagnostics found;
    if (compile_test(sources, file, i, all_ops(), found)) continue;
    say(render(found, sources, how));
    good = false;
  }
  return good;
}

/// A file with several pipelines, none of them named: each in turn.
std::optional<int> check_each(const Options& options) {
  Failure failure;
  std::optional<std::string> text = read_whole_file(options.file, failure);
  if (!text || !options.pipeline.empty()) return std::nullopt;
  // Without the word twice (or the key `pipelines`) there is one at most, and no need to parse twice.
  const size_t first = text->find("pipeline");
  if (first == text->npos || (text->find("pipeline", first + 1) == text->npos && text->find("pipelines") == text->npos))
    return std::nullopt;
  SourceMap sources;
  Diagnostics diags;
  Result<std::vector<std::string>> names = pipeline_names(sources, sources.add(options.file, *text), diags);
  if (!names || names->size() < 2) return std::nullopt;
  int worst = kExitOk;
  for (const std::string& name : *names) {
    Options one = options;
    one.pipeline = name;
    print(fmt::format("{}pipeline {}\n", name == names->front() ? "" : "\n", name));
    worst = std::max(worst, command_check(one));
  }
  return check_tests(options) ? worst : std::max<int>(worst, kExitProgram);
}

/// The other values of the parameters that choose steps, each alone: what stands in those steps has not been looked at.
/// Says which, and shows the errors there. False where there are any.
bool check_other_choices(const Options& options, const Session& session) {
  constexpr size_t kMostCompilations = 8;
  std::string now, also;
  std::vector<std::pair<std::string, std::string>> others;
  for (const ProgramParameter& parameter : session.program().parameters) {
    if (parameter.given || parameter.others.empty()) continue;
    now += fmt::format("{}{}={}", now.empty() ? "" : ", ", parameter.name, parameter.value);
    for (const std::string& value : parameter.others) others.emplace_back(parameter.name, value);
  }
  if (others.empty()) return true;
  const size_t more = others.size() - std::min(others.size(), kMostCompilations);
  others.resize(others.size() - more);
  std::vector<std::string> shown;
  for (const auto& [name, value] : others) {
    const std::string setting = fmt::format("{}={}", name, value);
    also += (also.empty() ? "" : ", ") + setting;
    std::map<std::string, std::string> params;
    for (const auto& [given, text] : options.params) params[given] = text;
    params[name] = value;
    SourceMap sources;
    Diagnostics diags;
    const FileId file = sources.add(options.file, std::string(session.sources().text(session.file())));
    if (compile(sources, file, params, all_ops(), diags, {options.pipeline, {}})) continue;
    for (Diagnostic& diagnostic : diags.sorted()) {
      // A value may bring out lints that are none with another: what only one of them uses.
      if (info(diagnostic.kind).severity == Severity::Lint) continue;
      RenderOptions how;
      how.colour = stderr_colour();
      const std::string plain = render(diagnostic, sources, {});
      if (std::find(shown.begin(), shown.end(), plain) != shown.end()) continue;
      shown.push_back(plain);
      diagnostic.notes.push_back("with " + setting);
      say(render(diagnostic, sources, how));
    }
  }
  print(fmt::format("checked with {}; also: {}{}\n", now, also,
                    more > 0 ? fmt::format("; not with {} more", more) : std::string()));
  return shown.empty();
}

}  // namespace

int command_check(const Options& options) {
  if (std::optional<int> code = check_each(options)) return *code;
  Session session(options);
  if (auto code = session.load()) return *code;
  if (int code = print(graph_text(session.graph(), session.sources(), true)); code != kExitOk) return code;
  const bool choices = check_other_choices(options, session);
  // Of one pipeline of several its tests are not looked at.
  const bool tests = !options.pipeline.empty() || check_tests(options);
  if (!choices || !tests) return kExitProgram;
  if (!options.deny_warnings || session.warnings() == 0) return kExitOk;
  say(fmt::format("zephonc: {} warning{}, and --deny-warnings", session.warnings(),
                  session.warnings() == 1 ? "" : "s"));
  return kExitProgram;
}

}  // namespace zephon
