// What is left of a program that shows a fault: a few lines, whatever stood around them.
#include "zephonc/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/frontend.h"
#include "ops/all_ops.h"

namespace zephon {
namespace {

bool compiles(const std::string& text) {
  SourceMap sources;
  Diagnostics diags;
  return compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags).ok();
}

size_t lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(Shrink, LeavesWhatTheFaultNeeds) {
  const std::string program = R"(zpl 1
# a comment
let many = 40
fn twice(x) = x * 2
stream a = range(50) | v = twice(index) + 3 | filter v % 7 != 0 | select v
stream b = range(10, 90) | v = index - 4 | shuffle(seed=3) | select v
pipeline p(part: enum(train, val) = train) -> {v: i64, x: i64} {
  mix(a=2, b=1, seed=4)
  | if part == train { skip(3) | x = v // 3 } else { take(9) | x = 0 }
  | w = [v, x, 7][1] + many
  | take(17)
  | select v, x
}
test "doubles" { check twice(3) == 6 }
)";
  ASSERT_TRUE(compiles(program));
  const Shrunk skips = shrink(
      program, [](const std::string& text) { return text.find("skip(") != std::string::npos && compiles(text); });
  EXPECT_EQ(skips.text, "zpl 1\n\nrange() | skip(0)\n");
  EXPECT_FALSE(skips.bounded);
  const Shrunk divides = shrink(program, [](const std::string& text) {
    return text.find("//") != std::string::npos && text.find("mix") != std::string::npos && compiles(text);
  });
  EXPECT_LE(lines(divides.text), 5u) << divides.text;
  EXPECT_EQ(divides.text.find("filter"), std::string::npos) << divides.text;
  EXPECT_EQ(divides.text.find("take"), std::string::npos) << divides.text;
}

TEST(Shrink, PutsStreamsInPlaceOfTheirNames) {
  const Shrunk one =
      shrink("zpl 1\nstream a = range(9) | x = 2 * index\nstream b = a | y = x + 1\nconcatenate(b, b) | z = 3\n",
             [](const std::string& text) { return text.find("2 *") != std::string::npos && compiles(text); });
  EXPECT_EQ(one.text, "zpl 1\n\nrange() | x = 2 * 0\n");
}

TEST(Shrink, KeepsWhatIsSmallest) {
  for (const char* text : {"range(0)\n", "no program at all"})
    EXPECT_EQ(shrink(text, [&](const std::string& smaller) { return smaller == text; }).text, text);
}

TEST(Shrink, EndsAtItsBound) {
  const Shrunk out = shrink(
      "range(9) | a = 1 | b = 2 | c = 3\n", [](const std::string&) { return false; }, 5);
  EXPECT_TRUE(out.bounded);
  EXPECT_EQ(out.tried, 5);
}

}  // namespace
}  // namespace zephon
