#include "ops/json_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "graph/value.h"
#include "ops/csv_row.h"
#include "ops/file_io.h"

namespace zephon {
namespace {

namespace ondemand = simdjson::ondemand;

// simdjson reads some bytes beyond the end: it works on a copy.
struct Buffer {
  std::string text;
  ondemand::parser parser;
  simdjson::dom::parser checker;
  void load(std::string_view from, std::string_view before = {}, std::string_view behind = {}) {
    text.assign(before);
    text.append(from);
    text.append(behind);
    size = text.size();
    text.append(simdjson::SIMDJSON_PADDING, ' ');
  }
  simdjson::padded_string_view view() const { return simdjson::padded_string_view(text.data(), size, text.size()); }
  size_t size = 0;
};

std::string_view trimmed(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

// The keys before the first list of all columns, as a tree.
struct KeyTree {
  std::string key;
  std::vector<KeyTree> below;
  std::vector<size_t> columns;  // whose values stand here
  std::vector<size_t> needing;  // columns that fail where this key is absent or null
  void add(const LeafPath& path, size_t step, size_t column) {
    if (step == path.steps.size() || path.steps[step].key.empty()) {
      columns.push_back(column);
      return;
    }
    auto child =
        std::find_if(below.begin(), below.end(), [&](const KeyTree& c) { return c.key == path.steps[step].key; });
    if (child == below.end()) child = below.insert(child, KeyTree{path.steps[step].key, {}, {}, {}});
    if (!path.may_miss_from(step)) child->needing.push_back(column);
    child->add(path, step + 1, column);
  }
  template <class F>
  void for_each_column(F&& f) const {
    for (size_t column : columns) f(column);
    for (const KeyTree& child : below) child.for_each_column(f);
  }
};

class Splitter {
 public:
  Splitter(std::string_view line, const char* copy, std::vector<std::string_view>& texts, std::string& error)
      : line_(line), copy_(copy), texts_(texts), error_(error) {}

  bool object(ondemand::object object, const KeyTree& tree, const std::string& prefix) {
    std::vector<uint8_t> seen(tree.below.size());
    for (auto entry : object) {
      std::string_view key;
      ondemand::value value;
      if (failed(entry.unescaped_key().get(key))) return false;
      size_t at = 0;
      while (at < tree.below.size() && tree.below[at].key != key) ++at;
      if (at == tree.below.size()) continue;
      const KeyTree& child = tree.below[at];
      if (seen[at]++) {
        error_ = fmt::format("the key `{}{}` stands twice in the object", prefix, child.key);
        return false;
      }
      if (failed(entry.value().get(value)) || !place(value, child, prefix)) return false;
    }
    for (size_t at = 0; at < tree.below.size(); ++at)
      if (!seen[at]) lack(tree.below[at]);
    return true;
  }

 private:
  bool failed(simdjson::error_code code) {
    if (code != simdjson::SUCCESS) error_ = fmt::format("the line is not JSON: {}", simdjson::error_message(code));
    return code != simdjson::SUCCESS;
  }
  void lack(const KeyTree& child) {
    for (size_t column : child.needing) texts_[column] = kLacking;
  }
  bool place(ondemand::value value, const KeyTree& child, const std::string& prefix) {
    ondemand::json_type type;
    if (failed(value.type().get(type))) return false;
    if (type == ondemand::json_type::null) {
      lack(child);
      return true;
    }
    if (!child.columns.empty()) {
      std::string_view raw;
      if (failed(simdjson::to_json_string(value).get(raw))) return false;
      raw = trimmed(raw);
      for (size_t column : child.columns)
        texts_[column] = line_.substr(static_cast<size_t>(raw.data() - copy_), raw.size());
    } else if (type == ondemand::json_type::object) {
      ondemand::object inner;
      if (failed(value.get_object().get(inner))) return false;
      return object(inner, child, prefix + child.key + ".");
    } else {
      child.for_each_column([&](size_t column) { texts_[column] = kNoObject; });
    }
    return true;
  }

  std::string_view line_;
  const char* copy_;
  std::vector<std::string_view>& texts_;
  std::string& error_;
};

Buffer& line_buffer() {
  thread_local Buffer buffer;
  return buffer;
}
Buffer& leaf_buffer() {
  thread_local Buffer buffer;
  return buffer;
}

const LeafPath& parsed(const std::string& path) {
  thread_local std::unordered_map<std::string, LeafPath> known;
  auto it = known.find(path);
  if (it == known.end()) {
    if (known.size() > 4096) known.clear();
    it = known.emplace(path, LeafPath::parse(path)).first;
  }
  return it->second;
}

}  // namespace

bool split_json_line(std::string_view line, const std::vector<std::string>& paths, std::vector<std::string_view>& texts,
                     std::string& error) {
  struct Known {
    std::vector<std::string> paths;
    KeyTree tree;
  };
  thread_local Known known;
  if (known.paths != paths) {
    known = {paths, {}};
    for (size_t i = 0; i < paths.size(); ++i) known.tree.add(LeafPath::parse(paths[i]), 0, i);
  }
  texts.assign(paths.size(), {});
  if (trimmed(line).empty()) {
    error = "the line is empty, and should be a JSON object";
    return false;
  }
  Buffer& buffer = line_buffer();
  buffer.load(line);
  // The lazy parser below looks only at what it passes; this one checks all of the line.
  simdjson::dom::element root;
  if (auto code = buffer.checker.parse(buffer.text.data(), buffer.size, false).get(root)) {
    error = fmt::format("the line is not JSON: {}", simdjson::error_message(code));
    if (code == simdjson::UTF8_ERROR) error = "the line is not UTF-8";
    if (code == simdjson::NUMBER_ERROR)
      error = "the line is not JSON: a number in it is malformed or beyond 64 bits (write such numbers as strings)";
    if (code == simdjson::TAPE_ERROR || code == simdjson::INCOMPLETE_ARRAY_OR_OBJECT ||
        code == simdjson::UNCLOSED_STRING)
      error += " (is the line cut off?)";
    return false;
  }
  if (!root.is_object()) {
    error = fmt::format("the line is not a JSON object: `{}`", shown_path(line.substr(0, 40)));
    return false;
  }
  ondemand::document document;
  ondemand::object object;
  auto code = buffer.parser.iterate(buffer.view()).get(document);
  if (!code) code = document.get_object().get(object);
  if (code) {
    error = fmt::format("the line is not JSON: {}", simdjson::error_message(code));
    return false;
  }
  return Splitter(line, buffer.text.data(), texts, error).object(object, known.tree, "");
}

bool read_json_scalar(std::string_view text, Elem elem, JsonScalar& out, std::string& storage, std::string& error) {
  auto wrong = [&] {
    error = fmt::format("is `{}`, not `{}`", shown_path(text.substr(0, 60)), elem_name(elem));
    return false;
  };
  if (is_string(elem)) {
    if (text.size() < 2 || text[0] != '"') return wrong();
    out.s = text.substr(1, text.size() - 2);
    if (out.s.find('\\') == std::string_view::npos) return true;
    Buffer& buffer = leaf_buffer();
    buffer.load(text);
    ondemand::document document;
    std::string_view content;
    auto code = buffer.parser.iterate(buffer.view()).get(document);
    if (!code) code = document.get_string().get(content);
    if (code) {
      error = fmt::format("holds a broken string: {}", simdjson::error_message(code));
      return false;
    }
    storage = content;
    out.s = storage;
    return true;
  }
  if (elem == Elem::Bool) {
    if (text != "true" && text != "false") return wrong();
    out.i = text == "true";
    return true;
  }
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return wrong();
  std::string ignored;
  const std::optional<Scalar> scalar = parse_element(elem, text, ignored);
  if (!scalar) return wrong();
  out.i = scalar->i;
  out.f = scalar->f;
  return true;
}

namespace {

class LeafReader {
 public:
  LeafReader(const LeafPath& path, Elem elem, const std::vector<int64_t>& shape, JsonLeaf& leaf, std::string& error)
      : path_(path), elem_(elem), leaf_(leaf), error_(error), element_(Value(elem, {})) {
    leaf_.data.clear();
    leaf_.strings.clear();
    leaf_.missing.clear();
    leaf_.lengths.assign(static_cast<size_t>(path.lists()), {});
    leaf_.shape = shape;
    leaf_.elements = 0;
    leaf_.absent = false;
  }

  void absent() {
    leaf_.absent = true;
    for (int64_t& extent : leaf_.shape) extent = std::max<int64_t>(extent, 0);
    if (path_.lists() == 0) zeros();
  }

  bool visit(ondemand::value value, size_t step, size_t depth) {
    ondemand::json_type type;
    if (failed(value.type().get(type))) return false;
    if (type == ondemand::json_type::null) return miss(step, "is null");
    if (step == path_.steps.size()) {
      leaf_.missing.push_back(0);
      ++leaf_.elements;
      return tensor(value, 0);
    }
    if (path_.steps[step].key.empty()) {
      ondemand::array array;
      if (type != ondemand::json_type::array) return wrong(value, "a list");
      if (failed(value.get_array().get(array))) return false;
      int64_t count = 0;
      for (auto entry : array) {
        ondemand::value item;
        if (failed(entry.get(item)) || !visit(item, step + 1, depth + 1)) return false;
        ++count;
      }
      leaf_.lengths[depth].push_back(count);
      return true;
    }
    if (type != ondemand::json_type::object) return wrong(value, "an object");
    ondemand::object object;
    if (failed(value.get_object().get(object))) return false;
    bool found = false;
    for (auto entry : object) {
      std::string_view key;
      ondemand::value item;
      if (failed(entry.unescaped_key().get(key))) return false;
      if (key != path_.steps[step].key) continue;
      if (found) {
        error_ = "stands twice in an object";
        return false;
      }
      found = true;
      if (failed(entry.value().get(item)) || !visit(item, step + 1, depth)) return false;
    }
    return found || miss(step, "is missing");
  }

 private:
  bool failed(simdjson::error_code code) {
    if (code != simdjson::SUCCESS) error_ = fmt::format("is not JSON: {}", simdjson::error_message(code));
    return code != simdjson::SUCCESS;
  }
  bool wrong(ondemand::value value, std::string_view wanted) {
    std::string_view raw;
    if (!failed(simdjson::to_json_string(value).get(raw)))
      error_ = fmt::format("holds `{}`, not {}", shown_path(trimmed(raw).substr(0, 60)), wanted);
    return false;
  }
  // An element in a list.
  bool miss(size_t step, std::string_view what) {
    if (!path_.may_miss_from(step == 0 ? 0 : step - 1) || path_.missing_depth() == 0) {
      error_ = fmt::format("{} in a list of values that are not optional", what);
      return false;
    }
    leaf_.missing.push_back(1);
    ++leaf_.elements;
    zeros();
    return true;
  }
  void zeros() {
    int64_t count = 1;
    for (int64_t extent : leaf_.shape) count *= std::max<int64_t>(extent, 0);
    if (is_string(elem_)) {
      leaf_.strings.resize(leaf_.strings.size() + static_cast<size_t>(count));
    } else {
      leaf_.data.resize(leaf_.data.size() + static_cast<size_t>(count) * elem_size(elem_));
    }
  }
  bool tensor(ondemand::value value, size_t dim) {
    if (dim == leaf_.shape.size()) return scalar(value);
    ondemand::json_type type;
    if (failed(value.type().get(type))) return false;
    if (type != ondemand::json_type::array) return wrong(value, "a list");
    ondemand::array array;
    if (failed(value.get_array().get(array))) return false;
    int64_t count = 0;
    for (auto entry : array) {
      ondemand::value item;
      if (failed(entry.get(item)) || !tensor(item, dim + 1)) return false;
      ++count;
    }
    int64_t& extent = leaf_.shape[dim];
    if (extent < 0) extent = count;
    if (extent == count) return true;
    error_ = fmt::format("holds {} values in dimension {}, not {}", count, dim, extent);
    return false;
  }
  bool scalar(ondemand::value value) {
    std::string_view raw;
    if (failed(simdjson::to_json_string(value).get(raw))) return false;
    JsonScalar out;
    if (!read_json_scalar(trimmed(raw), elem_, out, storage_, error_)) return false;
    if (is_string(elem_)) {
      leaf_.strings.emplace_back(out.s);
      return true;
    }
    element_.set(0, is_float(elem_) ? Scalar::of_float(elem_, out.f) : Scalar{elem_, out.i, 0, {}});
    leaf_.data.insert(leaf_.data.end(), element_.bytes().begin(), element_.bytes().end());
    return true;
  }

  const LeafPath& path_;
  Elem elem_;
  JsonLeaf& leaf_;
  std::string& error_;
  Value element_;
  std::string storage_;
};

}  // namespace

bool read_json_leaf(std::string_view text, const std::string& path_text, Elem elem, const std::vector<int64_t>& shape,
                    JsonLeaf& leaf, std::string& error) {
  const LeafPath& path = parsed(path_text);
  LeafReader reader(path, elem, shape, leaf, error);
  auto named = [&] {
    if (!error.empty()) error = fmt::format("the key `{}` {}", path.field(), error);
    return false;
  };
  if (text == kNoObject) {
    error = "lies in something that is not an object";
    return named();
  }
  if (text.empty() || text == kLacking) {
    if (text == kLacking || path.missing_depth() != 0) {
      error = "is missing or null; if it may be, declare its type with a `?`";
      return named();
    }
    reader.absent();
    return true;
  }
  size_t first = 0;
  while (first < path.steps.size() && !path.steps[first].key.empty()) ++first;
  thread_local Buffer buffer;
  // A document that is a scalar is no value in simdjson: it is read as a list of one.
  buffer.load(text, "[", "]");
  ondemand::document document;
  ondemand::value value;
  auto code = buffer.parser.iterate(buffer.view()).get(document);
  ondemand::array array;
  if (!code) code = document.get_array().get(array);
  if (!code) code = array.at(0).get(value);
  if (code) {
    error = fmt::format("is not JSON: {}", simdjson::error_message(code));
    return named();
  }
  return reader.visit(value, first, 0) || named();
}

}  // namespace zephon
