// zephonc ir FILE: what was compiled for each stage: loop nest, LLVM IR, assembly.

#include <fmt/format.h>

#include "runtime/kernels/kernel_compiler.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"

namespace zephon {

int command_ir(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  OptimizeOptions how;
  if (auto code = session.optimizer_options(how)) return *code;
  OptimizeResult optimized;
  if (auto code = session.optimize_program(how, optimized)) return *code;
  auto compiler = make_kernel_compiler();
  std::string out;
  int count = 0;
  for (const PlanNode& node : optimized.plan.nodes) {
    for (const ComputeStep& step : node.steps) {
      if (step.kind != ComputeStep::Kind::Evaluate || step.group.kind == KernelGroup::Kind::Native) continue;
      std::string roots;
      for (ExprId root : step.group.roots) roots += (roots.empty() ? "" : "; ") + to_text(optimized.plan.graph, root);
      KernelListing listing = compiler->listing(optimized.plan.graph, step.group);
      out += fmt::format("kernel {}: {}\n\n; loop nest\n{}\n; LLVM IR, optimised\n{}\n; assembly\n{}\n", ++count, roots,
                         listing.loop_nest, listing.llvm_ir, listing.assembly);
    }
  }
  if (!compiler->warning().empty()) say("zephonc: " + compiler->warning());
  return print(count > 0 ? out : "nothing is compiled for this program\n");
}

}  // namespace zephon
