#pragma once
// Files and folders that appear under their name only when they are complete: what is written goes to a neighbour with
// a temporary name, and a rename makes it the real thing. Killed at any moment, nothing that looks whole is left; what
// is left (NAME.partial-PID) is removed by the next who writes there.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "graph/value.h"

namespace zephon {

/// "no space left on device": strerror as it stands in a sentence.
std::string error_text(int error_number);
/// "cannot write `out/x.npy`: no space left on device".
Failure write_failure(const std::string& path, int error_number);

/// A buffered file. Errors stick: the first one is returned by every later call.
class FileWriter {
 public:
  FileWriter() = default;
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Creates or empties `path`; messages call it `shown`.
  std::optional<Failure> open(const std::string& path, const std::string& shown);
  std::optional<Failure> write(const void* data, size_t size);
  std::optional<Failure> write(std::string_view text) { return write(text.data(), text.size()); }
  /// Hands everything to the system: a process that is killed has lost nothing of it. Bytes so far.
  std::optional<Failure> mark(uint64_t& bytes);
  /// Flushes, and asks the disk to keep it where `sync`.
  std::optional<Failure> close(bool sync);
  bool is_open() const { return fd_ >= 0; }
  /// Tells other processes that somebody is at it.
  void lock() const;

 private:
  std::optional<Failure> flush();
  std::string path_, buffer_;
  std::optional<Failure> failure_;
  uint64_t bytes_ = 0;
  int fd_ = -1;
};

/// One file, written beside its place. Devices and pipes (/dev/null, /dev/stdout) are written directly.
class StagedFile {
 public:
  ~StagedFile();
  std::optional<Failure> open(const std::string& path);
  std::optional<Failure> write(std::string_view text) { return writer_.write(text); }
  std::optional<Failure> commit();
  /// Where to write for those who open files by name.
  const std::string& temporary() const { return temporary_; }

 private:
  std::string path_, temporary_;
  FileWriter writer_;
  bool direct_ = false;
};
/// All at once.
std::optional<Failure> write_file_atomically(const std::string& path, std::string_view text);

/// A folder. An existing one is taken only if it is empty.
class StagedFolder {
 public:
  StagedFolder() = default;
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  std::optional<Failure> open(const std::string& path);
  /// Where to write a member, and what messages call it.
  std::string file(std::string_view name) const { return temporary_ + "/" + std::string(name); }
  std::string shown(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::optional<Failure> commit();
  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }

 private:
  std::string path_, temporary_;
  int lock_ = -1;
};

}  // namespace zephon
