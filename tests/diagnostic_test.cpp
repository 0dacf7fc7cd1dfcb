// The caret printer and its neighbours.
#include "frontend/diag/diagnostic.h"

#include <gtest/gtest.h>

namespace zephon {
namespace {

Span find(const SourceMap& sources, FileId file, std::string_view piece) {
  size_t at = sources.text(file).find(piece);
  EXPECT_NE(at, std::string_view::npos) << piece;
  return {file, static_cast<uint32_t>(at), static_cast<uint32_t>(at + piece.size())};
}

struct Case {
  SourceMap sources;
  Diagnostics diags;
  std::string shown() { return render(diags, sources, {}); }
};

TEST(Diagnostics, PrintsThePictureOfTheStyleGuide) {
  Case c;
  FileId file = c.sources.add("cats.zpl", "zpl 1\nfiles(\"cats/*\")\n  | s = mean(f32(image))\n  | filter s\n");
  Span s = find(c.sources, file, "filter s");
  s.begin = s.end - 1;
  c.diags.report(Kind::WrongType, "`filter` needs `bool`, found `f32`")
      .primary(s, "this is `f32`")
      .secondary(find(c.sources, file, "mean(f32(image))"), "`s` becomes `f32` here")
      .hint("compare it, for example `s > 0.5`")
      .emit();
  EXPECT_EQ(c.shown(),
            "error[E0203]: `filter` needs `bool`, found `f32`\n"
            "  --> cats.zpl:4:12\n"
            "   |\n"
            " 3 |   | s = mean(f32(image))\n"
            "   |         ---------------- `s` becomes `f32` here\n"
            " 4 |   | filter s\n"
            "   |            ^ this is `f32`\n"
            "   |\n"
            "   = hint: compare it, for example `s > 0.5`\n"
            "   = more: zephonc explain E0203\n");
}

TEST(Diagnostics, TwoLabelsOnOneLineHang) {
  Case c;
  FileId file = c.sources.add("a.zpl", "filter speed > limit\n");
  c.diags.report(Kind::MixedTypes, "`f32` with `f64` needs a cast")
      .primary(find(c.sources, file, ">"))
      .secondary(find(c.sources, file, "speed"), "`f32`")
      .secondary(find(c.sources, file, "limit"), "`f64`")
      .emit();
  EXPECT_EQ(c.shown(),
            "error[E0208]: `f32` with `f64` needs a cast\n"
            "  --> a.zpl:1:14\n"
            "   |\n"
            " 1 | filter speed > limit\n"
            "   |        ----- ^ ----- `f64`\n"
            "   |        |\n"
            "   |        `f32`\n"
            "   |\n"
            "   = more: zephonc explain E0208\n");
}

TEST(Diagnostics, ColumnsCountCodePointsAndTabsAndWideLetters) {
  Case c;
  FileId file = c.sources.add("a.zpl", "\tx = \"\xE7\x8C\xAB\xC3\xA9\" + y\r\n");
  c.diags.report(Kind::UnknownName, "no `y`").primary(find(c.sources, file, "y"), "here").emit();
  EXPECT_EQ(c.shown(),
            "error[E0200]: no `y`\n"
            "  --> a.zpl:1:13\n"
            "   |\n"
            " 1 |     x = \"\xE7\x8C\xAB\xC3\xA9\" + y\n"
            "   |                 ^ here\n"
            "   |\n"
            "   = more: zephonc explain E0200\n");
}

TEST(Diagnostics, LabelOverSeveralLinesAndGaps) {
  Case c;
  FileId file = c.sources.add("a.zpl", "a(1,\n  2,\n  3,\n  4)\nb\n");
  Span span = find(c.sources, file, "1,\n  2,\n  3,\n  4");
  c.diags.report(Kind::UnknownArgument, "too many")
      .primary(span, "these")
      .secondary(find(c.sources, file, "b"), "b")
      .emit();
  EXPECT_EQ(c.shown(),
            "error[E0202]: too many\n"
            "  --> a.zpl:1:3\n"
            "   |\n"
            " 1 | a(1,\n"
            "   |   ^^\n"
            "...\n"
            " 4 |   4)\n"
            "   |   ^ these\n"
            " 5 | b\n"
            "   | - b\n"
            "   |\n"
            "   = more: zephonc explain E0202\n");
}

TEST(Diagnostics, HostileTextIsShownShortAndPrintable) {
  Case c;
  std::string text(1'000'000, '\x01');
  text += "\xff\xfe x";
  FileId file = c.sources.add("a.zpl", text);
  c.diags.report(Kind::BadText, "bad").primary({file, 1'000'000, 1'000'001}, "here").emit();
  std::string shown = c.shown();
  EXPECT_LT(shown.size(), 2000u);
  EXPECT_FALSE(find_invalid_utf8(shown));
  EXPECT_NE(shown.find("^ here"), std::string::npos);
}

TEST(Diagnostics, SortsAndPrintsOnce) {
  Case c;
  FileId file = c.sources.add("a.zpl", "a b\n");
  c.diags.report(Kind::UnknownName, "no `b`").primary(find(c.sources, file, "b")).emit();
  c.diags.report(Kind::UnknownName, "no `a`").primary(find(c.sources, file, "a")).emit();
  c.diags.report(Kind::UnknownName, "no `b`").primary(find(c.sources, file, "b")).emit();
  std::vector<Diagnostic> sorted = c.diags.sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].message, "no `a`");
}

TEST(Diagnostics, ColourOnlyAddsEscapes) {
  Case c;
  FileId file = c.sources.add("a.zpl", "filter speed > limit\n");
  c.diags.report(Kind::MixedTypes, "m")
      .primary(find(c.sources, file, ">"), "p")
      .secondary(find(c.sources, file, "speed"), "s")
      .emit();
  std::string plain = c.shown(), coloured = render(c.diags, c.sources, {.colour = true}), stripped;
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      while (coloured[i] != 'm') ++i;
    } else {
      stripped += coloured[i];
    }
  }
  EXPECT_NE(coloured, plain);
  EXPECT_EQ(stripped, plain);
}

TEST(Diagnostics, NearNames) {
  std::vector<std::string> ops = {"filter", "shuffle", "batch", "unbatch", "padded_batch", "take", "skip", "image"};
  EXPECT_EQ(did_you_mean("fliter", ops), "did you mean `filter`?");
  EXPECT_EQ(did_you_mean("Batch", ops), "did you mean `batch`?");
  EXPECT_EQ(did_you_mean("imgae", ops), "did you mean `image`?");
  EXPECT_EQ(did_you_mean("decode", ops), "");
  EXPECT_EQ(did_you_mean("x", ops), "");
}

TEST(Diagnostics, EveryKindIsExplained) {
  std::string_view previous;
  for (const KindInfo& kind : all_kinds()) {
    EXPECT_FALSE(explain_text(kind.kind).empty()) << "frontend/diag/explain/" << kind.code << ".md is missing";
    EXPECT_EQ(find_kind(kind.code), &kind);
    EXPECT_NE(kind.code, previous);
    previous = kind.code;
  }
}

TEST(Diagnostics, FindsInvalidUtf8) {
  EXPECT_FALSE(find_invalid_utf8("abc \xC3\xA9 \xF0\x9F\x90\x88"));
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xC0\x80"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0u);  // surrogate
  EXPECT_EQ(find_invalid_utf8("a\xE2\x82"), 1u);     // cut off
}

}  // namespace
}  // namespace zephon
