#include <limits>

#include "optimizer/rules/hidden.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

using Ints = std::vector<int64_t>;

// Ranges of the dimensions of what is read from an array in a file.
bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& slice = graph.expr(expr);
  if (slice.op->cls != OpClass::View || slice.args.size() != 1 || !slice.attrs.has("step")) return false;
  m.arg = slice.args[0];
  return rules::is_unset(graph.expr(m.arg), "$begin") && rules::is_unset(graph.expr(m.arg), "$end");
}

struct Range {
  int64_t begin, end, step;
};

Range first_range(const Expr& slice) {
  return {slice.attrs.get<Ints>("begin")[0], slice.attrs.get<Ints>("end")[0], slice.attrs.get<Ints>("step")[0]};
}

bool takes_part(Rewriter& rewriter, const Match& m) {
  const Graph& graph = rewriter.graph();
  const Type& row = graph.expr(m.arg).type;
  if (row.rank() == 0 || !row.shape[0].is_static()) return false;
  const Range r = first_range(graph.expr(m.expr));
  const int64_t extent = row.shape[0].extent;
  return r.begin >= 0 && r.begin < r.end && r.end <= extent && r.end - r.begin < extent;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  Expr slice = graph.expr(m.expr);
  const Range r = first_range(slice);
  Expr part = graph.expr(m.arg);
  part.attrs.set("$begin", r.begin);
  part.attrs.set("$end", r.end);
  part.type.shape[0] = Dim::of(r.end - r.begin);
  part.type.box.clear();
  const bool is_all = r.step == 1 && slice.type.shape.size() == 1;
  slice.args[0] = graph.add(std::move(part));
  if (is_all) return slice.args[0];
  auto set_first = [&](const char* name, int64_t to) {
    Ints numbers = slice.attrs.get<Ints>(name);
    numbers[0] = to;
    slice.attrs.set(name, std::move(numbers));
  };
  set_first("begin", 0);
  set_first("end", std::numeric_limits<int64_t>::max());
  return graph.add(std::move(slice));
}

constexpr Guard kGuards[] = {
    {"a part of known rows is taken", takes_part},
    // A u64 above the largest i64 fails, and so does a text that is not UTF-8, where nobody asks for it.
    {"no element can fail by itself",
     [](Rewriter& rewriter, const Match& m) {
       const Elem elem = rewriter.graph().expr(m.arg).type.elem;
       return elem != Elem::I64 && !is_string(elem);
     }},
    {"nothing else needs the whole",
     [](Rewriter& rewriter, const Match& m) { return rewriter.expr_users(m.arg).size() <= 1; }, true},
};

}  // namespace

ZEPHON_RULE_DEF(PushSliceIntoArray) = {
    .name = "push_slice_into_array",
    .summary = "Of an array in a file, of which a range of the first dimension is taken, only that is read.",
    .law = "(array_row r)[a:b] = array_row r, from a up to b",
    .ends = "one whole array fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
npz("examples/data/ecg.npz", columns={signal: i16[720], second: i64}) | x = f32(signal[100:200]) / 200 | select x, second

fires  # every third of them
raw("examples/data/ecg.i16", columns={signal: i16[720]}) | x = signal[10:100:3] | select x

keeps  # from an end that only the run knows
npz("examples/data/ecg.npz", columns={signal: i16[n], second: i64}) | x = signal[-100:] | select x
----
a part of known rows is taken

keeps
raw("examples/data/ecg.i16", columns={signal: i64[180]}) | x = signal[10:100] | select x
----
no element can fail by itself

keeps
npz("examples/data/ecg.npz", columns={signal: i16[720], second: i64}) | x = signal[100:200] | select x, signal
----
nothing else needs the whole
)explain",
};

}  // namespace zephon
