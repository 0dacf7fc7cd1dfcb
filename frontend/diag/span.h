// Places in program text, and the texts themselves.
//
// A place is a half-open range of bytes in one file. Lines and columns exist only where something is shown to a person
// (SourceMap::position): bytes are cheap to keep in every node and survive rewriting, fusion and the YAML form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zephon {

// A file known to a SourceMap. The default value means "no file".
struct FileId {
  uint32_t value = 0;
  bool valid() const { return value != 0; }
  friend bool operator==(FileId, FileId) = default;
};

// Bytes [begin, end) of `file`. The default value is "no place".
struct Span {
  FileId file;
  uint32_t begin = 0;
  uint32_t end = 0;

  bool valid() const { return file.valid(); }
  uint32_t size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

// The smallest range that covers both. One of them without a place: the other. Different files: the first.
Span join(const Span& a, const Span& b);

// Where a person would point: line and column from 1; a column counts code points, a tab counts as one.
struct Position {
  uint32_t line = 0;
  uint32_t column = 0;
};

// Owns names and texts; views and ids stay valid while the map lives. Texts may hold any bytes.
class SourceMap {
 public:
  SourceMap() = default;
  SourceMap(const SourceMap&) = delete;
  SourceMap& operator=(const SourceMap&) = delete;
  SourceMap(SourceMap&&) = default;
  SourceMap& operator=(SourceMap&&) = default;

  // `name` is what messages show, for example the path as typed. Sizes up to 4 GB.
  FileId add(std::string name, std::string text);

  std::string_view name(FileId file) const;
  std::string_view text(FileId file) const;
  // The bytes of the span; empty for "no place".
  std::string_view text(const Span& span) const;

  Position position(FileId file, uint32_t offset) const;
  // The line (from 1) without its end-of-line bytes.
  std::string_view line_text(FileId file, uint32_t line) const;
  // Byte offset of the first byte of the line.
  uint32_t line_begin(FileId file, uint32_t line) const;
  uint32_t line_count(FileId file) const;
  // "cats.zpl:4:12", or the empty string for "no place".
  std::string describe(const Span& span) const;

 private:
  struct File {
    std::string name;
    std::string text;
    std::vector<uint32_t> line_begins;  // sorted; [0] == 0
  };
  const File& file(FileId id) const;
  std::vector<std::unique_ptr<File>> files_;  // [FileId::value - 1]
};

}  // namespace zephon
