// zephonc completion SHELL: a script that completes the command line, made of the same declarations as --help. The
// parameters of a program are asked for when they are needed (`completion --params FILE`).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/diag/diagnostic.h"
#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/rules/all_rules.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"

namespace zephon {
namespace {

bool takes_program(const CommandInfo& command) {
  return !command.words.empty() && command.words.back() == "param=value...";
}

/// What stands as the first word of a command that takes none of our files.
std::vector<std::string> names_of(const CommandInfo& command) {
  std::vector<std::string> out;
  if (command.name == "ops") {
    for (const OpDef* op : all_ops().all()) out.emplace_back(op->name);
  } else if (command.name == "rules") {
    for (const RuleEntry& entry : all_rules()) out.emplace_back(entry.rule->name);
  } else if (command.name == "explain") {
    for (const KindInfo& kind : all_kinds()) out.emplace_back(kind.code);
  } else if (command.name == "completion") {
    out = {"bash", "zsh", "fish"};
  } else if (command.name == "manifest") {
    out = {"compose"};
  }
  return out;
}

bool is_folder(const OptionInfo& option) { return option.argument == "DIR"; }
bool is_file(const OptionInfo& option) { return option.argument.starts_with("FILE"); }

std::vector<std::string> valued_options(const CommandInfo& command) {
  std::vector<std::string> out;
  for (const OptionInfo& option : command.options) {
    if (!option.argument.empty()) out.push_back(option.name);
  }
  return out;
}

std::vector<std::string> command_names(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> out;
  for (const CommandInfo& command : commands) out.push_back(command.name);
  return out;
}

// clang-format off
constexpr std::string_view kBash = R"sh(# Completion of zephonc for bash: source this, or put it where bash-completion looks:
#   zephonc completion bash > ~/.local/share/bash-completion/completions/zephonc
_zephonc_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_zephonc_files() { mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null; }
_zephonc_folders() { mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null; }
_zephonc_programs() {
  local pattern path
  mapfile -t COMPREPLY < <(compgen -d -- "$cur"; for pattern in zpl yaml yml; do compgen -f -X "!*.$pattern" -- "$cur"; done)
  compopt -o filenames 2>/dev/null
}
_zephonc_parameters() {
  _zephonc_words "$("${COMP_WORDS[0]}" completion --params "$1" 2>/dev/null)"
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
}
_zephonc() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  local options= valued= names= programs= first= i
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    _zephonc_words '@COMMANDS@ --help --version'
    return
  fi
  # The value of a parameter: bash cuts words at `=`.
  if [[ $cur == = ]]; then cur=; _zephonc_files; return; fi
  if [[ $prev == = ]]; then _zephonc_files; return; fi
  case $command:$prev in
@VALUES@  esac
  case $command in
@OPTIONS@  esac
  # The first word that is neither an option nor the value of one.
  for (( i = 2; i < COMP_CWORD; ++i )); do
    if [[ " $valued " == *" ${COMP_WORDS[i]} "* ]]; then
      [[ ${COMP_WORDS[i+1]} == = ]] && (( ++i ))
      (( ++i ))
    elif [[ ${COMP_WORDS[i]} != -* ]]; then
      first=${COMP_WORDS[i]//[\\\"\']/}
      break
    fi
  done
  if [[ $cur == -* ]]; then
    _zephonc_words "$options --help"
  elif [[ -n $names && -z $first ]]; then
    _zephonc_words "$names"
  elif [[ -z $programs ]]; then
    _zephonc_files
  elif [[ -z $first ]]; then
    _zephonc_programs
  else
    _zephonc_parameters "$first"
  fi
}
complete -F _zephonc zephonc
)sh";
// clang-format on

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
  text.replace(text.find(mark), mark.size(), by);
  return text;
}

std::string bash(const std::vector<CommandInfo>& commands) {
  std::string values, options;
  for (const CommandInfo& command : commands) {
    std::string names;
    for (const OptionInfo& option : command.options) {
      names += (names.empty() ? "" : " ") + option.name;
      if (option.argument.empty()) continue;
      std::string action = !option.choices.empty() ? fmt::format("_zephonc_words '{}'", fmt::join(option.choices, " "))
                           : is_folder(option)     ? "_zephonc_folders"
                           : is_file(option)       ? "_zephonc_files"
                                                   : ":";
      values += fmt::format("    {}:{}) {}; return ;;\n", command.name, option.name, action);
    }
    const std::vector<std::string> words = names_of(command);
    options += fmt::format("    {}) options='{}' valued='{}'{}{} ;;\n", command.name, names,
                           fmt::join(valued_options(command), " "), takes_program(command) ? " programs=1" : "",
                           words.empty() ? "" : fmt::format(" names='{}'", fmt::join(words, " ")));
  }
  std::string out =
      replaced(std::string(kBash), "@COMMANDS@", fmt::format("{}", fmt::join(command_names(commands), " ")));
  return replaced(replaced(out, "@VALUES@", values), "@OPTIONS@", options);
}

// clang-format off
constexpr std::string_view kZsh = R"sh(#compdef zephonc
# Completion of zephonc for zsh: put this into a folder of $fpath, under the name _zephonc.
_zephonc_parameters() {
  local -a parameters
  if [[ $PREFIX == *=* ]]; then
    compset -P '*='
    _files
    return
  fi
  parameters=(${(f)"$(zephonc completion --params ${(Q)line[1]} 2>/dev/null)"})
  compadd -S '' -- $parameters
}
_zephonc_programs() { _files -g '*.(zpl|yaml|yml)' }
_zephonc() {
  local state line
  local -a commands
  commands=(
@COMMANDS@  )
  _arguments -C '(- *)--help[help]' '(- *)--version[the version]' '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
@OPTIONS@      esac ;;
  esac
}
_zephonc "$@"
)sh";
// clang-format on

/// Between single quotes, with what _arguments reads escaped.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out;
}

std::string zsh(const std::vector<CommandInfo>& commands) {
  std::string names, options;
  for (const CommandInfo& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    options += fmt::format("        {}) _arguments", command.name);
    for (const OptionInfo& option : command.options) {
      // Behind `=` too.
      const bool joined = !option.argument.empty() && option.name.starts_with("--");
      options += fmt::format(" \\\n          '{}{}[{}]", option.name, joined ? "=" : "", zsh_text(option.help));
      if (!option.argument.empty()) {
        options += fmt::format(":{}:", zsh_text(option.argument));
        options += !option.choices.empty() ? fmt::format("({})", fmt::join(option.choices, " "))
                   : is_folder(option)     ? "_files -/"
                   : is_file(option)       ? "_files"
                                           : " ";
      }
      options += "'";
    }
    const std::vector<std::string> words = names_of(command);
    if (takes_program(command)) {
      options += " \\\n          '1:program:_zephonc_programs' '*:parameter:_zephonc_parameters'";
    } else if (!words.empty()) {
      options += fmt::format(" \\\n          '1:name:({})' '*:file:_files'", fmt::join(words, " "));
    } else {
      options += " \\\n          '*:file:_files'";
    }
    options += " ;;\n";
  }
  return replaced(replaced(std::string(kZsh), "@COMMANDS@", names), "@OPTIONS@", options);
}

// clang-format off
constexpr std::string_view kFish = R"sh(# Completion of zephonc for fish: zephonc completion fish > ~/.config/fish/completions/zephonc.fish
# The first word behind the command that is neither an option nor the value of one; the arguments are options that take
# a value.
function __zephonc_first
  set -l words (commandline -opc)[3..-1]
  while set -q words[1]
    if contains -- $words[1] $argv
      set -e words[1]
    else if not string match -q -- '-*' $words[1]
      echo $words[1]
      return 0
    end
    set -e words[1]
  end
  return 1
end
function __zephonc_parameters
  set -l program (__zephonc_first $argv); and zephonc completion --params $program 2>/dev/null
end
complete -c zephonc -f
complete -c zephonc -n __fish_use_subcommand -l help -d 'help'
complete -c zephonc -n __fish_use_subcommand -l version -d 'the version'
)sh";
// clang-format on

std::string fish_text(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish(const std::vector<CommandInfo>& commands) {
  std::string out(kFish);
  for (const CommandInfo& command : commands) {
    out += fmt::format("complete -c zephonc -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_text(command.summary));
    const std::string here = fmt::format("complete -c zephonc -n '__fish_seen_subcommand_from {}", command.name);
    for (const OptionInfo& option : command.options) {
      const bool is_long = option.name.starts_with("--");
      out += fmt::format("{}' {} {} -d {}", here, is_long ? "-l" : "-s", option.name.substr(is_long ? 2 : 1),
                         fish_text(option.help));
      if (!option.choices.empty()) {
        out += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (is_folder(option)) {
        out += " -x -a '(__fish_complete_directories)'";
      } else if (!option.argument.empty()) {
        out += is_file(option) ? " -r -F" : " -x";
      }
      out += "\n";
    }
    const std::vector<std::string> words = names_of(command);
    const std::string valued = fmt::format("{}", fmt::join(valued_options(command), " "));
    if (takes_program(command)) {
      out += fmt::format("{}; and not __zephonc_first {}' -F\n", here, valued);
      out += fmt::format("{}; and __zephonc_first {}' -a '(__zephonc_parameters {})'\n", here, valued, valued);
    } else if (!words.empty()) {
      out += fmt::format("{}' -a '{}'\n", here, fmt::join(words, " "));
    } else {
      out += fmt::format("{}' -F\n", here);
    }
  }
  return out;
}

int parameters(const std::string& path) {
  Failure failure;
  auto text = read_whole_file(path, failure);
  if (!text) {
    say("zephonc: " + failure.message);
    return kExitProgram;
  }
  SourceMap sources;
  const FileId file = sources.add(path, std::move(*text));
  std::string out;
  for (const DeclaredParameter& parameter : declared_parameters(sources, file)) {
    if (parameter.choices.empty()) out += parameter.name + "=\n";
    for (const std::string& choice : parameter.choices) out += fmt::format("{}={}\n", parameter.name, choice);
  }
  return print(out + "seed=\n");
}

}  // namespace

int command_completion(const Options& options) {
  if (!options.file.empty()) return parameters(options.file);
  const std::vector<CommandInfo> commands = command_table();
  if (options.name == "bash") return print(bash(commands));
  if (options.name == "zsh") return print(zsh(commands));
  if (options.name == "fish") return print(fish(commands));
  say("zephonc: for which shell: `zephonc completion bash`, `zsh` or `fish`?");
  return kExitUsage;
}

}  // namespace zephon
