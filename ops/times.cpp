// Times: parse_time, format_time, and the parts of a date. All in UTC, as i64 nanoseconds since 1970-01-01T00:00:00Z.
#include <fmt/format.h>

#include "ops/text_op.h"

namespace zephon {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kDay = 86400 * kSecond;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

struct Date {
  int64_t year = 1970, month = 1, day = 1;
};

// The proleptic Gregorian calendar: days since 1970-01-01, counted in eras of 400 years that begin on March 1.
int64_t days_of(const Date& date) {
  const int64_t year = date.year - (date.month <= 2), era = floor_div(year, 400), of_era = year - era * 400;
  const int64_t of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

Date date_of(int64_t days) {
  days += 719468;
  const int64_t era = floor_div(days, 146097), of_era = days - era * 146097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
  Date out;
  out.day = of_year - (153 * month + 2) / 5 + 1;
  out.month = month + (month < 10 ? 3 : -9);
  out.year = year + era * 400 + (out.month <= 2);
  return out;
}

int64_t days_in(int64_t year, int64_t month) {
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && leap ? 29 : kDays[month - 1];
}

TextResult parse_time(const Expr&, std::span<const TextArg> args) {
  const std::string_view text = args[0].text;
  size_t at = 0;
  const auto bad = [&](std::string_view why) {
    return TextResult::fail(kBadText, fmt::format("`{}` is no time of RFC 3339: {}", shown_text(text), why));
  };
  bool good = true;
  auto number = [&](size_t digits) {
    int64_t out = 0;
    for (size_t i = 0; i < digits; ++i) {
      const bool digit = at < text.size() && text[at] >= '0' && text[at] <= '9';
      good = good && digit;
      if (digit) out = 10 * out + (text[at++] - '0');
    }
    return out;
  };
  auto accept = [&](std::string_view chars) {
    const bool found = at < text.size() && chars.find(text[at]) != std::string_view::npos;
    at += found;
    return found;
  };
  auto need = [&](std::string_view chars) { good = accept(chars) && good; };
  Date date;
  date.year = number(4);
  need("-");
  date.month = number(2);
  need("-");
  date.day = number(2);
  need("Tt ");
  const int64_t hour = number(2);
  need(":");
  const int64_t minute = number(2);
  need(":");
  const int64_t second = number(2);
  int64_t fraction = 0;
  if (good && accept(".")) {
    const size_t begin = at;
    for (int64_t unit = kSecond / 10; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      fraction += unit * (text[at] - '0');
    if (at == begin) return bad("the fraction has no digits");
  }
  if (!good) return bad("it is written like 2024-02-29T12:30:00.5+01:00");
  int64_t offset = 0;
  if (!accept("Zz")) {
    const bool west = at < text.size() && text[at] == '-';
    if (!accept("+-")) return bad("the offset is missing: Z, or one like +01:00");
    const int64_t hours = number(2);
    need(":");
    const int64_t minutes = number(2);
    if (!good || hours > 23 || minutes > 59) return bad("the offset is one like +01:00");
    offset = (west ? -60 : 60) * (hours * 60 + minutes);
  }
  if (at != text.size()) return bad("something follows it");
  if (date.month < 1 || date.month > 12) return bad(fmt::format("there is no month {}", date.month));
  if (date.day < 1 || date.day > days_in(date.year, date.month))
    return bad(fmt::format("{:04}-{:02} has no day {}", date.year, date.month, date.day));
  if (hour > 23 || minute > 59 || second > 60) return bad("there is no such time of day");
  const int64_t seconds = days_of(date) * 86400 + hour * 3600 + minute * 60 + second - offset;
  // A leap second ends a month in UTC; it is one with the second that follows, as in POSIX.
  if (second == 60) {
    if (seconds % 86400 != 0 || date_of(floor_div(seconds, 86400)).day != 1)
      return bad("a leap second ends the last day of a month, in UTC");
    fraction = 0;
  }
  int64_t out = 0;
  if (__builtin_mul_overflow(seconds, kSecond, &out) || __builtin_add_overflow(out, fraction, &out))
    return TextResult::fail(kBadText, fmt::format("`{}` is outside of the years 1677 to 2262", shown_text(text)));
  return TextResult::of_int(out);
}

// The least time lies less than a day above the least i64.
int64_t day_number(int64_t time) { return floor_div(time, kDay); }
int64_t time_of_day(int64_t time) {
  const int64_t rest = time % kDay;
  return rest < 0 ? rest + kDay : rest;
}

TextResult format_time(const Expr&, std::span<const TextArg> args) {
  const int64_t of_day = time_of_day(args[0].i);
  const Date date = date_of(day_number(args[0].i));
  const int64_t second = of_day / kSecond;
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.year, date.month, date.day, second / 3600,
                                second / 60 % 60, second % 60);
  if (const int64_t fraction = of_day % kSecond; fraction != 0) {
    out += fmt::format(".{:09}", fraction);
    out.resize(out.find_last_not_of('0') + 1);
  }
  return TextResult::of(out + "Z");
}

using Part = int64_t (*)(int64_t time);
template <Part kPart>
TextResult part(const Expr&, std::span<const TextArg> args) {
  return TextResult::of_int(kPart(args[0].i));
}
int64_t year(int64_t time) { return date_of(day_number(time)).year; }
int64_t month(int64_t time) { return date_of(day_number(time)).month; }
int64_t day(int64_t time) { return date_of(day_number(time)).day; }
int64_t hour(int64_t time) { return time_of_day(time) / (3600 * kSecond); }
int64_t minute(int64_t time) { return time_of_day(time) / (60 * kSecond) % 60; }
int64_t second(int64_t time) { return time_of_day(time) / kSecond % 60; }
int64_t weekday(int64_t time) { return ((day_number(time) + 3) % 7 + 7) % 7; }  // 1970-01-01 was a Thursday
int64_t day_of_year(int64_t time) { return day_number(time) - days_of({year(time), 1, 1}) + 1; }

}  // namespace

ZEPHON_OP_DEF(ParseTime) = {
    .name = "parse_time",
    .cls = OpClass::Pointwise,
    .signature = "text: str[...s] -> i64[...s]",
    .summary = "A time of RFC 3339 as nanoseconds since 1970-01-01T00:00:00Z.",
    .prose =
        "Like 2024-02-29T12:30:00.5+01:00: date, `T` or a space, time, perhaps a fraction, and an offset or `Z`, which "
        "must be "
        "there. Dates that do not exist fail. A leap second (:60), which may only end a month in UTC, is one with the "
        "second that follows. Digits behind the ninth of a fraction are cut. Years 1677 to 2262. For seconds write "
        "`x.parse_time() // 1000000000`.",
    .example = "range(3) | t = \"2024-02-2{index}T23:59:59Z\".parse_time()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 80},
    .define = {.scalar = define_text<parse_time>},
    .kernel = {.native = run_text<parse_time>},
};

ZEPHON_OP_DEF(FormatTime) = {
    .name = "format_time",
    .cls = OpClass::Pointwise,
    .signature = "time: i64[...s] -> str[...s]",
    .summary = "Nanoseconds since 1970-01-01T00:00:00Z as a time of RFC 3339, in UTC.",
    .prose = "The fraction has as many digits as it needs, none where it is zero.",
    .example = "range(3) | t = (index * 86400000000000).format_time()",
    .cost = {.ns_per_call = 150},
    .define = {.scalar = define_text<format_time>},
    .kernel = {.native = run_text<format_time>},
};

#define ZEPHON_TIME_PART(Name, word, says)                                                    \
  ZEPHON_OP_DEF(Name) = {                                                                     \
      .name = #word,                                                                          \
      .cls = OpClass::Pointwise,                                                              \
      .signature = "time: i64[...s] -> i64[...s]",                                            \
      .summary = says,                                                                        \
      .prose = "Of a time in nanoseconds since 1970-01-01T00:00:00Z (`parse_time`), in UTC.", \
      .example = "range(3) | x = (index * 86400000000000)." #word "()",                       \
      .cost = {.ns_per_call = 15},                                                            \
      .define = {.scalar = define_text<part<word>>},                                          \
      .kernel = {.native = run_text<part<word>>},                                             \
  };
ZEPHON_TIME_PART(Year, year, "The year of a time.")
ZEPHON_TIME_PART(Month, month, "The month of a time, from 1 to 12.")
ZEPHON_TIME_PART(Day, day, "The day of the month of a time, from 1 to 31.")
ZEPHON_TIME_PART(Hour, hour, "The hour of a time, from 0 to 23.")
ZEPHON_TIME_PART(Minute, minute, "The minute of a time, from 0 to 59.")
ZEPHON_TIME_PART(Second, second, "The second of a time, from 0 to 59.")
ZEPHON_TIME_PART(Weekday, weekday, "The day of the week of a time: 0 is Monday, 6 is Sunday.")
ZEPHON_TIME_PART(DayOfYear, day_of_year, "The day of the year of a time, from 1 to 366.")
#undef ZEPHON_TIME_PART

}  // namespace zephon
