#include <algorithm>

#include "optimizer/analysis/fields.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return !rewriter.graph().node(outer).assigns.empty() && rules::reads_one(rewriter, outer, m);
}

/// The assignments that are needed, by the node's output or by a later one of them.
std::vector<Assign> needed(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.graph().node(id);
  std::vector<Assign> kept;
  FieldSet read;
  FieldSet overwritten;
  for (auto it = node.assigns.rbegin(); it != node.assigns.rend(); ++it) {
    const bool live = !overwritten.contains(it->field) && rewriter.is_live(id, it->field);
    overwritten.insert(it->field);
    if (!live && !read.contains(it->field)) continue;
    read.erase(it->field);
    read.insert_all(rewriter.reads().of(it->expr));
    kept.push_back(*it);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

void apply(Rewriter& rewriter, const Match& m) {
  std::vector<Assign> kept = needed(rewriter, m.outer);
  if (kept.empty()) return rewriter.remove(m.outer);
  rewriter.graph().node(m.outer).assigns = std::move(kept);
}

constexpr Guard kGuards[] = {
    {"some field that it assigns is not needed below",
     [](Rewriter& rewriter, const Match& m) {
       return needed(rewriter, m.outer).size() < rules::outer_of(rewriter, m).assigns.size();
     }},
};

}  // namespace

// Exact since failure is lazy: what nothing needs cannot fail. on_error needs the fields that it guards.
ZEPHON_RULE_DEF(DropUnusedFields) = {
    .name = "drop_unused_fields",
    .summary = "An assignment whose field nothing below needs goes: files that nobody looks at are not read.",
    .law = "select s . assign x = f = select s, for x not in s",
    .ends = "one assignment fewer",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .examples = R"explain(
fires
range(100) | x = index * 3 | select index

keeps
range(100) | x = index * 3
----
some field that it assigns is not needed below
)explain",
};

}  // namespace zephon
