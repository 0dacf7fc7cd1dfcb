#include "zephonc/lsp/analysis.h"

#include <algorithm>
#include <filesystem>

#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"
#include "ops/all_ops.h"

namespace zephon::lsp {

Result<ast::File> parse(const SourceMap& sources, FileId file, Diagnostics& diags) {
  const bool yaml = form_of(sources.name(file)) == Form::Yaml;
  return yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
}

std::shared_ptr<const Analysis> analyse(const std::string& name, std::shared_ptr<const Text> text,
                                        const ReadImport& read) {
  auto out = std::make_shared<Analysis>();
  out->name = name;
  out->text = std::move(text);
  out->file = out->sources.add(name, out->text->bytes());
  Diagnostics parsing;
  Result<ast::File> tree = parse(out->sources, out->file, parsing);
  out->found = parsing.sorted();
  if (!tree) return out;
  out->tree = *std::move(tree);

  std::vector<std::string> names;
  for (const ast::Pipeline& pipeline : out->tree->pipelines) names.push_back(pipeline.name.text);
  if (names.empty()) names.emplace_back();
  CompileOptions options;
  options.facts = &out->facts;
  options.read = [&](const std::string& path, std::string& error) {
    std::optional<std::string> found = read(path, error);
    out->imported[path] = found.value_or("");
    return found;
  };
  std::vector<std::pair<Diagnostic, size_t>> said;  // by how many pipelines
  for (const std::string& pipeline : names) {
    options.pipeline = pipeline;
    Diagnostics diags;
    // Only what it reports is of interest.
    if (auto program = compile(out->sources, *out->tree, {}, all_ops(), diags, options); !program) {
    }
    for (Diagnostic& diagnostic : diags.sorted()) {
      auto same = std::find_if(said.begin(), said.end(), [&](const auto& other) {
        return other.first.kind == diagnostic.kind && other.first.message == diagnostic.message &&
               other.first.primary.span == diagnostic.primary.span;
      });
      if (same != said.end())
        ++same->second;
      else
        said.emplace_back(std::move(diagnostic), 1);
    }
  }
  for (auto& [diagnostic, count] : said) {
    const Span& at = diagnostic.primary.span;
    const bool inside = std::any_of(
        out->tree->pipelines.begin(), out->tree->pipelines.end(),
        [&](const ast::Pipeline& pipeline) { return pipeline.span.begin <= at.begin && at.end <= pipeline.span.end; });
    // What one pipeline does not use another may.
    if (diagnostic.kind != Kind::UnusedName || inside || count == names.size())
      out->found.push_back(std::move(diagnostic));
  }
  // Tests are compiled where the rest is good: what is wrong there would be said again.
  const bool good = std::none_of(out->found.begin(), out->found.end(),
                                 [](const Diagnostic& d) { return info(d.kind).severity != Severity::Lint; });
  constexpr size_t kMostTests = 20;  // while somebody types
  options.facts = nullptr;
  options.pipeline.clear();
  for (size_t i = 0; good && i < std::min(out->tree->tests.size(), kMostTests); ++i) {
    Diagnostics diags;
    if (auto test = compile_test(out->sources, out->file, i, all_ops(), diags, options); !test)
      for (Diagnostic& diagnostic : diags.sorted()) out->found.push_back(std::move(diagnostic));
  }
  return out;
}

std::string imported_path(const std::string& from, const ast::Import& import) {
  const std::string written = import.path.pieces.empty() ? "" : import.path.pieces[0];
  return (std::filesystem::path(from).parent_path() / written).lexically_normal().string();
}

}  // namespace zephon::lsp
