#include <fmt/format.h>

#include "graph/op_def.h"
#include "ops/file_io.h"

namespace zephon {
namespace {

Value define(DefineCall& call) {
  const std::string root = resolve_path(call.base_dir(), call.expr().attrs.text("root"));
  std::vector<FolderEntry> entries;
  if (const int error = list_folder(root, entries)) {
    Failure failure = cannot_read(root, error, {});
    return Value::failed(call.failure(failure.code, failure.message));
  }
  std::vector<std::string> names;
  for (FolderEntry& entry : entries) {
    if (!entry.is_folder || entry.name.starts_with('.')) continue;
    if (find_invalid_utf8(entry.name)) {
      return Value::failed(
          call.failure("R0404", fmt::format("the name of folder `{}` is not UTF-8", shown_path(entry.name))));
    }
    names.push_back(std::move(entry.name));
  }
  return Value::strings(Elem::Str, std::move(names));
}

}  // namespace

ZEPHON_OP_DEF(Dirs) = {
    .name = "dirs",
    .cls = OpClass::Leaf,
    .signature = "root: string -> str[?]",
    .summary = "The names of the folders in `root`, sorted by bytes: a constant of the data set.",
    .prose =
        "Names that begin with a dot are left out. A relative `root` starts at the program's folder. The folder is "
        "listed once, when the run begins.",
    .example =
        "files(\"examples/data/photos/*/*.jpg\")\n"
        "| label = dirs(\"examples/data/photos\").index_of(path.parent.name)",
    .effects = {.can_fail = true, .reads_files = true},
    .define = {.tensor = define},
};

}  // namespace zephon
