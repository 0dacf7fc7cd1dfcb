#pragma once
// Open sources of a graph, and what identities have to do with them.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/op_def.h"

namespace zephon {

/// Number of a source among the sources written in the same stream, in the order of their steps: second word of
/// identities.
uint64_t source_ordinal(const Graph& graph, NodeId source);

/// The sources of a graph, open. Shared by everyone who runs it; reading is thread-safe.
class OpenSources {
 public:
  const Source& at(NodeId node) const { return *sources_.at(node).source; }
  /// Identity of the sample that `source` yields at `position`: stream, ordinal, shard 0, position, passes.
  SampleId identity(NodeId source, uint64_t position, const EpochContext& epoch) const;
  /// Node and position that an identity begins with; nullopt where no source here has that stream and ordinal.
  struct Place {
    NodeId source;
    uint64_t position = 0;
  };
  std::optional<Place> locate(const SampleId& id) const;
  /// What messages call the sample: its file, or file and row; the identity's text where it is from nowhere here.
  std::string describe(const SampleId& id) const;
  /// One line a source: what was opened, by path, size, time; for manifests and to refuse changed data.
  std::string fingerprint() const;
  /// Paths of all files that were opened, sorted, each once.
  std::vector<std::string> files() const;

 private:
  friend std::shared_ptr<const OpenSources> open_sources(const Graph&, const OpenContext&, Failure&);
  struct Entry {
    std::unique_ptr<Source> source;
    uint64_t stream = 0;  ///< stream hash
    uint64_t ordinal = 0;
  };
  std::map<NodeId, Entry> sources_;
};

/// Size of the domain of a node whose number of rows does not depend on data.
uint64_t domain_size(const Graph& graph, const OpenSources& sources, NodeId node);

/// Opens every source that the output needs, and compares the lengths of streams that are paired. On failure null, and `failure` says
/// why.
std::shared_ptr<const OpenSources> open_sources(const Graph& graph, const OpenContext& context, Failure& failure);

/// One line of JSON for a rejected sample, with newline: id, sample, epoch, code, message.
std::string quarantine_line(const OpenSources& sources, const RunFailure& rejected);

}  // namespace zephon
