#include "graph/pairs.h"

#include <fmt/format.h>

namespace zephon {
namespace {

std::string name_of(const Node& node, size_t input) {
  return input < node.input_names.size() ? fmt::format("`{}`", node.input_names[input])
                                         : fmt::format("stream {}", input + 1);
}

Failure failure(const Node& node, std::string message) { return {"R0409", std::move(message), node.origin}; }

}  // namespace

std::string join_key(const Value& key) { return is_string(key.elem()) ? key.at(0).s : std::to_string(key.at(0).i); }

Failure no_partner(const Node& node, const std::string& key, size_t input, bool ended) {
  const std::string& field = node.attrs.text("key");
  if (ended) return failure(node, fmt::format("{} has no sample whose `{}` is `{}`", name_of(node, input), field, key));
  return failure(node, fmt::format("none of the {} samples of {} that wait has `{}` `{}`: raise `buffer_size`",
                                   node.attrs.integer("buffer_size"), name_of(node, input), field, key));
}

Failure never_asked_for(const Node& node, const std::string& key, size_t input) {
  return failure(node, fmt::format("{} has a sample whose `{}` is `{}`, and {} has none", name_of(node, input),
                                   node.attrs.text("key"), key, name_of(node, 0)));
}

Failure key_twice(const Node& node, const std::string& key, size_t input) {
  return failure(
      node, fmt::format("{} has two samples whose `{}` is `{}`", name_of(node, input), node.attrs.text("key"), key));
}

}  // namespace zephon
