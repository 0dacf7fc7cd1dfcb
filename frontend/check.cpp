// Expressions: names, operators by signature, literals that meet types, promotion, draws.
#include <algorithm>
#include <limits>

#include "frontend/compiler.h"
#include "frontend/parse_zpl.h"
#include "graph/identity.h"
#include "graph/leaf_path.h"

namespace zephon {
namespace {

struct Sign {
  std::string_view sign, op;
};
constexpr Sign kBinary[] = {{"+", "add"}, {"-", "sub"}, {"*", "mul"},   {"/", "div"}, {"//", "floor_div"},
                            {"%", "mod"}, {"==", "eq"}, {"!=", "ne"},   {"<", "lt"},  {"<=", "le"},
                            {">", "gt"},  {">=", "ge"}, {"and", "and"}, {"or", "or"}};

bool is_variable(const TypePattern& pattern) { return pattern.elem.size() == 1; }
bool is_small_integer(Elem e) { return e == Elem::U8 || e == Elem::U16 || e == Elem::I8 || e == Elem::I16; }

bool accepts(const std::string& pattern, Elem e) {
  if (pattern == "T") return true;
  if (pattern == "N") return is_numeric(e);
  if (pattern == "F") return is_float(e);
  if (pattern == "I") return is_integer(e);
  if (pattern == "S") return is_string(e);
  return elem_name(e) == pattern;
}

// The dynamic parameter that argument i of `count` belongs to; null where there is none.
const Parameter* parameter_of(const OpDef& op, size_t i, size_t count) {
  size_t end = 0;
  for (const Parameter& p : signature_of(op).parameters) {
    if (p.static_kind != StaticKind::None) continue;
    end = p.variadic ? std::max(end + 1, count) : end + 1;
    if (i < end) return &p;
  }
  return nullptr;
}

// The type of a static value that meets no other type.
Elem elem_alone(const StaticValue& value) {
  switch (value.kind) {
    case StaticValue::Kind::Number:
      return value.number.is_integer() ? Elem::I64 : Elem::F64;
    case StaticValue::Kind::Bool:
      return Elem::Bool;
    case StaticValue::Kind::List: {
      Elem elem = value.items.empty() ? Elem::F64 : elem_alone(value.items[0]);
      for (const StaticValue& item : value.items)
        if (elem_alone(item) == Elem::F64) elem = Elem::F64;
      return elem;
    }
    case StaticValue::Kind::String:
      return value.elem;
    default:
      return Elem::Str;
  }
}

// Whether both are lists of the same lengths, or neither is one.
bool same_shape(const StaticValue& a, const StaticValue& b) {
  const bool lists = a.kind == StaticValue::Kind::List;
  if (lists != (b.kind == StaticValue::Kind::List)) return false;
  return !lists || std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_shape);
}

}  // namespace

IntegerLimits limits_of(Elem e) {
  switch (e) {
    case Elem::U8:
      return {0, 255};
    case Elem::U16:
      return {0, 65535};
    case Elem::I8:
      return {-128, 127};
    case Elem::I16:
      return {-32768, 32767};
    case Elem::I32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    default:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

const OpDef& Compiler::core(std::string_view name) const {
  const OpDef* op = ops_.find(name);
  ZEPHON_CHECK(op != nullptr, "no operator `{}`", name);
  return *op;
}

std::string Compiler::type_text(const Operand& x) const {
  if (x.kind == Operand::Kind::Dynamic)
    return declared_text(type_of(x),
                         x.missing.valid() ? static_cast<int>(program_.graph.expr(x.missing).type.rank()) : -1,
                         x.lengths.size());
  if (x.is_record()) {
    std::string text;
    for (const auto& [name, member] : x.members) text += (text.empty() ? "{" : ", ") + name + ": " + type_text(member);
    return text + "}";
  }
  if (x.is_static()) return std::string(kind_words(x.value));
  return "?";
}

Operand Compiler::dynamic(ExprId expr, const Span& span) const {
  Operand operand;
  operand.kind = Operand::Kind::Dynamic;
  operand.expr = expr;
  operand.span = span;
  return operand;
}

void Compiler::note_value(const Span& span, const Operand& value) {
  if (options_.facts == nullptr || value.is_poison()) return;
  options_.facts->values.push_back({span, type_text(value), value.is_static() ? to_string(value.value) : ""});
}

Operand Compiler::evaluate(const ast::Expr& e, Frame& frame) {
  Operand value = evaluate_form(e, frame);
  if (options_.facts != nullptr && !frame.here.valid()) note_value(e.span, value);
  return value;
}

Operand Compiler::evaluate_form(const ast::Expr& e, Frame& frame) {
  using Form = ast::Expr::Kind;
  switch (e.kind) {
    case Form::Number: {
      Operand operand;
      operand.span = e.span;
      std::optional<Rational> number = Rational::parse(e.text);
      if (!number) {
        error(Kind::LiteralRange, "the exponent of the number is too large").primary(place(e.span, frame)).emit();
        return operand;
      }
      operand.kind = Operand::Kind::Static;
      operand.value = StaticValue::of(*std::move(number));
      return operand;
    }
    case Form::Bool: {
      Operand operand;
      operand.kind = Operand::Kind::Static;
      operand.value = StaticValue::of(e.text == "true");
      operand.span = e.span;
      return operand;
    }
    case Form::String:
      return string(e, frame);
    case Form::Name:
      return name(e, frame);
    case Form::Call:
      return call(e, frame);
    case Form::Binary:
      return binary(e, frame);
    case Form::Index:
      return index(e, frame);
    case Form::List:
      return list(e, frame);
    case Form::Unary: {
      Operand x = evaluate(e.operands[0], frame);
      if (x.is_poison()) return x;
      if (x.is_static()) return fold_unary(e, x, frame);
      return apply(core(e.text == "-" ? "neg" : "not"), {x}, {}, e, frame);
    }
    case Form::Member: {
      if (ImportEntry* import = find_import(e.operands[0], &frame)) {
        Operand value = imported_constant(*import, {e.text, place(e.text_span, frame)});
        value.span = e.span;
        return value;
      }
      // A member of a record.
      if (std::optional<Operand> base = record(e.operands[0], frame)) {
        if (base->is_poison()) return {};
        std::vector<std::string> names;
        for (auto& [name, member] : base->members) {
          names.push_back(name);
          if (name != e.text) continue;
          member.span = e.span;
          return member;
        }
        error(Kind::UnknownName, "the record has no field `{}`", e.text)
            .primary(place(e.text_span, frame))
            .secondary(frame.here.valid() ? Span{} : e.operands[0].span, "`{}`", type_text(*base))
            .hint_text(did_you_mean(e.text, names))
            .emit();
        return {};
      }
      // A property: a cast, or an operator of one argument.
      if (std::optional<Elem> elem = elem_from_name(e.text)) return cast(*elem, e, frame);
      const OpDef* op = find_operator(e.text, e, true);
      if (op == nullptr || op->cls == OpClass::Leaf) {
        if (evaluate(e.operands[0], frame).is_poison()) return {};
        unknown_operator(e.text, place(e.text_span, frame), true);
        return {};
      }
      return call_operator(*op, e, frame);
    }
    case Form::Schema: {
      Operand operand;
      operand.span = e.span;
      if (std::optional<Schema> columns = schema(e, frame)) {
        operand.kind = Operand::Kind::Static;
        operand.value.kind = StaticValue::Kind::Schema;
        operand.value.schema = *std::move(columns);
      }
      return operand;
    }
    case Form::Slice:
    case Form::Absent:
      break;
  }
  ZEPHON_CHECK(false, "a slice outside of brackets");
  return {};
}

Operand Compiler::name(const ast::Expr& e, Frame& frame) {
  if (std::optional<Operand> found = find_name(e.text, e.span, frame)) return *std::move(found);
  Operand type;
  if (std::optional<Elem> elem = elem_from_name(e.text)) {
    type.kind = Operand::Kind::Static;
    type.value.kind = StaticValue::Kind::Elem;
    type.value.elem = *elem;
    type.span = e.span;
    return type;
  }
  std::string hint = did_you_mean(e.text, visible_names(frame));
  if (hint.empty() && (find_operator(e.text, e, true) != nullptr || module_->functions.contains(e.text)))
    hint = fmt::format("`{0}` is an operator: write `{0}(...)`", e.text);
  if (hint.empty() && module_->imports.contains(e.text)) hint = fmt::format("it is an import: write `{}.name`", e.text);
  if (hint.empty() && module_->streams.contains(e.text))
    hint = "a stream stands as a source, or as an argument of `mix`";
  bool sample = frame.fields != nullptr && frame.arguments == nullptr;
  auto builder = sample ? error(Kind::UnknownName, "no field, parameter or constant is called `{}` here", e.text)
                 : frame.arguments != nullptr
                     ? error(Kind::UnknownName, "no argument, parameter or constant is called `{}`", e.text)
                     : error(Kind::UnknownName, "no parameter or constant is called `{}`", e.text);
  std::move(builder).primary(place(e.span, frame)).hint_text(std::move(hint)).emit();
  return {};
}

// Known before the run where its holes are; else the operator `concat` of its parts.
Operand Compiler::string(const ast::Expr& e, Frame& frame) {
  Operand result;
  result.span = e.span;
  std::vector<Operand> parts;
  Elem elem = Elem::Str;
  bool good = true, all_static = true;
  auto add_text = [&](const std::string& text) {
    Operand part;
    part.kind = Operand::Kind::Static;
    part.value = StaticValue::of(text);
    part.span = e.span;
    if (!text.empty()) parts.push_back(std::move(part));
  };
  add_text(e.pieces[0]);
  for (size_t i = 0; i < e.operands.size(); ++i) {
    Operand hole = evaluate(e.operands[i], frame);
    if (i == 0 && e.pieces[0].empty()) result.value.folder = hole.value.folder;
    if (hole.is_poison()) {
      good = false;
    } else if (hole.is_static()) {
      if (hole.value.is_string() && hole.value.elem == Elem::Path) elem = Elem::Path;
      hole.value = StaticValue::of(to_string(hole.value));
      parts.push_back(std::move(hole));
    } else {
      all_static = false;
      if (type_of(hole).elem == Elem::Path) elem = Elem::Path;
      if (!is_string(type_of(hole).elem)) hole = apply(core("to_str"), {hole}, {}, e.operands[i], frame);
      good = good && !hole.is_poison();
      parts.push_back(std::move(hole));
    }
    add_text(e.pieces[i + 1]);
  }
  if (!good) return result;
  if (all_static) {
    std::string text;
    for (const Operand& part : parts) text += part.value.text;
    result.kind = Operand::Kind::Static;
    // The folder of what the text begins with.
    std::string folder = e.operands.empty() || !e.pieces[0].empty() ? module_->folder : result.value.folder;
    result.value = StaticValue::of(std::move(text), elem);
    result.value.folder = std::move(folder);
    return result;
  }
  for (Operand& part : parts)
    if (!part.is_static()) part = add_cast(part, elem, frame);
  return apply(core("concat"), std::move(parts), {}, e, frame);
}

// Of static values: a static list. Of others: the operator `stack`.
Operand Compiler::list(const ast::Expr& e, Frame& frame) {
  Operand result;
  result.span = e.span;
  result.value.kind = StaticValue::Kind::List;
  std::vector<Operand> items;
  bool good = true, all_static = true;
  for (const ast::Expr& item : e.operands) {
    items.push_back(evaluate(item, frame));
    good = good && !items.back().is_poison();
    all_static = all_static && items.back().is_static();
  }
  if (!good) return result;
  if (!all_static) return apply(core("stack"), std::move(items), {}, e, frame);
  for (Operand& item : items) result.value.items.push_back(std::move(item.value));
  result.kind = Operand::Kind::Static;
  return result;
}

// ---- calls

const OpDef* Compiler::find_operator(const std::string& name, const ast::Expr& call, bool tensor) const {
  auto at_level = [&](const OpDef& op) {
    return tensor ? is_tensor_class(op.cls) || (op.cls == OpClass::Composite && !signature_of(op).stream_out)
                  : !is_tensor_class(op.cls) && signature_of(op).stream_out;
  };
  for (const OpDef* op : surfaces_) {
    if (op->surface != name || !at_level(*op)) continue;
    // One word for two operators: this one if its first parameter is given.
    const Signature& signature = signature_of(*op);
    if (signature.parameters.empty()) continue;
    bool given = false;
    for (size_t i = 0; i < call.operands.size(); ++i)
      given = given || call.names[i].text.empty() || call.names[i].text == signature.parameters[0].name;
    if (given) return op;
  }
  const OpDef* by_name = ops_.find(name);
  return by_name != nullptr && by_name->surface.empty() && at_level(*by_name) ? by_name : nullptr;
}

std::optional<Compiler::Matched> Compiler::match(const OpDef& op, const ast::Expr& e,
                                                 const std::set<std::string>& extra_names, Frame& frame) {
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  std::string_view called = op.surface.empty() ? op.name : op.surface;
  Matched matched;
  matched.of_parameter.resize(parameters.size());
  bool good = true;
  size_t next = 0;
  const auto hidden = std::find_if(parameters.begin(), parameters.end(), is_hidden);  // and all behind it
  const auto visible = static_cast<size_t>(hidden - parameters.begin());
  const std::string no_label;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const ast::Expr& operand = e.operands[i];
    const std::string& label = i < e.names.size() ? e.names[i].text : no_label;
    if (label.empty()) {
      while (next < visible && !parameters[next].variadic && !matched.of_parameter[next].empty()) ++next;
      if (next == visible) {
        size_t takes = visible;
        error(Kind::UnknownArgument, "`{}` takes {} argument{}, found {}", called, takes, takes == 1 ? "" : "s",
              e.operands.size())
            .primary(place(operand.span, frame), "one too many")
            .note("`{}` is declared as `{}`", called, written_signature(op))
            .emit();
        return std::nullopt;
      }
      matched.of_parameter[next].push_back(&operand);
      continue;
    }
    auto it = std::find_if(parameters.begin(), hidden, [&](const Parameter& p) { return p.name == label; });
    if (it == hidden) {
      if (extra_names.contains(label)) {
        auto [first, fresh] = matched.extra.emplace(label, &operand);
        if (!fresh) {
          error(Kind::UnknownArgument, "`{}` of `{}` is given twice", label, called)
              .primary(place(e.names[i].span, frame))
              .secondary(place(first->second->span, frame), "the first")
              .emit();
          good = false;
        }
        continue;
      }
      // The word may have other arguments with another operator behind it: `shuffle(buffer_size=100)`.
      std::vector<std::string> known;
      for (size_t k = 0; k < visible; ++k) known.push_back(parameters[k].name);
      for (const OpDef* twin : ops_.all())
        if (twin != &op && (twin->surface.empty() ? twin->name : twin->surface) == called)
          for (const Parameter& p : signature_of(*twin).parameters) known.push_back(p.name);
      std::string hint;
#define ZEPHON_NEAR_MISS(theirs, text)
#define ZEPHON_NEAR_ARGUMENT(theirs, ours)                                                                           \
  if (label == theirs && (extra_names.contains(ours) || std::find(known.begin(), known.end(), ours) != known.end())) \
    hint = "here it is called `" ours "`";
#include "frontend/near_misses.def"
#undef ZEPHON_NEAR_MISS
#undef ZEPHON_NEAR_ARGUMENT
      if (hint.empty()) hint = did_you_mean(label, known);
      error(Kind::UnknownArgument, "`{}` has no argument `{}`", called, label)
          .primary(place(e.names[i].span, frame))
          .hint_text(std::move(hint))
          .note("`{}` is declared as `{}`", called, written_signature(op))
          .emit();
      good = false;
      continue;
    }
    auto& slot = matched.of_parameter[static_cast<size_t>(it - parameters.begin())];
    if (!slot.empty()) {
      error(Kind::UnknownArgument, "`{}` of `{}` is given twice", label, called)
          .primary(place(e.names[i].span, frame))
          .secondary(place(slot[0]->span, frame), "the first")
          .emit();
      good = false;
      continue;
    }
    slot.push_back(&operand);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (!matched.of_parameter[i].empty() || p.optional || p.variadic || p.default_value) continue;
    if (!good) continue;  // the missing one is likely the misspelt one
    error(Kind::MissingArgument, "`{}` needs `{}`", called, p.name)
        .primary(place(e.text_span, frame))
        .note("`{}` is declared as `{}`", called, written_signature(op))
        .emit();
    good = false;
  }
  if (!good) return std::nullopt;
  return matched;
}

Operand Compiler::call(const ast::Expr& e, Frame& frame) {
  // `aug.f(x)` and `x.aug.f(y)`: the function of an import.
  if (e.method) {
    const ast::Expr& left = e.operands[0];
    bool chained = left.kind == ast::Expr::Kind::Member && module_->imports.contains(left.text) &&
                   find_operator(left.text, left, true) == nullptr;
    ast::Expr alias;
    alias.kind = ast::Expr::Kind::Name;
    alias.text = left.text;
    if (ImportEntry* import = find_import(chained ? alias : left, chained ? nullptr : &frame)) {
      FunctionEntry* function = imported_function(*import, {e.text, place(e.text_span, frame)});
      if (function == nullptr) return {};
      ast::Expr written = e;
      if (chained) {
        ast::Expr first = left.operands[0];
        written.operands[0] = std::move(first);
      } else {
        written.operands.erase(written.operands.begin());
        written.names.erase(written.names.begin());
        written.method = false;
      }
      return call_function(*function, written, frame);
    }
  }
  if (auto it = module_->functions.find(e.text); it != module_->functions.end())
    return call_function(it->second, e, frame);
  if (std::optional<Elem> elem = elem_from_name(e.text); elem && e.operands.size() == 1) return cast(*elem, e, frame);
  const OpDef* op = find_operator(e.text, e, true);
  if (op != nullptr && !(op->cls == OpClass::Leaf && op->signature.empty())) return call_operator(*op, e, frame);
  // Errors in the arguments are worth knowing too.
  for (const ast::Expr& operand : e.operands)
    if (e.method || operand.kind == ast::Expr::Kind::Call) evaluate(operand, frame);
  unknown_operator(e.text, place(e.text_span, frame), true);
  return {};
}

void Compiler::unknown_operator(const std::string& name, const Span& span, bool tensor) {
  ast::Expr probe;
  if (const OpDef* other = find_operator(name, probe, !tensor)) {
    if (tensor)
      error(Kind::NotAStep, "`{}` works on a stream, not on a value", name)
          .primary(span)
          .hint("it is a step of its own: `| {}(...)`", name)
          .emit();
    else
      error(Kind::NotAStep, "`{}` works on a value, not on a stream", name)
          .primary(span)
          .hint("assign its result: `| field = {}(...)`", name)
          .emit();
    (void)other;
    return;
  }
  std::string hint;
  const std::string word = " " + name + " ";
#define ZEPHON_NEAR_MISS(theirs, text) \
  if (std::string_view(" " theirs " ").find(word) != std::string_view::npos) hint = text;
#define ZEPHON_NEAR_ARGUMENT(theirs, ours)
#include "frontend/near_misses.def"
#undef ZEPHON_NEAR_MISS
#undef ZEPHON_NEAR_ARGUMENT
  if (hint.empty()) {
    std::vector<std::string> candidates, others;
    for (const OpDef* op : ops_.all()) {
      bool stream = signature_of(*op).stream_out;
      if (op->cls == OpClass::Leaf && op->signature.empty()) continue;
      (stream == !tensor ? candidates : others).emplace_back(op->surface.empty() ? op->name : op->surface);
    }
    if (tensor)
      for (const auto& [declared, entry] : module_->functions) candidates.push_back(declared);
    if (!tensor)
      for (const std::string& declared : stream_names()) candidates.push_back(declared);
    if (!tensor) candidates.insert(candidates.end(), {"filter", "select", "drop"});
    hint = did_you_mean(name, candidates);
    if (hint.empty()) hint = did_you_mean(name, others);
  }
  error(Kind::UnknownOperator, "no {} is called `{}`", tensor ? "operator" : "source or step", name)
      .primary(span)
      .hint_text(std::move(hint))
      .emit();
}

Operand Compiler::call_function(FunctionEntry& function, const ast::Expr& e, Frame& frame) {
  function.used = true;
  const ast::Function& f = *function.syntax;
  if (!frame.here.valid()) note_use(e.text_span, f.name.span);
  constexpr int kMaxCallDepth = 200;  // calls nest as deep as functions are chained
  if (function.open || call_depth_ >= kMaxCallDepth) {
    error(Kind::Recursion, "the function `{}` uses itself", f.name.text)
        .primary(place(e.text_span, frame))
        .secondary(f.name.span, "declared here")
        .emit();
    return {};
  }
  std::map<std::string, Operand> arguments;
  std::map<std::string, Dim> symbols;
  std::map<std::string, NamedSize> sizes;
  bool good = true;
  size_t next = 0;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const ast::Parameter* parameter = nullptr;
    if (e.names[i].text.empty()) {
      if (next < f.parameters.size()) parameter = &f.parameters[next++];
    } else {
      for (const ast::Parameter& p : f.parameters)
        if (p.name.text == e.names[i].text) parameter = &p;
    }
    if (parameter == nullptr || arguments.contains(parameter->name.text)) {
      error(Kind::UnknownArgument, "`{}` takes {} argument{}, and not this one", f.name.text, f.parameters.size(),
            f.parameters.size() == 1 ? "" : "s")
          .primary(place(e.operands[i].span, frame))
          .secondary(f.name.span, "declared here")
          .emit();
      good = false;
      continue;
    }
    Operand value = evaluate(e.operands[i], frame);
    if (value.is_poison()) {
      good = false;
    } else if (parameter->type) {
      Frame outside;
      std::vector<DeclaredLeaf> leaves;
      bool declared;
      {
        Inside inside(*this, function.home);
        declared = declared_leaves(*parameter->type, "", outside, symbols, leaves);
      }
      good = declared &&
             fit(value, leaves, fmt::format("`{}` of `{}`", parameter->name.text, f.name.text), *parameter->type, sizes,
                 frame) &&
             good;
    }
    arguments.emplace(parameter->name.text, std::move(value));
  }
  for (const ast::Parameter& p : f.parameters) {
    if (arguments.contains(p.name.text)) continue;
    if (p.default_value) {
      Frame constant;
      constant.constant = true;
      Inside inside(*this, function.home);
      Operand value = evaluate(*p.default_value, constant);
      good = good && !value.is_poison();
      arguments.emplace(p.name.text, std::move(value));
    } else if (good) {
      error(Kind::MissingArgument, "`{}` needs `{}`", f.name.text, p.name.text)
          .primary(place(e.text_span, frame))
          .secondary(p.name.span, "declared here")
          .emit();
      good = false;
    }
  }
  uint64_t words[] = {frame.path, stream_hash(f.name.text), frame.calls++};
  if (!good) return {};
  Frame inner;
  inner.arguments = &arguments;
  inner.path = hash_words(words);
  inner.constant = frame.constant;
  inner.here = frame.here;
  function.open = true;
  ++call_depth_;
  Inside inside(*this, function.home);
  Operand result = evaluate(f.body, inner);
  --call_depth_;
  function.open = false;
  result.span = e.span;
  return result;
}

Operand Compiler::call_operator(const OpDef& op, const ast::Expr& e, Frame& frame) {
  if (!frame.here.valid()) note_operator(e.text_span, op);
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  bool draws = op.cls == OpClass::Draw || op.cls == OpClass::Composite;
  bool own_key = std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.name == "key"; });
  std::optional<Matched> matched =
      match(op, e, draws && !own_key ? std::set<std::string>{"key"} : std::set<std::string>{}, frame);
  if (!matched) {
    for (const ast::Expr& operand : e.operands)
      if (operand.kind != ast::Expr::Kind::Name) evaluate(operand, frame);
    return {};
  }
  Attrs attrs;
  std::vector<Operand> args;
  bool good = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    const auto& given = matched->of_parameter[i];
    if (p.static_kind == StaticKind::None) {
      for (const ast::Expr* operand : given) {
        args.push_back(evaluate(*operand, frame));
        good = good && !args.back().is_poison();
      }
    } else if (!given.empty()) {
      std::optional<Attr> value = static_attr(op, p, *given[0], frame);
      if (value)
        attrs.set(p.name, *std::move(value));
      else
        good = false;
    } else if (p.default_value) {
      attrs.set(p.name, *p.default_value);
    }
  }
  std::optional<uint64_t> key;
  if (auto it = matched->extra.find("key"); it != matched->extra.end()) {
    Operand value = evaluate(*it->second, frame);
    if (value.is_static()) {
      uint64_t words[] = {stream_hash("key"), stream_hash(to_string(value.value))};
      key = hash_words(words);
    } else {
      if (!value.is_poison())
        error(Kind::NotConstant, "`key` of `{}` must be known before the run", op.name)
            .primary(place(value.span, frame))
            .emit();
      good = false;
    }
  }
  if (!good) return {};
  if (op.name == "where" && args[0].is_static() && args[0].value.kind == StaticValue::Kind::Bool)
    return choose_now(op, std::move(args), e, frame);
  if (op.gives_record) return op.implicit_column.empty() ? row_of(op, args, e, frame) : table(op, attrs, e, frame);
  return apply(op, std::move(args), std::move(attrs), e, frame, key);
}

// A constant record of the columns of a table.
Operand Compiler::table(const OpDef& op, const Attrs& attrs, const ast::Expr& e, Frame& frame) {
  Operand result;
  result.span = e.span;
  for (const Field& column : attrs.get<Schema>("schema").columns) {
    Attrs own = attrs;
    own.set("column", column.name);
    Operand value = apply(core(op.implicit_column), {}, std::move(own), e, frame);
    if (value.kind != Operand::Kind::Dynamic) return {};
    result.members.insert(column.name == attrs.text("key") ? result.members.begin() : result.members.end(),
                          {column.name, std::move(value)});
  }
  result.kind = Operand::Kind::Record;
  return result;
}

// `where` whose condition is known before the run: the arm that it chooses, in the type that both arms agree on.
Operand Compiler::choose_now(const OpDef& op, std::vector<Operand> args, const ast::Expr& e, Frame& frame) {
  const size_t arm = args[0].value.flag ? 1 : 2;
  const Operand &a = args[1], &b = args[2];
  if (a.is_static() && b.is_static() && same_shape(a.value, b.value) && elem_alone(a.value) == elem_alone(b.value)) {
    Operand chosen = args[arm];
    chosen.span = e.span;
    return chosen;
  }
  const Operand chosen = args[arm];
  Operand result = apply(op, std::move(args), {}, e, frame);
  if (result.is_poison()) return {};
  const ExprId kept = program_.graph.expr(result.expr).args[arm];
  // An arm that is stretched to the shape of the other is left to be stretched.
  if (program_.graph.expr(kept).type != type_of(result)) return result;
  result.expr = kept;
  if (chosen.kind == Operand::Kind::Dynamic) result.lengths = chosen.lengths;
  return result;
}

// The row of a table, member by member.
Operand Compiler::row_of(const OpDef& op, const std::vector<Operand>& args, const ast::Expr& e, Frame& frame) {
  const Operand& table = args[0];
  auto column = [&]() -> const Expr* {
    if (!table.is_record() || table.members[0].value.kind != Operand::Kind::Dynamic) return nullptr;
    const Expr& expr = program_.graph.expr(table.members[0].value.expr);
    return is_data_constant(expr) && expr.attrs.has("key") ? &expr : nullptr;
  };
  const Expr* keys = column();
  if (keys == nullptr) {
    error(Kind::WrongType, "`{}` needs a table", op.name)
        .primary(place(table.span, frame), "this is `{}`", type_text(table))
        .hint("declare it: `let labels = table(\"labels.csv\", schema={{name: str, id: i64}}, key=name)`")
        .emit();
    return {};
  }
  const std::string path = keys->attrs.text("path");
  Operand key = args[1];
  const bool text_key =
      key.is_static() ? key.value.is_string() : key.kind == Operand::Kind::Dynamic && is_string(type_of(key).elem);
  const bool number_key =
      key.is_static() ? key.value.is_number() : key.kind == Operand::Kind::Dynamic && is_integer(type_of(key).elem);
  if (!(is_string(keys->type.elem) ? text_key : number_key)) {
    error(Kind::WrongType, "`key` of `{}` needs `{}`, found {}", op.name, elem_name(keys->type.elem),
          key.is_static() ? type_text(key) : "`" + type_text(key) + "`")
        .primary(place(key.span, frame))
        .emit();
    return {};
  }
  if (key.kind == Operand::Kind::Dynamic && is_string(type_of(key).elem) && is_string(keys->type.elem))
    key = add_cast(key, keys->type.elem, frame);
  std::map<std::string, Operand> arguments = {{"keys", table.members[0].value}, {"key", key}};
  arguments["table"].kind = Operand::Kind::Static;
  arguments["table"].value = StaticValue::of(path);
  auto body = [&](std::string_view text) {
    auto it = expansions_.find(text.data());
    if (it == expansions_.end()) {
      FileId file = sources_.add(fmt::format("<{}>", op.name), std::string(text));
      Result<ast::Expr> parsed = parse_expression({file, sources_.text(file), 0, {}}, diags_);
      ZEPHON_CHECK(parsed.ok(), "the expansion of `{}` does not parse", op.name);
      it = expansions_.emplace(text.data(), *std::move(parsed)).first;
    }
    Frame inner;
    inner.arguments = &arguments;
    inner.path = frame.path;
    inner.constant = frame.constant;
    inner.here = place(e.span, frame);
    Expanding expanding(*this, op, text);
    return evaluate(it->second, inner);
  };
  Operand result;
  result.span = e.span;
  Operand missing;
  if (!op.expansion_whole.empty()) {
    missing = body(op.expansion_whole);
    if (missing.is_poison()) return {};
  }
  for (const auto& [name, column_values] : table.members) {
    arguments["member"] = column_values;
    Operand value = body(op.expansion);
    if (value.is_poison()) return {};
    value.missing = missing.expr;
    value.name.clear();
    result.members.push_back({name, std::move(value)});
  }
  result.kind = Operand::Kind::Record;
  return result;
}

std::optional<Operand> Compiler::expand_lists(const OpDef& op, const std::vector<Operand>& args, const Attrs& attrs,
                                              const ast::Expr& e, Frame& frame, const std::optional<uint64_t>& key) {
  size_t levels = 0;
  for (const Operand& x : args) levels = std::max(levels, x.lengths.size());
  if (levels == 0) return std::nullopt;
  auto empty = [&](const Operand& x) {
    const auto& value = program_.graph.expr(x.expr).constant;
    return value && value->rank() > 0 && value->size() == 0;
  };
  for (const Operand& x : args) {
    if (x.lengths.size() == levels || empty(x)) continue;
    error(Kind::WrongType, "`{}` needs lists of lists, found `{}`", op.name, type_text(x))
        .primary(place(x.span, frame))
        .hint("`[]` stands for no lists at all")
        .emit();
    return Operand{};
  }
  Operand result;
  for (size_t level = 0; level <= levels; ++level) {
    std::vector<Operand> parts = args;
    for (Operand& x : parts) {
      if (level > 0) x.expr = x.lengths.empty() ? constant(Value(Elem::I64, {0}), x.span).expr : x.lengths[level - 1];
      x.lengths.clear();
    }
    Operand part = expand(op, parts, attrs, e, frame, key);
    if (part.kind != Operand::Kind::Dynamic) return Operand{};
    if (level == 0)
      result = std::move(part);
    else
      result.lengths.push_back(part.expr);
  }
  return result;
}

// A composite operator is the body of a function over its parameters.
Operand Compiler::expand(const OpDef& op, const std::vector<Operand>& args, const Attrs& attrs, const ast::Expr& e,
                         Frame& frame, const std::optional<uint64_t>& key) {
  std::string_view text = op.expansion;
  for (const Operand& x : args)
    if (x.missing.valid() && !type_of(x).is_scalar() && program_.graph.expr(x.missing).type.is_scalar() &&
        !op.expansion_whole.empty())
      text = op.expansion_whole;
  auto it = expansions_.find(text.data());
  if (it == expansions_.end()) {
    FileId file = sources_.add(fmt::format("<{}>", op.name), std::string(text));
    Result<ast::Expr> body = parse_expression({file, sources_.text(file), 0, {}}, diags_);
    ZEPHON_CHECK(body.ok(), "the expansion of `{}` does not parse", op.name);
    it = expansions_.emplace(text.data(), *std::move(body)).first;
  }
  // Lists of lists that may be missing as a whole: what is meant for the elements is meant for the lengths alike.
  if (text == op.expansion_whole)
    if (std::optional<Operand> lists = expand_lists(op, args, attrs, e, frame, key)) return *lists;
  std::map<std::string, Operand> arguments;
  size_t next = 0;
  for (const Parameter& p : signature_of(op).parameters) {
    if (p.static_kind == StaticKind::None) {
      if (next == args.size()) continue;
      Operand x = args[next++];
      if (p.pattern.maybe) {
        Operand missing = x.missing.valid() ? dynamic(x.missing, x.span)
                                            : constant(Value::scalar(Scalar::of_bool(false)), place(x.span, frame));
        if (!type_of(missing).is_scalar()) missing.lengths = x.lengths;
        arguments.emplace(p.name + "_missing", std::move(missing));
        x.missing = {};
      }
      arguments.emplace(p.name, std::move(x));
    } else if (attrs.has(p.name)) {
      Operand value;
      value.kind = Operand::Kind::Static;
      for (const auto& [name, attr] : attrs)
        if (name == p.name) value.value = from_attr(attr);
      if (p.static_kind == StaticKind::Enum) {
        value.value.kind = StaticValue::Kind::Enum;
        value.value.choices = p.choices;
      }
      arguments.emplace(p.name, std::move(value));
    }
  }
  uint64_t words[] = {frame.path, stream_hash(op.name), frame.calls++};
  Frame inner;
  inner.arguments = &arguments;
  inner.path = key ? *key : hash_words(words);
  inner.constant = frame.constant;
  inner.here = place(e.span, frame);
  Expanding expanding(*this, op, text);
  Operand result = evaluate(it->second, inner);
  result.span = e.span;
  return result;
}

// ---- typing

Operand Compiler::add_cast(Operand x, Elem to, Frame& frame) {
  if (type_of(x).elem == to) return x;
  Expr e;
  e.op = &core("cast");
  e.args = {x.expr};
  e.attrs.set("to", to);
  e.type = type_of(x);
  e.type.elem = to;
  e.type.box.clear();
  e.origin.push_back(place(x.span, frame));
  x.expr = program_.graph.add(std::move(e));
  return x;
}

Operand Compiler::cast(Elem to, const ast::Expr& e, Frame& frame) {
  Operand x = evaluate(e.operands[0], frame);
  if (x.is_poison()) return x;
  if (x.is_static()) {
    if (x.value.is_string() && is_string(to)) {
      x.value.elem = to;
      x.span = e.span;
      if (to != Elem::Bytes) return x;
    }
    if (x.value.is_number() && is_integer(to)) x.value.number = x.value.number.round_half_even();
    std::optional<Operand> typed = materialize(x, to, frame);
    if (!typed) return {};
    typed->span = e.span;
    return *typed;
  }
  Attrs attrs;
  attrs.set("to", to);
  std::vector<Operand> args;
  args.push_back(std::move(x));
  return apply(core("cast"), std::move(args), std::move(attrs), e, frame);
}

std::optional<Scalar> Compiler::to_scalar(const StaticValue& value, Elem elem, const Span& span) {
  auto wrong = [&]() -> std::optional<Scalar> {
    error(Kind::WrongType, "`{}` is needed, found {}", elem_name(elem), kind_words(value)).primary(span).emit();
    return std::nullopt;
  };
  if (elem == Elem::Bool) {
    if (value.kind != StaticValue::Kind::Bool) return wrong();
    return Scalar::of_bool(value.flag);
  }
  if (is_string(elem)) {
    if (!value.is_string() && value.kind != StaticValue::Kind::Enum) return wrong();
    if (elem == Elem::Str && find_invalid_utf8(value.text)) {
      error(Kind::BadString, "the text is not UTF-8, and `str` is")
          .primary(span)
          .hint("as bytes it is `bytes(\"...\")`; characters beyond ASCII are written as they are, or `\\u{{e9}}`")
          .emit();
      return std::nullopt;
    }
    return Scalar::of_string(elem, value.text);
  }
  if (!value.is_number()) return wrong();
  if (is_float(elem)) {
    std::optional<double> x = value.number.to_float(elem);
    if (!x) {
      error(Kind::LiteralRange, "the number is beyond the largest `{}`", elem_name(elem)).primary(span).emit();
      return std::nullopt;
    }
    return Scalar::of_float(elem, *x);
  }
  // As written, where that is one literal.
  auto shown = [&] {
    std::string_view written = sources_.text(span);
    std::string text = value.number.to_string();
    if (text.size() > 30) text = written.size() <= 30 ? std::string(written) : text.substr(0, 30) + "...";
    return text;
  };
  if (!value.number.is_integer()) {
    error(Kind::MixedTypes, "`{}` meets `{}`, which holds whole numbers only", shown(), elem_name(elem))
        .primary(span)
        .hint("cast the other operand: `f32(x)` or `f64(x)`")
        .emit();
    return std::nullopt;
  }
  IntegerLimits limits = limits_of(elem);
  std::optional<int64_t> n = value.number.to_int64();
  if (!n || *n < limits.least || *n > limits.most) {
    error(Kind::LiteralRange, "`{}` is outside `{}`, which goes from {} to {}", shown(), elem_name(elem), limits.least,
          limits.most)
        .primary(span)
        .emit();
    return std::nullopt;
  }
  return Scalar::of_int(elem, *n);
}

// A static value as a constant of the graph; nullopt after an error.
std::optional<Operand> Compiler::materialize(const Operand& x, Elem elem, Frame& frame) {
  if (!x.is_static()) return x;
  Span at = place(x.span, frame);
  // Lists become tensors: every list of one level has the same length.
  std::vector<int64_t> shape;
  for (const StaticValue* level = &x.value; level->kind == StaticValue::Kind::List; level = &level->items[0]) {
    shape.push_back(static_cast<int64_t>(level->items.size()));
    if (level->items.empty()) break;
  }
  if (shape.size() > kMaxRank) {
    error(Kind::ShapeMismatch, "the list has more than {} dimensions", kMaxRank).primary(at).emit();
    return std::nullopt;
  }
  Value value(elem, shape);
  int64_t flat = 0;
  bool ragged = false;
  auto fill = [&](const auto& self, const StaticValue& v, size_t level) -> bool {
    bool is_list = v.kind == StaticValue::Kind::List;
    if (is_list != (level < shape.size()) || (is_list && static_cast<int64_t>(v.items.size()) != shape[level])) {
      ragged = true;
      return false;
    }
    if (!is_list) {
      std::optional<Scalar> scalar = to_scalar(v, elem, at);
      if (!scalar) return false;
      value.set(flat++, *scalar);
      return true;
    }
    return std::all_of(v.items.begin(), v.items.end(),
                       [&](const StaticValue& item) { return self(self, item, level + 1); });
  };
  if (!fill(fill, x.value, 0)) {
    if (ragged) error(Kind::ShapeMismatch, "the rows of the list differ in length").primary(at).emit();
    return std::nullopt;
  }
  return dynamic(add_constant(program_.graph, ops_, std::move(value), at), x.span);
}

bool Compiler::meet(const OpDef& op, std::vector<Operand>& args, const ast::Expr& e, Frame& frame) {
  // Arguments of one element variable take one type.
  std::string variables;
  const Parameter* parameter = nullptr;
  for (size_t i = 0; i < args.size() && (parameter = parameter_of(op, i, args.size())) != nullptr; ++i) {
    const TypePattern& pattern = parameter->pattern;
    if (is_variable(pattern)) {
      if (variables.find(pattern.elem) == variables.npos) variables += pattern.elem;
      continue;
    }
    if (!args[i].is_static()) continue;
    std::optional<Operand> typed = materialize(args[i], elem_from_name(pattern.elem).value_or(Elem::I64), frame);
    if (!typed) return false;
    args[i] = *std::move(typed);
  }
  std::sort(variables.begin(), variables.end());
  std::vector<size_t> members;
  members.reserve(args.size());
  for (const char letter : variables) {
    const std::string variable(1, letter);
    members.clear();
    for (size_t i = 0; i < args.size() && (parameter = parameter_of(op, i, args.size())) != nullptr; ++i)
      if (parameter->pattern.elem == variable) members.push_back(i);
    std::optional<size_t> first;  // the first argument with a type
    bool numeric = true;
    std::optional<Elem> elem;
    for (size_t i : members) {
      if (args[i].is_static()) continue;
      Elem own = type_of(args[i]).elem;
      if (!accepts(variable, own)) {
        std::string error_text;
        refuse_arguments(op, args, error_text, static_cast<int>(i), e, frame);
        return false;
      }
      numeric = numeric && is_numeric(own);
      if (op.promotes && is_small_integer(own)) own = Elem::I32;
      if (!elem) {
        elem = own;
        first = i;
        continue;
      }
      if (*elem == own) continue;
      bool integers = is_integer(*elem) && is_integer(own);
      if (op.promotes && integers) {
        elem = Elem::I64;
        continue;
      }
      if (!is_numeric(*elem) || !is_numeric(own)) {
        refuse_arguments(op, args, {}, static_cast<int>(i), e, frame);
        return false;
      }
      // The cast that loses nothing, where there is one.
      Elem wide = is_float(*elem) && (!is_float(own) || elem_size(*elem) >= elem_size(own)) ? *elem : own;
      size_t narrow = wide == *elem ? i : *first;
      std::string shown =
          sources_.text(args[narrow].span).size() <= 30 ? std::string(sources_.text(args[narrow].span)) : "x";
      error(Kind::MixedTypes, "`{}` with `{}` needs a cast", elem_name(type_of(args[*first]).elem),
            elem_name(type_of(args[i]).elem))
          .primary(place(e.text_span.valid() ? e.text_span : e.span, frame))
          .secondary(frame.here.valid() ? Span{} : args[*first].span, "`{}`", to_string(type_of(args[*first])))
          .secondary(frame.here.valid() ? Span{} : args[i].span, "`{}`", to_string(type_of(args[i])))
          .hint("for example `{}({})`", elem_name(wide), frame.here.valid() ? "x" : shown)
          .emit();
      return false;
    }
    if (!elem) {
      // Literals alone: the narrowest type that holds them all exactly, as far as the operator allows.
      elem = elem_alone(args[members[0]].value);
      for (size_t i : members)
        if (elem_alone(args[i].value) == Elem::F64) elem = Elem::F64;
      if (variable == "F" && is_numeric(*elem)) elem = Elem::F64;
    }
    for (size_t i : members) {
      if (!args[i].is_static()) {
        if (op.promotes && numeric && type_of(args[i]).elem != *elem)
          args[i] = add_cast(std::move(args[i]), *elem, frame);
        continue;
      }
      std::optional<Operand> typed = materialize(args[i], *elem, frame);
      if (!typed) return false;
      args[i] = *std::move(typed);
    }
  }
  return true;
}

// A static argument that the operator's rule of types refused: "\x1fNAME\x1fOFFSET\x1fMESSAGE", OFFSET the byte of the
// text that is wrong, or -1. The caret stands inside of the text where what is written is what is meant.
void Compiler::refuse_static_argument(const OpDef& op, const std::string& text, const ast::Expr& e, Frame& frame) {
  const size_t name_end = text.find('\x1f', 1), offset_end = text.find('\x1f', name_end + 1);
  const std::string name = text.substr(1, name_end - 1), message = text.substr(offset_end + 1);
  const int offset = std::stoi(text.substr(name_end + 1, offset_end - name_end - 1));
  Span span = place(e.span, frame);
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  std::optional<Matched> matched = match(op, e, {"key"}, frame);
  const ast::Expr* written = nullptr;
  for (size_t i = 0; matched && i < parameters.size(); ++i)
    if (parameters[i].name == name && !matched->of_parameter[i].empty()) written = matched->of_parameter[i][0];
  if (written != nullptr && !frame.here.valid()) {
    span = written->span;
    const std::string_view source = sources_.text(span);
    const uint32_t quotes = source.starts_with("r\"") ? 2 : 1;
    const bool as_meant = written->kind == ast::Expr::Kind::String && written->operands.empty() &&
                          written->pieces[0].size() + quotes + 1 == source.size();
    if (as_meant && offset >= 0) {
      span.begin += quotes + static_cast<uint32_t>(offset);
      span.end = span.begin + 1;
    }
  }
  error(Kind::Refused, "`{}` of `{}`: {}", name, op.surface.empty() ? op.name : op.surface, message)
      .primary(span)
      .emit();
}

// Why the arguments do not fit, seen from what is written.
void Compiler::refuse_arguments(const OpDef& op, const std::vector<Operand>& args, const std::string& text, int bad,
                                const ast::Expr& e, Frame& frame) {
  if (text.starts_with('\x1f')) return refuse_static_argument(op, text, e, frame);
  bool sign = e.kind == ast::Expr::Kind::Binary;
  auto show = [&](const Operand& x) { return frame.here.valid() ? Span{} : x.span; };
  if (bad < 0 || static_cast<size_t>(bad) >= args.size()) {
    auto builder = error(Kind::Refused, "{}", text).primary(place(e.span, frame));
    for (const Operand& x : args)
      if (x.kind == Operand::Kind::Dynamic && x.origin.valid())
        std::move(builder).secondary(x.origin, "`{}` is `{}`", x.name, type_text(x));
    std::move(builder).emit();
    return;
  }
  const Operand& x = args[static_cast<size_t>(bad)];
  const Parameter& parameter = *parameter_of(op, static_cast<size_t>(bad), args.size());
  const TypePattern& pattern = parameter.pattern;
  bool wrong_elem = !x.is_static() && !accepts(pattern.elem, type_of(x).elem);
  if (sign && !wrong_elem && args.size() == 2 && !args[0].is_static() && !args[1].is_static()) {
    bool shapes = type_of(args[0]).elem == type_of(args[1]).elem;
    error(shapes ? Kind::ShapeMismatch : Kind::WrongType, "`{}` cannot take `{}` and `{}`", e.text, type_text(args[0]),
          type_text(args[1]))
        .primary(place(e.text_span, frame))
        .secondary(show(args[0]), "`{}`", type_text(args[0]))
        .secondary(show(args[1]), "`{}`", type_text(args[1]))
        .emit();
    return;
  }
  std::string_view wants = pattern.elem == "N"   ? "a number"
                           : pattern.elem == "F" ? "a float"
                           : pattern.elem == "I" ? "an integer"
                           : pattern.elem == "S" ? "a string"
                                                 : std::string_view();
  std::string called = sign ? e.text : std::string(op.surface.empty() ? op.name : op.surface);
  if (e.kind == ast::Expr::Kind::Unary) called = e.text;
  std::string message = text;
  if (wrong_elem)
    message = fmt::format("`{}` needs {}, found `{}`", called,
                          wants.empty() ? fmt::format("`{}`", pattern.elem) : std::string(wants), type_text(x));
  else if (message.empty())
    message = fmt::format("`{}` of `{}` cannot be `{}`", parameter.name, called, type_text(x));
  std::string hint;
  if (wrong_elem && pattern.elem == "F" && is_integer(type_of(x).elem)) hint = "cast it: `f32(x)`";
  if (wrong_elem && pattern.elem == "bool" && is_numeric(type_of(x).elem))
    hint = fmt::format("compare it, for example `{} > 0`", x.name.empty() ? "x" : x.name);
  error(wrong_elem ? Kind::WrongType : Kind::ShapeMismatch, "{}", message)
      .primary(place(x.span, frame), "this is `{}`", type_text(x))
      .secondary(frame.here.valid() ? Span{} : x.origin, "`{}` becomes `{}` here", x.name, type_text(x))
      .hint_text(std::move(hint))
      .emit();
}

// Two decoded pictures both have a height `h`; they are not the same height. Each result gets symbols of its own, and
// the same expression the same ones.
void Compiler::rename_symbols(Type& type, const std::vector<ExprId>& args, const Expr& expr) {
  const auto symbolic = [](const Dim& dim) { return !dim.symbol.empty() && !is_varying(dim); };
  if (std::none_of(type.shape.begin(), type.shape.end(), symbolic) &&
      std::none_of(type.box.begin(), type.box.end(), symbolic))
    return;
  std::set<std::string> known;
  for (ExprId arg : args)
    for (const std::vector<Dim>* dims : {&program_.graph.expr(arg).type.shape, &program_.graph.expr(arg).type.box})
      for (const Dim& dim : *dims) known.insert(dim.symbol);
  std::vector<Dim*> fresh;
  for (std::vector<Dim>* dims : {&type.shape, &type.box})
    for (Dim& dim : *dims)
      if (symbolic(dim) && !known.contains(dim.symbol)) fresh.push_back(&dim);
  if (fresh.empty()) return;
  std::string key = fmt::format("{}#{}", expr.op->name, expr.draw_id);
  for (ExprId arg : args) key += fmt::format(",{}", arg.index);
  for (const auto& [name, value] : expr.attrs) key += fmt::format(",{}={}", name, to_string(value));
  auto it = renamed_.find(key);
  if (it == renamed_.end()) {
    std::map<std::string, std::string> names;
    for (Dim* dim : fresh) {
      auto [name, first] = names.emplace(dim->symbol, dim->symbol);
      if (first)
        if (int count = symbol_counts_[dim->symbol]++; count > 0) name->second += std::to_string(count + 1);
      dim->symbol = name->second;
    }
    it = renamed_.emplace(std::move(key), type).first;
  }
  type = it->second;
}

Operand Compiler::apply(const OpDef& op, std::vector<Operand> args, Attrs attrs, const ast::Expr& e, Frame& frame,
                        std::optional<uint64_t> key) {
  if (std::any_of(args.begin(), args.end(), [](const Operand& x) { return x.is_poison(); })) return {};
  if (frame.constant && (op.cls == OpClass::Draw)) {
    error(Kind::NotConstant, "a constant cannot draw: `{}` gives each sample its own value", op.name)
        .primary(place(e.span, frame))
        .hint("assign it to a field")
        .emit();
    return {};
  }
  std::vector<ExprId> lengths;
  if (!admit(op, args, attrs, e, frame, lengths) || !meet(op, args, e, frame)) return {};
  Expr expr;
  expr.op = &op;
  std::vector<Type> types;
  std::vector<const Value*> constants;
  expr.args.reserve(args.size());
  types.reserve(args.size());
  constants.reserve(args.size());
  for (const Operand& x : args) {
    expr.args.push_back(x.expr);
    types.push_back(type_of(x));
    constants.push_back(program_.graph.expr(x.expr).constant.get());
  }
  std::string text;
  int bad = -1;
  std::optional<Type> type = unify(op, attrs, types, constants, text, bad);
  if (!type) {
    refuse_arguments(op, args, text, bad, e, frame);
    return {};
  }
  if (type->poison) return {};
  if (!op.expansion.empty()) return expand(op, args, attrs, e, frame, key);
  expr.attrs = std::move(attrs);
  if (op.cls == OpClass::Draw) {
    uint64_t words[] = {frame.path, frame.draws++};
    expr.draw_id = key ? *key : hash_words(words);
    if (expr.draw_id == 0) expr.draw_id = 1;  // 0 says "no draw"
  }
  expr.type = *std::move(type);
  rename_symbols(expr.type, expr.args, expr);
  expr.origin.push_back(place(e.span, frame));
  Operand result = dynamic(program_.graph.add(std::move(expr)), e.span);
  result.lengths = std::move(lengths);
  return result;
}

// What only a few operators may see of their arguments: values that may be missing, records, lists of lists. Pointwise
// operators keep the lists as they are.
bool Compiler::admit(const OpDef& op, std::vector<Operand>& args, const Attrs& attrs, const ast::Expr& e, Frame& frame,
                     std::vector<ExprId>& lengths) {
  std::string_view called = e.kind == ast::Expr::Kind::Binary || e.kind == ast::Expr::Kind::Unary
                                ? std::string_view(e.text)
                            : op.surface.empty() ? op.name
                                                 : op.surface;
  auto show = [&](const Operand& x) {
    return x.name.empty() || !x.is_record()
               ? (sources_.text(x.span).size() <= 20 && !frame.here.valid() ? std::string(sources_.text(x.span)) : "x")
               : x.name;
  };
  const Operand* lists = nullptr;
  for (size_t i = 0; i < args.size(); ++i) {
    Operand& x = args[i];
    if (x.is_record()) {
      error(Kind::WrongType, "`{}` takes values, not a record", called)
          .primary(place(x.span, frame), "this is `{}`", type_text(x))
          .hint("name one of its fields: `{}.{}`", show(x), x.members[0].name)
          .emit();
      return false;
    }
    const auto maybe = [&] {
      const Parameter* parameter = parameter_of(op, i, args.size());
      return parameter != nullptr && parameter->pattern.maybe;
    };
    if (x.missing.valid() && !maybe()) {
      Elem elem = type_of(x).elem;
      error(Kind::WrongType, "`{}` needs a value, and `{}` may be missing", called, type_text(x))
          .primary(place(x.span, frame), "this is `{}`", type_text(x))
          .secondary(frame.here.valid() ? Span{} : x.origin, "`{}` becomes `{}` here", x.name, type_text(x))
          .hint("say what stands for it: `default({}, {})`", show(x),
                !type_of(x).is_scalar() && program_.graph.expr(x.missing).type.is_scalar() ? "[]"
                : is_string(elem)                                                          ? "\"\""
                : elem == Elem::Bool                                                       ? "false"
                                                                                           : "0")
          .emit();
      return false;
    }
    if (x.lengths.empty()) continue;
    if (op.shape_only && i == 0) {
      x.expr = x.lengths[0];
      x.lengths.clear();
      continue;
    }
    const bool flat = (op.cls == OpClass::Reduce && !attrs.has("axes")) || !op.expansion.empty();
    if (flat) continue;
    bool fits = op.cls == OpClass::Pointwise;
    if (fits && lists != nullptr && lists->lengths != x.lengths) fits = false;
    if (!fits) {
      error(Kind::WrongType, "`{}` cannot take a list of lists{}", called,
            op.cls == OpClass::Pointwise ? " with another one, whose lengths differ" : "")
          .primary(place(x.span, frame), "this is `{}`", type_text(x))
          .hint("take one of the lists: `{}[0]`", show(x))
          .emit();
      return false;
    }
    lists = &x;
  }
  if (lists == nullptr) return true;
  for (const Operand& x : args)
    if (x.kind == Operand::Kind::Dynamic && x.lengths.empty() && !type_of(x).is_scalar()) {
      error(Kind::ShapeMismatch, "`{}` cannot take a list of lists with a tensor", called)
          .primary(place(x.span, frame), "this is `{}`", type_text(x))
          .secondary(frame.here.valid() ? Span{} : lists->span, "this is `{}`", type_text(*lists))
          .emit();
      return false;
    }
  lengths = lists->lengths;
  return true;
}

std::optional<Operand> Compiler::record(const ast::Expr& e, Frame& frame) {
  using Form = ast::Expr::Kind;
  if (e.kind == Form::Name) {
    std::optional<Operand> found = find_name(e.text, e.span, frame);
    return found && found->is_record() ? found : std::nullopt;
  }
  if (e.kind == Form::Call && module_->functions.contains(e.text)) return std::nullopt;
  if (e.kind == Form::Call) {
    const OpDef* op = find_operator(e.text, e, true);
    if (op == nullptr || !op->gives_record) return std::nullopt;
    return evaluate(e, frame);
  }
  if (e.kind != Form::Member && e.kind != Form::Index) return std::nullopt;
  std::optional<Operand> base = record(e.operands[0], frame);
  if (!base || base->is_poison()) return base;
  if (e.kind == Form::Index) return index_of(*base, e, frame);
  for (auto& [name, member] : base->members)
    if (name == e.text && member.is_record()) return member;
  return std::nullopt;
}

Operand Compiler::binary(const ast::Expr& e, Frame& frame) {
  const ast::Expr* sides[] = {&e.operands[0], &e.operands[1]};
  Operand values[2];
  // `mode == train`: where one side is a choice, the other may be the name of one.
  auto choice_name = [&](const ast::Expr& side) {
    if (side.kind != ast::Expr::Kind::Name || (e.text != "==" && e.text != "!=")) return false;
    Frame probe = frame;
    return !find_name(side.text, side.span, probe);
  };
  int named = choice_name(*sides[0]) ? 0 : choice_name(*sides[1]) ? 1 : -1;
  for (int i : {0, 1})
    if (i != named) values[i] = evaluate(*sides[i], frame);
  if (named >= 0) {
    const Operand& other = values[1 - named];
    if (other.is_static() && other.value.kind == StaticValue::Kind::Enum) {
      const std::vector<std::string>& choices = other.value.choices;
      const ast::Expr& side = *sides[named];
      if (std::find(choices.begin(), choices.end(), side.text) == choices.end()) {
        error(Kind::UnknownName, "`{}` is none of the choices of `{}`", side.text, sides[1 - named]->text)
            .primary(place(side.span, frame))
            .hint_text(did_you_mean(side.text, choices))
            .emit();
        return {};
      }
      values[named] = other;
      values[named].value.text = side.text;
      values[named].span = side.span;
    } else if (!other.is_poison()) {
      values[named] = evaluate(*sides[named], frame);
    }
  }
  if (values[0].is_poison() || values[1].is_poison()) return {};
  if (values[0].is_static() && values[1].is_static())
    if (std::optional<Operand> folded = fold_binary(e, values[0], values[1], frame)) return *std::move(folded);
  std::vector<Operand> args;
  args.reserve(2);
  for (Operand& value : values) args.push_back(std::move(value));
  for (const Sign& s : kBinary)
    if (s.sign == e.text) return apply(core(s.op), std::move(args), {}, e, frame);
  ZEPHON_CHECK(false, "no operator is written `{}`", e.text);
  return {};
}

Operand Compiler::index(const ast::Expr& e, Frame& frame) {
  Operand x = evaluate(e.operands[0], frame);
  return x.is_poison() ? x : index_of(std::move(x), e, frame);
}

Operand Compiler::index_of(Operand x, const ast::Expr& e, Frame& frame) {
  if (x.is_record()) {
    // A list of records is a record of lists; the subscripts are the same expressions each time.
    const Frame before = frame;
    for (auto& [name, member] : x.members) {
      frame = before;
      member = index_of(member, e, frame);
      if (member.is_poison()) return {};
    }
    x.span = e.span;
    return x;
  }
  if (!x.lengths.empty()) return index_lists(x, e, frame);
  if (x.missing.valid() && !program_.graph.expr(x.missing).type.is_scalar()) {
    // Each element says whether it is missing: the same is taken of both.
    Operand values = x, marks = dynamic(x.missing, x.span);
    values.missing = {};
    const Frame before = frame;
    values = index_of(std::move(values), e, frame);
    frame = before;
    marks = index_of(std::move(marks), e, frame);
    if (values.is_poison() || marks.is_poison()) return {};
    values.missing = marks.expr;
    return values;
  }
  if (x.is_static()) {
    if (std::optional<Operand> folded = fold_index(x, e, frame)) return *std::move(folded);
    std::optional<Operand> typed = materialize(x, elem_alone(x.value), frame);
    if (!typed) return {};
    x = *typed;
  }
  size_t rank = type_of(x).rank(), count = e.operands.size() - 1;
  if (count > rank) {
    error(Kind::ShapeMismatch, "`{}` has {} dimension{}, and {} {} indexed", type_text(x), rank, rank == 1 ? "" : "s",
          count, count == 1 ? "is" : "are")
        .primary(place(e.text_span, frame))
        .secondary(frame.here.valid() ? Span{} : x.origin, "`{}` becomes `{}` here", x.name, type_text(x))
        .emit();
    return {};
  }
  std::vector<int64_t> begin(rank, 0), end(rank, std::numeric_limits<int64_t>::max()), step(rank, 1), dims;
  std::vector<Operand> args = {x};
  bool slices = false, good = true;
  for (size_t d = 0; d < count; ++d) {
    const ast::Expr& subscript = e.operands[d + 1];
    if (subscript.kind != ast::Expr::Kind::Slice) {
      Operand at = evaluate(subscript, frame);
      good = good && !at.is_poison();
      // Positions of any integer type are meant as i64.
      if (at.kind == Operand::Kind::Dynamic && is_integer(type_of(at).elem)) at = add_cast(at, Elem::I64, frame);
      args.push_back(std::move(at));
      dims.push_back(static_cast<int64_t>(d));
      continue;
    }
    int64_t* bounds[] = {&begin[d], &end[d], &step[d]};
    for (size_t k = 0; k < 3; ++k) {
      if (subscript.operands[k].kind == ast::Expr::Kind::Absent) continue;
      Operand bound = known(evaluate(subscript.operands[k], frame));
      slices = true;
      if (bound.is_poison()) {
        good = false;
      } else if (!bound.is_static() || !bound.value.is_number() || !bound.value.number.to_int64()) {
        error(bound.is_static() ? Kind::WrongType : Kind::NotConstant,
              "a bound of a slice is a whole number known before the run")
            .primary(place(bound.span, frame), "this is {}", type_text(bound))
            .emit();
        good = false;
      } else {
        *bounds[k] = *bound.value.number.to_int64();
      }
    }
  }
  if (!good) return {};
  if (slices) {
    Attrs attrs;
    attrs.set("begin", begin);
    attrs.set("end", end);
    attrs.set("step", step);
    args[0] = apply(core("slice"), {x}, std::move(attrs), e, frame);
    if (args[0].is_poison()) return {};
  }
  if (args.size() == 1) {
    args[0].span = e.span;
    return args[0];
  }
  Attrs attrs;
  // Only where they are not simply the leading ones.
  if (dims.back() + 1 != static_cast<int64_t>(dims.size())) attrs.set("dims", dims);
  return apply(core("index"), std::move(args), std::move(attrs), e, frame);
}

// x[i] and x[a:b] of a list of lists, the other subscripts on what that gives.
Operand Compiler::index_lists(const Operand& x, const ast::Expr& e, Frame& frame) {
  const ast::Expr& first = e.operands[1];
  const bool slices = first.kind == ast::Expr::Kind::Slice;
  std::vector<Operand> at;
  Attrs attrs;
  if (slices) {
    int64_t bounds[] = {0, std::numeric_limits<int64_t>::max(), 1};
    for (size_t k = 0; k < 3; ++k) {
      if (first.operands[k].kind == ast::Expr::Kind::Absent) continue;
      Operand bound = known(evaluate(first.operands[k], frame));
      if (bound.is_poison()) return {};
      std::optional<int64_t> n =
          bound.is_static() && bound.value.is_number() ? bound.value.number.to_int64() : std::nullopt;
      if (!n || (k == 2 && *n != 1)) {
        error(k == 2 ? Kind::Refused : Kind::NotConstant, "{}",
              k == 2 ? "a slice of a list of lists has step 1"
                     : "a bound of a slice is a whole number known before the run")
            .primary(place(bound.span, frame))
            .emit();
        return {};
      }
      bounds[k] = *n;
    }
    attrs.set("begin", bounds[0]);
    attrs.set("end", bounds[1]);
  } else {
    at.push_back(evaluate(first, frame));
    if (at[0].is_poison()) return {};
    if (at[0].kind == Operand::Kind::Dynamic && is_integer(type_of(at[0]).elem))
      at[0] = add_cast(at[0], Elem::I64, frame);
  }
  const OpDef& op = core(slices ? "lists_between" : "list_at");
  // What one list of the outermost level holds, counted in lists (or elements) of each level below.
  auto part = [&](ExprId of, ExprId lengths) {
    std::vector<Operand> args = {dynamic(of, x.span), dynamic(lengths, x.span)};
    args.insert(args.end(), at.begin(), at.end());
    return apply(op, std::move(args), attrs, e, frame);
  };
  Operand result = x;
  result.lengths.clear();
  if (slices) {
    ast::Expr written = e;
    Attrs own;
    own.set("begin", std::vector<int64_t>{attrs.integer("begin")});
    own.set("end", std::vector<int64_t>{attrs.integer("end")});
    own.set("step", std::vector<int64_t>{1});
    Operand outer = apply(core("slice"), {dynamic(x.lengths[0], x.span)}, std::move(own), written, frame);
    if (outer.is_poison()) return {};
    result.lengths.push_back(outer.expr);
  }
  ExprId counts = x.lengths[0];
  for (size_t level = 1; level < x.lengths.size(); ++level) {
    Operand lengths = part(x.lengths[level], counts);
    if (lengths.is_poison()) return {};
    result.lengths.push_back(lengths.expr);
    Operand sums = apply(core("list_sums"), {dynamic(x.lengths[level], x.span), dynamic(counts, x.span)}, {}, e, frame);
    if (sums.is_poison()) return {};
    counts = sums.expr;
  }
  Operand values = part(x.expr, counts);
  if (values.is_poison()) return {};
  result.expr = values.expr;
  if (x.missing.valid() && !program_.graph.expr(x.missing).type.is_scalar()) {
    Operand missing = part(x.missing, counts);
    if (missing.is_poison()) return {};
    result.missing = missing.expr;
  } else if (x.missing.valid()) {
    Operand whole = x;  // lists that may be missing as a whole are refused like any value
    whole.lengths.clear();
    std::vector<Operand> args = {whole};
    std::vector<ExprId> none;
    admit(op, args, {}, e, frame, none);
    return {};
  }
  result.name.clear();
  result.span = e.span;
  if (e.operands.size() == 2) return result;
  ast::Expr rest = e;
  rest.operands.erase(rest.operands.begin() + 1);
  if (!slices) return index_of(result, rest, frame);
  error(Kind::ShapeMismatch, "behind a slice of a list of lists nothing can be indexed")
      .primary(place(e.text_span, frame))
      .emit();
  return {};
}

bool Compiler::declared_leaves(const ast::Type& type, const std::string& path, Frame& frame,
                               std::map<std::string, Dim>& symbols, std::vector<DeclaredLeaf>& leaves) {
  // Below `path` stands what is written in `type`.
  std::string here = path;
  const ast::Type* inner = &type;
  for (;;) {
    if (inner->optional) here += "?";
    if (inner->kind != ast::Type::Kind::List) break;
    here += "[]";
    inner = &inner->fields[0].type;
  }
  if (inner->kind == ast::Type::Kind::Record) {
    if (inner->fields.empty()) {
      error(Kind::WrongType, "a record has at least one field").primary(place(inner->span, frame)).emit();
      return false;
    }
    for (size_t i = 0; i < inner->fields.size(); ++i) {
      const ast::SchemaField& field = inner->fields[i];
      for (size_t k = 0; k < i; ++k)
        if (inner->fields[k].name.text == field.name.text) {
          error(Kind::DuplicateName, "`{}` is declared twice", field.name.text)
              .primary(place(field.name.span, frame))
              .emit();
          return false;
        }
      if (!declared_leaves(field.type, here.empty() ? field.name.text : here + "." + field.name.text, frame, symbols,
                           leaves))
        return false;
    }
    return true;
  }
  ast::Type plain = *inner;
  plain.optional = false;
  std::optional<Type> element = declared_type(plain, frame, symbols);
  if (!element) return false;
  DeclaredLeaf leaf;
  leaf.path = here;
  leaf.element = leaf.type = *element;
  // The whole has no name that could be optional.
  const LeafPath steps = LeafPath::parse(here.starts_with('?') ? "x" + here : here);
  const int lists = steps.lists();
  if (lists > 0) leaf.type.shape.insert(leaf.type.shape.begin(), varying_dim());
  leaf.levels = lists > 1 ? static_cast<size_t>(lists - 1) : 0;
  if (leaf.type.rank() > kMaxRank - 1) {
    error(Kind::ShapeMismatch, "the type has more than {} dimensions", kMaxRank - 1)
        .primary(place(inner->span, frame))
        .emit();
    return false;
  }
  const int depth = steps.missing_depth();
  if (depth >= 0) {
    std::set<int> depths;
    for (int at = 0, i = 0; i < static_cast<int>(steps.steps.size()); ++i) {
      at += steps.steps[static_cast<size_t>(i)].key.empty();
      if (steps.steps[static_cast<size_t>(i)].optional) depths.insert(at);
    }
    std::string_view wrong =
        depths.size() > 1 ? "a list that may be missing cannot hold values that may be missing too"
        : depth > 0 && depth < lists
            ? "of a list of lists the whole or the innermost values may be missing, not the lists between"
        : depth > 0 && !element->is_scalar() ? "in a list only scalars may be missing"
                                             : std::string_view();
    if (!wrong.empty()) {
      error(Kind::WrongType, "{}", wrong).primary(place(type.span, frame)).emit();
      return false;
    }
    leaf.missing_rank = depth > 0 ? 1 : 0;
  }
  leaves.push_back(std::move(leaf));
  return true;
}

bool Compiler::fit(Operand& value, const std::vector<DeclaredLeaf>& leaves, const std::string& what,
                   const ast::Type& declared, std::map<std::string, NamedSize>& sizes, Frame& frame) {
  if (value.is_static()) {
    if (leaves.size() != 1 || leaves[0].path.find_first_not_of("[]?") != std::string::npos) {
      error(Kind::WrongType, "{} needs a record, found {}", what, kind_words(value.value))
          .primary(place(value.span, frame))
          .emit();
      return false;
    }
    std::optional<Operand> typed = materialize(value, leaves[0].element.elem, frame);
    if (!typed) return false;
    value = *typed;
  }
  auto refuse = [&](const Operand& found, const DeclaredLeaf& leaf, Kind kind) {
    std::string wanted = declared_text(leaf.type, leaf.missing_rank, leaf.levels);
    std::string name = LeafPath::parse(leaf.path).field();
    bool missing = found.kind == Operand::Kind::Dynamic && found.missing.valid() && leaf.missing_rank < 0;
    error(kind, "{} needs {}`{}`, found `{}`", what, name.empty() ? "" : fmt::format("`{}` as ", name), wanted,
          type_text(found))
        .primary(place(value.span, frame), "this is `{}`", type_text(value))
        .secondary(declared.span, "declared here")
        .secondary(value.origin, "`{}` is assigned here", value.name)
        .hint_text(missing ? "`default(x, ...)` says what stands for a missing value" : "")
        .emit();
    return false;
  };
  for (const DeclaredLeaf& leaf : leaves) {
    Operand* at = &value;
    std::string name = LeafPath::parse(leaf.path).field();
    for (std::string_view rest = name; !rest.empty();) {
      std::string_view key = rest.substr(0, rest.find('.'));
      rest.remove_prefix(std::min(rest.size(), key.size() + 1));
      Operand* next = nullptr;
      for (auto& [member_name, member] : at->members)
        if (member_name == key) next = &member;
      if (next == nullptr && !at->is_record()) {
        error(Kind::WrongType, "{} needs a record, found `{}`", what, type_text(*at))
            .primary(place(value.span, frame), "this is `{}`", type_text(value))
            .secondary(declared.span, "declared here")
            .emit();
        return false;
      }
      if (next == nullptr) return refuse(*at, leaf, Kind::WrongType);
      at = next;
    }
    if (at->kind != Operand::Kind::Dynamic) return refuse(*at, leaf, Kind::WrongType);
    const Type& found = type_of(*at);
    bool same_kind = found.elem == leaf.type.elem && at->lengths.size() == leaf.levels;
    bool fits = same_kind && found.rank() == leaf.type.rank();
    // What is left to be checked while running: dimensions of the value, the sizes that they must have, whose these
    // are.
    std::vector<int64_t> dims;
    std::vector<std::pair<Dim, const NamedSize*>> wanted_sizes;
    for (size_t d = 0; fits && d < found.rank(); ++d) {
      // A symbol of the function is bound by the first extent that it meets.
      Dim wanted = leaf.type.shape[d];
      const Dim& have = found.shape[d];
      if (is_varying(wanted)) continue;
      const NamedSize* named = nullptr;
      if (!wanted.symbol.empty()) {
        const std::string owner = fmt::format("`{}` of {}", wanted.symbol, what);
        auto [it, first] = sizes.emplace(wanted.symbol, NamedSize{have, at->expr, d, owner});
        if (first) continue;
        named = &it->second;
        wanted = named->dim;
      }
      fits = !(wanted.is_static() && have.is_static() && wanted != have);
      if (wanted == have && wanted != Dim::unknown() && !is_varying(wanted)) continue;
      dims.push_back(static_cast<int64_t>(d));
      wanted_sizes.emplace_back(wanted, named);
    }
    int missing_rank = at->missing.valid() ? static_cast<int>(program_.graph.expr(at->missing).type.rank()) : -1;
    if (fits && missing_rank < 0 && leaf.missing_rank == 0)
      at->missing = constant(Value::scalar(Scalar::of_bool(false)), place(value.span, frame)).expr;
    else if (fits && missing_rank != leaf.missing_rank)
      return refuse(*at, leaf, Kind::WrongType);
    if (!fits) return refuse(*at, leaf, same_kind ? Kind::ShapeMismatch : Kind::WrongType);
    if (dims.empty()) continue;
    ast::Expr written;
    written.kind = ast::Expr::Kind::Call;
    written.span = written.text_span = value.span;
    std::vector<Operand> args = {dynamic(at->expr, value.span),
                                 at->missing.valid() && missing_rank == 0
                                     ? dynamic(at->missing, value.span)
                                     : constant(Value::scalar(Scalar::of_bool(false)), place(value.span, frame))};
    std::vector<std::string> owners;
    for (const auto& [wanted, named] : wanted_sizes) {
      owners.push_back(named ? named->owner : "");
      if (wanted.is_static()) {
        args.push_back(constant(Value::scalar(Scalar::of_int(Elem::I64, wanted.extent)), place(value.span, frame)));
        continue;
      }
      Attrs attrs;
      attrs.set("dimension", static_cast<int64_t>(named->dimension));
      args.push_back(apply(core("extent"), {dynamic(named->of, value.span)}, std::move(attrs), written, frame));
    }
    Attrs attrs;
    attrs.set("dims", std::move(dims));
    attrs.set("names", std::move(owners));
    attrs.set("promise",
              fmt::format("{} is declared as `{}`", what, declared_text(leaf.type, leaf.missing_rank, leaf.levels)));
    const Operand checked = apply(core("check_shape"), std::move(args), std::move(attrs), written, frame);
    if (checked.is_poison()) return false;
    at->expr = checked.expr;
  }
  return true;
}

// A type as written, for arguments of functions, schemas and contracts. Names that are no static value are symbols.
std::optional<Type> Compiler::declared_type(const ast::Type& type, Frame& frame, std::map<std::string, Dim>& symbols) {
  auto wrong = [&](std::string_view what) -> std::optional<Type> {
    std::vector<std::string> names;
#define ZEPHON_X(id, name, size) names.emplace_back(name);
    ZEPHON_ELEM_TYPES(ZEPHON_X)
#undef ZEPHON_X
    error(Kind::WrongType, "{}", what)
        .primary(place(type.span, frame))
        .hint_text(did_you_mean(type.name, names))
        .emit();
    return std::nullopt;
  };
  if (type.kind != ast::Type::Kind::Named || type.optional) return wrong("an element type or a tensor is needed here");
  std::optional<Elem> elem = elem_from_name(type.name);
  if (!elem) return wrong(fmt::format("no type is called `{}`", type.name));
  Type result = Type::scalar(*elem);
  for (const ast::Expr& dim : type.dims) {
    Frame scope;
    scope.arguments = frame.arguments;
    scope.constant = true;
    if (dim.kind == ast::Expr::Kind::Name && !(module_ == root_ && parameters_.contains(dim.text)) &&
        !module_->lets.contains(dim.text) && (scope.arguments == nullptr || !scope.arguments->contains(dim.text))) {
      result.shape.push_back(symbols.emplace(dim.text, Dim::named(dim.text)).first->second);
      continue;
    }
    Operand value = evaluate(dim, scope);
    if (value.is_poison()) return std::nullopt;
    std::optional<int64_t> extent =
        value.is_static() && value.value.is_number() ? value.value.number.to_int64() : std::nullopt;
    if (!extent || *extent < 0) {
      error(Kind::WrongType, "a dimension is a whole number or a name").primary(place(dim.span, frame)).emit();
      return std::nullopt;
    }
    result.shape.push_back(Dim::of(*extent));
  }
  return result;
}

}  // namespace zephon
