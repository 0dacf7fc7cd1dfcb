// A stream is planned from its source to its output. What is pending between two plan nodes is an environment: each
// field as an expression over the columns of the last plan node, and the filters passed since. A step that needs rows
// in memory flushes it into a compute stage that emits what is needed below. Renumberings are folded first, from the
// outside in.
#include "optimizer/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "graph/expr_set.h"
#include "graph/identity.h"
#include "graph/pairs.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/analysis/fields.h"
#include "optimizer/analysis/order.h"
#include "optimizer/cost/cost.h"
#include "optimizer/plan/groups.h"
#include "optimizer/rules/all_rules.h"

namespace zephon {
namespace {

constexpr int64_t kMostRows = 8192;  // of small scalars: the cost of a chunk vanishes, its columns fit the L2 cache
constexpr double kChunkBytes = 512 << 10;  // of larger values
constexpr const char* kVerdict = "$verdict";

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<WrittenStep>& steps, const PlanOptions& options, const OpTable& ops,
          Door& door)
      : options_(options),
        ops_(ops),
        door_(door),
        steps_(steps),
        live_(live_fields(graph)),
        filtered_below_(find_filtered_below(graph)) {
    plan_.graph = graph;
    plan_.seed = options.seed;
    plan_.base_dir = options.base_dir;
  }

  Plan run() {
    const NodeId output = graph().output();
    Pending p = plan_stream(output, {});
    const FieldSet delivered = live_[index(output)];
    flush(p, delivered);
    PlanNode deliver;
    deliver.kind = PlanNode::Kind::Deliver;
    deliver.inputs = {p.base};
    deliver.on_batches = p.on_batches;
    deliver.concurrency = 1;
    for (const Field& f : graph().node(output).type.fields)
      if (delivered.contains(f.name)) deliver.outputs.push_back({f.name, field(f.name, f.type), fixed_bytes(f.type)});
    for (NodeId id : p.nodes) carry(deliver, id);
    deliver.label = "deliver";
    add(std::move(deliver));
    finish();
    return std::move(plan_);
  }

 private:
  struct PendingFilter {
    ExprId predicate;  // over the base's columns
    NodeId node;
  };
  struct Pending {
    PlanNodeId base;
    Environment env;  // field -> expression over the base's columns
    std::vector<PendingFilter> filters;
    std::vector<NodeId> nodes;  // steps that the next plan node carries out
    int outer_words = 0;
    bool on_batches = false;
  };

  static size_t index(NodeId id) { return static_cast<size_t>(id.index); }
  Graph& graph() { return plan_.graph; }
  const Node& node(NodeId id) { return plan_.graph.node(id); }
  ExprId field(const std::string& name, const Type& type) { return add_field(graph(), ops_, name, type); }

  PlanNodeId add(PlanNode n) {
    plan_.nodes.push_back(std::move(n));
    return {static_cast<int32_t>(plan_.nodes.size()) - 1};
  }
  PlanNode& at(PlanNodeId id) { return plan_.nodes[static_cast<size_t>(id.index)]; }

  void carry(PlanNode& n, int32_t step, Span place) {
    if (std::find(n.steps_written.begin(), n.steps_written.end(), step) != n.steps_written.end()) return;
    n.steps_written.push_back(step);
    n.origins.push_back(place);
  }
  void carry(PlanNode& n, NodeId id) { carry(n, node(id).step, node(id).origin); }

  /// The step in whose text the expression stands.
  std::optional<WrittenStep> step_of(ExprId id) {
    for (const Span& origin : graph().expr(id).origin)
      for (const WrittenStep& s : steps_)
        if (s.place.file == origin.file && s.place.begin <= origin.begin && origin.end <= s.place.end) return s;
    return std::nullopt;
  }

  void record(const Rule& rule, NodeId id, double before, double after, std::string what) {
    door_.applied({&rule, node(id).origin, node(id).step, std::move(what), before, after, {}, {}});
  }
  void refuse(const Rule& rule, NodeId id, std::string what) {
    door_.refused({&rule, node(id).origin, node(id).step, std::move(what), rule.guards[0].name});
  }

  // ---- streams ---------------------------------------------------------------------------------------------------

  /// Which nodes of the chain (lowest first) are folded into the index of its source. `forced`: all must be.
  std::set<NodeId> folds(const std::vector<NodeId>& chain, NodeId bottom, bool forced) {
    std::set<NodeId> folded;
    std::vector<NodeId> candidates;  // source outward
    size_t needed = 0;               // of them, up to the last that cannot run in any other way
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      const Node& n = node(*it);
      if (is_renumbering(graph(), n)) {
        candidates.push_back(*it);
        if (permutes_domain(n) || forced) needed = candidates.size();
      } else if (!is_one_to_one(n) && !is_filter(n) && n.op->cls != OpClass::Hint) {
        break;
      }
    }
    const bool indexed = node(bottom).inputs.empty();
    const bool all = indexed && door_.enabled(rules::FoldIndexOpsIntoSource);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (i >= needed && !all) continue;
      folded.insert(candidates[i]);
      if (all) record(rules::FoldIndexOpsIntoSource, candidates[i], 0, 0, std::string(node(candidates[i]).op->name));
    }
    for (NodeId id : chain)
      if (all && node(id).op->kernel.index_map && !folded.contains(id) && node(id).op->cls != OpClass::Reorder)
        refuse(rules::FoldIndexOpsIntoSource, id, std::string(node(id).op->name));
    return folded;
  }

  /// `outer`: renumberings below (outside of) `top` that its sources must carry out, innermost first.
  Pending plan_stream(NodeId top, const std::vector<IndexStep>& outer) {
    std::vector<NodeId> chain;  // output first
    NodeId bottom = top;
    while (node(bottom).inputs.size() == 1 && node(bottom).op->cls != OpClass::Merge) {
      chain.push_back(bottom);
      bottom = node(bottom).inputs[0];
    }
    const std::set<NodeId> folded = folds(chain, bottom, !outer.empty());
    std::vector<IndexStep> steps;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it)
      if (folded.contains(*it)) steps.push_back({*it, -1});
    steps.insert(steps.end(), outer.begin(), outer.end());

    Pending p = node(bottom).inputs.empty() ? plan_source(bottom, steps) : plan_merge(bottom, steps);
    // Draws of an arm do not see the words that say which arm it is.
    for (const IndexStep& s : outer) p.outer_words += s.arm >= 0;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      const NodeId id = *it;
      if (!folded.contains(id)) step(p, id);
    }
    return p;
  }

  FieldSet needed_above(NodeId id) { return live_above(graph(), node(id), live_[index(id)]); }

  void start(Pending& p, PlanNodeId base, const StreamType& type, const FieldSet& fields) {
    p.base = base;
    p.env.clear();
    for (const Field& f : type.fields)
      if (fields.contains(f.name)) p.env[f.name] = field(f.name, f.type);
    p.nodes.clear();
    p.on_batches = type.batch.has_value();
  }

  Pending plan_source(NodeId id, const std::vector<IndexStep>& steps) {
    PlanNode n;
    n.kind = PlanNode::Kind::Source;
    n.node = id;
    n.index = steps;
    n.concurrency = 1;
    carry(n, id);
    for (const IndexStep& s : steps) carry(n, s.node);
    // A source that nothing is needed of still makes rows.
    for (const Field& f : node(id).type.fields)
      if (live_[index(id)].contains(f.name)) n.outputs.push_back({f.name, field(f.name, f.type), fixed_bytes(f.type)});
    n.label = node(id).op->name;
    Pending p;
    start(p, add(std::move(n)), node(id).type, live_[index(id)]);
    return p;
  }

  Pending plan_merge(NodeId id, const std::vector<IndexStep>& steps) {
    PlanNode n;
    const bool pairs = pairs_rows(node(id));  // carries out renumberings by those of its inputs
    const bool joins = joins_rows(node(id));
    n.kind = steps.empty() || pairs ? PlanNode::Kind::Serial : PlanNode::Kind::Ordered;
    n.node = id;
    n.concurrency = 1;
    n.label = node(id).op->name;
    n.on_batches = node(id).type.batch.has_value();
    const FieldSet needed = needed_above(id);
    const std::vector<NodeId> inputs = node(id).inputs;
    const bool holds = holds_verdict(id);
    if (pairs)
      for (const IndexStep& s : steps) n.outer_words += s.arm >= 0;
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::vector<IndexStep> arm;
      if (!steps.empty()) {
        if (!pairs) arm.push_back({id, static_cast<int32_t>(k)});
        arm.insert(arm.end(), steps.begin(), steps.end());
      }
      Pending p = plan_stream(inputs[k], arm);
      FieldSet columns = needed;
      if (pairs || joins) columns.erase_if([&](const std::string& f) { return !node(inputs[k]).type.find(f); });
      if (holds) hold_verdict(p, columns);
      flush(p, columns);
      // A serial operator passes on what it is given; the arms of a merge must agree.
      if (inputs.size() > 1 && !emits_exactly(p.base, columns)) add_stage(p, outputs_of(p, columns));
      n.inputs.push_back(p.base);
      for (NodeId above : p.nodes) carry(n, above);
    }
    carry(n, id);
    Pending p;
    start(p, add(std::move(n)), node(id).type, live_[index(id)]);
    if (holds) filter_held(p, id);
    return p;
  }

  // A merge that does not count and a repeat stand inside a filter region: a filter below them may still say false
  // where one above has failed. Then the filters above drop nothing; their verdict becomes a column, and a filter of
  // the stage below.

  bool holds_verdict(NodeId id) {
    return !node(id).op->algebra.counts_arrivals && filtered_below_[index(id)] && fallible_above(id);
  }

  bool fallible_above(NodeId id) {
    for (NodeId input : node(id).inputs) {
      const Node& n = node(input);
      if (is_filter(n) && can_fail(graph(), n.predicate)) return true;
      // Assigned fields may fail where a filter reads them.
      if (is_filter(n) && !reads_.of(n.predicate).empty()) return true;
      if (!n.op->algebra.counts_arrivals && fallible_above(input)) return true;
    }
    return false;
  }

  void hold_verdict(Pending& p, FieldSet& columns) {
    const OpDef* both = ops_.find("and");
    ExprId verdict;
    for (const PendingFilter& f : as_written(p.filters)) {  // of several failures it is the first
      if (!verdict.valid()) {
        verdict = f.predicate;
        continue;
      }
      Expr e;
      e.op = both;
      e.args = {verdict, f.predicate};
      e.type = Type::scalar(Elem::Bool);
      verdict = graph().add(std::move(e));
    }
    if (!verdict.valid()) verdict = add_constant(graph(), ops_, Value::scalar(Scalar::of_bool(true)));
    p.filters.clear();
    p.env[kVerdict] = verdict;
    columns.insert(kVerdict);
  }

  std::vector<PendingFilter> as_written(std::vector<PendingFilter> filters) {
    std::ranges::stable_sort(filters, [&](const PendingFilter& a, const PendingFilter& b) {
      return is_written_before(node(a.node), node(b.node));
    });
    return filters;
  }

  void filter_held(Pending& p, NodeId id) { p.filters.push_back({field(kVerdict, Type::scalar(Elem::Bool)), id}); }

  static std::vector<char> find_filtered_below(const Graph& graph) {
    std::vector<char> found(graph.node_count());
    const std::vector<NodeId> order = graph.topological();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph.node(*it);
      const bool passes = is_filter(n) || (!n.op->algebra.counts_arrivals && found[index(*it)]);
      for (NodeId input : n.inputs) found[index(input)] |= passes;
    }
    return found;
  }

  /// One step of the program, not folded.
  void step(Pending& p, NodeId id) {
    const OpClass cls = node(id).op->cls;
    if (is_one_to_one(node(id))) {
      const std::vector<Assign> assigns = node(id).assigns;
      apply_assigns(graph(), reads_, assigns, p.env);
      std::erase_if(p.env, [&](const auto& entry) { return !node(id).type.find(entry.first); });
      p.nodes.push_back(id);
      return;
    }
    if (is_filter(node(id))) {
      const ExprId predicate = node(id).predicate;
      p.filters.push_back({resolve(graph(), reads_, predicate, p.env), id});
      p.nodes.push_back(id);
      return;
    }
    if (cls == OpClass::Hint) {
      if (node(id).op->algebra.keeps_rows) flush_to_keep(p, id);
      p.nodes.push_back(id);
      return;
    }
    FieldSet needed = needed_above(id);
    const bool holds = holds_verdict(id);
    if (holds) hold_verdict(p, needed);
    if (cls == OpClass::ManyToOne)
      flush_for_batch(p, needed, id);
    else
      flush(p, needed);
    PlanNode n;
    n.inputs = {p.base};
    n.node = id;
    n.concurrency = 1;
    n.on_batches = p.on_batches;
    n.label = node(id).op->name;
    n.est_rows = row_factor(graph(), node(id), options_.machine);
    switch (cls) {
      case OpClass::ManyToOne:
        n.kind = PlanNode::Kind::Batch;
        break;
      case OpClass::OneToMany:
        n.kind = PlanNode::Kind::Unbatch;
        break;
      case OpClass::Repeat:
        n.kind = PlanNode::Kind::Repeat;
        break;
      default:
        n.kind = PlanNode::Kind::Serial;
        break;
    }
    n.guarded = node(id).needed;
    for (NodeId above : p.nodes) carry(n, above);
    carry(n, id);
    start(p, add(std::move(n)), node(id).type, live_[index(id)]);
    if (holds) filter_held(p, id);
  }

  // ---- stages ----------------------------------------------------------------------------------------------------

  bool is_column(ExprId id, const std::string& name) {
    const Expr& e = graph().expr(id);
    return is_field(e) && e.attrs.text("name") == name;
  }

  void add_step(PlanNode& n, ComputeStep s, double& rows, NodeId fallback) {
    if (s.kind == ComputeStep::Kind::Evaluate) {
      const std::vector<ExprId> inside = interior(graph(), s.group);
      bool found = false;
      for (ExprId id : inside)
        if (auto written = step_of(id)) {
          carry(n, written->step, written->place);
          s.step = written->step;
          found = true;
        }
      if (!found) s.step = node(fallback).step;
      s.est_ns = kernel_ns(graph(), s.group, inside, options_.machine);
    } else {
      s.step = node(fallback).step;
      s.est_ns = options_.machine.ns_per_row_and_step;
    }
    n.est_ns_per_row += rows * s.est_ns;
    if (s.kind == ComputeStep::Kind::Filter)
      rows *= s.filter.valid() ? kept_share(graph(), node(s.filter), options_.machine)
                               : selectivity(graph(), s.predicate);
    n.steps.push_back(std::move(s));
  }

  void evaluate(PlanNode& n, const std::vector<ExprId>& roots, const std::vector<ExprId>& also, ExprSet& ready,
                double& rows, NodeId fallback) {
    const bool fuse = door_.enabled(rules::FuseKernels);
    for (KernelGroup& group : make_groups(graph(), roots, also, ready, fuse)) {
      ComputeStep s;
      s.group = std::move(group);
      const size_t size = interior(graph(), s.group).size();
      const bool generated = s.group.kind != KernelGroup::Kind::Native;
      const ExprId root = s.group.roots.front();
      add_step(n, std::move(s), rows, fallback);
      if (!fuse || !generated) continue;
      // What it saves: each value between two operations is written once and read once.
      const ComputeStep& added = n.steps.back();
      double traffic = 0;
      for (ExprId id : interior(graph(), added.group))
        traffic += expected_bytes(graph().expr(id).type, options_.machine) / options_.machine.bytes_per_ns;
      for (ExprId id : added.group.roots)
        traffic -= expected_bytes(graph().expr(id).type, options_.machine) / options_.machine.bytes_per_ns;
      const auto written = step_of(root);
      const Span place = written ? written->place : node(fallback).origin;
      if (size > 1)
        door_.applied({&rules::FuseKernels,
                       place,
                       added.step,
                       fmt::format("{} operations", size),
                       added.est_ns + traffic,
                       added.est_ns,
                       {},
                       {}});
      else
        door_.refused({&rules::FuseKernels, place, added.step, door_.keeps_texts() ? to_text(graph(), root) : "",
                       rules::FuseKernels.guards[0].name});
    }
  }

  std::string stage_label(const PlanNode& n) {
    std::vector<std::string> names, fields;
    auto once = [](std::vector<std::string>& list, std::string_view name) {
      if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
    };
    for (const ComputeStep& s : n.steps) {
      if (s.kind == ComputeStep::Kind::Filter) once(names, "filter");
      for (ExprId id : s.kind == ComputeStep::Kind::Evaluate ? interior(graph(), s.group) : std::vector<ExprId>{}) {
        const OpDef& op = *graph().expr(id).op;
        if (op.cls != OpClass::Pointwise || !graph().expr(id).type.is_scalar()) once(names, op.name);
      }
    }
    for (const OutputField& f : n.outputs)
      if (!is_leaf(graph().expr(f.expr)) && !is_hidden(f.name)) once(fields, f.name);
    const std::vector<std::string>& words =
        names.empty() || (names.size() == 1 && names[0] == "filter" && !fields.empty()) ? fields : names;
    std::string text = names.size() == 1 && &words == &fields ? "filter" : "";
    for (const std::string& w : words) text += (text.empty() ? "" : ", ") + w;
    return text;
  }

  /// The stage that applies the pending filters and makes `outputs` (name -> expression).
  void add_stage(Pending& p, const std::vector<std::pair<std::string, ExprId>>& outputs) {
    PlanNode n;
    n.kind = PlanNode::Kind::Compute;
    n.inputs = {p.base};
    n.outer_words = p.outer_words;
    n.on_batches = p.on_batches;
    std::vector<ExprId> targets;
    for (const auto& [name, expr] : outputs) targets.push_back(expr);
    ExprSet ready;
    double rows = 1;
    for (NodeId id : p.nodes) carry(n, id);
    const std::vector<PendingFilter> written = as_written(p.filters);
    for (const PendingFilter& f : p.filters) {
      evaluate(n, {f.predicate}, targets, ready, rows, f.node);
      ComputeStep s;
      s.kind = ComputeStep::Kind::Filter;
      while (written[static_cast<size_t>(s.place)].node != f.node) ++s.place;
      s.predicate = f.predicate;
      if (is_filter(node(f.node))) s.filter = f.node;
      add_step(n, std::move(s), rows, f.node);
    }
    evaluate(n, targets, {}, ready, rows, p.nodes.empty() ? graph().output() : p.nodes.back());
    for (const auto& [name, expr] : outputs) n.outputs.push_back({name, expr, fixed_bytes(graph().expr(expr).type)});
    n.est_rows = rows;
    n.label = stage_label(n);
    const PlanNodeId id = add(std::move(n));
    Environment env;
    for (const auto& [name, expr] : outputs) env[name] = field(name, Type(graph().expr(expr).type));
    p.env = std::move(env);
    p.base = id;
    p.filters.clear();
    p.nodes.clear();
  }

  std::vector<std::pair<std::string, ExprId>> outputs_of(const Pending& p, const FieldSet& needed) {
    std::vector<std::pair<std::string, ExprId>> outputs;
    for (const std::string& name : needed) {
      auto it = p.env.find(name);
      ZEPHON_CHECK(it != p.env.end(), "the plan lost field `{}`", name);
      outputs.emplace_back(name, it->second);
    }
    return outputs;
  }

  /// What is neither read nor computed is passed on from above, such as the key of a bucketing batch.
  bool emits_exactly(PlanNodeId base, const FieldSet& columns) {
    const PlanNode& n = at(base);
    // What an operator itself adds is there too (`valid` of on_error).
    if (n.kind == PlanNode::Kind::Serial && n.inputs.size() == 1 && n.node.valid())
      for (const Field& f : node(n.node).type.fields)
        if (!columns.contains(f.name) && !node(node(n.node).inputs[0]).type.find(f.name)) return false;
    return std::equal(n.outputs.begin(), n.outputs.end(), columns.begin(), columns.end(),
                      [](const OutputField& f, const std::string& name) { return f.name == name; }) &&
           (n.kind == PlanNode::Kind::Compute || n.inputs.size() != 1 || emits_exactly(n.inputs[0], columns));
  }

  /// Afterwards `p.base` emits `needed` under their own names, and nothing is pending but steps that do nothing.
  void flush(Pending& p, const FieldSet& needed) {
    const auto outputs = outputs_of(p, needed);
    bool trivial = p.filters.empty();
    for (const auto& [name, expr] : outputs) trivial &= is_column(expr, name);
    if (!trivial) add_stage(p, outputs);
  }

  /// What is pending becomes a stage that keeps its rows; where nothing is, or where it stands below a batch, the stages
  /// right above do. Below a batch a row is no function of its identity: others decide its padding, and whether it fits.
  void flush_to_keep(Pending& p, NodeId id) {
    FieldSet needed = needed_above(id);
    const bool holds = holds_verdict(id);
    if (holds) hold_verdict(p, needed);
    flush(p, needed);
    if (holds) filter_held(p, id);
    const int32_t passes = pass_count(graph(), id).value_or(0);
    std::vector<PlanNodeId> stack = {p.base};
    while (!stack.empty()) {
      PlanNode& n = at(stack.back());
      stack.pop_back();
      if (n.kind == PlanNode::Kind::Compute && !stands_below_batch(n)) {
        n.keeps_rows = true;
        n.pass_words = passes;
      } else {
        stack.insert(stack.end(), n.inputs.begin(), n.inputs.end());
      }
    }
  }

  bool stands_below_batch(const PlanNode& n) {
    return n.kind == PlanNode::Kind::Batch ||
           std::ranges::any_of(n.inputs, [this](PlanNodeId input) { return stands_below_batch(at(input)); });
  }

  /// A stage that makes tensors for a batch works on exactly the batch's rows, so that its columns are the batch.
  void flush_for_batch(Pending& p, const FieldSet& needed, NodeId batch) {
    auto outputs = outputs_of(p, needed);
    bool tensors = false;
    for (const auto& [name, expr] : outputs)
      tensors |= !is_leaf(graph().expr(expr)) && !is_small(graph().expr(expr).type);
    const bool one_size = node(batch).type.batch && !node(batch).predicate.valid();  // buckets are not cut in order
    const int64_t size = one_size ? node(batch).type.batch->size : 0;
    if (!door_.enabled(rules::BatchInPlace) || !tensors || p.on_batches || size <= 0) {
      if (door_.enabled(rules::BatchInPlace) && !tensors)
        refuse(rules::BatchInPlace, batch, std::string(node(batch).op->name));
      flush(p, needed);
      if (p.base.valid() && at(p.base).kind == PlanNode::Kind::Compute && size > 0) batches_[p.base.index] = size;
      return;
    }
    double copied = 0;
    for (const auto& [name, expr] : outputs) copied += memory_ns(expr);
    Split split;
    if (!p.filters.empty()) split = best_split(p, outputs);
    if (split.ns > copied) {
      door_.refused({&rules::BatchInPlace, node(batch).origin, node(batch).step, std::string(node(batch).op->name),
                     rules::BatchInPlace.guards[1].name});
      flush(p, needed);
      batches_[p.base.index] = size;
      return;
    }
    record(rules::BatchInPlace, batch, copied, split.ns, std::string(node(batch).op->name));
    if (!p.filters.empty()) split_filters(p, split.carried, outputs);
    add_stage(p, outputs);
    if (!options_.chunk) at(p.base).chunk_rows = size;
  }

  double memory_ns(ExprId id) const {
    return expected_bytes(plan_.graph.expr(id).type, options_.machine) / options_.machine.bytes_per_ns;
  }

  static bool is_small(const Type& type) { return type.is_scalar(); }

  /// How a stage is cut below its filters: what is passed on of that which the filters compute on their way, and what it
  /// costs a row that they keep, to pass that on and to compute the rest again.
  struct Split {
    ExprSet carried;
    double ns = 0;
  };
  Split best_split(const Pending& p, const std::vector<std::pair<std::string, ExprId>>& outputs) {
    std::vector<ExprId> stack;
    for (const auto& [name, expr] : outputs) stack.push_back(expr);
    const std::vector<ExprId> targets = stack;
    ExprSet in_memory, computed;
    for (const PendingFilter& f : p.filters)
      for (const KernelGroup& group :
           make_groups(graph(), {f.predicate}, targets, in_memory, door_.enabled(rules::FuseKernels)))
        computed.insert_all(interior(graph(), group));
    Split split;
    ExprSet seen;
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      if (is_leaf(graph().expr(id)) || !seen.insert(id)) continue;
      if (in_memory.contains(id) && memory_ns(id) < tree_ns(graph(), {id}, options_.machine)) {
        split.carried.insert(id);
        split.ns += memory_ns(id);
        continue;
      }
      if (computed.contains(id)) split.ns += own_ns(graph(), id, options_.machine);
      const std::vector<ExprId>& args = graph().expr(id).args;
      stack.insert(stack.end(), args.begin(), args.end());
    }
    return split;
  }

  /// Puts the pending filters into a stage of their own; `outputs` become expressions over its columns, of which
  /// `carried` are some.
  void split_filters(Pending& p, const ExprSet& carried, std::vector<std::pair<std::string, ExprId>>& outputs) {
    std::map<ExprId, std::string> names;
    std::vector<std::pair<std::string, ExprId>> passed;
    FieldSet fields, invented;
    const auto column = [&](ExprId id) {
      auto [it, fresh] = names.emplace(id, std::string());
      if (fresh) {
        it->second = fmt::format("${}", invented_count_++);
        invented.insert(it->second);
        passed.emplace_back(it->second, id);
      }
      return field(it->second, Type(graph().expr(id).type));
    };
    std::map<ExprId, ExprId> done;
    for (auto& [name, expr] : outputs) {
      expr = above_columns(expr, carried, column, done);
      add_reads(graph(), expr, fields);
    }
    for (const std::string& name : fields)
      if (!invented.contains(name)) {
        const Type type = column_type(p.base, name);
        passed.emplace_back(name, field(name, type));
      }
    const std::vector<NodeId> nodes = p.nodes;
    add_stage(p, passed);
    for (NodeId id : nodes)
      if (!is_filter(node(id))) p.nodes.push_back(id);
  }

  /// `root` with the uppermost of `carried` as columns: what stands below them is not looked at.
  template <class Column>
  ExprId above_columns(ExprId root, const ExprSet& carried, const Column& column, std::map<ExprId, ExprId>& done) {
    std::vector<ExprId> stack = {root};
    while (!stack.empty()) {
      const ExprId id = stack.back();
      if (done.contains(id)) {
        stack.pop_back();
        continue;
      }
      if (carried.contains(id)) {
        done[id] = column(id);
        continue;
      }
      Expr copy = graph().expr(id);
      bool waits = false, changed = false;
      for (ExprId& arg : copy.args) {
        const auto it = done.find(arg);
        if (it == done.end()) {
          stack.push_back(arg);
          waits = true;
          continue;
        }
        changed |= it->second != arg;
        arg = it->second;
      }
      if (waits) continue;
      done[id] = changed ? graph().add(std::move(copy)) : id;
    }
    return done.at(root);
  }

  Type column_type(PlanNodeId base, const std::string& name) {
    const PlanNode& n = at(base);
    for (const OutputField& f : n.outputs)
      if (f.name == name) return graph().expr(f.expr).type;
    if (n.node.valid())
      if (const Field* f = node(n.node).type.find(name)) return f->type;
    ZEPHON_CHECK(false, "no column `{}`", name);
  }

  // ---- sizes -----------------------------------------------------------------------------------------------------

  double row_bytes(const PlanNode& n) {
    double bytes = 0;
    if (!n.outputs.empty()) {
      // Sources yield references and records; content of files is read by expressions.
      for (const OutputField& f : n.outputs) {
        const Type& type = graph().expr(f.expr).type;
        const bool is_record = n.kind == PlanNode::Kind::Source && type.elem == Elem::Bytes;
        bytes += is_record ? options_.machine.default_record_bytes : expected_bytes(type, options_.machine);
      }
    } else if (n.node.valid()) {
      for (const Field& f : node(n.node).type.fields)
        if (live_[index(n.node)].contains(f.name)) bytes += expected_bytes(f.type, options_.machine);
    }
    return bytes;
  }

  int64_t rows_for(double bytes) const {
    return std::clamp<int64_t>(static_cast<int64_t>(kChunkBytes / std::max(bytes, 1.0)), 1, kMostRows);
  }

  void finish() {
    for (PlanNode& n : plan_.nodes) n.est_bytes_per_row = row_bytes(n);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::Compute || n.on_batches || n.chunk_rows) continue;
      double bytes = n.est_bytes_per_row;
      for (PlanNodeId input : n.inputs) bytes = std::max(bytes, at(input).est_bytes_per_row);
      n.chunk_rows = rows_for(bytes);
      // Whole batches a chunk: each batch is a slice of it.
      auto it = batches_.find(static_cast<int32_t>(i));
      if (it != batches_.end() && n.chunk_rows > it->second) n.chunk_rows -= n.chunk_rows % it->second;
    }
    for (PlanNode& n : plan_.nodes)
      if (n.kind == PlanNode::Kind::Source) n.chunk_rows = rows_for(n.est_bytes_per_row);
    for (const PlanNode& user : plan_.nodes)
      for (PlanNodeId input : user.inputs)
        if (at(input).kind == PlanNode::Kind::Source && user.chunk_rows) at(input).chunk_rows = user.chunk_rows;
    if (options_.chunk)
      for (PlanNode& n : plan_.nodes)
        if ((n.kind == PlanNode::Kind::Compute && !n.on_batches) || n.kind == PlanNode::Kind::Source)
          n.chunk_rows = options_.chunk;
    plan_.least_memory = least_memory();
    plan_.hash = fmt::format("{:016x}", stream_hash(to_text(plan_)));
  }

  /// Bytes of a row of these columns, as far as they are known; of others only where they lie.
  static double known_bytes(const std::vector<OutputField>& fields) {
    double bytes = 0;
    for (const OutputField& f : fields) bytes += static_cast<double>(std::max<int64_t>(f.fixed_bytes, kReferenceBytes));
    return bytes;
  }

  /// One chunk in each stage, one batch at each batch, and all that windows hold.
  size_t least_memory() {
    double least = 0;
    for (const PlanNode& n : plan_.nodes) {
      const bool reads = n.kind == PlanNode::Kind::Source || n.kind == PlanNode::Kind::Compute;
      double rows = static_cast<double>(std::max<int64_t>(n.chunk_rows, 1));
      double bytes = known_bytes(n.outputs);
      for (const ComputeStep& s : n.steps)
        for (ExprId root : s.group.roots) bytes += static_cast<double>(fixed_bytes(graph().expr(root).type));
      if (!reads) {
        if (!n.node.valid() || n.kind == PlanNode::Kind::Deliver) continue;
        bytes = 0;
        for (const Field& f : node(n.node).type.fields)
          if (live_[index(n.node)].contains(f.name))
            bytes += static_cast<double>(std::max<int64_t>(fixed_bytes(f.type), kReferenceBytes));
        if (node(n.node).type.batch) rows = static_cast<double>(node(n.node).type.batch->size);
        if (n.kind == PlanNode::Kind::Serial && node(n.node).attrs.has("buffer_size"))
          rows *= static_cast<double>(node(n.node).attrs.integer("buffer_size"));
        // A batch made in place is the chunk of the stage above it; others are copied from their members.
        if (n.kind == PlanNode::Kind::Batch) {
          if (at(n.inputs[0]).chunk_rows == static_cast<int64_t>(rows)) continue;
          rows *= 2;
        }
      }
      least += rows * bytes;
    }
    // The runtime's buffers come in sizes a quarter apart; each chunk has some bookkeeping.
    least = least * 1.25 + static_cast<double>(plan_.nodes.size()) * kNodeBytes;
    return kUncountedBytes + static_cast<size_t>(least);
  }
  static constexpr int64_t kReferenceBytes = 64;
  static constexpr double kNodeBytes = 128 << 10;

  const PlanOptions& options_;
  const OpTable& ops_;
  Door& door_;
  const std::vector<WrittenStep>& steps_;
  std::vector<FieldSet> live_;
  int invented_count_ = 0;              // columns named by the planner: `$0`, `$1`, ...
  std::vector<char> filtered_below_;    // by node: a filter of the same region stands below
  std::map<int32_t, int64_t> batches_;  // plan node that feeds a batch -> its size
  Plan plan_;
  Reads reads_{plan_.graph};
};

}  // namespace

std::vector<WrittenStep> written_steps(const Graph& as_written) {
  std::vector<WrittenStep> steps;
  for (NodeId id : as_written.topological())
    if (as_written.node(id).origin.valid()) steps.push_back({as_written.node(id).step, as_written.node(id).origin});
  return steps;
}

Plan make_plan(const Graph& graph, const std::vector<WrittenStep>& steps, const PlanOptions& options,
               const OpTable& ops, Door& door) {
  return Planner(graph, steps, options, ops, door).run();
}

}  // namespace zephon
