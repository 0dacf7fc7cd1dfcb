#include "graph/leaf_path.h"

namespace zephon {

LeafPath LeafPath::parse(std::string_view text) {
  LeafPath path;
  while (!text.empty()) {
    if (text[0] == '?') {
      if (!path.steps.empty()) path.steps.back().optional = true;
      text.remove_prefix(1);
    } else if (text.starts_with("[]")) {
      path.steps.push_back({});
      text.remove_prefix(2);
    } else {
      if (text[0] == '.') text.remove_prefix(1);
      const size_t end = std::min(text.find_first_of(".?["), text.size());
      path.steps.push_back({std::string(text.substr(0, end)), false});
      text.remove_prefix(end);
    }
  }
  return path;
}

std::string LeafPath::field() const {
  std::string name;
  for (const Step& step : steps)
    if (!step.key.empty()) name += (name.empty() ? "" : ".") + step.key;
  return name;
}

int LeafPath::lists() const {
  int count = 0;
  for (const Step& step : steps) count += step.key.empty();
  return count;
}

int LeafPath::missing_depth() const {
  int depth = 0;
  for (const Step& step : steps) {
    depth += step.key.empty();
    if (step.optional) return depth;
  }
  return -1;
}

bool LeafPath::may_miss_from(size_t step) const {
  for (size_t i = step; i < steps.size(); ++i)
    if (steps[i].optional) return true;
  return false;
}

}  // namespace zephon
