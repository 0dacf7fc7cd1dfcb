// split join substr parse_int parse_float format: text taken apart, put together, read and written.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "ops/text_op.h"

namespace zephon {
namespace {

// ---- split, join

TextParts split(const Expr& expr, std::span<const TextArg> args) {
  std::string_view text = args[0].text;
  const std::string& separator = expr.attrs.text("separator");
  const int64_t most = expr.attrs.has("limit") ? expr.attrs.integer("limit") : std::numeric_limits<int64_t>::max();
  TextParts out;
  if (separator.empty()) {  // runs of ASCII white space
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    for (;;) {
      const size_t begin = text.find_first_not_of(kSpace);
      if (begin == std::string_view::npos) return out;
      text.remove_prefix(begin);
      const bool last = static_cast<int64_t>(out.parts.size()) == most;
      const size_t end = last ? text.find_last_not_of(kSpace) + 1 : std::min(text.find_first_of(kSpace), text.size());
      out.parts.emplace_back(text.substr(0, end));
      if (last) return out;
      text.remove_prefix(end);
    }
  }
  while (static_cast<int64_t>(out.parts.size()) < most) {
    const size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    out.parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  out.parts.emplace_back(text);
  return out;
}

Value define_join(DefineCall& call) {
  const Value& parts = call.arg(0);
  if (parts.any_failed()) return forward(parts);
  const std::string& separator = call.expr().attrs.text("separator");
  std::string out;
  for (int64_t i = 0; i < parts.size(); ++i) out.append(i > 0 ? separator : "").append(parts.at(i).s);
  return Value::scalar(Scalar::of_string(parts.elem(), std::move(out)));
}

bool run_join(NativeCall& call) {
  const std::string& separator = call.expr->attrs.text("separator");
  std::string out;
  for (int64_t i = 0, n = call.inputs[0].size(); i < n; ++i)
    out.append(i > 0 ? separator : "").append(text_of(call.inputs[0], i));
  if (!place_output(call, {})) return false;
  *static_cast<StringRef*>(call.output->data) = store_string(call, out);
  return true;
}

// ---- substr

TextResult substr(const Expr&, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  const bool unicode = args[0].elem == Elem::Str;
  const int64_t length = unicode ? code_points(text) : static_cast<int64_t>(text.size());
  auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + length : i, 0, length); };
  const int64_t begin = place(args[1].i), end = place(args[2].i);
  if (begin >= end) return TextResult::of({});
  if (!unicode)
    return TextResult::of(std::string(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin))));
  size_t from = 0;
  for (int64_t i = 0; i < begin; ++i) from = next_code_point(text, from);
  size_t to = from;
  for (int64_t i = begin; i < end; ++i) to = next_code_point(text, to);
  return TextResult::of(std::string(text.substr(from, to - from)));
}

// ---- numbers

TextResult parse_int(const Expr& expr, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  const auto base = static_cast<int>(expr.attrs.integer("base"));
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range)
    return TextResult::fail(kBadText, fmt::format("`{}` is outside of i64", shown_text(text)));
  if (error != std::errc() || end != digits.data() + digits.size())
    return TextResult::fail(kBadText, base == 10
                                          ? fmt::format("`{}` is no whole number", shown_text(text))
                                          : fmt::format("`{}` is no whole number in base {}", shown_text(text), base));
  return TextResult::of_int(value);
}

void infer_parse_int(InferCall& call) {
  if (call.attrs.integer("base") > 36)
    call.error =
        "\x1f"
        "base\x1f-1\x1f"
        "a base is a number from 2 to 36";
}

TextResult parse_float(const Expr&, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range)
    return TextResult::fail(kBadText, fmt::format("`{}` is outside of f64", shown_text(text)));
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
    return TextResult::fail(kBadText, fmt::format("`{}` is no number", shown_text(text)));
  return TextResult::of_float(value != value ? std::numeric_limits<double>::quiet_NaN() : value);
}

// A format as in Python and fmt, without holes in it: [[fill]align][sign][#][0][width][.precision][type]. Empty where
// it fits `elem`.
std::string check_format(std::string_view spec, Elem elem) {
  size_t at = 0;
  auto one_of = [&](std::string_view chars) {
    return at < spec.size() && chars.find(spec[at]) != std::string_view::npos && ++at > 0;
  };
  auto number = [&](std::string_view what) {
    const size_t begin = at;
    while (one_of("0123456789")) continue;
    if (at - begin > 3) return fmt::format("the {} has at most three digits", what);
    return std::string();
  };
  constexpr std::string_view kAlign = "<>^";
  if (!spec.empty() && static_cast<unsigned char>(spec[0]) < 0x80 && spec[0] != '{' && spec[0] != '}' &&
      spec.size() > 1 && kAlign.find(spec[1]) != std::string_view::npos) {
    at = 2;
  } else {
    one_of(kAlign);
  }
  const bool is_number = is_numeric(elem);
  const size_t sign = at;
  one_of("+- ");
  one_of("#");
  one_of("0");
  if (!is_number && at != sign) return "a sign, `#` and `0` are for numbers";
  if (std::string error = number("width"); !error.empty()) return error;
  if (one_of(".")) {
    const size_t begin = at;
    if (std::string error = number("precision"); !error.empty()) return error;
    if (at == begin) return "the precision has no digits";
    if (is_integer(elem) || elem == Elem::Bool) return "a precision is for floats and text";
  }
  const std::string_view types = is_float(elem) ? "eEfFgG" : is_integer(elem) ? "dxXobB" : "s";
  one_of(types);
  if (at != spec.size()) {
    return fmt::format("`{}` cannot stand here: a format of `{}` is [[fill]align][sign][#][0][width][.precision][{}]",
                       spec.substr(at), elem_name(elem), types);
  }
  return {};
}

TextResult format(const Expr& expr, std::span<const TextArg> args) {
  const std::string form = "{:" + expr.attrs.text("spec") + "}";
  const TextArg& x = args[0];
  if (is_float(x.elem)) return TextResult::of(fmt::format(fmt::runtime(form), x.f));
  if (is_integer(x.elem)) return TextResult::of(fmt::format(fmt::runtime(form), x.i));
  if (x.elem == Elem::Bool) return TextResult::of(fmt::format(fmt::runtime(form), x.i != 0 ? "true" : "false"));
  return TextResult::of(fmt::format(fmt::runtime(form), x.text));
}

void infer_format(InferCall& call) {
  const Elem elem = call.args[0].elem;
  if (elem == Elem::Bytes || elem == Elem::Path) {
    call.error =
        fmt::format("`format` writes numbers and text, found `{}`: `to_str` makes text of it", elem_name(elem));
    return;
  }
  const std::string error = check_format(call.attrs.text("spec"), elem);
  if (!error.empty()) call.error = fmt::format("\x1fspec\x1f-1\x1f{}", error);
}

}  // namespace

ZEPHON_OP_DEF(Split) = {
    .name = "split_text",
    .cls = OpClass::Opaque,
    .signature = "text: S, separator: string = \"\", limit: int? >= 0 -> S[n]",
    .summary = "The parts of a text between separators.",
    .prose =
        "Written `text.split(\",\")`. Without a separator: the words between runs of ASCII white space, none of them "
        "empty. With one, by bytes: also empty parts, and one part where it does not occur. At most `limit` "
        "separators count, from the left.",
    .example = "range(3) | parts = \"a,{index},b\".split(\",\") | middle = parts[1]",
    .surface = "split",
    .cost = {.ns_per_call = 200},
    .define = {.tensor = define_parts<split>},
    .kernel = {.native = run_parts<split>},
};

ZEPHON_OP_DEF(Join) = {
    .name = "join",
    .cls = OpClass::Opaque,
    .signature = "parts: S[n], separator: string = \"\" -> S",
    .summary = "Texts put together, with a separator between them.",
    .example = "range(3) | x = [\"a\", \"{index}\"].join(\"-\")",
    .cost = {.ns_per_call = 100},
    .define = {.tensor = define_join},
    .kernel = {.native = run_join},
};

ZEPHON_OP_DEF(Substr) = {
    .name = "substr",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], begin: i64[...s], end: i64[...s] -> S[...s]",
    .summary = "The part of a text from `begin` up to, and without, `end`.",
    .prose =
        "Counted from 0 in code points of `str`, in bytes of `bytes` and `path`; below 0 from the end. Places outside "
        "of "
        "the text mean its ends, as in Python.",
    .example = "range(3) | x = \"sample {index}\".substr(-3, 100)",
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_text<substr>},
    .kernel = {.native = run_text<substr>},
};

ZEPHON_OP_DEF(ParseInt) = {
    .name = "parse_int",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s], base: int = 10 >= 2 -> i64[...s]",
    .summary = "A text as a whole number.",
    .prose =
        "A sign and digits, nothing else: white space, a decimal point or a prefix fail, and so does what `i64` cannot "
        "hold. Letters are digits of bases above 10, in either case.",
    .example = "range(3) | x = \"{index}0\".parse_int()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 40},
    .define = {.scalar = define_text<parse_int>},
    .kernel = {.native = run_text<parse_int>},
    .infer = infer_parse_int,
};

ZEPHON_OP_DEF(ParseFloat) = {
    .name = "parse_float",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> f64[...s]",
    .summary = "A text as a number.",
    .prose =
        "Decimal, with a point and perhaps an exponent, rounded once; `nan` and `inf` in either case. White space and "
        "what `f64` cannot hold fail.",
    .example = "range(3) | x = \"{index}.5\".parse_float()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_text<parse_float>},
    .kernel = {.native = run_text<parse_float>},
};

ZEPHON_OP_DEF(Format) = {
    .name = "format",
    .cls = OpClass::Pointwise,
    .signature = "x: T[...s], spec: string -> str[...s]",
    .summary = "A value as text in a format: `index.format(\"05d\")`, `loss.format(\".3f\")`.",
    .prose =
        "The format is Python's: [[fill]align][sign][#][0][width][.precision][type], checked before the run. Widths "
        "count code points.",
    .example = "range(3) | name = \"frame_{index.format(\"05d\")}.png\"",
    .cost = {.ns_per_call = 120},
    .define = {.scalar = define_text<format>},
    .kernel = {.native = run_text<format>},
    .infer = infer_format,
};

}  // namespace zephon
