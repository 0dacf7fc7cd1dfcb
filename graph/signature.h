#pragma once
// The signature language of OpDef: parsing and unification, for the checker and, with concrete extents, for the runtime.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attrs.h"
#include "graph/op_def.h"
#include "graph/types.h"

namespace zephon {

struct DimPattern {
  enum class Kind : uint8_t { Extent, Symbol, Any, Pack } kind = Kind::Any;
  int64_t extent = 0;
  std::string symbol;
};
struct TypePattern {
  std::string elem;                ///< element type name or variable T N F I S
  bool box = false;
  bool maybe = false;              ///< `maybe T`: the value may be missing (composites only: see op_def.h)
  std::vector<DimPattern> shape;
};
enum class StaticKind : uint8_t { None, Int, Number, Bool, String, Ints, Numbers, Strings, Enum, Elem, Schema, Column };
struct Parameter {
  std::string name;
  StaticKind static_kind = StaticKind::None;  ///< None: dynamic, `pattern` says what
  TypePattern pattern;
  std::vector<std::string> choices;           ///< Enum
  std::optional<Attr> default_value;
  bool optional = false;
  bool variadic = false;
  std::optional<int64_t> at_least;
};
struct Signature {
  bool stream_in = false, stream_out = false;
  std::vector<Parameter> parameters;
  TypePattern result;
};
/// Parses once per operator and caches; aborts on a malformed signature (our bug, caught by a test).
const Signature& signature_of(const OpDef& op);

/// The signature as a program may use it: without what begins with `$`, which only rules set (stands last).
std::string written_signature(const OpDef& op);
inline bool is_hidden(const Parameter& parameter) { return parameter.name.starts_with('$'); }

/// Unifies argument types (dynamic parameters in order) with the patterns. On a mismatch returns nullopt and sets `error`
/// ("`image` needs `u8[h, w, 3]`, found `f32[7]`") and `bad_arg`. Calls `infer` of the operator, if any, last.
std::optional<Type> unify(const OpDef& op, const Attrs& attrs, std::span<const Type> args,
                          std::span<const Value* const> constants, std::string& error, int& bad_arg);

/// Adds op(args...), which must fit its signature, with the type that this gives.
ExprId add_call(Graph& graph, const OpDef& op, std::vector<ExprId> args, Attrs attrs = {});

/// Runtime output shape of `expr` for concrete argument shapes; false if it cannot be, or is not of its type (the
/// sample fails).
bool runtime_shape(const Expr& expr, std::span<const TensorRef> args, TensorRef& out);

}  // namespace zephon
