#include "zephonc/graph_lines.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace zephon {
namespace {

using Lines = std::vector<std::string>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Calls `visit(i, depth)` for every byte outside of strings; brackets belong to the depth outside of them. Ends where
/// it returns false.
template <class Visit>
void walk(std::string_view text, Visit&& visit) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      continue;
    }
    if (c == ')' || c == ']') --depth;
    if (!visit(i, depth)) return;
    if (c == '(' || c == '[') ++depth;
  }
}

/// Pieces between `mark` outside of brackets.
Lines split(std::string_view text, std::string_view mark) {
  Lines out;
  size_t begin = 0;
  walk(text, [&](size_t i, int depth) {
    if (i >= begin && depth == 0 && text.substr(i, mark.size()) == mark) {
      out.emplace_back(text.substr(begin, i - begin));
      begin = i + mark.size();
    }
    return true;
  });
  out.emplace_back(text.substr(begin));
  return out;
}

class Folder {
 public:
  explicit Folder(size_t width) : width_(width) {}

  void fold(std::string_view text, size_t indent) {
    if (indent + text.size() <= width_ || !(chain(text, indent) || group(text, indent))) put(text, indent);
  }
  std::string take() {
    std::string out;
    for (const std::string& line : lines_) out += (out.empty() ? "" : "\n") + line;
    return out;
  }

 private:
  void put(std::string_view text, size_t indent) { lines_.push_back(std::string(indent, ' ').append(text)); }

  /// a.b(c).d(e): a line a call.
  bool chain(std::string_view text, size_t indent) {
    std::vector<size_t> cuts;
    // Behind a closing bracket that another line opened, calls go on.
    int outside = text.starts_with(')') || text.starts_with(']') ? -1 : 0;
    walk(text, [&](size_t i, int depth) {
      const bool call = i > 0 && depth == outside && text[i] == '.' && i + 1 < text.size() &&
                        std::isalpha(static_cast<unsigned char>(text[i + 1])) != 0 &&
                        (is_word(text[i - 1]) || text[i - 1] == ')' || text[i - 1] == ']');
      size_t end = i + 1;
      while (call && end < text.size() && is_word(text[end])) ++end;
      if (call && end < text.size() && text[end] == '(') cuts.push_back(i);
      return true;
    });
    if (cuts.empty()) return false;
    fold(text.substr(0, cuts[0]), indent);
    for (size_t k = 0; k < cuts.size(); ++k) {
      const size_t end = k + 1 < cuts.size() ? cuts[k + 1] : text.size();
      fold(text.substr(cuts[k], end - cuts[k]), indent + 2);
    }
    return true;
  }

  /// head(inside)rest, at the first bracket that holds much.
  bool group(std::string_view text, size_t indent) {
    constexpr size_t kMuch = 24;
    std::vector<size_t> open;
    size_t from = 0, to = 0;
    walk(text, [&](size_t i, int) {
      if (text[i] == '(' || text[i] == '[') open.push_back(i);
      if ((text[i] != ')' && text[i] != ']') || open.empty()) return true;
      from = open.back();
      open.pop_back();
      to = i;
      return !(open.empty() && to - from > kMuch);
    });
    if (!open.empty() || to - from <= kMuch) return false;
    put(text.substr(0, from + 1), indent);
    const Lines inside = split(text.substr(from + 1, to - from - 1), ", ");
    for (size_t i = 0; i < inside.size(); ++i) fold(inside[i] + (i + 1 < inside.size() ? "," : ""), indent + 4);
    fold(text.substr(to), indent);
    return true;
  }

  const size_t width_;
  Lines lines_;
};

}  // namespace

std::string folded(std::string_view text, size_t width) {
  Folder folder(width);
  folder.fold(text, 0);
  return folder.take();
}

std::string graph_lines(std::string_view tree) {
  constexpr std::string_view kBar = "│", kGlyphs[] = {"│", "├", "└", "─"};
  Lines steps;
  while (!tree.empty()) {
    const size_t end = std::min(tree.find('\n'), tree.size());
    std::string_view line = tree.substr(0, end);
    tree.remove_prefix(std::min(end + 1, tree.size()));
    size_t branches = 0;
    for (bool drawn = true; drawn;) {
      drawn = line.starts_with(' ');
      if (drawn) line.remove_prefix(1);
      for (std::string_view glyph : kGlyphs) {
        if (!line.starts_with(glyph)) continue;
        branches += glyph == kBar || glyph == "├";
        line.remove_prefix(glyph.size());
        drawn = true;
      }
    }
    std::string step;
    for (const std::string& part : split(line, "; ")) {
      const std::string text = folded((step.empty() ? "" : "; ") + part);
      for (std::string_view rest = text; !rest.empty();) {
        const size_t stop = std::min(rest.find('\n'), rest.size());
        step.append(branches * 2, ' ').append(rest.substr(0, stop)).append("\n");
        rest.remove_prefix(std::min(stop + 1, rest.size()));
      }
    }
    steps.push_back(std::move(step));
  }
  std::string out;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) out += *it;
  return out;
}

}  // namespace zephon
