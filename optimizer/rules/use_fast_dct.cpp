#include "optimizer/rules/hidden.h"
#include "optimizer/rules/patterns.h"

namespace zephon {
namespace {

bool match(Rewriter& rewriter, ExprId expr, Match&) { return rules::is_unset(rewriter.graph().expr(expr), "$dct"); }

ExprId apply(Rewriter& rewriter, const Match& m) {
  Expr fast = rewriter.graph().expr(m.expr);
  fast.attrs.set("$dct", std::string("fast"));
  return rewriter.graph().add(std::move(fast));
}

}  // namespace

// A file that is damaged fails as before: the choice comes after the bits of the file are read.
ZEPHON_RULE_DEF(UseFastDct) = {
    .name = "use_fast_dct",
    .summary =
        "JPEG files are decoded by the fast integer DCT of libjpeg-turbo, whose products have 8 bits behind the point "
        "in place of 13.",
    .law = "decode b ~ decode_fast b",
    .ends = "one slow decoder fewer",
    .match_expr = match,
    .apply_expr = apply,
    .examples = R"explain(
fires
files("examples/data/photos/*/*.jpg") | image = bytes.decode_image() | select image
)explain",
    .relaxation = "fast-dct",
};

}  // namespace zephon
