#pragma once
// What the functions on text share: one function from arguments to a result states the meaning for one element; the
// definition and the native kernel are made of it. They are pure and work on bytes that are given to them, so one form
// serves both; what they say is tested against values from elsewhere.

#include <string>
#include <string_view>

#include "ops/tensor_op.h"

namespace zephon {

/// One argument, without a copy of its text.
struct TextArg {
  Elem elem = Elem::I64;
  int64_t i = 0;          ///< integers and bool
  double f = 0;           ///< floats
  std::string_view text;  ///< string kinds
};

/// What comes out: `text` for string kinds, `i` for integers and bool, `f` for floats. Or why nothing does.
struct TextResult {
  std::string text;
  int64_t i = 0;
  double f = 0;
  const char* code = nullptr;  ///< of the failure; null where it is good
  std::string message;

  static TextResult of(std::string text) { return {.text = std::move(text)}; }
  static TextResult of_int(int64_t i) { return {.i = i}; }
  static TextResult of_float(double f) { return {.f = f}; }
  static TextResult fail(const char* code, std::string message) {
    return {.code = code, .message = std::move(message)};
  }
};

using TextFunction = TextResult (*)(const Expr& expr, std::span<const TextArg> args);

/// `.define` of class Pointwise.
ScalarResult define_text_function(TextFunction function, const Expr& expr, std::span<const ScalarArg> args);
/// `.kernel` of class Pointwise, for arguments that are scalars or have one shape; fails for others.
bool run_text_function(TextFunction function, NativeCall& call);

template <TextFunction kFunction>
ScalarResult define_text(const Expr& expr, std::span<const ScalarArg> args) {
  return define_text_function(kFunction, expr, args);
}
template <TextFunction kFunction>
bool run_text(NativeCall& call) {
  return run_text_function(kFunction, call);
}

/// Opaque operators that make a list of texts (str[n], bytes[n]) of one text.
struct TextParts {
  std::vector<std::string> parts;
  const char* code = nullptr;
  std::string message;
};
using PartsFunction = TextParts (*)(const Expr& expr, std::span<const TextArg> args);
Value define_parts_function(PartsFunction function, DefineCall& call);
bool run_parts_function(PartsFunction function, NativeCall& call);
template <PartsFunction kFunction>
Value define_parts(DefineCall& call) {
  return define_parts_function(kFunction, call);
}
template <PartsFunction kFunction>
bool run_parts(NativeCall& call) {
  return run_parts_function(kFunction, call);
}

/// At most 60 bytes of a text, for messages.
std::string shown_text(std::string_view text);

// ---- UTF-8. `str` is always valid; these need not look for errors.

/// Offset of the code point behind the one that begins at `at`.
inline size_t next_code_point(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  return at + (c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4);
}
int64_t code_points(std::string_view text);
bool is_ascii(std::string_view text);

}  // namespace zephon
