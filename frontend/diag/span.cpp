#include "frontend/diag/span.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/diag/diagnostic.h"

namespace zephon {

Span join(const Span& a, const Span& b) {
  if (!a.valid()) return b;
  if (!b.valid() || a.file != b.file) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

FileId SourceMap::add(std::string name, std::string text) {
  auto file = std::make_unique<File>();
  file->name = std::move(name);
  file->text = std::move(text);
  file->line_begins.push_back(0);
  // A line ends at \n; \r\n is one end. A lone \r (old Macintosh) stays inside its line.
  for (size_t i = 0; i < file->text.size(); ++i)
    if (file->text[i] == '\n') file->line_begins.push_back(static_cast<uint32_t>(i + 1));
  files_.push_back(std::move(file));
  return {static_cast<uint32_t>(files_.size())};
}

const SourceMap::File& SourceMap::file(FileId id) const {
  ZEPHON_CHECK(id.valid() && id.value <= files_.size(), "file {}", id.value);
  return *files_[id.value - 1];
}

std::string_view SourceMap::name(FileId id) const { return file(id).name; }
std::string_view SourceMap::text(FileId id) const { return file(id).text; }

std::string_view SourceMap::text(const Span& span) const {
  if (!span.valid()) return {};
  std::string_view all = text(span.file);
  uint32_t begin = std::min<uint32_t>(span.begin, static_cast<uint32_t>(all.size()));
  return all.substr(begin, span.end - begin);
}

Position SourceMap::position(FileId id, uint32_t offset) const {
  const File& f = file(id);
  offset = std::min<uint32_t>(offset, static_cast<uint32_t>(f.text.size()));
  auto after = std::upper_bound(f.line_begins.begin(), f.line_begins.end(), offset);
  uint32_t line = static_cast<uint32_t>(after - f.line_begins.begin());
  uint32_t column = 1;
  for (uint32_t i = f.line_begins[line - 1]; i < offset; ++i)
    if ((static_cast<unsigned char>(f.text[i]) & 0xC0) != 0x80) ++column;  // not a UTF-8 continuation byte
  return {line, column};
}

std::string_view SourceMap::line_text(FileId id, uint32_t line) const {
  const File& f = file(id);
  uint32_t begin = f.line_begins[line - 1];
  uint32_t end = line < f.line_begins.size() ? f.line_begins[line] - 1 : static_cast<uint32_t>(f.text.size());
  std::string_view text(f.text.data() + begin, end - begin);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

uint32_t SourceMap::line_begin(FileId id, uint32_t line) const { return file(id).line_begins[line - 1]; }
uint32_t SourceMap::line_count(FileId id) const { return static_cast<uint32_t>(file(id).line_begins.size()); }

std::string SourceMap::describe(const Span& span) const {
  if (!span.valid()) return {};
  Position at = position(span.file, span.begin);
  return fmt::format("{}:{}:{}", name(span.file), at.line, at.column);
}

}  // namespace zephon
