#include "frontend/layout.h"

#include <algorithm>

namespace zephon {
namespace {

using Kind = DocNode::Kind;

Doc make(Kind kind, std::string text, std::vector<Doc> parts = {}, int amount = 0) {
  auto node = std::make_shared<DocNode>();
  node->kind = kind;
  node->text = std::move(text);
  node->amount = amount;
  node->breaks = kind == Kind::Hard || kind == Kind::Blank || kind == Kind::Suffix;
  for (const Doc& part : parts) node->breaks |= part->breaks;
  node->parts = std::move(parts);
  return node;
}

struct Task {
  int indent;
  bool flat;
  const DocNode* doc;
};

// Whether what follows on this line fits into `room` columns. `rest`: what stands behind, up to its first new line.
bool fits(Task first, const std::vector<Task>& rest, int room) {
  std::vector<Task> stack = {first};
  size_t next = rest.size();
  while (room >= 0) {
    if (stack.empty()) {
      if (next == 0) return true;
      stack.push_back(rest[--next]);
      continue;
    }
    Task task = stack.back();
    stack.pop_back();
    const DocNode& doc = *task.doc;
    switch (doc.kind) {
      case Kind::Text:
        room -= count_columns(doc.text);
        break;
      case Kind::Line:
        if (!task.flat) return true;
        room -= count_columns(doc.text);
        break;
      case Kind::Hard:
      case Kind::Blank:
        return true;
      case Kind::Group:
        stack.push_back({task.indent, task.flat || !doc.breaks, doc.parts[0].get()});
        break;
      case Kind::Concat:
      case Kind::Indent:
      case Kind::Align:
        for (size_t i = doc.parts.size(); i-- > 0;) stack.push_back({task.indent, task.flat, doc.parts[i].get()});
        break;
      case Kind::IfBroken:
        if (!task.flat) room -= count_columns(doc.text);
        break;
      case Kind::Suffix:
        break;
    }
  }
  return false;
}

}  // namespace

Doc text(std::string words) { return make(Kind::Text, std::move(words)); }
Doc line() { return make(Kind::Line, " "); }
Doc soft_line() { return make(Kind::Line, ""); }
Doc hard_line() { return make(Kind::Hard, ""); }
Doc blank_line() { return make(Kind::Blank, ""); }
Doc concat(std::vector<Doc> parts) { return make(Kind::Concat, "", std::move(parts)); }
Doc group(Doc inner) { return make(Kind::Group, "", {std::move(inner)}); }
Doc indent(int amount, Doc inner) { return make(Kind::Indent, "", {std::move(inner)}, amount); }
Doc align(Doc inner) { return make(Kind::Align, "", {std::move(inner)}); }
Doc suffix(std::string comment) { return make(Kind::Suffix, std::move(comment)); }
Doc soft_suffix(std::string comment) {
  auto node = std::make_shared<DocNode>();
  node->kind = Kind::Suffix;
  node->text = std::move(comment);
  return node;
}
Doc if_broken(std::string words) { return make(Kind::IfBroken, std::move(words)); }

int count_columns(std::string_view words) {
  return static_cast<int>(
      std::count_if(words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<LaidLine> lay_out(const Doc& doc, int width, int column) {
  std::vector<LaidLine> lines(1);
  std::vector<Task> stack = {{0, false, doc.get()}};
  auto new_line = [&](int depth) {
    std::string& code = lines.back().code;
    code.erase(code.find_last_not_of(' ') + 1);
    lines.push_back({std::string(static_cast<size_t>(depth), ' '), ""});
    column = depth;
  };
  while (!stack.empty()) {
    Task task = stack.back();
    stack.pop_back();
    const DocNode& node = *task.doc;
    switch (node.kind) {
      case Kind::Text:
        lines.back().code += node.text;
        column += count_columns(node.text);
        break;
      case Kind::Line:
        if (task.flat) {
          lines.back().code += node.text;
          column += count_columns(node.text);
        } else {
          new_line(task.indent);
        }
        break;
      case Kind::Hard:
        new_line(task.indent);
        break;
      case Kind::Blank:
        new_line(0);
        new_line(task.indent);
        break;
      case Kind::Concat:
        for (size_t i = node.parts.size(); i-- > 0;) stack.push_back({task.indent, task.flat, node.parts[i].get()});
        break;
      case Kind::Group: {
        Task inner{task.indent, true, node.parts[0].get()};
        inner.flat = task.flat || (!node.breaks && fits(inner, stack, width - column));
        stack.push_back(inner);
        break;
      }
      case Kind::Indent:
        stack.push_back({task.indent + node.amount, task.flat, node.parts[0].get()});
        break;
      case Kind::Align:
        stack.push_back({column, task.flat, node.parts[0].get()});
        break;
      case Kind::IfBroken:
        if (!task.flat) {
          lines.back().code += node.text;
          column += count_columns(node.text);
        }
        break;
      case Kind::Suffix: {
        std::string& comment = lines.back().comment;
        if (!node.text.empty()) comment += (comment.empty() ? "" : " ") + node.text;
        break;
      }
    }
  }
  std::string& code = lines.back().code;
  code.erase(code.find_last_not_of(' ') + 1);
  return lines;
}

std::string join_lines(const std::vector<LaidLine>& lines) {
  constexpr int kFarthest = 80;  // a longer line keeps its comment to itself
  std::string out;
  for (size_t i = 0; i < lines.size();) {
    // A paragraph: up to an empty line.
    size_t end = i;
    int column = 0;
    for (; end < lines.size() && !(lines[end].code.empty() && lines[end].comment.empty()); ++end) {
      int width = count_columns(lines[end].code);
      if (!lines[end].comment.empty() && width <= kFarthest) column = std::max(column, width);
    }
    for (; i < end; ++i) {
      out += lines[i].code;
      if (!lines[i].comment.empty()) {
        int width = count_columns(lines[i].code);
        out += std::string(static_cast<size_t>(std::max(column - width, 0) + 2), ' ') + lines[i].comment;
      }
      out += "\n";
    }
    for (; i < lines.size() && lines[i].code.empty() && lines[i].comment.empty(); ++i)
      if (!out.empty() && !out.ends_with("\n\n")) out += "\n";
  }
  out.erase(out.find_last_not_of('\n') + 1);
  return out + "\n";
}

}  // namespace zephon
