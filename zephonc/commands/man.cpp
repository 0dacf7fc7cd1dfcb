// zephonc man: the manual page, made of the same declarations as --help.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"

namespace zephon {
namespace {

/// Text in which nothing is a request or an escape; a hyphen is the one that a shell reads.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '`' || c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

constexpr std::string_view kEnd = R"(.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
the program is wrong (or a test of it failed); nothing ran
.TP
.B 2
the data or the machine failed while running
.TP
.B 64
the command line is wrong
.TP
.B 70
a bug of zephonc
.SH EXAMPLES
.nf
zephonc init photos   # a first program for a folder
zephonc check pipeline.zpl   # types after every step
zephonc run pipeline.zpl \-\-take 1 \-\-sheet sheet.png
zephonc scan pipeline.zpl   # every sample that fails
zephonc verify pipeline.zpl   # optimised equals as written
.fi
.SH FILES
.TP
.I *.zpl, *.yaml
Programs, in either form of the language.
)";

}  // namespace

int command_man(const Options&) {
  const std::vector<CommandInfo> commands = command_table();
  std::string out = fmt::format(
      ".\\\" Made by `zephonc man`.\n.TH ZEPHONC 1 \"\" \"Zephon {}\" \"Zephon\"\n.SH NAME\n"
      "zephonc \\- pipelines of training data, compiled\n.SH SYNOPSIS\n.B zephonc\n.I COMMAND FILE\n"
      ".RI [ parameter = value \" ...]\"\n.RI [ option \" ...]\"\n.SH DESCRIPTION\n"
      "A program says what each training sample must become.\n"
      ".B zephonc\nchecks it, rewrites it, compiles it to machine code and runs it on all cores; the optimised plan\n"
      "delivers the same bytes in the same order as the program as written.\n"
      "Every program has the parameter\n.IR seed :\n.I seed=N\ngives other draws and another order.\n.SH COMMANDS\n",
      ZEPHON_VERSION);
  for (const CommandInfo& command : commands) {
    out += fmt::format(".SS \"zephonc {} {}\"\n{}.\n", roff(command.name),
                       roff(fmt::format("{}", fmt::join(command.words, " "))), roff(command.summary));
    for (const OptionInfo& option : command.options) {
      if (option.name == "--help") continue;
      out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(option.name),
                         option.argument.empty() ? "" : " \\fI" + roff(option.argument) + "\\fR", roff(option.help));
    }
  }
  out += kEnd;
  return print(out);
}

}  // namespace zephon
