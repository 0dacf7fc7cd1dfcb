#include "frontend/diag/diagnostic.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace zephon {
namespace {

constexpr Severity severity_of(char letter) {
  switch (letter) {
    case 'W':
      return Severity::Lint;
    case 'R':
      return Severity::Failure;
    case 'B':
      return Severity::Bug;
    default:
      return Severity::Error;
  }
}

constexpr KindInfo kKinds[] = {
#define ZEPHON_KIND(code, name) {Kind::name, #code, #name, severity_of(#code[0])},
#include "frontend/diag/kinds.def"
#undef ZEPHON_KIND
};

}  // namespace

const KindInfo& info(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::span<const KindInfo> all_kinds() { return kKinds; }

const KindInfo* find_kind(std::string_view code) {
  for (const KindInfo& kind : kKinds)
    if (std::equal(code.begin(), code.end(), kind.code.begin(), kind.code.end(),
                   [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b; }))
      return &kind;
  return nullptr;
}

DiagnosticBuilder::DiagnosticBuilder(Diagnostics& sink, Kind kind, std::string message) : sink_(sink) {
  diagnostic_.kind = kind;
  diagnostic_.message = std::move(message);
}

Reported DiagnosticBuilder::emit() && {
  sink_.add(std::move(diagnostic_));
  return Reported{};
}

void Diagnostics::add(Diagnostic diagnostic) {
  std::lock_guard lock(mutex_);
  diagnostics_.push_back(std::move(diagnostic));
}

std::optional<Reported> Diagnostics::reported() const {
  if (!has_errors()) return std::nullopt;
  return Reported{};
}

bool Diagnostics::has_errors() const { return error_count() > 0; }

size_t Diagnostics::error_count() const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& d) {
    return info(d.kind).severity != Severity::Lint;
  }));
}

bool Diagnostics::empty() const {
  std::lock_guard lock(mutex_);
  return diagnostics_.empty();
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::unique_lock lock(mutex_);
  std::vector<Diagnostic> all = diagnostics_;
  lock.unlock();
  auto place = [](const Diagnostic& d) {
    const Span& s = d.primary.span;
    return std::make_tuple(s.file.value, s.begin, s.end);
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  auto same = [&](const Diagnostic& a, const Diagnostic& b) {
    return a.kind == b.kind && place(a) == place(b) && a.message == b.message;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

void Diagnostics::clear() {
  std::lock_guard lock(mutex_);
  diagnostics_.clear();
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    unsigned char first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                    : (first & 0xF0) == 0xE0         ? 3
                    : first >= 0xF0 && first <= 0xF4 ? 4
                                                     : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    unsigned char second = byte(i + 1);
    bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    bool surrogate = first == 0xED && second > 0x9F;
    bool too_large = first == 0xF4 && second > 0x8F;
    if (overlong || surrogate || too_large) return i;
    i += length;
  }
  return std::nullopt;
}

void internal_error(const char* file, int line, const char* condition, const std::string& detail) {
  fmt::print(stderr, "bug[B0900]: `{}` does not hold at {}:{}{}{}\n   = more: zephonc explain B0900\n", condition, file,
             line, detail.empty() ? "" : ": ", detail);
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace zephon
