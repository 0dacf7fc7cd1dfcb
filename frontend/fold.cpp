// Values known before the run: exact arithmetic, and static arguments of operators.
#include <algorithm>
#include <cmath>

#include "frontend/compiler.h"
#include "graph/constants.h"

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

// The value, or every value in the lists that it is.
bool all_are(const StaticValue& value, StaticValue::Kind kind) {
  if (value.kind != StaticValue::Kind::List) return value.kind == kind;
  return std::all_of(value.items.begin(), value.items.end(), [&](const StaticValue& v) { return all_are(v, kind); });
}

// Lists around the first value.
size_t depth_of(const StaticValue& value) {
  if (value.kind != StaticValue::Kind::List) return 0;
  return value.items.empty() ? 1 : 1 + depth_of(value.items[0]);
}
}  // namespace

Operand Compiler::fold_unary(const ast::Expr& e, const Operand& x, Frame& frame) {
  if (e.text == "-" && x.value.is_number()) return static_operand(StaticValue::of(-x.value.number), e.span);
  const StaticValue::Kind leaf = e.text == "-" ? StaticValue::Kind::Number : StaticValue::Kind::Bool;
  if (x.value.kind == StaticValue::Kind::List && all_are(x.value, leaf)) {
    auto each = [](const auto& self, StaticValue& value) -> void {
      value.flag = !value.flag;
      value.number = -value.number;
      for (StaticValue& item : value.items) self(self, item);
    };
    StaticValue list = x.value;
    each(each, list);
    return static_operand(std::move(list), e.span);
  }
  if (e.text == "not" && x.value.kind == StaticValue::Kind::Bool)
    return static_operand(StaticValue::of(!x.value.flag), e.span);
  error(Kind::WrongType, "`{}` needs {}, found {}", e.text, e.text == "-" ? "a number" : "`bool`", kind_words(x.value))
      .primary(place(x.span, frame))
      .emit();
  return {};
}

// Element by element, as the graph would: lists are aligned at their innermost level, and one element stands for all.
// Nullopt where they hold anything but numbers, or truth values, alone.
std::optional<Operand> Compiler::fold_lists(const ast::Expr& e, const Operand& a, const Operand& b, Frame& frame) {
  const StaticValue::Kind kind =
      e.text == "and" || e.text == "or" ? StaticValue::Kind::Bool : StaticValue::Kind::Number;
  if (!all_are(a.value, kind) || !all_are(b.value, kind)) return std::nullopt;
  auto holds_zero = [](const auto& self, const StaticValue& value) -> bool {
    if (value.is_number()) return value.number.is_zero();
    return std::any_of(value.items.begin(), value.items.end(), [&](const StaticValue& v) { return self(self, v); });
  };
  if (b.value.kind == StaticValue::Kind::List && (e.text == "/" || e.text == "//" || e.text == "%") &&
      holds_zero(holds_zero, b.value)) {
    error(Kind::DivisionByZero, "a constant is divided by zero")
        .primary(place(b.span, frame), "this holds a 0")
        .secondary(place(e.text_span, frame), "the division")
        .emit();
    return Operand{};
  }
  bool ragged = false;
  auto each = [&](const auto& self, const StaticValue& x, const StaticValue& y) -> std::optional<StaticValue> {
    const size_t left = depth_of(x), right = depth_of(y);
    if (left == 0 && right == 0) {
      std::optional<Operand> leaf = fold_binary(e, static_operand(x, a.span), static_operand(y, b.span), frame);
      if (!leaf || leaf->is_poison()) return std::nullopt;
      return std::move(leaf->value);
    }
    const size_t n = x.items.size(), m = y.items.size();
    if (left == right && n != m && n != 1 && m != 1) {
      error(Kind::ShapeMismatch, "`{}` takes lists of the same length, found {} and {}", e.text, n, m)
          .primary(place(e.text_span, frame))
          .secondary(frame.here.valid() ? Span{} : a.span, "length {}", n)
          .secondary(frame.here.valid() ? Span{} : b.span, "length {}", m)
          .emit();
      return std::nullopt;
    }
    StaticValue list;
    list.kind = StaticValue::Kind::List;
    const size_t size = left > right || (left == right && m == 1) ? n : m;
    for (size_t i = 0; i < size; ++i) {
      const StaticValue& of_x = left < right ? x : x.items[n == 1 ? 0 : i];
      const StaticValue& of_y = right < left ? y : y.items[m == 1 ? 0 : i];
      ragged = ragged || depth_of(of_x) != depth_of(left < right ? x : x.items[0]) ||
               depth_of(of_y) != depth_of(right < left ? y : y.items[0]);
      if (ragged) return std::nullopt;
      std::optional<StaticValue> item = self(self, of_x, of_y);
      if (!item) return std::nullopt;
      list.items.push_back(*std::move(item));
    }
    return list;
  };
  std::optional<StaticValue> value = each(each, a.value, b.value);
  if (ragged) return std::nullopt;  // said where the lists become a tensor
  if (!value) return Operand{};
  return static_operand(*std::move(value), e.span);
}

// An element or a part of a list at places known before the run. Nullopt where they are not, or where the list holds
// anything but numbers, or truth values, alone; the frame is then as it was.
std::optional<Operand> Compiler::fold_index(const Operand& x, const ast::Expr& e, Frame& frame) {
  if (!all_are(x.value, StaticValue::Kind::Number) && !all_are(x.value, StaticValue::Kind::Bool)) return std::nullopt;
  const size_t count = e.operands.size() - 1;
  if (count > depth_of(x.value)) return std::nullopt;
  struct Subscript {
    const ast::Expr* written;
    std::optional<int64_t> numbers[3];  // the place; or begin, end and step, as far as they are given
  };
  std::vector<Subscript> subscripts;
  const Frame before = frame;
  for (size_t d = 0; d < count; ++d) {
    Subscript subscript{&e.operands[d + 1], {}};
    const bool slice = subscript.written->kind == ast::Expr::Kind::Slice;
    for (size_t k = 0; k < (slice ? 3 : 1); ++k) {
      const ast::Expr& written = slice ? subscript.written->operands[k] : *subscript.written;
      if (written.kind == ast::Expr::Kind::Absent) continue;
      const Operand value = evaluate(written, frame);
      if (value.is_poison()) return Operand{};
      if (value.is_static() && value.value.is_number()) subscript.numbers[k] = value.value.number.to_int64();
      if (subscript.numbers[k] && (k < 2 || *subscript.numbers[k] >= 1)) continue;
      frame = before;
      return std::nullopt;
    }
    subscripts.push_back(subscript);
  }
  auto take = [&](const auto& self, const StaticValue& from, size_t d) -> std::optional<StaticValue> {
    if (d == count) return from;
    const Subscript& subscript = subscripts[d];
    const auto size = static_cast<int64_t>(from.items.size());
    const bool slice = subscript.written->kind == ast::Expr::Kind::Slice;
    int64_t begin = subscript.numbers[0].value_or(0);
    int64_t end = slice ? subscript.numbers[1].value_or(size) : begin;
    if (begin < 0) begin += size;
    if (end < 0) end += size;
    if (begin < 0 || end > size || begin > end || (!slice && begin == size)) {
      error(Kind::Refused, "`{}` is outside of the list, whose length is {}", sources_.text(subscript.written->span),
            size)
          .primary(place(subscript.written->span, frame))
          .secondary(frame.here.valid() ? Span{} : x.span, "the list")
          .emit();
      return std::nullopt;
    }
    if (!slice) return self(self, from.items[static_cast<size_t>(begin)], d + 1);
    StaticValue list;
    list.kind = StaticValue::Kind::List;
    for (int64_t i = begin; i < end; i += std::min(subscript.numbers[2].value_or(1), size)) {
      std::optional<StaticValue> item = self(self, from.items[static_cast<size_t>(i)], d + 1);
      if (!item) return std::nullopt;
      list.items.push_back(*std::move(item));
    }
    return list;
  };
  std::optional<StaticValue> value = take(take, x.value, 0);
  if (!value) return Operand{};
  return static_operand(*std::move(value), e.span);
}

// Nullopt where the pair is not for folding (a list of texts): the graph does it.
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
  if (x.kind == StaticValue::Kind::List || y.kind == StaticValue::Kind::List) return fold_lists(e, a, b, frame);
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

Operand Compiler::known(Operand x) {
  if (x.kind != Operand::Kind::Dynamic || x.missing.valid() || !x.lengths.empty()) return x;
  Graph& graph = program_.graph;
  std::map<ExprId, ExprId> values;
  for (ExprId id : graph.topological(x.expr)) {
    Expr e = graph.expr(id);
    if (e.constant) {
      values[id] = id;
      continue;
    }
    if (e.op->cls == OpClass::Leaf || e.op->effects.random || e.op->effects.reads_files) return x;
    for (ExprId& arg : e.args) arg = values.at(arg);
    // A copy of the operation on constants; its own place keeps what it was made of.
    const std::optional<Value> value = evaluate_constant(graph, graph.add(std::move(e)));
    if (!value) return x;
    values[id] = add_constant(graph, ops_, *value, x.span);
  }
  const Value& value = *graph.expr(values.at(x.expr)).constant;
  auto scalar = [&](int64_t at) -> std::optional<StaticValue> {
    const Scalar s = value.at(at);
    if (s.elem == Elem::Bool) return StaticValue::of(s.i != 0);
    if (is_string(s.elem)) return StaticValue::of(s.s, s.elem);
    if (!is_float(s.elem)) return StaticValue::of(Rational(s.i));
    return std::isfinite(s.f) ? std::optional(StaticValue::of(Rational::of_double(s.f))) : std::nullopt;
  };
  if (value.rank() > 1) return x;
  StaticValue out;
  out.kind = StaticValue::Kind::List;
  for (int64_t i = 0; i < value.size(); ++i) {
    std::optional<StaticValue> item = scalar(i);
    if (!item) return x;
    if (value.rank() == 0)
      out = *std::move(item);
    else
      out.items.push_back(*std::move(item));
  }
  x.kind = Operand::Kind::Static;
  x.value = std::move(out);
  return x;
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
  Operand x = known(evaluate(e, frame));
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
