// What we say to people: errors, lints, failures of a run, and our own bugs.
//
//   return diags.report(Kind::WrongType, "`filter` needs `bool`, found `{}`", type)
//       .primary(predicate.span, "this is `{}`", type)
//       .secondary(origin, "`s` becomes `f32` here")
//       .hint("compare it, for example `s > 0.5`")
//       .emit();
//
// Wording: message in lower case, no full stop, code in backticks, what was observed. The primary label is the
// narrowest wrong place, secondary labels show where the other half of the sentence comes from. `note` explains, only
// `hint` guesses. kinds.def lists every kind; explain/CODE.md is its long text.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/diag/span.h"

namespace zephon {

enum class Kind : uint16_t {
#define ZEPHON_KIND(code, name) name,
#include "frontend/diag/kinds.def"
#undef ZEPHON_KIND
};

enum class Severity : uint8_t { Error, Lint, Failure, Bug };  // E, W, R, B

struct KindInfo {
  Kind kind;
  std::string_view code;  // "E0203"
  std::string_view name;  // "WrongType"
  Severity severity;      // from the first letter of the code
};
const KindInfo& info(Kind kind);
std::span<const KindInfo> all_kinds();
// By code, "E0203" or "e0203".
const KindInfo* find_kind(std::string_view code);
// The long text (markdown) for `zephonc explain`.
std::string_view explain_text(Kind kind);

struct Label {
  Span span;
  std::string text;  // may be empty
};

struct Diagnostic {
  Kind kind{};
  std::string message;
  Label primary;  // span may be "no place": then only message, notes and hints are shown
  std::vector<Label> secondary;
  std::vector<std::string> notes;
  std::vector<std::string> hints;
};

// Proof that an error has been emitted: only DiagnosticBuilder::emit and Diagnostics::reported make it.
class Reported {
 private:
  Reported() = default;
  friend class DiagnosticBuilder;
  friend class Diagnostics;
};

// A value, or the proof that its absence has been explained to the person.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Reported reported) : state_(std::in_place_index<1>, reported) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Reported reported() const { return std::get<1>(state_); }

 private:
  std::variant<T, Reported> state_;
};

class Diagnostics;

class [[nodiscard]] DiagnosticBuilder {
 public:
  DiagnosticBuilder(Diagnostics& sink, Kind kind, std::string message);

  template <class... Args>
  DiagnosticBuilder&& primary(const Span& span, fmt::format_string<Args...> text, Args&&... args) && {
    diagnostic_.primary = {span, fmt::format(text, std::forward<Args>(args)...)};
    return std::move(*this);
  }
  DiagnosticBuilder&& primary(const Span& span) && {
    diagnostic_.primary = {span, {}};
    return std::move(*this);
  }
  // Dropped where the span is "no place", so that callers need not ask.
  template <class... Args>
  DiagnosticBuilder&& secondary(const Span& span, fmt::format_string<Args...> text, Args&&... args) && {
    if (span.valid()) diagnostic_.secondary.push_back({span, fmt::format(text, std::forward<Args>(args)...)});
    return std::move(*this);
  }
  template <class... Args>
  DiagnosticBuilder&& note(fmt::format_string<Args...> text, Args&&... args) && {
    diagnostic_.notes.push_back(fmt::format(text, std::forward<Args>(args)...));
    return std::move(*this);
  }
  template <class... Args>
  DiagnosticBuilder&& hint(fmt::format_string<Args...> text, Args&&... args) && {
    return std::move(*this).hint_text(fmt::format(text, std::forward<Args>(args)...));
  }
  // A hint made elsewhere (did_you_mean); an empty one is dropped.
  DiagnosticBuilder&& hint_text(std::string text) && {
    if (!text.empty()) diagnostic_.hints.push_back(std::move(text));
    return std::move(*this);
  }
  // Hands the diagnostic to the sink. For a lint the token means nothing.
  Reported emit() &&;

 private:
  Diagnostics& sink_;
  Diagnostic diagnostic_;
};

// Collects. Any thread may report; reading is for after the work.
class Diagnostics {
 public:
  template <class... Args>
  DiagnosticBuilder report(Kind kind, fmt::format_string<Args...> message, Args&&... args) {
    return DiagnosticBuilder(*this, kind, fmt::format(message, std::forward<Args>(args)...));
  }
  void add(Diagnostic diagnostic);

  // Anything but a lint.
  bool has_errors() const;
  size_t error_count() const;
  // The proof, where there are errors.
  std::optional<Reported> reported() const;
  bool empty() const;
  // By file and place, those without a place first; the same kind, place and message once.
  std::vector<Diagnostic> sorted() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<Diagnostic> diagnostics_;
};

struct RenderOptions {
  bool colour = false;      // ANSI escapes
  bool explain = true;      // the last line, "more: zephonc explain CODE"
  size_t limit = SIZE_MAX;  // diagnostics shown; the rest is counted in one line
};
// The caret picture; ends in a newline.
std::string render(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options = {});
// All of them, sorted, with a blank line between.
std::string render(const Diagnostics& diagnostics, const SourceMap& sources, const RenderOptions& options = {});

// At most three candidates near to `word`, nearest first; none when none is near.
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates);
// "did you mean `a`, `b` or `c`?", or the empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// The first byte of `text` that is not part of well-formed UTF-8, if any.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// An invariant of ours: prints where and exits with code 70. Never for what a person or a file can cause.
[[noreturn]] void internal_error(const char* file, int line, const char* condition, const std::string& detail);

#define ZEPHON_CHECK(condition, ...)                                                           \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::zephon::internal_error(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

}  // namespace zephon
