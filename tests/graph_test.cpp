// The shared vocabulary: number formats, identities, the shuffle bijection, signatures, hash-consing.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/identity.h"
#include "graph/op_def.h"
#include "graph/signature.h"

namespace zephon {
namespace {

TEST(NumberFormats, EveryHalfSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double f16 = f16_to_double(static_cast<uint16_t>(bits));
    const double bf16 = bf16_to_double(static_cast<uint16_t>(bits));
    if (!std::isnan(f16)) {
      EXPECT_EQ(f16_from_double(f16), bits);
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(bf16_from_double(bf16), bits);
    }
  }
}

TEST(NumberFormats, RoundsToNearestEvenOnceAndOverflowsToInfinity) {
  EXPECT_EQ(f16_from_double(1.0 + 0x1p-11), f16_from_double(1.0));               // tie to even, down
  EXPECT_EQ(f16_from_double(1.0 + 3 * 0x1p-11), f16_from_double(1.0 + 0x1p-9));  // tie to even, up
  EXPECT_EQ(f16_from_double(65519.99), 0x7bff);
  EXPECT_EQ(f16_from_double(65520.0), 0x7c00);
  EXPECT_EQ(f16_from_double(-0.0), 0x8000);
  EXPECT_EQ(f16_from_double(0x1p-25), 0);  // tie at half the smallest subnormal
  EXPECT_EQ(f16_from_double(0x1.8p-25), 1);
  EXPECT_EQ(f16_from_double(std::nan("")), 0x7e00);
  EXPECT_EQ(bf16_from_double(0x1.01p0), 0x3f80);
  EXPECT_EQ(bf16_from_double(1e39), 0x7f80);
}

TEST(Shuffle, IsABijectionWithAnInverse) {
  for (uint64_t n : {1u, 2u, 3u, 7u, 64u, 1000u, 4097u}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t x = permute_index(42 + n, n, i);
      ASSERT_LT(x, n);
      ASSERT_EQ(inverse_permute_index(42 + n, n, x), i);
      seen.insert(x);
    }
    EXPECT_EQ(seen.size(), n);
  }
}

TEST(Shuffle, EpochsAndPassesHaveTheirOwnOrderUnlessToldOtherwise) {
  const EpochContext first{7, 0, {}}, second{7, 1, {}}, pass{7, 0, {1}};
  EXPECT_NE(shuffle_key(first, 0, true), shuffle_key(second, 0, true));
  EXPECT_NE(shuffle_key(first, 0, true), shuffle_key(pass, 0, true));
  EXPECT_EQ(shuffle_key(first, 0, false), shuffle_key(second, 0, false));
}

TEST(Identity, TextIsRead) {
  const SampleId id{{0, 1, 18446744073709551615u}};
  SampleId read;
  ASSERT_TRUE(parse_id(to_string(id), read));
  EXPECT_EQ(read, id);
  for (std::string_view bad : {"", "/", "1/", "1//2", "x", "-1", "1/18446744073709551616"})
    EXPECT_FALSE(parse_id(bad, read)) << bad;
}

// Unification, through small declarations of its own.
constexpr OpDef kAdd = {.name = "add",
                        .cls = OpClass::Pointwise,
                        .signature = "a: N[...s], b: N[...s] -> N[...s]",
                        .summary = "",
                        .example = ""};
constexpr OpDef kCrop = {.name = "crop",
                         .cls = OpClass::View,
                         .signature = "image: T[h, w, c], box: box[bh, bw] -> T[bh, bw, c]",
                         .summary = "",
                         .example = ""};
constexpr OpDef kResize = {
    .name = "resize",
    .cls = OpClass::Resample,
    .signature = "image: N[h, w, c], height: int >= 1, width: int, antialias: bool = true -> N[height, width, c]",
    .summary = "",
    .example = ""};

std::string unified(const OpDef& op, std::vector<Type> args, const Attrs& attrs = {}) {
  std::string error;
  int bad = 0;
  std::vector<const Value*> constants(args.size());
  std::optional<Type> t = unify(op, attrs, args, constants, error, bad);
  return t ? to_string(*t) : "error " + std::to_string(bad) + ": " + error;
}
Type f32(std::vector<Dim> dims) { return Type::tensor(Elem::F32, std::move(dims)); }

TEST(FieldList, CopiesShareWhatTheyHaveInCommonAndNothingElse) {
  FieldList list;
  for (int i = 0; i < 40; ++i) list.push_back({"x" + std::to_string(i), Type::scalar(Elem::I64)});
  FieldList copy = list;
  copy.set_type(20, Type::scalar(Elem::F32));
  EXPECT_EQ(list[20].type.elem, Elem::I64);
  EXPECT_EQ(copy[20].type.elem, Elem::F32);
  EXPECT_TRUE(copy.shares_block(list, 0));
  EXPECT_FALSE(copy.shares_block(list, 20));
  EXPECT_TRUE(copy.shares_block(list, 39));
  EXPECT_FALSE(copy == list);
  copy.push_back({"y?", Type::scalar(Elem::Bool)});
  EXPECT_EQ(list.size(), 40u);
  EXPECT_TRUE(copy.has_companions());
  EXPECT_FALSE(list.has_companions());
  FieldList fewer = list;
  fewer.erase_if([](const Field& field) { return field.name == "x17" || field.name == "x39"; });
  EXPECT_EQ(fewer.size(), 38u);
  EXPECT_TRUE(fewer.shares_block(list, 0));
  EXPECT_EQ(fewer.index("x17"), std::nullopt);
  EXPECT_EQ(fewer.index("x18"), 17u);
  EXPECT_EQ(fewer.index("x38"), 37u);
  EXPECT_EQ(list.index("x17"), 17u);
  std::vector<Field> rest = list.to_vector();
  rest.pop_back();
  rest.erase(rest.begin() + 17);
  EXPECT_TRUE(fewer == FieldList(rest));
}

TEST(Signature, BroadcastsAsNumPy) {
  EXPECT_EQ(unified(kAdd, {f32({Dim::named("h"), Dim::of(3)}), f32({Dim::of(3)})}), "f32[h, 3]");
  EXPECT_EQ(unified(kAdd, {f32({Dim::of(1)}), f32({Dim::of(5)})}), "f32[5]");
  EXPECT_EQ(unified(kAdd, {f32({Dim::of(4)}), f32({Dim::of(5)})}),
            "error 1: `b` of `add` needs a number of any shape, found `f32[5]`");
  EXPECT_EQ(unified(kAdd, {f32({}), Type::scalar(Elem::I32)}),
            "error 1: `b` of `add` needs a number of any shape, found `i32`");
}

TEST(Signature, BoxesCarryTheirDimensions) {
  Type box = Type::tensor(Elem::I64, {Dim::of(4)});
  box.box = {Dim::of(224), Dim::named("w2")};
  EXPECT_EQ(unified(kCrop, {f32({Dim::named("h"), Dim::named("w"), Dim::of(3)}), box}), "f32[224, w2, 3]");
  EXPECT_NE(unified(kCrop, {f32({Dim::of(3)}), box}).find("error 0"), std::string::npos);
}

TEST(Signature, StaticParametersGiveResultDimensions) {
  Attrs attrs;
  attrs.set("height", int64_t{10});
  attrs.set("width", int64_t{20});
  EXPECT_EQ(unified(kResize, {f32({Dim::named("h"), Dim::named("w"), Dim::of(3)})}, attrs), "f32[10, 20, 3]");
  EXPECT_EQ(signature_of(kResize).parameters[3].default_value, Attr(true));
  EXPECT_EQ(signature_of(kResize).parameters[1].at_least, 1);
}

TEST(Signature, ShapesAtRunTimeUseTheSameUnification) {
  Expr e;
  e.op = &kCrop;
  e.type = f32({Dim::unknown(), Dim::unknown(), Dim::of(3)});
  e.args = {{0}, {1}};
  int64_t box[4] = {5, 6, 7, 8};
  TensorRef image{nullptr, {100, 90, 3}, 3, Elem::F32}, box_ref{box, {4}, 1, Elem::I64}, out;
  const TensorRef args[] = {image, box_ref};
  ASSERT_TRUE(runtime_shape(e, args, out));
  EXPECT_EQ(out.shape[0], 7);
  EXPECT_EQ(out.shape[1], 8);
  EXPECT_EQ(out.shape[2], 3);
}

TEST(Graph, EqualExpressionsAreOneAndKeepBothPlaces) {
  Graph graph;
  Expr e;
  e.op = &kAdd;
  e.type = f32({});
  e.origin = {Span{{1}, 0, 3}};
  const ExprId first = graph.add(e);
  e.origin = {Span{{1}, 7, 9}};
  EXPECT_EQ(graph.add(e), first);
  EXPECT_EQ(graph.expr(first).origin.size(), 2u);
  e.draw_id = 1;
  EXPECT_NE(graph.add(e), first);
}

TEST(Value, FailedElementsAreMarkedAndTheFirstIsReported) {
  Value v(Elem::U8, {3});
  EXPECT_FALSE(v.any_failed());
  v.fail_element(1, {"R0301", "first", {}});
  v.fail_element(2, {"R0302", "second", {}});
  EXPECT_FALSE(v.element_failed(0));
  EXPECT_TRUE(v.element_failed(1) && v.element_failed(2));
  EXPECT_EQ(v.failure()->message, "first");
  EXPECT_FALSE(v.whole_failed());
}

}  // namespace
}  // namespace zephon
