#pragma once
// The interfaces by which `.define` states meaning: lazy values, samples, streams of samples, sources, rows.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/identity.h"
#include "graph/kernel.h"
#include "graph/value.h"

namespace zephon {

/// What `.define` of a whole-tensor operator is called with. Arguments are evaluated when asked for, once.
class DefineCall {
 public:
  virtual ~DefineCall() = default;
  virtual const Expr& expr() const = 0;
  virtual const Value& arg(size_t i) = 0;
  virtual size_t arg_count() const = 0;
  virtual uint64_t identity() const = 0;   ///< draws
  virtual uint64_t draw_key() const = 0;   ///< draws
  /// Folder of the program, where relative paths start; empty: the working directory.
  virtual std::string_view base_dir() const { return {}; }
  /// Failure with this expression's place.
  Failure failure(std::string code, std::string message) const;
};

/// A field of a sample in the reference interpreter: evaluated at most once, when needed.
using LazyValue = std::shared_ptr<class Thunk>;
class Thunk {
 public:
  virtual ~Thunk() = default;
  virtual const Value& force() = 0;
};
LazyValue ready(Value value);

/// One element of a stream: a sample, or a batch of them (members not empty).
struct Sample {
  SampleId id;
  std::vector<std::pair<std::string, LazyValue>> fields;
  std::vector<Sample> members;
  /// A filter failed on it, and none said false (yet). Such a sample is not counted by counting operators but passes through
  /// them; on_error handles it; else it ends the run when its turn comes.
  std::shared_ptr<const Failure> verdict;
  const Node* failed_by = nullptr;  ///< the filter, of several that failed the first as written; else null
  bool settled = false;  ///< its filter region has ended: no later filter may overrule the verdict
  LazyValue find(const std::string& name) const;
  void assign(const std::string& name, LazyValue value);  ///< replaces in place, or appends
};

/// A run ended by a failure that no policy handled.
struct RunFailure {
  Failure failure;
  SampleId id;
  uint64_t epoch = 0;  ///< set by who runs; what was drawn for the sample depends on it
};

/// Pull interface of a stream. A failure is committed in order: next() returns it when its turn comes.
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  struct Item {
    std::optional<Sample> sample;       ///< empty: end, unless failure is set
    std::optional<RunFailure> failure;
  };
  virtual Item next() = 0;
  /// Domain Indexed or Holes: size of the domain, and its i-th element (empty: a filter dropped it).
  virtual uint64_t domain_size() { return 0; }
  virtual Item at(uint64_t) { return {}; }
};

/// What a dataset operator's `.define` may use; implemented by the reference interpreter.
class StreamContext {
 public:
  virtual ~StreamContext() = default;
  virtual const Graph& graph() const = 0;
  virtual const Node& node() const = 0;
  virtual const EpochContext& epoch() const = 0;
  /// A fresh stream of input i of this node (again and again for repeat; `passes` is appended to the epoch context, and
  /// so reaches the identities that sources make).
  virtual std::unique_ptr<SampleStream> open_input(size_t i, std::vector<uint64_t> passes = {}) = 0;
  /// Lazy value of an expression on a sample.
  virtual LazyValue evaluate(ExprId expr, const Sample& sample) = 0;
  virtual void count_error(const RunFailure& failure, const std::string& policy) = 0;
};

// ---- sources ---------------------------------------------------------------------------------------------------

struct OpenContext {
  std::string base_dir;  ///< folder of the program: relative paths start there
};

/// An open, indexable source. Positions are 0 .. size()-1 and never change while the files do not.
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  /// Values of the columns the source itself yields (Node type before implicit assigns) at `position`. Never slow: content of
  /// files is read by expressions (read_file), not here. `allocate` memory lives as long as the chunk.
  virtual void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const = 0;
  /// Bulk form for contiguous positions of fixed-size scalar columns; returns false where not supported.
  virtual bool read_range(uint64_t, uint64_t, std::span<TensorRef>) const { return false; }
  /// What messages call the sample at `position`: its file, or file and row.
  virtual std::string describe(uint64_t position) const { return std::to_string(position); }
  /// Paths, sizes and times of what was opened, for fingerprints and manifests.
  virtual std::string fingerprint() const = 0;
  /// Paths of the files that were opened, in the order of their samples; empty where there are none.
  virtual std::vector<std::string> files() const { return {}; }
};
/// On failure returns null and fills `failure` (no match, unreadable, ...).
using OpenSource = std::unique_ptr<Source> (*)(const Node& node, const OpenContext& context, Failure& failure);

// ---- rows: the runtime form of serial dataset operators -----------------------------------------------------------

/// A sample (or batch) on its way through a serial operator. The handle is the runtime's; operators only move it.
struct Row {
  uint64_t handle = 0;
  uint64_t ordinal = 0;           ///< arrival number at this operator's input
  int32_t input = 0;
  bool failed = false;            ///< on_error: what it guards failed for this sample
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void emit(Row row) = 0;
  /// Appends a word to the identity of the row emitted next.
  virtual void append_identity(uint64_t word) = 0;
  /// Tells the runtime that the row is dropped for a policy (skip, quarantine), to be counted and logged. Policy "limit": one error
  /// more than max_errors; the run ends here. on_error(fail) emits the row with `failed` set: a failed row from there on.
  virtual void reject(Row row, const std::string& policy) = 0;
  virtual void mask(Row row) = 0;  ///< emit with zeros for the failed fields, `valid` false
};

/// State of an operator as a list of words and of rows that it holds back (windowed shuffle).
struct RowState {
  std::vector<uint64_t> words;
  std::vector<Row> rows;
};

/// Serial operator on rows in order: take, skip, shard, shuffle(buffer_size), mix, concatenate, repeat of batches, on_error, ...
class RowOp {
 public:
  virtual ~RowOp() = default;
  virtual int wanted_input() const { return 0; }  ///< which input the next row must come from
  virtual void push(Row row, RowSink& sink) = 0;
  virtual void end_of_input(int /*input*/, RowSink& /*sink*/) {}
  virtual bool done() const { return false; }     ///< wants no more rows: the run may stop reading
  virtual void save(RowState& state) const = 0;
  virtual void load(const RowState& state) = 0;
};
using MakeRowOp = std::unique_ptr<RowOp> (*)(const Node& node, const EpochContext& epoch);

/// An operator that only renumbers an indexed domain (take, skip, shard, repeat, shuffle): position in its output -> position in
/// its input. `size` is that of the input domain.
struct IndexMap {
  uint64_t (*output_size)(const Node& node, uint64_t size) = nullptr;
  uint64_t (*input_index)(const Node& node, const EpochContext& epoch, uint64_t size, uint64_t index) = nullptr;
  /// repeat: the pass that `index` belongs to is appended to identity and epoch context.
  bool appends_pass = false;
};

}  // namespace zephon
