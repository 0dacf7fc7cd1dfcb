#include "zephonc/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "frontend/diag/diagnostic.h"
#include "zephonc/console.h"

namespace zephon {
namespace {

constexpr int64_t kMostThreads = 1024;

/// One layout for all: options in the order of this file, no types that only a programmer reads.
class Help : public CLI::Formatter {
 public:
  Help() {
    column_width(28);
    label("REQUIRED", "");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = "\nusage: " + name;
    if (!app->get_subcommands({}).empty()) return text + " COMMAND [ARGUMENT...]\n";
    for (const CLI::Option* option : app->get_options({})) {
      if (!option->get_positional()) continue;
      bool required = option->get_required();
      text += required ? " " + option->get_name(true) : fmt::format(" [{}]", option->get_name(true));
    }
    return text + " [OPTION...]\n";
  }
  std::string make_positionals(const CLI::App*) const override { return {}; }
};

CLI::Validator at_least(double least) {
  auto check = [least](const std::string& word) {
    double value = 0;
    bool good = CLI::detail::lexical_cast(word, value) && value >= least;
    return good ? std::string() : fmt::format("needs a number of at least {}, not `{}`", least, word);
  };
  return CLI::Validator(check, "");
}

CLI::Validator whole(int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
  auto check = [least, most](const std::string& word) {
    int64_t value = 0;
    const char* end = word.data() + word.size();
    const auto [rest, bad] = std::from_chars(word.data(), end, value);
    if (bad == std::errc() && rest == end && value >= least && value <= most) return std::string();
    if (most == std::numeric_limits<int64_t>::max())
      return fmt::format("needs a whole number of at least {}, not `{}`", least, word);
    return fmt::format("needs a whole number from {} to {}, not `{}`", least, most, word);
  };
  return CLI::Validator(check, "");
}

/// "256M" -> "268435456". Units are powers of 1024.
CLI::Validator size_in_bytes() {
  auto convert = [](std::string& word) {
    double value = 0;
    const char* end = word.data() + word.size();
    const auto [rest, bad] = std::from_chars(word.data(), end, value);
    std::string unit(rest, end);
    for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (unit.size() > 1 && unit.ends_with("IB")) unit.resize(unit.size() - 2);
    if (unit.size() > 1 && unit.ends_with("B")) unit.pop_back();
    constexpr std::string_view kUnits = "BKMGT";
    const size_t power = unit.empty() ? 0 : unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    const double bytes = power == std::string_view::npos ? 0 : std::ldexp(value, static_cast<int>(10 * power));
    if (bad != std::errc() || !(bytes >= 1) || bytes >= 0x1p62)
      return fmt::format("needs a size such as 256M or 2G, not `{}`", word);
    word = fmt::format("{:.0f}", std::floor(bytes));
    return std::string();
  };
  return CLI::Validator(convert, "");
}

CLI::Validator one_of(std::vector<std::string> names) {
  auto check = [names](const std::string& word) {
    for (const std::string& name : names) {
      if (name == word) return std::string();
    }
    return fmt::format("is one of {}, not `{}`", fmt::join(names, ", "), word);
  };
  return CLI::Validator(check, "");
}

std::vector<std::pair<std::string, std::string>> pairs(const std::vector<std::string>& texts, const char* form) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw CLI::ValidationError(fmt::format("`{}` is not of the form {}", text, form));
    }
    out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

/// Fills an `Options` from the words of the command line; lives until they are parsed.
class Parser {
 public:
  explicit Parser(Options& options) : o_(options), app_("Zephon: pipelines of training data, compiled.", "zephonc") {
    app_.formatter(std::make_shared<Help>());
    app_.set_help_flag("-h,--help", "this text");
    app_.set_version_flag(
        "--version", [] { return std::string("zephonc " ZEPHON_VERSION); }, "the version");
    app_.require_subcommand(1);
    app_.footer(
        "`seed=N` is a parameter of every program: other draws, another order. `zephonc COMMAND --help` tells more.\n"
        "Exit codes: 0; 1 the program is wrong; 2 the data or the machine failed while running; 64 usage; 70 our bug.");

    CLI::App* run = program("run", "run a pipeline");
    engine(run);
    samples(run);
    run->add_option("--out", o_.out, "write what is delivered into a new folder")->type_name("DIR");
    choose(run->add_option("--format", o_.format, "of --out: npy (default), tar or jsonl")->type_name("FORMAT"),
           {"npy", "tar", "jsonl"});
    run->add_option("--sheet", o_.sheet, "one picture of the first pictures delivered")->type_name("FILE.png");
    run->add_flag("--digest", o_.digest, "print one XXH3-128 over everything delivered, in order");
    run->add_option("--manifest", o_.manifest, "write the digest and the members of every record")->type_name("FILE");
    run->add_flag("--hash-content", o_.hash_content,
                  "in the manifest, a hash of each file's content, not size and time");
    run->add_flag("--json", o_.json,
                  "print one JSON object with the figures of the run (and the digest with --digest)");
    run->add_flag("--stats", o_.stats, "print a table of the operators");
    run->add_option("--trace", o_.trace, "write a timeline that Perfetto opens")->type_name("FILE");
    progress(run);
    states(run);
    run->add_option("--rank", o_.rank, "deliver the batches of this rank")->type_name("R")->check(whole(0));
    run->add_option("--world-size", o_.world_size, "of so many ranks")->type_name("W")->check(whole(1));
    run->add_option("--save-every", o_.save_every, "with --save-state, also on the way: seconds; 0 only at the end")
        ->type_name("S")
        ->check(CLI::NonNegativeNumber);
    run->add_option("--stall-timeout", o_.stall_timeout, "end a run that delivers nothing for so many seconds")
        ->type_name("S")
        ->check(at_least(0));

    CLI::App* check = program("check", "parse, type-check and lint; the type of every field after every step");
    check->add_flag("--deny-warnings", o_.deny_warnings, "a warning is an error: exit code 1");

    CLI::App* plan = program("plan", "what the compiler makes of a pipeline, before and after");
    engine(plan);
    choose(plan->add_option("--stage", o_.stage, "source, typed, optimized or physical (default)")->type_name("STAGE"),
           {"source", "typed", "optimized", "physical"});
    CLI::Option* form =
        plan->add_option("--format", o_.format, "text (default), html, dot, svg or json")->type_name("FORMAT");
    choose(form, {"text", "html", "dot", "svg", "json"});
    plan->add_flag("--json", o_.json, "the same as --format json")->excludes(form);
    plan->add_option("-o,--out", o_.out, "write into this file (default: standard output)")->type_name("FILE");
    CLI::Option* steps = plan->add_flag("--steps", o_.steps, "rule by rule: the cost before and after, and a diff");
    plan->add_option("--why", o_.why, "why a rule did something, or nothing, in the program or on a line")
        ->type_name("RULE[@LINE]")
        ->excludes(steps);

    CLI::App* show = program("show", "one sample: fields, shapes, statistics, draws, verdicts");
    CLI::Option* index = show->add_option("--index", o_.index, "the sample at this place of the output (default 0)")
                             ->type_name("N")
                             ->check(whole(0));
    show->add_option("--id", o_.id, "the sample of this identity")->type_name("ID")->excludes(index);
    show->add_option("--at", o_.at, "after this step: its number, line (`@12`) or operator")->type_name("STEP");
    show->add_option("--png", o_.png, "write its pictures into a folder")->type_name("DIR");
    show->add_option("--epoch", o_.epoch, "of this epoch")->type_name("N")->check(whole(0));

    CLI::App* where = command("where", "the batch and the rank of a sample, or the step that dropped it");
    where->add_option("FILE", o_.file, "the program")->required()->type_name("");
    where->add_option("ID", o_.id, "the identity of the sample")->required()->type_name("");
    where->add_option("param=value...", params_, "parameters of the program")->type_name("");
    where->add_option("--epoch", o_.epoch, "in this epoch")->type_name("N")->check(whole(0));
    where->add_option("--world-size", o_.world_size, "of so many ranks")->type_name("W")->check(whole(1));

    CLI::App* scan = program("scan", "walk the data once and list every sample that fails");
    limits(scan);
    scan->add_flag("--json", o_.json, "one JSON object a line for each bad sample");
    progress(scan);
    states(scan);

    CLI::App* stats = program("stats", "mean, deviation, range, histogram and classes of the fields");
    limits(stats);
    stats->add_option("--field", o_.field, "of this field only")->type_name("F");
    stats->add_option("--at", o_.at, "after this step: its number, line (`@12`) or operator")->type_name("STEP");
    stats->add_option("--take", o_.take, "of the first records only (batches where the program batches)")
        ->type_name("N")
        ->check(whole(1));
    stats->add_option("--out", o_.out, "write them as `let` constants")->type_name("FILE");
    progress(stats);

    CLI::App* ir = program("ir", "what was compiled: loop nest, LLVM IR and assembly of each kernel");
    engine(ir);

    CLI::App* verify =
        program("verify", "run the program as written and its plan over the same samples; compare every field");
    engine(verify);
    samples(verify);
    verify->add_flag("--shrink", o_.shrink, "where they differ, print the smallest program found that still does");

    CLI::App* tests = command("test", "run the tests inside a program");
    tests->add_option("FILE", o_.file, "the program")->required()->type_name("");

    CLI::App* format = command("fmt", "rewrite programs in place, in the one canonical layout; comments stay");
    format->add_option("FILE...", o_.files, "programs, in either form")->type_name("");
    CLI::Option* only =
        format->add_flag("--check", o_.check_only, "change no file; exit code 1 where one is laid out otherwise");
    format->add_flag("--stdin", o_.from_stdin, "from standard input to standard output; FILE says the form")
        ->excludes(only);

    CLI::App* convert = command("convert", "turn a .zpl program into YAML, or back; nothing is lost");
    convert->add_option("FILE", o_.file, "the program")->required()->type_name("");
    convert->add_option("-o", o_.out, "write into this file (default: standard output)")->type_name("FILE");

    CLI::App* init = command("init", "look at a folder of data and write a first pipeline that runs");
    init->add_option("FOLDER", o_.file, "the data")->required()->type_name("");
    init->add_option("-o,--out", o_.out, "the program to write (default pipeline.zpl)")->type_name("FILE");

    CLI::App* manifest =
        command("manifest", "join the manifests of ranks, or of a run and its continuation, to the whole");
    choose(manifest->add_option("ACTION", o_.name, "compose")->required()->type_name(""), {"compose"});
    manifest->add_option("FILE...", o_.files, "the manifests of the parts")->required()->type_name("");
    manifest->add_option("--out", o_.out, "write the manifest of the whole")->type_name("FILE");

    CLI::App* calibrate = command("calibrate", "measure what operators cost on this machine, for the plans to come");
    calibrate->add_flag("--clear", o_.clear, "forget all that was measured, of this machine and of data");
    calibrate->add_flag("--json", o_.json, "print one JSON object with the figures");

    reference("ops", "the operators, from their declarations", "NAME", false);
    reference("rules", "the rewrite rules, from their declarations", "NAME", false);
    reference("explain", "the long text of a diagnostic", "CODE", true);
    CLI::App* completion = command("completion", "completion of the command line for a shell");
    choose(completion->add_option("SHELL", o_.name, "bash, zsh or fish")->type_name(""), {"bash", "zsh", "fish"});
    completion->add_option("--params", o_.file, "print what a program takes, one `name=value` or `name=` a line")
        ->type_name("FILE");
    command("lsp", "the language server of an editor, over standard input and output");
    command("man", "the manual page, for `man -l`");
  }

  std::optional<int> parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
      o_.command = app_.get_subcommands().front()->get_name();
      o_.params = pairs(params_, "param=value");
      split_pipeline();
      o_.knobs = pairs(knobs_, "STEP.KNOB=VALUE");
      if (o_.command == "run" && !o_.format.empty() && o_.out.empty()) {
        throw CLI::ValidationError(
            fmt::format("--format {} is of --out: give a folder to write into, --out DIR", o_.format));
      }
      if (!o_.sheet.empty()) check_sheet();
      if (o_.format.empty()) o_.format = o_.command == "run" ? "npy" : "text";
      if (o_.rank >= o_.world_size) {
        throw CLI::ValidationError(
            fmt::format("--rank {} needs a --world-size above it, not {}", o_.rank, o_.world_size));
      }
      return std::nullopt;
    } catch (const CLI::CallForHelp&) {
      return print(chosen()->help(chosen() == &app_ ? "" : "zephonc"));
    } catch (const CLI::CallForVersion&) {
      return print("zephonc " ZEPHON_VERSION "\n");
    } catch (const CLI::ExtrasError&) {
      return usage(unknown_word());
    } catch (const CLI::RequiredError& error) {
      if (argc > 1 && chosen() == &app_ && argv[1][0] != '-') return usage(unknown_command(argv[1]));
      // What looks like options may be the name of a file.
      for (int i = 2; i < argc; ++i)
        if (const std::string_view word = argv[i]; word.size() > 2 && word[0] == '-' && word[1] != '-')
          return usage(fmt::format("{}; a name that begins with a dash stands behind two: `zephonc {} ... -- {}`",
                                   error.what(), argv[1], word));
      return usage(chosen() == &app_ ? "a command is required" : error.what());
    } catch (const CLI::ArgumentMismatch& error) {
      return usage(missing_value(error.what()));
    } catch (const CLI::ConversionError& error) {
      return usage(missing_value(error.what()));
    } catch (const CLI::ParseError& error) {
      return usage(error.what());
    }
  }

  std::vector<CommandInfo> table() const {
    std::vector<CommandInfo> out;
    for (const CLI::App* sub : app_.get_subcommands({})) {
      CommandInfo info{sub->get_name(), sub->get_description(), {}, {}};
      for (const CLI::Option* option : sub->get_options({})) {
        if (option->get_positional()) {
          std::string name = option->get_name(true);
          info.words.push_back(option->get_required() || name.ends_with("...") ? name : "[" + name + "]");
          continue;
        }
        auto found = choices_.find(option);
        const bool only_short = option->get_lnames().empty();
        info.options.push_back({only_short ? "-" + option->get_snames().front() : "--" + option->get_lnames().front(),
                                option->get_type_size() == 0 ? "" : option->get_type_name(), option->get_description(),
                                found == choices_.end() ? std::vector<std::string>() : found->second});
      }
      out.push_back(std::move(info));
    }
    return out;
  }

 private:
  /// FILE:NAME, unless a file has that very name.
  void split_pipeline() {
    size_t colon = o_.file.rfind(':');
    if (colon == std::string::npos || colon == 0 || !o_.pipeline.empty()) return;
    std::error_code error;
    if (std::filesystem::exists(o_.file, error) || !std::filesystem::exists(o_.file.substr(0, colon), error)) return;
    o_.pipeline = o_.file.substr(colon + 1);
    o_.file.resize(colon);
  }
  void check_sheet() const {
    std::string ending = std::filesystem::path(o_.sheet).extension().string();
    for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (ending == ".png") return;
    throw CLI::ValidationError(
        ending.empty() ? fmt::format("--sheet {}: a sheet is a PNG file; give a name that ends in .png", o_.sheet)
                       : fmt::format("--sheet {}: a sheet is a PNG file, not `{}`; give a name that ends in .png",
                                     o_.sheet, ending));
  }
  void choose(CLI::Option* option, std::vector<std::string> names) {
    option->check(one_of(names));
    choices_[option] = std::move(names);
  }
  CLI::App* command(const std::string& name, const std::string& summary) {
    CLI::App* sub = app_.add_subcommand(name, summary);
    sub->set_help_flag("-h,--help", "this text");
    return sub;
  }
  CLI::App* program(const std::string& name, const std::string& summary) {
    CLI::App* sub = command(name, summary);
    sub->add_option("FILE", o_.file, "the program")->required()->type_name("");
    sub->add_option("param=value...", params_, "parameters of the program")->type_name("");
    sub->add_option("--pipeline", o_.pipeline, "of a file with several pipelines; also FILE:NAME")->type_name("NAME");
    return sub;
  }
  void reference(const std::string& name, const std::string& summary, const std::string& what, bool required) {
    CLI::App* sub = command(name, summary);
    sub->add_option(what, o_.name)->required(required)->type_name("");
    if (!required) sub->add_flag("--markdown", o_.markdown, "the whole reference page");
  }
  void samples(CLI::App* sub) {
    sub->add_option("--epochs", o_.epochs, "how often to go through the data")->type_name("N")->check(whole(1));
    sub->add_option("--take", o_.take, "stop after so many records (batches where the program batches)")
        ->type_name("N")
        ->check(whole(0));
  }
  void progress(CLI::App* sub) {
    choose(sub->add_option("--progress", o_.progress, "auto (on a terminal), always or never")->type_name("WHEN"),
           {"auto", "always", "never"});
  }
  void states(CLI::App* sub) {
    sub->add_option("--save-state", o_.save_state, "write where the run stopped")->type_name("FILE");
    sub->add_option("--resume", o_.resume, "go on from there")->type_name("FILE");
  }
  void limits(CLI::App* sub) {
    sub->add_option("--threads", o_.threads, "a limit (default: the cores that the machine and its cgroup give)")
        ->type_name("N")
        ->check(whole(1, kMostThreads));
    sub->add_option("--memory", o_.memory, "a limit for what is in flight, such as 256M")
        ->type_name("SIZE")
        ->transform(size_in_bytes());
  }
  void engine(CLI::App* sub) {
    limits(sub);
    sub->add_option("--chunk", o_.chunk, "samples that move together (default: the planner decides)")
        ->type_name("N")
        ->check(whole(1));
    sub->add_option("--set", knobs_, "a knob of one step: parallelism or chunk")
        ->type_name("STEP.KNOB=V")
        ->allow_extra_args(false);
    sub->add_flag("--no-optimize", o_.no_optimize, "no rewrite rules");
    if (sub->get_name() == "run") sub->add_flag("--reference", o_.reference, "run by the reference interpreter");
    sub->add_option("--disable", o_.disable, "rewrite rules not to use")
        ->type_name("RULE,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    sub->add_option("--relax", o_.relax, "what may change the data for speed; `zephonc rules` lists it")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    sub->add_option("--costs", o_.costs, "use the costs of this file, and none that were measured")->type_name("FILE");
    sub->add_flag("--no-measured", o_.no_measured, "use no costs that were measured before, and keep none");
    if (sub->get_name() == "plan") return;
    sub->add_option("--plan", o_.plan, "replay a plan that `zephonc plan --format json` wrote")->type_name("FILE");
  }

  CLI::App* chosen() {
    auto subs = app_.get_subcommands();
    return subs.empty() ? &app_ : subs.front();
  }
  std::string unknown_command(const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app_.get_subcommands({})) names.push_back(sub->get_name());
    std::string hint = did_you_mean(word, names);
    return fmt::format("no command `{}`{}", word, hint.empty() ? "" : "; " + hint);
  }
  /// An option without its value, or a flag with one, by the library's words for it.
  std::string missing_value(const std::string& words) {
    for (const CLI::Option* option : chosen()->get_options({})) {
      for (const std::string& name : option->get_lnames()) {
        const size_t at = words.find("--" + name);
        const size_t end = at + name.size() + 2;
        if (at == std::string::npos ||
            (end < words.size() && (std::isalnum(static_cast<unsigned char>(words[end])) || words[end] == '-')))
          continue;
        if (option->get_type_name().empty()) return fmt::format("--{} takes no value", name);
        return fmt::format("--{} needs a value: --{} {}", name, name, option->get_type_name());
      }
    }
    return words;
  }
  std::string unknown_word() {
    std::string word = chosen()->remaining(true).front();
    if (chosen() == &app_) return unknown_command(word);
    word = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : chosen()->get_options({})) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    std::string hint = did_you_mean(word, names);
    return fmt::format("`{}` has no option `{}`{}", chosen()->get_name(), word, hint.empty() ? "" : "; " + hint);
  }
  int usage(const std::string& message) {
    std::string command = chosen() == &app_ ? "" : " " + chosen()->get_name();
    say(fmt::format("zephonc: {}\n`zephonc{} --help` lists what there is", message, command));
    return kExitUsage;
  }

  Options& o_;
  CLI::App app_;
  std::vector<std::string> params_, knobs_;
  std::map<const CLI::Option*, std::vector<std::string>> choices_;
};

}  // namespace

std::vector<CommandInfo> command_table() {
  Options unread;
  return Parser(unread).table();
}

std::optional<int> parse_command_line(int argc, const char* const* argv, Options& options) {
  return Parser(options).parse(argc, argv);
}

}  // namespace zephon
