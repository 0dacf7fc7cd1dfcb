// zephonc: the command line of Zephon.

#include <fmt/format.h>

#include <exception>
#include <new>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/signals.h"

namespace {

struct Command {
  std::string_view name;
  int (*run)(const zephon::Options&);
};
constexpr Command kCommands[] = {
    {"run", zephon::command_run},           {"check", zephon::command_check},
    {"plan", zephon::command_plan},         {"show", zephon::command_show},
    {"where", zephon::command_where},       {"scan", zephon::command_scan},
    {"stats", zephon::command_stats},       {"ir", zephon::command_ir},
    {"verify", zephon::command_verify},     {"init", zephon::command_init},
    {"manifest", zephon::command_manifest}, {"completion", zephon::command_completion},
    {"man", zephon::command_man},           {"ops", zephon::command_ops},
    {"rules", zephon::command_rules},       {"explain", zephon::command_explain},
    {"calibrate", zephon::command_calibrate},
    {"test", zephon::command_test},         {"fmt", zephon::command_fmt},
    {"convert", zephon::command_convert},   {"lsp", zephon::command_lsp},
};

int dispatch(const zephon::Options& options) {
  for (const Command& command : kCommands) {
    if (command.name == options.command) return command.run(options);
  }
  return zephon::kExitBug;
}

}  // namespace

int main(int argc, char** argv) {
  zephon::ignore_closed_pipes();
  zephon::end_when_asked();
  zephon::Options options;
  if (auto code = zephon::parse_command_line(argc, argv, options)) return *code;
  try {
    return dispatch(options);
  } catch (const std::bad_alloc&) {
    zephon::say("zephonc: out of memory");
    return zephon::kExitRun;
  } catch (const std::exception& error) {
    zephon::say(fmt::format("zephonc: our bug: uncaught: {}", error.what()));
    return zephon::kExitBug;
  }
}
