#pragma once
// The digest of a run: depends on the delivered data and its order, and on nothing else.
//
// digest of a record = XXH3-128 of: number of fields; then per field, in byte order of the names: length and bytes of
// the name, length and bytes of the element type's name, rank, extents, elements (little-endian; a string is its length
// and its bytes). Every number is 64 bits, little-endian. digest of a run = XXH3-128 of the records' digests (16 bytes
// each, canonical big-endian form), in order of delivery. So the digest of the whole follows from the manifests of its
// parts: ranks, or a run and its continuation.

#include <array>
#include <memory>
#include <span>
#include <optional>
#include <string>
#include <string_view>

#include "zephonc/sinks/record.h"

namespace zephon {

using RecordDigest = std::array<uint8_t, 16>;
RecordDigest digest_of(const DeliveredRecord& record);
/// One field alone, as above.
RecordDigest digest_of(const DeliveredField& field);
std::string hex(const RecordDigest& digest);

class RunDigest {
 public:
  RunDigest();
  ~RunDigest();
  void add(const RecordDigest& digest);
  RecordDigest value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-128 of some bytes, in hex.
std::string hex_digest(std::string_view bytes);

/// Of the content of a file, in hex; read piece by piece. nullopt where it cannot be read.
std::optional<std::string> file_digest(const std::string& path);

}  // namespace zephon
