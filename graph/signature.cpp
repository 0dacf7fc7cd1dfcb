#include "graph/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace zephon {
namespace {

// ---- reading -----------------------------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const OpDef& op) : op_(op), text_(op.signature) {}

  Signature read() {
    Signature s;
    while (!accept("->")) {
      if (!s.parameters.empty() || s.stream_in) expect(",");
      if (s.parameters.empty() && !s.stream_in && accept("stream")) {
        s.stream_in = true;
        continue;
      }
      s.parameters.push_back(parameter());
    }
    if (accept("stream")) {
      s.stream_out = true;
    } else {
      s.result = pattern();
    }
    skip();
    if (at_ != text_.size()) malformed("end");
    return s;
  }

 private:
  [[noreturn]] void malformed(std::string_view wanted) {
    std::fprintf(stderr, "malformed signature of `%.*s` at byte %zu: expected %.*s\n", int(op_.name.size()),
                 op_.name.data(), at_, int(wanted.size()), wanted.data());
    std::abort();
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  static bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    const size_t end = at_ + token.size();
    if (word_char(token.back()) && end < text_.size() && word_char(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) malformed(token);
  }
  std::string word() {
    skip();
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '$') ++at_;  // hidden from programs
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (begin == at_) malformed("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool at_number() {
    skip();
    return at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-');
  }
  std::string number_text() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (word_char(text_[at_]) || text_[at_] == '-' || text_[at_] == '.' || text_[at_] == '+'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  TypePattern pattern() {
    TypePattern p;
    p.maybe = accept("maybe");
    p.elem = word();
    if (p.elem == "box") {
      p.box = true;
      p.elem = "i64";
    }
    if (!accept("[")) return p;
    while (!accept("]")) {
      if (!p.shape.empty()) expect(",");
      DimPattern d;
      if (accept("...")) {
        d.kind = DimPattern::Kind::Pack;
        d.symbol = word();
      } else if (accept("?")) {
        d.kind = DimPattern::Kind::Any;
      } else if (at_number()) {
        d.kind = DimPattern::Kind::Extent;
        d.extent = std::stoll(number_text());
      } else {
        d.kind = DimPattern::Kind::Symbol;
        d.symbol = word();
      }
      p.shape.push_back(d);
    }
    return p;
  }

  Attr default_value(const Parameter& p) {
    switch (p.static_kind) {
      case StaticKind::Int:
        return int64_t{std::stoll(number_text())};
      case StaticKind::Number:
        return std::stod(number_text());
      case StaticKind::Bool:
        return word() == "true";
      case StaticKind::Enum:
        return word();
      case StaticKind::Elem:
        return *elem_from_name(word());
      case StaticKind::String: {
        expect("\"");
        const size_t begin = at_;
        while (at_ < text_.size() && text_[at_] != '"') ++at_;
        std::string value(text_.substr(begin, at_ - begin));
        expect("\"");
        return value;
      }
      case StaticKind::Ints:
      case StaticKind::Numbers: {
        std::vector<int64_t> ints;
        std::vector<double> numbers;
        expect("[");
        while (!accept("]")) {
          if (!numbers.empty()) expect(",");
          std::string n = number_text();
          numbers.push_back(std::stod(n));
          ints.push_back(static_cast<int64_t>(numbers.back()));
        }
        if (p.static_kind == StaticKind::Ints) return ints;
        return numbers;
      }
      case StaticKind::Strings:
        expect("[");
        expect("]");
        return std::vector<std::string>{};
      case StaticKind::None:
      case StaticKind::Schema:
      case StaticKind::Column:
        malformed("no default here");
    }
    malformed("a default");
  }

  Parameter parameter() {
    Parameter p;
    p.name = word();
    expect(":");
    static constexpr std::pair<std::string_view, StaticKind> kKinds[] = {
        {"int", StaticKind::Int},         {"number", StaticKind::Number}, {"bool!", StaticKind::Bool},
        {"string", StaticKind::String},   {"ints", StaticKind::Ints},     {"numbers", StaticKind::Numbers},
        {"strings", StaticKind::Strings}, {"enum", StaticKind::Enum},     {"elem", StaticKind::Elem},
        {"schema", StaticKind::Schema},   {"column", StaticKind::Column}};
    for (auto& [name, kind] : kKinds) {
      if (!accept(name)) continue;
      p.static_kind = kind;
      break;
    }
    // `bool` names an element type; a static flag is a `bool` with a default, or `flag`.
    if (p.static_kind == StaticKind::None && accept("flag")) p.static_kind = StaticKind::Bool;
    if (p.static_kind == StaticKind::Enum) {
      expect("(");
      do p.choices.push_back(word());
      while (accept(","));
      expect(")");
    }
    if (p.static_kind == StaticKind::None) p.pattern = pattern();
    for (;;) {
      if (accept("...")) {
        p.variadic = true;
      } else if (accept("?")) {
        p.optional = true;
      } else if (accept(">=")) {
        p.at_least = std::stoll(number_text());
      } else if (accept("=")) {
        if (p.static_kind == StaticKind::None && p.pattern.elem == "bool" && p.pattern.shape.empty())
          p.static_kind = StaticKind::Bool;
        p.default_value = default_value(p);
      } else {
        break;
      }
    }
    return p;
  }

  const OpDef& op_;
  std::string_view text_;
  size_t at_ = 0;
};

// ---- unification ---------------------------------------------------------------------------------------------------

bool elem_fits(const std::string& pattern, Elem e) {
  if (pattern == "T") return true;
  if (pattern == "N") return is_numeric(e);
  if (pattern == "F") return is_float(e);
  if (pattern == "I") return is_integer(e);
  if (pattern == "S") return is_string(e);
  return elem_name(e) == pattern;
}
bool is_variable(const std::string& pattern) { return pattern.size() == 1; }

std::string describe(const TypePattern& p) {
  std::string elem = p.elem == "T"   ? "any type"
                     : p.elem == "N" ? "a number"
                     : p.elem == "F" ? "a float"
                     : p.elem == "I" ? "an integer"
                     : p.elem == "S" ? "a string"
                                     : "`" + p.elem + "`";
  if (p.box) elem = "a box";
  if (p.shape.empty() || p.box) return elem;
  if (p.shape.size() == 1 && p.shape[0].kind == DimPattern::Kind::Pack) return elem + " of any shape";
  std::string dims;
  for (const DimPattern& d : p.shape) {
    dims += dims.empty() ? "" : ", ";
    dims += d.kind == DimPattern::Kind::Extent ? std::to_string(d.extent)
            : d.kind == DimPattern::Kind::Any  ? "?"
            : d.kind == DimPattern::Kind::Pack ? "..." + d.symbol
                                               : d.symbol;
  }
  return elem + " of shape `[" + dims + "]`";
}

// What the few names of a signature stand for.
template <class T>
class Bindings {
 public:
  T* find(const std::string& name) {
    for (auto& [known, value] : list_)
      if (*known == name) return &value;
    return nullptr;
  }
  // The name must outlive this.
  void add(const std::string& name, T value) { list_.emplace_back(&name, std::move(value)); }

 private:
  std::vector<std::pair<const std::string*, T>> list_;
};

class Unifier {
 public:
  explicit Unifier(const Attrs& attrs) : attrs_(attrs) {}

  bool bind(const TypePattern& p, const Type& t) {
    if (p.box != !t.box.empty() && p.box) return false;
    if (!elem_fits(p.elem, t.elem)) return false;
    if (is_variable(p.elem)) {
      if (const Elem* known = elems_.find(p.elem); known == nullptr)
        elems_.add(p.elem, t.elem);
      else if (*known != t.elem)
        return false;
    }
    if (p.box) return bind_dims(p.shape, t.box);
    return bind_dims(p.shape, t.shape);
  }

  Type result(const TypePattern& p) {
    Type t;
    const Elem* known = is_variable(p.elem) ? elems_.find(p.elem) : nullptr;
    t.elem = known != nullptr ? *known : elem_from_name(p.elem).value_or(Elem::F32);
    std::vector<Dim> dims;
    for (const DimPattern& d : p.shape) {
      switch (d.kind) {
        case DimPattern::Kind::Extent:
          dims.push_back(Dim::of(d.extent));
          break;
        case DimPattern::Kind::Any:
          dims.push_back(Dim::unknown());
          break;
        case DimPattern::Kind::Pack:
          if (const std::vector<Dim>* pack = packs_.find(d.symbol)) dims.insert(dims.end(), pack->begin(), pack->end());
          break;
        case DimPattern::Kind::Symbol:
          dims.push_back(symbol(d.symbol));
          break;
      }
    }
    if (p.box) {
      t.shape = {Dim::of(4)};
      t.box = std::move(dims);
    } else {
      t.shape = std::move(dims);
    }
    return t;
  }

 private:
  Dim symbol(const std::string& name) {
    if (const Dim* known = dims_.find(name)) return *known;
    if (attrs_.has(name)) {
      for (const auto& [key, value] : attrs_)
        if (key == name)
          if (const auto* n = std::get_if<int64_t>(&value)) return Dim::of(*n);
    }
    return Dim::named(name);
  }
  // Equal, or one of them not yet known (then checked at run time).
  static bool meet(Dim& known, const Dim& d) {
    if (known == d) return true;
    if (known.is_static() && d.is_static()) return false;
    if (d.is_static() || known == Dim::unknown()) known = d;
    return true;
  }
  bool bind_dims(const std::vector<DimPattern>& patterns, const std::vector<Dim>& dims) {
    size_t pack = patterns.size();
    for (size_t i = 0; i < patterns.size(); ++i)
      if (patterns[i].kind == DimPattern::Kind::Pack) pack = i;
    const bool has_pack = pack < patterns.size();
    const size_t fixed = patterns.size() - (has_pack ? 1 : 0);
    if (has_pack ? dims.size() < fixed : dims.size() != fixed) return false;
    const size_t packed = dims.size() - fixed;
    for (size_t i = 0, at = 0; i < patterns.size(); ++i) {
      if (i == pack) {
        std::vector<Dim> part(dims.begin() + static_cast<long>(at), dims.begin() + static_cast<long>(at + packed));
        at += packed;
        if (!broadcast(packs_, patterns[i].symbol, part)) return false;
        continue;
      }
      const Dim& d = dims[at++];
      if (patterns[i].kind == DimPattern::Kind::Extent) {
        if (d.is_static() && d.extent != patterns[i].extent) return false;
      } else if (patterns[i].kind == DimPattern::Kind::Symbol) {
        if (Dim* known = dims_.find(patterns[i].symbol); known == nullptr)
          dims_.add(patterns[i].symbol, d);
        else if (!meet(*known, d))
          return false;
      }
    }
    return true;
  }
  // NumPy: align at the last dimension; 1 stretches.
  static bool broadcast(Bindings<std::vector<Dim>>& packs, const std::string& name, const std::vector<Dim>& part) {
    std::vector<Dim>* found = packs.find(name);
    if (found == nullptr) {
      packs.add(name, part);
      return true;
    }
    std::vector<Dim>& known = *found;
    std::vector<Dim> longer = known.size() >= part.size() ? known : part;
    const std::vector<Dim>& shorter = known.size() >= part.size() ? part : known;
    const size_t shift = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
      Dim& a = longer[i + shift];
      const Dim& b = shorter[i];
      if (b == Dim::of(1)) continue;
      if (a == Dim::of(1)) {
        a = b;
        continue;
      }
      if (!meet(a, b)) return false;
    }
    known = std::move(longer);
    return true;
  }

  const Attrs& attrs_;
  Bindings<Elem> elems_;
  Bindings<Dim> dims_;
  Bindings<std::vector<Dim>> packs_;
};

}  // namespace

const Signature& signature_of(const OpDef& op) {
  // What this thread asked for before is found without the lock.
  struct Asked {
    const OpDef* op = nullptr;
    const Signature* signature = nullptr;
  };
  constexpr size_t kAsked = 512;  // 9 bits of the hash below
  thread_local std::array<Asked, kAsked> asked;
  Asked& before = asked[(reinterpret_cast<uintptr_t>(&op) >> 4) * 0x9E3779B97F4A7C15u >> 55];
  if (before.op == &op) return *before.signature;
  static std::mutex mutex;
  static std::unordered_map<const OpDef*, std::unique_ptr<const Signature>> cache;
  std::lock_guard lock(mutex);
  std::unique_ptr<const Signature>& slot = cache[&op];
  if (!slot) slot = std::make_unique<const Signature>(Reader(op).read());
  before = {&op, slot.get()};
  return *slot;
}

std::optional<Type> unify(const OpDef& op, const Attrs& attrs, std::span<const Type> args,
                          std::span<const Value* const> constants, std::string& error, int& bad_arg) {
  const Signature& signature = signature_of(op);
  Unifier unifier(attrs);
  size_t at = 0;
  for (const Parameter& p : signature.parameters) {
    if (p.static_kind != StaticKind::None) continue;
    const size_t end = p.variadic ? args.size() : std::min(at + 1, args.size());
    if (at == end && !p.variadic && !p.optional) {
      error = fmt::format("`{}` needs an argument `{}`", op.name, p.name);
      bad_arg = static_cast<int>(at);
      return std::nullopt;
    }
    for (; at < end; ++at) {
      if (args[at].poison) return Type::poisoned();
      if (unifier.bind(p.pattern, args[at])) continue;
      error =
          fmt::format("`{}` of `{}` needs {}, found `{}`", p.name, op.name, describe(p.pattern), to_string(args[at]));
      bad_arg = static_cast<int>(at);
      return std::nullopt;
    }
  }
  InferCall call{attrs, args, constants, unifier.result(signature.result), {}};
  if (op.infer) {
    op.infer(call);
    if (!call.error.empty()) {
      error = std::move(call.error);
      bad_arg = -1;
      return std::nullopt;
    }
  }
  return call.result;
}

std::string written_signature(const OpDef& op) {
  std::string text(op.signature);
  const size_t hidden = text.find(", $");
  if (hidden != std::string::npos) text.erase(hidden, text.rfind(" ->") - hidden);
  return text;
}

ExprId add_call(Graph& graph, const OpDef& op, std::vector<ExprId> args, Attrs attrs) {
  std::vector<Type> types;
  std::vector<const Value*> constants;
  for (ExprId arg : args) {
    types.push_back(graph.expr(arg).type);
    constants.push_back(graph.expr(arg).constant.get());
  }
  // Parameters that no program can give have their defaults, unless they are given here.
  for (const Parameter& p : signature_of(op).parameters)
    if (p.name.starts_with('$') && p.default_value && !attrs.has(p.name)) attrs.set(std::string(p.name), *p.default_value);
  Expr expr;
  expr.op = &op;
  std::string error;
  int bad = 0;
  std::optional<Type> type = unify(op, attrs, types, constants, error, bad);
  ZEPHON_CHECK(type, "{}", error);
  expr.type = *std::move(type);
  expr.args = std::move(args);
  expr.attrs = std::move(attrs);
  return graph.add(std::move(expr));
}

bool runtime_shape(const Expr& expr, std::span<const TensorRef> args, TensorRef& out) {
  out.elem = expr.type.elem;
  out.rank = static_cast<int32_t>(expr.type.rank());
  // The same unification as at compile time, with every extent known. Small integer arguments (boxes, counts) are
  // handed over as constants, for operators whose result depends on their values.
  std::vector<Type> types;
  std::vector<Value> values(args.size());
  std::vector<const Value*> constants(args.size(), nullptr);
  for (size_t i = 0; i < args.size(); ++i) {
    const TensorRef& a = args[i];
    Type t = Type::scalar(a.elem);
    for (int32_t d = 0; d < a.rank; ++d) t.shape.push_back(Dim::of(a.shape[d]));
    if (i < expr.args.size() && is_integer(a.elem) && a.size() <= kMaxRank && a.rank <= 1 && a.data) {
      values[i] = to_value(a);
      constants[i] = &values[i];
    }
    types.push_back(std::move(t));
  }
  const Signature& signature = signature_of(*expr.op);
  size_t at = 0;
  for (const Parameter& p : signature.parameters) {
    if (p.static_kind != StaticKind::None) continue;
    const size_t end = p.variadic ? args.size() : std::min(at + 1, args.size());
    for (; at < end; ++at)
      if (p.pattern.box && constants[at] && constants[at]->size() == 4)
        types[at].box = {Dim::of(constants[at]->at(2).i), Dim::of(constants[at]->at(3).i)};
  }
  // A shape that is known depends on no value; whether an index lies inside is not asked here.
  if (expr.type.has_static_shape()) std::fill(constants.begin(), constants.end(), nullptr);
  std::string error;
  int bad_arg = 0;
  std::optional<Type> type = unify(*expr.op, expr.attrs, types, constants, error, bad_arg);
  if (!type || type->rank() != expr.type.rank()) return false;
  for (int32_t i = 0; i < out.rank; ++i) {
    const Dim &found = type->shape[static_cast<size_t>(i)], &declared = expr.type.shape[static_cast<size_t>(i)];
    // What was known before the run stays as it is: arguments of another extent do not fit.
    if (found.is_static() ? declared.is_static() && found.extent != declared.extent : !declared.is_static())
      return false;
    out.shape[i] = found.is_static() ? found.extent : declared.extent;
  }
  return true;
}

}  // namespace zephon
