// Declarations: who declares which name, values of parameters and constants, functions.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/compiler.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"

namespace zephon {

// One name, one meaning: parameters, constants, functions, streams and imports of a file share one scope with the
// operators.
bool Compiler::claim(Module& module, const ast::Name& name, std::string_view what) {
  auto [it, fresh] = module.claimed.emplace(name.text, name.span);
  if (!fresh) {
    error(Kind::DuplicateName, "`{}` is declared twice", name.text)
        .primary(name.span, "again as {}", what)
        .secondary(it->second, "the first")
        .emit();
    return false;
  }
  if (name.text == "seed") {
    error(Kind::DuplicateName, "`seed` is reserved: every pipeline has it")
        .primary(name.span)
        .hint("set it on the command line: `seed=7`")
        .emit();
    return false;
  }
  bool callable = what == "a function" || what == "a stream";
  if (callable && (ops_.find(name.text) != nullptr || elem_from_name(name.text))) {
    error(Kind::DuplicateName, "`{}` is an operator", name.text).primary(name.span, "declared here as {}", what).emit();
    return false;
  }
  return true;
}

void Compiler::declare(Module& module, const ast::Declarations& declarations) {
  for (const ast::Let& let : declarations.lets)
    if (claim(module, let.name, "a constant"))
      module.lets.emplace(let.name.text, LetEntry{&let, &module, std::nullopt});
  for (const ast::Function& function : declarations.functions) {
    if (claim(module, function.name, "a function"))
      module.functions.emplace(function.name.text, FunctionEntry{&function, &module});
    for (size_t i = 0; i < function.parameters.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (function.parameters[i].name.text == function.parameters[k].name.text)
          error(Kind::DuplicateName, "`{}` is declared twice", function.parameters[i].name.text)
              .primary(function.parameters[i].name.span)
              .secondary(function.parameters[k].name.span, "the first")
              .emit();
  }
  for (const ast::Stream& stream : declarations.streams)
    if (claim(module, stream.name, "a stream"))
      module.streams.emplace(stream.name.text, StreamEntry{&stream, &module, std::nullopt});
}

// ---- imports

Result<ast::File> parse_file(const SourceMap& sources, FileId file, Diagnostics& diags) {
  std::string_view name = sources.name(file);
  bool yaml = name.ends_with(".yaml") || name.ends_with(".yml");
  return yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
}

namespace {
std::optional<std::string> read_from_disk(const std::string& path, std::string& error) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    error = std::filesystem::exists(path, code) ? "it is not a file" : "there is no such file";
    return std::nullopt;
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    error = "it cannot be read";
    // An empty file inserts nothing, which is no failure.
    if (!in.is_open() || std::filesystem::file_size(path, code) != 0) return std::nullopt;
  }
  return text.str();
}
}  // namespace

void Compiler::import_files(Module& module) {
  for (const ast::Import& import : module.file.declarations.imports) {
    if (!claim(module, import.alias, "an import")) continue;
    if (Module* imported = load_module(import, module)) {
      module.imports.emplace(import.alias.text, ImportEntry{&import, imported});
      if (imported->prefix.empty()) imported->prefix = module.prefix + import.alias.text + ".";
    }
  }
}

Compiler::Module* Compiler::load_module(const ast::Import& import, const Module& from) {
  namespace fs = std::filesystem;
  const std::string& written = import.path.pieces[0];
  fs::path path = (fs::path(from.path).parent_path() / written).lexically_normal();
  for (size_t i = 0; i < loading_.size(); ++i) {
    if (loading_[i].first != path.string()) continue;
    std::string circle;
    for (size_t k = i; k < loading_.size(); ++k)
      circle += "`" + fs::path(loading_[k].first).filename().string() + "` -> ";
    auto builder = error(Kind::BadImport, "the imports form a circle: {}`{}`", circle, path.filename().string())
                       .primary(import.path.span, "leads back to where it began");
    for (size_t k = i + 1; k < loading_.size(); ++k)
      std::move(builder).secondary(loading_[k].second, "`{}` is imported here",
                                   fs::path(loading_[k].first).filename().string());
    std::move(builder).hint("let a third file declare what both need").emit();
    return nullptr;
  }
  if (auto it = modules_.find(path.string()); it != modules_.end()) return it->second.get();
  std::string why;
  std::optional<std::string> text =
      options_.read ? options_.read(path.string(), why) : read_from_disk(path.string(), why);
  if (!text) {
    error(Kind::BadImport, "`{}` cannot be imported: {}", written, why)
        .primary(import.path.span)
        .note("the path starts in the folder of the file that imports: `{}`", path.string())
        .emit();
    modules_.emplace(path.string(), nullptr);
    return nullptr;
  }
  FileId file = sources_.add(path.string(), *std::move(text));
  Result<ast::File> tree = parse_file(sources_, file, diags_);
  auto module = std::make_unique<Module>();
  Module& result = *module;
  result.path = path.string();
  if (!tree) {
    modules_.emplace(result.path, nullptr);
    return nullptr;
  }
  std::string folder = path.parent_path().lexically_relative(fs::path(root_->path).parent_path()).string();
  if (fs::path(root_->path).parent_path().empty()) folder = path.parent_path().string();
  if (!folder.empty() && folder != ".") result.folder = folder + "/";
  result.file = *std::move(tree);
  modules_.emplace(result.path, std::move(module));
  loading_.emplace_back(result.path, import.span);
  import_files(result);
  loading_.pop_back();
  declare(result, result.file.declarations);
  return &result;
}

Compiler::ImportEntry* Compiler::find_import(const ast::Expr& e, const Frame* frame) {
  if (e.kind != ast::Expr::Kind::Name) return nullptr;
  auto it = module_->imports.find(e.text);
  if (it == module_->imports.end()) return nullptr;
  if (frame != nullptr && frame->arguments != nullptr && frame->arguments->contains(e.text)) return nullptr;
  if (frame != nullptr && frame->fields != nullptr && frame->fields->find(e.text) != nullptr) return nullptr;
  it->second.used = true;
  note_use(e.span, it->second.syntax->alias.span);
  return &it->second;
}

template <class Entry>
Entry* Compiler::find_imported(ImportEntry& import, std::map<std::string, Entry> Module::*entries,
                               const ast::Name& name, std::string_view what) {
  Module& module = *import.module;
  auto it = (module.*entries).find(name.text);
  if (it != (module.*entries).end()) return &it->second;
  std::vector<std::string> names;
  for (const auto& [declared, entry] : module.*entries) names.push_back(declared);
  auto other = module.claimed.find(name.text);
  error(Kind::UnknownName, "`{}` declares no {} `{}`", module.path, what, name.text)
      .primary(name.span)
      .secondary(other == module.claimed.end() ? Span{} : other->second, "this is no {}", what)
      .secondary(import.syntax->span, "imported here")
      .hint_text(did_you_mean(name.text, names))
      .emit();
  return nullptr;
}

Operand Compiler::imported_constant(ImportEntry& import, const ast::Name& name) {
  LetEntry* entry = find_imported(import, &Module::lets, name, "constant");
  if (entry == nullptr) return {};
  note_use(name.span, entry->syntax->name.span);
  return let(*entry);
}

Compiler::FunctionEntry* Compiler::imported_function(ImportEntry& import, const ast::Name& name) {
  return find_imported(import, &Module::functions, name, "function");
}

Compiler::StreamEntry* Compiler::imported_stream(ImportEntry& import, const ast::Name& name) {
  return find_imported(import, &Module::streams, name, "stream");
}

Compiler::StreamEntry* Compiler::find_stream(const std::string& name) {
  size_t dot = name.find('.');
  if (dot == name.npos) {
    auto it = module_->streams.find(name);
    return it == module_->streams.end() ? nullptr : &it->second;
  }
  auto import = module_->imports.find(name.substr(0, dot));
  if (import == module_->imports.end()) return nullptr;
  import->second.used = true;
  auto it = import->second.module->streams.find(name.substr(dot + 1));
  return it == import->second.module->streams.end() ? nullptr : &it->second;
}

std::vector<std::string> Compiler::stream_names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : module_->streams) names.push_back(name);
  for (const auto& [alias, import] : module_->imports)
    for (const auto& [name, entry] : import.module->streams) names.push_back(alias + "." + name);
  return names;
}

void Compiler::declare_parameters(const ast::Pipeline& pipeline) {
  for (const ast::Parameter& parameter : pipeline.parameters)
    if (claim(*root_, parameter.name, "a parameter"))
      parameters_.emplace(parameter.name.text, ParameterEntry{&parameter, std::nullopt});
  std::vector<std::string> names = {"seed"};
  for (const auto& [name, entry] : parameters_) names.push_back(name);
  for (const auto& [name, text] : params_) {
    if (name == "seed") {
      std::optional<Rational> number = Rational::parse(text);
      if (number && number->to_int64() && !number->is_negative())
        program_.seed = static_cast<uint64_t>(*number->to_int64());
      else
        error(Kind::BadParameter, "`seed` is a whole number, not `{}`", text).emit();
    } else if (!parameters_.contains(name)) {
      error(Kind::BadParameter, "the pipeline has no parameter `{}`", name)
          .primary(pipeline.name.span)
          .hint_text(did_you_mean(name, names))
          .emit();
    }
  }
}

namespace {
std::string type_words(const ast::Type& type) {
  if (type.kind != ast::Type::Kind::Enum) return type.name;
  std::string text = "enum(";
  for (size_t i = 0; i < type.values.size(); ++i) text += (i == 0 ? "" : ", ") + type.values[i].text;
  return text + ")";
}
std::vector<std::string> choices_of(const ast::Type& type) {
  std::vector<std::string> choices;
  for (const ast::Name& value : type.values) choices.push_back(value.text);
  return choices;
}
bool is_parameter_type(const ast::Type& type) {
  return type.kind == ast::Type::Kind::Enum ||
         (type.kind == ast::Type::Kind::Named && !type.tensor && type.name != "bytes" &&
          (type.name == "int" || type.name == "float" || elem_from_name(type.name)));
}
// A number that a parameter of this type may hold. It stays exact until it meets another type.
bool holds(const ast::Type& type, const Rational& number) {
  std::optional<Elem> elem = elem_from_name(type.name == "int" ? "i64" : type.name == "float" ? "f64" : type.name);
  if (!elem || !is_numeric(*elem)) return false;
  if (is_float(*elem)) return number.to_float(*elem).has_value();
  IntegerLimits limits = limits_of(*elem);
  std::optional<int64_t> n = number.to_int64();
  return n && *n >= limits.least && *n <= limits.most;
}
// Any value of the type: a person who writes the program has not chosen one.
StaticValue stand_in(const ast::Type& type) {
  if (type.kind == ast::Type::Kind::Enum) {
    StaticValue value = StaticValue::of(type.values.empty() ? "" : type.values[0].text);
    value.kind = StaticValue::Kind::Enum;
    value.choices = choices_of(type);
    return value;
  }
  if (type.name == "bool") return StaticValue::of(false);
  if (type.name == "str" || type.name == "path")
    return StaticValue::of(std::string(), type.name == "str" ? Elem::Str : Elem::Path);
  return StaticValue::of(Rational(int64_t{1}));
}

}  // namespace

// A value from the command line.
std::optional<StaticValue> Compiler::parameter_value(const ast::Parameter& parameter, const std::string& text) {
  const ast::Type& type = *parameter.type;
  auto bad = [&](std::string_view what) {
    std::vector<std::string> choices = choices_of(type);
    error(Kind::BadParameter, "`{}={}`: {}", parameter.name.text, text, what)
        .primary(type.span, "the type of `{}`", parameter.name.text)
        .hint_text(did_you_mean(text, choices))
        .emit();
    return std::nullopt;
  };
  if (type.kind == ast::Type::Kind::Enum) {
    std::vector<std::string> choices = choices_of(type);
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      return bad("the value is none of the choices");
    StaticValue value = StaticValue::of(text);
    value.kind = StaticValue::Kind::Enum;
    value.choices = std::move(choices);
    return value;
  }
  if (type.name == "bool") {
    if (text != "true" && text != "false") return bad("the value is neither `true` nor `false`");
    return StaticValue::of(text == "true");
  }
  if (type.name == "str" || type.name == "path") {
    if (type.name == "str" && find_invalid_utf8(text)) return bad("the value is not UTF-8");
    return StaticValue::of(text, type.name == "str" ? Elem::Str : Elem::Path);
  }
  std::string digits = text;
  std::erase(digits, '_');
  std::optional<Rational> number = Rational::parse(digits);
  if (!number) return bad("the value is not a number");
  if (!holds(type, *number)) return bad(fmt::format("`{}` cannot hold the value", type.name));
  return StaticValue::of(*number);
}

// A default.
std::optional<StaticValue> Compiler::parameter_value(const ast::Parameter& parameter, const Operand& value) {
  const ast::Type& type = *parameter.type;
  bool fits = value.is_static() &&
              (type.kind == ast::Type::Kind::Enum ? value.value.kind == StaticValue::Kind::Enum
               : type.name == "bool"              ? value.value.kind == StaticValue::Kind::Bool
               : value.value.is_number()          ? holds(type, value.value.number)
                                         : value.value.is_string() && (type.name == "str" || type.name == "path"));
  if (!fits) {
    error(Kind::WrongType, "the default of `{}` is not of type `{}`", parameter.name.text, type_words(type))
        .primary(value.span, "this is {}",
                 value.is_static() ? std::string(kind_words(value.value)) : "not known before the run")
        .secondary(type.span, "declared here")
        .emit();
    return std::nullopt;
  }
  StaticValue result = value.value;
  if (result.is_string()) result.elem = type.name == "path" ? Elem::Path : Elem::Str;
  return result;
}

Operand Compiler::parameter(ParameterEntry& entry) {
  entry.used = true;
  if (entry.value) return *entry.value;
  const ast::Parameter& parameter = *entry.syntax;
  Operand result;
  result.span = parameter.name.span;
  std::optional<StaticValue> value;
  auto given = params_.find(parameter.name.text);
  if (!parameter.type || !is_parameter_type(*parameter.type)) {
    error(Kind::WrongType, "the parameter `{}` needs a type that the command line can give", parameter.name.text)
        .primary(parameter.type ? parameter.type->span : parameter.name.span)
        .hint("`int`, `float`, `bool`, `str`, `path`, `enum(a, b)`, or a type of number such as `f32`")
        .emit();
  } else if (entry.open) {
    error(Kind::Recursion, "the default of `{}` needs itself", parameter.name.text).primary(parameter.name.span).emit();
  } else if (given != params_.end()) {
    value = parameter_value(parameter, given->second);
  } else if (!parameter.default_value && options_.facts != nullptr) {
    value = stand_in(*parameter.type);
  } else if (!parameter.default_value) {
    error(Kind::BadParameter, "the parameter `{}` has no value", parameter.name.text)
        .primary(parameter.name.span)
        .hint("set it on the command line: `{}=...`", parameter.name.text)
        .emit();
  } else if (parameter.type->kind == ast::Type::Kind::Enum && parameter.default_value->kind == ast::Expr::Kind::Name) {
    std::vector<std::string> choices = choices_of(*parameter.type);
    const std::string& text = parameter.default_value->text;
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      error(Kind::UnknownName, "`{}` is none of the choices of `{}`", text, parameter.name.text)
          .primary(parameter.default_value->span)
          .secondary(parameter.type->span, "the choices")
          .hint_text(did_you_mean(text, choices))
          .emit();
    } else {
      value = StaticValue::of(text);
      value->kind = StaticValue::Kind::Enum;
      value->choices = std::move(choices);
    }
  } else {
    entry.open = true;
    Frame frame;
    frame.constant = true;
    Operand evaluated = evaluate(*parameter.default_value, frame);
    entry.open = false;
    if (!evaluated.is_poison()) value = parameter_value(parameter, evaluated);
  }
  if (value) {
    result.kind = Operand::Kind::Static;
    result.value = *std::move(value);
  }
  entry.value = result;
  return result;
}

Operand Compiler::let(LetEntry& entry) {
  entry.used = true;
  if (entry.value) return *entry.value;
  if (entry.open) {
    error(Kind::Recursion, "the constant `{}` needs itself", entry.syntax->name.text)
        .primary(entry.syntax->name.span)
        .emit();
    return {};
  }
  entry.open = true;
  Inside inside(*this, entry.home);
  Frame frame;
  frame.constant = true;
  Operand value = evaluate(entry.syntax->value, frame);
  entry.open = false;
  entry.value = value;
  return value;
}

std::optional<Operand> Compiler::find_field(const std::string& path, const Span& span, const Frame& frame) {
  const StreamType& fields = *frame.fields;
  Operand operand;
  operand.name = path;
  operand.span = span;
  auto read = [&](const Field& field) {
    return add_field(program_.graph, ops_, field.name, field.type, place(span, frame));
  };
  if (const Field* field = fields.find(path)) {
    if (frame.origins != nullptr)
      if (auto it = frame.origins->find(path); it != frame.origins->end()) operand.origin = it->second;
    if (field->type.poison) return operand;
    operand.kind = Operand::Kind::Dynamic;
    operand.expr = read(*field);
    if (!fields.fields.has_companions()) return operand;
    if (const Field* missing = fields.find(missing_field(path))) operand.missing = read(*missing);
    while (const Field* lengths = fields.find(lengths_field(path, operand.lengths.size() + 1)))
      operand.lengths.push_back(read(*lengths));
    return operand;
  }
  const std::string inside = path + ".";
  for (const Field& field : fields.fields) {
    if (!field.name.starts_with(inside) || is_companion(field.name)) continue;
    std::string_view rest = std::string_view(field.name).substr(path.size() + 1);
    std::string member(rest.substr(0, rest.find('.')));
    if (!operand.members.empty() && operand.members.back().name == member) continue;
    operand.kind = Operand::Kind::Record;
    operand.members.push_back({member, *find_field(path + "." + member, span, frame)});
  }
  if (!operand.is_record()) return std::nullopt;
  return operand;
}

std::optional<Operand> Compiler::find_name(const std::string& name, const Span& span, Frame& frame) {
  auto at = [&](Operand operand, const Span& declared = {}) {
    operand.span = span;
    if (!frame.here.valid()) note_use(span, declared);
    return operand;
  };
  if (frame.arguments != nullptr)
    if (auto it = frame.arguments->find(name); it != frame.arguments->end()) return at(it->second);
  if (frame.fields != nullptr) {
    if (std::optional<Operand> field = find_field(name, span, frame)) {
      const Span origin = field->origin;
      return at(*std::move(field), origin);
    }
  }
  if (module_ == root_)
    if (auto it = parameters_.find(name); it != parameters_.end())
      return at(parameter(it->second), it->second.syntax->name.span);
  if (auto it = module_->lets.find(name); it != module_->lets.end())
    return at(let(it->second), it->second.syntax->name.span);
  if (name == "seed") {
    Operand seed;
    seed.kind = Operand::Kind::Static;
    seed.value = StaticValue::of(Rational(static_cast<int64_t>(program_.seed)));
    return at(seed);
  }
  return std::nullopt;
}

std::vector<std::string> Compiler::visible_names(const Frame& frame) const {
  std::vector<std::string> names;
  if (frame.arguments != nullptr)
    for (const auto& [name, value] : *frame.arguments) names.push_back(name);
  if (frame.fields != nullptr)
    for (const Field& field : frame.fields->fields)
      if (!field.name.starts_with('$') && !is_companion(field.name))
        names.push_back(field.name.substr(0, field.name.find('.')));
  if (module_ == root_)
    for (const auto& [name, entry] : parameters_) names.push_back(name);
  for (const auto& [name, entry] : module_->lets) names.push_back(name);
  return names;
}

// The one that is asked for, or the only one.
const ast::Pipeline* Compiler::choose_pipeline(const ast::File& file) {
  std::vector<std::string> names;
  std::string all;
  for (const ast::Pipeline& pipeline : file.pipelines) {
    for (const ast::Pipeline& other : file.pipelines) {
      if (&other == &pipeline) break;
      if (other.name.text == pipeline.name.text)
        error(Kind::DuplicateName, "two pipelines are called `{}`", pipeline.name.text)
            .primary(pipeline.name.span)
            .secondary(other.name.span, "the first")
            .emit();
    }
    names.push_back(pipeline.name.text);
    all += (all.empty() ? "`" : ", `") + pipeline.name.text + "`";
  }
  Span end{file.file, static_cast<uint32_t>(sources_.text(file.file).size()),
           static_cast<uint32_t>(sources_.text(file.file).size())};
  if (file.pipelines.empty()) {
    error(Kind::WhichPipeline, "the file has no pipeline")
        .primary(end)
        .hint("a pipeline is a source and its steps: `files(\"cats/*.jpg\") | batch(8)`")
        .emit();
    return nullptr;
  }
  for (const ast::Pipeline& pipeline : file.pipelines)
    if (!options_.pipeline.empty() && pipeline.name.text == options_.pipeline) return &pipeline;
  if (!options_.pipeline.empty()) {
    auto builder = error(Kind::WhichPipeline, "the file has no pipeline `{}`", options_.pipeline)
                       .hint_text(did_you_mean(options_.pipeline, names));
    if (names.size() == 1 && names[0].empty())
      std::move(builder).note("its only pipeline has no name").emit();
    else
      std::move(builder).note("it has {}", all).emit();
    return nullptr;
  }
  if (file.pipelines.size() == 1) return &file.pipelines[0];
  std::string path(sources_.name(file.file));
  error(Kind::WhichPipeline, "the file has {} pipelines: {}", names.size(), all)
      .primary(file.pipelines[1].name.span, "the second")
      .secondary(file.pipelines[0].name.span, "the first")
      .hint("name one: `{}:{}`, or `--pipeline {}`", path, names[0], names[0])
      .emit();
  return nullptr;
}

// Of a file that others import.
Result<Program> Compiler::check_declarations() {
  loading_.emplace_back(root_->path, Span{});
  import_files(*root_);
  if (std::optional<Reported> reported = diags_.reported()) return *reported;
  declare(*root_, root_->file.declarations);
  for (auto& [name, entry] : root_->lets) let(entry);
  for (auto& [name, entry] : root_->streams)
    if (!entry.flow && !entry.failed) use_stream(entry, entry.syntax->name.span);
  if (std::optional<Reported> reported = diags_.reported()) return *reported;
  return std::move(program_);
}

Result<Program> Compiler::run(ast::File file) {
  auto root = std::make_unique<Module>();
  root_ = module_ = root.get();
  root_->path = std::filesystem::path(sources_.name(file.file)).lexically_normal().string();
  root_->file = std::move(file);
  modules_.emplace(root_->path, std::move(root));
  const ast::Declarations& own = root_->file.declarations;
  if (options_.facts != nullptr && root_->file.pipelines.empty() &&
      !(own.imports.empty() && own.lets.empty() && own.functions.empty() && own.streams.empty()))
    return check_declarations();
  pipeline_ = choose_pipeline(root_->file);
  if (pipeline_ == nullptr) return *diags_.reported();
  program_.name = pipeline_->name.text;
  declare_parameters(*pipeline_);
  loading_.emplace_back(root_->path, Span{});
  // Without what was to be imported every use of it would be an error of its own.
  size_t errors = diags_.error_count();
  import_files(*root_);
  if (diags_.error_count() > errors) return *diags_.reported();
  declare(*root_, root_->file.declarations);
  declare(*root_, pipeline_->declarations);

  std::optional<Flow> flow = lower_pipe(pipeline_->pipe, "");
  if (flow && pipeline_->contract && !flow->broken) check_contract(*pipeline_->contract, *flow, &program_.contract);
  if (!diags_.has_errors()) lint_names();
  // What nothing uses is checked too, so that errors in it do not wait for their first use.
  for (auto& [name, entry] : parameters_) parameter(entry);
  for (auto& [name, entry] : root_->lets) let(entry);
  for (auto& [name, entry] : root_->streams)
    if (!entry.flow && !entry.failed) use_stream(entry, entry.syntax->name.span);
  if (std::optional<Reported> reported = diags_.reported()) return *reported;

  for (const auto& [path, module] : modules_)
    if (module.get() != root_) program_.imports.push_back(path);
  program_.graph.set_output(flow->node);
  find_needed();
  check_caches();
  if (std::optional<Reported> reported = diags_.reported()) return *reported;
  if (std::vector<std::string> problems = verify_graph(program_.graph); !problems.empty())
    return error(Kind::Internal, "the graph is not well formed: {}", problems[0]).emit();
  lint_steps();
  for (const ast::Parameter& parameter : pipeline_->parameters) {
    const ParameterEntry& entry = parameters_.at(parameter.name.text);
    program_.parameters.push_back({parameter.name.text, type_words(*parameter.type), to_string(entry.value->value),
                                   params_.contains(parameter.name.text), parameter.name.span, {}});
    if (!entry.chooses) continue;
    for (const std::string& choice :
         parameter.type->name == "bool" ? std::vector<std::string>{"false", "true"} : choices_of(*parameter.type))
      if (choice != program_.parameters.back().value) program_.parameters.back().others.push_back(choice);
  }
  for (const auto& [name, entry] : root_->lets)
    program_.lets.push_back({name, type_text(*entry.value),
                             entry.value->is_static()   ? to_string(entry.value->value)
                             : entry.value->is_record() ? type_text(*entry.value)
                                                        : to_text(program_.graph, entry.value->expr),
                             entry.syntax->name.span});
  return std::move(program_);
}

Result<Program> compile(SourceMap& sources, FileId file, const std::map<std::string, std::string>& params,
                        const OpTable& ops, Diagnostics& diags, const CompileOptions& options) {
  Result<ast::File> tree = parse_file(sources, file, diags);
  if (!tree) return tree.reported();
  return compile(sources, *std::move(tree), params, ops, diags, options);
}

Result<Program> compile(SourceMap& sources, ast::File tree, const std::map<std::string, std::string>& params,
                        const OpTable& ops, Diagnostics& diags, const CompileOptions& options) {
  return Compiler(sources, ops, params, diags, options).run(std::move(tree));
}

Result<std::vector<std::string>> pipeline_names(const SourceMap& sources, FileId file, Diagnostics& diags) {
  Result<ast::File> tree = parse_file(sources, file, diags);
  if (!tree) return tree.reported();
  std::vector<std::string> names;
  for (const ast::Pipeline& pipeline : tree->pipelines) names.push_back(pipeline.name.text);
  return names;
}

}  // namespace zephon
