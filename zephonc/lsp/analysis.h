#pragma once
// What the front end says of one text. Never changes once made, so that any thread may read it.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/ast.h"
#include "frontend/diag/diagnostic.h"
#include "frontend/facts.h"
#include "zephonc/lsp/text.h"

namespace zephon::lsp {

struct Analysis {
  std::string name;  ///< path of the file
  std::shared_ptr<const Text> text;
  SourceMap sources;
  FileId file;
  std::optional<ast::File> tree;  ///< none where the text does not parse
  Facts facts;
  std::vector<Diagnostic> found;
  std::map<std::string, std::string> imported;  ///< texts of the files that it read, by path; empty: cannot be read
};

/// An imported file: its text, or nothing and why.
using ReadImport = std::function<std::optional<std::string>(const std::string& path, std::string& error)>;

/// Every pipeline of the file, or what it declares where there is none. `name` says the form.
std::shared_ptr<const Analysis> analyse(const std::string& name, std::shared_ptr<const Text> text,
                                        const ReadImport& read);

Result<ast::File> parse(const SourceMap& sources, FileId file, Diagnostics& diags);

/// The file that `import` means, seen from the file `from`.
std::string imported_path(const std::string& from, const ast::Import& import);

}  // namespace zephon::lsp
