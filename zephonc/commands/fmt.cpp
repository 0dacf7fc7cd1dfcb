// zephonc fmt FILE...: the one canonical layout.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/rewrite.h"
#include "zephonc/sinks/staged.h"

namespace zephon {

int command_fmt(const Options& options) {
  int code = kExitOk;
  if (options.from_stdin) {
    std::string name = options.files.empty() ? "<stdin>" : options.files[0];
    std::optional<std::string> text = rewrite(name, read_stdin(), form_of(name), code);
    return text ? print(*text) : code;
  }
  if (options.files.empty()) {
    say("zephonc: fmt needs a FILE, or --stdin");
    return kExitUsage;
  }
  int worst = kExitOk;
  for (const std::string& name : options.files) {
    Failure failure;
    std::optional<std::string> content = read_whole_file(name, failure);
    if (!content) {
      say("zephonc: " + failure.message);
      worst = std::max<int>(worst, kExitProgram);
      continue;
    }
    std::optional<std::string> text = rewrite(name, *content, form_of(name), code);
    if (!text) {
      worst = std::max(worst, code);
      continue;
    }
    if (*text == *content) continue;
    if (options.check_only) {
      say(fmt::format("{}: would be laid out otherwise", name));
      worst = std::max<int>(worst, kExitProgram);
    } else if (auto problem = write_file_atomically(name, *text)) {
      say("zephonc: " + problem->message);
      worst = std::max<int>(worst, kExitRun);
    } else {
      say("formatted " + name);
    }
  }
  return worst;
}

}  // namespace zephon
