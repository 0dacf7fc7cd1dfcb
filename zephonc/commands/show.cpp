// zephonc show FILE: one sample by the reference interpreter: its fields, the draws that made it, the verdicts of the
// filters it met.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "ops/all_ops.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/sample_view.h"
#include "zephonc/sinks/sheet.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

class Show {
 public:
  explicit Show(Session& session)
      : session_(session),
        options_(session.options()),
        graph_(session.graph()),
        numbers_(graph_),
        search_(session, options_.epoch) {}

  int operator()() {
    NodeId node = graph_.output();
    if (!options_.at.empty()) {
      std::string error;
      std::optional<NodeId> found = find_step(session_, options_.at, error);
      if (!found) {
        say("zephonc: " + error);
        return kExitUsage;
      }
      node = *found;
    }
    if (auto code = search_.open()) return *code;
    SampleId wanted;
    if (!options_.id.empty()) {
      if (auto code = search_.read_id(options_.id, wanted)) return *code;
    }
    std::optional<Sample> sample =
        options_.id.empty() ? search_.nth(node, options_.index.value_or(0)) : search_.find(node, wanted);
    if (!sample) return options_.id.empty() ? no_such_index() : say_where_lost(node, wanted);
    return show(node, *sample);
  }

 private:
  int no_such_index() {
    if (const auto& failure = search_.ended_by()) {
      session_.show_failure(*failure, search_.sources().describe(failure->id));
    } else {
      say(fmt::format("zephonc: there are fewer than {} samples here", options_.index.value_or(0) + 1));
    }
    return kExitRun;
  }

  int say_where_lost(NodeId node, const SampleId& wanted) {
    const std::string name = fmt::format("sample {} ({})", to_string(wanted), search_.sources().describe(wanted));
    std::optional<SampleSearch::Lost> lost = search_.lost(node, wanted);
    if (!lost) {
      say(fmt::format("zephonc: no sample {}", to_string(wanted)));
      return kExitRun;
    }
    say(fmt::format("zephonc: {} is dropped by step {}, `{}`, line {}", name, numbers_.of(lost->at),
                    to_text(graph_, lost->at), session_.line_of(graph_.node(lost->at).origin)));
    if (lost->failure) say(fmt::format("{}: {}", lost->failure->code, lost->failure->message));
    print(search_.verdict(lost->at, lost->before));
    return kExitRun;
  }

  int show(NodeId node, const Sample& sample) {
    const Node& step = graph_.node(node);
    text_ += fmt::format("sample id {}  {}\nafter step {}, `{}`, line {}, epoch {}\n\n", to_string(sample.id),
                         search_.sources().describe(sample.id), numbers_.of(node), to_text(graph_, node),
                         session_.line_of(step.origin), options_.epoch);
    std::vector<std::pair<std::string, const Value*>> fields;
    size_t name_width = 0, type_width = 0;
    for (const auto& [name, lazy] : sample.fields) {
      if (name.starts_with('$') || is_companion(name)) continue;
      const Value& value = lazy->force();
      fields.emplace_back(name, &value);
      name_width = std::max(name_width, name.size());
      type_width = std::max(type_width, type_text(value).size());
    }
    for (const auto& [name, value] : fields) {
      std::string type = value->whole_failed() ? "?" : type_text(*value);
      const LazyValue missing = sample.find(missing_field(name));
      const bool absent =
          missing && !missing->force().any_failed() && missing->force().rank() == 0 && missing->force().at(0).i;
      text_ += fmt::format("  {:<{}}  {:<{}}  {}\n", name, name_width, type, type_width,
                           absent ? "missing" : content_text(*value));
    }
    if (sample.verdict) {
      text_ += fmt::format("\na filter FAILED on it, {}: {}\n", sample.verdict->code, sample.verdict->message);
    }
    for (NodeId at : search_.path(node, sample.id)) {
      const Node& n = graph_.node(at);
      if (n.inputs.empty()) continue;
      bool draws = std::any_of(n.assigns.begin(), n.assigns.end(), [&](const Assign& a) { return has_draws(a.expr); });
      if (!n.predicate.valid() && !draws) continue;
      std::optional<Sample> before = search_.find(n.inputs[0], sample.id);
      if (!before) continue;
      for (const std::string& said : {search_.verdict(at, *before), draws ? search_.draws(at, *before) : ""}) {
        if (!said.empty()) text_ += "\n" + said;
      }
    }
    if (auto failure = write_pictures(fields)) return show_problem(*failure);
    return print(text_);
  }

  bool has_draws(ExprId root) const {
    for (ExprId id : graph_.topological(root)) {
      if (graph_.expr(id).op->effects.random) return true;
    }
    return false;
  }

  std::optional<Failure> write_pictures(const std::vector<std::pair<std::string, const Value*>>& fields) {
    if (options_.png.empty()) return std::nullopt;
    if (mkdir(options_.png.c_str(), 0777) != 0 && errno != EEXIST) return write_failure(options_.png, errno);
    for (const auto& [name, value] : fields) {
      if (value->any_failed() || is_string(value->elem())) continue;
      for (const Picture& picture : pictures_of({name, value->elem(), value->shape(), value->bytes().data()}, false)) {
        std::string path = options_.png + "/" + name + ".png";
        if (auto failure = write_png(picture, path)) return failure;
        text_ += fmt::format("\n{} -> {}\n", name, path);
      }
    }
    return std::nullopt;
  }

  Session& session_;
  const Options& options_;
  const Graph& graph_;
  StepNumbers numbers_;
  SampleSearch search_;
  std::string text_;
};

}  // namespace

int command_show(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Show(session)();
}

}  // namespace zephon
