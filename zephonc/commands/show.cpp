// zephonc show FILE: one sample by the reference interpreter: its fields, the draws that made it, the verdicts of the
// filters it met.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "ops/all_ops.h"
#include "runtime/reference/reference.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/costs_file.h"
#include "zephonc/session.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/sinks/sheet.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

std::string clipped(std::string text, size_t most = 72) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "...";
}

std::string type_text(const Value& value) {
  std::string out(elem_name(value.elem()));
  for (size_t i = 0; i < value.shape().size(); ++i) out += (i == 0 ? "[" : ", ") + std::to_string(value.shape()[i]);
  return out + (value.shape().empty() ? "" : "]");
}

std::string scalar_text(const Scalar& scalar) {
  if (scalar.elem == Elem::Bool) return scalar.i != 0 ? "true" : "false";
  if (scalar.elem == Elem::Bytes) return human_bytes(static_cast<double>(scalar.s.size()));
  if (is_string(scalar.elem)) {
    std::string out;
    append_json_string(out, scalar.s);
    return clipped(out);
  }
  return is_float(scalar.elem) ? fmt::format("{}", scalar.f) : std::to_string(scalar.i);
}

/// Small tensors whole, large ones by their minimum, maximum and mean.
std::string content_text(const Value& value) {
  if (value.whole_failed())
    return fmt::format("FAILED {}: {}", value.failure()->code, clipped(value.failure()->message, 200));
  std::string bad;
  int64_t failed = 0;
  for (int64_t i = 0; i < value.size(); ++i) failed += value.element_failed(i);
  if (failed > 0) {
    bad = fmt::format("  {} of {} elements FAILED {}: {}", failed, value.size(), value.failure()->code,
                      clipped(value.failure()->message, 200));
  }
  if (value.rank() == 0) return scalar_text(value.at(0)) + bad;
  if (value.size() <= 8 || is_string(value.elem())) {
    std::string out;
    for (int64_t i = 0; i < std::min<int64_t>(value.size(), 8); ++i)
      out += (i > 0 ? ", " : "") + scalar_text(value.at(i));
    return clipped("[" + out + (value.size() > 8 ? ", ..." : "") + "]") + bad;
  }
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t count = 0, odd = 0;
  for (int64_t i = 0; i < value.size(); ++i) {
    if (value.element_failed(i)) continue;
    Scalar scalar = value.at(i);
    double v = is_float(scalar.elem) ? scalar.f : static_cast<double>(scalar.i);
    if (!std::isfinite(v)) {
      ++odd;
      continue;
    }
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
    ++count;
  }
  std::string out =
      count > 0 ? fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}", low, high, sum / static_cast<double>(count)) : "";
  if (odd > 0) out += fmt::format("  {} NaN or infinite", odd);
  return out + bad;
}

/// Identities grow on their way (arms, passes, children): the shorter is the beginning of the longer.
bool same_sample(const SampleId& a, const SampleId& b) {
  size_t common = std::min(a.words.size(), b.words.size());
  return common > 0 && std::equal(a.words.begin(), a.words.begin() + static_cast<ptrdiff_t>(common), b.words.begin());
}

class Show {
 public:
  explicit Show(Session& session) : session_(session), options_(session.options()), graph_(session.graph()) {}

  int operator()() {
    SampleId wanted;
    if (!options_.id.empty() && !parse_id(options_.id, wanted)) {
      say(fmt::format("zephonc: `{}` is no identity; messages and manifests print them, such as 0/0/0/17",
                      options_.id));
      return kExitUsage;
    }
    NodeId node = graph_.output();
    if (!options_.at.empty()) {
      std::string error;
      int step = find_step(session_, options_.at, error);
      if (step < 0) {
        say("zephonc: " + error);
        return kExitUsage;
      }
      for (NodeId id : graph_.topological()) {
        if (graph_.node(id).step == step) node = id;
      }
    }
    // Members of batches are shown as the samples that they are.
    while (graph_.node(node).type.batch && !graph_.node(node).inputs.empty()) node = graph_.node(node).inputs[0];
    Failure failure;
    run_ =
        ReferenceRun::open(graph_, {session_.program().seed, options_.epoch + 1, session_.base_dir(), false}, failure);
    if (run_ == nullptr) {
      session_.show_failure(failure);
      return kExitRun;
    }
    std::optional<Sample> sample = options_.id.empty() ? nth(node, options_.index.value_or(0)) : find(node, wanted);
    if (!sample) return options_.id.empty() ? no_such_index(node) : say_where_lost(node, wanted);
    return show(node, *sample);
  }

 private:
  bool random_access(NodeId node) const { return graph_.node(node).type.domain != Domain::Data; }

  std::optional<Sample> nth(NodeId node, uint64_t index) {
    auto stream = run_->open_stream(node, options_.epoch);
    if (graph_.node(node).type.domain == Domain::Indexed) {
      return index < stream->domain_size() ? stream->at(index).sample : std::nullopt;
    }
    for (uint64_t i = 0;; ++i) {
      SampleStream::Item item = stream->next();
      if (!item.sample) {
        count_ = i;
        ended_by_ = item.failure;
        return std::nullopt;
      }
      if (i == index) return item.sample;
    }
  }

  /// Asks each place of a domain, so that a failing sample before the wanted one does not end the search.
  std::optional<Sample> find(NodeId node, const SampleId& wanted) {
    auto stream = run_->open_stream(node, options_.epoch);
    if (random_access(node)) {
      const uint64_t size = stream->domain_size();
      for (uint64_t i = 0; i < size; ++i) {
        SampleStream::Item item = stream->at(i);
        if (item.sample && same_sample(item.sample->id, wanted)) return item.sample;
      }
      return std::nullopt;
    }
    while (true) {
      SampleStream::Item item = stream->next();
      if (!item.sample) return std::nullopt;
      if (same_sample(item.sample->id, wanted)) return item.sample;
      for (Sample& member : item.sample->members) {
        if (same_sample(member.id, wanted)) return std::move(member);
      }
    }
  }

  int no_such_index(NodeId) {
    if (ended_by_) {
      session_.show_failure(ended_by_->failure, &ended_by_->id, run_->sources().describe(ended_by_->id));
    } else {
      say(fmt::format("zephonc: there are fewer than {} samples here", options_.index.value_or(0) + 1));
    }
    return kExitRun;
  }

  /// Follows the sample from its source to the step that does not let it through.
  int say_where_lost(NodeId node, const SampleId& wanted) {
    std::vector<NodeId> path = path_to(node);
    NodeId last;
    for (NodeId at : path) {
      if (!find(at, wanted)) {
        if (!last.valid()) break;
        say(fmt::format("zephonc: sample {} ({}) is dropped by step {}, `{}`, line {}", to_string(wanted),
                        run_->sources().describe(wanted), graph_.node(at).step, to_text(graph_, at),
                        session_.line_of(graph_.node(at).origin)));
        show_verdict(at, *find(last, wanted));
        return print(text_) != kExitOk ? kExitRun : kExitRun;
      }
      last = at;
    }
    say(fmt::format("zephonc: no sample {}", to_string(wanted)));
    return kExitRun;
  }

  /// From the source to `node`, along first inputs.
  std::vector<NodeId> path_to(NodeId node) const {
    std::vector<NodeId> path = {node};
    while (!graph_.node(path.back()).inputs.empty()) path.push_back(graph_.node(path.back()).inputs[0]);
    std::reverse(path.begin(), path.end());
    return path;
  }

  int show(NodeId node, const Sample& sample) {
    const Node& step = graph_.node(node);
    text_ += fmt::format("sample id {}  {}\nafter step {}, `{}`, line {}, epoch {}\n\n", to_string(sample.id),
                         run_->sources().describe(sample.id), step.step, to_text(graph_, node),
                         session_.line_of(step.origin), options_.epoch);
    std::vector<std::pair<std::string, const Value*>> fields;
    size_t name_width = 0, type_width = 0;
    for (const auto& [name, lazy] : sample.fields) {
      if (name.starts_with('$')) continue;
      const Value& value = lazy->force();
      fields.emplace_back(name, &value);
      name_width = std::max(name_width, name.size());
      type_width = std::max(type_width, type_text(value).size());
    }
    for (const auto& [name, value] : fields) {
      std::string type = value->whole_failed() ? "?" : type_text(*value);
      text_ += fmt::format("  {:<{}}  {:<{}}  {}\n", name, name_width, type, type_width, content_text(*value));
    }
    for (NodeId at : path_to(node)) {
      const Node& n = graph_.node(at);
      if (n.inputs.empty() || n.type.batch) continue;
      bool filter = n.predicate.valid();
      bool draws = std::any_of(n.assigns.begin(), n.assigns.end(), [&](const Assign& a) { return has_draws(a.expr); });
      if (!filter && !draws) continue;
      std::optional<Sample> before = find(n.inputs[0], sample.id);
      if (!before) continue;
      if (filter) show_verdict(at, *before);
      if (draws) show_draws(at, *before);
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

  void show_verdict(NodeId at, const Sample& before) {
    const Node& node = graph_.node(at);
    if (!node.predicate.valid()) return;
    DataConstants constants(graph_, session_.base_dir());
    EpochContext epoch{session_.program().seed, options_.epoch, {}};
    SampleEvaluator evaluator(
        graph_, constants, [&](const std::string& f) { return before.find(f)->force(); }, before.id.hash(), epoch);
    text_ += fmt::format("\nline {}: {}: {}\n", session_.line_of(node.origin), to_text(graph_, at),
                         content_text(evaluator.evaluate(node.predicate)));
  }

  void show_draws(NodeId at, const Sample& before) {
    const Node& node = graph_.node(at);
    DataConstants constants(graph_, session_.base_dir());
    EpochContext epoch{session_.program().seed, options_.epoch, {}};
    Sample grown = before;  // a later assignment may read what an earlier one made
    for (const Assign& assign : node.assigns) {
      SampleEvaluator evaluator(
          graph_, constants, [&](const std::string& f) { return grown.find(f)->force(); }, before.id.hash(), epoch);
      for (ExprId id : graph_.topological(assign.expr)) {
        const Expr& expr = graph_.expr(id);
        if (!expr.op->effects.random) continue;
        text_ += fmt::format("\nline {}: draw {:016x} for `{}`: {} = {}\n", session_.line_of(node.origin), expr.draw_id,
                             assign.field, clipped(to_text(graph_, id)), content_text(evaluator.evaluate(id)));
      }
      grown.assign(assign.field, ready(evaluator.evaluate(assign.expr)));
    }
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
  std::unique_ptr<ReferenceRun> run_;
  std::optional<RunFailure> ended_by_;
  uint64_t count_ = 0;
  std::string text_;
};

}  // namespace

int command_show(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Show(session)();
}

}  // namespace zephon
