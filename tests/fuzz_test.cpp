// Mutated programs, bytes and tokens, in both forms: no crash, no hang, and every message has a place. What still
// parses is printed and read again. ZEPHON_FUZZ=N mutates N programs (`./dev fuzz`: 20,000); the seeds are the golden
// programs and tests/data/fuzz.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"
#include "ops/all_ops.h"

namespace zephon {
namespace {

namespace fs = std::filesystem;

struct Seed {
  std::string text;
  Form form;
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Seed> seeds() {
  std::vector<Seed> all;
  const fs::path root = ZEPHON_SOURCE_DIR;
  for (const char* folder : {"examples", "tests/data", "tests/data/fuzz"})
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      std::string name = entry.path().string();
      if (name.ends_with(".zpl") || name.ends_with(".yaml")) all.push_back({slurp(entry.path()), form_of(name)});
    }
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests/explain")) {
    if (entry.path().extension() != ".explain") continue;
    std::istringstream in(slurp(entry.path()));
    std::string line, program;
    bool inside = false, yaml = false;
    while (std::getline(in, line)) {
      if (inside && line == "----") {
        if (program.size() < 4000) all.push_back({program, yaml ? Form::Yaml : Form::Zpl});
        inside = false;
      } else if (inside) {
        program += line + "\n";
      } else if (line.starts_with("error") || line.starts_with("types") || line.starts_with("graph")) {
        inside = line.find(':') == line.npos && line.find('[') == line.npos;
        yaml = line.find(" yaml") != line.npos;
        program.clear();
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const Seed& a, const Seed& b) { return a.text < b.text; });
  return all;
}

// Words, numbers, strings, runs of space, single signs.
std::vector<std::string> tokens(const std::string& text) {
  std::vector<std::string> out;
  auto kind = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? 1 : c == ' ' ? 2 : 0;
  };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (kind(text[i]) != 0 && end < text.size() && kind(text[end]) == kind(text[i])) ++end;
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

std::string mutate_bytes(std::string text, std::mt19937_64& random, const std::string& other) {
  for (size_t n = 1 + random() % 4; n > 0; --n) {
    size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 6) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.insert(at, 1, "{}[]()|\"#\\\n,:=.&*-"[random() % 18]);
        break;
      case 2:
        text.erase(at, 1 + random() % 8);
        break;
      case 3:
        text.insert(at, text.substr(at, random() % 20));
        break;
      case 4:
        if (!other.empty()) text.insert(at, other.substr(random() % other.size(), random() % 40));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

std::string mutate_tokens(const std::string& text, std::mt19937_64& random, const std::string& other) {
  std::vector<std::string> list = tokens(text), more = tokens(other);
  for (size_t n = 1 + random() % 4; n > 0 && !list.empty(); --n) {
    size_t at = random() % list.size(), from = random() % list.size();
    switch (random() % 5) {
      case 0:
        list.erase(list.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 1:
        std::swap(list[at], list[from]);
        break;
      case 2:
        list.insert(list.begin() + static_cast<ptrdiff_t>(at), list[from]);
        break;
      case 3:
        if (!more.empty()) list[at] = more[random() % more.size()];
        break;
      default: {
        static constexpr std::string_view kWords[] = {"test \"a\"", "import \"a\" as a",
                                                      "list<",      "?",
                                                      "1e999",      "-9223372036854775808",
                                                      "enum(",      "if",
                                                      "else",       "stream",
                                                      "fn",         "r\"",
                                                      "\"{",        "key=",
                                                      "seed"};
        list[at] = kWords[random() % std::size(kWords)];
      }
    }
  }
  std::string out;
  for (const std::string& token : list) out += token;
  return out;
}

// An empty string, or what is wrong with how this text is taken.
std::string trouble(const std::string& text, Form form) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(form == Form::Yaml ? "t.yaml" : "t.zpl", text);
  CompileOptions options;
  options.read = [](const std::string&, std::string& error) -> std::optional<std::string> {
    error = "there is no such file";
    return std::nullopt;
  };
  Result<Program> program = compile(sources, file, {}, all_ops(), diags, options);
  if (program.ok() == diags.has_errors()) return "a program and errors, or neither";
  for (const Diagnostic& d : diags.sorted()) {
    if (!d.primary.span.valid()) return "a message without a place: " + d.message;
    if (info(d.kind).severity == Severity::Bug) return "our bug: " + d.message;
  }
  if (render(diags, sources).size() > 1'000'000) return "messages without end";
  Diagnostics again;
  Result<ast::File> tree = form == Form::Yaml ? parse_yaml(sources, file, again) : parse_zpl(sources, file, again);
  if (!tree) return "";
  for (Form to : {Form::Zpl, Form::Yaml}) {
    std::string printed = print(*tree, text, form, to);
    FileId written = sources.add("printed", printed);
    Diagnostics third;
    Result<ast::File> read =
        to == Form::Yaml ? parse_yaml(sources, written, third) : parse_zpl(sources, written, third);
    // A mapping cannot say a name twice; such a program does not compile.
    auto twice = [](const Diagnostic& d) { return d.kind == Kind::YamlDuplicateKey; };
    const std::vector<Diagnostic> said = third.sorted();
    if (!read && !program && std::all_of(said.begin(), said.end(), twice)) continue;
    if (!read) return "what is printed does not parse:\n" + printed + render(third, sources);
    if (tree_text(*read) != tree_text(*tree)) return "what is printed is another program:\n" + printed;
  }
  return "";
}

TEST(Fuzz, MutatedPrograms) {
  const char* wanted = std::getenv("ZEPHON_FUZZ");
  const size_t count = wanted != nullptr ? std::stoul(wanted) : 3000;
  std::vector<Seed> all = seeds();
  ASSERT_GT(all.size(), 50u);
  // The same programs on every machine, in whatever order a folder lists its files.
  std::sort(all.begin(), all.end(), [](const Seed& a, const Seed& b) { return a.text < b.text; });
  for (const Seed& seed : all) EXPECT_EQ(trouble(seed.text, seed.form), "") << seed.text;
  std::mt19937_64 random(20261129);
  int faults = 0;
  for (size_t i = 0; i < count && faults < 5; ++i) {
    const Seed& seed = all[random() % all.size()];
    const std::string& other = all[random() % all.size()].text;
    std::string text = i % 2 == 0 ? mutate_bytes(seed.text, random, other) : mutate_tokens(seed.text, random, other);
    auto begin = std::chrono::steady_clock::now();
    std::string bad = trouble(text, seed.form);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (bad.empty() && seconds.count() > 5) bad = "it takes " + std::to_string(seconds.count()) + " s";
    if (bad.empty()) continue;
    ++faults;
    ADD_FAILURE() << "program " << i << " (" << (seed.form == Form::Yaml ? "yaml" : "zpl") << "): " << bad
                  << "\n--- program\n"
                  << text;
  }
}

}  // namespace
}  // namespace zephon
