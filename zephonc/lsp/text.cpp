#include "zephonc/lsp/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace zephon::lsp {
namespace {

/// Bytes of the character that begins with `lead`; 1 for what cannot begin one.
size_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

constexpr std::string_view kFileScheme = "file://";

}  // namespace

Text::Text(std::string bytes) : bytes_(std::move(bytes)), begins_{0} {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const bool pair = bytes_[i] == '\r' && i + 1 < bytes_.size() && bytes_[i + 1] == '\n';
    if (bytes_[i] == '\n' || (bytes_[i] == '\r' && !pair)) begins_.push_back(i + 1);
  }
}

size_t Text::line_end(size_t line) const {
  size_t end = line + 1 < begins_.size() ? begins_[line + 1] : bytes_.size();
  while (end > begins_[line] && (bytes_[end - 1] == '\n' || bytes_[end - 1] == '\r')) --end;
  return end;
}

std::optional<size_t> Text::offset(const Place& place) const {
  if (place.line >= begins_.size()) return std::nullopt;
  size_t at = begins_[place.line];
  const size_t end = line_end(place.line);
  for (uint32_t column = 0; at < end && column < place.column;) {
    const size_t size = character_size(bytes_[at]);
    column += size == 4 ? 2 : 1;
    if (column > place.column) break;  // inside a pair of surrogates
    at = std::min(end, at + size);
  }
  return at;
}

Place Text::place(size_t offset) const {
  offset = std::min(offset, bytes_.size());
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  const auto line = static_cast<size_t>(after - begins_.begin()) - 1;
  uint32_t column = 0;
  for (size_t at = begins_[line]; at < offset;) {
    const size_t size = character_size(bytes_[at]);
    column += size == 4 ? 2 : 1;
    at += size;
  }
  return {static_cast<uint32_t>(line), column};
}

size_t place_before(std::string_view now, std::string_view then, size_t at) {
  const size_t least = std::min(now.size(), then.size());
  const auto differ = std::mismatch(now.begin(), now.begin() + static_cast<ptrdiff_t>(least), then.begin()).first;
  const auto same = static_cast<size_t>(differ - now.begin());
  if (at <= same) return at;
  size_t tail = 0;
  while (tail < least - same && now[now.size() - 1 - tail] == then[then.size() - 1 - tail]) ++tail;
  return at >= now.size() - tail ? then.size() - (now.size() - at) : same;
}

std::string path_of_uri(const std::string& uri) {
  if (!uri.starts_with(kFileScheme)) return uri;
  const size_t slash = uri.find('/', kFileScheme.size());
  if (slash == std::string::npos) return uri;
  std::string path;
  for (size_t i = slash; i < uri.size(); ++i) {
    const bool escape = uri[i] == '%' && i + 2 < uri.size() && std::isxdigit(static_cast<unsigned char>(uri[i + 1])) &&
                        std::isxdigit(static_cast<unsigned char>(uri[i + 2]));
    if (escape) {
      path += static_cast<char>(std::strtol(uri.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return std::filesystem::path(path).lexically_normal().string();
}

std::string uri_of_path(const std::string& path) {
  std::error_code error;
  std::string uri(kFileScheme);
  for (char c : std::filesystem::absolute(path, error).lexically_normal().string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string_view::npos)
      uri += c;
    else
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace zephon::lsp
