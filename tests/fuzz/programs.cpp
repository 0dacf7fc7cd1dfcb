#include "tests/fuzz/programs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"
#include "ops/all_ops.h"

namespace zephon {

namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::vector<Seed> fuzz_seeds() {
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

std::vector<std::string> kept_inputs(const std::string& target) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(fs::path(ZEPHON_SOURCE_DIR) / "tests/fuzz/corpus" / target))
    all.push_back(slurp(entry.path()));
  std::sort(all.begin(), all.end());
  return all;
}

bool looks_like_yaml(const std::string& text) { return text.find("zpl:") != text.npos; }

namespace {

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

// What a mutation puts in place of a token.
const std::vector<std::string>& words() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out = {"test \"a\"", "import \"a\" as a",
                                    "list<",      "?",
                                    "1e999",      "-9223372036854775808",
                                    "enum(",      "if",
                                    "else",       "stream",
                                    "fn",         "r\"",
                                    "\"{",        "key=",
                                    "seed",       "~",
                                    "=",          "where",
                                    "pipeline p", "static if",
                                    "default",    "[",
                                    "{",          "record"};
    for (const OpDef* op : all_ops().all()) {
      out.emplace_back(op->name);
      out.push_back(std::string(op->name) + "(");
    }
    return out;
  }();
  return all;
}

}  // namespace

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
      default:
        list[at] = words()[random() % words().size()];
    }
  }
  std::string out;
  for (const std::string& token : list) out += token;
  return out;
}

namespace {

std::string trouble_in(const Diagnostics& diags, const SourceMap& sources) {
  for (const Diagnostic& d : diags.sorted()) {
    if (!d.primary.span.valid()) return "a message without a place: " + d.message;
    if (info(d.kind).severity == Severity::Bug) return "our bug: " + d.message;
  }
  return render(diags, sources).size() > 1'000'000 ? "messages without end" : "";
}

Result<ast::File> parse(const SourceMap& sources, FileId file, Form form, Diagnostics& diags) {
  return form == Form::Yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
}

}  // namespace

std::string trouble_of_parser(const std::string& text, Form form) {
  SourceMap sources;
  const FileId file = sources.add(form == Form::Yaml ? "t.yaml" : "t.zpl", text);
  Diagnostics diags;
  Result<ast::File> tree = parse(sources, file, form, diags);
  if (tree.ok() == diags.has_errors()) return "a tree and errors, or neither";
  if (std::string bad = trouble_in(diags, sources); !bad.empty() || !tree) return bad;
  for (Form to : {Form::Zpl, Form::Yaml}) {
    const std::string printed = print(*tree, text, form, to);
    const FileId written = sources.add("printed", printed);
    Diagnostics again;
    Result<ast::File> read = parse(sources, written, to, again);
    // A mapping cannot say a name twice; such a program does not compile.
    auto twice = [](const Diagnostic& d) { return d.kind == Kind::YamlDuplicateKey; };
    const std::vector<Diagnostic> said = again.sorted();
    if (!read && to == Form::Yaml && std::all_of(said.begin(), said.end(), twice)) continue;
    if (!read) return "what is printed does not parse:\n" + printed + render(again, sources);
    if (tree_text(*read) != tree_text(*tree)) return "what is printed is another program:\n" + printed;
  }
  return "";
}

std::string trouble_of_checker(const std::string& text, Form form) {
  SourceMap sources;
  const FileId file = sources.add(form == Form::Yaml ? "t.yaml" : "t.zpl", text);
  CompileOptions options;
  options.read = [](const std::string&, std::string& error) -> std::optional<std::string> {
    error = "there is no such file";
    return std::nullopt;
  };
  {
    Diagnostics diags;
    Result<Program> program = compile(sources, file, {}, all_ops(), diags, options);
    if (program.ok() == diags.has_errors()) return "a program and errors, or neither";
    if (std::string bad = trouble_in(diags, sources); !bad.empty()) return bad;
  }
  Diagnostics diags;
  const Result<std::vector<std::string>> tests = test_names(sources, file, diags);
  if (!tests) return "";
  for (size_t i = 0; i < std::min<size_t>(tests->size(), 4); ++i) {
    Diagnostics found;
    Result<TestPrograms> test = compile_test(sources, file, i, all_ops(), found, options);
    if (test.ok() == found.has_errors()) return "a test and errors, or neither";
    if (std::string bad = trouble_in(found, sources); !bad.empty()) return bad;
  }
  return "";
}

}  // namespace zephon
