#include <algorithm>

#include "graph/signature.h"
#include "optimizer/analysis/expressions.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match& m) {
  const Graph& graph = rewriter.graph();
  const Expr& crop = graph.expr(expr);
  if (!crop.op->cuts_box || crop.args.size() != 2) return false;
  m.arg = crop.args[0];
  return graph.expr(m.arg).op->region_form != nullptr;
}

const Parameter* parameter(const OpDef& op, std::string_view name) {
  for (const Parameter& p : signature_of(op).parameters)
    if (p.name == name) return &p;
  return nullptr;
}

ExprId apply(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  const Expr crop = graph.expr(m.expr);
  Expr region = graph.expr(m.arg);
  const OpDef& form = *region.op->region_form;
  Attrs attrs;
  for (const auto& [name, value] : region.attrs)
    if (parameter(form, name)) attrs.set(name, value);
  region.op = &form;
  region.attrs = std::move(attrs);
  region.args.push_back(crop.args[1]);
  region.type = crop.type;
  return graph.add(std::move(region));
}

constexpr Guard kGuards[] = {
    {"the whole picture's other arguments have their defaults",
     [](Rewriter& rewriter, const Match& m) {
       const Expr& whole = rewriter.graph().expr(m.arg);
       return std::all_of(whole.attrs.begin(), whole.attrs.end(), [&](const auto& entry) {
         if (parameter(*whole.op->region_form, entry.first)) return true;
         const Parameter* p = parameter(*whole.op, entry.first);
         return p && p->default_value && *p->default_value == entry.second;
       });
     }},
    // Those that need only its shape will ask the file's header.
    {"nothing else needs the picture",
     [](Rewriter& rewriter, const Match& m) {
       const Graph& graph = rewriter.graph();
       const Expr& whole = graph.expr(m.arg);
       const std::vector<ExprId>& users = rewriter.expr_users(m.arg);
       return std::all_of(users.begin(), users.end(), [&](ExprId user) {
         if (user == m.expr) return true;
         return user.valid() && whole.op->shape_form && graph.expr(user).op->shape_only;
       });
     }},
};

}  // namespace

ZEPHON_RULE_DEF(PushCropIntoDecode) = {
    .name = "push_crop_into_decode",
    .summary =
        "A box cut out of a picture becomes an argument of what decodes it: rows "
        "below are never decoded, columns beside it "
        "are skipped with the margin that keeps the bits.",
    .law = "crop (decode b) box = decode_image_region b box",
    .ends = "one crop fewer",
    .guards = kGuards,
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().random_crop(32, 32) | select image

keeps  # the whole picture must be good
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image(check="whole").random_crop(32, 32) | select image
----
the whole picture's other arguments have their defaults

keeps
files("examples/data/photos/*/*.jpg") | whole = bytes.decode_image() | part = whole.random_crop(32, 32) | select whole, part
----
nothing else needs the picture
)explain",
};

}  // namespace zephon
