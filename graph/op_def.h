#pragma once
// OpDef: all that an operator declares, once (law 3). The checker, the optimizer, the runtime, the documentation and the
// tests read it; nobody else lists operators.
//
// SIGNATURES are text, parsed by graph/signature.h:
//   "image: T[h, w, c], box: box[bh, bw] -> T[bh, bw, c]"          tensor operators
//   "a: N[...s], b: N[...s] -> N[...s]"                             elementwise with NumPy broadcasting of the pack s
//   "bytes: bytes, mode: enum(rgb, gray) = rgb -> u8[h, w, c]"      static parameter with default
//   "stream, buffer_size: int >= 1, seed: int = 0 -> stream"        dataset operators
// Dynamic parameters (expressions): an element type (u8 ... f64, bool, str, bytes, path) or an element variable: T any, N numeric, F
//   float, I integer, S str|bytes|path; with a shape: none = scalar, [..] dims (integer, symbol bound by unification, `?`), [...s] any shape.
//   A trailing `...` after a parameter repeats it. `box[h, w]` is a box. Integer arguments given to a dynamic parameter named in
//   the program as literals become constants of the required type.
// Static parameters (folded before lowering; stored in Attrs under their name): int, number, bool, string, ints, numbers, strings, enum(...),
//   elem (an element type name), schema, column (a plain name, or a string), each with optional `= default`, `>= n`, or `?` (optional, absent when not given).
// Static parameters at the end whose names begin with `$` are hidden from programs: they have their defaults, and relaxed rules set them.
// A result dimension may be a symbol, a static parameter's name, or `?`. Where this does not suffice the operator gives `infer`.
// The same unification is used at run time with concrete extents to find output shapes.
//
// COMPOSITE operators have `.expansion`: the body of a ZPL function over their parameters, inlined by the front end
// (static parameters are substituted as literals). They need no define and no kernel. Only they may take what may be missing: of a
// parameter `x: maybe T`, `x` is the value (zeros where it is missing) and `x_missing` says whether it is. Where the whole of a tensor may be
// missing and not its elements, `.expansion_whole` is meant, if there is one.
//
// NAMES IN THE CORE that everyone may rely on (declared in ops/ like all others): tensor leaves `field`, `const`, `data_const`; dataset
// `assign`, `select`, `drop`, `filter`; `cast` (attr "to": Elem; inserted by the checker for promotions), `read_file` (path -> bytes).
// Operators written with symbols are named: add sub mul div floor_div mod neg eq ne lt le gt ge and or not index slice.
//   index: args (x, i...) ; slice: attrs "begin","end","step" (ints, one per dim of x; end INT64_MAX = open, begin/end may be negative).
// COMPOSITE dataset operators expand into a step: `filter`, over their dynamic parameters (assert). Other dataset operators may have one
// dynamic parameter, an expression on the sample that the node holds as its predicate (the length of bucket_by_length): it reads the hidden
// field `$key`, to which the front end assigns it.
// Sources: `files(glob)` yields `path` and the implicit assign `bytes = read_file(path)` (attr "implicit" of the def); `csv(path, columns=)` yields
//   hidden field `$row` (bytes) and implicit assigns `<column> = csv_field(field $row, index, type)`; `range(end)` or range(begin, end) yields `index`.
// So dead-field elimination and shuffling of references need no special case.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/diag/diagnostic.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/kernel.h"

namespace zephon {

struct OpDef;

enum class OpClass : uint8_t {
  // tensor level
  Leaf, Pointwise, View, Resample, Reduce, Draw, Opaque,
  // dataset level
  Source, OneToOne, Subset, OneToMany, ManyToOne, Reorder, Repeat, Merge, Policy, Hint,
  // either level: expands into others
  Composite,
};
constexpr bool is_tensor_class(OpClass c) { return c <= OpClass::Opaque; }

struct Effects {
  bool can_fail = false;
  bool random = false;   ///< Draw: keyed by draw id; Reorder: keyed by shuffle key
  bool reads_files = false;
};

/// A step that does what two in a row did.
struct MergedStep {
  const OpDef* op = nullptr;
  Attrs attrs;
};

/// Dataset operators only.
struct Algebra {
  bool counts_arrivals = false;   ///< ends a filter region (take, skip, batch, windowed shuffle, ...)
  bool needs_domain = false;      ///< shuffle(): the input must be Indexed or Holes
  bool keeps_order = true;
  bool on_batches = true;         ///< may stand after batch
  bool pads = false;              ///< ManyToOne: members of different shapes are padded (graph/padding.h)
  bool keeps_rows = false;        ///< Hint: what is made above it may be kept for the next epoch or pass; nothing random may stand there
  /// `outer`, of this operator, reads `inner`: one step that gives the same samples under the same identities, and passes on failed ones
  /// as both did. None where there is no such step.
  std::optional<MergedStep> (*merge)(const Node& outer, const Node& inner) = nullptr;
};

/// Expected work per sample; units: nanoseconds of CPU per call plus per output element and per input byte.
struct OpCost {
  double ns_per_call = 20;
  double ns_per_element = 0.3;
  double ns_per_input_byte = 0;
};

/// An argument of an elementwise definition: a scalar, or the failure of that element.
struct ScalarArg {
  Scalar value;
  const Failure* failure = nullptr;
};
struct ScalarResult {
  Scalar value;
  bool ok = true;
  std::string code, message;   ///< if !ok and forwarded == null
  const Failure* forwarded = nullptr;  ///< lazy definitions pass on an argument's failure
  static ScalarResult of(Scalar s) { return {std::move(s), true, {}, {}, nullptr}; }
  static ScalarResult fail(std::string code, std::string message) { return {{}, false, std::move(code), std::move(message), nullptr}; }
  static ScalarResult forward(const Failure* f) { return {{}, false, {}, {}, f}; }
};

enum class ViewResult : uint8_t { Element, Failed };

/// The meaning, per element, written for reading. Exactly one member is set, by class.
struct Define {
  /// Pointwise: one element from the broadcast arguments. Unless `lazy`, arguments are good: the interpreter forwards the first failed one.
  ScalarResult (*scalar)(const Expr& expr, std::span<const ScalarArg> args) = nullptr;
  bool lazy = false;
  /// View of argument 0: the index in it of output element `out`. Failed with `message` where that lies outside.
  ViewResult (*view)(const Expr& expr, std::span<const int64_t> out, std::span<const Value* const> args, std::span<int64_t> in,
                     std::string& message) = nullptr;
  /// Whole-tensor: resample, reduce, draw, opaque. Arguments may have failed elements; use require_whole unless handled.
  Value (*tensor)(DefineCall& call) = nullptr;
  /// Dataset operators.
  std::unique_ptr<SampleStream> (*stream)(StreamContext& context) = nullptr;
};

/// How it is computed fast. Set what the class needs.
struct Kernel {
  KVal (*pointwise)(KernelBuilder& b, const Expr& expr, std::span<const KVal> args) = nullptr;
  /// View: index of argument 0 for output index `out` (i64). May call fail_if for bounds.
  void (*view)(IndexBuilder& b, const Expr& expr, std::span<const KVal> out, std::span<KVal> in) = nullptr;
  /// Reduce over attr "axes" (ints; all axes where absent): 16 interleaved lanes in logical order, combined pairwise
  /// (lane[i] += lane[i + 8], then 4, 2, 1), `finish` given the element count.
  struct Reduce {
    KVal (*init)(KernelBuilder& b, const Expr& expr) = nullptr;
    KVal (*combine)(KernelBuilder& b, const Expr& expr, KVal acc, KVal x) = nullptr;
    KVal (*finish)(KernelBuilder& b, const Expr& expr, KVal acc, KVal count) = nullptr;
  } reduce;
  const ResampleKernel* resample = nullptr;
  NativeKernel native = nullptr;
  MakeRowOp row_op = nullptr;
  const IndexMap* index_map = nullptr;
  OpenSource open = nullptr;
};

/// Type rule beyond the signature: may refine or reject; reports through diagnostics and returns poison. `args` are types
/// after unification, `result` what the signature gave.
struct InferCall {
  const Attrs& attrs;
  std::span<const Type> args;
  std::span<const Value* const> constants;  ///< args[i]'s value where it is a constant, else null (also at run time: small arguments such as boxes)
  Type result;
  std::string error;  ///< set to reject: message of E0210, lower case
};

enum class AnyOrder : uint8_t { No, Integers, Yes };

struct OpDef {
  std::string_view name;
  OpClass cls = OpClass::Opaque;
  std::string_view signature;
  std::string_view summary;    ///< one sentence
  std::string_view prose = {}; ///< units, ranges, errors, source of a published method
  std::string_view example;    ///< a pipeline or expression that the tests run
  std::string_view expansion = {};
  std::string_view expansion_whole = {};
  std::string_view implicit = {};  ///< sources: implicit assigns as ZPL text ("bytes = read_file(path)")
  /// Tables: tensor operator called for each column i of its schema: `<column> = op(field $row)`, with the static parameters index = i,
  /// name, type, count = number of columns, and those that it shares with the source by name.
  std::string_view implicit_column = {};
  /// Tables whose rows are split once for all columns: tensor operator on `$row` whose result, hidden field `$columns`, the column operator is
  /// called with instead. It gets the static parameters that it shares with the source by name, and keys = the paths of all columns.
  std::string_view implicit_columns = {};
  /// The word people write, where it is not `name` (two operators, one word): of the operators with that word, the one that has it as
  /// `surface` is meant if its first parameter is given, by position or by name; else the one that has it as `name`.
  std::string_view surface = {};
  Effects effects = {};
  Algebra algebra = {};
  OpCost cost = {};
  Define define = {};
  Kernel kernel = {};
  void (*infer)(InferCall& call) = nullptr;
  void (*infer_stream)(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) = nullptr;
  /// View that cuts the box given as argument 1 out of the leading two dimensions of argument 0 (crop): may be pushed into what makes
  /// the picture.
  bool cuts_box = false;
  /// View: gives each element of argument 0 exactly once, in another place or shape.
  bool permutes = false;
  /// View: `outer`, whose argument 0 is `inner`, both of this operator, as one expression on what `inner` views; invalid where there is
  /// none that has its values and its failures.
  ExprId (*compose)(Graph& graph, const Expr& outer, const Expr& inner) = nullptr;
  /// View that keeps the shape of a picture: the box of argument 0 of which it makes `box` of its result. It leaves argument 0
  /// exactly where `box` leaves the result, and fails first where the view's further arguments do.
  ExprId (*box_above)(Graph& graph, const Expr& view, ExprId box) = nullptr;
  /// The result is a box that lies inside argument 0.
  bool fits_box = false;
  /// Maker of a picture: op(arguments of this..., box, same attrs) equals crop(this(...), box), and is cheaper. Attrs that it
  /// does not declare must have their default value here.
  const OpDef* region_form = nullptr;
  /// Maker of a box of a picture, this(x, box), that uses of x no more than a box inside it, source_box(x, box, same attrs):
  /// this(x, box) = this(crop(x, source), box, source, height of x, width of x).
  const OpDef* source_box = nullptr;
  /// op(same arguments, same attrs that it declares) has the type and shape of this operator's result, and elements that nobody may
  /// read (`.define`: every element failed; kernel: data is null). Fails as a whole exactly where this one does.
  const OpDef* shape_form = nullptr;
  /// Uses nothing of argument 0 but its shape (a random box for a picture): argument 0 may be replaced by its shape_form.
  bool shape_only = false;
  /// Reduce: gives the same, and fails alike, in whatever order the elements come.
  AnyOrder any_order = AnyOrder::No;
  /// Sources: what field `field`, an integer, lies between in every sample. Tensor operators (`field` is empty): what the integer elements
  /// of the result lie between. False: all that the type allows.
  bool (*bounds)(const Attrs& attrs, std::string_view field, int64_t& least, int64_t& greatest) = nullptr;
  /// Pointwise, on bools: true where all arguments are, false where one is, whatever the others; else the first failure. So a filter by it is
  /// a filter by each argument, one after the other.
  bool conjunction = false;
  /// Composite that gives a record. With `implicit_column` one member a column of its schema, the column named by attr "key" first
  /// (table). Else argument 0 is such a record, and each member is the expansion over `member`, `keys` (the first member), `table` (its attr
  /// "path") and the other arguments; `expansion_whole`, if any, says whether the record is missing (lookup, find).
  bool gives_record = false;
  bool promotes = false;       ///< arithmetic promotion of section 5 is applied to N, F, I arguments before unification
};

/// A leaf whose value is known when the data set is opened, and is the same for every sample (dirs(root)).
bool is_data_constant(const Expr& expr);

#define ZEPHON_OP_DEF(Name)  \
  namespace ops {            \
  extern const OpDef Name;   \
  }                          \
  constinit const OpDef ops::Name

/// The table of ops/all_ops.def, alphabetical; the driver hands it to each layer.
class OpTable {
 public:
  explicit OpTable(std::span<const OpDef* const> ops) : ops_(ops) {}
  const OpDef* find(std::string_view name) const;
  std::span<const OpDef* const> all() const { return ops_; }

 private:
  std::span<const OpDef* const> ops_;
};

}  // namespace zephon
