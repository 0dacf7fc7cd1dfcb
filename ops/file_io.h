#pragma once
// Files and folders, for the operators that read them. Paths are bytes, of any length the system takes.

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/value.h"

namespace zephon {

/// `path`, which starts at `base` where it is relative (`base` empty: at the working directory).
std::string resolve_path(std::string_view base, std::string_view path);

/// For messages: at most 200 bytes, the middle of longer paths cut out, control bytes and broken UTF-8 as `?`.
std::string shown_path(std::string_view path);

/// The same of the name of a file or pattern: without `.`, and without `a/..` where `a` is no link.
std::string shown_file(std::string_view path);

/// The system's words for an errno, without capital: "permission denied".
std::string error_words(int error);

/// A failure R0401 with the system's reason for `error` (an errno): "cannot read `x`: permission denied".
Failure cannot_read(std::string_view path, int error, const Span& where);

/// A regular file open for reading. Folders, devices and pipes are refused (a pipe could block for ever).
class InputFile {
 public:
  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  /// 0, or an errno.
  int open(const std::string& path);
  uint64_t size() const { return static_cast<uint64_t>(status_.st_size); }
  const struct stat& status() const { return status_; }
  /// Another size or time than when it was opened.
  bool changed() const;
  /// Reads up to `count` bytes at `offset`; fewer only at the end. Returns bytes read, or -errno.
  int64_t read_at(uint64_t offset, void* to, size_t count) const;

 private:
  int fd_ = -1;
  struct stat status_ = {};
};

/// Names in a folder, sorted by bytes, without `.` and `..`, with whether each is a folder (links followed).
struct FolderEntry {
  std::string name;
  bool is_folder = false;
  bool is_file = false;
  bool is_link = false;
};
/// 0, or an errno.
int list_folder(const std::string& path, std::vector<FolderEntry>& entries);

/// What a fingerprint holds of a file: hash of path, size, modification time and inode. 0 where it is gone.
uint64_t file_fingerprint(const std::string& path);

}  // namespace zephon
