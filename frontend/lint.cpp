// Lints: what the rules of the language allow, and the writer likely did not mean. None of them looks at data, and none
// speaks where another value of a parameter would make it wrong.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/compiler.h"
#include "graph/evaluator.h"
#include "graph/leaf_path.h"

namespace zephon {
namespace {

constexpr uint64_t kUnknown = uint64_t{1} << 62;  // no bound is known; above all real ones, and safe to calculate with

// How many samples (after `batch`, batches) each node lets through at most.
class MostSamples {
 public:
  explicit MostSamples(const Graph& graph) : graph_(graph) {
    for (NodeId id : graph.topological()) most_[id] = of(graph.node(id));
  }
  uint64_t at(NodeId id) const { return most_.at(id); }

 private:
  // A source whose arguments name no file is known from the program alone.
  static uint64_t of_source(const Node& node) {
    for (const auto& [name, value] : node.attrs)
      if (std::holds_alternative<std::string>(value)) return kUnknown;
    Failure failure;
    std::unique_ptr<Source> source = node.op->kernel.open ? node.op->kernel.open(node, {}, failure) : nullptr;
    return source ? source->size() : kUnknown;
  }
  uint64_t of(const Node& node) const {
    if (node.op->cls == OpClass::Source) return of_source(node);
    uint64_t sum = 0;
    for (NodeId input : node.inputs) sum = std::min(kUnknown, sum + most_.at(input));
    if (sum == 0) return 0;
    const bool batches = !node.inputs.empty() && graph_.node(node.inputs[0]).type.batch.has_value();
    if (node.type.batch && !batches) {
      const auto size = static_cast<uint64_t>(node.type.batch->size);
      if (sum == kUnknown) return kUnknown;
      // Batches by length leave a smaller one in each bucket: only whole ones can be counted.
      return node.type.batch->drop_remainder ? sum / size : sum;
    }
    if (const IndexMap* map = node.op->kernel.index_map) return std::min(kUnknown, map->output_size(node, sum));
    return node.op->cls == OpClass::OneToMany || node.op->cls == OpClass::ManyToOne ? kUnknown : sum;
  }

  const Graph& graph_;
  std::map<NodeId, uint64_t> most_;
};

// What a number can be, whatever the sample. Empty optional: nothing is known.
struct Interval {
  int64_t least, most;
};
using MaybeInterval = std::optional<Interval>;

class Truths {
 public:
  explicit Truths(const Graph& graph) : graph_(graph) {}

  // Of a scalar bool: true, false, or unknown.
  std::optional<bool> truth(ExprId id) {
    const Expr& e = graph_.expr(id);
    if (e.constant) return e.constant->size() == 1 ? std::optional(e.constant->at(0).i != 0) : std::nullopt;
    if (!e.type.is_scalar() || e.args.empty()) return std::nullopt;
    const std::string_view op = e.op->name;
    if (op == "not") {
      std::optional<bool> x = truth(e.args[0]);
      return x ? std::optional(!*x) : std::nullopt;
    }
    if (op == "and" || op == "or") {
      const bool deciding = op == "or";
      std::optional<bool> a = truth(e.args[0]), b = truth(e.args[1]);
      if (a == deciding || b == deciding) return deciding;
      return a && b ? std::optional(!deciding) : std::nullopt;
    }
    return e.args.size() == 2 ? comparison(op, e.args[0], e.args[1]) : std::nullopt;
  }

 private:
  std::optional<bool> comparison(std::string_view op, ExprId a, ExprId b) {
    const bool equals = op == "eq" || op == "le" || op == "ge", less = op == "lt" || op == "le",
               more = op == "gt" || op == "ge";
    if (!equals && !less && !more && op != "ne") return std::nullopt;
    if (!graph_.expr(a).type.is_scalar() || !graph_.expr(b).type.is_scalar()) return std::nullopt;
    // A NaN is not even itself.
    if (a == b && !is_float(graph_.expr(a).type.elem)) return equals;
    MaybeInterval x = interval(a), y = interval(b);
    if (!x || !y) return std::nullopt;
    const bool below = x->most<y->least, above = x->least> y->most;
    if (below || above) return op == "ne" || (below && less) || (above && more);
    if (op == "le" && x->most <= y->least) return true;
    if (op == "gt" && x->most <= y->least) return false;
    if (op == "ge" && x->least >= y->most) return true;
    if (op == "lt" && x->least >= y->most) return false;
    if (x->least == x->most && y->least == y->most) return equals;
    return std::nullopt;
  }

  MaybeInterval interval(ExprId id) {
    const Expr& e = graph_.expr(id);
    if (!e.type.is_scalar() || !is_integer(e.type.elem)) return std::nullopt;
    if (e.constant) return Interval{e.constant->at(0).i, e.constant->at(0).i};
    const IntegerLimits limits = limits_of(e.type.elem);
    const MaybeInterval all = Interval{limits.least, limits.most};
    const std::string_view op = e.op->name;
    // Converting a whole number keeps it, or fails.
    if (op == "cast" && is_integer(graph_.expr(e.args[0]).type.elem)) {
      MaybeInterval x = interval(e.args[0]);
      if (!x || x->most < limits.least || x->least > limits.most) return all;
      return Interval{std::max(x->least, limits.least), std::min(x->most, limits.most)};
    }
    if (e.args.size() == 1 && (op == "len" || op == "byte_length" || op == "height" || op == "width"))
      return Interval{0, limits.most};
    if (op == "mod" && graph_.expr(e.args[1]).constant) {
      const int64_t n = graph_.expr(e.args[1]).constant->at(0).i;
      if (n > 0) return Interval{0, n - 1};  // floor: never negative
    }
    if (op == "add" || op == "sub") {
      MaybeInterval x = interval(e.args[0]), y = interval(e.args[1]);
      if (!x || !y) return all;
      if (op == "sub")
        y = y->least == std::numeric_limits<int64_t>::min() ? MaybeInterval() : Interval{-y->most, -y->least};
      Interval sum{};
      if (!y || __builtin_add_overflow(x->least, y->least, &sum.least) ||
          __builtin_add_overflow(x->most, y->most, &sum.most))
        return all;
      return Interval{std::max(sum.least, limits.least), std::min(sum.most, limits.most)};
    }
    return all;
  }

  const Graph& graph_;
};

std::string_view called(const Node& node) { return node.op->surface.empty() ? node.op->name : node.op->surface; }

}  // namespace

void Compiler::lint_names() const {
  auto unused = [&](const Span& span, std::string_view what, const std::string& name) {
    diags_.report(Kind::UnusedName, "the {} `{}` is never used", what, name).primary(span).emit();
  };
  for (const auto& [name, entry] : parameters_)
    if (!entry.used) unused(entry.syntax->name.span, "parameter", name);
  for (const auto& [name, entry] : root_->lets)
    if (!entry.used) unused(entry.syntax->name.span, "constant", name);
  for (const auto& [name, entry] : root_->functions)
    if (!entry.used) unused(entry.syntax->name.span, "function", name);
  for (const auto& [name, entry] : root_->streams)
    if (!entry.used) unused(entry.syntax->name.span, "stream", name);
  for (const auto& [name, entry] : root_->imports)
    if (!entry.used) unused(entry.syntax->alias.span, "import", name);
}

// A parameter, or a constant, which may have been made of one.
bool Compiler::reads_parameters(const ast::Expr& e) const {
  if (e.kind == ast::Expr::Kind::Name && (parameters_.contains(e.text) || module_->lets.contains(e.text))) return true;
  return std::any_of(e.operands.begin(), e.operands.end(),
                     [this](const ast::Expr& operand) { return reads_parameters(operand); });
}

// Above a batch, up to where streams meet: a buffer of samples that is hardly more than the batch.
void Compiler::lint_buffer(const Node& batch) {
  const Graph& graph = program_.graph;
  constexpr int64_t kBatches = 10;
  const int64_t size = batch.type.batch->size;
  const MostSamples most(graph);
  for (NodeId id = batch.inputs[0];; id = graph.node(id).inputs[0]) {
    const Node& node = graph.node(id);
    if (node.inputs.size() != 1) return;
    if (node.op->cls != OpClass::Reorder || !node.attrs.has("buffer_size")) continue;
    const int64_t buffer = node.attrs.integer("buffer_size");
    // A buffer that holds all there is shuffles as well as can be.
    if (buffer / kBatches >= size || static_cast<uint64_t>(buffer) >= most.at(node.inputs[0])) return;
    diags_
        .report(Kind::SmallBuffer, "the buffer of `{}` holds {} samples, less than ten batches of {}", called(node),
                buffer, size)
        .primary(node.origin)
        .secondary(batch.origin, "the batches")
        .hint("`buffer_size={}` or more; `shuffle()`, where the number of samples is known, needs no buffer",
              kBatches * size)
        .emit();
    return;
  }
}

void Compiler::lint_shuffle(const Node& shuffle) {
  const Graph& graph = program_.graph;
  for (NodeId id = shuffle.inputs[0];; id = graph.node(id).inputs[0]) {
    const Node& node = graph.node(id);
    if (node.op->cls == OpClass::Repeat) {
      diags_.report(Kind::RepeatedShuffle, "`{}` works across the passes of `{}`", called(shuffle), called(node))
          .primary(shuffle.origin)
          .secondary(node.origin, "passes are joined here")
          .hint("shuffle first: each pass of a `{}` below it has an order of its own", called(node))
          .emit();
      return;
    }
    if (node.inputs.size() != 1) return;
  }
}

// `label = len(path)` over a label that was a string: whoever reads it below may mean the other.
void Compiler::lint_fields(const Node& assign) {
  const Graph& graph = program_.graph;
  const StreamType& before = graph.node(assign.inputs[0]).type;
  for (const Assign& a : assign.assigns) {
    const Field* old = before.find(a.field);
    const Type& type = graph.expr(a.expr).type;
    if (old == nullptr || (old->type.elem == type.elem && old->type.rank() == type.rank())) continue;
    std::vector<ExprId> parts = graph.topological(a.expr);
    bool made_of_it = std::any_of(parts.begin(), parts.end(), [&](ExprId id) {
      const Expr& e = graph.expr(id);
      return e.op->name == "field" && e.attrs.text("name") == a.field;
    });
    if (made_of_it) continue;
    diags_
        .report(Kind::FieldReplaced, "`{}` was `{}`, and becomes a `{}` that is not made of it", a.field,
                to_string(old->type), to_string(type))
        .primary(assign.origin)
        .hint("give it a name of its own, or `drop {}` above", a.field)
        .emit();
  }
}

// What is scaled to [0, 1] and then counted as if it were not; what no picture is; hashes of whole paths.
void Compiler::lint_values(const Node& node) {
  const Graph& graph = program_.graph;
  std::vector<ExprId> roots;
  for (const Assign& a : node.assigns) roots.push_back(a.expr);
  if (node.predicate.valid()) roots.push_back(node.predicate);
  for (ExprId root : roots) {
    for (ExprId id : graph.topological(root)) {
      const Expr& e = graph.expr(id);
      const Span place = e.origin.empty() ? node.origin : e.origin.front();
      auto is_scaled = [&](ExprId arg) {
        const Expr& scaled = graph.expr(arg);
        return scaled.op->name == "to_unit" && is_integer(graph.expr(scaled.args[0]).type.elem);
      };
      if (e.op->name == "sub" && is_scaled(e.args[0]) && graph.expr(e.args[1]).constant) {
        const Value& mean = *graph.expr(e.args[1]).constant;
        double most = 0;
        for (int64_t i = 0; i < mean.size() && is_float(mean.elem()); ++i) most = std::max(most, std::abs(mean.at(i).f));
        if (most > 1)
          diags_.report(Kind::UnlikelyRange, "values in [0, 1] are compared with a mean of {:g}", most)
              .primary(place)
              .hint("divide mean and deviation by the largest value, 255 for `u8`")
              .emit();
      } else if (e.op->name == "to_unit" && is_scaled(id) && elem_size(graph.expr(e.args[0]).type.elem) > 2) {
        diags_.report(Kind::UnlikelyRange, "`{}` is scaled to [0, 1] by its whole range", to_string(graph.expr(e.args[0]).type))
            .primary(place)
            .hint("pictures are `u8` or `u16`: calculate with them after they are scaled, or write the division")
            .emit();
      } else if (e.op->name == "hash" && graph.expr(e.args[0]).op->name == "field" &&
                 graph.expr(e.args[0]).type.elem == Elem::Path) {
        diags_.report(Kind::MovingHash, "the hash of a whole path is another where the folder lies elsewhere")
            .primary(place)
            .hint("for example `\"{{path.parent.name}}/{{path.name}}\"`")
            .emit();
      }
    }
  }
}

// Of fields that the program delivers: what is dropped below may have any shape.
void Compiler::lint_shapes(const Node& batch) {
  const Graph& graph = program_.graph;
  if (batch.op->algebra.pads || batch.predicate.valid() || batch.type.batch->size < 2) return;
  const StreamType& delivered = graph.node(graph.output()).type;
  if (!delivered.batch) return;
  for (const Field& field : batch.type.fields) {
    if (field.type.has_static_shape() || field.name.starts_with('$') || is_companion(field.name)) continue;
    const Field* last = delivered.find(field.name);
    if (last == nullptr || last->type != field.type) continue;
    diags_
        .report(Kind::OpenShapes, "`{}` is `{}`: two members of another shape would not fit into one batch", field.name,
                to_string(field.type))
        .primary(batch.origin)
        .hint("`resize` or crop above, or `padded_batch`")
        .emit();
    return;
  }
}

void Compiler::lint_filter(const Node& filter) {
  if (chosen_filters_.contains(filter.step)) return;
  std::optional<bool> truth = Truths(program_.graph).truth(filter.predicate);
  if (!truth) return;
  diags_.report(Kind::ConstantFilter, "this filter is {} for every sample", *truth ? "true" : "false")
      .primary(filter.origin)
      .hint_text(*truth ? "it keeps everything: leave it out" : "it keeps nothing")
      .emit();
}

void Compiler::lint_steps() {
  const Graph& graph = program_.graph;
  const MostSamples most(graph);
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    if (node.inputs.empty()) {
      if (most.at(id) == 0)
        diags_.report(Kind::EmptyEpoch, "`{}` gives no sample", called(node)).primary(node.origin).emit();
      continue;
    }
    const Node& input = graph.node(node.inputs[0]);
    const bool batches = node.type.batch && !input.type.batch;
    if (most.at(id) == 0) {
      bool above = false;
      for (NodeId i : node.inputs) above = above || most.at(i) > 0;
      if (above) {
        auto lint = diags_.report(Kind::EmptyEpoch, "`{}` lets nothing through", called(node)).primary(node.origin);
        if (batches)
          std::move(lint)
              .note("at most {} samples reach it, and only whole batches of {} leave", most.at(node.inputs[0]),
                    node.type.batch->size)
              .emit();
        else
          std::move(lint).emit();
      }
    }
    if (batches) lint_buffer(node);
    if (batches) lint_shapes(node);
    lint_values(node);
    if (node.op->cls == OpClass::Reorder) lint_shuffle(node);
    if (node.predicate.valid()) lint_filter(node);
    // What a source assigns by itself has the step of the source.
    if (!node.assigns.empty() && node.step != input.step) lint_fields(node);
  }
}

}  // namespace zephon
