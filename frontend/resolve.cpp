// Declarations: who declares which name, values of parameters and constants, functions.
#include <algorithm>

#include "frontend/compiler.h"
#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"

namespace zephon {

// One name, one meaning: parameters, constants, functions and streams share one scope with the operators.
bool Compiler::claim(const ast::Name& name, std::string_view what) {
  auto [it, fresh] = claimed_.emplace(name.text, name.span);
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

void Compiler::declare(const ast::Declarations& declarations) {
  for (const ast::Let& let : declarations.lets)
    if (claim(let.name, "a constant")) lets_.emplace(let.name.text, LetEntry{&let, std::nullopt});
  for (const ast::Function& function : declarations.functions) {
    if (claim(function.name, "a function")) functions_.emplace(function.name.text, FunctionEntry{&function});
    for (size_t i = 0; i < function.parameters.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (function.parameters[i].name.text == function.parameters[k].name.text)
          error(Kind::DuplicateName, "`{}` is declared twice", function.parameters[i].name.text)
              .primary(function.parameters[i].name.span)
              .secondary(function.parameters[k].name.span, "the first")
              .emit();
  }
  for (const ast::Stream& stream : declarations.streams)
    if (claim(stream.name, "a stream")) streams_.emplace(stream.name.text, StreamEntry{&stream, std::nullopt});
}

void Compiler::declare_parameters(const ast::Pipeline& pipeline) {
  for (const ast::Parameter& parameter : pipeline.parameters)
    if (claim(parameter.name, "a parameter"))
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
  auto read = [&](const Field& field) { return add_field(program_.graph, ops_, field.name, field.type, place(span, frame)); };
  if (const Field* field = fields.find(path)) {
    if (frame.origins != nullptr)
      if (auto it = frame.origins->find(path); it != frame.origins->end()) operand.origin = it->second;
    if (field->type.poison) return operand;
    operand.kind = Operand::Kind::Dynamic;
    operand.expr = read(*field);
    if (const Field* missing = fields.find(missing_field(path))) operand.missing = read(*missing);
    while (const Field* lengths = fields.find(lengths_field(path, operand.lengths.size() + 1)))
      operand.lengths.push_back(read(*lengths));
    return operand;
  }
  for (const Field& field : fields.fields) {
    if (!field.name.starts_with(path + ".") || is_companion(field.name)) continue;
    std::string_view rest = std::string_view(field.name).substr(path.size() + 1);
    std::string member(rest.substr(0, rest.find('.')));
    if (!operand.members.empty() && operand.members.back().first == member) continue;
    operand.kind = Operand::Kind::Record;
    operand.members.emplace_back(member, *find_field(path + "." + member, span, frame));
  }
  if (!operand.is_record()) return std::nullopt;
  return operand;
}

std::optional<Operand> Compiler::find_name(const std::string& name, const Span& span, Frame& frame) {
  auto at = [&](Operand operand) {
    operand.span = span;
    return operand;
  };
  if (frame.arguments != nullptr)
    if (auto it = frame.arguments->find(name); it != frame.arguments->end()) return at(it->second);
  if (frame.fields != nullptr) {
    if (std::optional<Operand> field = find_field(name, span, frame)) return at(*field);
  }
  if (auto it = parameters_.find(name); it != parameters_.end()) return at(parameter(it->second));
  if (auto it = lets_.find(name); it != lets_.end()) return at(let(it->second));
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
  for (const auto& [name, entry] : parameters_) names.push_back(name);
  for (const auto& [name, entry] : lets_) names.push_back(name);
  return names;
}

Result<Program> Compiler::run(const ast::File& file) {
  ZEPHON_CHECK(file.pipelines.size() == 1, "{} pipelines", file.pipelines.size());
  pipeline_ = &file.pipelines[0];
  program_.name = pipeline_->name.text;
  declare_parameters(*pipeline_);
  declare(file.declarations);
  declare(pipeline_->declarations);

  std::optional<Flow> flow = lower_pipe(pipeline_->pipe, "");
  if (flow && pipeline_->contract && !flow->broken) check_contract(*pipeline_->contract, *flow);
  if (!diags_.has_errors()) lint_names();
  // What nothing uses is checked too, so that errors in it do not wait for their first use.
  for (auto& [name, entry] : parameters_) parameter(entry);
  for (auto& [name, entry] : lets_) let(entry);
  for (auto& [name, entry] : streams_)
    if (!entry.flow && !entry.failed) use_stream(entry, entry.syntax->name.span);
  if (std::optional<Reported> reported = diags_.reported()) return *reported;

  program_.graph.set_output(flow->node);
  find_needed();
  if (std::vector<std::string> problems = verify_graph(program_.graph); !problems.empty())
    return error(Kind::Internal, "the graph is not well formed: {}", problems[0]).emit();
  lint_steps();
  for (const ast::Parameter& parameter : pipeline_->parameters) {
    const ParameterEntry& entry = parameters_.at(parameter.name.text);
    program_.parameters.push_back({parameter.name.text, type_words(*parameter.type), to_string(entry.value->value),
                                   params_.contains(parameter.name.text), parameter.name.span});
  }
  for (const auto& [name, entry] : lets_)
    program_.lets.push_back(
        {name, type_text(*entry.value),
         entry.value->is_static()   ? to_string(entry.value->value)
         : entry.value->is_record() ? type_text(*entry.value)
                                    : to_text(program_.graph, entry.value->expr),
         entry.syntax->name.span});
  return std::move(program_);
}

Result<Program> compile(SourceMap& sources, FileId file, const std::map<std::string, std::string>& params,
                        const OpTable& ops, Diagnostics& diags) {
  std::string_view name = sources.name(file);
  bool yaml = name.ends_with(".yaml") || name.ends_with(".yml");
  Result<ast::File> tree = yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
  if (!tree) return tree.reported();
  return Compiler(sources, ops, params, diags).run(*tree);
}

}  // namespace zephon
