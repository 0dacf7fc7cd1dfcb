#include <map>
#include <optional>

#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

/// Both as one list over the fields above them. Assignments run in order, so whatever reads the old value of a field
/// must stand before the one that replaces it: none if that goes round in a circle (x, y = y, x).
std::optional<std::vector<Assign>> merged(Rewriter& rewriter, const Match& m) {
  Environment env = rules::values_after(rewriter, rules::inner_of(rewriter, m));
  const std::vector<Assign> outer = rules::outer_of(rewriter, m).assigns;
  std::vector<std::string> order;
  for (const Assign& a : rules::inner_of(rewriter, m).assigns) order.push_back(a.field);
  for (const Assign& a : outer) order.push_back(a.field);
  apply_assigns(rewriter.graph(), rewriter.reads(), outer, env);

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

void apply(Rewriter& rewriter, const Match& m) {
  std::vector<Assign> list = *merged(rewriter, m);
  Node& node = rewriter.graph().node(m.outer);
  node.assigns = std::move(list);
  rewriter.remove(m.inner);
}

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return !rewriter.graph().node(outer).assigns.empty() && rules::reads_one(rewriter, outer, m) &&
         !rules::inner_of(rewriter, m).assigns.empty() &&
         merged(rewriter, m);  // no order: rare, and not worth an answer to --why
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
