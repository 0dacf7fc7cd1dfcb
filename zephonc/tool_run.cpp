#include "zephonc/tool_run.h"

#include <fmt/format.h>

#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/console.h"

namespace zephon {

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
