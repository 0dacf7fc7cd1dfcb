// What a program means to the front end: draws, literals, promotion, what on_error guards; both forms alike.
#include "frontend/frontend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <sstream>

#include "frontend/rational.h"
#include "ops/all_ops.h"

namespace zephon {
namespace {

Program compiled(const std::string& text, const std::map<std::string, std::string>& params = {}, bool yaml = false) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(yaml ? "t.yaml" : "t.zpl", text);
  Result<Program> program = compile(sources, file, params, OpTable(all_ops()), diags);
  EXPECT_TRUE(program.ok()) << render(diags, sources) << text;
  return program ? *std::move(program) : Program{};
}

// Draw ids of each assigned field, by field, in the order of its expression.
std::map<std::string, std::vector<uint64_t>> draws(const Program& program) {
  std::map<std::string, std::vector<uint64_t>> result;
  for (NodeId id : program.graph.topological())
    for (const Assign& assign : program.graph.node(id).assigns)
      for (ExprId e : program.graph.topological(assign.expr))
        if (program.graph.expr(e).draw_id != 0) result[assign.field].push_back(program.graph.expr(e).draw_id);
  return result;
}

std::string type_of(const std::string& steps) {
  Program program = compiled("range(10) | " + steps);
  return to_string(program.graph.node(program.graph.output()).type.find("x")->type);
}

TEST(Frontend, DrawsBelongToTheirPlace) {
  auto plain = draws(compiled("range(9) | a = uniform(0, 1) | b = uniform(0, 1) + uniform(0, 1)"));
  auto more =
      draws(compiled("range(9) | c = uniform(0, 1) | a = uniform(0, 1) | skip(1) | b = uniform(0, 1) + uniform(0, 1)"));
  ASSERT_EQ(plain["b"].size(), 2u);
  std::set<uint64_t> all = {plain["a"][0], plain["b"][0], plain["b"][1], more["c"][0]};
  EXPECT_EQ(all.size(), 4u) << "draws are never merged";
  EXPECT_EQ(plain["a"], more["a"]) << "a step elsewhere changes nothing";
  EXPECT_EQ(plain["b"], more["b"]);
  auto twice = draws(compiled("range(9) | a = uniform(0, 1) | a = uniform(0, 1) + a"));
  EXPECT_EQ(twice["a"][0], plain["a"][0]);
  EXPECT_NE(twice["a"][1], plain["a"][0]) << "the second assignment to a field draws anew";
  auto stream = draws(compiled("stream s = range(9) | a = uniform(0, 1) s"));
  EXPECT_NE(stream["a"], plain["a"]) << "streams draw for themselves";
}

TEST(Frontend, ArgumentsAreValues) {
  auto once = draws(compiled("fn f(x) = x + x * x\nrange(9) | a = f(uniform(0, 1))"));
  EXPECT_EQ(once["a"].size(), 1u);
  auto inside = draws(compiled("fn g() = uniform(0, 1)\nrange(9) | a = g() + g()"));
  ASSERT_EQ(inside["a"].size(), 2u) << "each call draws";
  EXPECT_NE(inside["a"][0], inside["a"][1]);
  auto keyed =
      draws(compiled("range(9) | a = uniform(0, 1, key=7) | b = uniform(0, 1, key=7) | c = uniform(0, 1, key=8)"));
  EXPECT_EQ(keyed["a"], keyed["b"]);
  EXPECT_NE(keyed["a"], keyed["c"]);
}

TEST(Frontend, CompositeOperatorsDrawOnceForEachCall) {
  const std::string head = "files(\"a/*.jpg\") | image = bytes.decode_image() | ";
  Program program = compiled(head + "a = image.random_flip() | b = image.random_flip().random_flip()");
  auto found = draws(program);
  ASSERT_EQ(found["a"].size(), 1u);
  ASSERT_EQ(found["b"].size(), 2u);
  EXPECT_NE(found["b"][0], found["b"][1]);
  for (size_t i = 0; i < program.graph.expr_count(); ++i)
    for (const Span& span : program.graph.expr({static_cast<int32_t>(i)}).origin)
      EXPECT_EQ(span.file.value, 1u) << "places are those of the person's text";
}

TEST(Frontend, BothFormsAreOneProgram) {
  auto read = [](const std::string& name) {
    std::ifstream in(std::string(ZEPHON_SOURCE_DIR) + "/examples/" + name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  Program zpl = compiled(read("imagenet.zpl")), yaml = compiled(read("imagenet.yaml"), {}, true);
  EXPECT_EQ(to_text(zpl.graph, {.types = true}), to_text(yaml.graph, {.types = true}));
  EXPECT_EQ(draws(zpl), draws(yaml));
  EXPECT_FALSE(draws(zpl).empty());
}

TEST(Frontend, Promotion) {
  EXPECT_EQ(type_of("x = u8(index) + u8(index)"), "i32");
  EXPECT_EQ(type_of("x = i16(index) * 3"), "i32");
  EXPECT_EQ(type_of("x = -u16(index)"), "i32");
  EXPECT_EQ(type_of("x = i32(index) + index"), "i64");
  EXPECT_EQ(type_of("x = f32(index) * 0.1"), "f32");
  EXPECT_EQ(type_of("x = f16(index) + 1"), "f16");
  EXPECT_EQ(type_of("x = [1, 2.5]"), "f64[2]");
  EXPECT_EQ(type_of("x = [index, 2]"), "i64[2]");
  EXPECT_EQ(type_of("x = \"n{index}\""), "str");
  EXPECT_EQ(type_of("x = u8(index)"), "u8") << "a value that meets nothing keeps its type";
}

TEST(Frontend, LiteralsAreExactUntilTheyMeetAType) {
  auto constant = [](const std::string& expression) {
    Program program = compiled("range(3) | x = " + expression);
    ExprId e = program.graph.node(program.graph.output()).assigns.at(0).expr;
    return program.graph.expr(e).constant->at(0).f;
  };
  EXPECT_EQ(constant("0.1 + 0.2"), 0.3);
  EXPECT_EQ(constant("f32(0.1) "), static_cast<double>(0.1f));
  EXPECT_EQ(constant("1 / 3 * 3 + 0.5"), 1.5);
  EXPECT_EQ(constant("1e400 / 1e399 + 0.5"), 10.5);
}

TEST(Frontend, RationalsRoundOnce) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text = std::to_string(random() % 1'000'000'000) + "." + std::to_string(random() % 1'000'000'000);
    int exponent = static_cast<int>(random() % 700) - 350;
    text += "e" + std::to_string(exponent);
    Rational r = Rational::parse(text).value();
    double d = std::strtod(text.c_str(), nullptr);
    float f = std::strtof(text.c_str(), nullptr);
    EXPECT_EQ(r.to_float(Elem::F64).value_or(HUGE_VAL), d) << text;
    EXPECT_EQ(r.to_float(Elem::F32).value_or(HUGE_VAL), static_cast<double>(f)) << text;
  }
  EXPECT_EQ(Rational::parse("65520")->to_float(Elem::F16), std::nullopt);
  EXPECT_EQ(Rational::parse("65519")->to_float(Elem::F16), 65504.0);
  EXPECT_EQ((Rational(-7) / Rational(2)).floor(), Rational(-4));
  EXPECT_EQ((Rational(-7) / Rational(2)).round_half_even(), Rational(-4));
  EXPECT_EQ((Rational(5) / Rational(2)).round_half_even(), Rational(2));
  EXPECT_EQ((Rational(1) / Rational(8)).to_string(), "0.125");
  EXPECT_EQ(Rational::of_double(-0.1).to_float(Elem::F64), -0.1);
  // Where two halves of 64 bits end.
  const Rational least(std::numeric_limits<int64_t>::min());
  EXPECT_EQ((-least).to_string(), "9223372036854775808");
  EXPECT_EQ((-least).to_int64(), std::nullopt);
  EXPECT_EQ(-(-least), least);
  EXPECT_EQ((least - Rational(1)).to_string(), "-9223372036854775809");
  EXPECT_EQ(least - Rational(1) + Rational(1), least);
  for (const char* text : {"999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808",
                           "123456789012345678901234567890", "0.123456789012345678", "0.1234567890123456789"})
    EXPECT_EQ(Rational::parse(text)->to_string(), text);
  EXPECT_EQ(Rational::parse("1e18")->to_int64(), 1'000'000'000'000'000'000);
  EXPECT_EQ(Rational::parse("123.4560")->to_string(), "123.456");
  EXPECT_EQ((Rational(2'147'483'647) * Rational(2'147'483'648) / Rational(2'147'483'648)), Rational(2'147'483'647));
  EXPECT_EQ((Rational(1) / Rational(3) + Rational(2) / Rational(3)), Rational(1));
  EXPECT_LT(Rational(-7) / Rational(2), Rational(-3));
}

TEST(Frontend, OnErrorGuardsWhatIsAssignedAboveAndNeededBelow) {
  Program program = compiled(
      "files(\"a/*.jpg\") | image = bytes.decode_image() | size = bytes.byte_length() | other = path.stem()"
      " | on_error(skip) | y = image.resize(8, 8) | filter size > 3 | select y");
  for (NodeId id : program.graph.topological())
    if (program.graph.node(id).op->cls == OpClass::Policy) {
      EXPECT_EQ(program.graph.node(id).needed, (std::vector<std::string>{"image", "size"}));
    }
}

TEST(Frontend, ParametersAndSeed) {
  const std::string text = "zpl 1 pipeline p(n: int = 3, s: str = \"a\") { range(n) | x = s }";
  Program program = compiled(text, {{"n", "1_000"}, {"seed", "9"}});
  EXPECT_EQ(program.seed, 9u);
  ASSERT_EQ(program.parameters.size(), 2u);
  EXPECT_EQ(program.parameters[0].value, "1000");
  EXPECT_TRUE(program.parameters[0].given);
  EXPECT_FALSE(program.parameters[1].given);
}

// Programs made of pieces that exist, put together at random: none may break the compiler.
TEST(Frontend, RandomProgramsEndInAProgramOrInMessages) {
  const std::vector<std::string> pieces = {"index",
                                           "x",
                                           "y",
                                           "3",
                                           "0.5",
                                           "\"a\"",
                                           "[1, 2]",
                                           "true",
                                           "-",
                                           "+",
                                           "*",
                                           "/",
                                           "//",
                                           "%",
                                           "==",
                                           "<",
                                           "and",
                                           "not",
                                           "(",
                                           ")",
                                           ".sum()",
                                           ".sqrt()",
                                           ".f32()",
                                           "[0]",
                                           "[1:]",
                                           "f(x)",
                                           "uniform(0, 1)",
                                           "where(x > 3, x, y)",
                                           ",",
                                           "| y = ",
                                           "| x = ",
                                           "| filter ",
                                           "| take(3)",
                                           "| batch(2)",
                                           "| unbatch()",
                                           "| shuffle()",
                                           "| select x",
                                           "| drop x",
                                           "| if true { take(1) }",
                                           "| repeat(2)",
                                           "| on_error(skip)",
                                           "clamp(x, 0, 1)",
                                           "{index}",
                                           "\"{x}\"",
                                           "[x, y]",
                                           "u8",
                                           "f32",
                                           "a",
                                           "concatenate(a, a)"};
  std::mt19937 random(3);
  int good = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = "fn f(x) = x + 1\nstream a = range(3)\nrange(10) | x = index * 2 | y = ";
    for (size_t n = 1 + random() % 8; n > 0; --n) text += pieces[random() % pieces.size()] + " ";
    SourceMap sources;
    Diagnostics diags;
    FileId file = sources.add("t.zpl", text);
    Result<Program> program = compile(sources, file, {}, OpTable(all_ops()), diags);
    EXPECT_EQ(program.ok(), !diags.has_errors()) << text;
    EXPECT_EQ(render(diags, sources).find("[B"), std::string::npos) << render(diags, sources);
    good += program.ok();
  }
  EXPECT_GT(good, 30);
}

}  // namespace
}  // namespace zephon
