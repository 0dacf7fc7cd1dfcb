// matches find find_all group captures regex_replace, and what they share.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "ops/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <map>
#include <mutex>

#include "ops/text_op.h"

namespace zephon {

std::shared_ptr<const Regex> Regex::compile(std::string_view pattern, bool unicode, Fault& fault) {
  struct Known {
    std::shared_ptr<const Regex> regex;
    Fault fault;
  };
  static std::mutex mutex;
  static std::map<std::pair<std::string, bool>, Known, std::less<>> known;
  std::lock_guard lock(mutex);
  auto [it, fresh] = known.try_emplace({std::string(pattern), unicode});
  if (fresh) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    const uint32_t options = PCRE2_NEVER_BACKSLASH_C | (unicode ? PCRE2_UTF | PCRE2_UCP : PCRE2_NEVER_UTF);
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset, nullptr);
    if (code) {
      std::shared_ptr<Regex> regex(new Regex);
      uint32_t groups = 0;
      pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
      regex->code_ = code;
      regex->groups_ = static_cast<int>(groups);
      regex->unicode_ = unicode;
      it->second.regex = std::move(regex);
    } else {
      PCRE2_UCHAR words[256];
      pcre2_get_error_message(error, words, sizeof(words));
      it->second.fault = {std::min<size_t>(offset, pattern.size()), reinterpret_cast<const char*>(words)};
    }
  }
  fault = it->second.fault;
  return it->second.regex;
}

Regex::~Regex() { pcre2_code_free(code_); }

int Regex::group(const std::string& name) const {
  const int n = pcre2_substring_number_from_name(code_, reinterpret_cast<PCRE2_SPTR>(name.c_str()));
  return n > 0 ? n : -1;
}

size_t Regex::step(std::string_view text, size_t from) const {
  return unicode_ ? std::min(next_code_point(text, from), text.size()) : from + 1;
}

Regex::Outcome Regex::search(std::string_view text, size_t from, std::vector<Range>& ranges, bool not_empty) const {
  // One for each thread: room for the ranges, and the limits.
  struct Room {
    pcre2_match_data* data = nullptr;
    uint32_t pairs = 0;
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    Room() {
      pcre2_set_match_limit(context, kMatchLimit);
      pcre2_set_depth_limit(context, kMatchLimit);
      pcre2_set_heap_limit(context, 64 << 10);  // KB
    }
    ~Room() {
      pcre2_match_data_free(data);
      pcre2_match_context_free(context);
    }
  };
  thread_local Room room;
  const auto pairs = static_cast<uint32_t>(groups_ + 1);
  if (room.pairs < pairs) {
    pcre2_match_data_free(room.data);
    room.data = pcre2_match_data_create(pairs, nullptr);
    room.pairs = pairs;
  }
  uint32_t options = PCRE2_NO_JIT | PCRE2_NO_UTF_CHECK;  // `str` is always UTF-8
  if (not_empty) options |= PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED;
  const int result = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                                 room.data, room.context);
  if (result == PCRE2_ERROR_NOMATCH) return Outcome::NoMatch;
  if (result < 0) return Outcome::Limit;
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(room.data);
  ranges.assign(pairs, {});
  for (uint32_t i = 0; i < pairs; ++i)
    if (static_cast<int>(i) < result && offsets[2 * i] != PCRE2_UNSET && offsets[2 * i] <= offsets[2 * i + 1])
      ranges[i] = {offsets[2 * i], offsets[2 * i + 1], true};
  return Outcome::Match;
}

namespace {

constexpr size_t kMostText = size_t{1} << 28;  // bytes of a replacement's result

// The pattern of an operator on `text`. It was compiled when the program was checked.
const Regex& regex_of(const Expr& expr, const TextArg& text) {
  thread_local const std::string* last = nullptr;
  thread_local bool last_unicode = false;
  thread_local std::shared_ptr<const Regex> regex;
  thread_local std::string last_pattern;
  const std::string& pattern = expr.attrs.text("pattern");
  const bool unicode = text.elem == Elem::Str;
  if (!regex || last != &pattern || last_unicode != unicode || last_pattern != pattern) {
    Regex::Fault fault;
    regex = Regex::compile(pattern, unicode, fault);
    ZEPHON_CHECK(regex, "the pattern `{}`: {}", pattern, fault.message);
    last = &pattern;
    last_pattern = pattern;
    last_unicode = unicode;
  }
  return *regex;
}

std::string limit_message(const TextArg& text) {
  return fmt::format("the pattern needs more than {} steps on `{}`", Regex::kMatchLimit, shown_text(text.text));
}
std::string no_match_message(const Expr& expr, const TextArg& text) {
  return fmt::format("`{}` does not match `{}`", shown_text(expr.attrs.text("pattern")), shown_text(text.text));
}

// What checks a pattern before the run. An error that begins with \x1f names the static argument and the byte of it
// that is wrong.
std::shared_ptr<const Regex> check_pattern(InferCall& call) {
  Regex::Fault fault;
  auto regex = Regex::compile(call.attrs.text("pattern"), call.args[0].elem == Elem::Str, fault);
  if (!regex) call.error = fmt::format("\x1fpattern\x1f{}\x1f{}", fault.offset, fault.message);
  return regex;
}
void infer_pattern(InferCall& call) { check_pattern(call); }

TextResult matches(const Expr& expr, std::span<const TextArg> args) {
  std::vector<Regex::Range> ranges;
  const Regex::Outcome outcome = regex_of(expr, args[0]).search(args[0].text, 0, ranges);
  if (outcome == Regex::Outcome::Limit) return TextResult::fail(kTextLimit, limit_message(args[0]));
  return TextResult::of_int(outcome == Regex::Outcome::Match);
}

TextResult range_text(const Expr& expr, const TextArg& text, size_t group) {
  std::vector<Regex::Range> ranges;
  const Regex::Outcome outcome = regex_of(expr, text).search(text.text, 0, ranges);
  if (outcome == Regex::Outcome::Limit) return TextResult::fail(kTextLimit, limit_message(text));
  if (outcome == Regex::Outcome::NoMatch) return TextResult::fail(kNotFound, no_match_message(expr, text));
  const Regex::Range& range = ranges[group];
  if (!range.set)
    return TextResult::fail(kNotFound,
                            fmt::format("group {} has no part in the match in `{}`", group, shown_text(text.text)));
  return TextResult::of(std::string(text.text.substr(range.begin, range.end - range.begin)));
}

TextResult find(const Expr& expr, std::span<const TextArg> args) { return range_text(expr, args[0], 0); }

// Number of the group written as a number or a name; -1 where there is none.
int group_number(const Regex& regex, const std::string& text) {
  if (text.empty()) return -1;
  if (text.find_first_not_of("0123456789") != std::string::npos) return regex.group(text);
  const int number = text.size() > 5 ? INT_MAX : std::stoi(text);
  return number <= regex.groups() ? number : -1;
}

std::string wanted_group(const Attrs& attrs) {
  return attrs.has("name") ? attrs.text("name") : std::to_string(attrs.integer("group"));
}

TextResult group(const Expr& expr, std::span<const TextArg> args) {
  const int number = group_number(regex_of(expr, args[0]), wanted_group(expr.attrs));
  return range_text(expr, args[0], static_cast<size_t>(number));
}

void infer_group(InferCall& call) {
  const auto regex = check_pattern(call);
  const std::string wanted = wanted_group(call.attrs);
  if (!regex || group_number(*regex, wanted) >= 0) return;
  call.error =
      fmt::format("\x1f{}\x1f-1\x1fthe pattern has {} group{}, and none is `{}`",
                  call.attrs.has("name") ? "name" : "group", regex->groups(), regex->groups() == 1 ? "" : "s", wanted);
}

TextParts find_all(const Expr& expr, std::span<const TextArg> args) {
  TextParts out;
  const Regex::Outcome outcome =
      regex_of(expr, args[0]).for_each(args[0].text, [&](const std::vector<Regex::Range>& ranges) {
        out.parts.emplace_back(args[0].text.substr(ranges[0].begin, ranges[0].end - ranges[0].begin));
      });
  if (outcome == Regex::Outcome::Limit) return {{}, kTextLimit, limit_message(args[0])};
  return out;
}

TextParts captures(const Expr& expr, std::span<const TextArg> args) {
  const Regex& regex = regex_of(expr, args[0]);
  std::vector<Regex::Range> ranges;
  const Regex::Outcome outcome = regex.search(args[0].text, 0, ranges);
  if (outcome == Regex::Outcome::Limit) return {{}, kTextLimit, limit_message(args[0])};
  if (outcome == Regex::Outcome::NoMatch) return {{}, kNotFound, no_match_message(expr, args[0])};
  TextParts out;
  for (size_t i = 1; i < ranges.size(); ++i)
    out.parts.emplace_back(args[0].text.substr(ranges[i].begin, ranges[i].end - ranges[i].begin));
  return out;
}

void infer_captures(InferCall& call) {
  const auto regex = check_pattern(call);
  if (!regex) return;
  if (regex->groups() == 0) {
    call.error = "\x1fpattern\x1f-1\x1fthe pattern has no groups: write what is to be captured in parentheses";
    return;
  }
  call.result = Type::tensor(call.args[0].elem, {Dim::of(regex->groups())});
}

// The replacement: text, and groups written $1, ${1}, $name or ${name}; $$ is a dollar.
struct Piece {
  std::string text;
  int group = -1;
};
std::vector<Piece> replacement_of(const Regex& regex, std::string_view text, std::string& error, size_t& offset) {
  std::vector<Piece> pieces(1);
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      pieces.back().text += text[at++];
      continue;
    }
    offset = at++;
    if (text.substr(at).starts_with('$')) {
      pieces.back().text += '$';
      ++at;
      continue;
    }
    const bool braced = text.substr(at).starts_with('{');
    if (braced) ++at;
    const size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    const std::string name(text.substr(begin, at - begin));
    if (name.empty() || (braced && !text.substr(at).starts_with('}'))) {
      error = "a `$` begins a group, `$1` or `${name}`; a dollar is `$$`";
      return {};
    }
    if (braced) ++at;
    const int number = group_number(regex, name);
    if (number < 0) {
      error = fmt::format("the pattern has {} group{}, and none is `{}`", regex.groups(),
                          regex.groups() == 1 ? "" : "s", name);
      return {};
    }
    pieces.push_back({{}, number});
    pieces.emplace_back();
  }
  return pieces;
}

TextResult regex_replace(const Expr& expr, std::span<const TextArg> args) {
  const Regex& regex = regex_of(expr, args[0]);
  std::string error, out;
  size_t offset = 0, done = 0;
  const std::vector<Piece> pieces = replacement_of(regex, expr.attrs.text("replacement"), error, offset);
  const std::string_view text = args[0].text;
  const Regex::Outcome outcome = regex.for_each(text, [&](const std::vector<Regex::Range>& ranges) {
    if (out.size() > kMostText) return;
    out += text.substr(done, ranges[0].begin - done);
    for (const Piece& piece : pieces) {
      if (piece.group < 0) {
        out += piece.text;
      } else if (const Regex::Range& range = ranges[static_cast<size_t>(piece.group)]; range.set) {
        out += text.substr(range.begin, range.end - range.begin);
      }
    }
    done = ranges[0].end;
  });
  if (outcome == Regex::Outcome::Limit) return TextResult::fail(kTextLimit, limit_message(args[0]));
  out += text.substr(done);
  if (out.size() > kMostText)
    return TextResult::fail(kTextLimit, fmt::format("the result has more than {} bytes", kMostText));
  return TextResult::of(std::move(out));
}

void infer_replace(InferCall& call) {
  const auto regex = check_pattern(call);
  if (!regex) return;
  std::string error;
  size_t offset = 0;
  replacement_of(*regex, call.attrs.text("replacement"), error, offset);
  if (!error.empty()) call.error = fmt::format("\x1freplacement\x1f{}\x1f{}", offset, error);
}

}  // namespace

#define ZEPHON_REGEX_PROSE                                                                                            \
  "Patterns are those of PCRE2 (Perl's), found anywhere in the text unless anchored with `^` and `$`; on `str` they " \
  "work on code points, and \\w, \\d, \\b go by Unicode; on `bytes` and `path` on bytes. Raw strings save "           \
  "backslashes: `r\"\\d+\"`. A pattern is checked before the run; more than 1,000,000 steps on one text fail the "    \
  "sample."

ZEPHON_OP_DEF(Matches) = {
    .name = "matches",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], pattern: string -> bool[...s]",
    .summary = "True where a regular expression matches somewhere in the text.",
    .prose = ZEPHON_REGEX_PROSE,
    .example = "range(12) | filter \"sample {index}\".matches(r\"1\\d$\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 300},
    .define = {.scalar = define_text<matches>},
    .kernel = {.native = run_text<matches>},
    .infer = infer_pattern,
};

ZEPHON_OP_DEF(Find) = {
    .name = "find",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], pattern: string -> S[...s]",
    .summary = "The first part of the text that a regular expression matches.",
    .prose = ZEPHON_REGEX_PROSE " Fails where nothing matches: `where(x.matches(p), x.find(p), \"\")` gives a default.",
    .example = "range(3) | number = \"sample {index} of 3\".find(r\"\\d+\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 300},
    .define = {.scalar = define_text<find>},
    .kernel = {.native = run_text<find>},
    .infer = infer_pattern,
};

ZEPHON_OP_DEF(FindAll) = {
    .name = "find_all",
    .cls = OpClass::Opaque,
    .signature = "text: S, pattern: string -> S[n]",
    .summary = "All parts of the text that a regular expression matches, from left to right, without overlap.",
    .prose = ZEPHON_REGEX_PROSE,
    .example = "range(3) | numbers = \"{index} of 3\".find_all(r\"\\d+\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 600},
    .define = {.tensor = define_parts<find_all>},
    .kernel = {.native = run_parts<find_all>},
    .infer = infer_pattern,
};

ZEPHON_OP_DEF(Group) = {
    .name = "group",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], pattern: string, group: int = 1 >= 0, name: string? -> S[...s]",
    .summary = "What a group of a regular expression matches in the text, by number or name.",
    .prose = ZEPHON_REGEX_PROSE " Fails where nothing matches, and where the group has no part in the match.",
    .example = "range(3) | n = \"sample-{index}.png\".group(r\"-(?<n>\\d+)\\.\", name=\"n\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 300},
    .define = {.scalar = define_text<group>},
    .kernel = {.native = run_text<group>},
    .infer = infer_group,
};

ZEPHON_OP_DEF(Captures) = {
    .name = "captures",
    .cls = OpClass::Opaque,
    .signature = "text: S, pattern: string -> S[n]",
    .summary = "What the groups of a regular expression match, one element for each group.",
    .prose = ZEPHON_REGEX_PROSE
    " Fails where nothing matches; a group without a part in the match gives an empty text.",
    .example = "range(3) | parts = \"{index}x480\".captures(r\"(\\d+)x(\\d+)\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 500},
    .define = {.tensor = define_parts<captures>},
    .kernel = {.native = run_parts<captures>},
    .infer = infer_captures,
};

ZEPHON_OP_DEF(RegexReplace) = {
    .name = "regex_replace",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], pattern: string, replacement: string -> S[...s]",
    .summary = "The text with everything that a regular expression matches replaced.",
    .prose = ZEPHON_REGEX_PROSE " In the replacement `$1` and `${name}` are groups, `$$` is a dollar.",
    .example = "range(3) | x = \"sample {index}\".regex_replace(r\"(\\w+) (\\d+)\", r\"$2-$1\")",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 500},
    .define = {.scalar = define_text<regex_replace>},
    .kernel = {.native = run_text<regex_replace>},
    .infer = infer_replace,
};

#undef ZEPHON_REGEX_PROSE

}  // namespace zephon
