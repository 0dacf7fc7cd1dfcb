#include "zephonc/sinks/staged.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "zephonc/console.h"

namespace zephon {
namespace {

constexpr size_t kBuffer = 1 << 18;

std::string temporary_name(const std::string& path) { return fmt::format("{}.partial-{}", path, getpid()); }

/// Removes what runs that were killed have left beside `path`. One that is alive, here or in another container, has a
/// process or a lock.
void remove_leftovers(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path wanted(path);
  const std::string prefix = wanted.filename().string() + ".partial-";
  std::error_code error;
  const fs::path folder = wanted.parent_path().empty() ? fs::path(".") : wanted.parent_path();
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const char* last = name.data() + name.size();
    const auto [rest, bad] = std::from_chars(name.data() + prefix.size(), last, pid);
    if (bad != std::errc() || rest != last || pid <= 0) continue;
    if (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH)) continue;
    found.push_back(it->path());
  }
  for (const fs::path& old : found) {
    const int fd = ::open(old.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!held && fs::remove_all(old, error) > 0 && !error)
      say(fmt::format("removed `{}`, which a run that was killed had left", old.string()));
    if (fd >= 0) ::close(fd);
  }
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::string error_text(int error_number) {
  std::string why = std::strerror(error_number);
  bool acronym = why.size() > 1 && why[1] >= 'A' && why[1] <= 'Z';
  if (!acronym && !why.empty() && why[0] >= 'A' && why[0] <= 'Z') why[0] = static_cast<char>(why[0] - 'A' + 'a');
  return why;
}

Failure write_failure(const std::string& path, int error_number) {
  return {"R0501", fmt::format("cannot write `{}`: {}", path, error_text(error_number)), {}};
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<Failure> FileWriter::open(const std::string& path, const std::string& shown) {
  path_ = shown;
  failure_.reset();
  buffer_.clear();
  bytes_ = 0;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) failure_ = write_failure(shown, errno);
  return failure_;
}

void FileWriter::lock() const { (void)flock(fd_, LOCK_EX | LOCK_NB); }

std::optional<Failure> FileWriter::flush() {
  const char* at = buffer_.data();
  size_t left = buffer_.size();
  while (left > 0 && !failure_) {
    ssize_t n = ::write(fd_, at, left);
    if (n < 0) {
      if (errno == EINTR) continue;
      failure_ = write_failure(path_, errno);
    } else {
      at += n;
      left -= static_cast<size_t>(n);
    }
  }
  buffer_.clear();
  return failure_;
}

std::optional<Failure> FileWriter::write(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  bytes_ += size;
  while (size > 0 && !failure_) {
    size_t part = std::min(size, kBuffer);
    buffer_.append(at, part);
    at += part;
    size -= part;
    if (buffer_.size() >= kBuffer) flush();
  }
  return failure_;
}

std::optional<Failure> FileWriter::mark(uint64_t& bytes) {
  if (fd_ >= 0) flush();
  bytes = bytes_;
  return failure_;
}

std::optional<Failure> FileWriter::close(bool sync) {
  if (fd_ < 0) return failure_;
  flush();
  if (sync && !failure_ && fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP) {
    failure_ = write_failure(path_, errno);
  }
  if (::close(std::exchange(fd_, -1)) != 0 && !failure_) failure_ = write_failure(path_, errno);
  return failure_;
}

StagedFile::~StagedFile() {
  if (!temporary_.empty() && !direct_) unlink(temporary_.c_str());
}

std::optional<Failure> StagedFile::open(const std::string& path) {
  path_ = path;
  struct stat info {};
  direct_ = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  temporary_ = direct_ ? path : temporary_name(path);
  if (S_ISDIR(info.st_mode)) {
    temporary_.clear();
    return write_failure(path, EISDIR);
  }
  if (!direct_) remove_leftovers(path);
  std::optional<Failure> failure = writer_.open(temporary_, path);
  if (failure) {
    temporary_.clear();
    return failure;
  }
  // What replaces a file may be read by whom that file was for.
  if (S_ISREG(info.st_mode)) chmod(temporary_.c_str(), info.st_mode & 07777);
  if (!direct_) writer_.lock();
  return failure;
}

std::optional<Failure> StagedFile::commit() {
  if (auto failure = writer_.close(!direct_)) return failure;
  if (direct_) return std::nullopt;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return write_failure(path_, errno);
  temporary_.clear();
  return std::nullopt;
}

std::optional<Failure> write_file_atomically(const std::string& path, std::string_view text) {
  StagedFile file;
  if (auto failure = file.open(path)) return failure;
  if (auto failure = file.write(text)) return failure;
  return file.commit();
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

std::optional<Failure> StagedFolder::open(const std::string& path) {
  path_ = without_trailing_slashes(path);
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    if (!std::filesystem::is_directory(path_, error)) return write_failure(path_, ENOTDIR);
    if (!std::filesystem::is_empty(path_, error)) {
      return Failure{"R0502", fmt::format("`{}` exists and is not empty", path_), {}};
    }
  }
  std::string temporary = temporary_name(path_);
  remove_leftovers(path_);
  if (mkdir(temporary.c_str(), 0777) != 0) return write_failure(path_, errno);
  lock_ = ::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) (void)flock(lock_, LOCK_EX | LOCK_NB);
  temporary_ = std::move(temporary);
  return std::nullopt;
}

std::optional<Failure> StagedFolder::commit() {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return write_failure(path_, errno);
  temporary_.clear();
  return std::nullopt;
}

}  // namespace zephon
