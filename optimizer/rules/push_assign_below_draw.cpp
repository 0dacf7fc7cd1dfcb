#include <algorithm>

#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool any_expr(const Graph& graph, const Node& node, bool (*has)(const Graph&, ExprId)) {
  return std::ranges::any_of(node.assigns, [&](const Assign& a) { return has(graph, a.expr); });
}

bool match(Rewriter& rewriter, NodeId outer, Match& m) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(outer);
  if (!is_one_to_one(node) || node.assigns.empty() || !rules::reads_one(rewriter, outer, m)) return false;
  const Node& inner = rules::inner_of(rewriter, m);
  return is_one_to_one(inner) && any_expr(graph, inner, has_draw) && !any_expr(graph, node, has_draw) &&
         !any_expr(graph, node, reads_files);
}

FieldSet fields_read(Rewriter& rewriter, const Node& node) {
  FieldSet fields;
  for (const Assign& a : node.assigns) fields.insert_all(rewriter.reads().of(a.expr));
  return fields;
}

bool apart(const FieldSet& a, const FieldSet& b) {
  return std::ranges::none_of(a, [&](const std::string& field) { return b.contains(field); });
}

void apply(Rewriter& rewriter, const Match& m) {
  rewriter.exchange(m.outer, m.inner);
  Graph& graph = rewriter.graph();
  Node& node = graph.node(m.outer);
  for (const Assign& a : node.assigns)
    node.type.fields.set_type(*node.type.fields.index(a.field), graph.expr(a.expr).type);
}

constexpr Guard kGuards[] = {
    rules::kOneReader,
    {"neither assigns what the other reads or assigns",
     [](Rewriter& rewriter, const Match& m) {
       const Node &outer = rules::outer_of(rewriter, m), &inner = rules::inner_of(rewriter, m);
       const FieldSet mine = writes_of(outer), theirs = writes_of(inner);
       return apart(mine, theirs) && apart(mine, fields_read(rewriter, inner)) &&
              apart(theirs, fields_read(rewriter, outer));
     }},
    {"a cache stands above, to keep it",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       NodeId at = rules::inner_of(rewriter, m).inputs[0];
       while (is_one_to_one(graph.node(at))) at = graph.node(at).inputs[0];
       return graph.node(at).op->algebra.keeps_rows;
     },
     true},
};

}  // namespace

ZEPHON_RULE_DEF(PushAssignBelowDraw) = {
    .name = "push_assign_below_draw",
    .summary =
        "An assignment that draws nothing runs before one that does, where a cache above can keep what is the same in "
        "each epoch.",
    .law = "assign g . assign f = assign f . assign g, for f that draws, g that does not, and neither needs the other",
    .ends = "each exchange takes away a pair of which the upper draws and the lower does not",
    .guards = kGuards,
    .match_node = match,
    .apply_node = apply,
    .depth = 2,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | cache() | flip = coin(0.5) | image = bytes.decode_image().resize(8, 8) | select image, flip | repeat(2)

keeps
range(10) | cache() | x = randint(0, 9) | y = x + index | repeat(2)
----
neither assigns what the other reads or assigns

keeps
range(10) | x = randint(0, 9) | y = index * index | repeat(2)
----
a cache stands above, to keep it

keeps
stream a = range(10) | cache() | x = randint(0, 9)
stream b = a | index = index * index
concatenate(a, b)
----
nothing else reads the step above
)explain",
};

}  // namespace zephon
