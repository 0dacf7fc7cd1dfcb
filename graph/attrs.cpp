#include "graph/attrs.h"

#include <fmt/format.h>

namespace zephon {
namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct Printer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(Elem v) const { return std::string(elem_name(v)); }
  std::string operator()(const Schema& v) const {
    std::string out = "{";
    for (size_t i = 0; i < v.columns.size(); ++i)
      out += (i ? ", " : "") + v.columns[i].name + ": " + to_string(v.columns[i].type);
    return out + "}";
  }
  template <class T>
  std::string operator()(const std::vector<T>& v) const {
    std::string out = "[";
    for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + (*this)(v[i]);
    return out + "]";
  }
};

}  // namespace

std::string to_string(const Attr& attr) { return std::visit(Printer{}, attr); }

}  // namespace zephon
