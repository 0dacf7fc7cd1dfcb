// The parameters of a program without their values: for those who help to type them.
#include "frontend/frontend.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"

namespace zephon {

std::vector<DeclaredParameter> declared_parameters(SourceMap& sources, FileId file) {
  Diagnostics unread;
  std::string_view name = sources.name(file);
  bool yaml = name.ends_with(".yaml") || name.ends_with(".yml");
  Result<ast::File> tree = yaml ? parse_yaml(sources, file, unread) : parse_zpl(sources, file, unread);
  std::vector<DeclaredParameter> out;
  if (!tree) return out;
  for (const ast::Pipeline& pipeline : tree->pipelines) {
    for (const ast::Parameter& parameter : pipeline.parameters) {
      DeclaredParameter declared{parameter.name.text, {}};
      if (parameter.type && parameter.type->kind == ast::Type::Kind::Enum)
        for (const ast::Name& value : parameter.type->values) declared.choices.push_back(value.text);
      if (parameter.type && parameter.type->name == "bool") declared.choices = {"true", "false"};
      out.push_back(std::move(declared));
    }
  }
  return out;
}

}  // namespace zephon
