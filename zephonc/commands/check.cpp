// zephonc check FILE: parse, type-check, lint; the type of every field after every step.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {

namespace {

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
  return worst;
}

}  // namespace

int command_check(const Options& options) {
  if (std::optional<int> code = check_each(options)) return *code;
  Session session(options);
  if (auto code = session.load()) return *code;
  if (int code = print(graph_text(session.graph(), session.sources())); code != kExitOk) return code;
  if (!options.deny_warnings || session.warnings() == 0) return kExitOk;
  say(fmt::format("zephonc: {} warning{}, and --deny-warnings", session.warnings(),
                  session.warnings() == 1 ? "" : "s"));
  return kExitProgram;
}

}  // namespace zephon
