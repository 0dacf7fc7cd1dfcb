// zephonc check FILE: parse, type-check, lint; the type of every field after every step.

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {

int command_check(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return print(graph_text(session.graph(), session.sources()));
}

}  // namespace zephon
