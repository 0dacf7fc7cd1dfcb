// zephonc check FILE: parse, type-check, lint; the type of every field after every step.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {

int command_check(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  if (int code = print(graph_text(session.graph(), session.sources())); code != kExitOk) return code;
  if (!options.deny_warnings || session.warnings() == 0) return kExitOk;
  say(fmt::format("zephonc: {} warning{}, and --deny-warnings", session.warnings(),
                  session.warnings() == 1 ? "" : "s"));
  return kExitProgram;
}

}  // namespace zephon
