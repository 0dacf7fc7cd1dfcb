#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "frontend/diag/diagnostic.h"
#include "ops/row_source.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

// Shell patterns within one name: `*`, `?`, `[abc]`, `[a-z]`, `[!a]`. Compares bytes. A leading dot must be written.
bool name_matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    bool ok = false;
    size_t next = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    if (p < pattern.size() && pattern[p] == '[' && pattern.find(']', p + 2) != std::string_view::npos) {
      size_t at = p + 1;
      const bool inverted = pattern[at] == '!' || pattern[at] == '^';
      if (inverted) ++at;
      bool inside = false;
      const auto c = static_cast<unsigned char>(name[n]);
      for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
        const auto low = static_cast<unsigned char>(pattern[at]);
        auto high = low;
        if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
          high = static_cast<unsigned char>(pattern[at + 2]);
          at += 2;
        }
        inside = inside || (low <= c && c <= high);
        ++at;
      }
      ok = inside != inverted;
      next = at + 1;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ok = true;
      next = p + 1;
    }
    if (ok) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool has_wildcard(std::string_view part) { return part.find_first_of("*?[") != std::string_view::npos; }

class Glob {
 public:
  explicit Glob(std::string_view pattern) : rooted_(pattern.starts_with('/')) {
    for (size_t at = 0; at < pattern.size();) {
      const size_t end = std::min(pattern.find('/', at), pattern.size());
      if (end > at) parts_.emplace_back(pattern.substr(at, end - at));
      at = end + 1;
    }
  }
  // 0, or the errno of `failed`, a folder named by the pattern that could not be listed.
  int run() {
    walk(rooted_ ? "/" : "", 0);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());  // `**` may find a file in two ways
    return error;
  }

  std::vector<std::string> found;
  std::string failed;
  int error = 0;

 private:
  void walk(const std::string& folder, size_t part) {
    if (part == parts_.size() || error) return;
    const std::string& pattern = parts_[part];
    const bool last = part + 1 == parts_.size();
    auto join = [&](std::string_view name) {
      return folder.empty() || folder.ends_with('/') ? fmt::format("{}{}", folder, name)
                                                     : fmt::format("{}/{}", folder, name);
    };
    if (!has_wildcard(pattern) && !last) return walk(join(pattern), part + 1);
    std::vector<FolderEntry> entries;
    if (const int e = list_folder(folder.empty() ? "." : folder, entries)) {
      // A folder that the pattern may but need not contain is no failure.
      if (e == ENOENT || e == ENOTDIR) return;
      error = e;
      failed = folder.empty() ? "." : folder;
      return;
    }
    if (pattern == "**") {
      walk(folder, part + 1);
      for (const FolderEntry& entry : entries)
        if (entry.is_folder && !entry.is_link && !entry.name.starts_with('.')) walk(join(entry.name), part);
      if (last)
        for (const FolderEntry& entry : entries)
          if (entry.is_file && !entry.name.starts_with('.')) found.push_back(join(entry.name));
      return;
    }
    for (const FolderEntry& entry : entries) {
      if (entry.name.starts_with('.') && !pattern.starts_with('.')) continue;
      if (has_wildcard(pattern) ? !name_matches(pattern, entry.name) : pattern != entry.name) continue;
      if (!last) {
        if (entry.is_folder) walk(join(entry.name), part + 1);
      } else if (entry.is_file) {
        found.push_back(join(entry.name));
      }
    }
  }

  bool rooted_;
  std::vector<std::string> parts_;
};

// "; there is ..." of a pattern without a match: a folder that is not there, files with another ending, or elsewhere.
std::string why_nothing(const std::string& pattern) {
  const size_t slash = pattern.rfind('/');
  const std::string last = pattern.substr(slash == std::string::npos ? 0 : slash + 1);
  const std::string above = slash == std::string::npos ? "" : pattern.substr(0, slash + 1);
  // The folders that are named, up to the first wildcard.
  std::string folder = pattern.starts_with('/') ? "/" : "";
  bool named = true;
  for (size_t at = folder.size(); at < above.size();) {
    const size_t end = above.find('/', at);
    const std::string part = above.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    if (has_wildcard(part)) {
      named = false;
      break;
    }
    std::vector<FolderEntry> entries;
    if (list_folder(folder + part, entries) == 0) {
      folder += part + "/";
      continue;
    }
    std::vector<std::string> near;
    if (list_folder(folder.empty() ? "." : folder, entries) != 0) return {};
    for (const FolderEntry& entry : entries)
      if (entry.is_folder) near.push_back(shown_path(entry.name));
    const std::string hint = did_you_mean(part, near);
    return fmt::format("; there is no folder `{}`{}", shown_file(folder + part), hint.empty() ? "" : "; " + hint);
  }
  const auto found = [](const std::string& other) {
    Glob glob(other);
    return glob.run() == 0 ? std::move(glob.found) : std::vector<std::string>();
  };
  const std::vector<std::string> beside = found(above + "*");
  const std::string ending = last.substr(std::min(last.rfind('.'), last.size()));
  std::map<std::string, size_t> endings;
  std::vector<std::string> names;
  for (const std::string& path : beside) {
    names.push_back(path.substr(path.rfind('/') + 1));
    const size_t dot = names.back().rfind('.');
    if (dot != std::string::npos) ++endings[names.back().substr(dot)];
  }
  if (named && !has_wildcard(last)) {
    const std::string hint = did_you_mean(last, names);
    return hint.empty() ? "" : "; " + hint;
  }
  const auto most = std::max_element(endings.begin(), endings.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (last == "*" + ending && !ending.empty() && most != endings.end())
    return fmt::format("; there {} *{}, none *{}",
                       most->second == 1 ? "is 1 file" : fmt::format("are {} files", most->second),
                       shown_path(most->first), ending);
  if (beside.empty()) {
    const size_t below = found(folder + "**/" + last).size();
    const std::string place = folder.empty() ? "." : shown_file(folder);
    if (below > 0)
      return fmt::format("; `{}` holds {} of them elsewhere: `{}`", place, below, shown_file(folder + "**/" + last));
    if (found(folder + "**").empty()) return fmt::format("; `{}` holds no file", place);
  }
  return {};
}

class FilesSource final : public Source {
 public:
  explicit FilesSource(std::vector<std::string> paths) {
    ends_.reserve(paths.size());
    for (const std::string& path : paths) {
      text_ += path;
      ends_.push_back(text_.size());
    }
  }
  uint64_t size() const override { return ends_.size(); }
  // No copy: the list outlives every chunk.
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    TensorRef& path = columns[0];
    if (!path.data) path.data = allocator.alloc(sizeof(StringRef));
    path.rank = 0;
    path.elem = Elem::Path;
    const std::string_view text = at(position);
    *static_cast<StringRef*>(path.data) = {text.data(), text.size()};
  }
  std::string describe(uint64_t position) const override { return shown_file(at(position)); }
  std::string fingerprint() const override {
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < size(); ++i) words.push_back(file_fingerprint(std::string(at(i))));
    return fmt::format("files {} {:016x}", size(), hash_words(words));
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> paths;
    for (uint64_t i = 0; i < size(); ++i) paths.emplace_back(at(i));
    return paths;
  }

 private:
  std::string_view at(uint64_t position) const {
    const uint64_t begin = position == 0 ? 0 : ends_[position - 1];
    return std::string_view(text_).substr(begin, ends_[position] - begin);
  }

  std::string text_;            // all paths, one behind the other
  std::vector<uint64_t> ends_;  // [i]: end of path i in text_
};

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  std::vector<std::string> found = matching_files(node, context, node.attrs.text("glob"), failure);
  if (found.empty()) return nullptr;
  return std::make_unique<FilesSource>(std::move(found));
}

void infer(const Node&, std::span<const StreamType>, StreamType& out, std::string&) {
  out = {};
  out.fields = {{"path", Type::scalar(Elem::Path)}};
}

}  // namespace

std::vector<std::string> matching_files(const Node& node, const OpenContext& context, std::string_view pattern,
                                        Failure& failure) {
  const std::string resolved = resolve_path(context.base_dir, pattern);
  Glob glob(resolved);
  if (const int error = glob.run()) {
    failure = cannot_read(glob.failed, error, node.origin);
    return {};
  }
  if (glob.found.empty())
    failure = {"R0400", fmt::format("no file matches `{}`{}", shown_file(resolved), why_nothing(resolved)),
               node.origin};
  return std::move(glob.found);
}

ZEPHON_OP_DEF(Files) = {
    .name = "files",
    .cls = OpClass::Source,
    .signature = "glob: string -> stream",
    .summary = "One sample for each file that matches, sorted by the bytes of its path: fields `path` and `bytes`.",
    .prose =
        "In a pattern `*`, `?` and `[a-z]` match within one name and never a leading dot; `**` matches any number of "
        "folders (links to folders are not followed there). Relative patterns start at the program's folder. A "
        "pattern without a match ends the run before it begins. A file is read only where `bytes` is needed.",
    .example = "files(\"examples/data/photos/*/*.jpg\")",
    .implicit = "bytes = read_file(path)",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
