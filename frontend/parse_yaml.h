// The YAML form -> the same syntax tree as ZPL. The only door to yaml-cpp.
#pragma once

#include "frontend/ast.h"
#include "frontend/diag/diagnostic.h"

namespace zephon {

// grammar/README.md and grammar/pipeline.schema.json describe the form. Several errors are reported per run. Limits: 16
// MB of text, 64 levels, 100,000 nodes after aliases are replaced.
Result<ast::File> parse_yaml(const SourceMap& sources, FileId file, Diagnostics& diags);

}  // namespace zephon
