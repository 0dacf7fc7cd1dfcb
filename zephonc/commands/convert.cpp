// zephonc convert FILE: ZPL to YAML, or back.

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/rewrite.h"
#include "zephonc/sinks/staged.h"

namespace zephon {

int command_convert(const Options& options) {
  Failure failure;
  std::optional<std::string> content = read_whole_file(options.file, failure);
  if (!content) {
    say("zephonc: " + failure.message);
    return kExitProgram;
  }
  Form to = form_of(options.file) == Form::Yaml ? Form::Zpl : Form::Yaml;
  if (!options.out.empty()) to = form_of(options.out);
  int code = kExitOk;
  std::optional<std::string> text = rewrite(options.file, *content, to, code);
  if (!text) return code;
  if (options.out.empty()) return print(*text);
  if (auto problem = write_file_atomically(options.out, *text)) {
    say("zephonc: " + problem->message);
    return kExitRun;
  }
  return kExitOk;
}

}  // namespace zephon
