#pragma once
// A graph of one sample's expressions, made by hand: for tests and benchmarks of compiled kernels.

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "ops/all_ops.h"

namespace zephon {

inline Attrs attrs_of(std::initializer_list<std::pair<std::string, Attr>> list) {
  Attrs out;
  for (const auto& [name, value] : list) out.set(name, value);
  return out;
}

class SampleGraph {
 public:
  Graph graph;
  std::vector<ExprId> fields;  ///< in the order in which they were added: the leaves of a kernel

  ExprId add(const std::string& name, Type type) {
    fields.push_back(add_field(graph, all_ops(), name, std::move(type)));
    return fields.back();
  }
  ExprId constant(Value value) { return add_constant(graph, all_ops(), std::move(value)); }
  ExprId number(Elem elem, double v) {
    return constant(Value::scalar(is_float(elem) ? Scalar::of_float(elem, round_to(elem, v))
                                                 : Scalar::of_int(elem, static_cast<int64_t>(v))));
  }
  ExprId numbers(Elem elem, const std::vector<double>& items) {
    Value v(elem, {static_cast<int64_t>(items.size())});
    for (size_t i = 0; i < items.size(); ++i)
      v.set(static_cast<int64_t>(i), Scalar::of_float(elem, round_to(elem, items[i])));
    return constant(std::move(v));
  }
  /// The operator with its defaults. Throws std::runtime_error where the types do not fit.
  ExprId call(std::string_view name, std::vector<ExprId> args, Attrs attrs = {}) {
    const OpDef* op = all_ops().find(name);
    if (!op) throw std::runtime_error(fmt::format("no operator `{}`", name));
    std::vector<Type> types;
    std::vector<const Value*> constants;
    for (ExprId arg : args) {
      types.push_back(graph.expr(arg).type);
      constants.push_back(graph.expr(arg).constant.get());
    }
    for (const Parameter& p : signature_of(*op).parameters)
      if (p.static_kind != StaticKind::None && p.default_value && !attrs.has(p.name))
        attrs.set(p.name, *p.default_value);
    std::string error;
    int bad = 0;
    std::optional<Type> type = unify(*op, attrs, types, constants, error, bad);
    if (!type) throw std::runtime_error(fmt::format("`{}`: {}", name, error));
    Expr expr;
    expr.op = op;
    expr.args = std::move(args);
    expr.attrs = std::move(attrs);
    expr.type = *type;
    return graph.add(std::move(expr));
  }
};

}  // namespace zephon
