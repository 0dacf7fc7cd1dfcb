#pragma once
// The text of one row of a table (RFC 4180), shared by the source that finds rows and the operator that reads fields.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/value.h"

namespace zephon {

/// Where a byte stands in a row. Quotes mean something only at the beginning of a field.
enum class CsvState : uint8_t { FieldBegin, Plain, Quoted, QuoteInQuoted };

inline CsvState next_state(CsvState state, char c) {
  switch (state) {
    case CsvState::FieldBegin:
      if (c == '"') return CsvState::Quoted;
      return c == ',' ? CsvState::FieldBegin : CsvState::Plain;
    case CsvState::Plain:
      return c == ',' ? CsvState::FieldBegin : CsvState::Plain;
    case CsvState::Quoted:
      return c == '"' ? CsvState::QuoteInQuoted : CsvState::Quoted;
    case CsvState::QuoteInQuoted:
      if (c == '"') return CsvState::Quoted;
      return c == ',' ? CsvState::FieldBegin : CsvState::Plain;
  }
  return CsvState::Plain;
}

/// The fields of a row (without its line end), unquoted. On a broken row nullopt, and `error` says what is wrong.
std::optional<std::vector<std::string>> split_row(std::string_view row, std::string& error);

/// Reads `text` as an element; on failure nullopt, and `error` completes "column `x` ...". Numbers are decimal, with a
/// point, without spaces; nan and inf are floats; bool is true, false, True, False, 0 or 1; `str` must be UTF-8.
std::optional<Scalar> parse_element(Elem elem, std::string_view text, std::string& error);

}  // namespace zephon
