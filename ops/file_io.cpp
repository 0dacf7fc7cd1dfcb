#include "ops/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "frontend/diag/diagnostic.h"
#include "graph/identity.h"

namespace zephon {

std::string resolve_path(std::string_view base, std::string_view path) {
  if (base.empty() || path.starts_with('/')) return std::string(path);
  return fmt::format("{}{}{}", base, base.ends_with('/') ? "" : "/", path);
}

std::string shown_path(std::string_view path) {
  constexpr size_t kMost = 200, kHalf = 90;
  std::string text = path.size() <= kMost
                         ? std::string(path)
                         : fmt::format("{}...{}", path.substr(0, kHalf), path.substr(path.size() - kHalf));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  while (const std::optional<size_t> bad = find_invalid_utf8(text)) text[*bad] = '?';
  return text;
}

std::string shown_file(std::string_view path) {
  std::filesystem::path out;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    if (part.empty() || part == ".") continue;
    std::error_code error;
    const bool back = part == ".." && out.has_filename() && out.filename() != "..";
    if (back && !std::filesystem::is_symlink(out, error)) {
      out = out.parent_path();
    } else {
      out /= part;
    }
  }
  return shown_path(out.empty() ? "." : out.string());
}

std::string error_words(int error) {
  if (error == ENOTSUP) return "not a regular file";
  std::string reason = std::generic_category().message(error);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return reason;
}

Failure cannot_read(std::string_view path, int error, const Span& where) {
  return {"R0401", fmt::format("cannot read `{}`: {}", shown_file(path), error_words(error)), where};
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

int InputFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return ENOENT;
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return errno;
  if (::fstat(fd_, &status_) != 0) return errno;
  if (S_ISDIR(status_.st_mode)) return EISDIR;
  return S_ISREG(status_.st_mode) ? 0 : ENOTSUP;
}

bool InputFile::changed() const {
  struct stat now;
  return ::fstat(fd_, &now) != 0 || now.st_size != status_.st_size || now.st_mtim.tv_sec != status_.st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != status_.st_mtim.tv_nsec;
}

int64_t InputFile::read_at(uint64_t offset, void* to, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const ssize_t n = ::pread(fd_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<int64_t>(done);
}

int list_folder(const std::string& path, std::vector<FolderEntry>& entries) {
  DIR* folder = ::opendir(path.c_str());
  if (!folder) return errno;
  errno = 0;
  while (const dirent* item = ::readdir(folder)) {
    FolderEntry entry;
    entry.name = item->d_name;
    if (entry.name == "." || entry.name == "..") continue;
    entry.is_link = item->d_type == DT_LNK;
    entry.is_folder = item->d_type == DT_DIR;
    entry.is_file = item->d_type == DT_REG;
    if (item->d_type == DT_LNK || item->d_type == DT_UNKNOWN) {
      struct stat status;
      if (::fstatat(::dirfd(folder), item->d_name, &status, 0) == 0) {
        entry.is_folder = S_ISDIR(status.st_mode);
        entry.is_file = S_ISREG(status.st_mode);
      } else {
        entry.is_file = true;  // a dangling link matches, and fails where its content is needed
      }
    }
    entries.push_back(std::move(entry));
    errno = 0;
  }
  const int error = errno;
  ::closedir(folder);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return error;
}

uint64_t file_fingerprint(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return 0;
  const uint64_t words[] = {stream_hash(path), static_cast<uint64_t>(status.st_size),
                            static_cast<uint64_t>(status.st_mtim.tv_sec), static_cast<uint64_t>(status.st_mtim.tv_nsec),
                            static_cast<uint64_t>(status.st_ino)};
  return hash_words(words);
}

}  // namespace zephon
