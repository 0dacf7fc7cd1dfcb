// The meaning of the tensor operators against values worked out elsewhere, and native kernels against the meaning.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "graph/op_def.h"
#include "graph/philox.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "ops/jpeg_codec.h"
#include "runtime/reference/sample_evaluator.h"

namespace zephon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

Value tensor(Elem elem, Ints shape, const Numbers& items) {
  Value v(elem, std::move(shape));
  for (size_t i = 0; i < items.size(); ++i) {
    Scalar s = is_float(elem) ? Scalar::of_float(elem, round_to(elem, items[i]))
                              : Scalar::of_int(elem, static_cast<int64_t>(items[i]));
    v.set(static_cast<int64_t>(i), s);
  }
  return v;
}
Value number(Elem elem, double x) { return tensor(elem, {}, {x}); }
Value integer(int64_t x) { return Value::scalar(Scalar::of_int(Elem::I64, x)); }
Value flag(bool x) { return Value::scalar(Scalar::of_bool(x)); }
Value text(std::string x, Elem elem = Elem::Str) { return Value::scalar(Scalar::of_string(elem, std::move(x))); }
Value box(int64_t top, int64_t left, int64_t height, int64_t width) {
  return tensor(Elem::I64, {4}, {double(top), double(left), double(height), double(width)});
}

// One call of an operator on given values, by `.define` and by its native kernel.
class Call {
 public:
  Call(std::string_view name, std::vector<Value> args, Attrs attrs = {}) : args_(std::move(args)) {
    const OpDef* op = all_ops().find(name);
    if (op == nullptr) throw std::runtime_error(fmt::format("no operator `{}`", name));
    std::vector<Type> types;
    std::vector<const Value*> constants;
    std::vector<ExprId> ids;
    const std::vector<Parameter>& parameters = signature_of(*op).parameters;
    for (const Parameter& p : parameters)
      if (p.default_value && !attrs.has(p.name)) attrs.set(p.name, *p.default_value);
    for (size_t i = 0; i < args_.size(); ++i) {
      const Value& v = args_[i];
      Type type = Type::scalar(v.elem());
      for (int64_t d : v.shape()) type.shape.push_back(Dim::of(d));
      if (i == 1 && v.shape() == Ints{4} && !v.any_failed()) type.box = {Dim::of(v.at(2).i), Dim::of(v.at(3).i)};
      types.push_back(type);
      constants.push_back(nullptr);
      ids.push_back(add_field(graph_, all_ops(), fmt::format("f{}", i), type));
    }
    std::string error;
    int bad = 0;
    std::optional<Type> type = unify(*op, attrs, types, constants, error, bad);
    if (!type) throw std::runtime_error(error);
    Expr expr;
    expr.op = op;
    expr.args = ids;
    expr.attrs = std::move(attrs);
    expr.type = *type;
    expr.draw_id = op->cls == OpClass::Draw ? 5 : 0;
    id_ = graph_.add(std::move(expr));
  }

  const Type& type() const { return graph_.expr(id_).type; }

  Value define(uint64_t identity = 0) {
    DataConstants constants(graph_, ".");
    auto lookup = [&](const std::string& name) { return args_[std::stoul(name.substr(1))]; };
    return SampleEvaluator(graph_, constants, lookup, identity, epoch_).evaluate(id_);
  }

  // The native kernel's result; nothing where it failed.
  std::optional<Value> native(uint64_t identity = 0) {
    const Expr& expr = graph_.expr(id_);
    std::vector<TensorRef> inputs;
    std::deque<std::vector<StringRef>> strings;
    for (Value& v : args_) {
      if (v.any_failed()) return std::nullopt;
      TensorRef ref;
      ref.elem = v.elem();
      ref.rank = static_cast<int32_t>(v.rank());
      std::copy(v.shape().begin(), v.shape().end(), ref.shape);
      ref.data = v.mutable_bytes().data();
      if (is_string(v.elem())) {
        strings.emplace_back();
        for (const std::string& s : v.string_items()) strings.back().push_back({s.data(), s.size()});
        ref.data = strings.back().data();
      }
      inputs.push_back(ref);
    }
    std::vector<std::unique_ptr<uint8_t[]>> memory;
    TensorRef out;
    out.elem = expr.type.elem;
    NativeCall call{.expr = &expr,
                    .inputs = inputs,
                    .output = &out,
                    .identity = identity,
                    .draw_key = draw_key(epoch_.seed, epoch_.epoch, expr.draw_id),
                    .allocate = [](void* context, size_t bytes) -> void* {
                      auto& blocks = *static_cast<std::vector<std::unique_ptr<uint8_t[]>>*>(context);
                      blocks.emplace_back(new uint8_t[bytes + 64]);
                      auto at = reinterpret_cast<uintptr_t>(blocks.back().get());
                      return reinterpret_cast<void*>((at + 63) / 64 * 64);
                    },
                    .context = &memory};
    if (expr.op->kernel.native == nullptr) throw std::runtime_error("no native kernel");
    if (!expr.op->kernel.native(call)) return std::nullopt;
    return to_value(out);
  }

 private:
  Graph graph_;
  EpochContext epoch_;
  std::vector<Value> args_;
  ExprId id_;
};

Attrs with(std::initializer_list<std::pair<std::string, Attr>> list) {
  Attrs attrs;
  for (const auto& [name, value] : list) attrs.set(name, value);
  return attrs;
}

std::string shown(const Value& v) {
  if (v.whole_failed()) return "failed: " + v.failure()->message;
  std::string out = "[";
  for (int64_t i = 0; i < v.size(); ++i) {
    Scalar s = v.element_failed(i) ? Scalar() : v.at(i);
    out += i > 0 ? ", " : "";
    out += v.element_failed(i)   ? "failed"
           : is_string(v.elem()) ? s.s
           : is_float(v.elem())  ? fmt::format("{}", s.f)
                                 : std::to_string(s.i);
  }
  return fmt::format("{}{}] {}", elem_name(v.elem()), fmt::format("({})", fmt::join(v.shape(), ",")), out);
}
testing::AssertionResult equal(const Value& got, const Value& expected) {
  if (got == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << shown(got) << " for " << shown(expected);
}

// The message of a value that failed.
std::string why(const Value& v) { return v.any_failed() ? v.failure()->message : "did not fail: " + shown(v); }

// The one element of an elementwise call.
Value one(std::string_view op, std::vector<Value> args, Attrs attrs = {}) {
  return Call(op, std::move(args), std::move(attrs)).define();
}

// ---- declarations
// ----------------------------------------------------------------------------------------------------

TEST(Ops, EveryTensorOperatorIsDeclaredInFull) {
  for (const OpDef* op : all_ops().all()) {
    SCOPED_TRACE(op->name);
    signature_of(*op);
    EXPECT_FALSE(op->summary.empty());
    EXPECT_TRUE(op->summary.ends_with('.'));
    EXPECT_FALSE(op->example.empty());
    if (op->cls == OpClass::Composite) {
      // What a table is read by stands in its columns.
      EXPECT_NE(op->expansion.empty(), op->implicit_column.empty());
      continue;
    }
    if (!is_tensor_class(op->cls) || op->cls == OpClass::Leaf) continue;
    EXPECT_EQ(op->define.scalar != nullptr, op->cls == OpClass::Pointwise);
    EXPECT_EQ(op->define.view != nullptr, op->cls == OpClass::View);
    EXPECT_EQ(op->define.tensor != nullptr, op->cls != OpClass::Pointwise && op->cls != OpClass::View);
    EXPECT_EQ(op->effects.random, op->cls == OpClass::Draw);
    const Kernel& k = op->kernel;
    EXPECT_TRUE(k.pointwise != nullptr || k.view != nullptr || k.reduce.init != nullptr || k.native != nullptr);
    EXPECT_EQ(k.view != nullptr, op->cls == OpClass::View);
    EXPECT_EQ(k.reduce.finish != nullptr, op->cls == OpClass::Reduce);
  }
}

// ---- numbers
// -----------------------------------------------------------------------------------------------------------

TEST(Ops, IntegersAreExactOrFail) {
  EXPECT_TRUE(equal(one("add", {number(Elem::I32, 2147483646), number(Elem::I32, 1)}), number(Elem::I32, 2147483647)));
  EXPECT_EQ(why(one("add", {number(Elem::I32, 2147483647), number(Elem::I32, 1)})), "2147483647 + 1 overflows i32");
  EXPECT_EQ(why(one("sub", {integer(INT64_MIN), integer(1)})), "-9223372036854775808 - 1 overflows i64");
  EXPECT_EQ(why(one("mul", {integer(int64_t{1} << 62), integer(2)})), "4611686018427387904 * 2 overflows i64");
  EXPECT_TRUE(equal(one("mul", {integer(int64_t{-1} << 62), integer(2)}), integer(INT64_MIN)));
  EXPECT_EQ(why(one("neg", {number(Elem::I32, -2147483648.0)})), "-(-2147483648) overflows i32");
  EXPECT_EQ(why(one("abs", {integer(INT64_MIN)})), "abs(-9223372036854775808) overflows i64");
  EXPECT_TRUE(equal(one("abs", {integer(-3)}), integer(3)));
}

TEST(Ops, DivisionOfIntegers) {
  // Python's // and %.
  const int64_t cases[][4] = {{7, 2, 3, 1},   {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1},
                              {-8, 2, -4, 0}, {0, 5, 0, 0},   {5, -1, -5, 0},  {INT64_MIN, 2, INT64_MIN / 2, 0}};
  for (const auto& [a, b, quotient, rest] : cases) {
    EXPECT_TRUE(equal(one("floor_div", {integer(a), integer(b)}), integer(quotient))) << a << ' ' << b;
    EXPECT_TRUE(equal(one("mod", {integer(a), integer(b)}), integer(rest))) << a << ' ' << b;
  }
  EXPECT_TRUE(equal(one("mod", {integer(INT64_MIN), integer(-1)}), integer(0)));
  EXPECT_EQ(why(one("floor_div", {integer(INT64_MIN), integer(-1)})), "-9223372036854775808 // -1 overflows i64");
  for (const char* op : {"div", "floor_div", "mod"}) EXPECT_TRUE(one(op, {integer(4), integer(0)}).any_failed()) << op;
  EXPECT_EQ(why(one("mod", {integer(4), integer(0)})), "division by zero: 4 % 0");
  EXPECT_TRUE(equal(one("div", {integer(7), integer(2)}), number(Elem::F64, 3.5)));
}

TEST(Ops, FloatsFollowIeee754) {
  auto f64 = [](double x) { return number(Elem::F64, x); };
  EXPECT_TRUE(equal(one("div", {f64(1), f64(0)}), f64(kInf)));
  EXPECT_TRUE(equal(one("div", {f64(-1), f64(0)}), f64(-kInf)));
  EXPECT_TRUE(equal(one("floor_div", {f64(-7), f64(2)}), f64(-4)));
  EXPECT_TRUE(equal(one("mod", {f64(-7), f64(2)}), f64(1)));
  EXPECT_TRUE(equal(one("neg", {f64(0)}), f64(-0.0)));
  EXPECT_TRUE(equal(one("add", {number(Elem::F32, 16777216), number(Elem::F32, 1)}), number(Elem::F32, 16777216)));
  EXPECT_TRUE(equal(one("add", {number(Elem::F16, 2048), number(Elem::F16, 1)}), number(Elem::F16, 2048)));
  EXPECT_TRUE(equal(one("mul", {number(Elem::F16, 256), number(Elem::F16, 256)}), number(Elem::F16, kInf)));
  EXPECT_TRUE(equal(one("add", {number(Elem::BF16, 256), number(Elem::BF16, 1)}), number(Elem::BF16, 256)));
  EXPECT_TRUE(equal(one("minimum", {f64(0.0), f64(-0.0)}), f64(-0.0)));
  EXPECT_TRUE(equal(one("maximum", {f64(-0.0), f64(0.0)}), f64(0.0)));
  EXPECT_TRUE(std::isnan(one("minimum", {f64(1), f64(kNaN)}).at(0).f));
  EXPECT_TRUE(std::isnan(one("maximum", {f64(kNaN), f64(1)}).at(0).f));
  EXPECT_TRUE(equal(one("minimum", {integer(3), integer(-3)}), integer(-3)));
  EXPECT_TRUE(equal(one("maximum", {integer(3), integer(-3)}), integer(3)));
  EXPECT_TRUE(equal(one("floor", {f64(-0.5)}), f64(-1)));
  EXPECT_TRUE(equal(one("round", {f64(2.5)}), f64(2)));
  EXPECT_TRUE(equal(one("round", {f64(-0.5)}), f64(-0.0)));
  EXPECT_TRUE(equal(one("sqrt", {number(Elem::F32, 2)}), number(Elem::F32, 1.41421354f)));
  EXPECT_TRUE(equal(one("exp", {number(Elem::F32, 1)}), number(Elem::F32, 2.71828175f)));
  EXPECT_TRUE(equal(one("log", {f64(10)}), f64(2.302585092994046)));
  EXPECT_TRUE(equal(one("sin", {f64(1)}), f64(0.8414709848078965)));
  EXPECT_TRUE(equal(one("cos", {f64(1)}), f64(0.5403023058681398)));
  EXPECT_TRUE(equal(one("pow", {f64(2), f64(0.5)}), f64(1.4142135623730951)));
}

TEST(Ops, Comparisons) {
  const char* ops[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  auto expect = [&](const Value& a, const Value& b, const char* bits) {
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(equal(one(ops[i], {a, b}), flag(bits[i] == '1'))) << ops[i] << shown(a) << shown(b);
  };
  expect(integer(1), integer(2), "011100");
  expect(integer(2), integer(2), "100101");
  expect(number(Elem::F32, kNaN), number(Elem::F32, kNaN), "010000");
  expect(number(Elem::F32, 0), number(Elem::F32, -0.0), "100101");
  expect(text("ab"), text("b"), "011100");
  expect(text("\xc3\xa9"), text("z"), "010011");  // by bytes, not by alphabet
  expect(flag(true), flag(false), "010011");
  for (const char* op : ops) {
    Value items = Value::strings(Elem::Str, {"a", "b", "c"});
    Call call(op, {items, text("b")});
    EXPECT_TRUE(equal(*call.native(), call.define())) << op;
    Call table(op, {Value::strings(Elem::Str, {"a", "b"}), text("a")});
    EXPECT_TRUE(equal(*table.native(), table.define())) << op;
  }
}

TEST(Ops, FalseBeatsFailure) {
  Value bad = Value(Elem::Bool, {});
  bad.fail_element(0, {"R0420", "bad", {}});
  for (bool left : {true, false}) {
    EXPECT_TRUE(equal(one("and", {left ? bad : flag(false), left ? flag(false) : bad}), flag(false)));
    EXPECT_TRUE(equal(one("or", {left ? bad : flag(true), left ? flag(true) : bad}), flag(true)));
    EXPECT_EQ(why(one("and", {left ? bad : flag(true), left ? flag(true) : bad})), "bad");
    EXPECT_EQ(why(one("or", {left ? bad : flag(false), left ? flag(false) : bad})), "bad");
  }
  EXPECT_EQ(why(one("not", {bad})), "bad");
  EXPECT_TRUE(equal(one("not", {flag(true)}), flag(false)));
  EXPECT_TRUE(equal(one("where", {flag(true), flag(true), bad}), flag(true)));
  EXPECT_TRUE(equal(one("where", {flag(false), bad, flag(true)}), flag(true)));
  EXPECT_EQ(why(one("where", {flag(false), flag(true), bad})), "bad");
  EXPECT_EQ(why(one("where", {bad, flag(true), flag(true)})), "bad");
  Call strings("where", {flag(false), text("a"), text("b")});
  EXPECT_TRUE(equal(*strings.native(), text("b")));
}

TEST(Ops, Casts) {
  auto cast = [](const Value& x, Elem to) { return one("cast", {x}, with({{"to", to}})); };
  const std::pair<double, double> to_u8[] = {{-1, 0},      {0.5, 0},    {1.5, 2},  {254.5, 254},
                                             {255.5, 255}, {1e30, 255}, {-kInf, 0}};
  for (auto [x, expected] : to_u8)
    EXPECT_TRUE(equal(cast(number(Elem::F64, x), Elem::U8), number(Elem::U8, expected))) << x;
  EXPECT_EQ(why(cast(number(Elem::F32, kNaN), Elem::I32)), "NaN does not become i32");
  EXPECT_TRUE(equal(cast(number(Elem::F64, 1e300), Elem::I64), integer(INT64_MAX)));
  EXPECT_TRUE(equal(cast(number(Elem::F64, -1e300), Elem::I64), integer(INT64_MIN)));
  EXPECT_TRUE(equal(cast(number(Elem::F64, 0x1p62), Elem::I64), integer(int64_t{1} << 62)));
  EXPECT_EQ(why(cast(integer(256), Elem::U8)), "256 is out of the range of u8");
  EXPECT_EQ(why(cast(integer(-1), Elem::U16)), "-1 is out of the range of u16");
  EXPECT_TRUE(equal(cast(integer(16777217), Elem::F32), number(Elem::F32, 16777216)));
  EXPECT_TRUE(equal(cast(integer((int64_t{1} << 24) + 1), Elem::F64), number(Elem::F64, 16777217)));
  EXPECT_TRUE(equal(cast(number(Elem::F32, 0.5), Elem::Bool), flag(true)));
  EXPECT_TRUE(equal(cast(flag(true), Elem::F32), number(Elem::F32, 1)));
  EXPECT_TRUE(equal(cast(number(Elem::F64, 65520), Elem::F16), number(Elem::F16, kInf)));
  EXPECT_TRUE(equal(cast(text("a/b"), Elem::Path), text("a/b", Elem::Path)));
  EXPECT_EQ(why(cast(text("\xff", Elem::Bytes), Elem::Str)), "the bytes are not UTF-8");
  EXPECT_FALSE(Call("cast", {text("\xff", Elem::Bytes)}, with({{"to", Elem::Str}})).native());
  EXPECT_THROW(cast(integer(1), Elem::Str), std::runtime_error);
}

// ---- reductions
// --------------------------------------------------------------------------------------------------------

TEST(Ops, Reductions) {
  Value x = tensor(Elem::I32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(equal(one("sum", {x}), number(Elem::I32, 21)));
  EXPECT_TRUE(equal(one("sum", {x}, with({{"axes", Ints{0}}})), tensor(Elem::I32, {3}, {5, 7, 9})));
  EXPECT_TRUE(equal(one("sum", {x}, with({{"axes", Ints{-1}}})), tensor(Elem::I32, {2}, {6, 15})));
  EXPECT_TRUE(equal(one("mean", {x}), number(Elem::F64, 3.5)));
  EXPECT_TRUE(equal(one("min", {x}, with({{"axes", Ints{0}}})), tensor(Elem::I32, {3}, {1, 2, 3})));
  EXPECT_TRUE(equal(one("max", {x}), number(Elem::I32, 6)));
  EXPECT_EQ(why(one("sum", {tensor(Elem::I32, {2}, {2147483647, 1})})), "the sum overflows i32");
  EXPECT_TRUE(equal(one("sum", {tensor(Elem::I32, {3}, {2147483647, 1, -1})}), number(Elem::I32, 2147483647)));
  EXPECT_EQ(why(one("min", {tensor(Elem::F32, {0}, {})})), "no element to choose from");
  EXPECT_TRUE(equal(one("sum", {tensor(Elem::F32, {0}, {})}), number(Elem::F32, 0)));
  EXPECT_TRUE(std::isnan(one("mean", {tensor(Elem::F32, {0}, {})}).at(0).f));
  EXPECT_TRUE(std::isnan(one("max", {tensor(Elem::F32, {3}, {1, kNaN, 2})}).at(0).f));
  EXPECT_TRUE(equal(one("min", {tensor(Elem::F32, {2}, {0.0, -0.0})}), number(Elem::F32, -0.0)));
  EXPECT_TRUE(equal(one("max", {tensor(Elem::F32, {2}, {-0.0, 0.0})}), number(Elem::F32, 0.0)));
  EXPECT_TRUE(equal(one("any", {tensor(Elem::Bool, {2, 2}, {0, 0, 0, 1})}, with({{"axes", Ints{1}}})),
                    tensor(Elem::Bool, {2}, {0, 1})));
  EXPECT_TRUE(equal(one("all", {tensor(Elem::Bool, {0}, {})}), flag(true)));
  EXPECT_THROW(one("sum", {x}, with({{"axes", Ints{2}}})), std::runtime_error);
}

TEST(Ops, SumsRunInSixteenLanes) {
  // Left to right the ones vanish beside 2^24; lane by lane they meet first.
  Numbers items(33, 0);
  items[0] = 16777216;
  for (size_t i = 1; i < 33; ++i) items[i] = 1;
  // lane 0: 2^24 + 1 + 1 = 2^24 (each 1 is lost); lanes 1 to 15: 2; pairwise: 2^24 + 30.
  EXPECT_TRUE(equal(one("sum", {tensor(Elem::F32, {33}, items)}), number(Elem::F32, 16777246)));
}

TEST(Ops, AFailedElementFailsItsReductionOnly) {
  Value x = tensor(Elem::I32, {2, 2}, {1, 2, 3, 4});
  x.fail_element(1, {"R0420", "bad", {}});
  Value sum = one("sum", {x}, with({{"axes", Ints{1}}}));
  EXPECT_TRUE(sum.element_failed(0));
  EXPECT_FALSE(sum.element_failed(1));
  EXPECT_EQ(sum.at(1).i, 7);
}

// ---- views
// ---------------------------------------------------------------------------------------------------------------

TEST(Ops, Views) {
  Value x = tensor(Elem::I32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(equal(one("index", {x, integer(-1)}), tensor(Elem::I32, {3}, {4, 5, 6})));
  EXPECT_TRUE(equal(one("index", {x, integer(1), integer(0)}), number(Elem::I32, 4)));
  EXPECT_TRUE(equal(one("index", {x, integer(1)}, with({{"dims", Ints{1}}})), tensor(Elem::I32, {2}, {2, 5})));
  EXPECT_EQ(why(one("index", {x, integer(2)})), "index 2 in a dimension of 2");
  EXPECT_THROW(one("index", {x, integer(0), integer(0), integer(0)}), std::runtime_error);
  constexpr int64_t kOpen = INT64_MAX;
  auto slice = [&](Ints begin, Ints end, Ints step) {
    return one("slice", {x}, with({{"begin", begin}, {"end", end}, {"step", step}}));
  };
  EXPECT_TRUE(equal(slice({0, 1}, {kOpen, 3}, {1, 1}), tensor(Elem::I32, {2, 2}, {2, 3, 5, 6})));
  EXPECT_TRUE(equal(slice({-1, 0}, {kOpen, kOpen}, {1, 2}), tensor(Elem::I32, {1, 2}, {4, 6})));
  EXPECT_TRUE(equal(slice({0, 0}, {kOpen, -1}, {1, 1}), tensor(Elem::I32, {2, 2}, {1, 2, 4, 5})));
  EXPECT_THROW(slice({0, 0}, {3, kOpen}, {1, 1}), std::runtime_error);
  EXPECT_THROW(slice({0, 0}, {kOpen, kOpen}, {1, 0}), std::runtime_error);
  EXPECT_TRUE(
      equal(one("transpose", {x}, with({{"order", Ints{1, 0}}})), tensor(Elem::I32, {3, 2}, {1, 4, 2, 5, 3, 6})));
  EXPECT_THROW(one("transpose", {x}, with({{"order", Ints{1, 1}}})), std::runtime_error);
  EXPECT_TRUE(
      equal(one("reshape", {x}, with({{"shape", Ints{3, -1}}})), tensor(Elem::I32, {3, 2}, {1, 2, 3, 4, 5, 6})));
  EXPECT_THROW(one("reshape", {x}, with({{"shape", Ints{4, -1}}})), std::runtime_error);
  EXPECT_TRUE(equal(one("crop", {x, box(0, 1, 2, 1)}), tensor(Elem::I32, {2, 1}, {2, 5})));
  EXPECT_TRUE(equal(one("flip", {x}), tensor(Elem::I32, {2, 3}, {3, 2, 1, 6, 5, 4})));
  EXPECT_TRUE(equal(one("flip", {x, flag(false)}), x));
  EXPECT_TRUE(equal(one("flip", {x}, with({{"direction", std::string("vertical")}})),
                    tensor(Elem::I32, {2, 3}, {4, 5, 6, 1, 2, 3})));
  Value signal = tensor(Elem::F64, {5}, {0, 1, 2, 3, 4});
  EXPECT_TRUE(equal(one("windows", {signal}, with({{"size", int64_t{2}}})), tensor(Elem::F64, {2, 2}, {0, 1, 2, 3})));
  EXPECT_TRUE(equal(one("windows", {signal}, with({{"size", int64_t{3}}, {"step", int64_t{1}}})),
                    tensor(Elem::F64, {3, 3}, {0, 1, 2, 1, 2, 3, 2, 3, 4})));
  EXPECT_EQ(one("windows", {signal}, with({{"size", int64_t{6}}})).shape(), (Ints{0, 6}));
}

TEST(Ops, ACropMayCutFailedElementsAway) {
  Value x = tensor(Elem::U8, {3, 2}, {1, 2, 3, 4, 5, 6});
  x.fail_element(5, {"R0420", "bad", {}});
  EXPECT_TRUE(equal(one("crop", {x, box(0, 0, 2, 2)}), tensor(Elem::U8, {2, 2}, {1, 2, 3, 4})));
  Value partly = one("crop", {x, box(2, 0, 1, 2)});
  EXPECT_FALSE(partly.element_failed(0));
  EXPECT_TRUE(partly.element_failed(1));
  Value outside = one("crop", {x, box(2, 0, 2, 2)});
  EXPECT_FALSE(outside.element_failed(0));
  EXPECT_TRUE(outside.element_failed(2));
}

TEST(Ops, StackAndOneHotAndBox) {
  Call stack("stack", {integer(1), integer(2), integer(3)});
  EXPECT_TRUE(equal(stack.define(), tensor(Elem::I64, {3}, {1, 2, 3})));
  EXPECT_TRUE(equal(*stack.native(), stack.define()));
  Call rows("stack", {tensor(Elem::F32, {2}, {1, 2}), tensor(Elem::F32, {2}, {3, 4})});
  EXPECT_TRUE(equal(*rows.native(), tensor(Elem::F32, {2, 2}, {1, 2, 3, 4})));
  EXPECT_TRUE(equal(rows.define(), *rows.native()));
  Call hot("one_hot", {tensor(Elem::U8, {2}, {2, 0})}, with({{"classes", int64_t{3}}}));
  EXPECT_TRUE(equal(hot.define(), tensor(Elem::F32, {2, 3}, {0, 0, 1, 1, 0, 0})));
  EXPECT_TRUE(equal(*hot.native(), hot.define()));
  Call outside("one_hot", {integer(-1)}, with({{"classes", int64_t{3}}}));
  EXPECT_EQ(why(outside.define()), "class -1 of 3");
  EXPECT_FALSE(outside.native());
  Call b("box", {integer(1), integer(2)}, with({{"height", int64_t{3}}, {"width", int64_t{4}}}));
  EXPECT_TRUE(equal(b.define(), box(1, 2, 3, 4)));
  EXPECT_TRUE(equal(*b.native(), b.define()));
  Value picture = tensor(Elem::U8, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  for (auto [name, expected] : {std::pair{"height", 2}, std::pair{"width", 3}, std::pair{"len", 2}}) {
    Call call(name, {picture});
    EXPECT_TRUE(equal(call.define(), integer(expected))) << name;
    EXPECT_TRUE(equal(*call.native(), integer(expected))) << name;
  }
}

// ---- text
// ------------------------------------------------------------------------------------------------------------------

TEST(Ops, Paths) {
  struct Case {
    const char *path, *parent, *name, *stem;
  };
  // As Python's pathlib.PurePosixPath, but for `.` as the parent of a bare name, which it has too.
  for (const Case& c : {Case{"a/b/c.tar.gz", "a/b", "c.tar.gz", "c.tar"},
                        {"/x", "/", "x", "x"},
                        {"x.jpg", ".", "x.jpg", "x"},
                        {"a/.hidden", "a", ".hidden", ".hidden"},
                        {"a//b/", "a", "b", "b"},
                        {"\xc3\xa9/\xc3\xbc.png", "\xc3\xa9", "\xc3\xbc.png", "\xc3\xbc"}}) {
    Value path = text(c.path, Elem::Path);
    for (auto [op, expected] : {std::pair{"parent", text(c.parent, Elem::Path)}, std::pair{"name", text(c.name)},
                                std::pair{"stem", text(c.stem)}}) {
      Call call(op, {path});
      EXPECT_TRUE(equal(call.define(), expected)) << op << ' ' << c.path;
      EXPECT_TRUE(equal(*call.native(), expected)) << op << ' ' << c.path;
    }
  }
  Call broken("name", {text("a/\xff.jpg", Elem::Path)});
  EXPECT_EQ(why(broken.define()), "the name of the file is not UTF-8");
  EXPECT_FALSE(broken.native());
}

// Both the definition and the kernel give `expected`, or both fail, with its message.
void expect_text(std::string_view op, std::vector<Value> args, Attrs attrs, const Value& expected) {
  Call call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(equal(call.define(), expected)) << op;
  const std::optional<Value> native = call.native();
  ASSERT_TRUE(native) << op;
  EXPECT_TRUE(equal(*native, expected)) << op;
}
void expect_failure(std::string_view op, std::vector<Value> args, Attrs attrs, std::string_view message) {
  Call call(op, std::move(args), std::move(attrs));
  EXPECT_EQ(why(call.define()), message) << op;
  EXPECT_FALSE(call.native()) << op;
}
std::string refusal(std::string_view op, std::vector<Value> args, Attrs attrs) {
  try {
    Call call(op, std::move(args), std::move(attrs));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

// What Python 3.11's str, unicodedata and slices give, where the rules are the same.
TEST(Ops, UnicodeText) {
  expect_text("lower", {text("ÄÖΣ İ123")}, {}, text("äöσ i123"));
  expect_text("upper", {text("straße ﬁ ÿ")}, {}, text("STRAßE ﬁ Ÿ"));
  expect_text("casefold", {text("Straße ΣΑΣ")}, {}, text("strasse σασ"));
  const auto form = [](std::string f) { return with({{"form", std::move(f)}}); };
  expect_text("normalize_utf8", {text("e\u0301")}, form("nfc"), text("\u00e9"));
  expect_text("normalize_utf8", {text("\u00e9")}, form("nfd"), text("e\u0301"));
  expect_text("normalize_utf8", {text("ﬁ①")}, form("nfkc"), text("fi1"));
  expect_text("normalize_utf8", {text("\u1e9b\u0323")}, form("nfkd"), text("s\u0323\u0307"));
  expect_text("normalize_utf8", {text("\ud55c")}, form("nfd"), text("\u1112\u1161\u11ab"));
  const auto side = [](std::string s) { return with({{"side", std::move(s)}}); };
  expect_text("strip", {text("\t \u3000a b\u00a0\n")}, side("both"), text("a b"));
  expect_text("strip", {text(" a ")}, side("left"), text("a "));
  expect_text("strip", {text(" a ")}, side("right"), text(" a"));
  expect_text("strip", {text(" \u2003")}, side("both"), text(""));
  expect_text("len", {text("e\u0301 한 👩‍👩‍👧")}, {}, integer(10));
  expect_text("grapheme_length", {text("e\u0301 한 👩‍👩‍👧")}, {}, integer(5));
  expect_text("byte_length", {text("é")}, {}, integer(2));
  const auto cut = [](std::string s, int64_t a, int64_t b, std::string expected) {
    expect_text("substr", {text(std::move(s)), integer(a), integer(b)}, {}, text(std::move(expected)));
  };
  cut("añb한", 1, 3, "ñb");
  cut("añb한", -1, 100, "한");
  cut("añb한", 3, 1, "");
  cut("añb한", -100, -2, "añ");
  expect_text("substr", {text("a\xff\xfe", Elem::Bytes), integer(1), integer(2)}, {}, text("\xff", Elem::Bytes));
  expect_text("ends_with", {text("banana"), text("ana")}, {}, flag(true));
}

TEST(Ops, TextAndNumbers) {
  const auto base = [](int64_t b) { return with({{"base", b}}); };
  expect_text("parse_int", {text("-9223372036854775808")}, base(10), integer(INT64_MIN));
  expect_text("parse_int", {text("+7fF")}, base(16), integer(2047));
  expect_failure("parse_int", {text("9223372036854775808")}, base(10), "`9223372036854775808` is outside of i64");
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x10", "+-1", "--1", "١"})
    expect_failure("parse_int", {text(bad)}, base(10), fmt::format("`{}` is no whole number", bad));
  expect_text("parse_float", {text("-1.5e3")}, {}, number(Elem::F64, -1500));
  expect_text("parse_float", {text("0.1")}, {}, number(Elem::F64, 0.1));
  for (const char* bad : {"", "1,5", "0x1p3", "1e", "1.5 "})
    expect_failure("parse_float", {text(bad)}, {}, fmt::format("`{}` is no number", bad));
  expect_failure("parse_float", {text("1e999")}, {}, "`1e999` is outside of f64");
  const auto spec = [](std::string s) { return with({{"spec", std::move(s)}}); };
  expect_text("format", {integer(42)}, spec("05d"), text("00042"));
  expect_text("format", {integer(-255)}, spec("#x"), text("-0xff"));
  expect_text("format", {number(Elem::F64, 2.0 / 3)}, spec(".3f"), text("0.667"));
  expect_text("format", {text("añ")}, spec("*^6"), text("**añ**"));
  EXPECT_EQ(refusal("format", {integer(1)}, spec(".3f")),
            "\x1fspec\x1f-1\x1f"
            "a precision is for floats and text");
  EXPECT_NE(refusal("format", {integer(1)}, spec("{}")), "");
  EXPECT_NE(refusal("format", {integer(1)}, spec("99999d")), "");
  EXPECT_NE(refusal("format", {text("a")}, spec("05")), "");
  const auto split = [](std::string s, std::string separator, std::optional<int64_t> limit,
                        std::vector<std::string> parts) {
    Attrs attrs = with({{"separator", std::move(separator)}});
    if (limit) attrs.set("limit", *limit);
    expect_text("split_text", {text(std::move(s))}, attrs, Value::strings(Elem::Str, std::move(parts)));
  };
  split("a,b,,c,", ",", {}, {"a", "b", "", "c", ""});
  split("a--b--c", "--", 1, {"a", "b--c"});
  split("", ",", {}, {""});
  split("  one \t two\n", "", {}, {"one", "two"});
  split(" one  two  three ", "", 1, {"one", "two  three"});
  split(" ", "", {}, {});
  expect_text("join", {Value::strings(Elem::Str, {"a", "", "b"})}, with({{"separator", "-"}}), text("a--b"));
}

// What Python's re gives where it has the same words.
TEST(Ops, RegularExpressions) {
  const auto pattern = [](std::string p) { return with({{"pattern", std::move(p)}}); };
  const auto grouped = [](std::string p, int64_t g) { return with({{"pattern", std::move(p)}, {"group", g}}); };
  expect_text("matches", {text("xaay")}, pattern("a+y$"), flag(true));
  expect_text("matches", {text("xaay")}, pattern("^a"), flag(false));
  expect_text("matches", {text("Ñ3")}, pattern(R"(^\w\d$)"), flag(true));
  expect_text("matches", {text("\xc3\x91", Elem::Bytes)}, pattern(R"(^\w$)"), flag(false));
  expect_text("matches", {text("\xff\xfe", Elem::Bytes)}, pattern(R"(^\xff.$)"), flag(true));
  expect_text("find", {text("a12b345")}, pattern(R"(\d{3}|b)"), text("b"));
  expect_failure("find", {text("abc")}, pattern(R"(\d)"), "`\\d` does not match `abc`");
  expect_text("find_all", {text("a1b22c")}, pattern(R"(\d*)"), Value::strings(Elem::Str, {"", "1", "", "22", "", ""}));
  expect_text("find_all", {text("éé")}, pattern(""), Value::strings(Elem::Str, {"", "", ""}));
  expect_text("group", {text("2024-02")}, grouped(R"((\d+)-(?<m>\d+))", 2), text("02"));
  Attrs named = grouped(R"((\d+)-(?<m>\d+))", 1);
  named.set("name", "m");
  expect_text("group", {text("2024-02")}, named, text("02"));
  expect_failure("group", {text("b")}, grouped("(a)?b", 1), "group 1 has no part in the match in `b`");
  EXPECT_EQ(refusal("group", {text("b")}, grouped("(a)?b", 2)),
            "\x1fgroup\x1f-1\x1fthe pattern has 1 group, and none is `2`");
  expect_text("captures", {text("640x")}, pattern(R"((\d+)x(\d+)?)"), Value::strings(Elem::Str, {"640", ""}));
  const auto replace = [](std::string p, std::string r) {
    return with({{"pattern", std::move(p)}, {"replacement", std::move(r)}});
  };
  expect_text("regex_replace", {text("a.b.c")}, replace(R"(\.)", "$$"), text("a$b$c"));
  expect_text("regex_replace", {text("John Smith")}, replace(R"((\w+) (?<last>\w+))", "${last}, $1!"),
              text("Smith, John!"));
  expect_text("regex_replace", {text("abc")}, replace("", "-"), text("-a-b-c-"));
  EXPECT_EQ(refusal("regex_replace", {text("a")}, replace("(a)", "x$2")),
            "\x1freplacement\x1f"
            "1\x1fthe pattern has 1 group, and none is `2`");
  EXPECT_EQ(refusal("matches", {text("a")}, pattern("(a[bc)")).substr(0, 12),
            "\x1fpattern\x1f"
            "6\x1fm");
  const std::string many(40, 'a');
  // No single letter that must come: PCRE2 would look for it first, and not begin.
  expect_failure("matches", {text(many)}, pattern("^(a+)+[bc]$"),
                 "the pattern needs more than 1000000 steps on `" + many + "`");
}

TEST(Ops, Hash) {
  const auto seed = [](int64_t s) { return with({{"seed", s}}); };
  // xxhash.xxh3_64_intdigest(b"")
  expect_text("hash", {text("")}, seed(0), integer(static_cast<int64_t>(0x2d06800538d394c2)));
  Call path("hash", {text("abc", Elem::Path)}, seed(0)), name("hash", {text("abc")}, seed(0)),
      other("hash", {text("abc")}, seed(1));
  EXPECT_TRUE(equal(path.define(), name.define()));
  EXPECT_FALSE(equal(other.define(), name.define()));
  EXPECT_TRUE(equal(*name.native(), name.define()));
  for (const Value& x :
       {Value::strings(Elem::Str, {"a", "bc"}), Value::strings(Elem::Str, {"ab", "c"}), number(Elem::F32, 1.5)}) {
    Call call("hash", {x}, seed(3));
    EXPECT_TRUE(equal(*call.native(), call.define()));
  }
  Call one("hash", {Value::strings(Elem::Str, {"a", "bc"})}, seed(0));
  Call two("hash", {Value::strings(Elem::Str, {"ab", "c"})}, seed(0));
  EXPECT_FALSE(equal(one.define(), two.define()));
}

// Against Python's datetime, and what RFC 3339 says.
TEST(Ops, Times) {
  const auto time = [](std::string t, int64_t ns) { expect_text("parse_time", {text(std::move(t))}, {}, integer(ns)); };
  time("1970-01-01T00:00:00Z", 0);
  time("2024-02-29t12:30:00.5+01:00", 1709206200500000000);
  time("1969-12-31 23:59:59.999999999z", -1);
  time("2016-12-31T23:59:60Z", 1483228800000000000);
  time("2017-01-01T05:29:60.7+05:30", 1483228800000000000);
  time("1900-03-01T00:00:00-00:00", -2203891200000000000);
  time("2262-04-11T23:47:16.854775807Z", INT64_MAX);
  time("2000-01-01T00:00:00.0000000019Z", 946684800000000001);
  const auto bad = [](std::string t, std::string why) {
    expect_failure("parse_time", {text(t)}, {}, fmt::format("`{}` is no time of RFC 3339: {}", t, why));
  };
  const std::string like = "it is written like 2024-02-29T12:30:00.5+01:00";
  bad("2023-02-29T00:00:00Z", "2023-02 has no day 29");
  bad("1900-02-29T00:00:00Z", "1900-02 has no day 29");
  bad("2023-13-01T00:00:00Z", "there is no month 13");
  bad("2023-12-01T24:00:00Z", "there is no such time of day");
  bad("2023-12-15T23:59:60Z", "a leap second ends the last day of a month, in UTC");
  bad("2023-12-01T00:00:00", "the offset is missing: Z, or one like +01:00");
  bad("2023-12-01T00:00:00+1:00", "the offset is one like +01:00");
  bad("2023-12-01T00:00:00Z ", "something follows it");
  bad("2023-12-01T00:00:00.Z", "the fraction has no digits");
  for (const char* t : {"", "2023-12-01", "2023-1-01T00:00:00Z", "+2023-12-01T00:00:00Z"}) bad(t, like);
  expect_failure("parse_time", {text("1677-01-01T00:00:00Z")}, {},
                 "`1677-01-01T00:00:00Z` is outside of the years 1677 to 2262");
  for (const int64_t t : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1709206200500000000}}) {
    Call shown("format_time", {integer(t)});
    EXPECT_TRUE(equal(*shown.native(), shown.define()));
    if (t != INT64_MIN) expect_text("parse_time", {shown.define()}, {}, integer(t));
  }
  expect_text("format_time", {integer(1709206200500000000)}, {}, text("2024-02-29T11:30:00.5Z"));
  expect_text("format_time", {integer(INT64_MIN)}, {}, text("1677-09-21T00:12:43.145224192Z"));
  const auto part = [](std::string_view op, int64_t of, int64_t expected) {
    expect_text(op, {integer(of)}, {}, integer(expected));
  };
  for (auto [op, expected] : std::initializer_list<std::pair<std::string_view, int64_t>>{{"year", 2024},
                                                                                         {"month", 2},
                                                                                         {"day", 29},
                                                                                         {"hour", 11},
                                                                                         {"minute", 30},
                                                                                         {"second", 0},
                                                                                         {"weekday", 3},
                                                                                         {"day_of_year", 60}})
    part(op, 1709206200500000000, expected);
  part("weekday", -1, 2);
  part("hour", -1, 23);
  part("year", INT64_MIN, 1677);
  part("second", INT64_MIN, 43);
}

TEST(Ops, Strings) {
  auto both = [](std::string_view op, std::vector<Value> args, const Value& expected) {
    Call call(op, std::move(args));
    EXPECT_TRUE(equal(call.define(), expected)) << op;
    EXPECT_TRUE(equal(*call.native(), expected)) << op;
  };
  both("lower", {text("AbC\xc3\x89")}, text("abc\xc3\xa9"));
  both("contains", {text("banana"), text("nan")}, flag(true));
  both("contains", {text("banana"), text("x")}, flag(false));
  both("contains", {text("banana"), text("")}, flag(true));
  both("starts_with", {text("banana"), text("ban")}, flag(true));
  both("replace", {text("aaaa"), text("aa"), text("ab")}, text("abab"));
  both("replace", {text("abc"), text(""), text("x")}, text("abc"));
  both("concat", {text("a"), text(""), text("bc")}, text("abc"));
  both("to_str", {integer(-5)}, text("-5"));
  both("to_str", {number(Elem::F64, 0.1)}, text("0.1"));
  both("to_str", {number(Elem::F32, 0.1)}, text("0.1"));
  both("to_str", {flag(true)}, text("true"));
  both("to_str", {text("p", Elem::Path)}, text("p"));
  both("byte_length", {text("\xc3\x89x")}, integer(3));
  both("index_of", {Value::strings(Elem::Str, {"b", "a", "a"}), text("a")}, integer(1));
  both("index_of", {tensor(Elem::I32, {3}, {4, 5, 6}), number(Elem::I32, 6)}, integer(2));
  Call missing("index_of", {Value::strings(Elem::Str, {"b", "a"}), text("c")});
  EXPECT_EQ(why(missing.define()), "`c` is not among the 2 items");
  EXPECT_FALSE(missing.native());
}

// ---- draws
// -----------------------------------------------------------------------------------------------------------------

TEST(Ops, DrawsAreAFunctionOfKeyAndIdentity) {
  const Elem floats[] = {Elem::F64, Elem::F32, Elem::F16, Elem::BF16};
  std::vector<Call> calls;
  for (Elem e : floats) {
    calls.emplace_back("uniform", std::vector<Value>{},
                       with({{"low", -1.0}, {"high", 3.0}, {"shape", Ints{2, 50}}, {"type", e}}));
    calls.emplace_back("normal", std::vector<Value>{},
                       with({{"mean", 1.0}, {"deviation", 2.0}, {"shape", Ints{7}}, {"type", e}}));
  }
  calls.emplace_back("coin", std::vector<Value>{}, with({{"p", 0.3}, {"shape", Ints{100}}}));
  calls.emplace_back("randint", std::vector<Value>{},
                     with({{"low", int64_t{-5}}, {"high", int64_t{7}}, {"shape", Ints{100}}}));
  calls.emplace_back("uniform", std::vector<Value>{});
  Value picture(Elem::U8, {100, 70, 3});
  calls.emplace_back("random_crop_box", std::vector<Value>{picture},
                     with({{"height", int64_t{10}}, {"width", int64_t{70}}}));
  calls.emplace_back("random_resized_crop_box", std::vector<Value>{picture});
  for (Call& call : calls) {
    Value a = call.define(1), b = call.define(2);
    EXPECT_TRUE(equal(*call.native(1), a));
    EXPECT_TRUE(equal(*call.native(2), b));
    EXPECT_TRUE(equal(call.define(1), a));
    EXPECT_FALSE(a == b);
  }
  // The published definition, written out: element i is made from block i.
  PlainNumbers n;
  Value drawn = calls[0].define(9);
  for (int64_t i : {0, 1, 99}) {
    double u = unit_interval(n, philox(n, draw_key(0, 0, 5), 9, static_cast<uint64_t>(i)).first);
    EXPECT_EQ(drawn.at(i).f, -1.0 + u * 4.0);
  }
  EXPECT_THROW(Call("uniform", {}, with({{"low", 1.0}, {"high", 1.0}})), std::runtime_error);
  EXPECT_THROW(Call("coin", {}, with({{"p", 1.5}})), std::runtime_error);
  EXPECT_THROW(Call("randint", {}, with({{"low", int64_t{3}}, {"high", int64_t{3}}})), std::runtime_error);
}

TEST(Ops, DrawsHaveTheirDistribution) {
  constexpr int64_t kDraws = 20000;
  auto mean_of = [](std::string_view op, Attrs attrs) {
    attrs.set("shape", Ints{kDraws});
    Value v = *Call(op, {}, attrs).native();
    double sum = 0;
    for (int64_t i = 0; i < kDraws; ++i) sum += is_float(v.elem()) ? v.at(i).f : static_cast<double>(v.at(i).i);
    return sum / kDraws;
  };
  EXPECT_NEAR(mean_of("uniform", with({{"low", 2.0}, {"high", 4.0}})), 3, 0.02);
  EXPECT_NEAR(mean_of("normal", with({{"mean", 5.0}, {"deviation", 2.0}})), 5, 0.06);
  EXPECT_NEAR(mean_of("coin", with({{"p", 0.25}})), 0.25, 0.012);
  EXPECT_NEAR(mean_of("randint", with({{"low", int64_t{0}}, {"high", int64_t{6}}})), 2.5, 0.05);
}

TEST(Ops, RandomBoxesFitAndAreSpread) {
  Value picture(Elem::U8, {300, 400, 3});
  Call crop("random_crop_box", {picture}, with({{"height", int64_t{299}}, {"width", int64_t{399}}}));
  int places[2][2] = {};
  Call resized("random_resized_crop_box", {picture});
  double area = 0, log_ratio = 0;
  constexpr int kDraws = 4000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    Value b = crop.define(i);
    ++places[b.at(0).i][b.at(1).i];
    Value r = *resized.native(i);
    double h = double(r.at(2).i), w = double(r.at(3).i);
    ASSERT_TRUE(r.at(0).i >= 0 && r.at(1).i >= 0 && r.at(0).i + r.at(2).i <= 300 && r.at(1).i + r.at(3).i <= 400);
    ASSERT_GT(w / h, 0.72);
    ASSERT_LT(w / h, 1.38);
    ASSERT_GT(h * w / 120000, 0.079);
    area += h * w / 120000;
    log_ratio += std::log(w / h);
  }
  for (auto& row : places)
    for (int count : row) EXPECT_NEAR(count, kDraws / 4, 120);
  // Found by running torchvision's algorithm on Python's generator (100,000 draws): 0.4324 and 0.0312.
  EXPECT_NEAR(area / kDraws, 0.4324, 0.013);
  EXPECT_NEAR(log_ratio / kDraws, 0.0312, 0.01);
  Call small("random_crop_box", {picture}, with({{"height", int64_t{301}}, {"width", int64_t{4}}}));
  EXPECT_EQ(why(small.define()), "a box of 301 x 4 does not fit into the picture of 300 x 400");
  EXPECT_FALSE(small.native());
  // A strip that no allowed ratio fits into: the largest central box.
  Call strip("random_resized_crop_box", {Value(Elem::U8, {10, 1000, 3})}, with({{"scale", Numbers{1, 1}}}));
  EXPECT_TRUE(equal(strip.define(), box(0, 493, 10, 13)));
}

// ---- pictures
// ----------------------------------------------------------------------------------------------------------------

// 96 x 80 pixels of made-up gradients, 4:2:0.
std::string test_picture() {
  std::ifstream in(ZEPHON_SOURCE_DIR "/tests/data/pattern.jpg", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Ops, DecodeImageAndItsForms) {
  std::string bytes = test_picture();
  ASSERT_FALSE(bytes.empty());
  for (const char* mode : {"rgb", "gray"}) {
    Attrs attrs = with({{"mode", std::string(mode)}});
    Call decode("decode_image", {text(bytes, Elem::Bytes)}, attrs);
    Value whole = decode.define();
    EXPECT_TRUE(equal(*decode.native(), whole));
    EXPECT_EQ(whole.shape()[2], mode == std::string("rgb") ? 3 : 1);
    Value b = box(5, 7, 11, 13);
    Call region("decode_image_region", {text(bytes, Elem::Bytes), b}, attrs);
    Value cropped = one("crop", {whole, b});
    EXPECT_TRUE(equal(region.define(), cropped));
    EXPECT_TRUE(equal(*region.native(), cropped));
    Value shape = Call("decode_image_shape", {text(bytes, Elem::Bytes)}, attrs).define();
    EXPECT_EQ(shape.shape(), whole.shape());
    EXPECT_TRUE(shape.element_failed(0));
    EXPECT_FALSE(shape.whole_failed());
  }
  Call few("decode_image", {text(bytes, Elem::Bytes)}, with({{"max_pixels", int64_t{10}}}));
  EXPECT_NE(why(few.define()).find("pixels are more than `max_pixels`, 10"), std::string::npos) << why(few.define());
  EXPECT_FALSE(few.native());
  Call png("decode_image", {text("\x89PNG\r\n\x1a\n0000", Elem::Bytes)});
  EXPECT_EQ(why(png.define()), "not a JPEG: PNG signature");
  EXPECT_FALSE(png.native());
}

TEST(Ops, ADamagedPictureIsGoodDownToTheDamage) {
  std::string bytes = test_picture();
  bytes.resize(bytes.size() * 7 / 10);
  Call decode("decode_image", {text(bytes, Elem::Bytes)});
  Value picture = decode.define();
  ASSERT_TRUE(picture.any_failed());
  ASSERT_FALSE(picture.element_failed(0));
  int64_t row = picture.shape()[1] * 3, good = 0;
  while (!picture.element_failed(good * row)) ++good;
  EXPECT_GT(good, 8);
  EXPECT_EQ(why(picture), fmt::format("Corrupt JPEG data: premature end of data segment; good down to row {}", good));
  EXPECT_FALSE(decode.native());
  Call above("decode_image_region", {text(bytes, Elem::Bytes), box(good - 4, 2, 4, 9)});
  EXPECT_TRUE(equal(*above.native(), one("crop", {picture, box(good - 4, 2, 4, 9)})));
  Call below("decode_image_region", {text(bytes, Elem::Bytes), box(good - 4, 2, 5, 9)});
  EXPECT_FALSE(below.native());
  EXPECT_TRUE(below.define().any_failed());
  EXPECT_TRUE(Call("decode_image", {text(bytes, Elem::Bytes)}, with({{"check", std::string("whole")}}))
                  .define()
                  .element_failed(0));
}

TEST(Ops, ResizeByDefinitionEqualsItsKernel) {
  for (Elem elem : {Elem::U8, Elem::F32}) {
    for (auto [h, w, c, oh, ow] :
         {std::array<int64_t, 5>{20, 31, 3, 7, 40}, {5, 4, 1, 5, 4}, {9, 17, 2, 30, 3}, {1, 1, 3, 2, 2}}) {
      Value x(elem, {h, w, c});
      uint64_t state = 3;
      for (int64_t i = 0; i < x.size(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double v = static_cast<double>(state >> 56);
        x.set(i, elem == Elem::U8 ? Scalar::of_int(elem, static_cast<int64_t>(v))
                                  : Scalar::of_float(elem, round_to(elem, v * 0.37 - 11)));
      }
      Call call("resize", {x}, with({{"height", oh}, {"width", ow}}));
      EXPECT_TRUE(call.define() == *call.native()) << h << ' ' << w << ' ' << c << ' ' << oh << ' ' << ow;
    }
  }
  EXPECT_THROW(Call("resize", {Value(Elem::I32, {2, 2, 1})}, with({{"height", int64_t{1}}, {"width", int64_t{1}}})),
               std::runtime_error);
  // A failed pixel fails what it is part of, and nothing else.
  Value x(Elem::U8, {4, 8, 1});
  x.fail_element(0, {"R0420", "bad", {}});
  Value half = one("resize", {x}, with({{"height", int64_t{2}}, {"width", int64_t{4}}}));
  EXPECT_TRUE(half.element_failed(0));
  EXPECT_FALSE(half.element_failed(half.size() - 1));
  EXPECT_FALSE(half.element_failed(3));
}

TEST(Ops, ToUnit) {
  EXPECT_TRUE(
      equal(one("to_unit", {tensor(Elem::U8, {3}, {0, 51, 255})}), tensor(Elem::F32, {3}, {0, 51.0f / 255.0f, 1})));
  EXPECT_TRUE(equal(one("to_unit", {number(Elem::U16, 65535)}), number(Elem::F32, 1)));
  EXPECT_TRUE(equal(one("to_unit", {number(Elem::F64, 0.1)}), number(Elem::F32, 0.1)));
}

}  // namespace
}  // namespace zephon
