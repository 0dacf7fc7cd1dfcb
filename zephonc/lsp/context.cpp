#include "zephonc/lsp/context.h"

#include <algorithm>
#include <vector>

#include "frontend/print.h"
#include "zephonc/lsp/text.h"

namespace zephon::lsp {
namespace {

using Kind = Context::Kind;

/// A bracket that is open, and what stands before it.
struct Open {
  char bracket;           // ( [ {, or " for a hole in a string
  std::string word;       // what is called
  bool declares = false;  // the parameters of a pipeline or a function
  bool type = false;      // the braces of a type
  std::string head;       // the word that opened the step around it
};

/// Reads ZPL without asking whether it is right.
class Scanner {
 public:
  /// `quotes`: whether strings are strings; in YAML they hold ZPL.
  Scanner(std::string_view text, bool quotes) : text_(text), quotes_(quotes) {}

  /// False where the end stands in a comment or in the text of a string.
  bool run() {
    for (size_t i = 0; i < text_.size();) {
      const char c = text_[i];
      if (c == '#') {
        const size_t end = text_.find('\n', i);
        if (end == std::string_view::npos) return false;
        i = end;
      } else if (c == '"' && quotes_) {
        if (!string(i)) return false;
      } else if (is_word_byte(c)) {
        size_t end = i;
        while (end < text_.size() && is_word_byte(text_[end])) ++end;
        if (end == text_.size()) return true;  // the word that has been begun
        word(std::string(text_.substr(i, end - i)));
        i = end;
      } else if (c == '}' && !open_.empty() && open_.back().bracket == '"') {
        open_.pop_back();
        last_ = "\"";
        if (!string(i)) return false;
      } else {
        sign(c);
        ++i;
      }
    }
    return true;
  }

  std::vector<Open> open_;
  std::string last_, before_, third_;  // the last tokens, the last first
  std::string head_;                   // the first word of the step or declaration

 private:
  void push(std::string token) {
    third_ = std::move(before_);
    before_ = std::move(last_);
    last_ = std::move(token);
  }
  void word(std::string token) {
    if (head_.empty()) head_ = token;
    constexpr std::string_view kDeclarations[] = {"pipeline", "let", "fn", "stream", "import", "test"};
    if (std::find(std::begin(kDeclarations), std::end(kDeclarations), token) != std::end(kDeclarations)) head_ = token;
    push(std::move(token));
  }
  void sign(char c) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '"') return;
    if (c == '(' || c == '[' || c == '{') {
      Open open{c, last_, before_ == "pipeline" || before_ == "fn", false, head_};
      open.type = c == '{' && (last_ == ">" || last_ == ":" || last_ == "<");
      if (!open_.empty() && open_.back().type) open.type = true;
      open_.push_back(std::move(open));
      push(std::string(1, c));
      if (c == '{') head_.clear();
    } else if (c == ')' || c == ']' || c == '}') {
      if (!open_.empty()) {
        head_ = open_.back().head;
        open_.pop_back();
      }
      push(std::string(1, c));
      if (c == '}' && open_.empty()) head_.clear();
    } else {
      push(std::string(1, c));
      if (c == '|') head_.clear();
    }
  }
  /// From a quote, or from the end of a hole. False where the text ends in it.
  bool string(size_t& i) {
    const bool raw = text_[i] == '"' && i > 0 && text_[i - 1] == 'r' && (i < 2 || !is_word_byte(text_[i - 2]));
    for (++i; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\n') return true;  // not closed: said elsewhere
      if (c == '"') {
        ++i;
        push("\"");
        return true;
      }
      if (raw) continue;
      if (c == '\\') {
        ++i;
      } else if (c == '{') {
        ++i;
        open_.push_back({'"', "", false, false, head_});
        push("{");
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
  bool quotes_;
};

Context classify(const Scanner& s) {
  Context out;
  const std::string& last = s.last_;
  const Open* open = s.open_.empty() ? nullptr : &s.open_.back();
  auto is = [&](Kind kind) {
    out.kind = kind;
    return out;
  };
  if (last == ".") {
    out.base = s.before_;
    const bool number = !s.before_.empty() && s.before_[0] >= '0' && s.before_[0] <= '9';
    return is(number ? Kind::Nothing : Kind::Member);
  }
  if (open != nullptr && open->bracket == '"') return is(Kind::Value);
  if (open != nullptr && open->bracket == '(') {
    if (open->declares) return is(last == ":" ? Kind::Type : last == "=" ? Kind::Value : Kind::Nothing);
    if (open->word == "enum") return is(Kind::Nothing);
    out.base = open->word;
    return is(last == "(" || last == "," ? Kind::Argument : Kind::Value);
  }
  if (open != nullptr && open->bracket == '[') return is(open->type ? Kind::Nothing : Kind::Value);
  if (open != nullptr && open->type) return is(last == ":" ? Kind::Type : Kind::Nothing);
  if (last == "|") return is(Kind::Step);
  if (last == "{")
    return is(open != nullptr && (open->head == "if" || open->word == "else") ? Kind::Step : Kind::Source);
  if (last == "=") return is(s.head_ == "stream" ? Kind::Source : Kind::Value);
  if (s.head_ == "select" || s.head_ == "drop") return is(last == s.head_ || last == "," ? Kind::Fields : Kind::Top);
  if (last == ":" || (last == ">" && s.before_ == "-")) return is(Kind::Type);
  constexpr std::string_view kBefore[] = {"+",   "-",  "*",   "/",      "%",  "<", ">",
                                          "and", "or", "not", "filter", "if", ",", "check"};
  if (std::find(std::begin(kBefore), std::end(kBefore), last) != std::end(kBefore)) return is(Kind::Value);
  constexpr std::string_view kNamed[] = {"pipeline", "let", "fn", "stream", "import", "as", "of"};
  if (std::find(std::begin(kNamed), std::end(kNamed), last) != std::end(kNamed)) return is(Kind::Nothing);
  return is(open == nullptr ? Kind::Top : Kind::Source);
}

Context zpl_context(std::string_view before) {
  Scanner scanner(before, true);
  return scanner.run() ? classify(scanner) : Context{};
}

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

std::string_view line_at(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// The key under which the line at `begin` stands.
std::string parent_key(std::string_view text, size_t begin, size_t indent, bool item) {
  while (begin > 0) {
    begin = text.rfind('\n', begin - 1);
    begin = begin == std::string_view::npos || begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
    std::string_view line = line_at(text, begin);
    const size_t own = indent_of(line);
    if (own == line.size() || line[own] == '#') continue;
    // A list may stand as far left as its key.
    const bool outside = own < indent || (item && own == indent && line[own] != '-');
    if (!outside) continue;
    line.remove_prefix(own);
    while (line.starts_with("- ")) line.remove_prefix(2);
    return std::string(line.substr(0, line.find(':')));
  }
  return {};
}

Context yaml_context(std::string_view before) {
  const size_t begin = before.rfind('\n') + 1;
  std::string_view line = before.substr(begin);
  const size_t indent = indent_of(line);
  line.remove_prefix(indent);
  bool item = false;
  while (line.starts_with("- ")) {
    line.remove_prefix(2);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    item = true;
  }
  Context out;
  const bool bare = std::all_of(line.begin(), line.end(), is_word_byte);
  const std::string parent = indent == 0 && !item ? "" : parent_key(before, begin, indent, item);
  const bool steps = parent == "steps" || parent == "then" || parent == "else";
  if (bare) {
    out.kind = indent == 0 && !item ? Kind::Top : item && steps ? Kind::Step : item ? Kind::Value : Kind::Nothing;
    if (item && (parent == "select" || parent == "drop")) out.kind = Kind::Fields;
    return out;
  }
  // `key: value`; the first key of the line says what the rest is.
  const size_t colon = line.find(": ");
  const std::string key(line.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (key == "select" || key == "drop") {
    out.kind = Kind::Fields;
    return out;
  }
  if (key == "returns" || parent == "returns") {
    out.kind = Kind::Type;
    return out;
  }
  Scanner scanner(colon == std::string_view::npos ? line : line.substr(colon + 1), false);
  if (!scanner.run()) return out;
  if (scanner.last_.empty()) {
    out.kind = key == "source" || parent == "streams" ? Kind::Source : key == "type" ? Kind::Type : Kind::Value;
    return out;
  }
  const bool mapping = !scanner.open_.empty() && scanner.open_.back().bracket == '{';
  if (mapping && scanner.last_ == ":") {
    out.kind = scanner.before_ == "type" || parent == "params" ? Kind::Type : Kind::Value;
    return out;
  }
  if (mapping && (scanner.last_ == "{" || scanner.last_ == ",")) {
    out.kind = key == "set" || key == "let" ? Kind::Fields : Kind::Argument;
    out.base = key;
    return out;
  }
  return classify(scanner);
}

}  // namespace

Context context_of(std::string_view name, std::string_view before) {
  Context out = form_of(name) == Form::Yaml ? yaml_context(before) : zpl_context(before);
  out.begin = before.size();
  while (out.begin > 0 && is_word_byte(before[out.begin - 1])) --out.begin;
  return out;
}

}  // namespace zephon::lsp
