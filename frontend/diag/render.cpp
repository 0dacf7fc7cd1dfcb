// The caret picture. Lines that carry labels are printed with their numbers; below each stand its markers, and each
// text to the right of, or hanging under, its marker:
//
//    4 |   | filter s > x
//      |            -   ^ this is `f32`
//      |            |
//      |            `s` becomes `f32` here
//
// A label over several lines marks its first line to the end and its last line, where the text stands.
#include <algorithm>
#include <map>

#include "frontend/diag/diagnostic.h"
#include "frontend/diag/picture.h"

namespace zephon {
namespace {

constexpr size_t kTabWidth = 4;
constexpr size_t kMaxLineWidth = 160;  // wider lines are cut around their labels

// One source line as shown: printable text, and the display column of every byte (one more for the end).
struct ShownLine {
  std::string text;
  std::vector<size_t> column_of_byte;
  std::vector<size_t> text_offset_of_column;  // where a column begins in `text`
};

// Columns a code point takes on a terminal (East Asian wide and emoji blocks: two).
size_t width_of(uint32_t c) {
  if (c < 0x300) return 1;
  if ((c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200F) || c == 0xFEFF) return 0;
  bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
              (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
              (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

ShownLine show_line(std::string_view line) {
  ShownLine shown;
  auto put = [&](std::string_view bytes, size_t width) {
    for (size_t i = 0; i < width; ++i) shown.text_offset_of_column.push_back(shown.text.size());
    shown.text += bytes;
  };
  for (size_t i = 0; i < line.size();) {
    size_t column = shown.text_offset_of_column.size();
    unsigned char first = static_cast<unsigned char>(line[i]);
    size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    length = std::min(length, line.size() - i);
    if (first == '\t') {
      for (size_t n = kTabWidth - column % kTabWidth; n > 0; --n) put(" ", 1);
      length = 1;
    } else if (first < 0x20 || first == 0x7F || find_invalid_utf8(line.substr(i, length))) {
      put("\xEF\xBF\xBD", 1);  // what cannot be shown
      length = 1;
    } else {
      uint32_t c = length == 1 ? first : first & (0xFFu >> (length + 1));
      for (size_t k = 1; k < length; ++k) c = c << 6 | (static_cast<unsigned char>(line[i + k]) & 0x3Fu);
      put(line.substr(i, length), width_of(c));
    }
    for (size_t k = 0; k < length; ++k) shown.column_of_byte.push_back(column);
    i += length;
  }
  shown.column_of_byte.push_back(shown.text_offset_of_column.size());
  shown.text_offset_of_column.push_back(shown.text.size());
  return shown;
}

struct Marker {
  size_t begin, end;  // display columns; end > begin
  bool primary;
  std::string_view text;
};

class Picture {
 public:
  Picture(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options)
      : diagnostic_(diagnostic), sources_(sources), options_(options) {}

  std::string draw() {
    const KindInfo& kind = info(diagnostic_.kind);
    static constexpr std::string_view kWords[] = {"error", "warning", "error", "bug"};
    static constexpr std::string_view kColours[] = {"1;31", "1;33", "1;31", "1;35"};
    strong_ = kColours[static_cast<size_t>(kind.severity)];
    out_ += paint(fmt::format("{}[{}]", kWords[static_cast<size_t>(kind.severity)], kind.code), strong_);
    out_ += paint(": " + diagnostic_.message, "1") + "\n";
    draw_places();
    for (const std::string& note : diagnostic_.notes) trailer("note", note);
    for (const std::string& hint : diagnostic_.hints) trailer("hint", hint);
    if (options_.explain) trailer("more", fmt::format("zephonc explain {}", kind.code));
    return std::move(out_);
  }

  std::string draw(std::string_view headline, const std::vector<std::pair<std::string, std::string>>& notes) {
    strong_ = "1;36";
    out_ += paint(headline, "1") + "\n";
    draw_places();
    for (const auto& [word, text] : notes) trailer(word, text);
    return std::move(out_);
  }

 private:
  void draw_places() {
    place_labels();
    bool first = true;
    for (FileId file : files_) {
      uint32_t at = anchor(file);
      Position p = sources_.position(file, at);
      out_ += std::string(number_width_ + 1, ' ') + paint(first ? "-->" : ":::", "1;34") +
              fmt::format(" {}:{}:{}\n", sources_.name(file), p.line, p.column);
      draw_file(file);
      first = false;
    }
    if (!files_.empty()) gutter_line();
  }

  void trailer(std::string_view word, std::string_view text) {
    std::string indent(number_width_ + 2, ' ');
    // Later lines of a text stand under its first.
    std::string aligned;
    for (char c : text) aligned += c == '\n' ? "\n" + indent + std::string(word.size() + 4, ' ') : std::string(1, c);
    out_ += indent + paint("=", "1;34") + " " + paint(fmt::format("{}:", word), "1") + " " + aligned + "\n";
  }

  std::string paint(std::string_view text, std::string_view colour) const {
    return options_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : std::string(text);
  }

  uint32_t anchor(FileId file) const {
    if (diagnostic_.primary.span.file == file) return diagnostic_.primary.span.begin;
    for (const Label& label : diagnostic_.secondary)
      if (label.span.file == file) return label.span.begin;
    return 0;
  }

  void place_labels() {
    uint32_t last_line = 0;
    auto place = [&](const Label& label, bool primary) {
      if (!label.span.valid()) return;
      FileId file = label.span.file;
      if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
      auto size = static_cast<uint32_t>(sources_.text(file).size());
      uint32_t begin = std::min(label.span.begin, size), end = std::min(std::max(label.span.end, begin), size);
      uint32_t first = sources_.position(file, begin).line;
      uint32_t last = end > begin ? sources_.position(file, end - 1).line : first;
      if (first == last) {
        mark(file, first, begin, end, primary, label.text);
      } else {
        mark(file, first, begin, sources_.line_begin(file, first) + line_size(file, first), primary, {});
        std::string_view text = sources_.line_text(file, last);
        size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
        mark(file, last, sources_.line_begin(file, last) + static_cast<uint32_t>(indent), end, primary, label.text);
      }
      last_line = std::max(last_line, last);
    };
    place(diagnostic_.primary, true);
    for (const Label& label : diagnostic_.secondary) place(label, false);
    number_width_ = std::to_string(last_line).size();
  }

  uint32_t line_size(FileId file, uint32_t line) const {
    return static_cast<uint32_t>(sources_.line_text(file, line).size());
  }

  void mark(FileId file, uint32_t line, uint32_t begin, uint32_t end, bool primary, std::string_view text) {
    auto [it, inserted] = shown_[file.value].try_emplace(line);
    if (inserted) it->second.line = show_line(sources_.line_text(file, line));
    const ShownLine& shown = it->second.line;
    auto column = [&](uint32_t offset) {
      size_t byte = std::min<size_t>(offset - sources_.line_begin(file, line), shown.column_of_byte.size() - 1);
      return shown.column_of_byte[byte];
    };
    size_t from = column(begin);
    it->second.markers.push_back({from, std::max(column(end), from + 1), primary, text});
  }

  void gutter_line(std::string_view after = {}) {
    out_ += std::string(number_width_ + 2, ' ') + paint("|", "1;34");
    if (!after.empty()) out_ += " " + std::string(after);
    out_ += "\n";
  }

  void draw_file(FileId file) {
    gutter_line();
    uint32_t previous = 0;
    for (auto& [line, entry] : shown_[file.value]) {
      if (previous != 0 && line == previous + 2)
        draw_line(previous + 1, show_line(sources_.line_text(file, previous + 1)), {});
      else if (previous != 0 && line > previous + 2)
        out_ += paint("...", "1;34") + "\n";
      draw_line(line, entry.line, std::move(entry.markers));
      previous = line;
    }
  }

  void draw_line(uint32_t number, const ShownLine& line, std::vector<Marker> markers) {
    size_t width = line.text_offset_of_column.size() - 1;
    size_t from = 0, to = width;
    if (width > kMaxLineWidth) {
      // A window that begins a little before the leftmost label, unless the primary one would lie beyond it.
      size_t left = markers.empty() ? 0 : width;
      for (const Marker& m : markers) left = std::min(left, m.begin);
      for (const Marker& m : markers)
        if (m.primary && m.begin - left > kMaxLineWidth / 2 && m.begin >= kMaxLineWidth - kMaxLineWidth / 8)
          left = m.begin;
      from = left > kMaxLineWidth / 2 ? left - kMaxLineWidth / 4 : 0;
      to = std::min(width, from + kMaxLineWidth);
    }
    std::string_view text(line.text);
    text = text.substr(line.text_offset_of_column[from],
                       line.text_offset_of_column[to] - line.text_offset_of_column[from]);
    std::string shown = fmt::format("{}{}{}", from > 0 ? "..." : "", text, to < width ? "..." : "");
    while (shown.ends_with(' ')) shown.pop_back();
    out_ += paint(fmt::format(" {:>{}} |", number, number_width_), "1;34") + (shown.empty() ? "" : " " + shown) + "\n";
    if (markers.empty()) return;

    size_t shift = from > 0 ? 3 : 0;
    std::vector<Marker> visible;
    for (Marker m : markers) {
      if ((m.begin >= to && m.begin > from && to < width) || m.end <= from) continue;  // beyond the window
      m.begin = std::max(m.begin, from);
      m.begin = m.begin - from + shift;
      m.end = std::max(std::min(m.end, to) - std::min(from, m.end) + shift, m.begin + 1);
      visible.push_back(m);
    }
    std::stable_sort(visible.begin(), visible.end(),
                     [](const Marker& a, const Marker& b) { return a.begin < b.begin; });

    // Markers: the primary is drawn last, over the others.
    std::string row, kinds;
    for (bool primary : {false, true})
      for (const Marker& m : visible) {
        if (m.primary != primary) continue;
        row.resize(std::max(row.size(), m.end), ' ');
        kinds.resize(row.size(), ' ');
        for (size_t i = m.begin; i < m.end; ++i) row[i] = primary ? '^' : '-', kinds[i] = primary ? 'p' : 's';
      }
    auto painted = [&](const std::string& chars, const std::string& classes) {
      if (!options_.colour) return chars;
      std::string painted_row;
      for (size_t i = 0; i < chars.size();) {
        size_t end = i;
        while (end < chars.size() && classes[end] == classes[i]) ++end;
        std::string piece = chars.substr(i, end - i);
        painted_row += classes[i] == ' ' ? piece : paint(piece, classes[i] == 'p' ? strong_ : "1;34");
        i = end;
      }
      return painted_row;
    };
    auto text_of = [&](const Marker& m) { return paint(m.text, m.primary ? strong_ : "1;34"); };
    // The text of the rightmost marker stands beside it, unless another marker reaches past it.
    std::vector<const Marker*> hanging;
    std::string beside;
    for (const Marker& m : visible)
      if (!m.text.empty()) hanging.push_back(&m);
    if (!hanging.empty() && hanging.back()->end == row.size()) {
      beside = " " + text_of(*hanging.back());
      hanging.pop_back();
    }
    gutter_line(painted(row, kinds) + beside);
    // The others hang, from right to left; a `|` keeps the way open for those further left.
    auto bars = [&](size_t count) {
      std::string bar_row, classes;
      for (size_t i = 0; i < count; ++i) {
        bar_row.resize(std::max(bar_row.size(), hanging[i]->begin + 1), ' ');
        classes.resize(bar_row.size(), ' ');
        bar_row[hanging[i]->begin] = '|';
        classes[hanging[i]->begin] = hanging[i]->primary ? 'p' : 's';
      }
      return std::make_pair(bar_row, classes);
    };
    if (!hanging.empty()) {
      auto [bar_row, classes] = bars(hanging.size());
      gutter_line(painted(bar_row, classes));
    }
    for (size_t i = hanging.size(); i-- > 0;) {
      auto [bar_row, classes] = bars(i);
      size_t column = hanging[i]->begin;
      if (bar_row.size() > column) bar_row.resize(column), classes.resize(column);
      std::string pad(column - bar_row.size(), ' ');
      gutter_line(painted(bar_row, classes) + pad + text_of(*hanging[i]));
    }
  }

  struct Entry {
    ShownLine line;
    std::vector<Marker> markers;
  };
  const Diagnostic& diagnostic_;
  const SourceMap& sources_;
  const RenderOptions& options_;
  std::string out_;
  std::string_view strong_;
  std::vector<FileId> files_;  // the primary label's first
  std::map<uint32_t, std::map<uint32_t, Entry>> shown_;
  size_t number_width_ = 1;
};

}  // namespace

std::string render(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options) {
  return Picture(diagnostic, sources, options).draw();
}

std::string picture(std::string_view headline, const Label& label,
                    const std::vector<std::pair<std::string, std::string>>& notes, const SourceMap& sources,
                    const RenderOptions& options) {
  Diagnostic place;
  place.primary = label;
  return Picture(place, sources, options).draw(headline, notes);
}

std::string render(const Diagnostics& diagnostics, const SourceMap& sources, const RenderOptions& options) {
  std::string out;
  std::vector<Diagnostic> all = diagnostics.sorted();
  size_t shown = std::min(all.size(), options.limit);
  for (size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : "\n") + render(all[i], sources, options);
  if (shown < all.size()) out += fmt::format("\n... and {} more\n", all.size() - shown);
  return out;
}

}  // namespace zephon
