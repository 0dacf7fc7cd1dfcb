#pragma once
// What several rules match and require.

#include "optimizer/analysis/order.h"
#include "optimizer/engine/rule.h"

namespace zephon::rules {

/// `outer` reads exactly one stream: match it and what it reads.
inline bool reads_one(Rewriter& rewriter, NodeId outer, Match& match) {
  const Node& node = rewriter.graph().node(outer);
  if (node.inputs.size() != 1) return false;
  match.inner = node.inputs[0];
  return true;
}
inline const Node& outer_of(Rewriter& rewriter, const Match& match) { return rewriter.graph().node(match.outer); }
inline const Node& inner_of(Rewriter& rewriter, const Match& match) { return rewriter.graph().node(match.inner); }

/// Something is drawn by what the step assigns, or by its predicate.
bool draws(const Graph& graph, const Node& step);

/// Moving a step past one that somebody else reads would change what that reader gets.
inline constexpr Guard kOneReader = {"nothing else reads the step above", [](Rewriter& rewriter, const Match& match) {
                                       return rewriter.users(match.inner) == 1;
                                     }};

/// What is part of the identity at its place is not where it goes, and what is drawn follows from it.
inline constexpr Guard kDrawsNothing = {"it draws nothing", [](Rewriter& rewriter, const Match& match) {
                                          return !draws(rewriter.graph(), outer_of(rewriter, match));
                                        }};

/// All that `outer` reads of the members of `batch`, and all that it assigns, has one shape only. A batch fails members
/// whose shape is not the first one's, or pads them.
bool has_fixed_shapes(Rewriter& rewriter, const Node& outer, const Node& batch);

/// A filter that leaves its stage fails before those that stay: of several failures the first as written is reported.
/// Looks at what stands below: not for rules that a memo tries on pairs of steps.
bool fails_first(Rewriter& rewriter, NodeId filter);

/// The assignments and projections in a row that ends in `match.inner`, lowest first, as far as the rewriter reaches and
/// nothing else reads them.
std::vector<NodeId> row_above(Rewriter& rewriter, const Match& match);
/// `match.outer` goes above all of `match.row`.
void pass_row(Rewriter& rewriter, const Match& match);

/// A filter stands right above the row that `step` is part of, and computes something costly.
bool follows_costly_filter(Rewriter& rewriter, NodeId step);

/// The assignment `inner` shares work with a filter above it: then both must stay in one region, where the work is done
/// once.
bool shares_with_filter(Rewriter& rewriter, NodeId assignment);

inline constexpr Guard kSharesNothing = {
    .name = "the assignment computes nothing costly that a filter above computes too",
    .holds = [](Rewriter& rewriter, const Match& match) { return !shares_with_filter(rewriter, match.inner); },
    .cost = true};

/// For an `inner` that has the fields of its input: `outer` makes the fields that it made.
void exchange_with_same(Rewriter& rewriter, const Match& match);

inline void exchange_pair(Rewriter& rewriter, const Match& match) { rewriter.exchange(match.outer, match.inner); }

}  // namespace zephon::rules
