// zephonc plan FILE: the program before and after the optimizer, and how it got there.

#include <fmt/format.h>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/cost_report.h"
#include "zephonc/costs_file.h"
#include "zephonc/plan_page.h"
#include "zephonc/plan_story.h"
#include "zephonc/plan_view.h"
#include "zephonc/session.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

class Planning {
 public:
  explicit Planning(Session& session) : session_(session), options_(session.options()) {}

  int operator()() {
    const bool page = options_.format == "html";
    if (auto code = session_.optimizer_options(how_)) return *code;
    how_.texts = options_.steps || !options_.why.empty() || page;
    if (auto code = session_.optimize_program(how_, result_)) return *code;
    if (!options_.why.empty()) return why(session_, how_, result_, options_.why);
    std::string text;
    if (auto code = view(page, text)) return *code;
    if (options_.out.empty()) return print(text);
    if (auto problem = write_file_atomically(options_.out, text)) {
      say("zephonc: " + problem->message);
      return kExitRun;
    }
    return kExitOk;
  }

 private:
  /// What the program costs that the rules did not touch.
  double written_ns() const {
    OptimizeOptions none = how_;
    none.no_optimize = true;
    none.texts = false;
    OptimizeResult written;
    return session_.optimize_program(none, written) ? 0 : plan_ns(written.plan);
  }

  std::optional<int> view(bool page, std::string& text) const {
    const SourceMap& sources = session_.sources();
    if (options_.steps) {
      text = steps_text(session_, result_, written_ns());
      return std::nullopt;
    }
    if (page) {
      text = plan_page(session_, result_, {result_.trace, written_ns(), session_.relaxations(), {}}, how_.plan.machine);
      return std::nullopt;
    }
    const std::string title = fmt::format("{} ({})", options_.file, options_.stage);
    const bool physical = options_.stage == "physical";
    const Graph& graph = options_.stage == "typed" ? session_.graph() : result_.graph;
    if (options_.stage == "source") {
      text = sources.text(session_.file());
    } else if (options_.json || options_.format == "json") {
      const PlanFacts facts{result_.trace, physical ? written_ns() : 0, session_.relaxations(),
                            costs_json(session_, result_, how_.plan.machine)};
      text = physical ? plan_json(result_.plan, sources, facts, plan_options_json(options_, how_.plan.machine))
                      : graph_json(graph, sources, options_.stage);
    } else if (options_.format == "text") {
      text = physical ? "as written\n" + graph_text(session_.graph(), sources, true) + "\nplanned\n" +
                            plan_text(result_.plan, sources, session_.relaxations()) +
                            costs_text(session_, result_, how_.plan.machine)
                      : graph_text(graph, sources, options_.stage == "typed");
    } else {
      text = physical ? plan_dot(result_.plan, sources, title) : graph_dot(graph, sources, title);
      if (options_.format == "dot") return std::nullopt;
      std::string error;
      auto svg = run_graphviz(text, "svg", error);
      if (!svg) {
        say("zephonc: --format svg: " + error);
        return kExitRun;
      }
      text = *std::move(svg);
    }
    return std::nullopt;
  }

  Session& session_;
  const Options& options_;
  OptimizeOptions how_;
  OptimizeResult result_;
};

}  // namespace

int command_plan(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Planning(session)();
}

}  // namespace zephon
