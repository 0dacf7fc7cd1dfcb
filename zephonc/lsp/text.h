#pragma once
// Texts and places as the Language Server Protocol counts them: lines from 0, columns in UTF-16 code units from 0.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zephon::lsp {

struct Place {
  uint32_t line = 0, column = 0;
};

class Text {
 public:
  explicit Text(std::string bytes);
  const std::string& bytes() const { return bytes_; }
  /// The byte at a place: a column behind the end of its line is that end; nothing where there is no such line.
  std::optional<size_t> offset(const Place& place) const;
  Place place(size_t offset) const;

 private:
  size_t line_end(size_t line) const;
  std::string bytes_;
  std::vector<size_t> begins_;
};

/// Where a byte of `now` stood in `then`: both agree at their beginning and at their end, and what lies between has
/// changed as a whole.
size_t place_before(std::string_view now, std::string_view then, size_t at);

/// "file:///a%20b.zpl" -> "/a b.zpl". What is no file stays as it is.
std::string path_of_uri(const std::string& uri);
std::string uri_of_path(const std::string& path);

bool is_word_byte(char c);

}  // namespace zephon::lsp
