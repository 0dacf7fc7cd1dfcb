#pragma once
// Makes a program smaller while something holds of it: what is left of a program that shows a fault is what the fault
// needs.

#include <functional>
#include <string>

namespace zephon {

struct Shrunk {
  std::string text;
  int tried = 0;         ///< programs that `holds` was asked about
  bool bounded = false;  ///< there may be smaller ones: `most_tries` were tried
};

/// `text` is ZPL of which `holds` is true. Leaves out declarations, steps, streams, fields, arguments, elements; puts
/// parts of an expression, or constants, in its place; makes numbers smaller; as long as anything of that keeps `holds`
/// true. Most of what `holds` is asked about parses, but need not compile. The result is laid out as `fmt` does.
Shrunk shrink(std::string text, const std::function<bool(const std::string&)>& holds, int most_tries = 4000);

}  // namespace zephon
