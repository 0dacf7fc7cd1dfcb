#include "zephonc/tool_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/all_ops.h"
#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/console.h"

namespace zephon {

Graph sample_by_sample(const Graph& written) {
  Graph graph = written;
  std::map<NodeId, NodeId> now;  // nodes that are left out are replaced by their inputs
  int32_t last_step = 0;
  for (NodeId id : graph.topological()) {
    Node& node = graph.node(id);
    const Node& as_written = written.node(id);
    last_step = std::max(last_step, node.step);
    for (NodeId& input : node.inputs) input = now.at(input);
    now[id] = id;
    node.type.batch.reset();
    if (node.inputs.empty()) continue;
    const bool on_batches = written.node(as_written.inputs[0]).type.batch.has_value();
    const bool batches = as_written.type.batch.has_value();
    // Batches are made or taken apart here, or counted: none of it concerns a sample.
    if (batches != on_batches || (on_batches && node.op->algebra.counts_arrivals)) now[id] = node.inputs[0];
    if (node.op->cls == OpClass::Repeat) node.attrs.set("count", int64_t{1});
    if (node.op->cls == OpClass::Policy) {
      Attrs attrs;
      for (const auto& [name, value] : node.attrs) {
        if (name != "max_errors") attrs.set(name, value);
      }
      if (attrs.text("policy") != "mask") attrs.set("policy", std::string("skip"));
      node.attrs = std::move(attrs);
    }
  }
  const NodeId end = now.at(graph.output());
  Node report;
  report.op = OpTable(all_ops()).find("on_error");
  report.inputs = {end};
  report.attrs.set("policy", std::string("skip"));
  report.attrs.set("file", std::string());
  report.type = graph.node(end).type;
  report.type.domain = Domain::Data;
  report.type.endless = false;
  for (const Field& field : report.type.fields) report.needed.push_back(field.name);
  report.step = last_step + 1;
  graph.set_output(graph.add(std::move(report)));
  return graph;
}

ToolRun::ToolRun(const Session& session, uint64_t expected_records) : session_(session) {
  const std::string& progress = session.options().progress;
  WatchOptions watching;
  watching.progress = progress == "always" || (progress == "auto" && stderr_is_terminal());
  watching.expected_records = expected_records;
  watching.status = [this] { return runner_ ? runner_->status() : std::string(); };
  watching.bottleneck = [] { return std::string(); };
  watch_ = std::make_unique<RunWatch>(std::move(watching));
}

std::optional<int> ToolRun::operator()(const Graph& graph, RunOptions how, Sink& sink, RunResult& result) {
  OptimizeOptions optimizing;
  if (auto code = session_.optimizer_options(optimizing)) return code;
  OptimizeResult optimized;
  if (auto code = session_.optimize_program(graph, optimizing, optimized)) return code;
  if (optimized.plan.least_memory > session_.memory()) {
    return show_problem({"R0504",
                         fmt::format("{} of memory is below the {} that this program needs at least",
                                     human_bytes(static_cast<double>(session_.memory())),
                                     human_bytes(static_cast<double>(optimized.plan.least_memory))),
                         {}});
  }
  how.threads = session_.threads();
  how.memory = session_.memory();
  how.stop = &watch_->stop();
  auto compiler = make_kernel_compiler();
  runner_ = std::make_unique<Runner>(
      optimized.plan, how, [&] { return compiler.get(); }, sink);
  watch_->start();
  result = runner_->run();
  watch_->finish();
  runner_.reset();
  return std::nullopt;
}

int ToolRun::end(const RunResult& result, const OpenSources& sources) const {
  if (result.end == RunResult::End::Stopped) return show_problem({"R0506", "asked to end", {}});
  if (result.end != RunResult::End::Failed) return kExitOk;
  session_.show_failure(*result.failure, sources.describe(result.failure->id));
  return result.failure->failure.code.starts_with('B') ? kExitBug : kExitRun;
}

}  // namespace zephon
