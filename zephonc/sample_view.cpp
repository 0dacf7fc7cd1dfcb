#include "zephonc/sample_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/all_ops.h"
#include "ops/file_io.h"
#include "zephonc/console.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/steps.h"

namespace zephon {
namespace {

std::string clipped(std::string text, size_t most = 72) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "...";
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

}  // namespace

std::string type_text(const Value& value) {
  std::string out(elem_name(value.elem()));
  for (size_t i = 0; i < value.shape().size(); ++i) out += (i == 0 ? "[" : ", ") + std::to_string(value.shape()[i]);
  return out + (value.shape().empty() ? "" : "]");
}

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

std::optional<int> SampleSearch::read_id(const std::string& text, SampleId& id) const {
  if (parse_id(text, id)) return std::nullopt;
  std::vector<SampleId> found;
  const std::string wanted = text.empty() ? text : shown_file(text);  // as sources describe it: a line end is a `?`
  for (NodeId at : graph_.topological()) {
    const Node& node = graph_.node(at);
    if (!node.inputs.empty()) continue;
    const Source& source = sources().at(at);
    for (uint64_t position = 0; position < source.size(); ++position) {
      const std::string name = source.describe(position);
      if (name == wanted || name.ends_with("/" + wanted)) found.push_back(sources().identity(at, position, {}));
    }
  }
  if (found.size() == 1) {
    id = found[0];
    return std::nullopt;
  }
  if (found.empty()) {
    say(fmt::format("zephonc: `{}` is no identity, such as 0/0/0/17 (messages and manifests print them), and no sample's file",
                    text));
  } else {
    std::string ids;
    for (size_t i = 0; i < std::min<size_t>(found.size(), 3); ++i)
      ids += fmt::format("{}{} ({})", i ? ", " : "", to_string(found[i]), sources().describe(found[i]));
    say(fmt::format("zephonc: {} samples are called `{}`: {}{}", found.size(), text, ids, found.size() > 3 ? ", ..." : ""));
  }
  return kExitUsage;
}

bool same_sample(const SampleId& a, const SampleId& b) {
  size_t common = std::min(a.words.size(), b.words.size());
  return common > 0 && std::equal(a.words.begin(), a.words.begin() + static_cast<ptrdiff_t>(common), b.words.begin());
}

SampleSearch::SampleSearch(const Session& session, uint64_t epoch)
    : session_(session), graph_(session.graph()), epoch_(epoch) {}

std::optional<int> SampleSearch::open() {
  Failure failure;
  run_ = ReferenceRun::open(graph_, {session_.program().seed, epoch_ + 1, session_.base_dir()}, failure);
  if (run_ != nullptr) return std::nullopt;
  session_.show_failure(failure);
  return kExitRun;
}

std::optional<Sample> SampleSearch::nth(NodeId node, uint64_t index) {
  ended_by_.reset();
  auto stream = run_->open_stream(node, epoch_);
  if (graph_.node(node).type.domain == Domain::Indexed) {
    return index < stream->domain_size() ? stream->at(index).sample : std::nullopt;
  }
  for (uint64_t i = 0;;) {
    SampleStream::Item item = stream->next();
    if (!item.sample) {
      ended_by_ = item.failure;
      return std::nullopt;
    }
    std::vector<Sample>& members = item.sample->members;
    if (!members.empty() && index < i + members.size()) return std::move(members[index - i]);
    if (members.empty() && index == i) return item.sample;
    i += std::max<size_t>(members.size(), 1);
  }
}

std::optional<Sample> SampleSearch::find(NodeId node, const SampleId& wanted) {
  ended_by_.reset();
  auto stream = run_->open_stream(node, epoch_);
  // Where a domain is known each place is asked, so that a failing sample before the wanted one does not end the
  // search.
  if (graph_.node(node).type.domain != Domain::Data) {
    const uint64_t size = stream->domain_size();
    for (uint64_t i = 0; i < size; ++i) {
      SampleStream::Item item = stream->at(i);
      if (item.sample && same_sample(item.sample->id, wanted)) return item.sample;
    }
    return std::nullopt;
  }
  while (true) {
    SampleStream::Item item = stream->next();
    if (!item.sample) {
      ended_by_ = item.failure;
      return std::nullopt;
    }
    if (same_sample(item.sample->id, wanted)) return item.sample;
    for (Sample& member : item.sample->members) {
      if (same_sample(member.id, wanted)) return std::move(member);
    }
  }
}

std::vector<NodeId> SampleSearch::path(NodeId node, const SampleId& wanted) const {
  const auto place = sources().locate(wanted);
  // Fills `way` from `at` up to the source, or leaves it as it was.
  std::function<bool(NodeId, std::vector<NodeId>&)> climb = [&](NodeId at, std::vector<NodeId>& way) {
    way.push_back(at);
    if (place && at == place->source) return true;
    for (NodeId input : graph_.node(at).inputs) {
      if (climb(input, way)) return true;
    }
    if (!place && graph_.node(at).inputs.empty()) return true;
    way.pop_back();
    return false;
  };
  std::vector<NodeId> way;
  if (!climb(node, way)) {
    for (way = {node}; !graph_.node(way.back()).inputs.empty();) way.push_back(graph_.node(way.back()).inputs[0]);
  }
  std::reverse(way.begin(), way.end());
  return way;
}

std::optional<SampleSearch::Lost> SampleSearch::lost(NodeId node, const SampleId& wanted) {
  std::optional<Failure> rejected;
  run_->on_rejected([&](const Rejected& r) {
    if (same_sample(r.failure.id, wanted)) rejected = r.failure.failure;
  });
  std::optional<Lost> out;
  std::optional<Sample> before;
  for (NodeId at : path(node, wanted)) {
    rejected.reset();
    std::optional<Sample> here = find(at, wanted);
    if (!here) {
      if (before) out = Lost{at, std::move(*before), rejected};
      break;
    }
    before = std::move(here);
  }
  run_->on_rejected({});
  return out;
}

std::string SampleSearch::verdict(NodeId at, const Sample& before) const {
  const Node& node = graph_.node(at);
  if (!node.predicate.valid()) return {};
  DataConstants constants(graph_, session_.base_dir());
  EpochContext epoch{session_.program().seed, epoch_, {}};
  SampleEvaluator evaluator(
      graph_, constants, [&](const std::string& f) { return before.find(f)->force(); }, before.id.hash(), epoch);
  std::string out = fmt::format("line {}: {}: {}\n", session_.line_of(node.origin), to_text(graph_, at),
                                content_text(evaluator.evaluate(node.predicate)));
  std::function<void(ExprId, size_t)> sides = [&](ExprId id, size_t depth) {
    const Expr& expr = graph_.expr(id);
    const bool of_bools = !expr.args.empty() && std::all_of(expr.args.begin(), expr.args.end(), [&](ExprId arg) {
      return graph_.expr(arg).type == Type::scalar(Elem::Bool);
    });
    for (ExprId arg : expr.args) {
      const Expr& side = graph_.expr(arg);
      if (side.constant) continue;
      out += fmt::format("{:{}}{} = {}\n", "", 2 * depth, clipped(to_text(graph_, arg)),
                         content_text(evaluator.evaluate(arg)));
      if (of_bools) sides(arg, depth + 1);
    }
  };
  sides(node.predicate, 1);
  return out;
}

std::string SampleSearch::draws(NodeId at, const Sample& before) const {
  const Node& node = graph_.node(at);
  DataConstants constants(graph_, session_.base_dir());
  EpochContext epoch{session_.program().seed, epoch_, {}};
  std::string out;
  Sample grown = before;  // a later assignment may read what an earlier one made
  for (const Assign& assign : node.assigns) {
    SampleEvaluator evaluator(
        graph_, constants, [&](const std::string& f) { return grown.find(f)->force(); }, before.id.hash(), epoch);
    for (ExprId id : graph_.topological(assign.expr)) {
      const Expr& expr = graph_.expr(id);
      if (!expr.op->effects.random) continue;
      out += fmt::format("line {}: draw {:016x} for `{}`: {} = {}\n", session_.line_of(node.origin), expr.draw_id,
                         assign.field, clipped(to_text(graph_, id)), content_text(evaluator.evaluate(id)));
    }
    if (&assign != &node.assigns.back()) grown.assign(assign.field, ready(evaluator.evaluate(assign.expr)));
  }
  return out;
}

}  // namespace zephon
