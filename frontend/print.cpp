// Tree -> ZPL text, as a document that is broken where it must be; tree -> YAML, line by line, with expressions as ZPL
// text.
#include "frontend/print.h"

#include <algorithm>

#include "frontend/layout.h"
#include "frontend/parse_zpl.h"
#include "frontend/trivia.h"

namespace zephon {
namespace {

using ast::Expr;
using Docs = std::vector<Doc>;

constexpr int kWidth = 100;

// ---- ZPL -----------------------------------------------------------------------------------------------------------

class ZplPrinter {
 public:
  explicit ZplPrinter(TriviaMap& trivia) : trivia_(trivia) {}

  Doc file(const ast::File& file) {
    Docs out;
    Trivia header = trivia_.take(&file.header);
    add_comments(out, header.leading);
    out.push_back(text("zpl 1"));
    add_suffix(out, header.trailing);
    bool first = true, apart = false;
    for (const Statement& s : statements_of(file)) {
      bool block = s.kind == Statement::Kind::Pipeline || s.kind == Statement::Kind::Test;
      Trivia t = trivia_.take(key_of(s));
      bool bare = s.kind == Statement::Kind::Bare;
      bool blank = t.blank || block || apart || first;
      if (bare) blank = blank || trivia_.blank(&static_cast<const ast::Pipeline*>(s.node)->pipe.source);
      out.push_back(blank ? blank_line() : hard_line());
      Doc body = statement(s);
      out.push_back(commented(std::move(t), key_of(s), std::move(body)));
      apart = block;
      first = false;
    }
    std::vector<std::string> tail = trivia_.take_tail(&file);
    for (size_t i = 0; i < tail.size(); ++i) {
      out.push_back(i == 0 ? blank_line() : hard_line());
      out.push_back(text(tail[i]));
    }
    return concat(std::move(out));
  }

  Doc expr(const Expr& e, int least = 0) {
    bool parens = e.group || precedence(e) < least;
    Doc body = bare_expr(e);
    return parens ? concat({text("("), std::move(body), text(")")}) : body;
  }

  // `last`: nothing but closing braces follows on the line.
  Doc bare_step(const ast::Step& s, bool last = true) {
    switch (s.kind) {
      case ast::Step::Kind::Assign:
        return concat({text(s.name.text + " = "), indent(2, expr(s.expr))});
      case ast::Step::Kind::Filter:
        return concat({text("filter "), indent(2, expr(s.expr))});
      case ast::Step::Kind::Select:
      case ast::Step::Kind::Drop: {
        Docs names;
        for (size_t i = 0; i < s.fields.size(); ++i) {
          if (i > 0) names.push_back(concat({text(","), line()}));
          names.push_back(text(s.fields[i].text));
        }
        return concat({text(s.name.text + " "), group(indent(4, concat(std::move(names))))});
      }
      case ast::Step::Kind::If:
        return group(if_step(s, last));
      case ast::Step::Kind::Call:
        return indent(2, expr(s.expr));
    }
    return text("");
  }

  Doc type(const ast::Type& t) { return t.optional ? concat({bare_type(t), text("?")}) : bare_type(t); }

  Doc bare_type(const ast::Type& t) {
    switch (t.kind) {
      case ast::Type::Kind::Named: {
        if (!t.tensor) return text(t.name);
        Docs dims;
        for (size_t i = 0; i < t.dims.size(); ++i) {
          if (i > 0) dims.push_back(text(", "));
          dims.push_back(expr(t.dims[i]));
        }
        return concat({text(t.name + "["), concat(std::move(dims)), text("]")});
      }
      case ast::Type::Kind::Enum: {
        std::string all;
        for (const ast::Name& value : t.values) all += (all.empty() ? "" : ", ") + value.text;
        return text("enum(" + all + ")");
      }
      case ast::Type::Kind::Record:
        return schema(t.fields);
      case ast::Type::Kind::Batch:
        return concat({text("batch<"), type(t.fields[0].type), text(">")});
      case ast::Type::Kind::List:
        return concat({text("list<"), type(t.fields[0].type), text(">")});
      case ast::Type::Kind::Value:
        return expr(t.dims[0]);
    }
    return text("");
  }

  // The links of a chain as text, from the node `from` (not included) up to `e`.
  Doc link(const Expr& e, const Expr* from) { return suffixes(e, from); }

 private:
  static const void* key_of(const Statement& s) { return s.node; }

  static void add_comments(Docs& out, const std::vector<std::string>& comments) {
    for (const std::string& comment : comments) {
      out.push_back(text(comment));
      out.push_back(hard_line());
    }
  }
  static void add_suffix(Docs& out, const std::vector<std::string>& comments) {
    for (const std::string& comment : comments) out.push_back(suffix(comment));
  }

  // A whole statement or step: what stands inside of it and was not printed there stands above.
  Doc commented(Trivia t, const void* key, Doc body) {
    std::vector<std::string> rest = trivia_.take_inside(key);
    Docs out;
    add_comments(out, t.leading);
    add_comments(out, rest);
    add_comments(out, trivia_.take_tail(key));
    out.push_back(std::move(body));
    add_suffix(out, t.trailing);
    return concat(std::move(out));
  }
  // A part on a line of its own, where it has comments.
  Doc part(const void* key, Doc body) {
    Trivia t = trivia_.take(key);
    Docs out;
    add_comments(out, t.leading);
    out.push_back(std::move(body));
    add_suffix(out, t.trailing);
    return concat(std::move(out));
  }
  std::vector<std::string> tails_;  // below the last part of a list that is being printed

  // (a, b): on one line, or each on its own.
  Doc listed(std::string opening, Docs items, std::string closing) {
    if (items.empty()) return text(opening + closing);
    Docs inside;
    for (size_t i = 0; i < items.size(); ++i) {
      inside.push_back(i == 0 ? soft_line() : line());
      inside.push_back(std::move(items[i]));
      if (i + 1 < items.size()) inside.push_back(text(","));
    }
    for (const std::string& comment : tails_) {
      inside.push_back(hard_line());
      inside.push_back(text(comment));
    }
    tails_.clear();
    return group(concat(
        {text(std::move(opening)), indent(2, concat(std::move(inside))), soft_line(), text(std::move(closing))}));
  }

  Doc schema(const std::vector<ast::SchemaField>& fields) {
    Docs items;
    for (const ast::SchemaField& f : fields) {
      Doc body = concat({text(f.name.text + ": "), type(f.type)});
      items.push_back(part(&f, std::move(body)));
    }
    return listed("{", std::move(items), "}");
  }

  Doc arguments(const Expr& e) {
    Docs items;
    const Expr* only = e.operands.size() == (e.method ? 2u : 1u) ? &e.operands.back() : nullptr;
    bool hugged = only != nullptr && !only->group && !trivia_.has(only) &&
                  (only->kind == Expr::Kind::List || only->kind == Expr::Kind::Schema);
    for (size_t i = e.method ? 1 : 0; i < e.operands.size(); ++i) {
      Doc value = expr(e.operands[i]);
      if (i < e.names.size() && !e.names[i].text.empty())
        value = concat({text(e.names[i].text + "="), std::move(value)});
      items.push_back(part(&e.operands[i], std::move(value)));
    }
    // Brackets of the only argument break for both.
    if (hugged) return concat({text("("), std::move(items[0]), text(")")});
    return listed("(", std::move(items), ")");
  }

  Doc slice_bounds(const Expr& e) {
    if (e.kind != Expr::Kind::Slice) return expr(e);
    Docs out;
    auto bound = [&](const Expr& b) {
      if (b.kind != Expr::Kind::Absent) out.push_back(expr(b));
    };
    bound(e.operands[0]);
    out.push_back(text(":"));
    bound(e.operands[1]);
    if (e.operands[2].kind != Expr::Kind::Absent) {
      out.push_back(text(":"));
      bound(e.operands[2]);
    }
    return concat(std::move(out));
  }

  // What stands behind the dot or in the brackets, from the node `from` (not included) up to `e`.
  Doc suffixes(const Expr& e, const Expr* from) {
    if (&e == from) return text("");
    Doc before = &e.operands[0] == from ? text("") : suffixes(e.operands[0], from);
    if (e.kind == Expr::Kind::Index) {
      Docs items;
      for (size_t i = 1; i < e.operands.size(); ++i) {
        if (i > 1) items.push_back(text(", "));
        items.push_back(slice_bounds(e.operands[i]));
      }
      return concat({std::move(before), text("["), concat(std::move(items)), text("]")});
    }
    Doc own = text("." + e.text);
    return e.kind == Expr::Kind::Call ? concat({std::move(before), std::move(own), arguments(e)})
                                      : concat({std::move(before), std::move(own)});
  }

  Doc chain(const Expr& e) {
    std::vector<const Expr*> links = chain_links(e);
    const Expr& base = chain_base(e);
    if (links.size() < 2) {
      // No place to break: one link, or none.
      const Expr* from = &e;
      while ((from->kind == Expr::Kind::Member || from->kind == Expr::Kind::Index ||
              (from->kind == Expr::Kind::Call && from->method)) &&
             (from == &e || !from->group))
        from = &from->operands[0];
      return concat({expr(*from, 8), suffixes(e, from)});
    }
    bool apart = !trivia_.peek(&base).trailing.empty() || !trivia_.peek(&links[0]->text).leading.empty();
    Docs out;
    Trivia t = trivia_.take(&base);
    add_comments(out, t.leading);
    out.push_back(expr(base, 8));
    add_suffix(out, t.trailing);
    Docs docs;
    const Expr* before = &base;
    for (size_t i = 0; i < links.size(); ++i) {
      if (i > 0 || apart) docs.push_back(apart && i == 0 ? hard_line() : soft_line());
      Doc body = suffixes(*links[i], before);
      docs.push_back(part(&links[i]->text, std::move(body)));
      before = links[i];
    }
    out.push_back(apart ? indent(4, concat(std::move(docs))) : align(concat(std::move(docs))));
    return group(concat(std::move(out)));
  }

  Doc bare_expr(const Expr& e) {
    switch (e.kind) {
      case Expr::Kind::Absent:
        return text("");
      case Expr::Kind::Number:
      case Expr::Kind::String:
        return text(e.literal.empty() ? e.text : e.literal);
      case Expr::Kind::Bool:
      case Expr::Kind::Name:
        return text(e.text);
      case Expr::Kind::Call:
        if (e.method) return chain(e);
        return concat({text(e.text), arguments(e)});
      case Expr::Kind::Member:
      case Expr::Kind::Index:
        return chain(e);
      case Expr::Kind::Slice:
        return slice_bounds(e);
      case Expr::Kind::Unary: {
        bool word = e.text == "not";
        return concat({text(word ? "not " : "-"), expr(e.operands[0], word ? 3 : 7)});
      }
      case Expr::Kind::Binary: {
        int level = precedence(e);
        SignChain signs = sign_chain(e);
        Docs out, rest;
        for (size_t i = 0; i < signs.operands.size(); ++i) {
          int least = level == 4 ? 5 : i == 0 ? level : level + 1;
          Doc body = part(signs.operands[i], expr(*signs.operands[i], least));
          if (i == 0) {
            out.push_back(std::move(body));
          } else {
            rest.push_back(line());
            rest.push_back(text(signs.nodes[i - 1]->text + " "));
            rest.push_back(std::move(body));
          }
        }
        out.push_back(indent(2, concat(std::move(rest))));
        return group(concat(std::move(out)));
      }
      case Expr::Kind::List: {
        Docs items;
        for (const Expr& operand : e.operands) {
          Doc body = expr(operand);
          items.push_back(part(&operand, std::move(body)));
        }
        return listed("[", std::move(items), "]");
      }
      case Expr::Kind::Schema:
        return schema(e.fields);
    }
    return text("");
  }

  Doc block(const std::vector<ast::Step>& steps, const void* key, bool last) {
    std::vector<std::string> tail = trivia_.take_tail(key);
    if (steps.empty() && tail.empty()) return text("{ }");
    Docs inside;
    for (size_t i = 0; i < steps.size(); ++i) {
      inside.push_back(trivia_.blank(&steps[i]) && i > 0 ? blank_line() : line());
      bool end = last && i + 1 == steps.size() && tail.empty();
      inside.push_back(step_of(steps[i], i == 0 ? if_broken("| ") : text("| "), end, end));
    }
    for (const std::string& comment : tail) {
      inside.push_back(hard_line());
      inside.push_back(text(comment));
    }
    return concat({text("{"), indent(2, concat(std::move(inside))), line(), text("}")});
  }

  Doc if_step(const ast::Step& s, bool last) {
    Trivia header = trivia_.take(&s.name);
    Doc condition = expr(s.expr);
    Docs out = {text("if "), std::move(condition), text(" ")};
    bool otherwise = !s.otherwise.empty() || trivia_.has(&s.otherwise);
    Doc then = block(s.then, &s.then, last && !otherwise);
    std::vector<std::string> rest = trivia_.take_inside(&s.name);
    header.trailing.insert(header.trailing.end(), rest.begin(), rest.end());
    add_suffix(out, header.leading);
    add_suffix(out, header.trailing);
    out.push_back(std::move(then));
    if (s.otherwise.size() == 1 && s.otherwise[0].kind == ast::Step::Kind::If) {
      // `else if`: comments above it have no other place than the line where it opens.
      const ast::Step& nested = s.otherwise[0];
      Trivia t = trivia_.take(&nested);
      out.push_back(text(" else "));
      add_suffix(out, t.leading);
      add_suffix(out, trivia_.take_tail(&s.otherwise));
      out.push_back(if_step(nested, last));
      add_suffix(out, t.trailing);
    } else if (otherwise) {
      out.push_back(text(" else "));
      out.push_back(block(s.otherwise, &s.otherwise, last));
    }
    return concat(std::move(out));
  }

  Doc source(const ast::Pipe& p) {
    Trivia t = trivia_.take(&p.source);
    Doc body = expr(p.source);
    return commented(std::move(t), &p.source, std::move(body));
  }

  Doc parameters(const std::vector<ast::Parameter>& list) {
    Docs items;
    for (const ast::Parameter& p : list) {
      Docs body = {text(p.name.text)};
      if (p.type) body.push_back(concat({text(": "), type(*p.type)}));
      if (p.default_value) body.push_back(concat({text(p.type ? " = " : "="), expr(*p.default_value)}));
      items.push_back(part(&p, concat(std::move(body))));
    }
    return listed("(", std::move(items), ")");
  }

  Doc statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::Import: {
        const auto& i = *static_cast<const ast::Import*>(s.node);
        return text("import " + i.path.literal + " as " + i.alias.text);
      }
      case Statement::Kind::Let: {
        const auto& l = *static_cast<const ast::Let*>(s.node);
        return concat({text("let " + l.name.text + " = "), expr(l.value)});
      }
      case Statement::Kind::Function: {
        const auto& f = *static_cast<const ast::Function*>(s.node);
        Doc head = parameters(f.parameters);
        return concat({text("fn " + f.name.text), std::move(head), text(" = "), expr(f.body)});
      }
      case Statement::Kind::Stream: {
        const auto& x = *static_cast<const ast::Stream*>(s.node);
        Docs out = {text("stream " + x.name.text)};
        if (x.contract) out.push_back(concat({text(" -> "), type(*x.contract)}));
        out.push_back(text(" = "));
        out.push_back(pipe(x.pipe, true));
        return concat(std::move(out));
      }
      case Statement::Kind::Pipeline:
        return pipeline(*static_cast<const ast::Pipeline*>(s.node));
      case Statement::Kind::Test:
        return test(*static_cast<const ast::Test*>(s.node));
      case Statement::Kind::Bare:
        return pipe(static_cast<const ast::Pipeline*>(s.node)->pipe);
    }
    return text("");
  }

  // Outside of braces: on one line, or each step on its own.
  // `declared`: a comment behind its last step is one behind the declaration, and breaks nothing.
  Doc pipe(const ast::Pipe& p, bool declared = false) {
    Docs out = {source(p)}, steps;
    for (const ast::Step& s : p.steps) {
      steps.push_back(trivia_.blank(&s) ? blank_line() : line());
      const bool end = declared && &s == &p.steps.back() && s.kind != ast::Step::Kind::If;
      steps.push_back(end ? step_of(s, text("| "), true, true) : commented_step(s, text("| ")));
    }
    out.push_back(indent(2, concat(std::move(steps))));
    return group(concat(std::move(out)));
  }

  // A step of a pipeline. What a comment inside of a flat `if` breaks is the pipeline.
  Doc commented_step(const ast::Step& s, Doc bar) {
    softened_ = false;
    Doc body = step_of(s, std::move(bar), true, false);
    return softened_ ? concat({std::move(body), suffix("")}) : body;
  }
  bool softened_ = false;
  // Comments above a step stand above its bar. `soft`: the comment behind it may stand behind the braces.
  Doc step_of(const ast::Step& s, Doc bar, bool last, bool soft) {
    Trivia t = trivia_.take(&s);
    Doc body = indent(2, bare_step(s, last));
    Docs out;
    std::vector<std::string> rest = trivia_.take_inside(&s);
    add_comments(out, t.leading);
    add_comments(out, rest);
    add_comments(out, trivia_.take_tail(&s));
    out.push_back(std::move(bar));
    out.push_back(std::move(body));
    if (!soft) add_suffix(out, t.trailing);
    for (size_t i = 0; soft && i < t.trailing.size(); ++i) {
      out.push_back(soft_suffix(t.trailing[i]));
      softened_ = true;
    }
    return concat(std::move(out));
  }

  Doc pipeline(const ast::Pipeline& p) {
    Trivia own = trivia_.take(&p.block);
    std::string name = p.name.text.empty() ? "main" : p.name.text;
    Docs head = {text("pipeline " + name)};
    if (!p.parameters.empty()) head.push_back(parameters(p.parameters));
    if (p.contract) head.push_back(indent(4, concat({line(), text("-> "), type(*p.contract)})));
    Docs out = {group(concat(std::move(head))), text(" {")};
    std::vector<std::string> rest = trivia_.take_inside(&p.block);
    add_suffix(out, own.leading);
    add_suffix(out, own.trailing);
    add_suffix(out, rest);
    Docs body;
    bool first = true;
    auto begin = [&](bool blank) {
      body.push_back(blank && !first ? blank_line() : hard_line());
      first = false;
    };
    for (const Statement& s : statements_of(p)) {
      Trivia t = trivia_.take(key_of(s));
      begin(t.blank);
      Doc inner = statement(s);
      body.push_back(commented(std::move(t), key_of(s), std::move(inner)));
    }
    begin(trivia_.blank(&p.pipe.source));
    body.push_back(source(p.pipe));
    for (const ast::Step& s : p.pipe.steps) {
      begin(trivia_.blank(&s));
      body.push_back(commented_step(s, text("| ")));
    }
    std::vector<std::string> tail = trivia_.take_tail(&p);
    for (const std::string& comment : tail) {
      begin(false);
      body.push_back(text(comment));
    }
    out.push_back(indent(2, concat(std::move(body))));
    out.push_back(hard_line());
    out.push_back(text("}"));
    return concat(std::move(out));
  }

  Doc sample(const ast::TestSample& sample) {
    Docs fields;
    for (const ast::TestField& f : sample.fields) {
      Doc body = concat({text(f.name.text + ": "), expr(f.value)});
      fields.push_back(part(&f, std::move(body)));
    }
    Trivia t = trivia_.take(&sample);
    tails_ = trivia_.take_tail(&sample);
    Docs out;
    add_comments(out, t.leading);
    out.push_back(listed("{", std::move(fields), "}"));
    add_suffix(out, t.trailing);
    return concat(std::move(out));
  }

  Doc test(const ast::Test& t) {
    Trivia own = trivia_.take(&t.literal);
    Docs out = {text("test " + t.literal + (t.of ? " of " + t.of->text : "") + " {")};
    add_suffix(out, own.leading);
    add_suffix(out, own.trailing);
    Docs body;
    for (const ast::TestEntry& entry : t.entries) {
      Trivia trivia = trivia_.take(&entry);
      body.push_back(trivia.blank && !body.empty() ? blank_line() : hard_line());
      Docs inner;
      if (entry.expr) {
        inner = {text(entry.key.text + " "), indent(2, expr(*entry.expr))};
      } else if (entry.values) {
        inner = {text(entry.key.text + ": "), expr(*entry.values)};
      } else if (!entry.list) {
        inner = {text(entry.key.text + ": "), sample(entry.samples[0])};
      } else {
        Docs samples;
        for (const ast::TestSample& s : entry.samples) samples.push_back(sample(s));
        tails_ = trivia_.take_tail(&entry);
        inner = {text(entry.key.text + ": "), listed("[", std::move(samples), "]")};
      }
      body.push_back(commented(std::move(trivia), &entry, concat(std::move(inner))));
    }
    for (const std::string& comment : trivia_.take_tail(&t)) {
      body.push_back(hard_line());
      body.push_back(text(comment));
    }
    out.push_back(indent(2, concat(std::move(body))));
    out.push_back(hard_line());
    out.push_back(text("}"));
    return concat(std::move(out));
  }

  TriviaMap& trivia_;
};

// ---- YAML ----------------------------------------------------------------------------------------------------------

// As YAML writes text that means itself.
std::string quoted(const std::string& words) {
  bool plain = words.find_first_of("\"\\") == words.npos;
  std::string out = plain ? "\"" : "'";
  for (char c : words) out += !plain && c == '\'' ? "''" : std::string(1, c);
  return out + (plain ? "\"" : "'");
}

// Whether YAML reads these words as one scalar, and as no null. `flow`: inside of brackets.
bool is_plain(const std::string& words, bool flow) {
  if (words.empty() || words.front() == ' ' || words.back() == ' ' || words.back() == ':') return false;
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`~=").find(words.front()) != std::string_view::npos &&
      !(words.front() == '-' && words.size() > 1 && words[1] != ' ' && words[1] != '-'))
    return false;
  if (words.find(": ") != words.npos || words.find(" #") != words.npos || words.find('\n') != words.npos ||
      words.find('\t') != words.npos)
    return false;
  if (flow && words.find_first_of(",[]{}:?") != words.npos) return false;
  for (std::string_view null : {"null", "Null", "NULL"})
    if (words == null) return false;
  return true;
}
std::string scalar(const std::string& words, bool flow = false) {
  return is_plain(words, flow) ? words : quoted(words);
}

class YamlPrinter {
 public:
  explicit YamlPrinter(TriviaMap& trivia) : trivia_(trivia), zpl_(trivia) {}

  std::vector<LaidLine> file(const ast::File& file) {
    using Kind = Statement::Kind;
    Trivia header = trivia_.take(&file.header);
    comments(0, header.leading);
    emit(0, "zpl: 1");
    trail(header.trailing);
    const size_t header_end = lines_.size();
    std::vector<Statement> all = statements_of(file), before, after;
    auto is = [](Kind kind) { return [kind](const Statement& s) { return s.kind == kind; }; };
    auto bare = std::find_if(all.begin(), all.end(), is(Kind::Bare));
    auto named = std::find_if(all.begin(), all.end(), is(Kind::Pipeline));
    bool single = named != all.end() && std::all_of(all.begin(), named, is(Kind::Import)) &&
                  std::all_of(named + 1, all.end(), is(Kind::Test));
    if (bare != all.end() || single) {
      auto middle = single ? named : bare;
      sections(0, {all.begin(), middle});
      const auto& p = *static_cast<const ast::Pipeline*>(middle->node);
      if (single) {
        Trivia t = trivia_.take(&p);
        blank();
        comments(0, t.leading);
        Trivia own = trivia_.take(&p.block);
        std::string name = p.name.text.empty() ? "main" : p.name.text;
        comments(0, own.leading);
        emit(0, "pipeline: " + scalar(name));
        trail(own.trailing);
        body(0, p);
        trail(t.trailing);
      } else {
        pipe(0, "steps:", p.pipe);
      }
      sections(0, {middle + 1, all.end()});
    } else {
      sections(0, all);
    }
    std::vector<std::string> tail = trivia_.take_tail(&file);
    if (!tail.empty()) blank();
    comments(0, tail);
    return spaced(header_end);
  }

 private:
  void emit(int ind, const std::string& code) {
    lines_.push_back({std::string(static_cast<size_t>(ind), ' ') + code, ""});
  }
  void blank() { lines_.push_back({}); }
  // No empty line at the beginning of a block, one below the header where a comment follows, nowhere two.
  std::vector<LaidLine> spaced(size_t header_end) const {
    std::vector<LaidLine> out;
    for (size_t i = 0; i < lines_.size(); ++i) {
      bool empty = lines_[i].code.empty() && lines_[i].comment.empty();
      if (empty && (i == header_end || out.back().code.empty() || out.back().code.ends_with(":"))) continue;
      if (out.size() == header_end && lines_[i].code.starts_with("#")) out.push_back({});
      out.push_back(lines_[i]);
    }
    return out;
  }
  void comments(int ind, const std::vector<std::string>& list) {
    for (const std::string& comment : list) emit(ind, comment);
  }
  void trail(const std::vector<std::string>& list) {
    for (const std::string& comment : list)
      lines_.back().comment += (lines_.back().comment.empty() ? "" : " ") + comment;
  }
  static std::string flat(const Doc& doc) {
    std::string out;
    for (const LaidLine& laid : lay_out(doc, 1 << 28)) out += (out.empty() ? "" : " ") + laid.code;
    return out;
  }

  // A part with its comments; what was not printed inside stands above.
  template <class F>
  void commented(int ind, const void* key, F&& print_body) {
    Trivia t = trivia_.take(key);
    if (t.blank) blank();
    comments(ind, t.leading);
    size_t at = lines_.size();
    print_body();
    std::vector<std::string> rest = trivia_.take_inside(key), tail = trivia_.take_tail(key);
    rest.insert(rest.end(), tail.begin(), tail.end());
    for (size_t i = 0; i < rest.size(); ++i)
      lines_.insert(lines_.begin() + static_cast<ptrdiff_t>(at + i),
                    {std::string(static_cast<size_t>(ind), ' ') + rest[i], ""});
    trail(t.trailing);
  }

  // `key: |-`, then ZPL text.
  void literal(int ind, const std::string& key, const Doc& doc) {
    emit(ind, key + " |-");
    int in = below(ind, key);
    for (const LaidLine& laid : lay_out(doc, kWidth - in))
      lines_.push_back({laid.code.empty() ? "" : std::string(static_cast<size_t>(in), ' ') + laid.code, laid.comment});
  }
  // The column of what stands below a key, which may stand behind the dash of a list.
  static int below(int ind, const std::string& key) { return ind + (key.starts_with("- ") ? 4 : 2); }

  // Where quotes belong to YAML. `key` ends with its colon; `part` is what holds the comments inside.
  void expression(int ind, const std::string& key, const Expr& e, const void* part) {
    bool inner = trivia_.has_inside(part);
    std::vector<const Expr*> links = chain_links(e);
    bool list = links.size() >= 2 && !e.group;
    for (const Expr* link : links) {
      const Expr* call = link;
      while (!(call->kind == Expr::Kind::Call && call->method)) call = &call->operands[0];
      list = list && is_name(call->text) && !trivia_.has_inside(&link->text) && trivia_.peek(&link->text).tail.empty();
    }
    if (list) list = !trivia_.has_inside(&chain_base(e)) && trivia_.peek(&chain_base(e)).tail.empty();
    if (!inner) {
      std::string words = flat(zpl_.expr(e));
      bool fits = ind + count_columns(key) + 1 + count_columns(words) <= kWidth;
      if (fits || (links.size() < 2 && count_columns(words) <= kWidth)) return emit(ind, key + " " + scalar(words));
    }
    if (!list) {
      Doc doc = zpl_.expr(e);
      return literal(ind, key, doc);
    }
    emit(ind, key);
    int in = below(ind, key);
    const Expr& base = chain_base(e);
    const Expr* before = &base;
    Trivia first = trivia_.take(&base);
    comments(in, first.leading);
    std::string words = flat(zpl_.expr(base, 8));
    bool alone = !first.trailing.empty() || !trivia_.peek(&links[0]->text).leading.empty();
    if (alone) {
      emit(in, "- " + scalar(words));
      trail(first.trailing);
      words.clear();
    }
    for (const Expr* link : links) {
      Trivia t = trivia_.take(&link->text);
      comments(in, t.leading);
      words += flat(zpl_.link(*link, before)).substr(words.empty() ? 1 : 0);
      emit(in, "- " + scalar(words));
      trail(t.trailing);
      words.clear();
      before = link;
    }
  }

  // Where quoted text is a string. Nothing where YAML cannot say it there.
  std::optional<std::string> argument(const Expr& e, bool flow) {
    if (!e.group && e.kind == Expr::Kind::String && e.literal.starts_with('"'))
      return quoted(e.literal.substr(1, e.literal.size() - 2));
    if (!e.group && e.kind == Expr::Kind::List) {
      std::string all;
      for (const Expr& item : e.operands) {
        std::optional<std::string> words = argument(item, true);
        if (!words) return std::nullopt;
        all += (all.empty() ? "" : ", ") + *words;
      }
      return "[" + all + "]";
    }
    if (!e.group && e.kind == Expr::Kind::Schema) {
      std::string all;
      for (const ast::SchemaField& f : e.fields) {
        std::optional<std::string> words = scalar(flat(zpl_.type(f.type)), true);
        if (in_sample_ && f.type.kind == ast::Type::Kind::Value) words = argument(f.type.dims[0], true);
        if (!words) return std::nullopt;
        all += (all.empty() ? "" : ", ") + scalar(f.name.text, true) + ": " + *words;
      }
      return "{" + all + "}";
    }
    std::string words = flat(zpl_.expr(e));
    if (!is_plain(words, flow)) return std::nullopt;
    return words;
  }

  // "name: value" of a source or step; nothing where it is better said in ZPL.
  std::optional<std::string> call(const Expr& e) {
    if (e.text == "set" || e.group) return std::nullopt;
    std::string head = scalar(e.text) + ": ";
    if (e.operands.empty()) return head + "{}";
    size_t named = 0;
    for (const ast::Name& name : e.names) {
      named += name.text.empty() ? 0 : 1;
      if (name.text.find('.') != name.text.npos) return std::nullopt;
    }
    if (named != 0 && named != e.operands.size()) return std::nullopt;
    if (named == 0 && e.operands.size() == 1) {
      const Expr& only = e.operands[0];
      bool scalar_value = only.group || (only.kind != Expr::Kind::List && only.kind != Expr::Kind::Schema);
      std::optional<std::string> words = argument(only, !scalar_value);
      if (!words || (only.kind == Expr::Kind::Schema && !only.group)) return std::nullopt;
      return head + (scalar_value ? *words : "[" + *words + "]");
    }
    std::string all;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      std::optional<std::string> words = argument(e.operands[i], true);
      if (!words) return std::nullopt;
      all += all.empty() ? "" : ", ";
      if (named != 0) all += scalar(e.names[i].text, true) + ": ";
      all += *words;
    }
    return head + (named != 0 ? "{" + all + "}" : "[" + all + "]");
  }

  void call_step(int ind, const Expr& e, const void* part) {
    if (trivia_.has_inside(part)) {
      Doc doc = zpl_.expr(e);
      return literal(ind, "-", doc);
    }
    if (e.kind != Expr::Kind::Call) return emit(ind, "- " + scalar(flat(zpl_.expr(e))));
    std::optional<std::string> words = call(e);
    if (!words) {
      std::string whole = flat(zpl_.expr(e));
      if (ind + 2 + count_columns(whole) <= kWidth) return emit(ind, "- " + scalar(whole));
      Doc doc = zpl_.expr(e);
      return literal(ind, "-", doc);
    }
    bool named = !e.names.empty() && !e.names[0].text.empty();
    if (!named || ind + 2 + count_columns(*words) <= kWidth) return emit(ind, "- " + *words);
    emit(ind, "- " + scalar(e.text) + ":");
    for (size_t i = 0; i < e.operands.size(); ++i)
      emit(ind + 4, scalar(e.names[i].text) + ": " + *argument(e.operands[i], true));
  }

  void step(int ind, const ast::Step& s) {
    commented(ind, &s, [&] {
      switch (s.kind) {
        case ast::Step::Kind::Assign: {
          if (!trivia_.has_inside(&s)) {
            std::string words = flat(zpl_.expr(s.expr));
            std::string whole = "- set: {" + scalar(s.name.text, true) + ": " + words + "}";
            if (is_plain(words, true) && ind + count_columns(whole) <= kWidth) return emit(ind, whole);
          }
          emit(ind, "- set:");
          return expression(ind + 4, scalar(s.name.text) + ":", s.expr, &s);
        }
        case ast::Step::Kind::Filter:
          return expression(ind, "- filter:", s.expr, &s);
        case ast::Step::Kind::Select:
        case ast::Step::Kind::Drop: {
          std::string all;
          for (const ast::Name& field : s.fields) all += (all.empty() ? "" : ", ") + scalar(field.text, true);
          return emit(ind, "- " + s.name.text + ": [" + all + "]");
        }
        case ast::Step::Kind::If: {
          Trivia header = trivia_.take(&s.name);
          expression(ind, "- if:", s.expr, &s.name);
          trail(header.leading);
          trail(header.trailing);
          branch(ind + 2, "then:", s.then, &s.then);
          if (!s.otherwise.empty() || trivia_.has(&s.otherwise)) branch(ind + 2, "else:", s.otherwise, &s.otherwise);
          return;
        }
        case ast::Step::Kind::Call:
          return call_step(ind, s.expr, &s);
      }
    });
  }

  void branch(int ind, const std::string& key, const std::vector<ast::Step>& steps, const void* part) {
    emit(ind, key + (steps.empty() ? " []" : ""));
    for (const ast::Step& s : steps) step(ind + 2, s);
    comments(ind + 2, trivia_.take_tail(part));
  }

  void pipe(int ind, const std::string& key, const ast::Pipe& p) {
    if (trivia_.take_blank(&p.source)) blank();
    emit(ind, key);
    commented(ind + 2, &p.source, [&] { call_step(ind + 2, p.source, &p.source); });
    for (const ast::Step& s : p.steps) step(ind + 2, s);
  }

  void schema(int ind, const ast::Type& contract) {
    if (contract.kind != ast::Type::Kind::Record || contract.optional || contract.fields.empty()) {
      emit(ind, "returns: " + scalar(flat(zpl_.type(contract))));
      return;
    }
    emit(ind, "returns:");
    for (const ast::SchemaField& f : contract.fields)
      commented(ind + 2, &f, [&] { emit(ind + 2, scalar(f.name.text) + ": " + scalar(flat(zpl_.type(f.type)))); });
  }

  // "type" or "{type: ..., default: ...}"; nothing where the default needs a line of its own.
  std::optional<std::string> parameter(const ast::Parameter& p, bool flow) {
    if (!p.default_value) return p.type ? scalar(flat(zpl_.type(*p.type)), flow) : "{}";
    std::optional<std::string> words = argument(*p.default_value, true);
    if (!words) return std::nullopt;
    return "{" + (p.type ? "type: " + scalar(flat(zpl_.type(*p.type)), true) + ", " : "") + "default: " + *words + "}";
  }
  void parameters(int ind, const std::string& key, const std::vector<ast::Parameter>& list) {
    if (list.empty()) return;
    emit(ind, key);
    for (const ast::Parameter& p : list)
      commented(ind + 2, &p, [&] {
        std::string name = scalar(p.name.text) + ":";
        if (std::optional<std::string> words = parameter(p, false)) return emit(ind + 2, name + " " + *words);
        emit(ind + 2, name);
        if (p.type) emit(ind + 4, "type: " + scalar(flat(zpl_.type(*p.type))));
        value(ind + 4, "default:", *p.default_value);
      });
  }
  // An argument on lines of its own: everything can be said there.
  void value(int ind, const std::string& key, const Expr& e) {
    if (std::optional<std::string> words = argument(e, false)) return emit(ind, key + " " + *words);
    Doc doc = zpl_.expr(e);
    literal(ind, key, doc);
  }

  void function(int ind, const ast::Function& f) {
    std::optional<std::string> args = "";
    bool typed = false, inner = trivia_.has_inside(&f);
    for (const ast::Parameter& p : f.parameters) typed = typed || p.type || p.default_value;
    for (const ast::Parameter& p : f.parameters) {
      std::optional<std::string> words = typed ? parameter(p, true) : std::string();
      if (!words || !args) {
        args.reset();
        continue;
      }
      *args += (args->empty() ? "" : ", ") + scalar(p.name.text, true) + (typed ? ": " + *words : "");
    }
    if (args) *args = typed ? "{" + *args + "}" : "[" + *args + "]";
    std::string body = inner ? "" : flat(zpl_.expr(f.body));
    if (args && !inner && is_plain(body, true)) {
      std::string whole = scalar(f.name.text) + ": {args: " + *args + ", value: " + body + "}";
      if (ind + count_columns(whole) <= kWidth) return emit(ind, whole);
    }
    emit(ind, scalar(f.name.text) + ":");
    bool args_inner = false;
    for (const ast::Parameter& p : f.parameters) args_inner = args_inner || trivia_.has(&p) || trivia_.has_inside(&p);
    if (args && !args_inner)
      emit(ind + 2, "args: " + *args);
    else
      parameters(ind + 2, "args:", f.parameters);
    expression(ind + 2, "value:", f.body, &f);
  }

  std::optional<std::string> sample(const ast::TestSample& sample) {
    if (trivia_.has_inside(&sample) || !trivia_.peek(&sample).tail.empty()) return std::nullopt;
    std::string all;
    for (const ast::TestField& f : sample.fields) {
      std::optional<std::string> words = argument(f.value, true);
      if (!words) return std::nullopt;
      all += (all.empty() ? "" : ", ") + scalar(f.name.text, true) + ": " + *words;
    }
    return "{" + all + "}";
  }

  void test_entry(int ind, const std::string& dash, const ast::TestEntry& entry) {
    in_sample_ = true;
    write_test_entry(ind, dash, entry);
    in_sample_ = false;
  }
  void write_test_entry(int ind, const std::string& dash, const ast::TestEntry& entry) {
    // The entry's column is that of its key, behind the dash of a list.
    int in = ind + count_columns(dash);
    commented(ind, &entry, [&] {
      if (entry.expr) {
        if (entry.key.text == "check") return expression(ind, dash + "check:", *entry.expr, &entry);
        return emit(ind, dash + entry.key.text + ": " + argument(*entry.expr, false).value_or("\"\""));
      }
      if (entry.values) {
        if (!trivia_.has_inside(&entry)) return value(ind, dash + entry.key.text + ":", *entry.values);
        Doc doc = zpl_.expr(*entry.values);
        return literal(ind, dash + entry.key.text + ":", doc);
      }
      if (!entry.list) {
        const ast::TestSample& only = entry.samples[0];
        if (std::optional<std::string> words = sample(only);
            words && ind + count_columns(dash + entry.key.text) + 2 + count_columns(*words) <= kWidth)
          return emit(ind, dash + entry.key.text + ": " + *words);
        if (only.fields.empty()) return emit(ind, dash + entry.key.text + ": {}");
        emit(ind, dash + entry.key.text + ":");
        for (const ast::TestField& f : only.fields)
          commented(in + 2, &f, [&] { value(in + 2, scalar(f.name.text) + ":", f.value); });
        return;
      }
      std::string all;
      bool short_list = true;
      for (const ast::TestSample& s : entry.samples) {
        std::optional<std::string> words = sample(s);
        short_list = short_list && words && !trivia_.has(&s) && !trivia_.blank(&s);
        if (words) all += (all.empty() ? "" : ", ") + *words;
      }
      if (short_list && ind + count_columns(dash + entry.key.text) + 4 + count_columns(all) <= kWidth)
        return emit(ind, dash + entry.key.text + ": [" + all + "]");
      emit(ind, dash + entry.key.text + ":");
      for (const ast::TestSample& s : entry.samples)
        commented(in + 2, &s, [&] {
          if (std::optional<std::string> words = sample(s)) return emit(in + 2, "- " + *words);
          bool first = true;
          for (const ast::TestField& f : s.fields) {
            size_t at = lines_.size();
            commented(in + 4, &f, [&] { value(in + 4, scalar(f.name.text) + ":", f.value); });
            // The dash stands before the first key.
            if (first)
              for (size_t i = at; i < lines_.size(); ++i) {
                std::string& code = lines_[i].code;
                if (code.find_first_not_of(' ') == code.npos || code[code.find_first_not_of(' ')] == '#') continue;
                code[static_cast<size_t>(in) + 2] = '-';
                break;
              }
            first = false;
          }
        });
      comments(in + 2, trivia_.take_tail(&entry));
    });
  }

  void test(int ind, const ast::Test& t) {
    commented(ind, &t, [&] {
      Trivia own = trivia_.take(&t.literal);
      std::string name = t.literal.substr(1, t.literal.size() - 2);
      bool simple = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0 && name.back() != ' ' &&
                    is_plain(name, true) && std::all_of(name.begin(), name.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '_';
                    });
      emit(ind, (simple ? name : quoted(name)) + ":");
      trail(own.leading);
      trail(own.trailing);
      bool list = false;
      for (const ast::TestEntry& entry : t.entries) list = list || t.find(entry.key.text) != &entry;
      std::string dash = list ? "- " : "";
      if (t.of) emit(ind + 2, dash + "of: " + scalar(t.of->text));
      for (const ast::TestEntry& entry : t.entries) test_entry(ind + 2, dash, entry);
      comments(ind + 2, trivia_.take_tail(&t));
    });
  }

  static std::string_view section_of(Statement::Kind kind) {
    switch (kind) {
      case Statement::Kind::Import:
        return "import";
      case Statement::Kind::Let:
        return "let";
      case Statement::Kind::Function:
        return "functions";
      case Statement::Kind::Stream:
        return "streams";
      case Statement::Kind::Pipeline:
        return "pipelines";
      case Statement::Kind::Test:
        return "tests";
      case Statement::Kind::Bare:
        break;
    }
    return "steps";
  }

  // Declarations under the keys of their kinds; where kinds alternate, under `declare`.
  void sections(int ind, const std::vector<Statement>& all) {
    std::vector<std::vector<Statement>> runs;
    bool alternate = false;
    for (const Statement& s : all) {
      if (runs.empty() || runs.back()[0].kind != s.kind) {
        for (const auto& run : runs) alternate = alternate || run[0].kind == s.kind;
        runs.emplace_back();
      }
      runs.back().push_back(s);
    }
    if (alternate) {
      if (trivia_.take_blank(runs[0][0].node)) blank();
      emit(ind, "declare:");
    }
    // Pipelines and tests stand apart, as in ZPL.
    bool apart = false;
    for (const auto& run : runs) {
      int in = alternate ? ind + 2 : ind;
      for (size_t i = 0; i < run.size(); ++i) {
        bool block = run[i].kind == Statement::Kind::Pipeline || run[i].kind == Statement::Kind::Test;
        if (trivia_.take_blank(run[i].node) || block || apart) blank();
        apart = block;
        if (i == 0) emit(in, (alternate ? "- " : "") + std::string(section_of(run[i].kind)) + ":");
        statement(in + (alternate ? 4 : 2), run[i]);
      }
    }
  }

  void statement(int ind, const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::Import: {
        const auto& i = *static_cast<const ast::Import*>(s.node);
        std::string path = i.path.literal.substr(1, i.path.literal.size() - 2);
        return commented(ind, &i, [&] { emit(ind, scalar(i.alias.text) + ": " + scalar(path)); });
      }
      case Statement::Kind::Let: {
        const auto& l = *static_cast<const ast::Let*>(s.node);
        return commented(ind, &l, [&] { expression(ind, scalar(l.name.text) + ":", l.value, &l); });
      }
      case Statement::Kind::Function: {
        const auto& f = *static_cast<const ast::Function*>(s.node);
        return commented(ind, &f, [&] { function(ind, f); });
      }
      case Statement::Kind::Stream: {
        const auto& x = *static_cast<const ast::Stream*>(s.node);
        // Nothing stands apart inside of a stream's head, as in ZPL.
        trivia_.take_blank(&x.pipe.source);
        return commented(ind, &x, [&] {
          if (!x.contract) return pipe(ind, scalar(x.name.text) + ":", x.pipe);
          emit(ind, scalar(x.name.text) + ":");
          schema(ind + 2, *x.contract);
          pipe(ind + 2, "steps:", x.pipe);
        });
      }
      case Statement::Kind::Pipeline: {
        const auto& p = *static_cast<const ast::Pipeline*>(s.node);
        Trivia t = trivia_.take(&p), own = trivia_.take(&p.block);
        if (t.blank) blank();
        comments(ind, t.leading);
        emit(ind, scalar(p.name.text.empty() ? "main" : p.name.text) + ":");
        trail(own.leading);
        trail(own.trailing);
        body(ind + 2, p);
        trail(t.trailing);
        return;
      }
      case Statement::Kind::Test:
        return test(ind, *static_cast<const ast::Test*>(s.node));
      case Statement::Kind::Bare:
        return;
    }
  }

  void body(int ind, const ast::Pipeline& p) {
    parameters(ind, "params:", p.parameters);
    if (p.contract) schema(ind, *p.contract);
    sections(ind, statements_of(p));
    pipe(ind, "steps:", p.pipe);
    comments(ind + 2, trivia_.take_tail(&p));
  }

  TriviaMap& trivia_;
  ZplPrinter zpl_;
  std::vector<LaidLine> lines_;
  bool in_sample_ = false;  // of a test: values stand in mappings, and no types
};

// ---- the tree as text

std::string tree(const Expr& e);
std::string tree(const ast::Type& t) {
  std::string out = t.name;
  if (t.kind == ast::Type::Kind::Enum) {
    out = "enum";
    for (const ast::Name& v : t.values) out += " " + v.text;
  }
  if (t.tensor) out += "[]";
  if (t.kind == ast::Type::Kind::List) out += "list";
  if (t.kind == ast::Type::Kind::Batch) out += "batch";
  if (t.optional) out += "?";
  for (const Expr& d : t.dims) out += " " + tree(d);
  for (const ast::SchemaField& f : t.fields) out += " " + f.name.text + ":" + tree(f.type);
  return "<" + out + ">";
}
std::string tree(const Expr& e) {
  using Kind = Expr::Kind;
  std::string out;
  switch (e.kind) {
    case Kind::Absent:
      return "_";
    case Kind::Number:
    case Kind::Bool:
    case Kind::Name:
      return e.text;
    case Kind::String:
      out = "\"";
      for (size_t i = 0; i < e.pieces.size(); ++i)
        out += e.pieces[i] + (i < e.operands.size() ? "{" + tree(e.operands[i]) + "}" : "");
      return out + "\"";
    case Kind::Schema:
      for (const ast::SchemaField& f : e.fields) out += " " + f.name.text + ":" + tree(f.type);
      return "(schema" + out + ")";
    case Kind::Call:
      out = (e.method ? "." : "") + e.text;
      break;
    case Kind::Member:
      out = "member " + e.text;
      break;
    case Kind::Index:
      out = "index";
      break;
    case Kind::Slice:
      out = "slice";
      break;
    case Kind::Unary:
    case Kind::Binary:
      out = e.text;
      break;
    case Kind::List:
      out = "list";
      break;
  }
  for (size_t i = 0; i < e.operands.size(); ++i)
    out += " " + (i < e.names.size() && !e.names[i].text.empty() ? e.names[i].text + "=" : "") + tree(e.operands[i]);
  return "(" + out + ")";
}
std::string tree(const std::vector<ast::Step>& steps) {
  using Kind = ast::Step::Kind;
  std::string out;
  for (const ast::Step& s : steps) {
    out += " | ";
    if (s.kind == Kind::Assign) out += s.name.text + " = " + tree(s.expr);
    if (s.kind == Kind::Filter) out += "filter " + tree(s.expr);
    if (s.kind == Kind::Call) out += tree(s.expr);
    if (s.kind == Kind::Select || s.kind == Kind::Drop) {
      out += s.name.text;
      for (const ast::Name& f : s.fields) out += " " + f.text;
    }
    if (s.kind == Kind::If) out += "if " + tree(s.expr) + " {" + tree(s.then) + " } else {" + tree(s.otherwise) + " }";
  }
  return out;
}
std::string tree(const std::vector<ast::Parameter>& list) {
  std::string out;
  for (const ast::Parameter& p : list)
    out +=
        " " + p.name.text + (p.type ? ":" + tree(*p.type) : "") + (p.default_value ? "=" + tree(*p.default_value) : "");
  return out;
}
std::string tree(const Statement& s, const std::string& indent) {
  switch (s.kind) {
    case Statement::Kind::Import: {
      const auto& i = *static_cast<const ast::Import*>(s.node);
      return indent + "import " + tree(i.path) + " as " + i.alias.text + "\n";
    }
    case Statement::Kind::Let: {
      const auto& l = *static_cast<const ast::Let*>(s.node);
      return indent + "let " + l.name.text + " = " + tree(l.value) + "\n";
    }
    case Statement::Kind::Function: {
      const auto& f = *static_cast<const ast::Function*>(s.node);
      return indent + "fn " + f.name.text + tree(f.parameters) + " = " + tree(f.body) + "\n";
    }
    case Statement::Kind::Stream: {
      const auto& x = *static_cast<const ast::Stream*>(s.node);
      return indent + "stream " + x.name.text + (x.contract ? " -> " + tree(*x.contract) : "") + " = " +
             tree(x.pipe.source) + tree(x.pipe.steps) + "\n";
    }
    case Statement::Kind::Pipeline:
    case Statement::Kind::Bare: {
      const auto& p = *static_cast<const ast::Pipeline*>(s.node);
      bool bare = s.kind == Statement::Kind::Bare;
      std::string out = indent + "pipeline " + (p.name.text.empty() && !bare ? "main" : p.name.text) +
                        tree(p.parameters) + (p.contract ? " -> " + tree(*p.contract) : "") + "\n";
      if (!bare)
        for (const Statement& inner : statements_of(p)) out += tree(inner, indent + "  ");
      return out + indent + "  " + tree(p.pipe.source) + tree(p.pipe.steps) + "\n";
    }
    case Statement::Kind::Test: {
      const auto& t = *static_cast<const ast::Test*>(s.node);
      std::string out = indent + "test \"" + t.name + "\"" + (t.of ? " of " + t.of->text : "") + "\n";
      for (const ast::TestEntry& entry : t.entries) {
        out += indent + "  " + entry.key.text + (entry.list ? " list" : "");
        for (const ast::TestSample& sample : entry.samples) {
          out += " {";
          for (const ast::TestField& f : sample.fields) out += " " + f.name.text + ":" + tree(f.value);
          out += " }";
        }
        for (const std::optional<Expr>& e : {entry.values, entry.expr}) out += e ? " " + tree(*e) : "";
        out += "\n";
      }
      return out;
    }
  }
  return "";
}

}  // namespace

Form form_of(std::string_view file_name) {
  return file_name.ends_with(".yaml") || file_name.ends_with(".yml") ? Form::Yaml : Form::Zpl;
}

std::string print(const ast::File& file, std::string_view text, Form from, Form to) {
  TriviaMap trivia(file, text, from == Form::Yaml);
  if (to == Form::Yaml) return join_lines(YamlPrinter(trivia).file(file));
  Doc doc = ZplPrinter(trivia).file(file);
  return join_lines(lay_out(doc, kWidth));
}

std::string tree_text(const ast::File& file) {
  std::string out;
  for (const Statement& s : statements_of(file)) out += tree(s, "");
  return out;
}
std::string tree_text(const Expr& expr) { return tree(expr); }

}  // namespace zephon
