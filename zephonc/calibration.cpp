#include "zephonc/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "frontend/frontend.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"
#include "optimizer/plan/groups.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "runtime/reference/sample_evaluator.h"

namespace zephon {
namespace {

constexpr int64_t kLarge = 16384;  // elements: their bytes fit the L2 cache
constexpr int kRounds = 5;
constexpr double kRoundNs = 1e5;
constexpr int64_t kSamples = 4;  // of an example's that give the values
/// One of each width and kind; the others cost about what one of these does.
constexpr Elem kElems[] = {Elem::U8, Elem::I32, Elem::I64, Elem::F32, Elem::F64};

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Nanoseconds of one call: the least of some rounds, so that others on the machine do not count.
double time_of(const std::function<void()>& call) {
  call();
  const double begin = now_ns();
  call();
  const double once = std::max(now_ns() - begin, 1.0);
  const auto times = static_cast<int64_t>(std::clamp(kRoundNs / once, 1.0, 1e5));
  double least = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const double start = now_ns();
    for (int64_t i = 0; i < times; ++i) call();
    least = std::min(least, (now_ns() - start) / static_cast<double>(times));
  }
  return least;
}

/// A value as kernels read it.
struct Held {
  Value value;
  std::vector<StringRef> strings;
  TensorRef ref;
  explicit Held(Value v) : value(std::move(v)) {
    ref.elem = value.elem();
    ref.rank = static_cast<int32_t>(value.rank());
    std::copy(value.shape().begin(), value.shape().end(), ref.shape);
    if (is_string(ref.elem)) {
      for (const std::string& s : value.string_items()) strings.push_back({s.data(), s.size()});
      ref.data = strings.data();
    } else {
      ref.data = value.mutable_bytes().data();
    }
  }
  Held(const Held&) = delete;
};

/// Memory of a call; taken back all at once.
class Scratch {
 public:
  void* take(size_t bytes) {
    bytes = (bytes + 127) / 64 * 64;
    if (used_ + bytes > blocks_.size() * kBlock || bytes > kBlock) {
      large_.emplace_back(bytes + 64);
      return aligned(large_.back().data());
    }
    if (used_ / kBlock != (used_ + bytes - 1) / kBlock) used_ = (used_ / kBlock + 1) * kBlock;
    if (used_ + bytes > blocks_.size() * kBlock) return take(bytes);
    std::byte* at = aligned(blocks_[used_ / kBlock].data()) + used_ % kBlock;
    used_ += bytes;
    return at;
  }
  void reset() {
    for (; !large_.empty() && blocks_.size() < 64; large_.pop_back()) blocks_.emplace_back(kBlock + 64);
    large_.clear();
    used_ = 0;
  }

 private:
  static std::byte* aligned(std::byte* at) { return at + (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64; }
  static constexpr size_t kBlock = 1 << 20;
  std::deque<std::vector<std::byte>> blocks_, large_;
  size_t used_ = 0;
};

/// Argument values of one operation, and what it is.
struct Probe {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<Value> args;
  std::vector<char> fixed;  // by argument: a constant of the program, which decides types and shapes
  std::vector<Type> types;  // as the example has them
};

struct Point {
  double ns = 0, elements = 0, input_bytes = 0, output_bytes = 0;
  Elem widest = Elem::U8;
};

double bytes_of(const Value& value) {
  double bytes = static_cast<double>(value.size()) * static_cast<double>(elem_size(value.elem()));
  if (is_string(value.elem()))
    for (const std::string& s : value.string_items()) bytes += static_cast<double>(s.size());
  return bytes;
}

Type type_of(const Value& value, const Type& like) {
  Type type = Type::scalar(value.elem());
  for (int64_t n : value.shape()) type.shape.push_back(Dim::of(n));
  if (!like.box.empty() && value.size() == 4) type.box = {Dim::of(value.at(2).i), Dim::of(value.at(3).i)};
  return type;
}

/// The value again and again, each dimension k times as long (the first two: channels stay).
Value tiled(const Value& value, int64_t k) {
  std::vector<int64_t> shape = value.shape();
  for (size_t d = 0; d < shape.size() && d < 2; ++d) shape[d] *= k;
  Value out(value.elem(), shape);
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) from = from * value.shape()[d] + at[d] % value.shape()[d];
    out.set(i, value.at(from));
    for (size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  return out;
}

/// Its first element, as one of another type.
Scalar converted(const Scalar& from, Elem to) {
  const double number = is_float(from.elem) ? from.f : static_cast<double>(from.i);
  if (is_float(to)) return Scalar::of_float(to, round_to(to, number));
  if (to == Elem::U8) return Scalar::of_int(to, static_cast<int64_t>(std::clamp(std::abs(number), 0.0, 255.0)));
  return Scalar::of_int(to, static_cast<int64_t>(number));
}

class Laboratory {
 public:
  explicit Laboratory(const std::function<void(const OpDef&)>& progress) : progress_(progress) {
    KernelOptions options = KernelOptions::from_environment();
    options.use_cache = false;  // what is compiled here is of no use later
    compiler_ = make_kernel_compiler(options);
  }

  CalibrationResult run() {
    const double begin = now_ns();
    measure_traffic();
    std::vector<std::pair<const OpDef*, std::vector<Point>>> measured;
    for (const OpDef* op : all_ops().all()) {
      if (!is_tensor_class(op->cls) || op->cls == OpClass::Leaf || !op->expansion.empty()) continue;
      progress_(*op);
      std::string why;
      std::vector<Point> points = points_of(*op, why);
      if (points.empty())
        result_.left_out.emplace_back(op, why);
      else
        measured.emplace_back(op, std::move(points));
    }
    // What a call costs that does next to nothing is no part of any operator.
    for (const auto& [op, points] : measured)
      if (generated(*op)) bare_call_ = std::min(bare_call_, points.front().ns);
    for (const auto& [op, points] : measured) result_.measured.operators.operators[op] = fit(*op, points);
    measure_overheads();
    result_.seconds = (now_ns() - begin) * 1e-9;
    return std::move(result_);
  }

 private:
  static bool generated(const OpDef& op) {
    return op.kernel.pointwise || op.kernel.view || op.kernel.reduce.init || op.kernel.resample;
  }

  // ---- from an example to values ---------------------------------------------------------------------------------

  /// The operation in its example, with the values of one sample.
  std::optional<Probe> probe_of(const OpDef& op, int64_t sample, std::string& why) {
    SourceMap sources;
    Diagnostics diags;
    const FileId file = sources.add("example.zpl", std::string(op.example));
    Result<Program> program = compile(sources, file, {}, all_ops(), diags);
    if (!program) {
      why = "its example does not compile alone";
      return std::nullopt;
    }
    Graph& graph = program->graph;
    std::map<std::string, ExprId> made;  // field -> over what the source gives
    for (NodeId id : graph.topological()) {
      const Node node = graph.node(id);
      if (node.op->effects.reads_files || (node.inputs.empty() && !node.op->bounds)) {
        why = "its example reads files: a run over data measures it";
        return std::nullopt;
      }
      std::vector<ExprId> roots;
      for (const Assign& assign : node.assigns) {
        const ExprId root = graph.substitute(assign.expr, made);
        roots.push_back(root);
        made[assign.field] = root;
      }
      if (node.predicate.valid()) roots.push_back(graph.substitute(node.predicate, made));
      for (ExprId root : roots)
        for (ExprId each : graph.topological(root))
          if (graph.expr(each).op == &op) return values_of(graph, each, sample, why);
    }
    why = "its example is rewritten before it gets there";
    return std::nullopt;
  }

  static std::optional<Probe> values_of(const Graph& graph, ExprId id, int64_t sample, std::string& why) {
    const DataConstants constants(graph, ".");
    const EpochContext epoch;
    // Sources without files count.
    SampleEvaluator evaluator(
        graph, constants, [&](const std::string&) { return Value::scalar(Scalar::of_int(Elem::I64, sample)); }, 12345,
        epoch);
    const Expr& e = graph.expr(id);
    Probe probe{e.op, e.attrs, {}, {}, {}};
    for (ExprId arg : e.args) {
      const Value& value = evaluator.evaluate(arg);
      if (value.any_failed()) {
        why = "its example fails";
        return std::nullopt;
      }
      probe.args.push_back(value);
      probe.fixed.push_back(graph.expr(arg).constant != nullptr);
      probe.types.push_back(graph.expr(arg).type);
    }
    return probe;
  }

  // ---- from values to time ---------------------------------------------------------------------------------------

  std::vector<Point> points_of(const OpDef& op, std::string& why) {
    std::vector<Point> points;
    std::optional<Probe> probe;
    for (int64_t sample = 1; sample < kSamples && !probe; ++sample) probe = probe_of(op, sample, why);
    if (!probe) return points;
    // As it stands first, then larger; pointwise work by type.
    auto add = [&](const Probe& each) {
      if (auto point = measure(each, why)) points.push_back(*point);
    };
    add(*probe);
    if (points.empty()) return points;
    if (by_type(op)) {
      for (Elem elem : kElems) add(of_type(*probe, elem));
      if (points.size() == 1) add(of_type(*probe, std::nullopt));
    } else {
      int64_t most = 1;
      for (size_t i = 0; i < probe->args.size(); ++i)
        if (!probe->fixed[i] && probe->types[i].box.empty()) most = std::max(most, probe->args[i].size());
      const double side = std::sqrt(static_cast<double>(kLarge) / static_cast<double>(most));
      if (most > 1 || any_tensor(*probe)) add(larger(*probe, std::max<int64_t>(2, static_cast<int64_t>(side))));
    }
    // Scalars in the example, where whole tensors may stand.
    if (points.size() == 1 && !by_type(op)) add(of_vectors(*probe));
    return points;
  }

  /// What it costs is decided by how many elements fit a register.
  static bool by_type(const OpDef& op) {
    return (op.cls == OpClass::Pointwise && op.kernel.pointwise) || op.kernel.reduce.init;
  }

  static bool any_tensor(const Probe& probe) {
    return std::ranges::any_of(probe.args, [](const Value& v) { return v.rank() > 0 && !is_string(v.elem()); });
  }

  /// Long vectors of one type; what was broadcast stays so.
  static Probe of_type(const Probe& probe, std::optional<Elem> elem) {
    Probe out = probe;
    for (size_t i = 0; i < out.args.size(); ++i) {
      const Elem had = out.args[i].elem();
      const Elem to = elem && is_numeric(had) ? *elem : had;
      if (is_string(had)) continue;
      const Scalar one = to == had ? out.args[i].at(0) : converted(out.args[i].at(0), to);
      Value value(to, out.fixed[i] ? std::vector<int64_t>{} : std::vector<int64_t>{kLarge});
      for (int64_t n = 0; n < value.size(); ++n) value.set(n, one);
      out.args[i] = std::move(value);
      out.types[i] = Type::scalar(to);
    }
    return out;
  }

  static Probe of_vectors(const Probe& probe) {
    Probe out = probe;
    for (size_t i = 0; i < out.args.size(); ++i) {
      if (!out.args[i].shape().empty() || is_string(out.args[i].elem())) continue;
      const Scalar one = out.args[i].at(0);
      out.args[i] = Value(out.args[i].elem(), {kLarge});
      for (int64_t n = 0; n < kLarge; ++n) out.args[i].set(n, one);
      out.fixed[i] = 0;
    }
    return out;
  }

  static Probe larger(const Probe& probe, int64_t k) {
    Probe out = probe;
    for (size_t i = 0; i < out.args.size(); ++i) {
      Value& value = out.args[i];
      if (out.types[i].box.empty()) {
        if (!out.fixed[i] && value.rank() > 0 && !is_string(value.elem())) value = tiled(value, k);
      } else {
        for (int64_t n = 0; n < value.size(); ++n) value.set(n, Scalar::of_int(value.elem(), value.at(n).i * k));
        out.fixed[i] = 0;
      }
    }
    return out;
  }

  std::optional<Point> measure(const Probe& probe, std::string& why) {
    Graph graph;
    std::vector<ExprId> args;
    std::vector<Type> types;
    std::vector<const Value*> constants;
    std::deque<Held> held;
    Point point;
    for (size_t i = 0; i < probe.args.size(); ++i) {
      types.push_back(type_of(probe.args[i], probe.types[i]));
      constants.push_back(probe.fixed[i] ? &probe.args[i] : nullptr);
      point.input_bytes += bytes_of(probe.args[i]);
    }
    std::string error;
    int bad = 0;
    const std::optional<Type> type = unify(*probe.op, probe.attrs, types, constants, error, bad);
    if (!type || type->poison) {
      why = error;
      return std::nullopt;
    }
    for (size_t i = 0; i < probe.args.size(); ++i)
      args.push_back(probe.fixed[i] ? add_constant(graph, all_ops(), probe.args[i])
                                    : add_field(graph, all_ops(), "a" + std::to_string(i), types[i]));
    Expr e;
    e.op = probe.op;
    e.args = args;
    e.attrs = probe.attrs;
    e.type = *type;
    e.draw_id = probe.op->effects.random ? 1 : 0;
    const ExprId root = graph.add(std::move(e));
    ExprSet ready;
    const std::vector<KernelGroup> groups = make_groups(graph, {root}, {}, ready, true);
    const Expr& made = graph.expr(root);
    if (groups.size() == 1 && groups[0].kind == KernelGroup::Kind::Native && !made.op->kernel.native)
      return by_reference(graph, root, probe, point);
    if (groups.size() != 1) {
      why = "it is no kernel of its own";
      return std::nullopt;
    }
    const KernelGroup& group = groups[0];
    std::vector<TensorRef> inputs;
    for (ExprId leaf : group.leaves) {
      const auto at = static_cast<size_t>(std::ranges::find(args, leaf) - args.begin());
      inputs.push_back(held.emplace_back(probe.args.at(at)).ref);
    }
    point.widest = type->elem;
    for (const Type& each : types)
      if (elem_size(each.elem) > elem_size(point.widest)) point.widest = each.elem;
    const auto finish = [&](const TensorRef& out) {
      point.output_bytes = static_cast<double>(out.byte_size());
      point.elements = static_cast<double>(made.op->cls == OpClass::Reduce ? probe.args[0].size() : out.size());
    };
    if (group.kind == KernelGroup::Kind::Native) {
      TensorRef out;
      const auto call = [&] {
        scratch_.reset();
        out = shape_of(*type);
        if (type->has_static_shape()) out.data = scratch_.take(out.byte_size());
        NativeCall native;
        native.expr = &made;
        native.inputs = inputs;
        native.output = &out;
        native.identity = 12345;
        native.draw_key = 678;
        native.allocate = [](void* self, size_t bytes) { return static_cast<Scratch*>(self)->take(bytes); };
        native.context = &scratch_;
        return made.op->kernel.native(native);
      };
      if (!call()) {
        why = "its example fails";
        return std::nullopt;
      }
      point.ns = time_of(call);
      finish(out);
      return point;
    }
    const std::shared_ptr<const CompiledKernel> kernel = compiler_->compile(graph, group, error);
    if (!kernel) {
      why = error;
      return std::nullopt;
    }
    TensorRef out = shape_of(*type);
    if (!type->has_static_shape()) {
      std::vector<TensorRef> all;
      for (const Value& value : probe.args) all.push_back(held.emplace_back(value).ref);
      if (!runtime_shape(made, all, out)) {
        why = "its example fails";
        return std::nullopt;
      }
    }
    scratch_.reset();
    out.data = scratch_.take(out.byte_size());
    uint8_t failed = 0;
    KernelCall call;
    call.inputs = inputs.data();
    call.outputs = &out;
    call.failed = &failed;
    call.scratch = scratch_.take(kernel->scratch_bytes(call));
    kernel->run(call);
    if (failed) {
      why = "its example fails with such values";
      return std::nullopt;
    }
    point.ns = time_of([&] { kernel->run(call); });
    finish(out);
    return point;
  }

  /// An operator without a kernel, as a run would evaluate it.
  static std::optional<Point> by_reference(const Graph& graph, ExprId root, const Probe& probe, Point point) {
    const DataConstants constants(graph, ".");
    const EpochContext epoch;
    const auto field = [&](const std::string& name) {
      return probe.args.at(static_cast<size_t>(std::stoi(name.substr(1))));
    };
    Value value;
    const auto evaluate = [&] {
      SampleEvaluator evaluator(graph, constants, field, 12345, epoch);
      value = evaluator.evaluate(root);
    };
    evaluate();
    if (value.any_failed()) return std::nullopt;
    point.ns = time_of(evaluate);
    point.elements = static_cast<double>(value.size());
    point.widest = value.elem();
    return point;
  }

  static TensorRef shape_of(const Type& type) {
    TensorRef ref;
    ref.elem = type.elem;
    ref.rank = static_cast<int32_t>(type.rank());
    for (size_t i = 0; i < type.rank(); ++i) ref.shape[i] = std::max<int64_t>(type.shape[i].extent, 0);
    return ref;
  }

  // ---- from times to costs ---------------------------------------------------------------------------------------

  OperatorCost fit(const OpDef& op, const std::vector<Point>& points) const {
    OperatorCost out;
    out.cost = op.cost;
    const Point& small = points.front();
    const bool kernel = generated(op);
    if (kernel) out.cost.ns_per_call = std::max(0.0, small.ns - bare_call_);
    if (by_type(op)) {
      double sum = 0;
      for (size_t i = 1; i < points.size(); ++i) {
        const double each = compute_ns(points[i]) / std::max(points[i].elements, 1.0);
        out.ns_by_elem[static_cast<size_t>(points[i].widest)] = each;
        sum += each;
      }
      if (points.size() > 1) out.cost.ns_per_element = sum / static_cast<double>(points.size() - 1);
      return out;
    }
    // Declared are the proportions: what an element costs to what an input byte does. Measured are a call and the size.
    const auto size_ns = [&](const Point& p) {
      return op.cost.ns_per_element * p.elements + op.cost.ns_per_input_byte * p.input_bytes;
    };
    if (points.size() == 1) {
      // One small example speaks of the call.
      const double size = size_ns(small), shrunk = size > small.ns ? small.ns / size : 1;
      out.cost.ns_per_element *= shrunk;
      out.cost.ns_per_input_byte *= shrunk;
      out.cost.ns_per_call = small.ns - shrunk * size;
      return out;
    }
    const Point& large = points.back();
    const double more = std::max(0.0, (kernel ? compute_ns(large) : large.ns) - (kernel ? 0.0 : small.ns));
    const double declared = size_ns(large) - (kernel ? 0.0 : size_ns(small));
    if (declared > 0) {
      out.cost.ns_per_element *= more / declared;
      out.cost.ns_per_input_byte *= more / declared;
    } else if (op.cost.ns_per_element > 0 && large.elements > 0) {
      out.cost.ns_per_element = more / large.elements;
    }
    if (!kernel)
      out.cost.ns_per_call = std::max(
          0.0, small.ns - out.cost.ns_per_element * small.elements - out.cost.ns_per_input_byte * small.input_bytes);
    return out;
  }

  /// Of a kernel: without the call, and without moving what it reads and writes, which a fused kernel does once.
  double compute_ns(const Point& point) const {
    const double rest = point.ns - bare_call_ - (point.input_bytes + point.output_bytes) / cache_bytes_per_ns_;
    return std::max(rest, 0.05 * point.ns);
  }

  void measure_traffic() {
    const auto copy_rate = [](size_t bytes) {
      std::vector<char> from(bytes, 1), to(bytes);
      const double ns = time_of([&] {
        std::memcpy(to.data(), from.data(), bytes);
        from[0] = static_cast<char>(to[bytes / 2] + 1);  // so that no copy can be left out
      });
      return 2.0 * static_cast<double>(bytes) / ns;
    };
    cache_bytes_per_ns_ = copy_rate(static_cast<size_t>(kLarge) * 4);
    // A picture in floats: written by one kernel, read by the next.
    result_.measured.bytes_per_ns = copy_rate(size_t{768} << 10) / 2;
  }

  class Ignore : public Sink {
   public:
    bool deliver(const RunRecord&) override { return true; }
  };

  /// Nanoseconds a row that the stages of a program take, the least of some runs, beyond what `model` says they do.
  double unexplained_ns(const std::string& text, const Machine& model) {
    SourceMap sources;
    Diagnostics diags;
    Result<Program> program = compile(sources, sources.add("overhead.zpl", text), {}, all_ops(), diags);
    if (!program) return 0;
    OptimizeOptions options;
    options.plan.machine = model;
    const OptimizeResult planned = optimize(program->graph, options, all_ops());
    double least = 1e18, explained = 0;
    for (const PlanNode& node : planned.plan.nodes) explained += node.est_ns_per_row;
    for (int round = 0; round < kRounds; ++round) {
      Ignore sink;
      const RunResult result = Runner(
                                   planned.plan, {}, [&] { return compiler_.get(); }, sink)
                                   .run();
      double ns = 0, rows = 1;
      for (size_t i = 0; i < result.operators.size(); ++i) {
        if (planned.plan.nodes[i].kind != PlanNode::Kind::Compute) continue;
        ns += result.operators[i].cpu_seconds * 1e9;
        rows = std::max(rows, static_cast<double>(result.operators[i].samples_in));
      }
      least = std::min(least, ns / rows);
    }
    return least - explained;
  }

  /// What the runtime adds to a step over columns, and to one that takes row by row.
  void measure_overheads() {
    constexpr double kNothing = 1e-9;
    Machine model;
    model.operators = std::make_shared<const OperatorCosts>(result_.measured.operators);
    model.bytes_per_ns = result_.measured.bytes_per_ns;
    model.ns_per_row_and_step = model.ns_per_kernel_call = kNothing;
    DataFacts all_kept;
    for (int32_t step = 1; step <= 3; ++step) all_kept.filters[{step, {}}] = {1, 1};
    use_data(model, all_kept, all_ops());
    // Each of the filters is two steps: one that makes its condition, and one that looks at it.
    const std::string filters = "range(200000) | filter index > -2 | filter index + 7 > -3 | filter index * 3 > -5";
    result_.measured.ns_per_row_and_step = std::clamp(unexplained_ns(filters, model) / 6, 0.01, 5.0);
    model.ns_per_row_and_step = result_.measured.ns_per_row_and_step;
    // Three kernels, row by row.
    const std::string rows = "range(50000) | x = hash(\"{index}\") | select x";
    result_.measured.ns_per_kernel_call = std::clamp(unexplained_ns(rows, model) / 3, 1.0, 500.0);
  }

  const std::function<void(const OpDef&)>& progress_;
  std::shared_ptr<KernelCompiler> compiler_;
  Scratch scratch_;
  CalibrationResult result_;
  double bare_call_ = 1e3;
  double cache_bytes_per_ns_ = 32;
};

}  // namespace

CalibrationResult calibrate(const std::function<void(const OpDef& op)>& progress) { return Laboratory(progress).run(); }

}  // namespace zephon
