#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// All of a run as one list over the fields above it. Assignments run in order, so whatever reads the old value of a
/// field must stand before the one that replaces it: none if that goes round in a circle (x, y = y, x).
std::optional<std::vector<Assign>> merged(Rewriter& rewriter, std::span<const NodeId> run) {
  Environment env;
  std::vector<std::string> order;
  for (NodeId id : run) {
    const std::vector<Assign> assigns = rewriter.graph().node(id).assigns;
    for (const Assign& a : assigns) order.push_back(a.field);
    apply_assigns(rewriter.graph(), rewriter.reads(), assigns, env);
  }
  std::map<std::string, int> old_readers;  // of the fields that are replaced; most are not
  auto each_old = [&](const std::string& field, auto&& f) {
    for (const std::string& name : rewriter.reads().of(env.at(field)))
      if (name != field && env.contains(name)) f(name);
  };
  for (const auto& [field, expr] : env) each_old(field, [&](const std::string& name) { ++old_readers[name]; });
  std::vector<Assign> list;
  FieldSet done;
  for (bool progress = true; progress;) {
    progress = false;
    for (const std::string& field : order) {
      if (done.contains(field) || old_readers[field] > 0) continue;
      list.push_back({field, env.at(field)});
      done.insert(field);
      each_old(field, [&](const std::string& name) { --old_readers[name]; });
      progress = true;
    }
  }
  if (done.size() < env.size()) return std::nullopt;
  return list;
}

/// The row of assignments that ends in `m.outer`, source outward.
std::vector<NodeId> row_of(Rewriter& rewriter, const Match& m) {
  const Graph& graph = rewriter.graph();
  std::vector<NodeId> row = {m.outer, m.inner};
  for (;;) {
    if (graph.node(row.back()).inputs.size() != 1) break;
    const NodeId above = graph.node(row.back()).inputs[0];
    if (graph.node(above).assigns.empty() || rewriter.users(above) != 1) break;
    row.push_back(above);
  }
  std::ranges::reverse(row);
  return row;
}

/// The row as few assignments: one, but where some have no order together.
std::vector<std::pair<std::span<const NodeId>, std::vector<Assign>>> parts_of(Rewriter& rewriter,
                                                                              std::span<const NodeId> row) {
  if (auto whole = merged(rewriter, row)) return {{row, std::move(*whole)}};
  std::vector<std::pair<std::span<const NodeId>, std::vector<Assign>>> parts;
  for (size_t begin = 0, end; begin < row.size(); begin = end) {
    std::optional<std::vector<Assign>> part = rewriter.graph().node(row[begin]).assigns;
    for (end = begin + 1; end < row.size(); ++end) {
      auto longer = merged(rewriter, row.subspan(begin, end + 1 - begin));
      if (!longer) break;
      part = std::move(longer);
    }
    parts.emplace_back(row.subspan(begin, end - begin), std::move(*part));
  }
  return parts;
}

void apply(Rewriter& rewriter, const Match& m) {
  const std::vector<NodeId> row = row_of(rewriter, m);
  for (auto& [steps, assigns] : parts_of(rewriter, row)) {
    for (NodeId id : steps.first(steps.size() - 1)) rewriter.remove(id);
    rewriter.graph().node(steps.back()).assigns = std::move(assigns);
  }
}

/// The lowest of a row: it takes the others in at once. Steps that have no order together are rare, and not worth an
/// answer to --why.
bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  if (graph.node(outer).assigns.empty() || !rules::reads_one(rewriter, outer, m) ||
      rules::inner_of(rewriter, m).assigns.empty())
    return false;
  const NodeId reader = rewriter.reader(outer);
  if (reader.valid() && !graph.node(reader).assigns.empty()) return false;
  const std::vector<NodeId> row = row_of(rewriter, m);
  return parts_of(rewriter, row).size() < row.size();
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
};

}  // namespace

ZEPHON_RULE_DEF(MergeAssigns) = {
    .name = "merge_assigns",
    .summary =
        "Two assignments in a row become one over the fields above both: rules for "
        "expressions see across them, and equal "
        "expressions are one.",
    .law = "assign g . assign f = assign (f, g . f)",
    .ends = "one assignment fewer",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
range(100) | x = index * 3 | y = x + 1

keeps
stream a = range(100) | x = index * 3
stream b = a | x = x + 1
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
