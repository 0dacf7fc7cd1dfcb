#include "zephonc/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "zephonc/sinks/staged.h"

namespace zephon {

std::optional<std::string> read_whole_file(const std::string& path, Failure& failure) {
  std::string text;
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (file != nullptr) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, n);
    int error = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
    if (error == 0) return text;
    errno = error;
  }
  failure = {"R0401", fmt::format("cannot read `{}`: {}", path, error_text(errno)), {}};
  return std::nullopt;
}

}  // namespace zephon
