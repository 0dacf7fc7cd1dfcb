// Each round parses the program, lists the edits that could make it smaller, the largest first, and tries them; one
// that keeps `holds` true is made at once, and the list is made anew from the place where it stood.
#include "zephonc/shrink.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "frontend/ast.h"
#include "frontend/parse_zpl.h"
#include "frontend/print.h"

namespace zephon {
namespace {

struct Change {
  size_t begin = 0, end = 0;
  std::string text;
};
using Edit = std::vector<Change>;  // in rising order, apart from each other

std::string edited(const std::string& text, const Edit& edit) {
  std::string out;
  size_t at = 0;
  for (const Change& change : edit) {
    out.append(text, at, change.begin - at).append(change.text);
    at = change.end;
  }
  return out.append(text, at);
}

/// What a smaller program has less of: words and signs, then names, then the size of its numbers, then bytes.
using Weight = std::tuple<size_t, size_t, double, size_t>;

Weight weight(const std::string& text) {
  size_t tokens = 0, names = 0;
  double numbers = 0;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isspace(c)) {
      ++i;
      continue;
    }
    ++tokens;
    size_t end = i + 1;
    if (std::isdigit(c)) {
      double value = 0;
      end = static_cast<size_t>(std::from_chars(text.data() + i, text.data() + text.size(), value).ptr - text.data());
      end = std::max(end, i + 1);
      numbers += value;
    } else if (std::isalpha(c) || c == '_') {
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
      ++names;
    }
    i = end;
  }
  return {tokens, names, numbers, text.size()};
}

std::optional<ast::File> parse(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  Result<ast::File> file = parse_zpl(sources, sources.add("smaller.zpl", text), diags);
  if (!file) return std::nullopt;
  return *std::move(file);
}

/// All edits of a program that might make it smaller.
class Edits {
 public:
  Edits(const std::string& text, const ast::File& file) : text_(text) {
    for (const ast::Comment& comment : file.comments) cut(comment.span.begin, comment.span.end);
    for (const ast::Test& test : file.tests) cut(test.span.begin, test.span.end);
    for (const ast::Pipeline& pipeline : file.pipelines) {
      if (file.pipelines.size() > 1) cut(pipeline.span.begin, pipeline.span.end);
      unwrap(pipeline);
    }
    declarations(file.declarations);
    for (const ast::Pipeline& pipeline : file.pipelines) declarations(pipeline.declarations);
    auto each_pipe = [&](auto&& use) {
      for (const ast::Pipeline& pipeline : file.pipelines) use(pipeline.pipe);
      for_streams(file.declarations, use);
      for (const ast::Pipeline& pipeline : file.pipelines) for_streams(pipeline.declarations, use);
    };
    each_pipe([&](const ast::Pipe& pipe) { runs_of_steps(pipe); });
    each_pipe([&](const ast::Pipe& pipe) { source(pipe, file); });
    each_pipe([&](const ast::Pipe& pipe) {
      for (const ast::Step& step : pipe.steps) inside(step);
    });
    for (const ast::Pipeline& pipeline : file.pipelines) contract(pipeline.contract);
    functions(file.declarations);
    for (const ast::Pipeline& pipeline : file.pipelines) functions(pipeline.declarations);
    std::stable_sort(expressions_.begin(), expressions_.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [size, edit] : expressions_) edits_.push_back(std::move(edit));
  }
  std::vector<Edit> take() { return std::move(edits_); }

 private:
  static void for_streams(const ast::Declarations& all, auto&& use) {
    for (const ast::Stream& stream : all.streams) use(stream.pipe);
  }
  std::string of(const Span& span) const { return text_.substr(span.begin, span.end - span.begin); }
  void replace(size_t begin, size_t end, std::string with) { edits_.push_back({{begin, end, std::move(with)}}); }
  void cut(size_t begin, size_t end) { replace(begin, end, ""); }

  void declarations(const ast::Declarations& all) {
    for (const ast::Stream& s : all.streams) cut(s.span.begin, s.span.end);
    for (const ast::Function& f : all.functions) cut(f.span.begin, f.span.end);
    for (const ast::Let& l : all.lets) cut(l.span.begin, l.span.end);
    for (const ast::Import& i : all.imports) cut(i.span.begin, i.span.end);
  }

  /// `pipeline p(n: int = 3) {...}`: what the braces hold, or the same without a parameter.
  void unwrap(const ast::Pipeline& pipeline) {
    const Span &all = pipeline.span, &block = pipeline.block;
    if (!block.valid()) return;
    edits_.push_back({{all.begin, block.begin + 1, ""}, {block.end - 1, block.end, ""}});
    one_of(pipeline.parameters, [&](size_t i) {
      const ast::Parameter& p = pipeline.parameters[i];
      const uint32_t end = p.default_value ? p.default_value->span.end : p.type ? p.type->span.end : p.name.span.end;
      return Span{p.name.span.file, p.name.span.begin, end};
    });
  }

  void functions(const ast::Declarations& all) {
    for (const ast::Function& f : all.functions) expression(f.body, false);
    for (const ast::Let& l : all.lets) expression(l.value, false);
    for (const ast::Stream& s : all.streams) contract(s.contract);
  }

  /// ` -> {...}`: the arrow stands before it.
  void contract(const std::optional<ast::Type>& type) {
    if (!type) return;
    const size_t arrow = text_.rfind("->", type->span.begin);
    if (arrow != std::string::npos) cut(arrow, type->span.end);
  }

  /// Half of them, a quarter, ..., one: from the end of what stands before, so that the sign between goes too.
  void runs_of_steps(const ast::Pipe& pipe) {
    const size_t count = pipe.steps.size();
    for (size_t run = count; run > 0; run = run == 1 ? 0 : (run + 1) / 2)
      for (size_t first = 0; first + run <= count; first += run == 1 ? 1 : (run + 1) / 2)
        cut(first == 0 ? pipe.source.span.end : pipe.steps[first - 1].span.end, pipe.steps[first + run - 1].span.end);
  }

  void source(const ast::Pipe& pipe, const ast::File& file) {
    const ast::Expr& source = pipe.source;
    if (source.kind == ast::Expr::Kind::Call) {
      for (size_t i = 0; i < source.operands.size(); ++i) {  // mix(a=2, b=1): the streams are the names
        if (source.operands[i].kind == ast::Expr::Kind::Name) put(source, of(source.operands[i].span));
        if (!source.names[i].text.empty()) put(source, source.names[i].text);
      }
      put(source, "range(8)");
      arguments(source);
      for (const ast::Expr& operand : source.operands) {
        fields(operand);
        expression(operand, false);
      }
      return;
    }
    if (source.kind != ast::Expr::Kind::Name) return;
    // The stream itself in place of its name, which may not be needed any more.
    auto inlined = [&](const ast::Declarations& all) {
      for (const ast::Stream& stream : all.streams) {
        if (stream.name.text != source.text || stream.span.begin > source.span.begin) continue;
        put(source, of(stream.pipe.span));
        edits_.push_back(
            {{stream.span.begin, stream.span.end, ""}, {source.span.begin, source.span.end, of(stream.pipe.span)}});
      }
    };
    inlined(file.declarations);
    for (const ast::Pipeline& pipeline : file.pipelines) inlined(pipeline.declarations);
  }

  void put(const ast::Expr& expr, const std::string& with) { replace(expr.span.begin, expr.span.end, with); }

  /// Names of a step such as `select a, b`, elements, arguments: one of several that commas part.
  template <class List>
  void one_of(const List& list, const auto& span_of) {
    for (size_t i = 0; list.size() > 1 && i < list.size(); ++i) {
      if (i + 1 < list.size())
        cut(span_of(i).begin, span_of(i + 1).begin);
      else
        cut(span_of(i - 1).end, span_of(i).end);
    }
  }

  void inside(const ast::Step& step) {
    using Kind = ast::Step::Kind;
    switch (step.kind) {
      case Kind::Assign:
      case Kind::Filter:
        return expression(step.expr, false);
      case Kind::Select:
      case Kind::Drop:
        return one_of(step.fields, [&](size_t i) { return step.fields[i].span; });
      case Kind::If:
        for (const std::vector<ast::Step>* arm : {&step.then, &step.otherwise}) {
          if (!arm->empty())
            replace(step.span.begin, step.span.end,
                    text_.substr(arm->front().span.begin, arm->back().span.end - arm->front().span.begin));
          for (const ast::Step& inner : *arm) inside(inner);
        }
        return expression(step.expr, false);
      case Kind::Call:
        arguments(step.expr);
        for (const ast::Expr& operand : step.expr.operands) expression(operand, false);
    }
  }

  /// Leaves out one argument. The receiver of a method is none.
  void arguments(const ast::Expr& call) {
    const size_t first = call.method ? 1 : 0;
    if (call.operands.size() <= first) return;
    auto begin = [&](size_t i) {
      return call.names[i].text.empty() ? call.operands[i].span.begin : call.names[i].span.begin;
    };
    for (size_t i = first; i < call.operands.size(); ++i) {
      if (i + 1 < call.operands.size())
        cut(begin(i), begin(i + 1));
      else
        cut(i == first ? begin(i) : call.operands[i - 1].span.end, call.operands[i].span.end);
    }
  }

  void fields(const ast::Expr& schema) {
    if (schema.kind != ast::Expr::Kind::Schema) return;
    one_of(schema.fields, [&](size_t i) {
      return Span{schema.fields[i].name.span.file, schema.fields[i].name.span.begin, schema.fields[i].type.span.end};
    });
  }

  void try_in_place(const ast::Expr& expr, std::string with) {
    expressions_.push_back({expr.span.end - expr.span.begin, {{expr.span.begin, expr.span.end, std::move(with)}}});
  }

  void expression(const ast::Expr& expr, bool nested) {
    using Kind = ast::Expr::Kind;
    if (expr.kind == Kind::Absent || expr.kind == Kind::Schema) return;
    const std::string whole = of(expr.span);
    if (expr.group && whole.starts_with("(") && whole.ends_with(")"))
      try_in_place(expr, whole.substr(1, whole.size() - 2));
    for (const ast::Expr& operand : expr.operands) {
      if (operand.kind == Kind::Absent || operand.kind == Kind::Slice) continue;
      std::string part = of(operand.span);
      const bool loose = operand.kind == Kind::Binary || operand.kind == Kind::Unary;
      try_in_place(expr, nested && loose && !operand.group ? "(" + part + ")" : part);
    }
    if (expr.kind == Kind::Number) {
      long long value = 0;
      const auto [end, error] = std::from_chars(expr.text.data(), expr.text.data() + expr.text.size(), value);
      if (error == std::errc{} && end == expr.text.data() + expr.text.size()) {
        for (const long long less : {0LL, 1LL, value / 2, value - 1})
          if (less >= 0 && less < value) try_in_place(expr, std::to_string(less));
      } else {
        for (const char* simple : {"0.0", "1.0", "0.5"}) try_in_place(expr, simple);
      }
    } else if (expr.kind == Kind::String) {
      for (const char* simple : {"\"\"", "\"a\""}) try_in_place(expr, simple);
    } else if (expr.kind != Kind::Slice) {
      for (const char* simple : {"0", "1", "2", "true", "false", "0.5", "\"a\"", "[1]"}) try_in_place(expr, simple);
    }
    if (expr.kind == Kind::Call) arguments(expr);
    if (expr.kind == Kind::List || expr.kind == Kind::Index)
      one_of(expr.operands, [&](size_t i) { return expr.operands[i].span; });
    for (const ast::Expr& operand : expr.operands) expression(operand, true);
  }

  const std::string& text_;
  std::vector<Edit> edits_;
  std::vector<std::pair<size_t, Edit>> expressions_;  // with the bytes that they replace
};

}  // namespace

Shrunk shrink(std::string text, const std::function<bool(const std::string&)>& holds, int most_tries) {
  Shrunk out;
  std::unordered_set<std::string> known = {text};
  std::optional<ast::File> file = parse(text);
  size_t at = 0, idle = 0;  // place in the list of edits, and how many in a row have changed nothing
  std::vector<Edit> edits;
  if (file) edits = Edits(text, *file).take();
  while (file && idle < edits.size()) {
    if (at >= edits.size()) at = 0;
    std::string smaller = edited(text, edits[at]);
    ++idle;
    ++at;
    if (weight(smaller) >= weight(text) || !known.insert(smaller).second) continue;
    std::optional<ast::File> tree = parse(smaller);
    if (!tree) continue;
    if (out.tried >= most_tries) {
      out.bounded = true;
      break;
    }
    ++out.tried;
    if (!holds(smaller)) continue;
    text = std::move(smaller);
    file = std::move(tree);
    edits = Edits(text, *file).take();
    idle = 0;
    --at;  // what followed the edit stands in its place
  }
  out.text = file ? print(*file, text, Form::Zpl, Form::Zpl) : text;
  if (out.text != text && !holds(out.text)) out.text = text;  // a place may be part of what holds
  return out;
}

}  // namespace zephon
