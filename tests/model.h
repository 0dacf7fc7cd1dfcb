#pragma once
// An independent model of what a program means (DESIGN section 5): order, identity, draws and failures, over an
// abstract description of programs on whole numbers. Shares nothing with the implementation but Philox and the hash
// function: whole lists instead of pull streams, its own shuffle, its own arithmetic. Small enough to be read against
// the design.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zephon::model {

enum class Op {
  Field,
  Int,
  Float,
  Add,
  Sub,
  Mul,
  FloorDiv,
  Mod,  // i64; overflow and division by zero fail
  FloatAdd,
  FloatMul,  // f32
  Lt,
  Le,
  Eq,
  Ne,
  FloatLt,  // bool
  And,
  Or,
  Not,
  Where,
  Uniform,
  Coin,
  Randint,
  IsMissing,    // of `field`
  Default,      // `field`, or where it is missing the argument
  DefaultList,  // `field`, or where it is missing no elements
  Len,          // of the list `field`
  At,           // element of the list `field`, from the end where negative; fails outside
};
struct Expr {
  Op op = Op::Int;
  std::vector<Expr> args;
  std::string field;          // Field, IsMissing ... At
  int64_t i = 0;              // Int
  double f = 0;               // Float, Coin (probability)
  int64_t low = 0, high = 0;  // Uniform, Randint
  uint64_t order = 0;         // draws: their number within the expression
};

enum class StepKind {
  Assign,
  Filter,
  Select,
  Drop,
  Take,
  Skip,
  Shard,
  Shuffle,
  Window,
  Repeat,
  Batch,
  Padded,
  Bucket,
  Unbatch,
  Assert,
  OnError,
  Prefetch,
  Cache,
};
struct Step {
  StepKind kind = StepKind::Take;
  std::string field;                // Assign
  Expr expr;                        // Assign, Filter, Assert, Bucket (length)
  std::vector<std::string> fields;  // Select, Drop
  uint64_t count = 0;               // Take, Skip, Repeat, Batch, Padded, Window (buffer), Shard (number of shards)
  uint64_t index = 0;               // Shard
  bool endless = false;             // Repeat: written without count; `count` is as many passes as a take below can need
  uint64_t seed = 0;                // Shuffle, Window
  bool flag = true;                 // Shuffle, Window: reshuffle_each_epoch; Batch, Padded, Bucket: drop_remainder
  std::vector<int64_t> bounds;      // Bucket
  std::vector<uint64_t> sizes;      // Bucket: one more
  std::map<std::string, int64_t> padding;  // Padded, Bucket: of lists that have one of their own
  uint64_t length = 0;                     // Padded: of all lists; 0: that of the longest member
  std::string policy;                      // OnError
  std::optional<uint64_t> max_errors;
};

/// A value of the model; its kind follows from the expression.
struct Scalar {
  bool failed = false;
  int64_t i = 0;  // whole numbers and bool
  double f = 0;   // f32
  bool optional = false;
  bool missing = false, missing_failed = false;  // where optional; a missing value is 0, or has no elements
  bool is_list = false;
  std::vector<int64_t> items;
  bool operator==(const Scalar&) const = default;
};

/// One cell of a table: a number, or a text that is none.
using Cell = std::optional<int64_t>;

struct Pipe {
  std::string stream;  // "" for the program's own
  enum class Source { Range, Table, Json, Stream, Concatenate, Mix, Interleave, Zip, Join } source = Source::Range;
  int64_t begin = 0, end = 0;                          // Range
  std::string file;                                    // Table, Json (a pattern)
  std::vector<std::string> columns;                    // Table
  std::vector<std::vector<Cell>> rows;                 // Table
  std::vector<std::map<std::string, Scalar>> objects;  // Json: all files, one after the other
  std::vector<size_t> files;                           // Json: how many objects each has
  std::vector<size_t> arms;  // Stream (one), Concatenate, Mix, Interleave, Zip, Join: indices into Program::streams
  std::vector<uint64_t> weights;  // Mix
  bool stop_at_first = true;      // Mix
  uint64_t seed = 0;              // Mix
  size_t cycle = 0, block = 1;    // Interleave: streams at a time (0: all), samples in turn; Json: of files (0: one)
  std::string key;                // Join
  size_t buffer = 0;              // Join: samples that wait for their partners
  std::vector<Step> steps;
};
struct Program {
  std::vector<Pipe> streams;  // an arm stands before its users
  Pipe main;
  uint64_t seed = 0;
  uint64_t epochs = 1;
};

struct Member {
  std::vector<uint64_t> id;
  std::map<std::string, Scalar> fields;
};
struct Outcome {
  std::vector<std::vector<Member>> records;     // one member, or those of a batch
  std::optional<std::vector<uint64_t>> failed;  // identity of the sample that ended the run
};

Outcome run(const Program& program);

}  // namespace zephon::model
