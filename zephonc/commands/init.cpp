// zephonc init FOLDER: looks at the data, by content, and writes a first program for it; then checks and runs what it
// wrote. What it assumed stands in the program's comments and on the screen.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "ops/all_ops.h"
#include "ops/content_file.h"
#include "ops/csv_row.h"
#include "ops/jpeg_codec.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/rewrite.h"
#include "zephonc/session.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/tool_run.h"

namespace zephon {
namespace {

namespace fs = std::filesystem;

enum class Content : uint8_t { Picture, Table, JsonLines, Text, Array, Other };

struct Found {
  std::string path;                  ///< below the folder
  std::vector<std::string> folders;  ///< its parts without the name
  std::string name, extension;       ///< "3.jpg", ".jpg"; of `t.csv.gz` the extension is ".csv.gz"
  Content kind = Content::Other;
  uintmax_t size = 0;
  bool broken = false;  ///< empty or damaged, by what was looked at
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The first bytes of the content, decompressed.
std::string beginning(const std::string& path, size_t most) {
  ContentReader reader;
  std::string out;
  if (reader.open(path) != 0) return out;
  while (out.size() < most) {
    std::string_view piece = reader.peek().substr(0, most - out.size());
    if (piece.empty()) break;
    out += piece;
    reader.skip(piece.size());
  }
  return out;
}

std::vector<std::string> whole_lines(const std::string& text, bool complete) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == text.npos && !complete) break;
    std::string line = text.substr(at, end == text.npos ? end : end - at);
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
    at = end == text.npos ? text.size() : end + 1;
  }
  return out;
}

/// The fields of a row without line breaks, by RFC 4180.
std::vector<std::string> fields_of(const std::string& row) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"') {
      if (quoted && i + 1 < row.size() && row[i + 1] == '"')
        out.back() += row[i++];
      else
        quoted = !quoted;
    } else if (row[i] == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += row[i];
    }
  }
  return out;
}

bool is_word(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)));
  });
}

/// A name of a pipeline.
std::string name_for(const fs::path& folder) {
  std::string out;
  for (char c : folder.filename().string())
    out += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80 ? c : '_';
  static const std::set<std::string> kWords = {"zpl",    "pipeline", "let",  "fn",   "stream", "import",
                                               "filter", "select",   "drop", "if",   "else",   "enum",
                                               "and",    "or",       "not",  "true", "false",  "test"};
  return is_word(out) && !kWords.contains(out) ? out : "data";
}

/// As it stands between quotes in a program.
std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '{') out += '\\';
    out += c;
  }
  return out + "\"";
}

Content kind_of(const std::string& path, const std::string& extension) {
  const std::string head = beginning(path, 4096);
  if (head.starts_with("\xff\xd8\xff") || head.starts_with("\x89PNG\r\n\x1a\n")) return Content::Picture;
  if (head.starts_with("\x93NUMPY")) return Content::Array;
  if (head.empty() || head.find('\0') != head.npos) return Content::Other;
  // The cut may stand inside of a letter.
  auto bad = find_invalid_utf8(head);
  if (bad && (head.size() < 4096 || *bad + 4 < head.size())) return Content::Other;
  std::vector<std::string> lines = whole_lines(head, head.size() < 4096);
  if (lines.empty()) lines.push_back(head);
  if (lines[0].starts_with('{') && nlohmann::json::accept(lines[0])) return Content::JsonLines;
  const size_t columns = fields_of(lines[0]).size();
  const bool named = extension.starts_with(".csv");
  if ((named && columns >= 1) || (columns >= 2 && lines.size() >= 2)) {
    bool even = true;
    for (const std::string& line : lines) even = even && fields_of(line).size() == columns;
    if (named || even) return Content::Table;
  }
  return Content::Text;
}

class Init {
 public:
  explicit Init(const Options& options) : options_(options), folder_(options.file) {}

  int operator()() {
    std::error_code error;
    if (!fs::is_directory(folder_, error)) {
      say(fmt::format("zephonc: `{}` is no folder", options_.file));
      return kExitUsage;
    }
    out_ = options_.out.empty() ? "pipeline.zpl" : options_.out;
    if (fs::exists(out_, error)) return show_problem({"R0502", fmt::format("`{}` is there already", out_), {}});
    if (!out_.ends_with(".zpl") && form_of(out_) != Form::Yaml) {
      say(fmt::format("zephonc: `{}` should end in .zpl or .yaml", out_));
      return kExitUsage;
    }
    folder_ = fs::absolute(folder_, error).lexically_normal();
    if (!folder_.has_filename()) folder_ = folder_.parent_path();
    const fs::path base = fs::absolute(fs::path(out_), error).lexically_normal().parent_path();
    fs::path relative = folder_.lexically_relative(base);
    root_ = relative.empty() || *relative.begin() == ".." ? folder_.string() : relative.string();
    walk();
    std::string text = program();
    if (text.empty()) {
      say(fmt::format("zephonc: nothing in `{}` that this version reads: {}", options_.file, inventory()));
      return kExitRun;
    }
    int code = kExitOk;
    const std::optional<std::string> laid_out = rewrite("init.zpl", text, form_of(out_), code);
    if (!laid_out) return code;
    if (auto failure = write_file_atomically(out_, *laid_out)) return show_problem(*failure);
    return try_it();
  }

 private:
  void walk() {
    std::error_code error;
    constexpr size_t kMost = 2'000'000, kSniffed = 2000;
    fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && at != end && files_.size() < kMost; at.increment(error)) {
      const fs::path& path = at->path();
      if (path.filename().string().starts_with('.')) {
        if (at->is_directory(error)) at.disable_recursion_pending();
        continue;
      }
      if (!at->is_regular_file(error)) continue;
      Found found;
      fs::path below = path.lexically_relative(folder_);
      found.path = below.string();
      for (const fs::path& part : below.parent_path()) found.folders.push_back(part.string());
      found.name = path.filename().string();
      found.extension = path.extension().string();
      if (lower(found.extension) == ".gz" || lower(found.extension) == ".zst")
        found.extension = fs::path(found.name).stem().extension().string() + found.extension;
      found.size = at->file_size(error);
      files_.push_back(std::move(found));
    }
    std::sort(files_.begin(), files_.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
    // Of many files, some of each extension are looked into; an empty one tells nothing.
    std::map<std::string, std::map<Content, size_t>> seen;
    const size_t every = std::max<size_t>(1, files_.size() / kSniffed);
    std::map<std::string, size_t> counted;
    for (Found& file : files_) {
      if (file.size == 0) continue;
      const bool look = counted[file.extension]++ % every == 0;
      auto& kinds = seen[file.extension];
      if (look) {
        file.kind = kind_of((folder_ / file.path).string(), lower(file.extension));
        ++kinds[file.kind];
      } else {
        file.kind = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->first;
      }
    }
    // The ending says what a file was meant to be: one among pictures that is none is empty or damaged.
    static const std::set<std::string> kPictures = {".jpg", ".jpeg", ".png"};
    for (Found& file : files_) {
      auto& kinds = seen[file.extension];
      size_t most = 0;
      for (const auto& [kind, count] : kinds) most = std::max(most, count);
      const size_t pictures = kinds[Content::Picture];
      if (file.kind == Content::Picture || pictures == 0) continue;
      if (pictures < most && !kPictures.contains(lower(file.extension))) continue;
      file.kind = Content::Picture;
      file.broken = true;
    }
  }

  std::vector<const Found*> of(Content kind) const {
    std::vector<const Found*> out;
    for (const Found& file : files_) {
      if (file.kind == kind) out.push_back(&file);
    }
    return out;
  }

  std::string inventory() const {
    std::map<std::string, size_t> counts;
    for (const Found& file : files_) ++counts[file.extension.empty() ? "without extension" : file.extension];
    std::string out;
    for (const auto& [extension, count] : counts)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, extension);
    return out.empty() ? "it is empty" : out;
  }

  std::string program() {
    auto pictures = of(Content::Picture), tables = of(Content::Table), arrays = of(Content::Array),
         texts = of(Content::Text), json = of(Content::JsonLines);
    const size_t others = tables.size() + texts.size() + json.size() + arrays.size();
    if (!pictures.empty() && pictures.size() >= others) return of_pictures(pictures);
    if (!json.empty() && json.size() >= tables.size() && has_op("jsonl")) return of_json(json);
    if (!tables.empty()) return of_table(tables);
    if (!arrays.empty() && has_op("npy")) return of_arrays(arrays);
    if (!texts.empty() || !json.empty()) return of_text(texts.empty() ? json : texts);
    return {};
  }

  static bool has_op(std::string_view name) { return OpTable(all_ops()).find(name) != nullptr; }

  void assume(std::string what) { assumed_.push_back(std::move(what)); }

  std::string head(const std::string& what) {
    std::string out = fmt::format("zpl 1\n\n# Written by `zephonc init`: {}.\n", what);
    found_ = what;
    for (const std::string& line : assumed_) out += "# Assumed: " + line + ".\n";
    return out;
  }

  /// A pattern that matches the names of all these files, which have at least one extension.
  static std::string pattern_of(const std::vector<const Found*>& files) {
    std::set<std::string> extensions, lowered;
    for (const Found* file : files) {
      extensions.insert(file->extension);
      lowered.insert(lower(file->extension));
    }
    if (extensions.size() == 1) return "*" + *extensions.begin();
    if (lowered.size() == 1) {
      std::string out = "*";
      for (char c : *lowered.begin())
        out += std::isalpha(static_cast<unsigned char>(c))
                   ? fmt::format("[{}{}]", c, static_cast<char>(std::toupper(c)))
                   : std::string(1, c);
      return out;
    }
    return "*";
  }

  /// ", 2 of them empty, 1 no picture": of files that are to be pictures, or whose masks are.
  static std::string flaws(const std::vector<const Found*>& files) {
    size_t empty = 0, other = 0;
    for (const Found* file : files) {
      const bool broken = file->broken || file->kind != Content::Picture;
      empty += broken && file->size == 0 ? 1 : 0;
      other += broken && file->size > 0 ? 1 : 0;
    }
    std::string out;
    if (empty > 0) out += fmt::format(", {} of them empty", empty);
    if (other > 0) out += fmt::format(", {} {}damaged or no picture", other, empty > 0 ? "" : "of them ");
    return out;
  }

  /// As `files` lists them: by their names alone, so that the numbers are those of `scan`.
  std::vector<const Found*> matched(const std::string& pattern, size_t least, size_t most,
                                    const std::vector<std::string>& below) const {
    const bool any_case = pattern.find('[') != pattern.npos;
    std::string ending;
    for (size_t i = 1; i < pattern.size(); ++i) {
      ending += pattern[i] == '[' ? pattern[i + 1] : pattern[i];
      if (pattern[i] == '[') i += 3;
    }
    std::vector<const Found*> out;
    for (const Found& file : files_) {
      const size_t depth = file.folders.size();
      if (depth < least || depth > most || !std::equal(below.begin(), below.end(), file.folders.begin())) continue;
      if ((any_case ? lower(file.name) : file.name).ends_with(ending)) out.push_back(&file);
    }
    return out;
  }

  static constexpr const char* kDropBad =
      "  | on_error(skip)  # what does not decode is dropped and counted; max_errors=N sets a limit\n";

  static int64_t batch_for(size_t samples) {
    int64_t size = 32;
    while (size > 1 && static_cast<size_t>(size) * 2 > samples) size /= 2;
    return size;
  }

  // ---- pictures

  std::string of_pictures(std::vector<const Found*> pictures) {
    if (auto text = of_masks(pictures); !text.empty()) return text;
    // train/CLASS/x.jpg: the part that is trained on.
    static const std::set<std::string> kParts = {"train",      "training", "val",     "valid",
                                                 "validation", "test",     "testing", "eval"};
    std::set<std::string> parts;
    for (const Found* file : pictures) parts.insert(file->folders.empty() ? "" : file->folders[0]);
    size_t above = 0;
    bool split = !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                               [](const std::string& p) { return kParts.contains(lower(p)); });
    if (split) {
      std::string train = *parts.begin();
      for (const std::string& part : parts) {
        if (lower(part).starts_with("train")) train = part;
      }
      std::erase_if(pictures, [&](const Found* f) { return f->folders[0] != train; });
      root_ += "/" + train;
      above = 1;
      assume(fmt::format("`root` is the folder `{}`; set root=... for the others ({})", train, fmt::join(parts, ", ")));
    }
    std::set<std::string> classes;
    bool by_class = true;
    for (const Found* file : pictures) {
      if (file->folders.size() != above + 1)
        by_class = false;
      else
        classes.insert(file->folders[above]);
    }
    by_class = by_class && classes.size() >= 2;
    bool flat =
        std::all_of(pictures.begin(), pictures.end(), [&](const Found* f) { return f->folders.size() == above; });
    const std::string pattern = pattern_of(pictures);
    constexpr size_t kAnyDepth = 1'000'000;
    pictures = matched(pattern, by_class ? above + 1 : above,
                       by_class ? above + 1
                       : flat   ? above
                                : kAnyDepth,
                       split ? std::vector<std::string>{pictures[0]->folders[0]} : std::vector<std::string>());
    const int64_t batch = batch_for(pictures.size());
    const std::string what = (by_class ? fmt::format("{} pictures in {} folders", pictures.size(), classes.size())
                                       : fmt::format("{} pictures", pictures.size())) +
                             flaws(pictures);
    if (by_class) {
      std::vector<std::string> shown(classes.begin(), classes.end());
      if (shown.size() > 8) shown.resize(8), shown.emplace_back("...");
      assume(
          fmt::format("each folder is a class, and a label its place in the sorted list: {}", fmt::join(shown, ", ")));
    } else {
      assume("no labels: the folders do not name classes");
    }
    assume(fmt::format("pictures become {} x {}, scaled by the mean and deviation of ImageNet (yours: zephonc stats)",
                       224, 224));
    std::string out = head(what);
    out += fmt::format("pipeline {}(root: path = {}, size: int = 224, mode: enum(train, eval) = train) {{\n",
                       name_for(folder_), quoted_text(root_));
    if (by_class) out += "  let classes = dirs(root)                     # the class folders, sorted by name\n";
    out += fmt::format("  files(\"{{root}}/{}\")  # one sample for each file: path, bytes\n", by_class ? "*/" + pattern
                                                                                              : flat   ? pattern
                                                                                                     : "**/" + pattern);
    if (!split) out += split_line(by_class || !flat);
    if (by_class) out += "  | label = classes.index_of(path.parent.name)\n";
    out +=
        "  | if mode == train { shuffle() }              # the whole data set, anew in each epoch\n"
        "  | image = bytes.decode_image(mode=\"rgb\")      # u8[h, w, 3]\n"
        "  | if mode == train {\n"
        "      image = image.random_resized_crop(size, size).random_flip()\n"
        "    } else {\n"
        "      image = image.resize(size, size)\n"
        "    }\n"
        "  | image = image.normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]).to_chw()\n";
    out += by_class ? "  | select image, label\n" : "  | select image\n";
    out += kDropBad;
    out += fmt::format("  | batch({})\n}}\n", batch);
    return out;
  }

  /// How a part is kept aside, for who needs it: by the name, so that a picture stays in its part.
  static std::string split_line(bool in_folders) {
    return fmt::format(
        "  # To keep a part aside, add the parameter `part: enum(train, val) = train` and this step:\n"
        "  # | split(part, by={}, train=0.9, val=0.1)\n",
        in_folders ? "\"{path.parent.name}/{path.name}\"" : "path.name");
  }

  /// Two folders of pictures with the same names: pictures and their masks.
  std::string of_masks(const std::vector<const Found*>& pictures) {
    std::map<std::string, std::map<std::string, const Found*>> folders;  // folder -> stem -> file
    for (const Found* file : pictures) {
      folders[fmt::format("{}", fmt::join(file->folders, "/"))][fs::path(file->name).stem().string()] = file;
    }
    if (folders.size() != 2) return {};
    static constexpr std::array kWords = {"mask", "label", "seg", "annot", "target", "gt"};
    auto names_masks = [&](const std::string& folder) {
      return std::any_of(kWords.begin(), kWords.end(),
                         [&](const char* word) { return lower(folder).find(word) != folder.npos; });
    };
    auto first = folders.begin(), second = std::next(first);
    if (names_masks(first->first) == names_masks(second->first)) return {};
    const auto& [image_folder, images] = names_masks(first->first) ? *second : *first;
    const auto& [mask_folder, masks] = names_masks(first->first) ? *first : *second;
    if (image_folder.empty() || mask_folder.empty()) return {};
    std::vector<const Found*> image_files, mask_files, broken;
    int64_t least = INT64_MAX;
    for (const auto& [stem, file] : images) {
      if (!masks.contains(stem)) return {};
      broken.push_back(file->broken ? file : masks.at(stem));
      image_files.push_back(file);
      mask_files.push_back(masks.at(stem));
      if (image_files.size() > 200) continue;
      const std::string bytes = beginning((folder_ / file->path).string(), 1 << 20);
      JpegInfo info;
      std::string error;
      if (probe_jpeg({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, info, error))
        least = std::min({least, info.height, info.width});
    }
    const std::string image_pattern = pattern_of(image_files), mask_pattern = pattern_of(mask_files);
    if (image_pattern.find_first_of("[") != image_pattern.npos || mask_pattern.find('[') != mask_pattern.npos ||
        image_pattern == "*" || mask_pattern == "*")
      return {};
    const int64_t size =
        least == INT64_MAX ? 256 : std::clamp<int64_t>(least / 32 * 32, std::min<int64_t>(least, 32), 256);
    assume(fmt::format("the mask of {}/x{} is {}/x{}", image_folder, image_pattern.substr(1), mask_folder,
                       mask_pattern.substr(1)));
    assume("a mask is true where it is brighter than 127");
    assume(fmt::format("crops of {} x {}, which fit into every picture that was looked at", size, size));
    std::string out = head(fmt::format("{} pictures with masks{}", image_files.size(), flaws(broken)));
    std::string to_mask = fmt::format("path.replace({}, {})", quoted_text("/" + image_folder + "/"),
                                      quoted_text("/" + mask_folder + "/"));
    if (image_pattern != mask_pattern)
      to_mask +=
          fmt::format(".replace({}, {})", quoted_text(image_pattern.substr(1)), quoted_text(mask_pattern.substr(1)));
    return out + fmt::format(
                     "pipeline {}(root: path = {}, size: int = {}) {{\n"
                     "  files(\"{{root}}/{}/{}\")\n{}"
                     "  | shuffle()                                  # the whole data set, anew in each epoch\n"
                     "  | image = bytes.decode_image(mode=\"rgb\")     # u8[h, w, 3]\n"
                     "  | mask = read_file({}).decode_image(mode=\"gray\")\n"
                     "  | box = image.random_crop_box(size, size)    # one box and one coin for both\n"
                     "  | turn = coin()\n"
                     "  | image = image.crop(box).flip(turn).normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, "
                     "0.225]).to_chw()\n"
                     "  | mask = mask.crop(box).flip(turn)\n"
                     "  | mask = u8(mask[:, :, 0] > 127)\n"
                     "  | select image, mask\n{}"
                     "  | batch({})\n}}\n",
                     name_for(folder_), quoted_text(root_), size, image_folder, image_pattern, split_line(false),
                     to_mask, kDropBad, std::min<int64_t>(8, batch_for(image_files.size())));
  }

  // ---- tables

  struct Column {
    std::string name;
    bool whole = true, number = true, missing = false;
    std::set<std::string> values;  // at most kMostClasses + 1
  };
  static constexpr size_t kMostClasses = 100;

  static void look_at(Column& column, const std::string& text) {
    if (text.empty()) column.missing = true;
    int64_t whole = 0;
    double number = 0;
    const char* end = text.data() + text.size();
    auto is = [&](auto& value) {
      auto [stop, bad] = std::from_chars(text.data(), end, value);
      return bad == std::errc() && stop == end;
    };
    column.whole = column.whole && is(whole);
    column.number = column.number && is(number);
    if (column.values.size() <= kMostClasses) column.values.insert(text);
  }

  std::string of_table(const std::vector<const Found*>& tables) {
    const Found* table = *std::max_element(tables.begin(), tables.end(), smaller);
    constexpr size_t kRead = 64 << 20;
    const std::string text = beginning((folder_ / table->path).string(), kRead);
    std::vector<std::string> lines = whole_lines(text, text.size() < kRead);
    if (lines.empty()) return {};
    if (lines[0].starts_with("\xef\xbb\xbf")) lines[0].erase(0, 3);
    std::vector<Column> columns;
    std::vector<std::string> first = fields_of(lines[0]);
    bool header = std::all_of(first.begin(), first.end(), is_word) &&
                  std::set<std::string>(first.begin(), first.end()).size() == first.size();
    if (!header && std::none_of(first.begin(), first.end(), [](const std::string& f) {
          return !f.empty() && std::isdigit(static_cast<unsigned char>(f[0]));
        }))
      assume("the first row is data: it has words that cannot be names of fields");
    for (size_t i = 0; i < first.size(); ++i) {
      Column column;
      column.name = header ? first[i] : fmt::format("c{}", i);
      columns.push_back(std::move(column));
    }
    size_t rows = 0, odd = 0;
    for (size_t i = header; i < lines.size(); ++i) {
      if (lines[i].empty() && columns.size() > 1) continue;
      std::vector<std::string> fields = fields_of(lines[i]);
      if (fields.size() != columns.size()) {
        ++odd;
        continue;
      }
      ++rows;
      for (size_t c = 0; c < columns.size(); ++c) look_at(columns[c], fields[c]);
    }
    if (rows == 0) return {};
    if (odd > 0)
      assume(fmt::format("{} rows with another number of fields are dropped (zephonc scan lists them)", odd));
    static const std::set<std::string> kLabels = {"label", "labels",   "class",   "target",
                                                  "y",     "category", "species", "cultivar"};
    const Column* label = nullptr;
    for (const Column& column : columns) {
      if (kLabels.contains(lower(column.name))) label = &column;
    }
    if (label == nullptr && columns.size() > 1 &&
        columns.back().values.size() <= std::min<size_t>(kMostClasses, rows / 2) &&
        (columns.back().whole || !columns.back().number))
      label = &columns.back();
    std::string schema, features, missing;
    for (const Column& column : columns) {
      const bool is_label = label == &column;
      schema += fmt::format("{}{}: {}", schema.empty() ? "" : ", ", column.name,
                            column.whole    ? "i64"
                            : column.number ? "f64"
                                            : "str");
      if (column.number && !is_label) features += fmt::format("{}f32({})", features.empty() ? "" : ", ", column.name);
      if (column.missing) missing += (missing.empty() ? "" : ", ") + column.name;
    }
    assume(fmt::format("types as in {} rows: a later row that does not fit is bad", rows));
    if (!missing.empty()) assume(fmt::format("columns with empty fields are text: {}", missing));
    if (label != nullptr) assume(fmt::format("`{}` is the label", label->name));
    if (tables.size() > 1) assume(fmt::format("the largest of {} tables", tables.size()));
    const bool classes = label != nullptr && !label->number && label->values.size() <= kMostClasses;
    const std::string file = root_ + "/" + table->path;
    std::string out = head(fmt::format("{} rows of {} columns in {}{}", rows + odd, columns.size(), table->path,
                                       odd > 0 ? fmt::format(", {} of them bad", odd) : ""));
    out += fmt::format("pipeline {}(file: path = {}, mode: enum(train, eval) = train) {{\n",
                       name_for(fs::path(table->name).stem()), quoted_text(file));
    if (classes) {
      std::string list;
      for (const std::string& value : label->values) list += (list.empty() ? "" : ", ") + quoted_text(value);
      out += fmt::format("  let classes = [{}]\n", list);
    }
    out += fmt::format("  csv(file, columns={{{}}}{})\n", schema, header ? "" : ", header=false");
    out += "  | if mode == train { shuffle() }  # the whole table, anew in each epoch\n";
    std::vector<std::string> kept;
    if (!features.empty()) {
      out += fmt::format("  | features = [{}]\n", features);
      kept.emplace_back("features");
    }
    if (label != nullptr) {
      const std::string name = label->name == "label" && classes ? "target" : "label";
      if (classes)
        out += fmt::format("  | {} = classes.index_of({})\n", name, label->name);
      else if (label->name != "label")
        out += fmt::format("  | label = {}\n", label->name);
      kept.push_back(classes ? name : "label");
    }
    for (const Column& column : columns) {
      if (!column.number && &column != label && features.empty()) kept.push_back(column.name);
    }
    if (!kept.empty()) out += fmt::format("  | select {}\n", fmt::join(kept, ", "));
    if (odd > 0) out += "  | on_error(skip)  # drops the rows that do not fit, and counts them\n";
    return out + fmt::format("  | batch({})\n}}\n", batch_for(rows));
  }

  // ---- text, json lines, arrays

  static std::string place_of(const std::vector<const Found*>& files) {
    const bool flat = std::all_of(files.begin(), files.end(), [](const Found* f) { return f->folders.empty(); });
    return (flat ? "" : "**/") + pattern_of(files);
  }

  std::string of_text(const std::vector<const Found*>& files) {
    assume("each line is a sample");
    return head(fmt::format("{} files of text", files.size())) +
           fmt::format(
               "pipeline {}(root: path = {}, mode: enum(train, eval) = train) {{\n"
               "  text_lines(\"{{root}}/{}\")  # path, line, text\n"
               "  | if mode == train {{ shuffle() }}\n  | select text\n  | batch(32)\n}}\n",
               name_for(folder_), quoted_text(root_), place_of(files));
  }

  /// Keys that every line has with one scalar type, from the first 16 MB of the largest file.
  std::string of_json(const std::vector<const Found*>& files) {
    const Found* largest = *std::max_element(files.begin(), files.end(), smaller);
    constexpr size_t kRead = 16 << 20;
    const std::string text = beginning((folder_ / largest->path).string(), kRead);
    std::map<std::string, std::set<std::string>> types;
    std::map<std::string, size_t> counts;
    size_t rows = 0;
    for (const std::string& line : whole_lines(text, text.size() < kRead)) {
      const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
      if (!object.is_object()) continue;
      ++rows;
      for (const auto& [key, value] : object.items()) {
        ++counts[key];
        types[key].insert(value.is_boolean()          ? "bool"
                          : value.is_number_integer() ? "i64"
                          : value.is_number()         ? "f64"
                          : value.is_string()         ? "str"
                                                      : "");
      }
    }
    std::string schema, left_out;
    std::vector<std::string> kept;
    for (auto& [key, found] : types) {
      if (found == std::set<std::string>{"f64", "i64"}) found = {"f64"};
      if (counts[key] != rows || found.size() != 1 || found.begin()->empty() || !is_word(key)) {
        left_out += (left_out.empty() ? "" : ", ") + key;
        continue;
      }
      schema += fmt::format("{}{}: {}", schema.empty() ? "" : ", ", key, *found.begin());
      kept.push_back(key);
    }
    if (kept.empty()) return of_text(files);
    assume(fmt::format("types as in {} lines: a later line that does not fit is bad", rows));
    if (!left_out.empty()) assume("keys that are not in every line with one scalar type are left out: " + left_out);
    return head(fmt::format("{} files of JSON lines", files.size())) +
           fmt::format(
               "pipeline {}(root: path = {}, mode: enum(train, eval) = train) {{\n"
               "  jsonl(\"{{root}}/{}\", schema={{{}}})\n"
               "  | if mode == train {{ shuffle() }}\n  | select {}\n  | batch({})\n}}\n",
               name_for(folder_), quoted_text(root_), place_of(files), schema, fmt::join(kept, ", "), batch_for(rows));
  }

  /// The largest array; its first axis counts the samples.
  std::string of_arrays(const std::vector<const Found*>& files) {
    const Found* largest = *std::max_element(files.begin(), files.end(), smaller);
    const std::string bytes = beginning((folder_ / largest->path).string(), 4096);
    auto part = [&](const std::string& key, char open, char close) {
      size_t at = bytes.find(key);
      size_t begin = at == bytes.npos ? at : bytes.find(open, at + key.size());
      size_t end = begin == bytes.npos ? begin : bytes.find(close, begin + 1);
      return end == bytes.npos ? std::string() : bytes.substr(begin + 1, end - begin - 1);
    };
    static const std::map<std::string, std::string> kTypes = {
        {"|b1", "bool"}, {"|u1", "u8"},  {"|i1", "i8"},  {"<u2", "u16"}, {"<i2", "i16"},
        {"<i4", "i32"},  {"<i8", "i64"}, {"<f2", "f16"}, {"<f4", "f32"}, {"<f8", "f64"}};
    auto type = kTypes.find(part("'descr':", '\'', '\''));
    std::vector<std::string> shape;
    for (std::string& extent : fields_of(part("'shape':", '(', ')'))) {
      std::erase(extent, ' ');
      if (!extent.empty()) shape.push_back(extent);
    }
    if (type == kTypes.end() || shape.empty()) return {};
    std::string stem = fs::path(largest->name).stem().string(), field = is_word(stem) ? stem : "x", rows = shape[0];
    shape.erase(shape.begin());
    if (files.size() > 1) assume(fmt::format("the largest of {} arrays", files.size()));
    assume("the first axis counts the samples");
    return head(fmt::format("an array of {} samples, {}", rows, largest->path)) +
           fmt::format(
               "pipeline {}(file: path = {}, mode: enum(train, eval) = train) {{\n"
               "  npy(file, columns={{{}: {}{}}})\n"
               "  | if mode == train {{ shuffle() }}\n  | batch({})\n}}\n",
               name_for(folder_), quoted_text(root_ + "/" + largest->path), field, type->second,
               shape.empty() ? "" : fmt::format("[{}]", fmt::join(shape, ", ")),
               batch_for(static_cast<size_t>(std::atoll(rows.c_str()))));
  }

  static bool smaller(const Found* a, const Found* b) { return a->size < b->size; }

  // ---- what was written

  class First : public Sink {
   public:
    bool deliver(const RunRecord& record) override {
      for (const RunRecord::Field& field : record.fields) {
        std::string shape;
        for (int32_t d = 0; d < field.value.rank; ++d)
          shape += (d > 0 ? ", " : "") + std::to_string(field.value.shape[d]);
        text += fmt::format("{}{}: {}[{}]", text.empty() ? "" : ", ", *field.name, elem_name(field.value.elem), shape);
      }
      return true;
    }
    std::string text;
  };

  int try_it() const {
    Options options;
    options.command = "run";
    options.file = out_;
    options.progress = "never";
    say(fmt::format("found {}", found_));
    for (const std::string& line : assumed_) say("assumed: " + line);
    Session session(options);
    if (auto code = session.load()) return *code;
    ToolRun run(session);
    First first;
    RunOptions how;
    how.take = 1;
    std::mutex mutex;
    std::optional<RunFailure> dropped;
    how.on_error = [&](const RunFailure& bad, const Node&, const std::string&) {
      std::lock_guard lock(mutex);
      if (!dropped) dropped = bad;
    };
    RunResult result;
    if (auto code = run(session.graph(), how, first, result)) return *code;
    Failure failure;
    auto sources = open_sources(session.graph(), {session.base_dir()}, failure);
    if (sources == nullptr) {
      session.show_failure(failure);
      return kExitRun;
    }
    if (int code = run.end(result, *sources); code != kExitOk) {
      say(fmt::format("`{}` is written, and its first batch fails: `zephonc scan {}` lists what is bad", out_, out_));
      return code;
    }
    if (result.records == 0) {
      if (dropped) session.show_failure(*dropped, sources->describe(dropped->id));
      say(fmt::format("`{}` is written, and none of its samples is good: `zephonc scan {}` lists what is bad", out_,
                      out_));
      return kExitRun;
    }
    say(fmt::format("first batch: {}\nnext: zephonc check {}; zephonc scan {}; zephonc run {}", first.text, out_, out_,
                    out_));
    return print(out_ + "\n");
  }

  const Options& options_;
  fs::path folder_;
  std::string out_, root_, found_;
  std::vector<Found> files_;
  std::vector<std::string> assumed_;
};

}  // namespace

int command_init(const Options& options) { return Init(options)(); }

}  // namespace zephon
