#pragma once
// What a run delivers, one at a time, as the sinks see it: a sample, or a batch of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/identity.h"
#include "graph/value.h"

namespace zephon {

/// One column: elements in C order, little-endian; string kinds point to StringRef. NaNs are canonical.
struct DeliveredField {
  std::string name;
  Elem elem = Elem::I64;
  std::vector<int64_t> shape;  ///< of a batch: the number of members first
  const void* data = nullptr;

  int64_t count() const {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
  }
  size_t byte_size() const { return static_cast<size_t>(count()) * elem_size(elem); }
  const StringRef* strings() const { return static_cast<const StringRef*>(data); }
};

struct DeliveredRecord {
  uint64_t epoch = 0;
  uint64_t ordinal = 0;                ///< in its epoch, counted over all ranks and through resuming
  bool batched = false;                ///< every shape starts with the number of members
  std::vector<DeliveredField> fields;  ///< in byte order of their names
  std::vector<SampleId> members;       ///< identities: one for a sample
};

/// How far a folder that is being written has come: enough to make of what a killed run has left the folder with
/// exactly the records before it (keep_marked in sinks/folder.h).
struct OutputMark {
  std::string folder, partial;      ///< the folder as it will be called, and as it is called until then
  uint64_t bytes = 0;               ///< of the only file, in formats of one file
  uint64_t epoch = 0, ordinal = 0;  ///< of the last record
  uint64_t records = 0;
};

/// Takes records in order. Destroyed before close(), it leaves nothing that looks complete.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual std::optional<Failure> write(const DeliveredRecord& record) = 0;
  /// Hands everything to the system, and says how far it is. Nothing where a killed run's output is lost.
  virtual std::optional<Failure> mark(OutputMark&) { return std::nullopt; }
  virtual std::optional<Failure> close() = 0;
};

/// The one NaN of delivered data: quiet, positive, no payload. Writes a corrected copy into `scratch` and points
/// `field` to it where an element is another NaN; otherwise costs one pass of reading.
void make_nans_canonical(DeliveredField& field, std::vector<uint8_t>& scratch);

}  // namespace zephon
