#include "ops/csv_row.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "frontend/diag/diagnostic.h"
#include "ops/file_io.h"
#include "ops/tensor_op.h"

namespace zephon {

std::optional<std::vector<std::string>> split_row(std::string_view row, std::string& error) {
  std::vector<std::string> fields(1);
  CsvState state = CsvState::FieldBegin;
  for (const char c : row) {
    const CsvState next = next_state(state, c);
    if (next == CsvState::FieldBegin) {
      fields.emplace_back();
    } else if (state == CsvState::QuoteInQuoted && c != '"') {
      error = fmt::format("field {} goes on behind its closing quote", fields.size());
      return std::nullopt;
    } else if (next == CsvState::Plain && c == '"') {
      error = fmt::format("field {} has a quote inside, and does not begin with one", fields.size());
      return std::nullopt;
    } else if (next != CsvState::QuoteInQuoted && !(state == CsvState::FieldBegin && c == '"')) {
      fields.back() += c;
    }
    state = next;
  }
  if (state == CsvState::Quoted) {
    error = fmt::format("the quote of field {} never closes", fields.size());
    return std::nullopt;
  }
  return fields;
}

namespace {

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    // Too small is no failure: it rounds to the nearest value, perhaps 0, as any number does.
    if (failed == std::errc::result_out_of_range) {
      const std::string copy(text);
      value = std::is_same_v<T, float> ? static_cast<T>(std::strtof(copy.c_str(), nullptr))
                                       : static_cast<T>(std::strtod(copy.c_str(), nullptr));
      if (std::abs(value) <= 1) return value;
    }
  }
  if (failed != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Scalar> parse_element(Elem elem, std::string_view text, std::string& error) {
  if (is_string(elem)) {
    if (elem == Elem::Str && find_invalid_utf8(text)) {
      error = fmt::format("is not UTF-8: `{}`", shown_path(text));
      return std::nullopt;
    }
    return Scalar::of_string(elem, std::string(text));
  }
  if (text.empty()) {
    error = fmt::format("is empty, not `{}`", elem_name(elem));
    return std::nullopt;
  }
  if (elem == Elem::Bool) {
    if (text == "true" || text == "True" || text == "1") return Scalar::of_bool(true);
    if (text == "false" || text == "False" || text == "0") return Scalar::of_bool(false);
  } else if (is_integer(elem)) {
    if (const auto value = whole_number<int64_t>(text)) {
      const auto [least, most] = integer_range(elem);
      if (*value >= least && *value <= most) return Scalar::of_int(elem, *value);
    }
  } else if (elem == Elem::F32) {
    if (const auto value = whole_number<float>(text)) return Scalar::of_float(elem, static_cast<double>(*value));
  } else if (const auto value = whole_number<double>(text)) {
    return Scalar::of_float(elem, round_to(elem, *value));
  }
  error = fmt::format("is `{}`, not `{}`", shown_path(text), elem_name(elem));
  return std::nullopt;
}

}  // namespace zephon
