// The one golden driver: tests/explain/**/*.explain. A section is a command line, a program, `----`, and what is
// expected:
//
//   error mode=eval            # a comment may stand above
//   range(3) | filter index
//   ----
//   error[E0203]: ...
//
// Commands: `error` renders diagnostics (lints too), `graph` prints the typed graph, `types` the fields after every
// step, `fmt` and `convert` the program written again, `optimize` the graph after the rules, `plan` the physical plan,
// `steps` it after each application of a rule, `loops` the loop nest of each kernel, `run` what the reference
// interpreter delivers (and the plan must), `tests` what `zephonc test` finds wrong with the tests before it runs them,
// `cost` what each stage of the plan is taken to cost on the machine of the cost model, `llvm` the optimised LLVM code
// of each kernel for a plain x86-64 (and of any processor it is made of the same loops), `same` whether the programs
// above and below a line `~~~` come to one graph. Flags: `yaml` reads the YAML form; `name=value` sets a parameter,
// `pipeline=NAME` chooses one of several; what stands below a line `=== NAME` is a file that may be imported;
// `expect=RULE`, `expect-not=RULE`, `disable=RULE,...` (`all`) speak of rules. People write the program, `cmake --build
// --preset dev
// --target bless` writes what stands under `----`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "optimizer/rules/all_rules.h"
#include "runtime/kernels/kernel_compiler.h"
#include "runtime/reference/reference.h"
#include "zephonc/text_diff.h"
#include "zephonc/value_diff.h"
#include "zephonc/verification.h"

namespace zephon {
namespace {

namespace fs = std::filesystem;

struct Section {
  std::string file;  // below tests/explain
  int index = 0;     // in the file, from 0
  int line = 0;      // of the command, from 1
  std::vector<std::string> words;
  std::string program, expected;
  size_t expected_begin = 0, expected_end = 0;  // lines of the file, from 0
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

std::string run_error(const Section& section);
std::string run_graph(const Section& section);
std::string run_types(const Section& section);
std::string run_optimize(const Section& section);
std::string run_plan(const Section& section);
std::string run_steps(const Section& section);
std::string run_fmt(const Section& section);
std::string run_convert(const Section& section);
std::string run_loops(const Section& section);
std::string run_run(const Section& section);
std::string run_same(const Section& section);
std::string run_test(const Section& section);
std::string run_cost(const Section& section);
std::string run_llvm(const Section& section);
const std::map<std::string, std::string (*)(const Section&)> kCommands = {
    {"error", run_error}, {"graph", run_graph}, {"types", run_types}, {"optimize", run_optimize},
    {"plan", run_plan},   {"steps", run_steps}, {"fmt", run_fmt},     {"convert", run_convert},
    {"loops", run_loops}, {"run", run_run},     {"same", run_same},   {"tests", run_test},
    {"cost", run_cost},   {"llvm", run_llvm}};
// Flags that are not parameters of the program.
const std::set<std::string> kRuleFlags = {"expect", "expect-not", "disable", "pipeline"};

bool is_command(const std::string& line) { return kCommands.contains(line.substr(0, line.find(' '))); }

fs::path root() { return fs::path(ZEPHON_SOURCE_DIR) / "tests" / "explain"; }

std::vector<std::string> read_lines(const std::string& file) {
  std::ifstream in(root() / file);
  std::stringstream text;
  text << in.rdbuf();
  return split(text.str(), '\n');
}

std::vector<Section> read_sections(const std::string& file) {
  std::vector<std::string> lines = read_lines(file);
  std::vector<Section> sections;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i][0] == '#' || !is_command(lines[i])) continue;
    Section section{file, static_cast<int>(sections.size()), static_cast<int>(i) + 1, split(lines[i], ' '), {}, {}};
    for (++i; i < lines.size() && lines[i] != "----"; ++i) section.program += lines[i] + "\n";
    section.expected_begin = ++i;
    // Up to the blank line above the next command, or above the comments of it. What is laid out may end with a comment
    // of its own.
    const bool laid_out = section.words[0] == "fmt" || section.words[0] == "convert";
    size_t end = i;
    for (; end < lines.size(); ++end) {
      if (!lines[end].empty()) continue;
      size_t next = end;
      while (next < lines.size() && lines[next].empty()) ++next;
      while (next < lines.size() && (lines[next].starts_with("# ") || (lines[next].empty() && !laid_out))) ++next;
      if (next == lines.size() ? !laid_out : is_command(lines[next])) break;
    }
    for (; i < end; ++i) section.expected += lines[i] + "\n";
    section.expected_end = end;
    sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<Section> all_sections() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root()))
    if (entry.path().extension() == ".explain") files.push_back(fs::relative(entry.path(), root()).string());
  std::sort(files.begin(), files.end());
  std::vector<Section> all;
  for (const std::string& file : files)
    for (Section& section : read_sections(file)) all.push_back(std::move(section));
  return all;
}

struct Compiled {
  SourceMap sources;
  Diagnostics diags;
  std::optional<Program> program;
  std::string errors() const { return render(diags, sources); }
};

void compile_section(const Section& section, Compiled& out) {
  std::map<std::string, std::string> params;
  std::string name = "t.zpl", text;
  std::map<std::string, std::string> files;
  std::string* into = &text;
  for (const std::string& line : split(section.program, '\n')) {
    if (line.starts_with("=== "))
      into = &files[line.substr(4)];
    else
      *into += line + "\n";
  }
  CompileOptions options;
  options.read = [&files](const std::string& path, std::string& error) -> std::optional<std::string> {
    if (auto it = files.find(path); it != files.end()) return it->second;
    error = "there is no such file";
    return std::nullopt;
  };
  for (size_t i = 1; i < section.words.size(); ++i) {
    const std::string& word = section.words[i];
    if (word == "yaml") name = "t.yaml";
    if (word.starts_with("pipeline=")) options.pipeline = word.substr(9);
    if (size_t equal = word.find('='); equal != word.npos && !kRuleFlags.contains(word.substr(0, equal)))
      params[word.substr(0, equal)] = word.substr(equal + 1);
  }
  FileId file = out.sources.add(name, text);
  Result<Program> program = compile(out.sources, file, params, OpTable(all_ops()), out.diags, options);
  EXPECT_EQ(program.ok(), !out.diags.has_errors());
  if (program) out.program = *std::move(program);
}

std::string run_error(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  return compiled.diags.empty() ? "ok\n" : compiled.errors();
}

std::string run_graph(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  return compiled.program ? to_text(compiled.program->graph, {.types = true}) : compiled.errors();
}

std::string run_types(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  std::string out;
  for (const ProgramStep& step : compiled.program->steps) {
    std::string text(compiled.sources.text(step.origin));
    out += (step.stream.empty() ? "" : step.stream + ": ") + text.substr(0, text.find('\n')) + "\n    " +
           to_string(compiled.program->graph.node(step.node).type) + "\n";
  }
  return out;
}

/// Optimises the section's program; checks what it says about rules.
OptimizeResult optimize_section(const Section& section, const Program& program) {
  OptimizeOptions options;
  options.verify = true;
  options.texts = true;
  options.plan.seed = program.seed;
  options.plan.base_dir = ZEPHON_SOURCE_DIR;
  std::vector<std::string> expected, unexpected;
  for (const std::string& word : section.words) {
    const size_t equal = word.find('=');
    if (equal == word.npos) continue;
    const std::string flag = word.substr(0, equal);
    if (flag == "pipeline") continue;
    for (const std::string& rule : split(word.substr(equal + 1), ',')) {
      if (!kRuleFlags.contains(flag)) continue;
      EXPECT_TRUE(rule == "all" || find_rule(rule)) << "no rule is called " << rule;
      if (flag == "expect") expected.push_back(rule);
      if (flag == "expect-not") unexpected.push_back(rule);
      if (flag == "disable") options.disabled.insert(rule);
    }
  }
  OptimizeResult result = optimize(program.graph, options, all_ops());
  EXPECT_TRUE(result.trace.problems.empty()) << result.trace.problems.front();
  for (const std::string& rule : expected) EXPECT_TRUE(result.trace.fired(rule)) << rule << " does not fire";
  for (const std::string& rule : unexpected) EXPECT_FALSE(result.trace.fired(rule)) << rule << " fires";
  return result;
}

std::string run_optimize(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  return compiled.program ? to_text(optimize_section(section, *compiled.program).graph) : compiled.errors();
}

std::string run_plan(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  return compiled.program ? to_text(optimize_section(section, *compiled.program).plan) : compiled.errors();
}

std::string run_steps(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  const OptimizeResult result = optimize_section(section, *compiled.program);
  std::string out;
  for (const Application& a : result.trace.applied) {
    out += fmt::format("{}{}{}\n", out.empty() ? "" : "\n", a.rule->name, a.what.empty() ? "" : ": " + a.what);
    out += a.after;
  }
  return out;
}

std::string rewritten(const Section& section, bool convert) {
  bool yaml = std::find(section.words.begin(), section.words.end(), "yaml") != section.words.end();
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(yaml ? "t.yaml" : "t.zpl", section.program);
  Result<ast::File> tree = yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
  if (!tree) return render(diags, sources);
  Form from = yaml ? Form::Yaml : Form::Zpl, other = yaml ? Form::Zpl : Form::Yaml;
  return print(*tree, section.program, from, convert ? other : from);
}
// LLVM's own text depends on the processor.
std::string run_loops(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  const Plan plan = optimize_section(section, *compiled.program).plan;
  auto compiler = make_kernel_compiler();
  std::string out;
  for (const PlanNode& node : plan.nodes)
    for (const ComputeStep& step : node.steps) {
      if (step.kind != ComputeStep::Kind::Evaluate || step.group.kind == KernelGroup::Kind::Native) continue;
      out += (out.empty() ? "" : "~\n") + compiler->listing(plan.graph, step.group).loop_nest;
    }
  return out.empty() ? "no kernel\n" : out;
}

std::string run_run(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  const Graph& graph = compiled.program->graph;
  const std::string base_dir = ZEPHON_SOURCE_DIR;
  Failure failure;
  auto opened = open_sources(graph, {base_dir}, failure);
  if (opened == nullptr) return failure.message + "\n";
  std::string out;
  auto reference = ReferenceRun::open(graph, {compiled.program->seed, 1, base_dir}, failure, opened);
  while (auto record = reference->next()) {
    for (size_t i = 0; i < record->ids.size(); ++i) out += (i == 0 ? "" : " ") + to_string(record->ids[i]);
    out += "\n";
    for (const auto& [name, value] : record->fields) out += "    " + name + ": " + value_line(value) + "\n";
  }
  if (const auto& end = reference->failure())
    out += fmt::format("fails at {}: {}: {}\n", to_string(end->id), end->failure.code, end->failure.message);
  VerifyOptions verifying;
  verifying.seed = compiled.program->seed;
  verifying.base_dir = base_dir;
  const Plan plan = optimize_section(section, *compiled.program).plan;
  EXPECT_EQ(compare(graph, plan, verifying, opened).problem, "") << "what the plan delivers";
  return out.empty() ? "nothing\n" : out;
}

std::string run_same(const Section& section) {
  std::string graphs[2];
  const size_t line = ("\n" + section.program).find("\n~~~\n");
  if (line == section.program.npos) return "no line `~~~`\n";
  const std::string programs[2] = {section.program.substr(0, line), section.program.substr(line + 4)};
  for (int i = 0; i < 2; ++i) {
    Section one = section;
    one.program = programs[i];
    graphs[i] = run_optimize(one);
  }
  return graphs[0] == graphs[1] ? "the same:\n" + graphs[0] : text_diff(graphs[0], graphs[1]);
}

std::string run_test(const Section& section) {
  const bool yaml = std::find(section.words.begin(), section.words.end(), "yaml") != section.words.end();
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add(yaml ? "t.yaml" : "t.zpl", section.program);
  const Result<std::vector<std::string>> names = test_names(sources, file, diags);
  for (size_t i = 0; names && i < names->size(); ++i) (void)compile_test(sources, file, i, OpTable(all_ops()), diags);
  return diags.empty() ? "ok\n" : render(diags, sources);
}

std::string run_cost(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  const Plan plan = optimize_section(section, *compiled.program).plan;
  std::string out;
  for (const PlanNode& node : plan.nodes) {
    out += fmt::format("{}: {:.4g} ns a row, {:.4g} B, {:.4g} rows for one\n", node.label.empty() ? "?" : node.label,
                       node.est_ns_per_row, node.est_bytes_per_row, node.est_rows);
    for (const ComputeStep& step : node.steps) {
      std::string what = "filter";
      if (step.kind == ComputeStep::Kind::Evaluate) {
        what.clear();
        for (ExprId root : step.group.roots) what += (what.empty() ? "" : "; ") + to_text(plan.graph, root);
      }
      out += fmt::format("  {:.4g} ns: {}\n", step.est_ns, what);
    }
  }
  return out;
}

std::string run_llvm(const Section& section) {
  Compiled compiled;
  compile_section(section, compiled);
  if (!compiled.program) return compiled.errors();
  const Plan plan = optimize_section(section, *compiled.program).plan;
  KernelOptions plain;
  plain.cpu = "x86-64";
  plain.use_cache = false;
  auto compiler = make_kernel_compiler(plain);
  std::string out;
  for (const PlanNode& node : plan.nodes)
    for (const ComputeStep& step : node.steps) {
      if (step.kind != ComputeStep::Kind::Evaluate || step.group.kind == KernelGroup::Kind::Native) continue;
      out += (out.empty() ? "" : "~\n") + compiler->listing(plan.graph, step.group).llvm_ir;
    }
  // The functions alone: no empty lines, which end a golden text, no metadata, and nothing of the target.
  std::string dense;
  bool inside = false;
  for (std::string line : split(out, '\n')) {
    inside = inside || line.starts_with("define ");
    if (!inside || line.empty()) continue;
    if (const size_t mark = line.find(", !"); mark != line.npos) line.resize(mark);
    if (const size_t mark = line.find(" #0 {"); mark != line.npos) line.erase(mark, 3);
    dense += line + "\n";
    inside = line != "}";
  }
  return dense.empty() ? "no kernel\n" : dense;
}

std::string run_fmt(const Section& section) { return rewritten(section, false); }
std::string run_convert(const Section& section) { return rewritten(section, true); }

class Explain : public testing::TestWithParam<Section> {};

TEST_P(Explain, Section) {
  const Section& section = GetParam();
  std::string found = kCommands.at(section.words[0])(section);
  if (found == section.expected) return;
  if (std::getenv("ZEPHON_BLESS") != nullptr && !HasFailure()) {
    // Lines move while the file is written: read it again.
    Section now = read_sections(section.file).at(static_cast<size_t>(section.index));
    std::vector<std::string> lines = read_lines(section.file), text = split(found, '\n');
    lines.erase(lines.begin() + static_cast<ptrdiff_t>(now.expected_begin),
                lines.begin() + static_cast<ptrdiff_t>(std::min(now.expected_end, lines.size())));
    lines.insert(lines.begin() + static_cast<ptrdiff_t>(now.expected_begin), text.begin(), text.end());
    std::ofstream out(root() / section.file, std::ios::trunc);
    for (const std::string& line : lines) out << line << "\n";
    return;
  }
  EXPECT_EQ(section.expected, found) << "tests/explain/" << section.file << ":" << section.line
                                     << "\nalone: zephon_tests --gtest_filter='*/"
                                     << testing::UnitTest::GetInstance()->current_test_info()->name()
                                     << "'\nbless: cmake --build --preset dev --target bless";
}

std::string case_name(const testing::TestParamInfo<Section>& info) {
  std::string name = info.param.file.substr(0, info.param.file.rfind('.')) + "_" + std::to_string(info.param.index);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Golden, Explain, testing::ValuesIn(all_sections()), case_name);

TEST(ExplainCoverage, EveryDiagnosticOfTheFrontEndIsRendered) {
  // Not from a program that fits into a golden file.
  const std::map<std::string, std::string> exempt = {{"E0103", "16 MB of text: Syntax.GuardsOfText"},
                                                     {"E0111", "of `zephonc test`: tests/cli_test.py"}};
  std::string all;
  for (const Section& section : all_sections()) all += section.expected;
  for (const KindInfo& kind : all_kinds()) {
    if (kind.severity != Severity::Error && kind.severity != Severity::Lint) continue;
    bool rendered = all.find(fmt::format("[{}]", kind.code)) != all.npos;
    EXPECT_NE(rendered, exempt.contains(std::string(kind.code)))
        << kind.code << (rendered ? " is rendered and exempt" : " is rendered in no file below tests/explain");
  }
}

}  // namespace
}  // namespace zephon
