#include "zephonc/rewrite.h"

#include <algorithm>
#include <cstdio>

#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "zephonc/console.h"
#include "zephonc/session.h"

namespace zephon {
namespace {

Result<ast::File> parse(const SourceMap& sources, FileId file, Form form, Diagnostics& diags) {
  return form == Form::Yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
}

/// Sorted, without what YAML and ZPL may differ in.
std::vector<std::string> comment_words(const ast::File& file) {
  std::string all;
  for (const ast::Comment& comment : file.comments) all += comment.text + " ";
  std::vector<std::string> words;
  std::string word;
  for (char c : all) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace

std::optional<std::string> rewrite(const std::string& name, const std::string& content, Form to, int& code) {
  SourceMap sources;
  Diagnostics diags;
  RenderOptions options;
  options.colour = stderr_colour();
  FileId file = sources.add(name, content);
  Result<ast::File> tree = parse(sources, file, form_of(name), diags);
  if (!tree) {
    say(render(diags, sources, options));
    code = kExitProgram;
    return std::nullopt;
  }
  std::string text = print(*tree, sources.text(file), form_of(name), to);
  // The promise, kept by looking.
  Diagnostics again;
  FileId written = sources.add("<what would be written>", text);
  Result<ast::File> read = parse(sources, written, to, again);
  if (std::vector<Diagnostic> found = again.sorted(); !read && !found.empty()) {
    // Two declarations of one name parse, and fail only when they are checked; a mapping cannot say them.
    auto twice = [](const Diagnostic& d) { return d.kind == Kind::YamlDuplicateKey; };
    if (std::all_of(found.begin(), found.end(), twice)) {
      say("zephonc: `" + name + "` declares a name twice, which the YAML form cannot say: `zephonc check` shows where");
      code = kExitProgram;
      return std::nullopt;
    }
  }
  if (!read || tree_text(*read) != tree_text(*tree) || comment_words(*read) != comment_words(*tree)) {
    show_problem({"B0900", "`" + name + "` cannot be written again: the result would not be the same program", {}});
    if (!read) say(render(again, sources, options));
    code = kExitBug;
    return std::nullopt;
  }
  return text;
}

std::string read_stdin() {
  std::string text;
  char buffer[65536];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;) text.append(buffer, n);
  return text;
}

}  // namespace zephon
