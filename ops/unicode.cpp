// lower upper casefold normalize_utf8 strip grapheme_length: functions on text that know Unicode, by libutf8proc.
#include <fmt/format.h>
#include <utf8proc.h>

#include "ops/text_op.h"

namespace zephon {
namespace {

utf8proc_int32_t code_point_at(std::string_view text, size_t at) {
  utf8proc_int32_t c = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                   static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return c;
}

// Unicode's simple mapping leaves `ß` as it is; utf8proc's makes it `ẞ`.
utf8proc_int32_t upper_of(utf8proc_int32_t c) { return c == 0xdf ? c : utf8proc_toupper(c); }

template <utf8proc_int32_t (*kMap)(utf8proc_int32_t), char kFirst, char kLast>
TextResult map_case(const Expr&, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) < 0x80) {
      out += c >= kFirst && c <= kLast ? static_cast<char>(c ^ 0x20) : c;
      ++at;
      continue;
    }
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t n = utf8proc_encode_char(kMap(code_point_at(text, at)), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
    at = next_code_point(text, at);
  }
  return TextResult::of(std::move(out));
}

TextResult mapped(std::string_view text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (n < 0) return TextResult::fail(kBadText, utf8proc_errmsg(n));
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(n));
  std::free(mapped);
  return TextResult::of(std::move(out));
}

TextResult casefold(const Expr&, std::span<const TextArg> args) { return mapped(args[0].text, UTF8PROC_CASEFOLD); }

TextResult normalize(const Expr& expr, std::span<const TextArg> args) {
  if (is_ascii(args[0].text)) return TextResult::of(std::string(args[0].text));
  const std::string& form = expr.attrs.text("form");
  const int order = form.ends_with('c') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  return mapped(args[0].text, order | (form.starts_with("nfk") ? UTF8PROC_COMPAT : 0));
}

bool is_space(utf8proc_int32_t c) {
  if ((c >= 0x09 && c <= 0x0d) || c == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

TextResult strip(const Expr& expr, std::span<const TextArg> args) {
  std::string_view text = args[0].text;
  const std::string& side = expr.attrs.text("side");
  size_t begin = 0, end = 0;  // end: behind the last code point that is no space
  bool leading = side != "right";
  for (size_t at = 0; at < text.size(); at = next_code_point(text, at)) {
    if (is_space(code_point_at(text, at))) {
      if (leading) begin = next_code_point(text, at);
      continue;
    }
    leading = false;
    end = next_code_point(text, at);
  }
  if (side == "left") end = text.size();
  return TextResult::of(std::string(end > begin ? text.substr(begin, end - begin) : std::string_view()));
}

TextResult grapheme_length(const Expr&, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  int64_t count = 0;
  utf8proc_int32_t before = 0, state = 0;
  for (size_t at = 0; at < text.size(); at = next_code_point(text, at)) {
    const utf8proc_int32_t c = code_point_at(text, at);
    if (at == 0 || utf8proc_grapheme_break_stateful(before, c, &state)) ++count;
    before = c;
  }
  return TextResult::of_int(count);
}

}  // namespace

ZEPHON_OP_DEF(Lower) = {
    .name = "lower",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> str[...s]",
    .summary = "The text in lower case.",
    .prose =
        "Unicode's simple mapping, code point by code point, the same in every language. For comparing texts "
        "without regard to case take `casefold`.",
    .example = "range(2) | x = \"Sample ÄΩ {index}\".lower()",
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_text<map_case<utf8proc_tolower, 'A', 'Z'>>},
    .kernel = {.native = run_text<map_case<utf8proc_tolower, 'A', 'Z'>>},
};

ZEPHON_OP_DEF(Upper) = {
    .name = "upper",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> str[...s]",
    .summary = "The text in upper case.",
    .prose = "Unicode's simple mapping, code point by code point, the same in every language: `ß` stays `ß`.",
    .example = "range(2) | x = \"Sample äω {index}\".upper()",
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_text<map_case<upper_of, 'a', 'z'>>},
    .kernel = {.native = run_text<map_case<upper_of, 'a', 'z'>>},
};

ZEPHON_OP_DEF(Casefold) = {
    .name = "casefold",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> str[...s]",
    .summary = "The text in the form in which texts are compared without regard to case.",
    .prose = "Unicode's full case folding: `ß` becomes `ss`. The result is not normalised.",
    .example = "range(2) | x = \"Straße {index}\".casefold()",
    .cost = {.ns_per_call = 200},
    .define = {.scalar = define_text<casefold>},
    .kernel = {.native = run_text<casefold>},
};

ZEPHON_OP_DEF(NormalizeUtf8) = {
    .name = "normalize_utf8",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s], form: enum(nfc, nfd, nfkc, nfkd) = nfc -> str[...s]",
    .summary = "The text in a normal form of Unicode.",
    .prose =
        "So that what looks alike is equal by bytes: `nfc` composes, `nfd` decomposes, the forms with k also replace "
        "compatibility characters (`ﬁ` becomes `fi`).",
    .example = "range(2) | x = \"ﬁ {index}\".normalize_utf8(nfkc)",
    .cost = {.ns_per_call = 200},
    .define = {.scalar = define_text<normalize>},
    .kernel = {.native = run_text<normalize>},
};

ZEPHON_OP_DEF(Strip) = {
    .name = "strip",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s], side: enum(both, left, right) = both -> str[...s]",
    .summary = "The text without white space at its ends.",
    .prose =
        "White space is what Unicode calls a separator, tab, line feed, vertical tab, form feed, carriage return and "
        "U+0085.",
    .example = "range(2) | x = \"  sample {index} \".strip()",
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_text<strip>},
    .kernel = {.native = run_text<strip>},
};

ZEPHON_OP_DEF(GraphemeLength) = {
    .name = "grapheme_length",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> i64[...s]",
    .summary = "The number of characters that a person sees: extended grapheme clusters.",
    .prose = "`len` counts code points, `byte_length` bytes.",
    .example = "range(2) | x = \"e\\u{301} {index}\".grapheme_length()",
    .cost = {.ns_per_call = 100},
    .define = {.scalar = define_text<grapheme_length>},
    .kernel = {.native = run_text<grapheme_length>},
};

}  // namespace zephon
