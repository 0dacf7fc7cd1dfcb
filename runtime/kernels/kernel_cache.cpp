#include "runtime/kernels/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace zephon {
namespace {

constexpr std::string_view kMagic = "zephon kernel 1\n";
constexpr std::string_view kSuffix = ".kernel";

struct FileHandle {
  int fd;
  ~FileHandle() {
    if (fd >= 0) close(fd);
  }
};

std::string checksum(std::string_view body) {
  XXH128_hash_t hash = XXH3_128bits(body.data(), body.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// Makes the folder and those above it; those above keep the usual mode.
bool make_directories(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

KernelCache::KernelCache(std::string directory, uint64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {
  struct stat info {};
  if (directory_.empty() || directory_[0] != '/') {
    warning_ = "kernel cache not used: no home directory";
  } else if (!make_directories(directory_) || lstat(directory_.c_str(), &info) != 0) {
    warning_ = fmt::format("kernel cache not used: cannot make `{}`: {}", directory_, std::strerror(errno));
  } else if (!S_ISDIR(info.st_mode)) {
    warning_ = fmt::format("kernel cache not used: `{}` is not a directory", directory_);
  } else if (info.st_uid != geteuid()) {
    warning_ = fmt::format("kernel cache not used: `{}` belongs to another user", directory_);
  } else if ((info.st_mode & 077) != 0) {
    warning_ = fmt::format("kernel cache not used: others may enter `{}` (mode {:o}, wanted 700)", directory_,
                           info.st_mode & 07777);
  }
}

std::string KernelCache::path_of(std::string_view key) const {
  return directory_ + "/" + checksum(key) + std::string(kSuffix);
}

std::optional<CodeImage> KernelCache::find(std::string_view key) const {
  if (!usable()) return std::nullopt;
  FileHandle file{open(path_of(key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 022) != 0 || info.st_size > (16 << 20))
    return std::nullopt;
  std::string text(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    ssize_t n = read(file.fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<size_t>(n);
  }
  // magic, checksum of the rest (32), length of the key (8), key, image
  std::string_view rest = text;
  if (rest.size() < kMagic.size() + 40 || rest.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  rest.remove_prefix(kMagic.size());
  std::string_view body = rest.substr(32);
  if (checksum(body) != rest.substr(0, 32)) return std::nullopt;
  uint64_t key_size = 0;
  std::memcpy(&key_size, body.data(), 8);
  body.remove_prefix(8);
  if (key_size != key.size() || body.size() < key_size || body.substr(0, key_size) != key) return std::nullopt;
  CodeImage image;
  if (!CodeImage::parse(body.substr(key_size), image)) return std::nullopt;
  return image;
}

void KernelCache::store(std::string_view key, const CodeImage& image) const {
  if (!usable()) return;
  std::string body(8, '\0');
  uint64_t key_size = key.size();
  std::memcpy(body.data(), &key_size, 8);
  body += key;
  body += image.serialize();
  make_room(body.size());
  std::string path = path_of(key), temporary = path + ".XXXXXX";
  FileHandle file{mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) return;
  bool good = write_all(file.fd, kMagic) && write_all(file.fd, checksum(body)) && write_all(file.fd, body);
  if (!good || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

void KernelCache::make_room(uint64_t bytes) const {
  // To count is to ask for the size of each file: not for every kernel.
  const uint64_t uncounted = uncounted_;
  if (uncounted != UINT64_MAX && uncounted + bytes <= max_bytes_ / 64) {
    uncounted_ += bytes;
    return;
  }
  uncounted_ = 0;
  DIR* dir = opendir(directory_.c_str());
  if (!dir) return;
  struct Entry {
    timespec time;
    uint64_t size;
    std::string path;
  };
  std::vector<Entry> entries;
  uint64_t total = bytes;
  while (dirent* item = readdir(dir)) {
    std::string_view name = item->d_name;
    struct stat info {};
    if (name.find(kSuffix) == std::string_view::npos) continue;
    std::string path = directory_ + "/" + std::string(name);
    if (lstat(path.c_str(), &info) != 0) continue;
    total += static_cast<uint64_t>(info.st_size);
    entries.push_back({info.st_mtim, static_cast<uint64_t>(info.st_size), std::move(path)});
  }
  closedir(dir);
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.time.tv_sec != b.time.tv_sec ? a.time.tv_sec < b.time.tv_sec : a.time.tv_nsec < b.time.tv_nsec;
  });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) break;  // a quarter at once, so that not every store has to clean
    if (unlink(entry.path.c_str()) == 0) total -= entry.size;
  }
}

}  // namespace zephon
