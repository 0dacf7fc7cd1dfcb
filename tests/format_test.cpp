// fmt and convert: what is printed reads back as the same program with the same comments; printing again changes
// nothing; there and back is the canonical layout. Over the examples, the golden programs, and random ones with random
// comments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"
#include "graph/identity_text.h"
#include "ops/all_ops.h"
#include "tests/random_programs.h"

namespace zephon {
namespace {

namespace fs = std::filesystem;

struct Read {
  SourceMap sources;
  Diagnostics diags;
  FileId file;
  std::optional<ast::File> tree;
  std::string errors() const { return render(diags, sources); }
};

std::unique_ptr<Read> read(const std::string& text, Form form) {
  auto out = std::make_unique<Read>();
  out->file = out->sources.add(form == Form::Yaml ? "t.yaml" : "t.zpl", text);
  Result<ast::File> tree = form == Form::Yaml ? parse_yaml(out->sources, out->file, out->diags)
                                              : parse_zpl(out->sources, out->file, out->diags);
  if (tree) out->tree = *std::move(tree);
  return out;
}

// Two declarations of one name parse in ZPL, and fail when they are checked; a mapping cannot say them.
bool declares_twice(const Read& read) {
  const std::vector<Diagnostic> said = read.diags.sorted();
  return !read.tree &&
         std::all_of(said.begin(), said.end(), [](const Diagnostic& d) { return d.kind == Kind::YamlDuplicateKey; });
}

std::vector<std::string> words_of_comments(const ast::File& file) {
  std::vector<std::string> words;
  for (const ast::Comment& comment : file.comments) {
    std::istringstream in(comment.text);
    for (std::string word; in >> word;) words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  return words;
}

// What the program means, where it compiles.
std::string meaning(const std::string& text, Form form) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(form == Form::Yaml ? "t.yaml" : "t.zpl", text);
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  return program ? identity_text(program->graph) : "";
}

std::string printed(const Read& from, Form form, Form to) {
  return print(*from.tree, from.sources.text(from.file), form, to);
}

// `exact`: there and back gives the same text; false where comments stand inside of expressions.
void check(const std::string& text, Form form, bool exact = true) {
  SCOPED_TRACE(text);
  auto original = read(text, form);
  if (!original->tree) return;
  const std::string tree = tree_text(*original->tree);
  const std::vector<std::string> comments = words_of_comments(*original->tree);
  const std::string before = meaning(text, form);
  for (Form to : {Form::Zpl, Form::Yaml}) {
    const std::string once = printed(*original, form, to);
    auto again = read(once, to);
    if (before.empty() && declares_twice(*again)) continue;
    ASSERT_TRUE(again->tree) << once << again->errors();
    ASSERT_EQ(tree_text(*again->tree), tree) << once;
    ASSERT_EQ(words_of_comments(*again->tree), comments) << once;
    ASSERT_EQ(printed(*again, to, to), once) << "laid out twice";
    if (!before.empty()) {
      ASSERT_EQ(meaning(once, to), before) << once;
    }
    if (!exact) continue;
    // Into the other form and back.
    Form other = to == Form::Zpl ? Form::Yaml : Form::Zpl;
    auto converted = read(printed(*again, to, other), other);
    if (before.empty() && declares_twice(*converted)) continue;
    ASSERT_TRUE(converted->tree) << printed(*again, to, other) << converted->errors();
    ASSERT_EQ(printed(*converted, other, to), once) << "there and back, by\n" << printed(*again, to, other);
  }
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Format, Examples) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ZEPHON_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".zpl" && entry.path().extension() != ".yaml") continue;
    std::string text = slurp(entry.path());
    check(text, form_of(entry.path().string()));
    auto file = read(text, form_of(entry.path().string()));
    ASSERT_TRUE(file->tree) << entry.path();
    EXPECT_EQ(printed(*file, form_of(entry.path().string()), form_of(entry.path().string())), text)
        << "run `zephonc fmt " << entry.path() << "`";
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(Format, GoldenPrograms) {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ZEPHON_SOURCE_DIR) / "tests/explain")) {
    if (entry.path().extension() != ".explain") continue;
    std::ifstream in(entry.path());
    std::string line, program;
    bool inside = false, yaml = false;
    while (std::getline(in, line)) {
      std::string word = line.substr(0, line.find(' '));
      if (!inside) {
        for (const char* command : {"error", "graph", "types", "optimize", "plan", "steps", "fmt", "convert"})
          inside = inside || word == command;
        yaml = line.find(" yaml") != line.npos;
        program.clear();
      } else if (line == "----" || line.starts_with("=== ")) {
        check(program, yaml ? Form::Yaml : Form::Zpl);
        ++count;
        inside = line != "----";
        if (inside) yaml = line.ends_with(".yaml");
        program.clear();
      } else {
        program += line + "\n";
      }
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(count, 100);
}

TEST(Format, LanguagePage) {
  std::ifstream in(ZEPHON_SOURCE_DIR "/grammar/README.md");
  std::string line, block, kind;
  while (std::getline(in, line)) {
    if (!line.starts_with("```")) {
      block += line + "\n";
    } else if (kind.empty()) {
      kind = line.substr(3);
      block.clear();
    } else {
      if (kind == "zpl" || kind == "yaml") check(block, kind == "yaml" ? Form::Yaml : Form::Zpl);
      kind.clear();
    }
    if (HasFatalFailure()) return;
  }
}

// Every snippet of the page is a program that compiles.
TEST(Language, EverySnippetCompiles) {
  std::ifstream in(ZEPHON_SOURCE_DIR "/grammar/README.md");
  std::string line, block, kind;
  int blocks = 0;
  while (std::getline(in, line)) {
    if (!line.starts_with("```")) {
      block += line + "\n";
      continue;
    }
    if (kind.empty()) {
      kind = line.substr(3);
      block.clear();
      continue;
    }
    if (kind == "zpl" || kind == "yaml") {
      SCOPED_TRACE(block);
      SourceMap sources;
      Diagnostics diags;
      FileId file = sources.add("page." + kind, block);
      CompileOptions options;
      options.read = [](const std::string& path, std::string& error) -> std::optional<std::string> {
        error = "there is no such file";
        if (path != "augment.zpl") return std::nullopt;
        return "zpl 1\nlet gain = 2\nfn jitter(x, by) = f32(x) * by\nstream web = files(\"a/*.jpg\")\n"
               "stream code = files(\"b/*.jpg\")\n";
      };
      Result<std::vector<std::string>> names = pipeline_names(sources, file, diags);
      ASSERT_TRUE(names) << render(diags, sources);
      for (const std::string& name : *names) {
        options.pipeline = name;
        std::map<std::string, std::string> params;
        if (block.find("root: path") != block.npos) params["root"] = "photos";
        Result<Program> program = compile(sources, file, params, all_ops(), diags, options);
        EXPECT_TRUE(program) << render(diags, sources);
      }
      const Result<std::vector<std::string>> tests = test_names(sources, file, diags);
      ASSERT_TRUE(tests);
      for (size_t i = 0; i < tests->size(); ++i)
        EXPECT_TRUE(compile_test(sources, file, i, all_ops(), diags).ok()) << render(diags, sources);
      ++blocks;
    }
    kind.clear();
  }
  EXPECT_GE(blocks, 9);
}

// key= decides a draw alone: the same wherever it stands, and whatever stands before it.
TEST(Language, KeyNamesADraw) {
  auto draws = [](const std::string& text) {
    SourceMap sources;
    Diagnostics diags;
    Result<Program> program = compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags);
    EXPECT_TRUE(program) << render(diags, sources);
    std::vector<uint64_t> ids;
    for (size_t i = 0; program && i < program->graph.expr_count(); ++i)
      if (uint64_t id = program->graph.expr(ExprId{static_cast<int32_t>(i)}).draw_id; id != 0) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  };
  auto one = draws("range(3) | x = uniform(0, 1, key=\"a\")");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(draws("stream s = range(3) | y = f32(index) + uniform(0, 1, key=\"a\")\ns | y = 2"), one);
  EXPECT_EQ(draws("fn f(x) = x + uniform(0, 1, key=\"a\")\nrange(3) | z = f(1) + f(2)"), one);
  EXPECT_NE(draws("range(3) | x = uniform(0, 1, key=\"b\")"), one);
  EXPECT_NE(draws("range(3) | x = uniform(0, 1)"), one);
  EXPECT_EQ(draws("range(3) | x = uniform(0, 1) - uniform(0, 1)").size(), 2u);
  EXPECT_EQ(draws("range(3) | x = uniform(0, 1, key=1) - uniform(0, 1, key=1)").size(), 1u);
}

// Comments and empty lines at the ends of some lines, and between lines.
std::string with_comments(const std::string& text, std::mt19937_64& random, bool anywhere) {
  std::string out;
  int n = 0;
  auto comment = [&] { return "# c" + std::to_string(n++); };
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && (c == '(' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == ']')) --depth;
    bool space = !quoted && (c == ' ' || c == '\n');
    if (c == '\n' && !quoted && (depth == 0 || anywhere)) {
      if (random() % 4 == 0) out += "  " + comment();
      out += c;
      if (random() % 5 == 0) out += "\n";
      if (random() % 4 == 0) out += "    " + comment() + "\n";
    } else if (space && anywhere && random() % 12 == 0) {
      out += " " + comment() + "\n";
    } else {
      out += c;
    }
  }
  return out;
}

// Comments behind and between the lines of a program in YAML, in its literals too.
std::string with_yaml_comments(const std::string& text, std::mt19937_64& random) {
  std::istringstream in(text);
  std::string out, line;
  int n = 0;
  auto comment = [&] { return "# y" + std::to_string(n++); };
  while (std::getline(in, line)) {
    const std::string indent(std::min(line.find_first_not_of(' '), line.size()), ' ');
    if (random() % 6 == 0 && !line.empty()) out += indent + comment() + "\n";
    out += line;
    if (random() % 4 == 0 && !line.empty()) out += "  " + comment();
    out += "\n";
    if (random() % 8 == 0) out += "\n";
  }
  return out;
}

// ZEPHON_FORMAT: how many programs, for a longer hunt.
TEST(Format, RandomPrograms) {
  const char* wanted = std::getenv("ZEPHON_FORMAT");
  const uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 2000;
  fs::path folder = fs::temp_directory_path() / ("zephon-format-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  for (uint64_t seed = 0; seed < count && !HasFatalFailure(); ++seed) {
    std::mt19937_64 random(seed);
    std::string text = random_program(seed, folder.string()).text;
    if (seed % 3 == 1) text = with_comments(text, random, false);
    if (seed % 3 == 2) text = with_comments(text, random, true);
    check(text, Form::Zpl, seed % 3 != 2);
    if (seed % 6 != 1) continue;
    if (auto tree = read(text, Form::Zpl); tree->tree && !HasFatalFailure())
      check(with_yaml_comments(printed(*tree, Form::Zpl, Form::Yaml), random), Form::Yaml, false);
  }
  fs::remove_all(folder);
}

// One program with everything, and comments in every place that fmt knows.
TEST(Format, CommentsEverywhere) {
  check(slurp(fs::path(ZEPHON_SOURCE_DIR) / "tests/data/everything.zpl"), Form::Zpl);
  check(slurp(fs::path(ZEPHON_SOURCE_DIR) / "tests/data/everything.yaml"), Form::Yaml);
}

}  // namespace
}  // namespace zephon
