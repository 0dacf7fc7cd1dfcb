#include "zephonc/lsp/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/print.h"
#include "graph/op_def.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "zephonc/lsp/context.h"

namespace zephon::lsp {
namespace {

using nlohmann::json;

// Numbers of the protocol.
enum SymbolKind { kModule = 2, kClass = 5, kFunctionSymbol = 12, kVariableSymbol = 13, kConstant = 14, kEvent = 24 };
enum ItemKind { kFunction = 3, kField = 5, kVariable = 6, kModuleItem = 9, kValue = 12, kKeyword = 14, kType = 25 };

constexpr size_t kMostTypes = 4;    // of one place in a function, which has others at each call
constexpr size_t kMostShown = 200;  // bytes of a value

/// The place, in the text that is known.
struct Asked {
  const Analysis& known;
  size_t at;

  Asked(const Analysis& analysis, const Text& now, size_t place)
      : known(analysis), at(place_before(now.bytes(), analysis.text->bytes(), place)) {
    // The end of a name belongs to it.
    const std::string& text = known.text->bytes();
    const bool inside = at < text.size() && is_word_byte(text[at]);
    if (!inside && at > 0 && at <= text.size() && is_word_byte(text[at - 1])) --at;
  }
  bool in(const Span& span) const { return span.file == known.file && span.begin <= at && at < span.end; }
  /// The narrowest entry around the place; the last of those.
  template <class T>
  const T* innermost(const std::vector<T>& entries) const {
    const T* found = nullptr;
    for (const T& entry : entries) {
      if (in(entry.span) && (found == nullptr || entry.span.size() <= found->span.size())) found = &entry;
    }
    return found;
  }
};

/// Empty where nothing has been read yet.
const ast::File& tree_of(const Analysis& known) {
  static const ast::File kNothing;
  return known.tree ? *known.tree : kNothing;
}

std::string cut(std::string text) {
  if (text.size() <= kMostShown) return text;
  text.resize(kMostShown);
  while (find_invalid_utf8(text)) text.pop_back();
  return text + "...";
}

std::string code(const std::string& text) { return "```zpl\n" + text + "\n```\n"; }

std::string_view called(const OpDef& op) { return op.surface.empty() ? op.name : op.surface; }
std::string signature(const OpDef& op) { return fmt::format("{}({})", called(op), written_signature(op)); }

std::string page(const OpDef& op) {
  std::string out = code(signature(op)) + std::string(op.summary) + "\n";
  if (!op.prose.empty()) out += fmt::format("\n{}\n", op.prose);
  if (!op.implicit.empty()) out += fmt::format("\nAlso assigns `{}`.\n", op.implicit);
  return out;
}

std::string type_list(const StreamType& type) {
  std::string out;
  for (const Field& field : type.fields) {
    if (!field.name.starts_with('$') && !is_companion(field.name))
      out += fmt::format("{}{}: {}", out.empty() ? "" : "\n", field.name, field_type_text(type, field));
  }
  if (type.batch) out += fmt::format("{}# in batches of {}", out.empty() ? "" : "\n", type.batch->size);
  return out;
}

/// All types and values that the place has, one after the other.
std::string value_text(const Asked& asked, const Span& span) {
  std::vector<std::string> types;
  std::string known;
  for (const Facts::Value& value : asked.known.facts.values) {
    if (value.span != span) continue;
    if (std::find(types.begin(), types.end(), value.type) == types.end()) types.push_back(value.type);
    known = value.known;
  }
  std::string out;
  for (size_t i = 0; i < std::min(types.size(), kMostTypes); ++i) out += (i == 0 ? "" : " or ") + types[i];
  if (types.size() > kMostTypes) out += " or others";
  return types.size() == 1 && !known.empty() ? fmt::format("{} = {}", out, cut(known)) : out;
}

std::string first_line(std::string_view text) {
  const size_t end = text.find_first_of("\r\n");
  return cut(std::string(text.substr(0, end))) + (end == std::string_view::npos ? "" : " ...");
}

struct Declared {
  std::string_view what;
  Span name, whole;
};

/// Everything that the file declares; `visit` gets what is declared inside of functions too, with the function.
template <class Visit>
void declarations(const ast::File& tree, Visit&& visit) {
  auto of = [&](const ast::Declarations& all) {
    for (const ast::Import& import : all.imports) visit(Declared{"import", import.alias.span, import.span}, nullptr);
    for (const ast::Let& let : all.lets) visit(Declared{"let", let.name.span, let.span}, nullptr);
    for (const ast::Function& function : all.functions) {
      visit(Declared{"fn", function.name.span, function.span}, nullptr);
      for (const ast::Parameter& parameter : function.parameters)
        visit(Declared{"argument", parameter.name.span,
                       parameter.type ? join(parameter.name.span, parameter.type->span) : parameter.name.span},
              &function);
    }
    for (const ast::Stream& stream : all.streams) visit(Declared{"stream", stream.name.span, stream.span}, nullptr);
  };
  of(tree.declarations);
  for (const ast::Pipeline& pipeline : tree.pipelines) {
    if (!pipeline.name.text.empty()) visit(Declared{"pipeline", pipeline.name.span, pipeline.span}, nullptr);
    for (const ast::Parameter& parameter : pipeline.parameters) {
      Span whole = parameter.name.span;
      if (parameter.type) whole = join(whole, parameter.type->span);
      if (parameter.default_value) whole = join(whole, parameter.default_value->span);
      visit(Declared{"parameter", parameter.name.span, whole}, nullptr);
    }
    of(pipeline.declarations);
  }
}

/// Of a function: what stands before its body.
std::string head_of(const Analysis& known, const Declared& declared) {
  return first_line(known.sources.text(declared.whole));
}

std::string word_at(const std::string& text, size_t at) {
  if (at >= text.size() || !is_word_byte(text[at])) return {};
  size_t begin = at, end = at;
  while (begin > 0 && is_word_byte(text[begin - 1])) --begin;
  while (end < text.size() && is_word_byte(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// The declaration that the place names by itself, or means where the front end has not looked (a function that
/// nothing calls).
std::optional<Declared> declaration_at(const Asked& asked) {
  std::optional<Declared> found, named;
  std::string word = word_at(asked.known.text->bytes(), asked.at);
  for (const ast::Comment& comment : tree_of(asked.known).comments) {
    if (asked.in(comment.span)) word.clear();
  }
  declarations(tree_of(asked.known), [&](const Declared& declared, const ast::Function* function) {
    if (function != nullptr && !asked.in(function->span)) return;
    if (asked.in(declared.name)) found = declared;
    if (!word.empty() && asked.known.sources.text(declared.name) == word && (!named || function != nullptr))
      named = declared;
  });
  return found ? found : named;
}

std::optional<Declared> declaration_of(const Analysis& known, const Span& name) {
  std::optional<Declared> found;
  declarations(tree_of(known), [&](const Declared& declared, const ast::Function*) {
    if (declared.name == name) found = declared;
  });
  return found;
}

const Facts::Step* step_named(const Asked& asked, const Facts::Operator& op) {
  const Facts::Step* found = nullptr;
  for (const Facts::Step& step : asked.known.facts.steps) {
    if (step.span.file == op.span.file && step.span.begin <= op.span.begin && op.span.end <= step.span.end &&
        (found == nullptr || step.span.size() <= found->span.size()))
      found = &step;
  }
  return found;
}

/// Of the name of an argument, what it belongs to.
std::optional<std::pair<std::string, Span>> argument_text(const Asked& asked) {
  const std::string& text = asked.known.text->bytes();
  size_t begin = asked.at, end = asked.at;
  while (begin > 0 && is_word_byte(text[begin - 1])) --begin;
  while (end < text.size() && is_word_byte(text[end])) ++end;
  const size_t sign = std::min(text.find_first_not_of(' ', end), text.size());
  const bool named =
      end > begin && (text.substr(sign, 1) == ":" || (text.substr(sign, 1) == "=" && text.substr(sign, 2) != "=="));
  if (!named) return std::nullopt;
  const Context context = context_of(asked.known.name, std::string_view(text).substr(0, begin));
  if (context.kind != Context::Kind::Argument) return std::nullopt;
  const std::string name = text.substr(begin, end - begin);
  for (const OpDef* op : all_ops().all()) {
    if (called(*op) != context.base && op->name != context.base) continue;
    const std::vector<Parameter>& parameters = signature_of(*op).parameters;
    if (std::none_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name; }))
      continue;
    return std::pair(
        fmt::format("`{}`: argument of `{}`\n\n{}", name, signature(*op), op->prose.empty() ? op->summary : op->prose),
        Span{asked.known.file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
  return std::nullopt;
}

/// Text and the place that it is about.
std::optional<std::pair<std::string, Span>> hover_text(const Asked& asked) {
  const Facts& facts = asked.known.facts;
  if (auto argument = argument_text(asked)) return argument;
  if (const Facts::Operator* op = asked.innermost(facts.operators)) {
    std::string text = page(*op->op);
    if (is_tensor_class(op->op->cls) || op->op->cls == OpClass::Composite) {
      const Facts::Value* value = asked.innermost(facts.values);
      if (value != nullptr) return std::pair(code("-> " + value_text(asked, value->span)) + "\n" + text, op->span);
    }
    const Facts::Step* step = step_named(asked, *op);
    if (step != nullptr && step->span.begin <= op->span.begin)
      text += "\nFields after it:\n" + code(type_list(step->type));
    return std::pair(text, op->span);
  }
  const Facts::Use* use = asked.innermost(facts.uses);
  const Facts::Value* value = asked.innermost(facts.values);
  if (use != nullptr && (value == nullptr || use->span.size() <= value->span.size())) {
    const std::string name(asked.known.sources.text(use->span));
    if (value != nullptr && value->span == use->span)
      return std::pair(code(name + ": " + value_text(asked, use->span)), use->span);
    if (use->declared.file != asked.known.file) {
      const std::string_view file = asked.known.sources.text(use->declared.file);
      const size_t line = asked.known.sources.line_begin(
          use->declared.file, asked.known.sources.position(use->declared.file, use->declared.begin).line);
      return std::pair(code(first_line(file.substr(line))), use->span);
    }
    if (auto declared = declaration_of(asked.known, use->declared))
      return std::pair(code(head_of(asked.known, *declared)), use->span);
    // A field in a list of names.
    const Facts::Step* before = nullptr;
    for (const Facts::Step& step : facts.steps) {
      if (step.span.file == asked.known.file && step.span.end <= use->span.begin &&
          (before == nullptr || step.span.end >= before->span.end))
        before = &step;
    }
    if (before != nullptr) {
      if (const Field* field = before->type.find(name))
        return std::pair(code(name + ": " + field_type_text(before->type, *field)), use->span);
    }
  }
  const std::string word = word_at(asked.known.text->bytes(), asked.at);
  const bool plain = value != nullptr && asked.known.sources.text(value->span) == word;  // an argument in a function
  if (auto declared = plain ? std::nullopt : declaration_at(asked)) {
    std::string head = head_of(asked.known, *declared);
    if (declared->what == "parameter") head = "parameter " + head;
    return std::pair(code(head), declared->name);
  }
  if (value != nullptr) {
    const std::string written = first_line(asked.known.sources.text(value->span));
    return std::pair(code(written + ": " + value_text(asked, value->span)), value->span);
  }
  return std::nullopt;
}

/// Of an import in which the place stands, the file.
std::optional<std::string> import_at(const Asked& asked) {
  std::optional<std::string> path;
  auto look = [&](const ast::Declarations& all) {
    for (const ast::Import& import : all.imports) {
      if (asked.in(import.span)) path = imported_path(asked.known.name, import);
    }
  };
  look(tree_of(asked.known).declarations);
  for (const ast::Pipeline& pipeline : tree_of(asked.known).pipelines) look(pipeline.declarations);
  return path;
}

/// What stands in the known text just before the place, as far as samples go.
const StreamType* fields_before(const Analysis& known, size_t at) {
  const Facts::Step* found = nullptr;
  const std::string& text = known.text->bytes();
  const std::string_view between = form_of(known.name) == Form::Yaml ? " \t\r\n-]}\"" : " \t\r\n|";
  for (const Facts::Step& step : known.facts.steps) {
    if (step.span.file != known.file || step.span.end > at) continue;
    // Below the last step of a pipeline one more may be in the making.
    bool reaches = at <= step.pipe.end;
    if (!reaches) {
      reaches = true;
      for (size_t i = step.pipe.end; i < at && reaches; ++i) reaches = between.find(text[i]) != between.npos;
    }
    if (reaches && (found == nullptr || step.span.end >= found->span.end)) found = &step;
  }
  return found == nullptr ? nullptr : &found->type;
}

/// Collects the items of a completion, each name once.
class Items {
 public:
  void add(std::string label, ItemKind kind, std::string detail, std::string_view doc = {}, std::string insert = {}) {
    if (std::find(names_.begin(), names_.end(), label) != names_.end()) return;
    names_.push_back(label);
    json item{{"label", std::move(label)}, {"kind", static_cast<int>(kind)}};
    if (!detail.empty()) item["detail"] = std::move(detail);
    if (!doc.empty()) item["documentation"] = {{"kind", "markdown"}, {"value", doc}};
    if (!insert.empty()) item["insertText"] = std::move(insert);
    items_.push_back(std::move(item));
  }
  void words(std::initializer_list<std::string_view> all) {
    for (std::string_view word : all) add(std::string(word), kKeyword, "");
  }
  json take() { return {{"isIncomplete", false}, {"items", std::move(items_)}}; }

 private:
  std::vector<std::string> names_;
  json items_ = json::array();
};

enum class Operators { Sources, Steps, Values };

void add_operators(Items& items, Operators which) {
  for (const OpDef* op : all_ops().all()) {
    if (op->summary.empty() || op->cls == OpClass::Leaf) continue;
    // What is written with a sign of its own (`+`, `field = ...`) nobody calls by its name.
    const std::string name(called(*op));
    if (op->example.find(name + "(") == std::string_view::npos &&
        op->example.find("." + name) == std::string_view::npos)
      continue;
    const bool composite = op->cls == OpClass::Composite;
    const bool step = composite ? op->signature.starts_with("stream") : !is_tensor_class(op->cls);
    const bool source = op->cls == OpClass::Source || op->cls == OpClass::Merge;
    const Operators level = !step ? Operators::Values : source ? Operators::Sources : Operators::Steps;
    if (level == which) items.add(name, kFunction, signature(*op), op->summary);
  }
}

void add_fields(Items& items, const StreamType* type) {
  if (type == nullptr) return;
  for (const Field& field : type->fields) {
    if (field.name.starts_with('$') || is_companion(field.name)) continue;
    const size_t dot = field.name.find('.');
    if (dot == std::string::npos)
      items.add(field.name, kField, field_type_text(*type, field));
    else
      items.add(field.name.substr(0, dot), kField, "a record");
  }
}

/// Declared names that may stand in an expression at `at`.
void add_names(Items& items, const Analysis& known, size_t at) {
  declarations(tree_of(known), [&](const Declared& declared, const ast::Function* function) {
    if (function != nullptr && (function->span.begin > at || at > function->span.end)) return;
    const std::string name(known.sources.text(declared.name));
    if (declared.what == "fn")
      items.add(name, kFunction, head_of(known, declared));
    else if (declared.what == "import")
      items.add(name, kModuleItem, head_of(known, declared));
    else if (declared.what != "stream" && declared.what != "pipeline")
      items.add(name, kVariable, head_of(known, declared));
  });
}

void add_streams(Items& items, const Analysis& known) {
  declarations(tree_of(known), [&](const Declared& declared, const ast::Function*) {
    if (declared.what == "stream")
      items.add(std::string(known.sources.text(declared.name)), kVariable, head_of(known, declared));
  });
}

/// What a file declares that was read for this one.
std::optional<ast::Declarations> declared_by(const Analysis& known, const std::string& path) {
  auto text = known.imported.find(path);
  if (text == known.imported.end()) return std::nullopt;
  SourceMap sources;
  Diagnostics unread;
  Result<ast::File> tree = parse(sources, sources.add(path, text->second), unread);
  if (tree) return std::move(tree->declarations);
  return std::nullopt;
}

/// What `base.` may go on with: members of a record, what an import declares, operators and functions of a value.
void add_members(Items& items, const Analysis& known, const std::string& base, const StreamType* fields) {
  bool record = false;
  if (fields != nullptr) {
    for (const Field& field : fields->fields) {
      if (!field.name.starts_with(base + ".") || is_companion(field.name)) continue;
      const std::string rest = field.name.substr(base.size() + 1);
      record = true;
      items.add(rest.substr(0, rest.find('.')), kField, field_type_text(*fields, field));
    }
  }
  if (record) return;
  for (const ast::Import& import : tree_of(known).declarations.imports) {
    if (import.alias.text != base) continue;
    if (auto declared = declared_by(known, imported_path(known.name, import))) {
      for (const ast::Let& let : declared->lets) items.add(let.name.text, kVariable, "let");
      for (const ast::Function& function : declared->functions) items.add(function.name.text, kFunction, "fn");
      for (const ast::Stream& stream : declared->streams) items.add(stream.name.text, kVariable, "stream");
    }
    return;
  }
  add_operators(items, Operators::Values);
  for (const ast::Function& f : tree_of(known).declarations.functions) items.add(f.name.text, kFunction, "fn");
  items.words({"bool", "u8", "u16", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "str", "path"});
}

/// Named arguments of an operator, or of a function of the file.
void add_arguments(Items& items, const Analysis& known, const std::string& callee) {
  for (const OpDef* op : all_ops().all()) {
    if (called(*op) != callee && op->name != callee) continue;
    for (const Parameter& parameter : signature_of(*op).parameters)
      if (!is_hidden(parameter))
        items.add(parameter.name, kValue, fmt::format("argument of {}", signature(*op)), {}, parameter.name + "=");
  }
  auto look = [&](const ast::Declarations& all) {
    for (const ast::Function& function : all.functions) {
      if (function.name.text != callee) continue;
      for (const ast::Parameter& parameter : function.parameters)
        items.add(parameter.name.text, kValue, "argument of " + callee, {}, parameter.name.text + "=");
    }
  };
  look(tree_of(known).declarations);
  for (const ast::Pipeline& pipeline : tree_of(known).pipelines) look(pipeline.declarations);
}

Span symbol_range(const Span& whole, const Span& name) { return join(whole, name); }

}  // namespace

json range_of(const Text& text, size_t begin, size_t end) {
  const Place from = text.place(begin), to = text.place(end);
  return {{"start", {{"line", from.line}, {"character", from.column}}},
          {"end", {{"line", to.line}, {"character", to.column}}}};
}

json diagnostics_of(const Analysis& analysis, const UriOf& uri_of) {
  json out = json::array();
  auto related = [&](json& list, const Span& span, const std::string& text) {
    const Text other{std::string(analysis.sources.text(span.file))};
    list.push_back({{"location",
                     {{"uri", uri_of(std::string(analysis.sources.name(span.file)))},
                      {"range", range_of(other, span.begin, span.end)}}},
                    {"message", text.empty() ? "here" : text}});
  };
  for (const Diagnostic& diagnostic : analysis.found) {
    const KindInfo& kind = info(diagnostic.kind);
    std::string message = diagnostic.message;
    if (!diagnostic.primary.text.empty()) message += ": " + diagnostic.primary.text;
    for (const std::string& note : diagnostic.notes) message += "\nnote: " + note;
    for (const std::string& hint : diagnostic.hints) message += "\nhint: " + hint;
    Span at = diagnostic.primary.span;
    json list = json::array();
    if (at.valid() && at.file != analysis.file) {
      // In another file: shown at the import, with the place behind it.
      related(list, at, diagnostic.message);
      message = std::string(analysis.sources.name(at.file)) + ": " + message;
      Span import;
      for (const ast::Import& candidate :
           analysis.tree ? analysis.tree->declarations.imports : std::vector<ast::Import>{}) {
        if (!import.valid() || imported_path(analysis.name, candidate) == analysis.sources.name(at.file))
          import = candidate.path.span;
      }
      at = import;
    }
    for (const Label& label : diagnostic.secondary) related(list, label.span, label.text);
    const bool lint = kind.severity == Severity::Lint;
    json entry{{"range", range_of(*analysis.text, at.valid() ? at.begin : 0, at.valid() ? at.end : 0)},
               {"severity", lint ? 2 : 1},
               {"code", kind.code},
               {"source", "zephonc"},
               {"message", message}};
    if (diagnostic.kind == Kind::UnusedName) entry["tags"] = {1};
    if (!list.empty()) entry["relatedInformation"] = std::move(list);
    out.push_back(std::move(entry));
  }
  return out;
}

json hover(const Analysis& known, const Text& now, size_t at) {
  if (!known.tree) return nullptr;
  const Asked asked(known, now, at);
  auto found = hover_text(asked);
  if (!found) return nullptr;
  json out{{"contents", {{"kind", "markdown"}, {"value", found->first}}}};
  // Its place is known only where the text is still the same.
  if (now.bytes() == known.text->bytes()) out["range"] = range_of(now, found->second.begin, found->second.end);
  return out;
}

std::string explanations(const Analysis& latest, const Text& now, size_t at) {
  const size_t there = place_before(now.bytes(), latest.text->bytes(), at);
  std::string out;
  for (const Diagnostic& diagnostic : latest.found) {
    const Span& span = diagnostic.primary.span;
    if (span.file != latest.file || there < span.begin || there > span.end) continue;
    const KindInfo& kind = info(diagnostic.kind);
    out += fmt::format("{}**{}** {}\n\n{}\n", out.empty() ? "" : "\n", kind.code, diagnostic.message,
                       explain_text(kind.kind));
  }
  return out;
}

json definition(const Analysis& known, const Text& now, size_t at, const UriOf& uri_of) {
  if (!known.tree) return nullptr;
  const Asked asked(known, now, at);
  Span to;
  if (const Facts::Use* use = asked.innermost(known.facts.uses)) {
    to = use->declared;
  } else if (auto path = import_at(asked)) {
    return {{"uri", uri_of(*path)}, {"range", range_of(Text(""), 0, 0)}};
  } else if (auto declared = declaration_at(asked)) {
    to = declared->name;
  }
  if (!to.valid()) return nullptr;
  const Text text{std::string(known.sources.text(to.file))};
  return {{"uri", uri_of(std::string(known.sources.name(to.file)))}, {"range", range_of(text, to.begin, to.end)}};
}

json completion(const Analysis& known, const Text& now, size_t at) {
  Items items;
  const Context context = context_of(known.name, std::string_view(now.bytes()).substr(0, at));
  if (context.kind == Context::Kind::Nothing) return items.take();
  const size_t there = place_before(now.bytes(), known.text->bytes(), context.begin);
  const StreamType* fields = fields_before(known, there);
  switch (context.kind) {
    case Context::Kind::Nothing:
      break;
    case Context::Kind::Top:
      items.words({"zpl", "pipeline", "let", "fn", "stream", "import", "test"});
      add_operators(items, Operators::Sources);
      add_streams(items, known);
      break;
    case Context::Kind::Source:
      items.words({"let", "fn", "stream"});
      add_operators(items, Operators::Sources);
      add_streams(items, known);
      break;
    case Context::Kind::Step:
      items.words({"filter", "select", "drop", "if"});
      add_operators(items, Operators::Steps);
      add_fields(items, fields);
      break;
    case Context::Kind::Fields:
      add_fields(items, fields);
      break;
    case Context::Kind::Member:
      add_members(items, known, context.base, fields);
      break;
    case Context::Kind::Type:
      items.words({"int", "float", "bool", "str", "path", "bytes", "enum", "list", "u8", "u16", "i8", "i16", "i32",
                   "i64", "f16", "bf16", "f32", "f64"});
      break;
    case Context::Kind::Argument:
      add_arguments(items, known, context.base);
      add_streams(items, known);
      [[fallthrough]];
    case Context::Kind::Value:
      add_fields(items, fields);
      add_names(items, known, there);
      items.words({"true", "false", "not", "and", "or", "seed"});
      add_operators(items, Operators::Values);
      break;
  }
  return items.take();
}

json symbols(const Analysis& known) {
  json out = json::array();
  if (!known.tree) return out;
  declarations(tree_of(known), [&](const Declared& declared, const ast::Function* function) {
    if (function != nullptr || declared.name.file != known.file) return;
    const SymbolKind kind = declared.what == "import" || declared.what == "pipeline" ? kModule
                            : declared.what == "fn"                                  ? kFunctionSymbol
                            : declared.what == "stream"                              ? kClass
                            : declared.what == "let"                                 ? kConstant
                                                                                     : kVariableSymbol;
    const Span whole = symbol_range(declared.whole, declared.name);
    out.push_back({{"name", std::string(known.sources.text(declared.name))},
                   {"kind", static_cast<int>(kind)},
                   {"detail", declared.what},
                   {"range", range_of(*known.text, whole.begin, whole.end)},
                   {"selectionRange", range_of(*known.text, declared.name.begin, declared.name.end)}});
  });
  for (const ast::Test& test : tree_of(known).tests) {
    const Span whole = symbol_range(test.span, test.name_span);
    out.push_back({{"name", test.name.empty() ? "test" : test.name},
                   {"kind", static_cast<int>(kEvent)},
                   {"detail", "test"},
                   {"range", range_of(*known.text, whole.begin, whole.end)},
                   {"selectionRange", range_of(*known.text, test.name_span.begin, test.name_span.end)}});
  }
  return out;
}

}  // namespace zephon::lsp
