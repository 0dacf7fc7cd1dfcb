// Rules inside expressions where they are hard: boxes at edges and over them, damaged pictures, numbers at the ends of
// their types, NaN and -0.0, coins. Each program as written by the reference interpreter, as rewritten, and by the
// plan. Then range analysis against the definitions of all operators.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "graph/signature.h"
#include "ops/all_ops.h"
#include "optimizer/analysis/ranges.h"
#include "optimizer/rules/all_rules.h"
#include "runtime/kernels/kernel_compiler.h"
#include "tests/subject.h"

namespace zephon {
namespace {

struct Case {
  const char* name;
  std::vector<std::string_view> fires;
  std::vector<std::string_view> keeps;
  const char* program;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Two good pictures, two that end early, and what is none.
std::string damaged_pictures() {
  namespace fs = std::filesystem;
  static const std::string folder = [] {
    const fs::path out = fs::path(testing::TempDir()) / fmt::format("zephon_damaged_{}", ::getpid());
    fs::create_directories(out);
    std::vector<fs::path> photos;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ZEPHON_SOURCE_DIR) / "examples/data/photos"))
      if (entry.path().extension() == ".jpg") photos.push_back(entry.path());
    std::sort(photos.begin(), photos.end());
    for (size_t i = 0; i < 4; ++i) {
      std::ifstream in(photos[i], std::ios::binary);
      std::string bytes((std::istreambuf_iterator<char>(in)), {});
      if (i >= 2) bytes.resize(bytes.size() * (i == 2 ? 8 : 5) / 10);
      std::ofstream(out / fmt::format("{}.jpg", i), std::ios::binary) << bytes;
    }
    std::ofstream(out / "4.jpg") << "no picture";
    return out.string();
  }();
  return folder;
}

class ExpressionRules : public testing::TestWithParam<Case> {};

TEST_P(ExpressionRules, AreExact) {
  const Case& c = GetParam();
  static const std::unique_ptr<KernelCompiler> compiler = make_kernel_compiler();
  std::string text = c.program;
  for (size_t at; (at = text.find("PHOTOS")) != std::string::npos;)
    text.replace(at, 6, fmt::format("files(\"{}/*.jpg\")", damaged_pictures()));
  const Subject subject(text, {}, ZEPHON_SOURCE_DIR, 2);
  ASSERT_TRUE(subject.good()) << subject.errors();
  const OptimizeResult result = subject.optimized({}, 2);
  EXPECT_TRUE(result.trace.problems.empty()) << result.trace.problems.front();
  for (std::string_view rule : c.fires) EXPECT_TRUE(result.trace.fired(rule)) << rule << "\n" << to_text(result.graph);
  for (std::string_view rule : c.keeps) EXPECT_FALSE(result.trace.fired(rule)) << rule << "\n" << to_text(result.graph);

  const Outcome expected = subject.reference();
  EXPECT_FALSE(expected.records.empty() && expected.failure.empty()) << "delivers nothing";
  auto same = [&](const std::string& way, const Outcome& found) {
    EXPECT_EQ(difference(expected, found), "") << way << "\n" << to_text(result.graph);
  };
  same("rewritten", subject.rewritten({}));
  for (const int64_t chunk : {0, 1, 3}) {
    OptimizeOptions changes;
    changes.plan.chunk = chunk;
    same(fmt::format("chunk {}", chunk), subject.planned(changes, subject.options(), compiler.get()));
  }
  for (std::string_view rule : c.fires) {
    OptimizeOptions changes;
    changes.disabled = {std::string(rule)};
    same(fmt::format("without {}", rule), subject.planned(changes, subject.options(), compiler.get()));
  }
}

const Case kCases[] = {
    {"region_of_a_resize",
     {"push_crop_into_decode", "push_box_below_resample", "fold_known_shapes"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(40, 56).center_crop(31, 23).normalize(mean=[0.5, 0.5, 0.5], std=[0.2, "
     "0.2, 0.2])"
     ".to_chw() | select x | on_error(skip)"},
    {"region_of_an_enlargement",
     {"push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(900, 1100).crop(box(890, 1000, 10, 100)) | select x | on_error(skip)"},
    {"region_of_few_pixels",
     {"push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image(mode=\"gray\").resize(3, 2).crop(box(path.byte_length() % 3, 1, 1, 1)) | select "
     "x | on_error(skip)"},
    {"boxes_that_leave_the_resize",
     {"push_crop_into_decode", "push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(9, 9).crop(box(i64(path.stem.parse_int()) * 2 - 2, 3, 5, 6)) | select x "
     "| on_error(skip)"},
    {"the_message_of_such_a_box",
     {"push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(9, 9).crop(box(i64(path.stem.parse_int()) * 2 + 3, 3, 5, 6)) | select "
     "x"},
    {"damage_below_the_box_does_not_matter",
     {"push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(20, 20).crop(box(0, 2, 4, 5)) | select x | on_error(skip)"},
    {"floats_are_resized_alike",
     {"push_crop_into_decode", "push_box_below_resample"},
     {},
     "PHOTOS | x = (f32(bytes.decode_image()) / 3).resize(14, 12).crop(box(3, 2, 7, 9)) | select x | on_error(skip)"},
    {"gray_of_which_a_box_is_kept",
     {"push_box_below_work", "push_crop_below_channels", "push_view_below_pointwise", "push_crop_into_decode"},
     {},
     "PHOTOS | x = bytes.decode_image() | y = 0.3 * f32(x[:, :, 0:1]) + 0.6 * f32(x[:, :, 1:2]) + 0.1 * f32(x[:, :, "
     "2:3]) "
     "| z = y.random_crop(9, 7) | select z | on_error(skip)"},
    {"one_channel_mirrored",
     {"push_box_below_work", "push_crop_below_flip", "push_crop_below_channels", "push_crop_into_decode"},
     {},
     "PHOTOS | x = u8(bytes.decode_image()[:, :, -1] > 99).random_flip() | z = x.random_crop(9, 7) | select z | "
     "on_error(skip)"},
    {"mirrored_regions",
     {"push_crop_below_flip", "push_shape_below_view", "push_box_below_resample"},
     {},
     "PHOTOS | x = bytes.decode_image().resize(30, 40).random_flip().flip(coin(), "
     "direction=\"vertical\").random_crop(11, 13)"
     " | select x | on_error(skip)"},
    {"boxes_in_boxes",
     {"compose_views", "push_crop_into_decode"},
     {},
     "PHOTOS | x = bytes.decode_image().random_crop(60, 50).center_crop(20, 30).center_crop(7, 9) | select x | "
     "on_error(skip)"},
    {"a_box_of_a_random_resized_crop",
     {"push_crop_into_decode"},
     {},
     "PHOTOS | x = bytes.decode_image().random_resized_crop(20, 22).center_crop(7, 9) | select x | on_error(skip)"},
    {"the_pixels_of_a_small_picture",
     {"push_crop_into_decode"},
     {},
     "range(6) | x = [[[index, 3], [7, 250]], [[9, 8], [200, index]]].u8.resize(5, 7).crop(box(index, 1, 2, 3)) | "
     "select x | on_error(skip)"},
    {"flips_that_cancel",
     {"compose_views"},
     {},
     "range(8) | c = coin() | x = [[index, 1], [2, 3]].flip(c).flip(c) | select x"},
    {"flips_of_which_one_fails",
     {},
     {"compose_views"},
     "range(8) | c = 12 // (index - 3) > 2 | x = [[index, 1], [2, 3]].flip(c).flip(c) | select x | on_error(skip)"},
    {"flips_by_two_conditions",
     {"compose_views"},
     {},
     "range(8) | x = [[index, 1], [2, 3]].flip(12 // (index - 3) > 2).flip(8 // (index - 5) > 1) | select x | "
     "on_error(skip)"},
    {"slices_of_slices",
     {"compose_views"},
     {},
     "range(8) | x = [index, 1, 2, 3, 4, 5, 6, 7, 8][1:8:3][1:3] | y = [[index, 1, 2], [3, 4, 5]][:, 1:][1:, :1] | "
     "select x, y"},
    {"permutations",
     {"compose_views"},
     {},
     "range(8) | x = [[[index, 1, 2], [3, 4, 5]]].transpose([2, 0, 1]).transpose([2, 0, 1]).reshape([3, "
     "2]).reshape([6]) | select x"},
    {"extremes_of_views",
     {"reduce_in_any_order"},
     {},
     "range(8) | x = [[index - 2, 0], [-1, 1]].f32 / [[index - 3, 0], [1, -3]].f32 | a = x.flip().min() | b = "
     "x.transpose([1, 0]).max()"
     " | c = [[index, 4], [3, 9]].flip(coin()).sum() | d = x.flip().sum() | select a, b, c, d"},
    {"sums_that_overflow_in_any_order",
     {"reduce_in_any_order"},
     {},
     "range(8) | x = [[9223372036854775800 + index % 5, index], [0 - index, 4]].flip().sum() | select x | "
     "on_error(skip)"},
    {"numbers_at_the_end_of_their_type",
     {"bound_fields"},
     {"drop_overflow_checks"},
     "range(3074457345618258600, 3074457345618258605) | x = index * 3 | select x | on_error(skip)"},
    {"numbers_short_of_it",
     {"bound_fields", "drop_overflow_checks"},
     {},
     "range(3074457345618258600, 3074457345618258602) | x = index * 3 | y = -x | z = abs(y) - 1 | select x, y, z"},
    {"bounds_past_other_steps",
     {"bound_fields", "drop_overflow_checks"},
     {},
     "range(2_000_000_000, 2_000_000_040) | x = index * 5 | filter x % 3 != 0 | take(20) | y = (x - 9_000_000_000).i32 "
     "| batch(4)"},
    {"bounds_of_two_streams",
     {"bound_fields"},
     {},
     "stream a = range(10)\nstream b = range(9223372036854775800, 9223372036854775806)\n"
     "concatenate(a, b) | x = index + 3 | y = index * 2 | select x, y | on_error(skip)"},
    {"masked_fields_are_not_bounded",
     {},
     {},
     "range(10) | x = 5 + 10 // index | on_error(mask) | y = 100 // x | select y | on_error(skip)"},
    {"tables_of_bytes",
     {"tabulate_bytes"},
     {},
     "range(9) | x = [index * 28, 0, 255, 128, 1].u8 | a = (x.f32 / 255).pow(0.45) | b = ((x.f32 + 1).log() * "
     "46).round().u8 "
     "| c = (x.f64 * 0.1 - 3).exp().f16 | d = where(x > 7, x.f32.log(), -0.0) | select a, b, c, d"},
    {"tables_of_what_fails",
     {},
     {"tabulate_bytes"},
     "range(9) | x = [index * 28 + 1, 9, 255].u8 | a = (x.f32 - 5).log().i32 | select a | on_error(skip)"},
    {"what_changes_nothing",
     {"drop_identities"},
     {},
     "range(9) | x = [index - 4, 0, 3].f32 / [index - 4, -5, 0].f32 | a = x + -0.0 | b = -(-x) | c = abs(abs(x)) | d = "
     "x.floor().floor() "
     "| e = minimum(minimum(x, 2.0), 2.0) | f = maximum(x, x) | g = where(index > 3, x, x) | h = x.round().floor() | "
     "select a, b, c, d, e, f, g, h"},
    {"what_changes_something",
     {},
     {"drop_identities"},
     "range(9) | x = [index - 4, 0, -3].f32 / [-4, -5, 1].f32 | a = x + 0.0 | b = minimum(x, -0.0) | c = 0.0 - (0.0 - "
     "x) | select a, b, c"},
    {"the_negative_of_the_negative_of_the_least",
     {},
     {"drop_identities"},
     "range(2) | x = (\"{index - 1}\".parse_int() * 4611686018427387904 * 2) | y = -(-x) | select y | on_error(skip)"},
    {"casts_of_casts",
     {"drop_identities"},
     {},
     "range(300) | x = \"{index - 9}\".parse_int() | a = x.u8.i32.f32 | b = x.i16.f64.f16 | c = x.f32.f64.u8 | select "
     "a, b, c | on_error(skip)"},
    {"casts_that_saturate",
     {},
     {"drop_identities"},
     "range(300) | x = (\"{index - 9}\".parse_int() * 3000).i32 | a = x.f64.u8 | b = x.f64.f16 | c = x.f32.i32 | "
     "select a, b, c | on_error(skip)"},
    {"a_condition_that_failed_where_it_was_made",
     {},
     {"drop_identities", "push_shape_below_view", "compose_views", "reduce_in_any_order"},
     "range(8) | c = 12 // (index - 3) > 2 | take(7) | x = where(c, index, index) | y = [[index, 1], [2, 3]].flip(c) | "
     "h = y.height()"
     " | m = y.max() | z = y.flip(c) | select x, h, m, z | on_error(skip)"},
    {"views_past_what_failed_elsewhere",
     {},
     {"push_view_below_pointwise"},
     "range(8) | a = [[4, 12, index]] // [[0, index, 1]] | b = [[1, 2, 3]] // [[1, 0, index]] | take(7) | x = (a + "
     "b)[:, 1:] | select x"},
    {"a_table_that_does_not_need_its_byte",
     {"tabulate_bytes"},
     {},
     "range(8) | x = ([index * 50, 255] + [0, 0]).u8 | y = where(x.f32.exp() > 0.0 or true, 2.0, x.f32.exp()) | select "
     "y | on_error(skip)"},
    {"bounds_that_do_not_bind",
     {"drop_identities"},
     {},
     "range(40) | x = (index % 7).clamp(0, 6) | y = maximum(index, -1) | z = minimum((index % 5).f32, 4.5) | select x, "
     "y, z"},
    {"bounds_that_do",
     {},
     {"drop_identities"},
     "range(40) | x = (index % 7).clamp(1, 5) | z = minimum((index % 5).f32, 4.0) | select x, z"},
};

INSTANTIATE_TEST_SUITE_P(All, ExpressionRules, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ExpressionRules, WhatCannotFailHasNoChecks) {
  const auto compiler = make_kernel_compiler();
  auto listing = [&](bool total) {
    Graph graph;
    const ExprId field = add_field(graph, all_ops(), "x", Type::scalar(Elem::I64));
    const ExprId three = add_constant(graph, all_ops(), Value::scalar(Scalar::of_int(Elem::I64, 3)));
    Attrs attrs;
    if (total) attrs.set(kTotal, true);
    const ExprId product = add_call(graph, *all_ops().find("mul"), {field, three}, attrs);
    return compiler->listing(graph, {KernelGroup::Kind::Columnar, {product}, {field}}).loop_nest;
  };
  EXPECT_NE(listing(false).find("fail if"), std::string::npos) << listing(false);
  EXPECT_EQ(listing(true).find("fail if"), std::string::npos) << listing(true);
}

// ---- range analysis ------------------------------------------------------------------------------------------------

/// A random number of the bounds, its ends more often than others.
int64_t between(std::mt19937_64& random, int64_t lo, int64_t hi) {
  if (random() % 3 == 0) return random() % 2 ? lo : hi;
  const uint64_t width = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  return static_cast<int64_t>(static_cast<uint64_t>(lo) + (width == UINT64_MAX ? random() : random() % (width + 1)));
}

class Expression {
 public:
  Expression(std::mt19937_64& random, int depth) : random_(random) { root = make(depth); }
  Graph graph;
  ExprId root;
  /// The value of the root for random good leaves; none where an operation below it fails.
  std::optional<ScalarResult> evaluate() {
    std::map<ExprId, ScalarResult> results;
    for (ExprId id : graph.topological(root)) {
      const Expr& e = graph.expr(id);
      if (e.constant) {
        results[id] = ScalarResult::of(e.constant->at(0));
      } else if (e.op->name == "field") {
        results[id] = ScalarResult::of(
            Scalar::of_int(e.type.elem, between(random_, e.attrs.integer(kLeast), e.attrs.integer(kGreatest))));
      } else {
        std::vector<ScalarArg> args;
        for (ExprId arg : e.args) args.push_back({results.at(arg).value, nullptr});
        results[id] = e.op->define.scalar(e, args);
        if (!results[id].ok && id != root) return std::nullopt;
      }
    }
    return results.at(root);
  }

 private:
  ExprId leaf() {
    static constexpr Elem kElems[] = {Elem::U8, Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::I64};
    const Elem elem = kElems[random_() % std::size(kElems)];
    const ValueRange all = range_of_type(elem);
    int64_t lo = all.lo, hi = all.hi;
    if (random_() % 4 != 0) {
      const int64_t most = std::min<int64_t>(hi, int64_t{1} << random_() % 62);
      lo = between(random_, lo < 0 ? -most : 0, most), hi = between(random_, lo, most);
    }
    Expr e;
    e.op = all_ops().find("field");
    e.type = Type::scalar(elem);
    e.attrs.set("name", fmt::format("x{}", graph.expr_count()));
    e.attrs.set(kLeast, lo);
    e.attrs.set(kGreatest, hi);
    return graph.add(std::move(e));
  }

  ExprId make(int depth) {
    if (depth == 0) {
      if (random_() % 3 != 0) return leaf();
      const double v = static_cast<double>(static_cast<int64_t>(random_() % 41) - 20) / (random_() % 2 ? 1 : 8);
      if (random_() % 2) return add_constant(graph, all_ops(), Value::scalar(Scalar::of_float(Elem::F64, v)));
      return add_constant(graph, all_ops(), Value::scalar(Scalar::of_int(Elem::I64, static_cast<int64_t>(v))));
    }
    static const std::vector<const OpDef*> ops = [] {
      std::vector<const OpDef*> found;
      for (const OpDef* op : all_ops().all())
        if (op->cls == OpClass::Pointwise && op->define.scalar && op->kernel.pointwise) found.push_back(op);
      return found;
    }();
    for (int attempt = 0; attempt < 50; ++attempt) {
      const OpDef& op = *ops[random_() % ops.size()];
      std::vector<ExprId> args;
      Attrs attrs;
      bool possible = true;
      for (const Parameter& p : signature_of(op).parameters) {
        if (p.static_kind == StaticKind::None) {
          args.push_back(make(depth - 1 - static_cast<int>(random_() % 2 && depth > 1)));
        } else if (p.static_kind == StaticKind::Elem) {
          attrs.set(p.name, static_cast<Elem>(random_() % (static_cast<uint64_t>(Elem::F64) + 1)));
        } else if (p.static_kind == StaticKind::Numbers) {
          attrs.set(p.name, std::vector<double>{0, 1, 1});
        } else if (p.default_value) {
          attrs.set(p.name, *p.default_value);
        } else {
          possible = false;
        }
      }
      if (!possible) continue;
      std::vector<Type> types;
      for (ExprId arg : args) types.push_back(graph.expr(arg).type);
      // As the checker promotes: to f64, or to i64.
      if (op.promotes || random_() % 2) {
        const bool floats = std::any_of(types.begin(), types.end(), [](const Type& t) { return is_float(t.elem); });
        for (size_t i = 0; i < args.size(); ++i) {
          const Elem to = floats ? Elem::F64 : Elem::I64;
          if (types[i].elem == Elem::Bool || types[i].elem == to) continue;
          Attrs cast;
          cast.set("to", to);
          args[i] = add_call(graph, *all_ops().find("cast"), {args[i]}, cast);
          types[i] = graph.expr(args[i]).type;
        }
      }
      const std::vector<const Value*> constants(args.size(), nullptr);
      std::string error;
      int bad = 0;
      const std::optional<Type> type = unify(op, attrs, types, constants, error, bad);
      if (type && !is_string(type->elem)) return add_call(graph, op, std::move(args), std::move(attrs));
    }
    return leaf();
  }

  std::mt19937_64& random_;
};

TEST(RuleRanges, HoldWhatTheDefinitionsGive) {
  std::mt19937_64 random(11);
  int narrow = 0, total = 0;
  std::map<std::string_view, int> seen;
  for (int round = 0; round < 6000; ++round) {
    Expression e(random, 1 + round % 3);
    Ranges ranges(e.graph);
    const ValueRange r = ranges.of(e.root);
    const bool may_fail = ranges.may_fail(e.root), by_type = may_fail_by_type(e.graph, e.graph.expr(e.root));
    EXPECT_TRUE(by_type || !may_fail) << to_text(e.graph, e.root);
    narrow += r.is_narrow();
    total += by_type && !may_fail;
    for (int i = 0; i < 40; ++i) {
      const std::optional<ScalarResult> result = e.evaluate();
      if (!result) continue;
      ++seen[e.graph.expr(e.root).op->name];
      if (!result->ok) {
        ASSERT_TRUE(may_fail) << to_text(e.graph, e.root) << ": " << result->message;
        continue;
      }
      const Scalar& v = result->value;
      if (!is_float(v.elem)) {
        ASSERT_TRUE(v.i >= r.lo && v.i <= r.hi)
            << to_text(e.graph, e.root) << " = " << v.i << ", not in [" << r.lo << ", " << r.hi << "]";
      } else if (std::isnan(v.f)) {
        ASSERT_TRUE(r.nan) << to_text(e.graph, e.root);
      } else {
        ASSERT_TRUE(v.f >= r.flo && v.f <= r.fhi)
            << to_text(e.graph, e.root) << " = " << v.f << ", not in [" << r.flo << ", " << r.fhi << "]";
      }
    }
  }
  EXPECT_GT(narrow, 300);
  EXPECT_GT(total, 100);
  for (const char* op : {"add", "sub", "mul", "div", "floor_div", "mod", "neg", "abs", "cast", "minimum", "maximum"})
    EXPECT_GT(seen[op], 200) << op;
}

}  // namespace
}  // namespace zephon
