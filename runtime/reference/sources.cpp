#include "runtime/reference/sources.h"

#include <fmt/format.h>

#include <set>

#include "graph/pairs.h"

namespace zephon {

uint64_t source_ordinal(const Graph& graph, NodeId source) {
  const Node& own = graph.node(source);
  std::set<int32_t> earlier;  // steps, for a stream used twice may have been copied
  for (NodeId id : graph.topological()) {
    const Node& n = graph.node(id);
    if (n.op->cls == OpClass::Source && n.stream == own.stream && n.step < own.step) earlier.insert(n.step);
  }
  return earlier.size();
}

SampleId OpenSources::identity(NodeId source, uint64_t position, const EpochContext& epoch) const {
  const Entry& entry = sources_.at(source);
  SampleId id{{entry.stream, entry.ordinal, 0, position}};
  id.words.insert(id.words.end(), epoch.passes.begin(), epoch.passes.end());
  return id;
}

std::optional<OpenSources::Place> OpenSources::locate(const SampleId& id) const {
  if (id.words.size() < 4) return std::nullopt;
  for (const auto& [node, entry] : sources_) {
    if (entry.stream == id.words[0] && entry.ordinal == id.words[1] && id.words[3] < entry.source->size())
      return Place{node, id.words[3]};
  }
  return std::nullopt;
}

std::string OpenSources::describe(const SampleId& id) const {
  const std::optional<Place> place = locate(id);
  return place ? at(place->source).describe(place->position) : to_string(id);
}

std::string OpenSources::fingerprint() const {
  std::string text;
  for (const auto& [node, entry] : sources_)
    text += fmt::format("{:x}/{} {}\n", entry.stream, entry.ordinal, entry.source->fingerprint());
  return text;
}

uint64_t domain_size(const Graph& graph, const OpenSources& sources, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->cls == OpClass::Source) return sources.at(id).size();
  if (node.op->kernel.index_map)
    return node.op->kernel.index_map->output_size(node, domain_size(graph, sources, node.inputs[0]));
  if (pairs_rows(node)) return domain_size(graph, sources, node.inputs[0]);
  uint64_t size = 0;
  for (NodeId input : node.inputs) size += domain_size(graph, sources, input);
  return size;
}

std::vector<std::string> OpenSources::files() const {
  std::set<std::string> paths;
  for (const auto& [node, entry] : sources_) {
    for (std::string& path : entry.source->files()) paths.insert(std::move(path));
  }
  return {paths.begin(), paths.end()};
}

std::shared_ptr<const OpenSources> open_sources(const Graph& graph, const OpenContext& context, Failure& failure) {
  auto sources = std::make_shared<OpenSources>();
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    if (node.op->cls != OpClass::Source) continue;
    OpenSources::Entry entry{node.op->kernel.open(node, context, failure), stream_hash(node.stream),
                             source_ordinal(graph, id)};
    if (!entry.source) return nullptr;
    sources->sources_.emplace(id, std::move(entry));
  }
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    if (!pairs_rows(node)) continue;
    const uint64_t first = domain_size(graph, *sources, node.inputs[0]);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const uint64_t size = domain_size(graph, *sources, node.inputs[i]);
      if (size == first) continue;
      failure = {"R0408",
                 fmt::format("`{}` pairs streams of one length: `{}` has {} samples, `{}` has {}", node.op->name,
                             node.input_names[0], first, node.input_names[i], size),
                 node.origin};
      return nullptr;
    }
  }
  return sources;
}

namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string quarantine_line(const OpenSources& sources, const RunFailure& rejected) {
  return fmt::format("{{\"id\": {}, \"sample\": {}, \"epoch\": {}, \"code\": {}, \"message\": {}}}\n",
                     json_text(to_string(rejected.id)), json_text(sources.describe(rejected.id)), rejected.epoch,
                     json_text(rejected.failure.code), json_text(rejected.failure.message));
}

}  // namespace zephon
