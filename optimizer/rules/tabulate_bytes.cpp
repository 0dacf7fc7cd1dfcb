#include <algorithm>
#include <cmath>
#include <map>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

// Nanoseconds per element, beyond those of an addition, which counts as nothing: a look-up takes the time of 28 simple
// vector instructions (runtime/jit measures and uses the same). So a square root stays, exp does not.
constexpr double kSimple = 0.3, kLookUp = 2.0;

/// Pointwise work on one u8 tensor and scalar constants: its operations, arguments first, and the tensor.
struct Tree {
  std::vector<ExprId> order;
  ExprId byte;
  bool good = false;
  double ns = 0;
};

Tree tree_from(const Graph& graph, ExprId root, bool stop_at_bytes) {
  Tree tree;
  const size_t rank = graph.expr(root).type.rank();
  std::map<ExprId, bool> seen;
  std::vector<ExprId> stack = {root};
  while (!stack.empty()) {
    const ExprId id = stack.back();
    const Expr& e = graph.expr(id);
    if (auto it = seen.find(id); it != seen.end()) {
      stack.pop_back();
      if (!it->second) {
        it->second = true;
        tree.order.push_back(id);
        tree.ns += std::max(0.0, e.op->cost.ns_per_element - kSimple);
      }
      continue;
    }
    if (is_constant(e)) {
      stack.pop_back();
      if (!e.type.is_scalar() || e.constant->any_failed()) return tree;
    } else if (e.op->cls == OpClass::Pointwise && is_generated(graph, e) && e.type.rank() == rank &&
               !(stop_at_bytes && e.type.elem == Elem::U8 && id != root)) {
      seen[id] = false;
      for (ExprId arg : e.args) stack.push_back(arg);
    } else {
      stack.pop_back();
      if (e.type.elem != Elem::U8 || e.type.rank() != rank || (tree.byte.valid() && tree.byte != id)) return tree;
      tree.byte = id;
    }
    if (seen.size() > 64) return tree;
  }
  tree.good = tree.byte.valid();
  return tree;
}

/// From the byte that the longest chain begins with; else from one that was cast.
Tree tree_of(const Graph& graph, ExprId root) {
  Tree tree = tree_from(graph, root, false);
  return tree.good ? tree : tree_from(graph, root, true);
}

/// The values for all 256 bytes by the definitions; none where one fails, is NaN, or is no f64.
std::optional<std::vector<double>> tabulated(const Graph& graph, const Tree& tree) {
  std::vector<double> values;
  for (int64_t byte = -1; byte < 256; ++byte) {  // -1: one that failed, so must the result
    std::map<ExprId, ScalarResult> results;
    results[tree.byte] = byte < 0 ? ScalarResult::fail("", "") : ScalarResult::of(Scalar::of_int(Elem::U8, byte));
    for (ExprId id : tree.order) {
      const Expr& e = graph.expr(id);
      const Failure failure;
      std::vector<ScalarArg> args;
      bool failed = false;
      for (ExprId arg : e.args) {
        if (const auto& c = graph.expr(arg).constant) {
          args.push_back({c->at(0), nullptr});
          continue;
        }
        const ScalarResult& r = results.at(arg);
        args.push_back({r.value, r.ok ? nullptr : &failure});
        failed |= !r.ok;
      }
      results[id] = failed && !e.op->define.lazy ? ScalarResult::fail("", "") : e.op->define.scalar(e, args);
    }
    const ScalarResult& last = results.at(tree.order.back());
    if (byte < 0) {
      if (last.ok) return std::nullopt;
      continue;
    }
    if (!last.ok) return std::nullopt;
    const double v = is_float(last.value.elem) ? last.value.f : static_cast<double>(last.value.i);
    if (std::isnan(v) || (!is_float(last.value.elem) && std::fabs(v) > 0x1p53)) return std::nullopt;
    values.push_back(v);
  }
  return values;
}

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& e = graph.expr(expr);
  if (e.op->cls != OpClass::Pointwise || e.type.is_scalar() || !is_numeric(e.type.elem)) return false;
  const Tree tree = tree_of(graph, expr);
  m.arg = tree.byte;
  return tree.good;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Attrs attrs;
  attrs.set("values", *tabulated(graph, tree_of(graph, m.expr)));
  attrs.set("to", graph.expr(m.expr).type.elem);
  const Type type = graph.expr(m.expr).type;
  Expr table = graph.expr(add_call(graph, *rewriter.ops().find("byte_table"), {m.arg}, std::move(attrs)));
  table.type = type;
  return graph.add(std::move(table));
}

constexpr Guard kGuards[] = {
    {.name = "it costs more than to look it up",
     .holds = [](Rewriter& rewriter, const Match& m) { return tree_of(rewriter.graph(), m.expr).ns > kLookUp; },
     .cost = true},
    {"all 256 values are numbers",
     [](Rewriter& rewriter, const Match& m) {
       return tabulated(rewriter.graph(), tree_of(rewriter.graph(), m.expr)).has_value();
     }},
};

}  // namespace

ZEPHON_RULE_DEF(TabulateBytes) = {
    .name = "tabulate_bytes",
    .summary =
        "A dear function of one byte (exp, log, pow, and whatever stands around it) becomes a table of its 256 values, "
        "made by its definition. Cheap ones stay: vectors add and multiply faster than they look up.",
    .law = "f x = byte_table x [f 0, ..., f 255]",
    .ends = "one dear operation fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | take(3) | image = (f32(bytes.decode_image().resize(8, 8)) / 255).pow(2.2) | select image

fires  # the logarithm, and what follows
files("examples/data/photos/*/*.jpg") | take(3) | image = u8(((f32(bytes.decode_image().resize(8, 8)) + 1).log() * 46).round()) | select image

keeps
files("examples/data/photos/*/*.jpg") | take(3) | image = (f32(bytes.decode_image().resize(8, 8)) - 127.5) / 64 | select image
----
it costs more than to look it up

keeps  # the logarithm of a negative number
files("examples/data/photos/*/*.jpg") | take(3) | image = (f32(bytes.decode_image().resize(8, 8)) - 1).log() | select image
----
all 256 values are numbers
)explain",
};

}  // namespace zephon
