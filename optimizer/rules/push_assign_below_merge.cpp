#include <algorithm>

#include "graph/pairs.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  return !rewriter.graph().node(outer).assigns.empty() && rules::reads_one(rewriter, outer, m) &&
         rules::inner_of(rewriter, m).op->cls == OpClass::Merge;
}

void apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Node assign = graph.node(m.outer);
  const size_t arms = graph.node(m.inner).inputs.size();
  for (size_t i = 0; i < arms; ++i) {
    Node arm = assign;
    arm.type = graph.node(graph.node(m.inner).inputs[i]).type;
    for (const Assign& a : arm.assigns) {
      const Type& type = graph.expr(a.expr).type;
      if (const std::optional<size_t> at = arm.type.fields.index(a.field))
        arm.type.fields.set_type(*at, type);
      else
        arm.type.fields.push_back({a.field, type});
    }
    rewriter.insert_above(m.inner, i, std::move(arm));
  }
  graph.node(m.inner).type.fields = assign.type.fields;
  rewriter.remove(m.outer);
}

FieldSet fields_read(Rewriter& rewriter, const Match& m) {
  FieldSet fields, written;
  for (const Assign& a : rules::outer_of(rewriter, m).assigns) {
    for (const std::string& name : rewriter.reads().of(a.expr))
      if (!written.contains(name)) fields.insert(name);
    written.insert(a.field);
  }
  return fields;
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    {"the merge passes on its samples as they are",
     [](Rewriter& rewriter, const Match& m) {
       const Node& merge = rules::inner_of(rewriter, m);
       return !pairs_rows(merge) && !joins_rows(merge);
     }},
    // The number of the stream is part of the identity below, and not above.
    rules::kDrawsNothing,
    {"a stream ends by assigning what it reads",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const FieldSet fields = fields_read(rewriter, m);
       return std::ranges::any_of(rules::inner_of(rewriter, m).inputs, [&](NodeId input) {
         const Node& node = graph.node(input);
         return rewriter.users(input) == 1 && std::ranges::any_of(node.assigns, [&](const Assign& a) {
                  return fields.contains(a.field) && !is_leaf(graph.expr(a.expr));
                });
       });
     },
     true},
};

}  // namespace

ZEPHON_RULE_DEF(PushAssignBelowMerge) = {
    .name = "push_assign_below_merge",
    .summary =
        "An assignment below a merge runs in each of its streams, where it meets what made its fields: a crop reaches "
        "the decoders.",
    .law = "assign f . merge (a, b) = merge (assign f . a, assign f . b)",
    .ends = "one assignment moves one step nearer its sources, and no merge stands in its way twice",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 0,
    .examples = R"explain(
fires
stream a = files("examples/data/photos/*/*.jpg") | image = bytes.decode_image()
stream b = files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().flip()
mix(a=2, b=1, stop="all") | image = image.center_crop(8, 8) | select image

keeps  # of a pair the one stream has what the other has not
stream a = range(10) | y = index * 2
stream b = range(10) | x = index * 3 | drop index
zip(a, b) | z = x + y
----
the merge passes on its samples as they are

keeps
stream a = range(10) | x = index * 3
stream b = range(10) | x = index + 1
concatenate(a, b) | y = x + randint(0, 9)
----
it draws nothing

keeps  # nothing to meet
stream a = range(10)
stream b = range(10, 20)
concatenate(a, b) | y = index * 2
----
a stream ends by assigning what it reads

keeps
stream a = range(10) | x = index * 3
stream b = range(10) | x = index + 1
stream c = concatenate(a, b)
stream d = c | x = x * 2
concatenate(c, d)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
