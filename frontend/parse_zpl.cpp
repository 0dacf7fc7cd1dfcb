// ZPL text -> syntax tree. Guards, then ANTLR's words and sentences, then the tree.
//
// The grammar is LL(1): the generated code never predicts, so that a cold start costs little. Syntax errors come from
// ANTLR's recovery (several per run), worded by us: the expected words are read off the parser's transition network,
// with rules and tokens called as grammar/rule_names.def says. The tree is built only where the syntax is right.
#include "frontend/parse_zpl.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <set>
#include <typeinfo>

#include "ZplLexer.h"
#include "ZplParser.h"
#include "antlr4-runtime.h"

namespace zephon {

Span TextPiece::span(size_t from, size_t to) const {
  if (to <= from) return {file, place(from), place(from)};
  return {file, place(from), offsets.empty() ? place(to) : std::max(place(from) + 1, offsets[to - 1] + 1)};
}

TextPiece TextPiece::part(size_t from, size_t to) const {
  TextPiece piece{file, text.substr(from, to - from), place(from), {}, nullptr};
  if (!offsets.empty())
    piece.offsets.assign(offsets.begin() + static_cast<ptrdiff_t>(from),
                         offsets.begin() + static_cast<ptrdiff_t>(to) + 1);
  return piece;
}

namespace {

using antlr4::ParserRuleContext;
using antlr4::Token;
using antlr4::tree::ParseTree;
using parser::ZplLexer;
using parser::ZplParser;

constexpr size_t kMaxFileSize = 16u << 20;
constexpr size_t kMaxErrors = 20;  // more help nobody
constexpr int kMaxHoleLevel = 4;   // a string in a hole of a string ...

struct NamedRule {
  size_t rule;
  std::string_view words;
};
constexpr NamedRule kRuleNames[] = {
#define ZEPHON_RULE_NAME(rule, words) {ZplParser::Rule##rule, words},
#define ZEPHON_TOKEN_NAME(token, words)
#include "grammar/rule_names.def"
#undef ZEPHON_RULE_NAME
#undef ZEPHON_TOKEN_NAME
};
constexpr NamedRule kTokenNames[] = {
#define ZEPHON_RULE_NAME(rule, words)
#define ZEPHON_TOKEN_NAME(token, words) {ZplParser::token, words},
#include "grammar/rule_names.def"
#undef ZEPHON_RULE_NAME
#undef ZEPHON_TOKEN_NAME
};

std::string_view find_words(std::span<const NamedRule> names, size_t id) {
  for (const NamedRule& name : names)
    if (name.rule == id) return name.words;
  return {};
}

// A spelling of another language, and what is meant.
struct Foreign {
  std::string_view text, hint;
};
constexpr Foreign kForeign[] = {
    {"&&", "write `and`"},
    {"||", "write `or`, or one `|` between steps"},
    {"&", "write `and`"},
    {"!", "write `not`"},
    {"**", "write `pow(x, y)`"},
    {";", "steps are separated by `|`"},
    {"=>", "a contract follows `->`"},
    {"^", "write `pow(x, y)`"},
    {"|>", "steps are separated by `|`"},
    {":=", "write `=`"},
    {"+=", "write the field twice: `x = x + ...`"},
    {"-=", "write the field twice: `x = x - ...`"},
    {"*=", "write the field twice: `x = x * ...`"},
    {"/=", "write the field twice: `x = x / ...`"},
};

std::string shortened(std::string text) {
  constexpr size_t kMax = 40;
  if (text.size() <= kMax) return text;
  text.resize(kMax);
  while (!text.empty() && find_invalid_utf8(text)) text.pop_back();
  return text + "...";
}

// A word of the text.
class Word final : public Token {
 public:
  Word(antlr4::Lexer& lexer, size_t type, size_t index, size_t start, size_t stop)
      : lexer_(lexer), type_(type), index_(index), start_(start), stop_(stop) {}
  std::string getText() const override {
    return type_ == Token::EOF ? "<EOF>" : getInputStream()->getText(antlr4::misc::Interval(start_, stop_));
  }
  size_t getType() const override { return type_; }
  size_t getLine() const override { return 1; }  // places are counted in characters alone
  size_t getCharPositionInLine() const override { return start_; }
  size_t getChannel() const override { return Token::DEFAULT_CHANNEL; }
  size_t getTokenIndex() const override { return index_; }
  size_t getStartIndex() const override { return start_; }
  size_t getStopIndex() const override { return stop_; }
  antlr4::TokenSource* getTokenSource() const override { return &lexer_; }
  antlr4::CharStream* getInputStream() const override { return lexer_.getInputStream(); }
  std::string toString() const override { return getText(); }

 private:
  antlr4::Lexer& lexer_;
  size_t type_, index_, start_, stop_;
};

// The text in code points.
class Characters : public antlr4::ANTLRInputStream {
 public:
  using antlr4::ANTLRInputStream::ANTLRInputStream;
  std::u32string_view text() const { return _data; }
};

// ANTLR's automaton of the words, which it makes of the grammar as it goes, with the edges in rows: its own loop asks a
// hash table under a lock for each character.
class Automaton : public antlr4::atn::LexerATNSimulator {
 public:
  Automaton(antlr4::Lexer& lexer, LexerATNSimulator& by, Characters& input)
      : LexerATNSimulator(&lexer, by.atn, by._decisionToDFA, by.getSharedContextCache()), input_(input) {
    if (_decisionToDFA[0].s0 == nullptr) match(&input, 0);  // makes the first state
    input.seek(0);
  }

  enum class Use : uint8_t { Unknown, Word, Hidden, Skipped };
  struct Match {
    size_t type, end;
    Use use;
  };
  // The longest word that begins at `at`.
  Match longest(size_t at) {
    const std::u32string_view text = input_.text();
    const size_t begin = at;
    size_t end = at;
    State* best = nullptr;
    for (State* state = find(_decisionToDFA[0].s0); state != nullptr && at < text.size();) {
      const char32_t c = text[at++];
      State*& next = state->next[std::min<char32_t>(c, kOther)];
      if (next == nullptr) next = follow(*state, c);
      if (next == &none()) break;
      if (next->dfa->isAcceptState) {
        best = next;
        end = at;
      }
      state = next;
    }
    ZEPHON_CHECK(best != nullptr, "the lexer refuses a character");  // BAD takes any
    if (best->use == Use::Unknown) best->use = use_of(*best->dfa, begin);
    return {best->dfa->prediction, end, best->use};
  }

 private:
  // Beyond ASCII all characters are alike.
  static constexpr char32_t kOther = 128;
  struct State {
    antlr4::dfa::DFAState* dfa = nullptr;
    Use use = Use::Unknown;  // of what is accepted here
    std::array<State*, kOther + 1> next{};
  };
  static State& none() {
    static State state;
    return state;
  }

  // As the states of ANTLR's automaton, rows outlive a text; each thread has its own.
  static State* find(antlr4::dfa::DFAState* dfa) {
    thread_local std::deque<State> states;
    thread_local std::vector<State*> by_number;
    const auto number = static_cast<size_t>(dfa->stateNumber);
    if (by_number.size() <= number) by_number.resize(number + 1);
    if (by_number[number] == nullptr) {
      by_number[number] = &states.emplace_back();
      by_number[number]->dfa = dfa;
    }
    return by_number[number];
  }

  // What the commands of the grammar (`skip`, `channel`) make of the word.
  Use use_of(const antlr4::dfa::DFAState& accepts, size_t begin) {
    _recog->type = accepts.prediction;
    _recog->channel = Token::DEFAULT_CHANNEL;
    if (accepts.lexerActionExecutor != nullptr) accepts.lexerActionExecutor->execute(_recog, &input_, begin);
    return _recog->type == antlr4::Lexer::SKIP         ? Use::Skipped
           : _recog->channel != Token::DEFAULT_CHANNEL ? Use::Hidden
                                                       : Use::Word;
  }

  State* follow(const State& from, char32_t c) {
    antlr4::dfa::DFAState* to = c < kOther ? getExistingTargetState(from.dfa, c) : nullptr;
    if (to == nullptr) to = computeTargetState(&input_, from.dfa, c);
    return to == ERROR.get() ? &none() : find(to);
  }

  Characters& input_;
};

// The words of a text, but for comments and spaces.
class Words : public antlr4::TokenStream {
 public:
  explicit Words(const std::string& text) : input_(text), lexer_(&input_) {
    lexer_.removeErrorListeners();
    Automaton automaton(lexer_, *lexer_.getInterpreter<antlr4::atn::LexerATNSimulator>(), input_);
    const size_t size = input_.text().size();
    for (size_t at = 0; at < size;) {
      const Automaton::Match match = automaton.longest(at);
      if (match.use != Automaton::Use::Skipped)
        (match.use == Automaton::Use::Hidden ? hidden_ : words_)
            .emplace_back(lexer_, match.type, words_.size(), at, match.end - 1);
      at = match.end;
    }
    words_.emplace_back(lexer_, Token::EOF, words_.size(), size, size - 1);
    tokens_.reserve(words_.size());
    for (Word& word : words_) tokens_.push_back(&word);
  }

  const std::vector<Token*>& tokens() const { return tokens_; }
  const std::deque<Word>& comments() const { return hidden_; }

  Token* LT(ssize_t k) override {
    if (k < 0) return at_ < static_cast<size_t>(-k) ? nullptr : tokens_[at_ - static_cast<size_t>(-k)];
    return tokens_[std::min(at_ + static_cast<size_t>(k) - 1, tokens_.size() - 1)];
  }
  size_t LA(ssize_t k) override {
    const Token* token = LT(k);
    return token == nullptr ? Token::INVALID_TYPE : token->getType();
  }
  void consume() override { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override { at_ = std::min(index, tokens_.size() - 1); }
  size_t size() override { return tokens_.size(); }
  std::string getSourceName() const override { return ""; }
  Token* get(size_t index) const override { return tokens_[index]; }
  antlr4::TokenSource* getTokenSource() const override { return const_cast<ZplLexer*>(&lexer_); }
  std::string getText(const antlr4::misc::Interval& interval) override {
    std::string text;
    for (ssize_t i = interval.a; i <= interval.b; ++i) text += tokens_[static_cast<size_t>(i)]->getText();
    return text;
  }
  std::string getText() override { return getText(antlr4::misc::Interval(size_t{0}, tokens_.size() - 2)); }
  std::string getText(antlr4::RuleContext* context) override { return getText(context->getSourceInterval()); }
  std::string getText(Token* start, Token* stop) override {
    return getText(antlr4::misc::Interval(start->getTokenIndex(), stop->getTokenIndex()));
  }

 private:
  Characters input_;
  ZplLexer lexer_;
  std::deque<Word> words_, hidden_;
  std::vector<Token*> tokens_;
  size_t at_ = 0;
};

// ANTLR looks at every loop and option whether what follows can follow, and copies the set of what can. Here it is a
// bit of a word for each state of the automaton.
class ErrorStrategy : public antlr4::DefaultErrorStrategy {
 public:
  void sync(antlr4::Parser* parser) override {
    const size_t state = parser->getState(), token = parser->getTokenStream()->LA(1);
    thread_local std::vector<uint64_t> known;  // 0: not yet
    if (known.size() <= state) known.resize(state + 1);
    if (known[state] == 0) {
      const antlr4::atn::ATN& atn = parser->getATN();
      const antlr4::misc::IntervalSet& next = atn.nextTokens(atn.states[state]);
      for (const antlr4::misc::Interval& interval : next.getIntervals())
        for (ssize_t id = interval.a; id <= interval.b; ++id)
          known[state] |= id == static_cast<ssize_t>(Token::EPSILON) ? ~uint64_t{0} : bit(static_cast<size_t>(id));
    }
    if ((known[state] & bit(token)) == 0) DefaultErrorStrategy::sync(parser);
  }

 private:
  static constexpr uint64_t bit(size_t token) { return uint64_t{1} << (token == Token::EOF ? 63 : token); }
  static_assert(ZplParser::BAD < 63);
};

// One text on its way through ANTLR.
class Session {
 public:
  Session(const TextPiece& piece, int level, Diagnostics& diags) : piece_(piece), level_(level), diags_(diags) {
    // ANTLR counts code points.
    bool ascii = std::all_of(piece.text.begin(), piece.text.end(), [](char c) { return (c & 0x80) == 0; });
    if (!ascii) {
      for (size_t i = 0; i < piece.text.size(); ++i)
        if ((static_cast<unsigned char>(piece.text[i]) & 0xC0) != 0x80) bytes_.push_back(static_cast<uint32_t>(i));
      bytes_.push_back(static_cast<uint32_t>(piece.text.size()));
    }
  }

  // Lexes, guards, parses by `rule` and builds with `build`.
  template <class T, class Rule, class Build>
  Result<T> run(Rule rule, Build build);

  Span span(const Token* token) const {
    if (token->getType() == Token::EOF) return piece_.span(piece_.text.size(), piece_.text.size());
    return piece_.span(byte(token->getStartIndex()), byte(token->getStopIndex() + 1));
  }
  Span span(const ParserRuleContext* context) const {
    Span first = span(context->start);
    // A rule that matched nothing stops before it starts.
    if (context->stop == nullptr || context->stop->getTokenIndex() < context->start->getTokenIndex()) return first;
    return join(first, span(context->stop));
  }
  std::string_view text(const Token* token) const {
    const size_t begin = byte(token->getStartIndex());
    return piece_.text.substr(begin, byte(token->getStopIndex() + 1) - begin);
  }
  const TextPiece& piece() const { return piece_; }
  int level() const { return level_; }
  size_t byte(size_t code_point) const {
    return bytes_.empty() ? code_point : bytes_[std::min(code_point, bytes_.size() - 1)];
  }
  Diagnostics& diags() { return diags_; }

 private:
  std::optional<Reported> guard(const std::vector<Token*>& tokens);

  const TextPiece& piece_;
  int level_;
  Diagnostics& diags_;
  std::vector<uint32_t> bytes_;  // of each code point; empty where the text is ASCII
};

// Words that are no words, and nesting that would exhaust the stack.
std::optional<Reported> Session::guard(const std::vector<Token*>& tokens) {
  size_t errors = 0;
  std::optional<Reported> reported;
  std::vector<Token*> open;
  for (size_t i = 0; i < tokens.size() && errors < kMaxErrors; ++i) {
    Token* token = tokens[i];
    auto say = [&](Kind kind, std::string_view text) {
      ++errors;
      return diags_.report(kind, "{}", text).primary(span(token));
    };
    switch (token->getType()) {
      case ZplLexer::LPAREN:
      case ZplLexer::LBRACKET:
      case ZplLexer::LBRACE:
        open.push_back(token);
        if (open.size() > ast::kMaxNesting)
          return diags_.report(Kind::TooDeep, "brackets are nested more than {} deep", ast::kMaxNesting)
              .primary(span(token), "level {}", open.size())
              .secondary(span(open.front()), "level 1 opens here")
              .hint("name a part of it with `let`, with a field or with `fn`")
              .emit();
        break;
      case ZplLexer::RPAREN:
      case ZplLexer::RBRACKET:
      case ZplLexer::RBRACE:
        if (!open.empty()) open.pop_back();
        break;
      case ZplLexer::UNTERMINATED:
        reported =
            say(Kind::BadString, "the string is not closed").hint("a string ends with `\"` on the same line").emit();
        break;
      case ZplLexer::SINGLE_QUOTED:
        reported = say(Kind::BadString, "a string stands between double quotes")
                       .hint("write `\"{}\"`", shortened(token->getText().substr(1, token->getText().size() - 2)))
                       .emit();
        break;
      case ZplLexer::FOREIGN: {
        std::string text = token->getText();
        auto found = std::find_if(std::begin(kForeign), std::end(kForeign), [&](auto& f) { return f.text == text; });
        reported = say(Kind::SyntaxError, fmt::format("`{}` is not an operator of ZPL", text))
                       .hint_text(found == std::end(kForeign) ? std::string() : std::string(found->hint))
                       .emit();
        break;
      }
      case ZplLexer::BAD: {
        // One message for a run of them.
        size_t last = i;
        while (last + 1 < tokens.size() && tokens[last + 1]->getType() == ZplLexer::BAD &&
               tokens[last + 1]->getStartIndex() == tokens[last]->getStopIndex() + 1)
          ++last;
        std::string text;
        for (size_t k = i; k <= last && text.size() < 60; ++k) text += tokens[k]->getText();
        bool printable =
            std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; });
        bool quotes = text.find("\xE2\x80\x9C") != text.npos || text.find("\xE2\x80\x9D") != text.npos ||
                      text.find("\xE2\x80\x98") != text.npos || text.find("\xE2\x80\x99") != text.npos;
        reported = diags_
                       .report(Kind::BadText, "{} cannot stand outside strings and comments",
                               printable ? fmt::format("`{}`", shortened(text))
                                         : fmt::format("the byte {:#04x}", static_cast<unsigned char>(text[0])))
                       .primary(join(span(token), span(tokens[last])))
                       .hint_text(quotes ? "strings stand between straight double quotes: `\"...\"`"
                                  : (static_cast<unsigned char>(text[0]) & 0x80) != 0
                                      ? "names consist of the letters a-z and A-Z, digits and `_`"
                                      : "")
                       .emit();
        ++errors;
        i = last;
        break;
      }
      default:
        break;
    }
  }
  return reported;
}

struct TooManyErrors {};

// Turns ANTLR's notifications into "expected ..., found ...".
class ErrorListener : public antlr4::BaseErrorListener {
 public:
  ErrorListener(Session& session, const std::vector<Token*>& tokens) : session_(session), tokens_(tokens) {}
  std::optional<Reported> reported;

  void syntaxError(antlr4::Recognizer* recognizer, Token* found, size_t, size_t, const std::string&,
                   std::exception_ptr error) override {
    // Whoever tries to go on from an error may stumble over the same token again.
    if (found == last_) return;
    last_ = found;
    auto* parser = static_cast<ZplParser*>(recognizer);
    antlr4::RuleContext* context = parser->getContext();
    size_t state = parser->getState();
    if (error) {
      try {
        std::rethrow_exception(error);
      } catch (antlr4::RecognitionException& e) {
        if (e.getCtx() != nullptr) context = e.getCtx();
        state = e.getOffendingState();
      }
    }
    std::vector<std::string> words = expected(*parser, state, context, found);
    Span at = session_.span(found);
    bool at_end = found->getType() == Token::EOF;
    bool whole_file = parser->getRuleNames()[root(context)->getRuleIndex()] == "file";
    std::string what = at_end ? (whole_file ? "the end of the file" : "the end of the text")
                              : fmt::format("`{}`", shortened(found->getText()));
    auto builder =
        session_.diags().report(Kind::SyntaxError, "expected {}, found {}", enumerate(words), what).primary(at);
    // The bracket that waits to be closed.
    if (Token* open = open_bracket(found); open != nullptr && closes(words, open))
      std::move(builder).secondary(session_.span(open), "`{}` opens here", open->getText());
    bool step_word = found->getType() == ZplLexer::NAME || found->getType() == ZplLexer::FILTER ||
                     found->getType() == ZplLexer::SELECT || found->getType() == ZplLexer::DROP ||
                     found->getType() == ZplLexer::IF;
    bool bar = std::find(words.begin(), words.end(), "`|`") != words.end();
    if (step_word && bar) std::move(builder).hint("steps are separated by `|`");
    if (found->getType() == ZplLexer::ASSIGN) std::move(builder).hint("`==` compares, `=` assigns and names arguments");
    size_t type = found->getType();
    if (type >= ZplLexer::ZPL && type <= ZplLexer::FALSE &&
        std::find(words.begin(), words.end(), "a name") != words.end())
      std::move(builder).note("`{}` is a word of the language", found->getText());
    reported = std::move(builder).emit();
    if (++count_ >= kMaxErrors) throw TooManyErrors();
  }

 private:
  static antlr4::RuleContext* root(antlr4::RuleContext* context) {
    while (context->parent != nullptr) context = static_cast<antlr4::RuleContext*>(context->parent);
    return context;
  }

  static std::string enumerate(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return text;
  }

  Token* open_bracket(const Token* found) const {
    std::vector<Token*> open;
    for (Token* token : tokens_) {
      if (token == found || token->getTokenIndex() >= found->getTokenIndex()) break;
      size_t type = token->getType();
      if (type == ZplLexer::LPAREN || type == ZplLexer::LBRACKET || type == ZplLexer::LBRACE) open.push_back(token);
      if ((type == ZplLexer::RPAREN || type == ZplLexer::RBRACKET || type == ZplLexer::RBRACE) && !open.empty())
        open.pop_back();
    }
    return open.empty() ? nullptr : open.back();
  }
  static bool closes(const std::vector<std::string>& words, const Token* open) {
    std::string_view closing = open->getType() == ZplLexer::LPAREN     ? "`)`"
                               : open->getType() == ZplLexer::LBRACKET ? "`]`"
                                                                       : "`}`";
    return std::find(words.begin(), words.end(), closing) != words.end();
  }

  // What could stand here, in words. Names of rules where a rule begins here; otherwise what the network allows.
  static std::vector<std::string> expected(ZplParser& parser, size_t state, antlr4::RuleContext* context,
                                           Token* found) {
    std::string_view outer;
    for (auto* c = context; c != nullptr; c = static_cast<antlr4::RuleContext*>(c->parent)) {
      if (static_cast<ParserRuleContext*>(c)->start != found) break;
      std::string_view words = find_words(kRuleNames, c->getRuleIndex());
      if (!words.empty()) outer = words;
    }
    if (!outer.empty()) return {std::string(outer.starts_with('~') ? outer.substr(1) : outer)};
    // Behind a minus the rule has begun, and all that a person knows of is missing.
    if (context->getRuleIndex() == ZplParser::RuleOperand &&
        std::all_of(context->children.begin(), context->children.end(), [](ParseTree* child) {
          auto* sign = dynamic_cast<antlr4::tree::TerminalNode*>(child);
          return sign != nullptr && sign->getSymbol()->getType() == ZplLexer::MINUS;
        }))
      return {std::string(find_words(kRuleNames, ZplParser::RuleOperand))};

    const antlr4::atn::ATN& atn = parser.getATN();
    std::vector<std::string> words, weak;
    auto add = [&](std::string_view text) {
      std::vector<std::string>& list = text.starts_with('~') ? weak : words;
      std::string word(text.starts_with('~') ? text.substr(1) : text);
      if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
    };
    // A step may follow a finished one, though the loop that reads steps has been left.
    auto* rule = static_cast<ParserRuleContext*>(context);
    if (!rule->children.empty() && (dynamic_cast<ZplParser::PipeContext*>(rule->children.back()) != nullptr ||
                                    dynamic_cast<ZplParser::StepContext*>(rule->children.back()) != nullptr))
      add("`|`");
    std::set<std::pair<antlr4::atn::ATNState*, const antlr4::RuleContext*>> seen;
    // `returns`: follow states of rules entered here; when they are used up, those of `context`.
    std::function<void(antlr4::atn::ATNState*, std::vector<antlr4::atn::ATNState*>, antlr4::RuleContext*)> walk =
        [&](antlr4::atn::ATNState* at, std::vector<antlr4::atn::ATNState*> returns, antlr4::RuleContext* in) {
          if (!seen.insert({at, returns.empty() ? in : nullptr}).second) return;
          if (at->getStateType() == antlr4::atn::ATNState::RULE_STOP) {
            if (!returns.empty()) {
              auto* next = returns.back();
              returns.pop_back();
              walk(next, std::move(returns), in);
            } else if (in->parent != nullptr) {
              auto* invoking = atn.states[in->invokingState];
              const auto* call = static_cast<const antlr4::atn::RuleTransition*>(invoking->transitions[0]);
              walk(call->followState, {}, static_cast<antlr4::RuleContext*>(in->parent));
            }
            return;
          }
          for (const antlr4::atn::Transition* transition : at->transitions) {
            if (transition->getSerializationType() == antlr4::atn::Transition::RULE) {
              const auto* call = static_cast<const antlr4::atn::RuleTransition*>(transition);
              if (std::string_view name = find_words(kRuleNames, call->ruleIndex); !name.empty()) {
                add(name);
              } else {
                auto deeper = returns;
                deeper.push_back(call->followState);
                walk(call->target, std::move(deeper), in);
              }
            } else if (transition->isEpsilon()) {
              walk(transition->target, returns, in);
            } else {
              for (ssize_t type : transition->label().toList()) {
                auto id = static_cast<size_t>(type);
                if (id == Token::EOF) {
                  add("the end");
                } else if (std::string_view name = find_words(kTokenNames, id); !name.empty()) {
                  add(name);
                } else {
                  std::string text = parser.getVocabulary().getLiteralName(id);
                  if (!text.empty()) add("`" + text.substr(1, text.size() - 2) + "`");
                }
              }
            }
          }
        };
    walk(atn.states[state], {}, context);
    if (words.empty()) words = weak;
    constexpr size_t kMaxWords = 5;
    if (words.size() > kMaxWords) words.resize(kMaxWords);
    return words;
  }

  Session& session_;
  const std::vector<Token*>& tokens_;
  size_t count_ = 0;
  Token* last_ = nullptr;
};

// Parse tree -> syntax tree. `failed` remembers that something was reported.
class Builder {
 public:
  explicit Builder(Session& session) : session_(session) {}
  std::optional<Reported> failed;

  ast::File file(ZplParser::FileContext* context) {
    ast::File file;
    file.file = session_.piece().file;
    if (context->header() != nullptr) file.header = session_.span(context->header());
    check_version(context);
    declarations(context->declaration(), file.declarations, &file);
    for (auto* c : context->test()) file.tests.push_back(test(c));
    if (auto* pipe = context->pipe()) {
      if (!file.pipelines.empty())
        failed = error(Kind::SyntaxError, "a pipeline without a name stands alone in its file")
                     .primary(session_.span(pipe->source()), "a second pipeline begins here")
                     .secondary(file.pipelines[0].name.span, "the first")
                     .hint("write `pipeline NAME {{ ... }}`")
                     .emit();
      ast::Pipeline bare;
      bare.span = session_.span(pipe);
      bare.pipe = this->pipe(pipe);
      file.pipelines.push_back(std::move(bare));
    }
    return file;
  }

  ast::Expr expr(ZplParser::ExprContext* context) {
    size_t at = 0;
    return climb(context->children, at, 1);
  }

  ast::Step step(ZplParser::StepContext* context) {
    const std::vector<ParseTree*>& parts = context->children;
    ast::Step step;
    step.span = session_.span(context);
    step.name = name(token(parts[0]));
    switch (type_of(parts[0])) {
      case ZplParser::NAME:
        if (parts.size() == 3) {
          step.kind = ast::Step::Kind::Assign;
          step.expr = expr(as<ZplParser::ExprContext>(parts[2]));
        } else {
          step.kind = ast::Step::Kind::Call;
          if (parts.size() == 1)
            failed = error(Kind::SyntaxError, "`{}` has no parentheses", step.name.text)
                         .primary(step.name.span)
                         .hint("a step is `{0}(...)` or `{0} = ...`", step.name.text)
                         .emit();
          step.expr =
              call(step.name, parts.size() == 1 ? nullptr : as<ZplParser::CallArgumentsContext>(parts[1]), step.span);
        }
        break;
      case ZplParser::FILTER:
        step.kind = ast::Step::Kind::Filter;
        step.expr = expr(as<ZplParser::ExprContext>(parts[1]));
        break;
      case ZplParser::IF:
        step = if_step(context);
        break;
      default:
        step.kind = type_of(parts[0]) == ZplParser::SELECT ? ast::Step::Kind::Select : ast::Step::Kind::Drop;
        for (size_t i = 1; i < parts.size(); i += 2) step.fields.push_back(name(token(parts[i])));
    }
    return step;
  }

  ast::Type type(ZplParser::TypeContext* context) {
    ast::Type type = type_name(context->typeName());
    type.optional = context->QUESTION() != nullptr;
    if (type.optional) type.span = session_.span(context);
    return type;
  }

 private:
  template <class... Args>
  DiagnosticBuilder error(Kind kind, fmt::format_string<Args...> text, Args&&... args) {
    return session_.diags().report(kind, text, std::forward<Args>(args)...);
  }
  ast::Name name(antlr4::tree::TerminalNode* node) { return name(node->getSymbol()); }
  ast::Name name(Token* token) { return {std::string(session_.text(token)), session_.span(token)}; }

  // Of a tree without errors. ANTLR's own accessors cast every child to see what it is.
  static bool is_token(const ParseTree* tree) { return typeid(*tree) == typeid(antlr4::tree::TerminalNodeImpl); }
  static Token* token(ParseTree* tree) { return static_cast<antlr4::tree::TerminalNode*>(tree)->getSymbol(); }
  static size_t type_of(ParseTree* tree) { return is_token(tree) ? token(tree)->getType() : Token::INVALID_TYPE; }
  template <class Context>
  static Context* as(ParseTree* tree) {
    return static_cast<Context*>(tree);
  }
  // The children of the rule, of which there is one kind.
  template <class Context, class F>
  static void each(const ParserRuleContext* context, F&& f) {
    for (ParseTree* child : context->children)
      if (!is_token(child)) f(as<Context>(child));
  }

  // Sets the depth; reports a tree that recursion over it could not survive.
  ast::Expr& measure(ast::Expr& e) {
    for (const ast::Expr& operand : e.operands) e.depth = std::max(e.depth, operand.depth + 1);
    if (e.depth > ast::kMaxDepth && !too_deep_) {
      too_deep_ = true;
      failed = error(Kind::TooDeep, "the expression has more than {} operations in one chain", ast::kMaxDepth)
                   .primary({e.span.file, e.text_span.begin, e.text_span.end})
                   .hint("name a part of it with `let`, with a field or with `fn`")
                   .emit();
    }
    return e;
  }

  void check_version(ZplParser::FileContext* context) {
    auto* header = context->header();
    if (header != nullptr) {
      if (header->NUMBER()->getText() != "1")
        failed = error(Kind::WrongVersion, "this compiler knows version 1 of the language, not {}",
                       shortened(header->NUMBER()->getText()))
                     .primary(session_.span(header->NUMBER()->getSymbol()))
                     .emit();
      return;
    }
    for (auto* declaration : context->declaration()) {
      if (dynamic_cast<ZplParser::PipelineDeclarationContext*>(declaration) == nullptr) continue;
      failed = error(Kind::WrongVersion, "the version of the language is not stated")
                   .primary(session_.span(declaration->start))
                   .hint("open the file with `zpl 1`")
                   .emit();
      return;
    }
  }

  void declarations(const std::vector<ZplParser::DeclarationContext*>& contexts, ast::Declarations& into,
                    ast::File* file) {
    for (auto* context : contexts) {
      if (auto* let = dynamic_cast<ZplParser::LetDeclarationContext*>(context)) {
        into.lets.push_back({name(let->NAME()), session_.span(let), expr(let->expr())});
      } else if (auto* fn = dynamic_cast<ZplParser::FunctionDeclarationContext*>(context)) {
        ast::Function function;
        function.name = name(fn->NAME());
        function.span = session_.span(fn);
        function.parameters = parameters(fn->parameters());
        function.body = expr(fn->expr());
        into.functions.push_back(std::move(function));
      } else if (auto* stream = dynamic_cast<ZplParser::StreamDeclarationContext*>(context)) {
        std::optional<ast::Type> contract;
        if (stream->type() != nullptr) contract = declared_type(stream->type());
        into.streams.push_back(
            {name(stream->NAME()), session_.span(stream), std::move(contract), pipe(stream->pipe())});
      } else if (auto* import = dynamic_cast<ZplParser::ImportDeclarationContext*>(context)) {
        import_declaration(import, into, file != nullptr);
      } else if (auto* declared_test = dynamic_cast<ZplParser::TestDeclarationContext*>(context)) {
        ast::Test read = test(declared_test->test());
        if (file != nullptr)
          file->tests.push_back(std::move(read));
        else
          failed = error(Kind::SyntaxError, "a test stands outside of pipelines").primary(read.name_span).emit();
      } else if (auto* declared = dynamic_cast<ZplParser::PipelineDeclarationContext*>(context)) {
        if (file == nullptr) {
          failed = error(Kind::SyntaxError, "a pipeline cannot stand inside a pipeline")
                       .primary(session_.span(declared->NAME()->getSymbol()))
                       .hint("a part of a pipeline is a `stream`")
                       .emit();
          continue;
        }
        ast::Pipeline pipeline;
        pipeline.block =
            join(session_.span(declared->LBRACE()->getSymbol()), session_.span(declared->RBRACE()->getSymbol()));
        pipeline.name = name(declared->NAME());
        pipeline.span = session_.span(declared);
        if (declared->parameters() != nullptr) pipeline.parameters = parameters(declared->parameters());
        if (declared->type() != nullptr) pipeline.contract = declared_type(declared->type());
        declarations(declared->declaration(), pipeline.declarations, nullptr);
        pipeline.pipe = pipe(declared->pipe());
        file->pipelines.push_back(std::move(pipeline));
      }
    }
  }

  void import_declaration(ZplParser::ImportDeclarationContext* context, ast::Declarations& into, bool outside) {
    ast::Import import;
    import.span = session_.span(context);
    Token* path = context->STRING()->getSymbol();
    string_token(path, import.path);
    auto names = context->NAME();
    import.alias = name(names[1]);
    if (names[0]->getText() != "as")
      failed = error(Kind::SyntaxError, "expected `as`, found `{}`", shortened(names[0]->getText()))
                   .primary(session_.span(names[0]->getSymbol()))
                   .hint("write `import {} as name`", shortened(path->getText()))
                   .emit();
    else if (!import.path.operands.empty())
      failed = error(Kind::BadString, "the path of an import has no holes").primary(import.path.span).emit();
    else if (!outside)
      failed = error(Kind::SyntaxError, "`import` stands outside of pipelines").primary(import.span).emit();
    else
      into.imports.push_back(std::move(import));
  }

  ast::Test test(ZplParser::TestContext* context) {
    ast::Test test;
    test.span = session_.span(context);
    Token* opening = context->TEST()->getSymbol();
    size_t begin = session_.byte(opening->getStartIndex()), end = session_.byte(opening->getStopIndex() + 1);
    size_t quote = session_.piece().text.find('"', begin);
    ast::Expr named;
    string_body(session_.piece().part(quote + 1, end - 1), named);
    test.name_span = session_.piece().span(quote, end);
    test.literal = std::string(session_.piece().text.substr(quote, end - quote));
    test.name = named.pieces.empty() ? "" : named.pieces[0];
    if (!named.operands.empty())
      failed = error(Kind::BadString, "the name of a test has no holes").primary(test.name_span).emit();
    if (auto of = context->NAME(); !of.empty()) {
      if (of[0]->getText() != "of")
        failed = error(Kind::SyntaxError, "expected `of` or `{{`, found `{}`", shortened(of[0]->getText()))
                     .primary(session_.span(of[0]->getSymbol()))
                     .hint("write `test {} of {} {{`", shortened(test.literal), of[1]->getText())
                     .emit();
      test.of = name(of[1]);
    }
    test.block = join(session_.span(context->LBRACE()->getSymbol()), session_.span(context->RBRACE()->getSymbol()));
    for (auto* c : context->testEntry()) {
      ast::TestEntry entry;
      entry.key = name(c->NAME());
      entry.span = session_.span(c);
      if (c->expr() != nullptr) entry.expr = expr(c->expr());
      if (auto* samples = c->testSamples()) {
        check_commas(samples);
        entry.list = samples->LBRACKET() != nullptr;
        if (auto* only = samples->testSample()) entry.samples.push_back(test_sample(only));
        ast::Expr values;
        values.kind = ast::Expr::Kind::List;
        values.span = values.text_span = session_.span(samples);
        for (auto* item : samples->testItem()) {
          if (item->expr() != nullptr)
            values.operands.push_back(expr(item->expr()));
          else
            entry.samples.push_back(test_sample(item->testSample()));
        }
        if (!values.operands.empty()) {
          if (!entry.samples.empty())
            failed = error(Kind::BadTest, "the list holds samples and values")
                         .primary(values.operands[0].span, "a value")
                         .secondary(entry.samples[0].span, "a sample")
                         .emit();
          measure(values);
          entry.values = std::move(values);
          entry.list = false;
          entry.samples.clear();
        }
      }
      test.entries.push_back(std::move(entry));
    }
    if (std::optional<Reported> bad = check_test(test, session_.diags())) failed = bad;
    return test;
  }

  ast::TestSample test_sample(ZplParser::TestSampleContext* context) {
    check_commas(context);
    ast::TestSample sample;
    sample.span = session_.span(context);
    for (auto* f : context->testField()) {
      ast::Expr value = expr(f->expr());
      if (std::optional<Reported> bad = make_test_value(value, session_.diags())) failed = bad;
      sample.fields.push_back({name(f->NAME()), std::move(value)});
    }
    return sample;
  }

  // The grammar lets `a,,b` through.
  void check_commas(ParserRuleContext* context) {
    bool comma = false;
    for (ParseTree* child : context->children) {
      bool is_comma = type_of(child) == ZplLexer::COMMA;
      if (is_comma && comma)
        failed =
            error(Kind::SyntaxError, "nothing stands between two commas").primary(session_.span(token(child))).emit();
      comma = is_comma;
    }
  }

  std::vector<ast::Parameter> parameters(ZplParser::ParametersContext* context) {
    check_commas(context);
    std::vector<ast::Parameter> list;
    for (auto* c : context->parameter()) {
      ast::Parameter parameter;
      parameter.name = name(c->NAME());
      if (c->type() != nullptr) parameter.type = declared_type(c->type());
      if (c->expr() != nullptr) parameter.default_value = expr(c->expr());
      list.push_back(std::move(parameter));
    }
    return list;
  }

  ast::Type type_name(ZplParser::TypeNameContext* context) {
    ast::Type type;
    type.span = session_.span(context);
    if (auto* named = dynamic_cast<ZplParser::NamedTypeContext*>(context)) {
      type.name = named->NAME()->getText();
      if (auto* dims = dynamic_cast<ZplParser::DimensionsContext*>(named->typeSuffix())) {
        type.tensor = true;
        for (auto* dim : dims->expr()) type.dims.push_back(expr(dim));
      } else if (auto* argument = dynamic_cast<ZplParser::TypeArgumentContext*>(named->typeSuffix())) {
        if (type.name == "batch" || type.name == "list") {
          type.kind = type.name == "list" ? ast::Type::Kind::List : ast::Type::Kind::Batch;
          type.fields.push_back({{}, this->type(argument->type())});
        } else {
          failed =
              error(Kind::WrongType, "no type is called `{}<T>`", shortened(type.name))
                  .primary(type.span)
                  .hint("`list<T>` is a list whose length may differ from sample to sample; a tensor is `T[3, h, w]`")
                  .emit();
        }
      }
    } else if (auto* choice = dynamic_cast<ZplParser::EnumTypeContext*>(context)) {
      type.kind = ast::Type::Kind::Enum;
      for (auto* value : choice->NAME()) type.values.push_back(name(value));
    } else if (auto* record = dynamic_cast<ZplParser::RecordTypeContext*>(context)) {
      type.kind = ast::Type::Kind::Record;
      type.fields = schema(record->schema());
    }
    return type;
  }

  std::vector<ast::SchemaField> schema(ZplParser::SchemaContext* context) {
    check_commas(context);
    std::vector<ast::SchemaField> fields;
    for (auto* field : context->schemaField())
      fields.push_back(
          {name(field->NAME()), field->type() != nullptr ? type(field->type()) : literal(field->literal())});
    return fields;
  }

  // A type where no literal may stand in the place of a field's.
  ast::Type declared_type(ZplParser::TypeContext* context) {
    ast::Type out = type(context);
    refuse_literals(out);
    return out;
  }
  void refuse_literals(const ast::Type& type) {
    if (type.kind == ast::Type::Kind::Value)
      failed = error(Kind::WrongType, "an element type or a tensor is needed here").primary(type.span).emit();
    for (const ast::SchemaField& field : type.fields) refuse_literals(field.type);
  }

  ast::Type literal(ZplParser::LiteralContext* context) {
    ast::Type type;
    type.kind = ast::Type::Kind::Value;
    type.span = session_.span(context);
    ast::Expr e;
    e.span = e.text_span = type.span;
    if (context->list() != nullptr) {
      check_commas(context->list());
      e.kind = ast::Expr::Kind::List;
      for (auto* item : context->list()->expr()) e.operands.push_back(expr(item));
      measure(e);
    } else if (context->STRING() != nullptr) {
      string_token(context->STRING()->getSymbol(), e);
    } else if (context->RAW_STRING() != nullptr) {
      raw_string(context->RAW_STRING()->getText(), e);
    } else if (context->NUMBER() != nullptr) {
      Token* symbol = context->NUMBER()->getSymbol();
      e.kind = ast::Expr::Kind::Number;
      e.span = e.text_span = session_.span(symbol);
      e.text = number(symbol);
      e.literal = symbol->getText();
      const std::vector<antlr4::tree::TerminalNode*> signs = context->MINUS();
      for (size_t i = signs.size(); i-- > 0;) {
        ast::Expr outer;
        outer.kind = ast::Expr::Kind::Unary;
        outer.text = "-";
        outer.text_span = session_.span(signs[i]->getSymbol());
        outer.span = join(outer.text_span, e.span);
        outer.operands.push_back(std::move(e));
        e = std::move(measure(outer));
      }
    } else {
      e.kind = ast::Expr::Kind::Bool;
      e.text = context->getText();
    }
    type.dims.push_back(std::move(e));
    return type;
  }

  ast::Pipe pipe(ZplParser::PipeContext* context) {
    ast::Pipe pipe;
    pipe.span = session_.span(context);
    pipe.source = source(as<ZplParser::SourceContext>(context->children[0]));
    pipe.steps.reserve(context->children.size() / 2);
    for (size_t i = 2; i < context->children.size(); i += 2)
      pipe.steps.push_back(step(as<ZplParser::StepContext>(context->children[i])));
    return pipe;
  }

  ast::Expr named(const ast::Name& name) {
    ast::Expr e;
    e.kind = ast::Expr::Kind::Name;
    e.span = e.text_span = name.span;
    e.text = name.text;
    return e;
  }

 public:
  ast::Expr source(ZplParser::SourceContext* context) {
    ast::Name first = name(context->NAME(0));
    if (context->NAME().size() == 1)
      return context->callArguments() != nullptr ? call(first, context->callArguments(), session_.span(context))
                                                 : named(first);
    ast::Expr e;
    ast::Name second = name(context->NAME(1));
    e.kind = ast::Expr::Kind::Member;
    e.text = second.text;
    e.text_span = second.span;
    e.span = session_.span(context);
    e.operands.push_back(named(first));
    if (context->callArguments() != nullptr)
      failed = error(Kind::NotAStep, "`{}.{}` is a stream, and takes no arguments", first.text, second.text)
                   .primary(session_.span(context->callArguments()))
                   .emit();
    return std::move(measure(e));
  }

 private:
  ast::Step if_step(ZplParser::StepContext* context) {
    ast::Step step;
    step.kind = ast::Step::Kind::If;
    step.span = session_.span(context);
    step.name = name(context->IF());
    step.expr = expr(context->expr());
    step.then = block(context->block());
    step.then_block = session_.span(context->block());
    // `else if` chains nest to the right; built from the last branch back.
    std::vector<ast::Step> otherwise;
    Span else_block;
    auto branches = context->elseBranch();
    for (size_t i = branches.size(); i-- > 0;) {
      auto* branch = branches[i];
      if (branch->IF() == nullptr) {
        if (i + 1 != branches.size())
          failed = error(Kind::SyntaxError, "nothing can follow `else`")
                       .primary(session_.span(branches[i + 1]->ELSE()->getSymbol()))
                       .secondary(session_.span(branch->ELSE()->getSymbol()), "the last branch")
                       .emit();
        otherwise = block(branch->block());
        else_block = session_.span(branch->block());
        continue;
      }
      ast::Step nested;
      nested.kind = ast::Step::Kind::If;
      nested.span = session_.span(branch);
      nested.name = name(branch->IF());
      nested.expr = expr(branch->expr());
      nested.span.begin = nested.name.span.begin;
      nested.then = block(branch->block());
      nested.then_block = session_.span(branch->block());
      nested.otherwise = std::move(otherwise);
      nested.else_block = else_block;
      // Up to the end of the whole chain.
      if (!nested.otherwise.empty()) nested.span = join(nested.span, nested.otherwise.back().span);
      nested.span = join(nested.span, else_block);
      otherwise.clear();
      else_block = nested.span;
      otherwise.push_back(std::move(nested));
      if (branches.size() - i > ast::kMaxNesting && !too_deep_) {
        too_deep_ = true;
        failed = error(Kind::TooDeep, "more than {} branches in one `if`", ast::kMaxNesting)
                     .primary(session_.span(branch->IF()->getSymbol()))
                     .emit();
        break;
      }
    }
    step.otherwise = std::move(otherwise);
    step.else_block = else_block;
    return step;
  }

  std::vector<ast::Step> block(ZplParser::BlockContext* context) {
    std::vector<ast::Step> steps;
    each<ZplParser::StepContext>(context, [&](auto* c) { steps.push_back(step(c)); });
    return steps;
  }

  ast::Expr call(const ast::Name& callee, ZplParser::CallArgumentsContext* context, Span span) {
    ast::Expr e;
    e.kind = ast::Expr::Kind::Call;
    e.span = span;
    e.text = callee.text;
    e.text_span = callee.span;
    if (context != nullptr) arguments(context, e);
    return std::move(measure(e));
  }

  void arguments(ZplParser::CallArgumentsContext* context, ast::Expr& into) {
    check_commas(context);
    bool named = false;
    into.operands.reserve(into.operands.size() + context->children.size() / 2);
    each<ZplParser::ArgumentContext>(context, [&](ZplParser::ArgumentContext* argument) {
      const std::vector<ParseTree*>& parts = argument->children;
      ast::Name label;
      if (parts.size() == 3) {
        ast::Expr left = expr(as<ZplParser::ExprContext>(parts[0]));
        // `aug.web=7`: a weight of an imported stream.
        bool imported = left.kind == ast::Expr::Kind::Member && left.operands[0].kind == ast::Expr::Kind::Name;
        if (imported) left.text = left.operands[0].text + "." + left.text;
        if ((left.kind != ast::Expr::Kind::Name && !imported) || left.group)
          failed = error(Kind::SyntaxError, "an argument is named by a plain name")
                       .primary(left.span, "this is not a name")
                       .hint("`==` compares, `=` names the argument")
                       .emit();
        label = {left.text, left.span};
        named = left.kind == ast::Expr::Kind::Name || imported;
      } else if (named) {
        failed = error(Kind::SyntaxError, "an argument without a name follows a named one")
                     .primary(session_.span(argument))
                     .emit();
      }
      into.operands.push_back(expr(as<ZplParser::ExprContext>(parts.back())));
      into.names.push_back(std::move(label));
    });
  }

  // How tightly a sign between two operands binds; 0 for what is none.
  static int binding(size_t sign) {
    switch (sign) {
      case ZplParser::OR:
        return 1;
      case ZplParser::AND:
        return 2;
      case ZplParser::EQUAL:
      case ZplParser::UNEQUAL:
      case ZplParser::LESS:
      case ZplParser::LESS_EQ:
      case ZplParser::GREATER:
      case ZplParser::GREATER_EQ:
        return kComparison;
      case ZplParser::PLUS:
      case ZplParser::MINUS:
        return 4;
      case ZplParser::MUL:
      case ZplParser::DIV:
      case ZplParser::FLOOR_DIV:
      case ZplParser::MOD:
        return 5;
      default:
        return 0;
    }
  }
  static constexpr int kComparison = 3;

  // The operands from `at` on and the signs between them, as long as those bind at least so tightly.
  ast::Expr climb(const std::vector<ParseTree*>& parts, size_t& at, int least) {
    const size_t first = at;
    while (type_of(parts[at]) == ZplParser::NOT) ++at;
    const size_t operand_at = at;
    ast::Expr left = at > first ? climb(parts, at, kComparison) : operand(as<ZplParser::OperandContext>(parts[at++]));
    for (size_t i = operand_at; i-- > first && !too_deep_;) left = unary(token(parts[i]), std::move(left));
    Token* comparison = nullptr;
    while (at < parts.size()) {
      Token* sign = token(parts[at]);
      const int level = binding(sign->getType());
      if (level < least) break;
      const bool chained = level == kComparison && comparison != nullptr;
      if (chained)
        failed = error(Kind::SyntaxError, "comparisons do not chain")
                     .primary(session_.span(sign))
                     .secondary(session_.span(comparison), "the first comparison")
                     .hint("write `a < b and b < c`")
                     .emit();
      if (chained || (too_deep_ && level > kComparison)) {  // nothing is made of the rest of the chain
        while (at < parts.size() && (!is_token(parts[at]) || binding(token(parts[at])->getType()) >= level)) ++at;
        continue;
      }
      comparison = level == kComparison ? sign : nullptr;
      ++at;
      ast::Expr right = climb(parts, at, level + 1);
      left = binary(std::move(left), std::string(session_.text(sign)), session_.span(sign), std::move(right));
    }
    return left;
  }

  ast::Expr binary(ast::Expr left, std::string sign, Span sign_span, ast::Expr right) {
    ast::Expr e;
    e.kind = ast::Expr::Kind::Binary;
    e.span = join(left.span, right.span);
    e.text = std::move(sign);
    e.text_span = sign_span;
    e.operands.push_back(std::move(left));
    e.operands.push_back(std::move(right));
    return std::move(measure(e));
  }

  ast::Expr unary(Token* sign, ast::Expr operand) {
    ast::Expr e;
    e.kind = ast::Expr::Kind::Unary;
    e.text = session_.text(sign);
    e.text_span = session_.span(sign);
    e.span = join(e.text_span, operand.span);
    e.operands.push_back(std::move(operand));
    return std::move(measure(e));
  }

  // Signs in front, a primary expression, and what is applied to it.
  ast::Expr operand(ZplParser::OperandContext* context) {
    const std::vector<ParseTree*>& parts = context->children;
    size_t at = 0;
    while (type_of(parts[at]) == ZplParser::MINUS) ++at;
    const size_t signs = at;
    ast::Expr e = primary(parts, at);
    for (; at < parts.size() && !too_deep_; ++at) e = suffix(std::move(e), as<ZplParser::SuffixContext>(parts[at]));
    for (size_t i = signs; i-- > 0 && !too_deep_;) e = unary(token(parts[i]), std::move(e));
    return e;
  }

  ast::Expr suffix(ast::Expr of, ZplParser::SuffixContext* context) {
    const std::vector<ParseTree*>& parts = context->children;
    ast::Expr e;
    if (type_of(parts[0]) == ZplParser::DOT) {
      const Token* member = as<ParserRuleContext>(parts[1])->start;
      e.text = session_.text(member);
      e.text_span = session_.span(member);
      e.span = join(of.span, session_.span(context));
      if (parts.size() == 3) {
        auto* given = as<ZplParser::CallArgumentsContext>(parts[2]);
        e.kind = ast::Expr::Kind::Call;
        e.method = true;
        e.names.emplace_back();
        e.operands.reserve(1 + given->children.size() / 2);
        e.operands.push_back(std::move(of));
        arguments(given, e);
      } else {
        e.kind = ast::Expr::Kind::Member;
        e.operands.push_back(std::move(of));
      }
    } else {
      e.kind = ast::Expr::Kind::Index;
      e.text_span = session_.span(context);
      e.span = join(of.span, e.text_span);
      e.operands.push_back(std::move(of));
      each<ZplParser::SubscriptContext>(context, [&](auto* c) { e.operands.push_back(subscript(c)); });
    }
    return std::move(measure(e));
  }

  ast::Expr subscript(ZplParser::SubscriptContext* context) {
    if (context->slice() == nullptr) return expr(context->expr());
    ast::Expr e;
    e.kind = ast::Expr::Kind::Slice;
    e.span = e.text_span = session_.span(context);
    e.operands.resize(3);
    if (context->expr() != nullptr) e.operands[0] = expr(context->expr());
    // After the first colon: what follows it, and what follows the second one.
    size_t place = 0;
    for (auto* child : context->slice()->children) {
      if (auto* bound = dynamic_cast<ZplParser::ExprContext*>(child))
        e.operands[place] = expr(bound);
      else
        ++place;
    }
    return std::move(measure(e));
  }

  // From parts[at] on, which is moved behind it.
  ast::Expr primary(const std::vector<ParseTree*>& parts, size_t& at) {
    ParseTree* first = parts[at++];
    ast::Expr e;
    if (!is_token(first)) {
      e.span = e.text_span = session_.span(as<ParserRuleContext>(first));
      if (typeid(*first) == typeid(ZplParser::SchemaContext)) {
        e.kind = ast::Expr::Kind::Schema;
        e.fields = schema(as<ZplParser::SchemaContext>(first));
        return e;
      }
      e.kind = ast::Expr::Kind::List;
      check_commas(as<ZplParser::ListContext>(first));
      each<ZplParser::ExprContext>(as<ZplParser::ListContext>(first),
                                   [&](auto* item) { e.operands.push_back(expr(item)); });
      return std::move(measure(e));
    }
    Token* word = token(first);
    e.span = e.text_span = session_.span(word);
    switch (word->getType()) {
      case ZplParser::NUMBER:
        e.kind = ast::Expr::Kind::Number;
        e.text = number(word);
        e.literal = session_.text(word);
        break;
      case ZplParser::STRING:
        string_token(word, e);
        break;
      case ZplParser::RAW_STRING:
        raw_string(std::string(session_.text(word)), e);
        break;
      case ZplParser::TRUE:
      case ZplParser::FALSE:
        e.kind = ast::Expr::Kind::Bool;
        e.text = session_.text(word);
        break;
      case ZplParser::NAME:
        if (at < parts.size() && typeid(*parts[at]) == typeid(ZplParser::CallArgumentsContext)) {
          auto* given = as<ZplParser::CallArgumentsContext>(parts[at++]);
          return call(name(word), given, join(e.span, session_.span(given)));
        }
        e.kind = ast::Expr::Kind::Name;
        e.text = session_.text(word);
        break;
      default: {  // in parentheses
        Span whole = join(e.span, session_.span(token(parts[at + 1])));
        e = expr(as<ZplParser::ExprContext>(parts[at]));
        at += 2;
        e.span = whole;  // a label under the whole includes the parentheses
        e.group = true;
      }
    }
    return e;
  }

  static void raw_string(std::string text, ast::Expr& into) {
    into.kind = ast::Expr::Kind::String;
    into.pieces.push_back(text.substr(2, text.size() - 3));
    into.literal = std::move(text);
  }

  void string_token(Token* token, ast::Expr& into) {
    size_t begin = session_.byte(token->getStartIndex()), end = session_.byte(token->getStopIndex() + 1);
    into.span = into.text_span = session_.span(token);
    string_body(session_.piece().part(begin + 1, end - 1), into);
    into.literal = std::string(session_.piece().text.substr(begin, end - begin));
  }

  // Digits with single underscores between them, at most one point, an exponent; no underscores in the result.
  std::string number(Token* token) {
    std::string text(session_.text(token)), digits;
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t i = 0;
    auto run = [&] {
      size_t begin = i;
      while (i < text.size() &&
             (digit(text[i]) || (text[i] == '_' && i > begin && i + 1 < text.size() && digit(text[i + 1])))) {
        if (text[i] != '_') digits += text[i];
        ++i;
      }
      return i > begin;
    };
    bool good = run();
    if (good && i < text.size() && text[i] == '.') {
      digits += text[i++];
      good = run();
    }
    if (good && i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
      digits += 'e';
      ++i;
      if (i < text.size() && (text[i] == '+' || text[i] == '-')) digits += text[i++];
      good = run();
    }
    if (!good || i != text.size()) {
      failed = error(Kind::BadNumber, "`{}` is not a number", shortened(text))
                   .primary(session_.span(token))
                   .hint_text(i > 0 && i < text.size() && text[i] != '_' && text[i] != '.'
                                  ? "a name cannot begin with a digit"
                                  : "")
                   .emit();
      return "0";
    }
    return digits;
  }

 public:
  // Text with escapes and holes. Places inside are bytes of `body`.
  void string_body(const TextPiece& body, ast::Expr& into) {
    into.kind = ast::Expr::Kind::String;
    std::string piece;
    std::string_view text = body.text;
    auto bad = [&](size_t from, size_t to, std::string_view what, std::string hint) {
      failed = error(Kind::BadString, "{}", what).primary(body.span(from, to)).hint_text(std::move(hint)).emit();
    };
    auto hex = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    for (size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c == '\\') {
        char e = i + 1 < text.size() ? text[i + 1] : '\0';
        static constexpr std::string_view kLetters = "ntr0\\\"'{}", kMeanings("\n\t\r\0\\\"'{}", 9);
        if (size_t at = i + 1 < text.size() ? kLetters.find(e) : std::string_view::npos; at != std::string_view::npos) {
          piece += kMeanings[at];
          i += 2;
        } else if (e == 'x' && i + 3 < text.size() && hex(text[i + 2]) >= 0 && hex(text[i + 3]) >= 0) {
          piece += static_cast<char>(hex(text[i + 2]) * 16 + hex(text[i + 3]));
          i += 4;
        } else if (size_t close = text.find('}', i); e == 'u' && i + 2 < text.size() && text[i + 2] == '{' &&
                                                     close != std::string_view::npos && close - i <= 9) {
          uint32_t code = close > i + 3 ? 0 : 0x110000;
          for (size_t k = i + 3; k < close; ++k)
            code = hex(text[k]) < 0 ? 0x110000 : code * 16 + static_cast<uint32_t>(hex(text[k]));
          if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            bad(i, close + 1, "the escape is not a Unicode character", {});
          else
            append_utf8(piece, code);
          i = close + 1;
        } else {
          size_t end = i + 2;
          while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
          end = std::min(end, text.size());
          bad(i, end, fmt::format("`{}` is not an escape", text.substr(i, end - i)),
              "a backslash is written `\\\\`; in a raw string, `r\"...\"`, it stands for itself");
          i = end;
        }
      } else if (c == '{') {
        size_t end = hole_end(text, i);
        if (end >= text.size()) {
          bad(i, i + 1, "the hole `{` is not closed", "a brace is written `\\{`");
          return;
        }
        TextPiece hole = body.part(i + 1, end);
        if (hole.text.find_first_not_of(" \t") == std::string_view::npos) {
          bad(i, end + 1, "the hole is empty", "a brace is written `\\{`");
        } else if (session_.level() >= kMaxHoleLevel) {
          failed = error(Kind::TooDeep, "strings are nested more than {} deep", kMaxHoleLevel)
                       .primary(body.span(i, end + 1))
                       .emit();
          return;
        } else {
          into.pieces.push_back(std::move(piece));
          piece.clear();
          Result<ast::Expr> inner = parse_hole(hole);
          if (!inner)
            failed = inner.reported();
          else
            into.operands.push_back(*std::move(inner));
        }
        i = end + 1;
      } else if (c == '}') {
        bad(i, i + 1, "`}` closes no hole", "a brace is written `\\}`");
        ++i;
      } else {
        piece += c;
        ++i;
      }
    }
    into.pieces.push_back(std::move(piece));
    measure(into);
  }

 private:
  // The `}` that closes the hole which opens at `begin`; strings inside may hold braces. The size where there is none.
  static size_t hole_end(std::string_view text, size_t begin) {
    int depth = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i;
      if (text[i] != '"') continue;
      bool raw = text[i - 1] == 'r' && i >= 2 &&
                 !(std::isalnum(static_cast<unsigned char>(text[i - 2])) || text[i - 2] == '_');
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\' && !raw) ++i;
    }
    return text.size();
  }

  Result<ast::Expr> parse_hole(const TextPiece& hole);

  static void append_utf8(std::string& out, uint32_t code) {
    auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | code >> 6);
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | code >> 12);
      tail(6), tail(0);
    } else {
      out += static_cast<char>(0xF0 | code >> 18);
      tail(12), tail(6), tail(0);
    }
  }

  Session& session_;
  bool too_deep_ = false;
};

template <class T, class Rule, class Build>
Result<T> Session::run(Rule rule, Build build) {
  Words words{std::string(piece_.text)};
  const std::vector<Token*>& tokens = words.tokens();
  if (std::optional<Reported> bad = guard(tokens)) return *bad;
  if (piece_.comments != nullptr)
    for (const Word& comment : words.comments())
      piece_.comments->push_back({span(&comment), std::string(text(&comment))});
  ZplParser parser(&words);
  parser.setErrorHandler(std::make_shared<ErrorStrategy>());
  ErrorListener listener(*this, tokens);
  parser.removeErrorListeners();
  parser.addErrorListener(&listener);
  try {
    auto* tree = rule(parser);
    if (listener.reported) return *listener.reported;
    Builder builder(*this);
    T value = build(builder, tree);
    if (builder.failed) return *builder.failed;
    return value;
  } catch (const TooManyErrors&) {
    return *listener.reported;
  }
}

Result<ast::Expr> expression_at_level(const TextPiece& piece, int level, Diagnostics& diags) {
  Session session(piece, level, diags);
  return session.run<ast::Expr>([](ZplParser& p) { return p.expressionEntry(); },
                                [](Builder& b, auto* tree) { return b.expr(tree->expr()); });
}

Result<ast::Expr> Builder::parse_hole(const TextPiece& hole) {
  return expression_at_level(hole, session_.level() + 1, session_.diags());
}

}  // namespace

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
  static constexpr std::string_view kWords[] = {"zpl",    "pipeline", "let",  "fn",   "stream", "import",
                                                "filter", "select",   "drop", "if",   "else",   "enum",
                                                "and",    "or",       "not",  "true", "false"};
  static_assert(std::size(kWords) == ZplLexer::FALSE - ZplLexer::ZPL + 1, "the words at the top of ZplLexer.g4");
  return std::find(std::begin(kWords), std::end(kWords), text) == std::end(kWords);
}

Result<uint32_t> check_text(const SourceMap& sources, FileId file, Diagnostics& diags) {
  std::string_view text = sources.text(file);
  if (text.size() > kMaxFileSize)
    return diags.report(Kind::TooLarge, "the program has {} bytes, at most {} are read", text.size(), kMaxFileSize)
        .primary({file, 0, 0})
        .emit();
  uint32_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return diags.report(Kind::BadText, "the file is UTF-16, a program is UTF-8").primary({file, 0, 2}).emit();
  size_t nul = text.find('\0');
  std::optional<size_t> invalid = find_invalid_utf8(text);
  size_t at = std::min(nul, invalid.value_or(std::string_view::npos));
  if (at == std::string_view::npos) return begin;
  auto place = static_cast<uint32_t>(at);
  return diags
      .report(Kind::BadText, "{}",
              at == nul ? std::string("a NUL byte cannot stand in a program")
                        : fmt::format("the byte {:#04x} is not UTF-8", static_cast<unsigned char>(text[at])))
      .primary({file, place, place + 1})
      .hint_text(at == nul ? "" : "save the file as UTF-8")
      .emit();
}

Result<ast::File> parse_zpl(const SourceMap& sources, FileId file, Diagnostics& diags) {
  Result<uint32_t> begin = check_text(sources, file, diags);
  if (!begin) return begin.reported();
  std::vector<ast::Comment> comments;
  TextPiece piece{file, sources.text(file).substr(*begin), *begin, {}, &comments};
  Session session(piece, 0, diags);
  Result<ast::File> tree =
      session.run<ast::File>([](ZplParser& p) { return p.file(); }, [](Builder& b, auto* t) { return b.file(t); });
  if (tree) tree->comments = std::move(comments);
  return tree;
}

Result<ast::Expr> parse_expression(const TextPiece& piece, Diagnostics& diags) {
  return expression_at_level(piece, 0, diags);
}

Result<ast::Type> parse_type(const TextPiece& piece, Diagnostics& diags) {
  Session session(piece, 0, diags);
  return session.run<ast::Type>([](ZplParser& p) { return p.typeEntry(); },
                                [](Builder& b, auto* tree) { return b.type(tree->type()); });
}

Result<ast::Step> parse_step(const TextPiece& piece, Diagnostics& diags) {
  Session session(piece, 0, diags);
  return session.run<ast::Step>([](ZplParser& p) { return p.stepEntry(); },
                                [](Builder& b, auto* tree) { return b.step(tree->step()); });
}

Result<ast::Expr> parse_source(const TextPiece& piece, Diagnostics& diags) {
  Session session(piece, 0, diags);
  return session.run<ast::Expr>([](ZplParser& p) { return p.sourceEntry(); },
                                [](Builder& b, auto* tree) { return b.source(tree->source()); });
}

std::optional<Reported> make_test_value(ast::Expr& value, Diagnostics& diags) {
  using Form = ast::Expr::Kind;
  std::optional<Reported> bad;
  auto keep = [&](std::optional<Reported> found) {
    if (found) bad = found;
  };
  if (value.kind == Form::List)
    for (ast::Expr& item : value.operands) keep(make_test_value(item, diags));
  if (value.kind != Form::Schema) return bad;
  for (size_t i = 0; i < value.fields.size(); ++i) {
    ast::SchemaField& field = value.fields[i];
    ast::Type& type = field.type;
    for (size_t k = 0; k < i; ++k)
      if (value.fields[k].name.text == field.name.text)
        keep(diags.report(Kind::DuplicateName, "`{}` stands twice in one record", field.name.text)
                 .primary(field.name.span)
                 .secondary(value.fields[k].name.span, "the first")
                 .emit());
    ast::Expr inner;
    inner.span = inner.text_span = type.span;
    if (type.kind == ast::Type::Kind::Value) {
      inner = std::move(type.dims[0]);
    } else if (type.kind == ast::Type::Kind::Record && !type.optional) {
      inner.kind = Form::Schema;
      inner.fields = std::move(type.fields);
    } else if (type.kind == ast::Type::Kind::Named && !type.tensor && !type.optional) {
      inner.kind = Form::Name;
      inner.text = type.name;
    }
    const ast::Expr* number = &inner;
    while (number->kind == Form::Unary && number->text == "-" && !number->group) number = &number->operands[0];
    const bool plain = inner.kind == Form::String || inner.kind == Form::Bool || inner.kind == Form::Name ||
                       inner.kind == Form::List || inner.kind == Form::Schema || number->kind == Form::Number;
    if (!plain || inner.group) {
      keep(diags.report(Kind::BadTest, "`{}` in a record is no value", field.name.text)
               .primary(type.span)
               .hint("a literal, a list, a record or the name of a constant may stand there")
               .emit());
      continue;
    }
    keep(make_test_value(inner, diags));
    ast::Type out;
    out.kind = ast::Type::Kind::Value;
    out.span = inner.span;
    out.dims.push_back(std::move(inner));
    type = std::move(out);
  }
  return bad;
}

std::optional<Reported> check_test(const ast::Test& test, Diagnostics& diags) {
  static const std::vector<std::string> kSamples = {"params", "input", "expect"}, kConditions = {"check", "fails"};
  std::optional<Reported> reported;
  auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const ast::TestEntry& entry : test.entries) {
    const std::string& key = entry.key.text;
    bool samples = has(kSamples, key);
    if (!samples && !has(kConditions, key)) {
      std::vector<std::string> all = kSamples;
      all.insert(all.end(), kConditions.begin(), kConditions.end());
      std::string hint = did_you_mean(key, all);
      reported = diags.report(Kind::BadTest, "`{}` is no entry of a test", key)
                     .primary(entry.key.span)
                     .hint_text(hint.empty() ? "entries are `params`, `input`, `expect`, `check` and `fails`" : hint)
                     .emit();
    } else if (samples && entry.expr) {
      reported = diags.report(Kind::BadTest, "`{}` needs a colon and a sample", key)
                     .primary(entry.span)
                     .hint("for example `{}: {{x: 3}}`", key)
                     .emit();
    } else if (!samples && !entry.expr) {
      reported = diags
                     .report(Kind::BadTest, "`{}` needs {}", key,
                             key == "check" ? "a condition" : "a part of the message of the failure")
                     .primary(entry.span)
                     .hint("for example `{}`", key == "check" ? "check f(3) == 10" : "fails \"overflow\"")
                     .emit();
    } else if (entry.values && key != "expect") {
      reported = diags.report(Kind::BadTest, "`{}` needs samples, found values", key)
                     .primary(entry.values->span)
                     .hint("name the field, for example `{}: [{{x: 3}}, {{x: 4}}]`", key)
                     .emit();
    } else if (key == "params" && entry.list) {
      reported =
          diags.report(Kind::BadTest, "`params` is one mapping: `params: {{size: 8}}`").primary(entry.span).emit();
    } else if (key == "fails" && (entry.expr->kind != ast::Expr::Kind::String || !entry.expr->operands.empty())) {
      reported = diags.report(Kind::BadTest, "`fails` needs a string").primary(entry.expr->span).emit();
    } else if (key != "check" && test.find(key) != &entry) {
      reported = diags.report(Kind::BadTest, "`{}` stands twice in one test", key)
                     .primary(entry.key.span)
                     .secondary(test.find(key)->key.span, "the first")
                     .emit();
    }
    for (const ast::TestSample& sample : entry.samples)
      for (size_t i = 0; i < sample.fields.size(); ++i)
        for (size_t k = 0; k < i; ++k)
          if (sample.fields[i].name.text == sample.fields[k].name.text)
            reported = diags.report(Kind::DuplicateName, "`{}` stands twice in one sample", sample.fields[i].name.text)
                           .primary(sample.fields[i].name.span)
                           .secondary(sample.fields[k].name.span, "the first")
                           .emit();
  }
  if (reported) return reported;
  bool expects = test.find("expect") != nullptr || test.find("fails") != nullptr;
  if (!expects && test.find("check") == nullptr)
    return diags.report(Kind::BadTest, "the test expects nothing")
        .primary(test.name_span)
        .hint("add `expect: {{x: 3}}`, `check condition` or `fails \"part of the message\"`")
        .emit();
  if (expects && test.find("input") == nullptr)
    return diags.report(Kind::BadTest, "the test has no `input`")
        .primary(test.name_span)
        .hint("add the samples that stand for the source: `input: {{x: 3}}`")
        .emit();
  return std::nullopt;
}

Result<ast::Expr> parse_string_body(const TextPiece& piece, Diagnostics& diags) {
  Session session(piece, 0, diags);
  Builder builder(session);
  ast::Expr e;
  e.span = e.text_span = piece.span(0, piece.text.size());
  builder.string_body(piece, e);
  if (builder.failed) return *builder.failed;
  // As ZPL spells it: quotes outside of holes and ends of lines need escapes there.
  e.literal = "\"";
  int depth = 0;
  for (size_t i = 0; i < piece.text.size(); ++i) {
    char c = piece.text[i];
    if (c == '\\' && depth == 0 && i + 1 < piece.text.size() && piece.text[i + 1] != '\n') {
      e.literal += c;
      e.literal += piece.text[++i];
      continue;
    }
    depth += c == '{' ? 1 : c == '}' && depth > 0 ? -1 : 0;
    if (c == '\n' || c == '\r')
      e.literal += depth > 0 ? " " : c == '\n' ? "\\n" : "\\r";
    else if (c == '"' && depth == 0)
      e.literal += "\\\"";
    else
      e.literal += c;
  }
  e.literal += "\"";
  return e;
}

}  // namespace zephon
