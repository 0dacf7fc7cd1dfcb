// Values known before the run: exact arithmetic, and static arguments of operators.
#include <algorithm>

#include "frontend/compiler.h"

namespace zephon {

StaticValue StaticValue::of(Rational number) {
  StaticValue value;
  value.number = std::move(number);
  return value;
}
StaticValue StaticValue::of(bool flag) {
  StaticValue value;
  value.kind = Kind::Bool;
  value.flag = flag;
  return value;
}
StaticValue StaticValue::of(std::string text, Elem elem) {
  StaticValue value;
  value.kind = Kind::String;
  value.text = std::move(text);
  value.elem = elem;
  return value;
}

std::string to_string(const StaticValue& value) {
  switch (value.kind) {
    case StaticValue::Kind::Number:
      return value.number.to_string();
    case StaticValue::Kind::Bool:
      return value.flag ? "true" : "false";
    case StaticValue::Kind::String:
    case StaticValue::Kind::Enum:
      return value.text;
    case StaticValue::Kind::Elem:
      return std::string(elem_name(value.elem));
    case StaticValue::Kind::Schema:
      return to_string(Attr(value.schema));
    case StaticValue::Kind::List:
      break;
  }
  std::string text = "[";
  for (size_t i = 0; i < value.items.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(value.items[i]);
  return text + "]";
}

std::string_view kind_words(const StaticValue& value) {
  switch (value.kind) {
    case StaticValue::Kind::Number:
      return value.number.is_integer() ? "a whole number" : "a number";
    case StaticValue::Kind::Bool:
      return "a `bool`";
    case StaticValue::Kind::String:
      return value.elem == Elem::Path ? "a path" : "a string";
    case StaticValue::Kind::Enum:
      return "a choice";
    case StaticValue::Kind::List:
      return "a list";
    case StaticValue::Kind::Elem:
      return "a type";
    case StaticValue::Kind::Schema:
      return "a schema";
  }
  return "";
}

StaticValue from_attr(const Attr& attr) {
  auto list = [](const auto& items, auto convert) {
    StaticValue value;
    value.kind = StaticValue::Kind::List;
    for (const auto& item : items) value.items.push_back(convert(item));
    return value;
  };
  auto integer = [](int64_t n) { return StaticValue::of(Rational(n)); };
  auto real = [](double x) { return StaticValue::of(Rational::of_double(x)); };
  auto text = [](const std::string& s) { return StaticValue::of(s); };
  if (const auto* flag = std::get_if<bool>(&attr)) return StaticValue::of(*flag);
  if (const auto* n = std::get_if<int64_t>(&attr)) return integer(*n);
  if (const auto* x = std::get_if<double>(&attr)) return real(*x);
  if (const auto* s = std::get_if<std::string>(&attr)) return text(*s);
  if (const auto* ns = std::get_if<std::vector<int64_t>>(&attr)) return list(*ns, integer);
  if (const auto* xs = std::get_if<std::vector<double>>(&attr)) return list(*xs, real);
  if (const auto* ss = std::get_if<std::vector<std::string>>(&attr)) return list(*ss, text);
  StaticValue value;
  if (const auto* elem = std::get_if<Elem>(&attr)) {
    value.kind = StaticValue::Kind::Elem;
    value.elem = *elem;
  } else {
    value.kind = StaticValue::Kind::Schema;
    value.schema = std::get<Schema>(attr);
  }
  return value;
}

namespace {
Operand static_operand(StaticValue value, const Span& span) {
  Operand operand;
  operand.kind = Operand::Kind::Static;
  operand.value = std::move(value);
  operand.span = span;
  return operand;
}
}  // namespace

Operand Compiler::fold_unary(const ast::Expr& e, const Operand& x, Frame& frame) {
  if (e.text == "-" && x.value.is_number()) return static_operand(StaticValue::of(-x.value.number), e.span);
  if (e.text == "-" && x.value.kind == StaticValue::Kind::List &&
      std::all_of(x.value.items.begin(), x.value.items.end(), [](const StaticValue& v) { return v.is_number(); })) {
    StaticValue list = x.value;
    for (StaticValue& item : list.items) item.number = -item.number;
    return static_operand(std::move(list), e.span);
  }
  if (e.text == "not" && x.value.kind == StaticValue::Kind::Bool)
    return static_operand(StaticValue::of(!x.value.flag), e.span);
  error(Kind::WrongType, "`{}` needs {}, found {}", e.text, e.text == "-" ? "a number" : "`bool`", kind_words(x.value))
      .primary(place(x.span, frame))
      .emit();
  return {};
}

// Nullopt where the pair is not for folding (a list with a number): the graph does it.
std::optional<Operand> Compiler::fold_binary(const ast::Expr& e, const Operand& a, const Operand& b, Frame& frame) {
  const std::string& sign = e.text;
  const StaticValue& x = a.value;
  const StaticValue& y = b.value;
  auto give = [&](StaticValue value) { return static_operand(std::move(value), e.span); };
  auto ordered = [&](std::strong_ordering order) {
    return give(StaticValue::of(sign == "=="   ? order == 0
                                : sign == "!=" ? order != 0
                                : sign == "<"  ? order < 0
                                : sign == "<=" ? order <= 0
                                : sign == ">"  ? order > 0
                                               : order >= 0));
  };
  bool comparison = sign == "==" || sign == "!=" || sign == "<" || sign == "<=" || sign == ">" || sign == ">=";
  if (x.kind == StaticValue::Kind::List || y.kind == StaticValue::Kind::List) return std::nullopt;
  if (x.is_number() && y.is_number()) {
    if (comparison) return ordered(x.number <=> y.number);
    bool divides = sign == "/" || sign == "//" || sign == "%";
    if (divides && y.number.is_zero()) {
      error(Kind::DivisionByZero, "a constant is divided by zero")
          .primary(place(b.span, frame), "this is 0")
          .secondary(place(e.text_span, frame), "the division")
          .emit();
      return Operand{};
    }
    if (sign != "and" && sign != "or") {
      Rational result = sign == "+"    ? x.number + y.number
                        : sign == "-"  ? x.number - y.number
                        : sign == "*"  ? x.number * y.number
                        : sign == "/"  ? x.number / y.number
                        : sign == "//" ? (x.number / y.number).floor()
                                       : x.number - y.number * (x.number / y.number).floor();
      if (result.is_huge()) {
        error(Kind::LiteralRange, "the constant has too many digits").primary(place(e.span, frame)).emit();
        return Operand{};
      }
      return give(StaticValue::of(std::move(result)));
    }
  }
  if (x.kind == StaticValue::Kind::Bool && y.kind == StaticValue::Kind::Bool) {
    if (sign == "and") return give(StaticValue::of(x.flag && y.flag));
    if (sign == "or") return give(StaticValue::of(x.flag || y.flag));
    if (comparison) return ordered(x.flag <=> y.flag);
  }
  bool texts =
      (x.is_string() && y.is_string()) ||
      (x.kind == StaticValue::Kind::Enum && y.kind == StaticValue::Kind::Enum && (sign == "==" || sign == "!=")) ||
      (x.kind == StaticValue::Kind::Enum && y.is_string()) || (x.is_string() && y.kind == StaticValue::Kind::Enum);
  if (comparison && texts) return ordered(x.text <=> y.text);
  if (sign == "+" && x.is_string() && y.is_string())
    return give(
        StaticValue::of(x.text + y.text, x.elem == Elem::Path || y.elem == Elem::Path ? Elem::Path : Elem::Str));
  error(Kind::WrongType, "`{}` cannot take {} and {}", sign, kind_words(x), kind_words(y))
      .primary(place(e.text_span, frame))
      .secondary(frame.here.valid() ? Span{} : a.span, "{}", kind_words(x))
      .secondary(frame.here.valid() ? Span{} : b.span, "{}", kind_words(y))
      .emit();
  return Operand{};
}

std::optional<Schema> Compiler::schema(const ast::Expr& e, Frame& frame) {
  Schema schema;
  for (const ast::SchemaField& field : e.fields) {
    for (const Field& other : schema.columns)
      if (other.name == field.name.text) {
        error(Kind::DuplicateName, "`{}` is declared twice", field.name.text).primary(field.name.span).emit();
        return std::nullopt;
      }
    std::map<std::string, Dim> symbols;
    std::vector<DeclaredLeaf> leaves;
    if (!declared_leaves(field.type, field.name.text, frame, symbols, leaves)) return std::nullopt;
    for (DeclaredLeaf& leaf : leaves) schema.columns.push_back({std::move(leaf.path), std::move(leaf.element)});
  }
  return schema;
}

std::optional<Attr> Compiler::static_attr(const OpDef& op, const Parameter& parameter, const ast::Expr& e,
                                          Frame& frame) {
  // Choices and element types are names that nothing declares.
  if (parameter.static_kind == StaticKind::Enum && e.kind == ast::Expr::Kind::Name &&
      std::find(parameter.choices.begin(), parameter.choices.end(), e.text) != parameter.choices.end())
    return Attr(e.text);
  if (parameter.static_kind == StaticKind::Elem && e.kind == ast::Expr::Kind::Name)
    if (std::optional<Elem> elem = elem_from_name(e.text)) return Attr(*elem);
  if (parameter.static_kind == StaticKind::Column && e.kind == ast::Expr::Kind::Name) return Attr(e.text);
  if (parameter.static_kind == StaticKind::Schema && e.kind == ast::Expr::Kind::Schema) {
    std::optional<Schema> columns = schema(e, frame);
    if (!columns) return std::nullopt;
    return Attr(*std::move(columns));
  }
  if (parameter.static_kind == StaticKind::Enum && e.kind == ast::Expr::Kind::Name) {
    Frame probe = frame;
    if (!find_name(e.text, e.span, probe)) {
      std::string all;
      for (const std::string& choice : parameter.choices) all += (all.empty() ? "`" : ", `") + choice + "`";
      std::string hint = did_you_mean(e.text, parameter.choices);
      auto builder = error(Kind::WrongType, "`{}` of `{}` is one of {}", parameter.name, op.name, all);
      std::move(builder).primary(place(e.span, frame)).hint_text(std::move(hint)).emit();
      return std::nullopt;
    }
  }
  Operand x = evaluate(e, frame);
  if (x.is_poison()) return std::nullopt;
  if (!x.is_static()) {
    error(Kind::NotConstant, "`{}` of `{}` must be known before the run", parameter.name,
          op.surface.empty() ? op.name : op.surface)
        .primary(place(e.span, frame), "this is `{}`, known only while running", type_text(x))
        .secondary(x.origin, "`{}` is assigned here", x.name)
        .emit();
    return std::nullopt;
  }
  return to_attr(op, parameter, x.value, place(e.span, frame));
}

std::optional<Attr> Compiler::to_attr(const OpDef& op, const Parameter& parameter, const StaticValue& value,
                                      const Span& span) {
  std::string_view called = op.surface.empty() ? op.name : op.surface;
  auto needs = [&](std::string_view what) -> std::optional<Attr> {
    error(Kind::WrongType, "`{}` of `{}` needs {}, found {}", parameter.name, called, what, kind_words(value))
        .primary(span)
        .emit();
    return std::nullopt;
  };
  auto too_small = [&](const StaticValue& v) {
    if (!parameter.at_least || v.number >= Rational(*parameter.at_least)) return false;
    error(Kind::LiteralRange, "`{}` of `{}` is at least {}, found {}", parameter.name, called, *parameter.at_least,
          v.number.to_string())
        .primary(span)
        .emit();
    return true;
  };
  // A single value stands for a list of one.
  std::vector<StaticValue> items =
      value.kind == StaticValue::Kind::List ? value.items : std::vector<StaticValue>{value};
  switch (parameter.static_kind) {
    case StaticKind::Int:
      if (!value.is_number() || !value.number.to_int64()) return needs("a whole number");
      if (too_small(value)) return std::nullopt;
      return Attr(*value.number.to_int64());
    case StaticKind::Number: {
      if (!value.is_number()) return needs("a number");
      if (too_small(value)) return std::nullopt;
      std::optional<double> x = value.number.to_float(Elem::F64);
      return x ? std::optional<Attr>(*x) : needs("a number of `f64`");
    }
    case StaticKind::Bool:
      if (value.kind != StaticValue::Kind::Bool) return needs("`true` or `false`");
      return Attr(value.flag);
    case StaticKind::Column:
      if (!value.is_string()) return needs("a string");
      return Attr(value.text);
    case StaticKind::String:
      if (!value.is_string()) return needs("a string");
      // A path in an imported file starts in the folder of that file.
      if (bool path = op.effects.reads_files || op.cls == OpClass::Source;
          path && !parameter.default_value && !value.folder.empty() && !value.text.starts_with('/'))
        return Attr(value.folder + value.text);
      return Attr(value.text);
    case StaticKind::Ints: {
      std::vector<int64_t> list;
      for (const StaticValue& item : items) {
        if (!item.is_number() || !item.number.to_int64()) return needs("whole numbers");
        if (too_small(item)) return std::nullopt;
        list.push_back(*item.number.to_int64());
      }
      return Attr(std::move(list));
    }
    case StaticKind::Numbers: {
      std::vector<double> list;
      for (const StaticValue& item : items) {
        std::optional<double> x = item.is_number() ? item.number.to_float(Elem::F64) : std::nullopt;
        if (!x) return needs("numbers");
        list.push_back(*x);
      }
      return Attr(std::move(list));
    }
    case StaticKind::Strings: {
      std::vector<std::string> list;
      for (const StaticValue& item : items) {
        if (!item.is_string()) return needs("strings");
        list.push_back(item.text);
      }
      return Attr(std::move(list));
    }
    case StaticKind::Enum: {
      bool text = value.is_string() || value.kind == StaticValue::Kind::Enum;
      if (text && std::find(parameter.choices.begin(), parameter.choices.end(), value.text) != parameter.choices.end())
        return Attr(value.text);
      std::string all;
      for (const std::string& choice : parameter.choices) all += (all.empty() ? "`" : ", `") + choice + "`";
      error(Kind::WrongType, "`{}` of `{}` is one of {}", parameter.name, called, all)
          .primary(span)
          .hint_text(text ? did_you_mean(value.text, parameter.choices) : "")
          .emit();
      return std::nullopt;
    }
    case StaticKind::Elem:
      if (value.kind != StaticValue::Kind::Elem) return needs("a type, such as `f32`");
      return Attr(value.elem);
    case StaticKind::Schema:
      if (value.kind != StaticValue::Kind::Schema) return needs("a schema, such as `{a: f32, b: str}`");
      return Attr(value.schema);
    case StaticKind::None:
      break;
  }
  return std::nullopt;
}

}  // namespace zephon
