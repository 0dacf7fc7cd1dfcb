// Documents that know where they may be broken, laid out within a width: the algorithm of Wadler and Lindig.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zephon {

struct DocNode;
using Doc = std::shared_ptr<const DocNode>;

struct DocNode {
  enum class Kind : uint8_t {
    Text,
    Line,      // `text` where the group is flat, else a new line
    Hard,      // a new line; every group around it is broken
    Blank,     // a new line below an empty one
    Concat,    // `parts`
    Group,     // `parts[0]`: flat if it fits
    Indent,    // `parts[0]`, new lines `amount` further in
    Align,     // `parts[0]`, new lines at the column where it begins
    Suffix,    // a comment at the end of the line, whatever follows; breaks like Hard
    IfBroken,  // `text` where the group is broken
  };
  Kind kind = Kind::Text;
  int amount = 0;
  bool breaks = false;  // holds Hard, Blank or Suffix
  std::string text;
  std::vector<Doc> parts;
};

Doc text(std::string text);
Doc line();       // a space, or a new line
Doc soft_line();  // nothing, or a new line
Doc hard_line();
Doc blank_line();
Doc concat(std::vector<Doc> parts);
Doc group(Doc inner);
Doc indent(int amount, Doc inner);
Doc align(Doc inner);
Doc suffix(std::string comment);
Doc soft_suffix(std::string comment);  // breaks nothing: for what stands last on its line either way
Doc if_broken(std::string text);

struct LaidLine {
  std::string code;
  std::string comment;
};
// Widths count code points. `column`: where the first line begins.
std::vector<LaidLine> lay_out(const Doc& doc, int width, int column = 0);

// Lines as text; comments of neighbouring lines stand below each other.
std::string join_lines(const std::vector<LaidLine>& lines);

int count_columns(std::string_view text);

}  // namespace zephon
