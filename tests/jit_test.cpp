// Compiled kernels against `.define`: the same bits, and failure exactly where the definition fails.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "runtime/kernels/kernel_cache.h"
#include "runtime/kernels/kernel_compiler.h"
#include "runtime/kernels/kernel_group.h"
#include "runtime/reference/sample_evaluator.h"
#include "tests/sample_graph.h"

namespace zephon {
namespace {

/// A folder of the test's own, removed afterwards.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base ? base : "/tmp") + "/zephon_jit_XXXXXX";
    if (!mkdtemp(path_.data())) std::abort();
  }
  ~Folder() {
    for (const std::string& name : files()) unlink((path_ + "/" + name).c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    if (DIR* dir = opendir(path_.c_str())) {
      while (dirent* item = readdir(dir))
        if (item->d_name[0] != '.') out.emplace_back(item->d_name);
      closedir(dir);
    }
    return out;
  }

 private:
  std::string path_;
};

/// The processors that code is made for here: the host, and those below it that it can stand in for. One after the
/// other, as to compile everything for each of them takes its time.
std::string next_cpu() {
  static size_t turn = 0;
  std::vector<std::string> all{"", "x86-64"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.emplace_back("avx2");
  return all[turn++ % all.size()];
}

CachingCompiler& compiler(const std::string& cpu = "") {
  static std::map<std::string, std::unique_ptr<CachingCompiler>> made;
  std::unique_ptr<CachingCompiler>& c = made[cpu];
  if (!c) c = make_kernel_compiler({.cpu = cpu, .cache_dir = {}, .use_cache = false});
  return *c;
}

/// One sample's expressions with the values of its fields.
class Sample1 : public SampleGraph {
 public:
  std::vector<Value> values;

  ExprId field(Value value, std::vector<Dim> shape) {
    values.push_back(std::move(value));
    return add(fmt::format("f{}", fields.size()), Type::tensor(values.back().elem(), std::move(shape)));
  }
  ExprId fixed(Value value) {
    std::vector<Dim> shape;
    for (int64_t e : value.shape()) shape.push_back(Dim::of(e));
    return field(std::move(value), std::move(shape));
  }
  ExprId open(Value value) {  // extents known at run time only
    std::vector<Dim> shape(value.shape().size());
    return field(std::move(value), std::move(shape));
  }
  ExprId cast(ExprId x, Elem to) { return call("cast", {x}, attrs_of({{"to", to}})); }

  Value reference(ExprId id) {
    DataConstants constants(graph, ".");
    EpochContext epoch;
    auto lookup = [&](const std::string& name) { return values[std::stoul(name.substr(1))]; };
    return SampleEvaluator(graph, constants, lookup, 0, epoch).evaluate(id);
  }
};

TensorRef ref_of(Value& value) {
  TensorRef ref;
  ref.data = value.mutable_bytes().data();
  ref.rank = static_cast<int32_t>(value.rank());
  ref.elem = value.elem();
  std::copy(value.shape().begin(), value.shape().end(), ref.shape);
  return ref;
}

bool same_element(const Scalar& a, const Scalar& b) {
  if (!is_float(a.elem)) return a.i == b.i;
  if (std::isnan(a.f) && std::isnan(b.f)) return true;  // NaNs are made canonical where they are delivered
  return std::bit_cast<uint64_t>(a.f) == std::bit_cast<uint64_t>(b.f);
}

std::string show(const Scalar& s) { return is_float(s.elem) ? fmt::format("{:a}", s.f) : fmt::format("{}", s.i); }

/// Runs `root` compiled for `cpu`, through the caches and past them, to places near and far from the start of a line;
/// `shape` is that of the result.
struct Outcome {
  Value value;
  bool failed = false;
};
Outcome run_kernel(Sample1& s, ExprId root, const std::vector<int64_t>& shape, const std::string& cpu = "") {
  KernelGroup group{KernelGroup::Kind::PerSample, {root}, s.fields};
  std::string error;
  auto kernel = compiler(cpu).compile(s.graph, group, error);
  if (!kernel) throw std::runtime_error(error);
  std::vector<TensorRef> inputs;
  for (Value& v : s.values) inputs.push_back(ref_of(v));
  Outcome out{Value(s.graph.expr(root).type.elem, shape)};
  // What lies around the result must stay as it was.
  static size_t turn = 0;
  const size_t bytes = out.value.bytes().size(), size = elem_size(out.value.elem());
  const size_t lead = turn++ % (64 / size) * size;
  std::vector<uint8_t> guarded(bytes + 192);
  const size_t start = 64 - reinterpret_cast<uintptr_t>(guarded.data()) % 64 + lead;
  uint8_t failed[2] = {0, 0};
  for (const bool stream : {false, true}) {
    guarded.assign(guarded.size(), 0xa5);
    TensorRef output = ref_of(out.value);
    output.data = guarded.data() + start;
    KernelCall call{1, inputs.data(), &output, &failed[stream], nullptr, stream};
    std::vector<uint8_t> scratch(kernel->scratch_bytes(call) + 64);
    call.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
    kernel->run(call);
    for (size_t i = 0; i < guarded.size(); ++i)
      if (guarded[i] != 0xa5 && (i < start || i >= start + bytes))
        throw std::runtime_error("wrote outside of the result");
    if (bytes == 0) continue;
    if (stream && !failed[0] && std::memcmp(out.value.bytes().data(), output.data, bytes) != 0)
      throw std::runtime_error("other bytes past the caches than through them");
    if (!stream) std::memcpy(out.value.mutable_bytes().data(), output.data, bytes);
  }
  if (failed[0] != failed[1]) throw std::runtime_error("fails only past the caches, or only through them");
  out.failed = failed[0] != 0;
  return out;
}

/// The compiled value equals the definition's, or both fail.
void expect_same(Sample1& s, ExprId root, const std::vector<int64_t>& shape_if_failed = {}) {
  Value wanted = s.reference(root);
  const std::vector<int64_t>& shape = wanted.whole_failed() ? shape_if_failed : wanted.shape();
  const std::string cpu = next_cpu();
  SCOPED_TRACE(to_text(s.graph, root) + " on " + (cpu.empty() ? "host" : cpu));
  Outcome got = run_kernel(s, root, shape, cpu);
  ASSERT_EQ(got.failed, wanted.any_failed()) << (wanted.any_failed() ? wanted.failure()->message : "");
  for (int64_t i = 0; i < wanted.size() && !got.failed; ++i)
    ASSERT_TRUE(same_element(got.value.at(i), wanted.at(i)))
        << "element " << i << " is " << show(got.value.at(i)) << ", wanted " << show(wanted.at(i));
}

std::vector<Scalar> edge_values(Elem elem) {
  std::vector<Scalar> out;
  if (elem == Elem::Bool) return {Scalar::of_bool(false), Scalar::of_bool(true)};
  if (is_integer(elem)) {
    int64_t bits = static_cast<int64_t>(elem_size(elem)) * 8;
    bool is_signed = elem != Elem::U8 && elem != Elem::U16;
    int64_t greatest = is_signed ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) : (int64_t{1} << bits) - 1;
    int64_t least = is_signed ? -greatest - 1 : 0;
    for (int64_t v : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{100}, greatest, greatest - 1,
                      greatest / 2, least, least + 1, least / 2})
      out.push_back(Scalar::of_int(elem, v));
    if (is_signed)
      for (int64_t v : {-1, -2, -7}) out.push_back(Scalar::of_int(elem, v));
    if (elem == Elem::I64)
      for (int64_t v : {int64_t{1} << 53, (int64_t{1} << 53) + 1, (int64_t{1} << 62) + (int64_t{1} << 54) + 1,
                        int64_t{65520}, int64_t{16777217}})
        out.push_back(Scalar::of_int(elem, v));
    return out;
  }
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (double v : {0.0,
                   -0.0,
                   1.0,
                   -1.0,
                   0.5,
                   -0.5,
                   1.5,
                   2.5,
                   -2.5,
                   3.14159,
                   0.1,
                   255.0,
                   255.5,
                   256.0,
                   1e-40,
                   -1e-40,
                   6e-8,
                   1e-3,
                   65504.0,
                   65520.0,
                   1e5,
                   2147483647.0,
                   2147483648.0,
                   -2147483648.0,
                   -2147483649.0,
                   9223372036854775808.0,
                   -9223372036854775808.0,
                   1e10,
                   1e30,
                   -1e30,
                   3.4e38,
                   1e300,
                   700.0,
                   inf,
                   -inf,
                   std::numeric_limits<double>::quiet_NaN()})
    out.push_back(Scalar::of_float(elem, round_to(elem, v)));
  return out;
}

Value vector_of(Elem elem, const std::vector<Scalar>& items) {
  Value out(elem, {static_cast<int64_t>(items.size())});
  for (size_t i = 0; i < items.size(); ++i) out.set(static_cast<int64_t>(i), items[i]);
  return out;
}

constexpr Elem kElems[] = {Elem::Bool, Elem::U8,  Elem::U16,  Elem::I8,  Elem::I16, Elem::I32,
                           Elem::I64,  Elem::F16, Elem::BF16, Elem::F32, Elem::F64};

// ---- every elementwise operator, over edge values, in columns and in tensors
// --------------------------------------------

/// All choices of static parameters worth trying: element types and enumerations; others keep their default.
std::vector<Attrs> attr_choices(const Signature& signature) {
  std::vector<Attrs> out{{}};
  for (const Parameter& p : signature.parameters) {
    std::vector<Attr> choices;
    if (p.static_kind == StaticKind::Elem) choices.assign(std::begin(kElems), std::end(kElems));
    if (p.static_kind == StaticKind::Enum) choices.assign(p.choices.begin(), p.choices.end());
    if (p.static_kind == StaticKind::Int && !p.default_value && !p.optional) choices = {p.at_least.value_or(3)};
    if (p.static_kind == StaticKind::Numbers && !p.default_value && !p.optional)
      choices = {std::vector<double>{0, 1, 1}, std::vector<double>(256, 1)};
    if (choices.empty() && p.default_value) choices = {*p.default_value};
    if (choices.empty()) continue;
    std::vector<Attrs> wider;
    for (const Attrs& attrs : out)
      for (const Attr& choice : choices) {
        wider.push_back(attrs);
        wider.back().set(p.name, choice);
      }
    out = std::move(wider);
  }
  return out;
}

void check_pointwise(const OpDef& op, const Attrs& attrs, const std::vector<Elem>& elems, const std::string& cpu) {
  std::vector<Type> types;
  for (Elem e : elems) types.push_back(Type::scalar(e));
  std::vector<const Value*> constants(elems.size(), nullptr);
  std::string error;
  int bad = 0;
  std::optional<Type> type = unify(op, attrs, types, constants, error, bad);
  if (!type || is_string(type->elem)) return;
  // All combinations of edge values, as samples.
  std::vector<std::vector<Scalar>> columns(elems.size());
  std::vector<std::vector<Scalar>> choices;
  for (Elem e : elems) choices.push_back(edge_values(e));
  size_t total = 1;
  for (const auto& c : choices) total *= c.size();
  if (elems.size() > 2) total = std::min<size_t>(total, 5000);
  for (size_t i = 0; i < total; ++i)
    for (size_t a = 0, rest = i * (elems.size() > 2 ? 37 : 1); a < elems.size(); ++a) {
      columns[a].push_back(choices[a][rest % choices[a].size()]);
      rest /= choices[a].size();
    }
  Sample1 s;
  std::vector<ExprId> args;
  for (size_t a = 0; a < elems.size(); ++a) args.push_back(s.field(vector_of(elems[a], columns[a]), {}));
  Expr expr;
  expr.op = &op;
  expr.args = args;
  expr.attrs = attrs;
  expr.type = *type;
  ExprId root = s.graph.add(expr);
  SCOPED_TRACE(fmt::format("{} on {}", to_text(s.graph, root), cpu));
  std::vector<ScalarResult> wanted;
  for (size_t i = 0; i < total; ++i) {
    std::vector<ScalarArg> at;
    for (const auto& column : columns) at.push_back({column[i], nullptr});
    wanted.push_back(op.define.scalar(expr, at));
  }
  auto describe = [&](size_t i) {
    std::string text;
    for (const auto& column : columns)
      text += fmt::format("{}{}", elem_name(column[i].elem), "(" + show(column[i]) + ") ");
    return text;
  };
  auto kernel = [&](KernelGroup::Kind kind, const std::vector<ExprId>& roots) {
    std::string why;
    auto k = compiler(cpu).compile(s.graph, {kind, roots, s.fields}, why);
    EXPECT_TRUE(k) << why;
    return k;
  };
  std::vector<TensorRef> inputs;
  for (Value& v : s.values) inputs.push_back(ref_of(v));
  Value out(type->elem, {static_cast<int64_t>(total)});
  TensorRef output = ref_of(out);
  std::vector<uint8_t> failed(total);
  auto columnar = kernel(KernelGroup::Kind::Columnar, {root});
  if (!columnar) return;
  columnar->run({static_cast<int64_t>(total), inputs.data(), &output, failed.data(), nullptr});
  for (size_t i = 0; i < total; ++i) {
    ASSERT_EQ(failed[i] != 0, !wanted[i].ok) << describe(i) << wanted[i].message;
    if (!wanted[i].ok) continue;
    ASSERT_TRUE(same_element(out.at(static_cast<int64_t>(i)), wanted[i].value))
        << describe(i) << "is " << show(out.at(static_cast<int64_t>(i))) << ", wanted " << show(wanted[i].value);
  }
  // The same elements that do not fail, as one tensor.
  std::vector<std::vector<Scalar>> good(elems.size());
  std::vector<Scalar> results;
  for (size_t i = 0; i < total; ++i)
    if (wanted[i].ok) {
      for (size_t a = 0; a < elems.size(); ++a) good[a].push_back(columns[a][i]);
      results.push_back(wanted[i].value);
    }
  Sample1 t;
  expr.args.clear();
  auto n = static_cast<int64_t>(results.size());
  for (size_t a = 0; a < elems.size(); ++a)
    expr.args.push_back(t.field(vector_of(elems[a], good[a]), {Dim::unknown()}));
  expr.type.shape = {Dim::unknown()};
  Outcome tensor = run_kernel(t, t.graph.add(expr), {n}, cpu);
  ASSERT_FALSE(tensor.failed);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_TRUE(same_element(tensor.value.at(i), results[static_cast<size_t>(i)])) << "element " << i << " of a tensor";
}

TEST(Jit, EveryPointwiseOperatorEqualsItsDefinition) {
  int checked = 0;
  for (const OpDef* op : all_ops().all()) {
    if (op->cls != OpClass::Pointwise || !op->kernel.pointwise || !op->define.scalar) continue;
    const Signature& signature = signature_of(*op);
    std::vector<const Parameter*> dynamic;
    for (const Parameter& p : signature.parameters)
      if (p.static_kind == StaticKind::None && !p.optional) dynamic.push_back(&p);
    for (const Attrs& attrs : attr_choices(signature))
      for (Elem elem : kElems) {
        // Variables become `elem`; what the signature fixes stays.
        std::vector<Elem> elems;
        for (const Parameter* p : dynamic) elems.push_back(elem_from_name(p->pattern.elem).value_or(elem));
        if (std::any_of(elems.begin(), elems.end(), is_string)) continue;
        bool variable = false;
        for (const Parameter* p : dynamic) variable |= !elem_from_name(p->pattern.elem);
        if (!variable && elem != Elem::F32) continue;
        // The checker promotes small integers before the operator sees them.
        if (op->promotes && is_integer(elem) && elem_size(elem) < 4) continue;
        check_pointwise(*op, attrs, elems, next_cpu());
        if (::testing::Test::HasFatalFailure()) return;
        ++checked;
      }
  }
  EXPECT_GT(checked, 100);
}

// ---- shapes
// -----------------------------------------------------------------------------------------------------------

Value random_value(Elem elem, std::vector<int64_t> shape, std::mt19937_64& random) {
  Value out(elem, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) {
    if (is_float(elem)) {
      double v = std::uniform_real_distribution<double>(-2, 2)(random);
      out.set(i, Scalar::of_float(elem, round_to(elem, v)));
    } else {
      int64_t most = elem == Elem::Bool ? 1 : elem == Elem::I8 ? 127 : 255;
      out.set(i, Scalar::of_int(elem, std::uniform_int_distribution<int64_t>(0, most)(random)));
    }
  }
  return out;
}

Value numbers(Elem elem, const std::vector<double>& items) {
  Value out(elem, {static_cast<int64_t>(items.size())});
  for (size_t i = 0; i < items.size(); ++i)
    out.set(static_cast<int64_t>(i), is_float(elem) ? Scalar::of_float(elem, round_to(elem, items[i]))
                                                    : Scalar::of_int(elem, static_cast<int64_t>(items[i])));
  return out;
}

Value box_of(int64_t top, int64_t left, int64_t height, int64_t width) {
  return numbers(Elem::I64, {double(top), double(left), double(height), double(width)});
}

ExprId box_field(Sample1& s, Value box, Dim height, Dim width) {
  ExprId id = s.fixed(std::move(box));
  Expr expr = s.graph.expr(id);
  expr.type.box = {height, width};
  s.fields.back() = s.graph.add(expr);
  return s.fields.back();
}

TEST(Jit, BroadcastsAsNumPyDoes) {
  std::mt19937_64 random(1);
  const std::vector<std::vector<int64_t>> shapes = {{},     {1},       {5},       {4, 5},   {4, 1},
                                                    {1, 5}, {3, 4, 5}, {3, 1, 1}, {1, 1, 1}};
  for (const auto& a : shapes)
    for (const auto& b : shapes)
      for (bool open : {false, true}) {
        Sample1 s;
        Value x = random_value(Elem::F32, a, random), y = random_value(Elem::F32, b, random);
        ExprId first = open ? s.open(x) : s.fixed(x), second = open ? s.open(y) : s.fixed(y);
        expect_same(s, s.call("add", {first, second}));
        if (HasFatalFailure()) return;
      }
}

TEST(Jit, ShapesThatDoNotBroadcastFail) {
  std::mt19937_64 random(2);
  Sample1 s;
  ExprId a = s.open(random_value(Elem::F32, {4, 5}, random)), b = s.open(random_value(Elem::F32, {4, 6}, random));
  ExprId root = s.call("mul", {a, b});
  EXPECT_TRUE(run_kernel(s, root, {4, 5}).failed);
  EXPECT_TRUE(run_kernel(s, root, {4, 6}).failed);
}

TEST(Jit, ViewsReadWhereTheDefinitionReads) {
  std::mt19937_64 random(3);
  for (bool open : {false, true}) {
    auto picture = [&](Sample1& s, std::vector<int64_t> shape) {
      Value v = random_value(Elem::U8, std::move(shape), random);
      return open ? s.open(std::move(v)) : s.fixed(std::move(v));
    };
    for (bool turn : {false, true})
      for (const char* direction : {"horizontal", "vertical"}) {
        Sample1 s;
        ExprId image = picture(s, {6, 37, 3});
        ExprId flag = s.fixed(Value::scalar(Scalar::of_bool(turn)));
        ExprId flipped = s.call("flip", {image, flag}, attrs_of({{"direction", std::string(direction)}}));
        expect_same(s, flipped);
        expect_same(
            s, s.call("transpose", {s.cast(flipped, Elem::F32)}, attrs_of({{"order", std::vector<int64_t>{2, 0, 1}}})));
        if (HasFatalFailure()) return;
      }
    for (auto box :
         {box_of(0, 0, 6, 37), box_of(2, 5, 3, 20), box_of(5, 36, 1, 1), box_of(2, 5, 5, 20), box_of(-1, 0, 2, 2)}) {
      Sample1 s;
      ExprId image = picture(s, {6, 37, 3});
      Dim height = open ? Dim::unknown() : Dim::of(box.at(2).i), width = open ? Dim::unknown() : Dim::of(box.at(3).i);
      ExprId cut = s.call("crop", {image, box_field(s, box, height, width)});
      expect_same(s, cut, {box.at(2).i, box.at(3).i, 3});
      expect_same(s, s.cast(cut, Elem::F32), {box.at(2).i, box.at(3).i, 3});
      if (HasFatalFailure()) return;
    }
    for (int64_t i : {0, 3, 5, -1, -6, 6, -7}) {
      Sample1 s;
      ExprId image = picture(s, {6, 37, 3});
      ExprId at = s.fixed(Value::scalar(Scalar::of_int(Elem::I64, i)));
      expect_same(s, s.call("index", {image, at}), {37, 3});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Jit, EmptyTensorsAreFine) {
  std::mt19937_64 random(4);
  for (bool open : {false, true}) {
    Sample1 s;
    Value none(Elem::F32, {0, 7});
    ExprId x = open ? s.open(none) : s.fixed(none);
    expect_same(s, s.call("mul", {x, s.number(Elem::F32, 3)}));
    expect_same(s, s.call("sum", {x}));
    expect_same(s, s.call("sum", {x}, attrs_of({{"axes", std::vector<int64_t>{0}}})));
  }
}

// ---- reductions
// -------------------------------------------------------------------------------------------------------

TEST(Jit, ReductionsRunInSixteenLanes) {
  std::mt19937_64 random(5);
  for (const char* name : {"sum", "mean", "min", "max"})
    for (Elem elem : {Elem::F32, Elem::F64, Elem::F16, Elem::I32, Elem::I64})
      for (int64_t n : {1, 2, 7, 15, 16, 17, 31, 33, 100, 1000}) {
        Sample1 s;
        expect_same(s, s.call(name, {s.open(random_value(elem, {n}, random))}));
        if (HasFatalFailure()) return;
      }
}

TEST(Jit, ReductionsOverAnyAxes) {
  std::mt19937_64 random(6);
  const std::vector<std::vector<int64_t>> axes = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}, {-1}};
  for (const auto& over : axes)
    for (bool open : {false, true})
      for (const char* name : {"sum", "mean", "max"}) {
        Sample1 s;
        Value v = random_value(Elem::F32, {5, 23, 3}, random);
        ExprId x = open ? s.open(v) : s.fixed(v);
        ExprId reduced = s.call(name, {s.call("mul", {x, x})}, attrs_of({{"axes", over}}));
        expect_same(s, reduced);
        // Used elementwise, and reduced again.
        expect_same(s, s.call("sum", {s.call("add", {reduced, s.number(Elem::F32, 0.25)})}));
        if (HasFatalFailure()) return;
      }
}

TEST(Jit, SumsThatOverflowFail) {
  Sample1 s;
  Value big(Elem::I32, {40});
  for (int64_t i = 0; i < 40; ++i) big.set(i, Scalar::of_int(Elem::I32, 2000000000));
  expect_same(s, s.call("sum", {s.fixed(big)}));
}

TEST(Jit, FlagsReduce) {
  for (int64_t n : {1, 16, 50})
    for (int64_t hot : {int64_t{-1}, int64_t{0}, n - 1}) {
      Sample1 s;
      Value v(Elem::Bool, {n});
      if (hot >= 0) v.set(hot, Scalar::of_bool(true));
      ExprId x = s.open(v);
      expect_same(s, s.call("any", {x}));
      expect_same(s, s.call("all", {s.call("not", {x})}));
    }
}

TEST(Jit, StandardisesAPictureByItsOwnMean) {
  std::mt19937_64 random(7);
  Sample1 s;
  ExprId x = s.cast(s.open(random_value(Elem::U8, {9, 31, 3}, random)), Elem::F32);
  ExprId centred = s.call("sub", {x, s.call("mean", {x}, attrs_of({{"axes", std::vector<int64_t>{0, 1}}}))});
  expect_same(s, s.call("div", {centred, s.call("sqrt", {s.call("mean", {s.call("mul", {centred, centred})})})}));
}

// ---- pictures
// -----------------------------------------------------------------------------------------------------------

ExprId normalized(Sample1& s, ExprId image, const std::vector<double>& mean, const std::vector<double>& deviation) {
  ExprId unit = s.call("div", {s.cast(image, Elem::F32), s.number(Elem::F32, 255)});
  ExprId centred = s.call("sub", {unit, s.constant(numbers(Elem::F32, mean))});
  return s.call("div", {centred, s.constant(numbers(Elem::F32, deviation))});
}

ExprId to_chw(Sample1& s, ExprId image) {
  return s.call("transpose", {image}, attrs_of({{"order", std::vector<int64_t>{2, 0, 1}}}));
}

TEST(Jit, CropFlipNormalizeToChw) {
  std::mt19937_64 random(8);
  for (bool turn : {false, true})
    for (int64_t width : {1, 5, 64, 100}) {
      Sample1 s;
      ExprId image =
          s.field(random_value(Elem::U8, {40, 120, 3}, random), {Dim::unknown(), Dim::unknown(), Dim::of(3)});
      ExprId cut = s.call("crop", {image, box_field(s, box_of(3, 7, 20, width), Dim::of(20), Dim::of(width))});
      ExprId flipped = s.call("flip", {cut, s.fixed(Value::scalar(Scalar::of_bool(turn)))});
      expect_same(s, to_chw(s, normalized(s, flipped, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})));
      if (HasFatalFailure()) return;
    }
}

// Constants for which the cheaper forms of division do and do not hold.
/// Rows of channels side by side and of channels together, longer than the buffers, and of one long loop.
TEST(Jit, LargeResultsGoPastTheCaches) {
  for (int64_t width : {64, 333, 9001}) {
    Sample1 s;
    Value picture(Elem::U8, {5, width, 3});
    for (int64_t i = 0; i < picture.size(); ++i) picture.set(i, Scalar::of_int(Elem::U8, i * 37 % 251));
    ExprId x = s.cast(s.open(picture), Elem::F32);
    ExprId chw = s.call("transpose", {x}, attrs_of({{"order", std::vector<int64_t>{2, 0, 1}}}));
    expect_same(s, chw);
    expect_same(
        s, s.call("mul",
                  {x, s.constant(vector_of(Elem::F32, {Scalar::of_float(Elem::F32, 2), Scalar::of_float(Elem::F32, 3),
                                                       Scalar::of_float(Elem::F32, 4)}))}));
    expect_same(s, s.call("mul", {x, x}));
    expect_same(s, s.cast(x, Elem::F16));
  }
  Sample1 s;
  ExprId x = s.fixed(vector_of(Elem::F32, std::vector<Scalar>(20000, Scalar::of_float(Elem::F32, 3))));
  KernelGroup group{KernelGroup::Kind::PerSample, {s.call("mul", {x, x})}, s.fields};
  EXPECT_NE(compiler().listing(s.graph, group).llvm_ir.find("!nontemporal"), std::string::npos);
  // Rows that begin with a line: the loop itself stores past the caches, once for each channel.
  Sample1 rows;
  Value photo(Elem::U8, {64, 224, 3});
  ExprId planes = rows.call("transpose", {rows.cast(rows.fixed(photo), Elem::F32)},
                            attrs_of({{"order", std::vector<int64_t>{2, 0, 1}}}));
  group = {KernelGroup::Kind::PerSample, {planes}, rows.fields};
  std::istringstream ir(compiler().listing(rows.graph, group).llvm_ir);
  int direct = 0;
  for (std::string line; std::getline(ir, line);)
    direct += line.find("!alias.scope") != line.npos && line.find("!nontemporal") != line.npos;
  EXPECT_GE(direct, 3) << ir.str();
  Sample1 small;
  ExprId y = small.fixed(vector_of(Elem::F32, std::vector<Scalar>(2000, Scalar::of_float(Elem::F32, 3))));
  group = {KernelGroup::Kind::PerSample, {small.call("mul", {y, y})}, small.fields};
  EXPECT_EQ(compiler().listing(small.graph, group).llvm_ir.find("!nontemporal"), std::string::npos);
}

TEST(Jit, QuotientsOfBytesAreExactForAnyConstant) {
  std::mt19937_64 random(9);
  Value bytes(Elem::U8, {256});
  for (int64_t i = 0; i < 256; ++i) bytes.set(i, Scalar::of_int(Elem::U8, i));
  for (int round = 0; round < 60; ++round)
    for (Elem elem : {Elem::F32, Elem::F64}) {
      double divisor = std::ldexp(std::uniform_real_distribution<double>(0.5, 1)(random), round - 30);
      Sample1 s;
      ExprId x = s.cast(s.fixed(bytes), elem);
      ExprId shifted = s.call("sub", {s.call("div", {x, s.number(elem, 255)}), s.number(elem, 0.31)});
      expect_same(s, s.call("div", {shifted, s.number(elem, round % 7 == 0 ? std::floor(divisor) : divisor)}));
      if (HasFatalFailure()) return;
    }
}

TEST(Jit, DearFunctionsOfBytesAreTables) {
  Value bytes(Elem::U8, {256});
  for (int64_t i = 0; i < 256; ++i) bytes.set(i, Scalar::of_int(Elem::U8, i));
  for (Elem elem : {Elem::F16, Elem::BF16, Elem::F32, Elem::F64}) {
    Sample1 s;
    ExprId unit = s.call("div", {s.cast(s.fixed(bytes), elem), s.number(elem, 255)});
    ExprId root = s.call("exp", {unit});
    expect_same(s, root);
    KernelListing listing = compiler().listing(s.graph, {KernelGroup::Kind::PerSample, {root}, s.fields});
    EXPECT_NE(listing.loop_nest.find("table"), std::string::npos) << listing.loop_nest;
  }
}

TEST(Jit, ResampleFusesWithWhatStandsAround) {
  std::mt19937_64 random(10);
  for (Elem elem : {Elem::U8, Elem::F32})
    for (auto [in_h, in_w, out_h, out_w] :
         {std::array<int64_t, 4>{40, 50, 17, 23}, {9, 9, 20, 31}, {33, 70, 33, 20}, {1, 1, 4, 4}})
      for (int shape = 0; shape < 4; ++shape) {
        Sample1 s;
        ExprId image =
            s.field(random_value(elem, {in_h, in_w, 3}, random), {Dim::unknown(), Dim::unknown(), Dim::of(3)});
        ExprId turn = s.fixed(Value::scalar(Scalar::of_bool(shape % 2 == 1)));
        ExprId source = image;
        // 0, 1: the picture itself; 2: a part of it in place; 3: its mirror image, copied
        if (shape == 2) {
          int64_t h = (in_h + 1) / 2, w = (in_w + 1) / 2;
          source =
              s.call("crop", {image, box_field(s, box_of(in_h - h, in_w - w, h, w), Dim::unknown(), Dim::unknown())});
        }
        if (shape == 3) source = s.call("flip", {image, turn});
        ExprId resized = s.call("resize", {source}, attrs_of({{"height", out_h}, {"width", out_w}}));
        expect_same(s, resized);
        ExprId flipped = s.call("flip", {resized, turn});
        expect_same(s, to_chw(s, normalized(s, flipped, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})));
        expect_same(s, s.call("mean", {s.cast(resized, Elem::F64)}));
        if (HasFatalFailure()) return;
      }
}

// ---- columns
// ------------------------------------------------------------------------------------------------------------

// `small`: all inputs in [0, 2^28), for which columns have loops of their own; else some overflow.
void check_columns(bool small) {
  Sample1 s;
  const int64_t n = 1000;
  std::vector<Scalar> as, bs;
  for (int64_t i = 0; i < n; ++i) {
    int64_t wide = i % 11 == 0 ? INT64_MAX - i : i - 500;
    as.push_back(Scalar::of_int(Elem::I64, small ? i * 250000 : wide));
    bs.push_back(Scalar::of_int(Elem::I64, small ? i % 4 : i % 7 - 3));
  }
  ExprId a = s.field(vector_of(Elem::I64, as), {}), b = s.field(vector_of(Elem::I64, bs), {});
  ExprId triple = s.call("mul", {a, s.number(Elem::I64, 3)});
  ExprId rest = s.call("mod", {triple, b});
  ExprId keep = s.call("ne", {rest, s.number(Elem::I64, 1)});
  ExprId picked = s.call("index", {s.constant(numbers(Elem::F32, {1.5, 2.5, 3.5})), b});
  std::vector<ExprId> roots{triple, rest, keep, picked};
  std::string error;
  auto kernel = compiler().compile(s.graph, {KernelGroup::Kind::Columnar, roots, s.fields}, error);
  ASSERT_TRUE(kernel) << error;
  std::vector<TensorRef> inputs, outputs;
  for (Value& v : s.values) inputs.push_back(ref_of(v));
  std::vector<Value> out;
  for (ExprId root : roots) out.emplace_back(s.graph.expr(root).type.elem, std::vector<int64_t>{n});
  for (Value& v : out) outputs.push_back(ref_of(v));
  std::vector<uint8_t> failed(static_cast<size_t>(n), 0);
  failed[5] = 1;  // stays as it was
  kernel->run({n, inputs.data(), outputs.data(), failed.data(), nullptr});
  EXPECT_EQ(failed[5], 1);
  int failures = 0;
  for (int64_t i = 0; i < n; ++i) {
    Sample1 one = s;
    one.values = {Value::scalar(as[static_cast<size_t>(i)]), Value::scalar(bs[static_cast<size_t>(i)])};
    bool wanted_failed = i == 5;
    for (size_t r = 0; r < roots.size(); ++r) {
      Value wanted = one.reference(roots[r]);
      wanted_failed |= wanted.any_failed();
      if (!wanted.any_failed()) {
        EXPECT_TRUE(same_element(out[r].at(i), wanted.at(0))) << i << " " << r;
      }
    }
    EXPECT_EQ(failed[static_cast<size_t>(i)] != 0, wanted_failed) << i;
    failures += wanted_failed;
  }
  EXPECT_GT(failures, 10);
  EXPECT_LT(failures, n - 10);
}

TEST(Jit, ColumnsComputeSeveralResultsAndMarkTheirFailures) {
  check_columns(false);
  check_columns(true);
}

TEST(Jit, KnownRangesRemoveChecks) {
  Sample1 s;
  Expr field = s.graph.expr(s.field(vector_of(Elem::I64, {Scalar::of_int(Elem::I64, 5)}), {}));
  field.attrs.set("lo", int64_t{0});
  field.attrs.set("hi", int64_t{49'999'999});
  s.fields = {s.graph.add(field)};
  ExprId x = s.call("add", {s.call("mul", {s.fields[0], s.number(Elem::I64, 3)}), s.number(Elem::I64, 1)});
  ExprId p = s.call("ne", {s.call("mod", {x, s.number(Elem::I64, 7)}), s.number(Elem::I64, 0)});
  KernelListing bounded = compiler().listing(s.graph, {KernelGroup::Kind::Columnar, {x, p}, s.fields});
  EXPECT_EQ(bounded.loop_nest.find("fail"), std::string::npos) << bounded.loop_nest;
  EXPECT_NE(bounded.llvm_ir.find("x i64>"), std::string::npos) << "not vectorised: " << bounded.llvm_ir;
}

TEST(Jit, ListsWhatItMade) {
  Sample1 s;
  ExprId root = s.call("add", {s.open(Value(Elem::F32, {3})), s.number(Elem::F32, 1)});
  KernelListing listing = compiler().listing(s.graph, {KernelGroup::Kind::PerSample, {root}, s.fields});
  EXPECT_NE(listing.loop_nest.find("for i0 < in0.0:\n  out0[i0] = (in0[i0] + 1)\n"), std::string::npos)
      << listing.loop_nest;
  EXPECT_NE(listing.llvm_ir.find("define"), std::string::npos);
  EXPECT_NE(listing.assembly.find("run:"), std::string::npos);
}

// ---- the cache
// ------------------------------------------------------------------------------------------------------------

struct CacheRun {
  KernelCompiler::Stats stats;
  std::string warning;
  bool right = false;
};
CacheRun compile_with(const std::string& dir, double addend = 1) {
  Sample1 s;
  ExprId root = s.call("add", {s.open(numbers(Elem::F32, {1, 2, 3})), s.number(Elem::F32, addend)});
  auto c = make_kernel_compiler({.cpu = {}, .cache_dir = dir, .use_cache = true});
  std::string error;
  auto kernel = c->compile(s.graph, {KernelGroup::Kind::PerSample, {root}, s.fields}, error);
  CacheRun out{c->stats(), c->warning()};
  if (!kernel) return out;
  std::vector<TensorRef> inputs{ref_of(s.values[0])};
  float result[3] = {};
  TensorRef output{result, {3}, 1, Elem::F32};
  uint8_t failed = 0;
  kernel->run({1, inputs.data(), &output, &failed, nullptr});
  out.right = !failed && result[0] == 1 + addend && result[2] == 3 + addend;
  return out;
}

TEST(JitCache, SecondRunNeedsNoCompilation) {
  Folder folder;
  std::string dir = folder.path() + "/";
  dir.pop_back();
  chmod(dir.c_str(), 0700);
  CacheRun first = compile_with(dir);
  EXPECT_EQ(first.warning, "");
  EXPECT_EQ(first.stats.compiled, 1);
  EXPECT_TRUE(first.right);
  CacheRun second = compile_with(dir);
  EXPECT_EQ(second.stats.from_cache, 1);
  EXPECT_EQ(second.stats.compiled, 0);
  EXPECT_TRUE(second.right);
  CacheRun other = compile_with(dir, 2);
  EXPECT_EQ(other.stats.compiled, 1);
  EXPECT_TRUE(other.right);
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(JitCache, DamagedEntriesAreMadeAgain) {
  Folder folder;
  compile_with(folder.path());
  ASSERT_EQ(folder.files().size(), 1u);
  std::string path = folder.path() + "/" + folder.files()[0];
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (size_t step = 0; step < good.size(); step += good.size() / 23 + 1) {
    std::string bad = good;
    bad[step] = static_cast<char>(bad[step] ^ 0x40);
    for (const std::string& text : {bad, good.substr(0, step)}) {
      std::ofstream(path, std::ios::binary) << text;
      CacheRun run = compile_with(folder.path());
      EXPECT_EQ(run.stats.compiled, 1) << step;
      EXPECT_TRUE(run.right);
    }
  }
  EXPECT_EQ(compile_with(folder.path()).stats.from_cache, 1);
}

TEST(JitCache, KeysAreComparedInFull) {
  Folder folder;
  KernelCache cache(folder.path());
  ASSERT_TRUE(cache.usable()) << cache.warning();
  CodeImage image;
  image.bytes = {0xc3};
  image.imports = {{"fmaf", 8}};
  cache.store("one", image);
  ASSERT_TRUE(cache.find("one"));
  EXPECT_EQ(cache.find("one")->bytes, image.bytes);
  EXPECT_EQ(cache.find("one")->imports[0].name, "fmaf");
  EXPECT_FALSE(cache.find("two"));
  ASSERT_EQ(rename(cache.path_of("one").c_str(), cache.path_of("two").c_str()), 0);
  EXPECT_FALSE(cache.find("two"));
}

TEST(JitCache, IsNotUsedWhereOthersMayWrite) {
  Folder folder;
  chmod(folder.path().c_str(), 0755);
  CacheRun run = compile_with(folder.path());
  EXPECT_NE(run.warning.find("others may enter"), std::string::npos) << run.warning;
  EXPECT_TRUE(run.right);
  EXPECT_TRUE(folder.files().empty());
  if (geteuid() == 0) {
    chmod(folder.path().c_str(), 0700);
    ASSERT_EQ(chown(folder.path().c_str(), 12345, 12345), 0);
    run = compile_with(folder.path());
    EXPECT_NE(run.warning.find("another user"), std::string::npos) << run.warning;
    EXPECT_TRUE(folder.files().empty());
  }
  EXPECT_NE(compile_with("/proc/none/cache").warning.find("cannot make"), std::string::npos);
}

TEST(JitCache, StaysWithinItsBound) {
  Folder folder;
  KernelCache cache(folder.path(), 10000);
  CodeImage image;
  image.bytes.assign(1000, 0xc3);
  for (int i = 0; i < 50; ++i) cache.store(fmt::format("key {}", i), image);
  uint64_t total = 0;
  for (const std::string& name : folder.files()) {
    struct stat info {};
    stat((folder.path() + "/" + name).c_str(), &info);
    total += static_cast<uint64_t>(info.st_size);
  }
  EXPECT_LE(total, 12000u);
  EXPECT_TRUE(cache.find("key 49"));
}

// ---- random expressions
// -----------------------------------------------------------------------------------------------

/// Grows typed expressions over u8 pictures, f32 tensors and scalars.
class RandomExpression {
 public:
  RandomExpression(Sample1& s, std::mt19937_64& random) : s_(s), random_(random) {}

  ExprId tensor(int depth) {
    if (depth == 0) return leaf();
    ExprId x = tensor(depth - 1);
    Elem elem = s_.graph.expr(x).type.elem;
    switch (pick(is_float(elem) ? 9 : 4)) {
      case 0:
        return s_.call("flip", {x, flag()});
      case 1:
        return elem == Elem::I32 ? s_.call("add", {x, small(elem)}) : s_.cast(x, Elem::F32);
      case 2:
        return s_.cast(x, elem == Elem::F32 ? Elem::F64 : Elem::F32);
      case 3:
        return elem == Elem::U8 ? s_.cast(x, Elem::I32) : s_.call("mul", {x, small(elem)});
      case 4:
        return s_.call("add", {x, s_.cast(tensor(depth - 1), elem)});
      case 5:
        return s_.call("div", {x, small(elem)});
      case 6:
        return s_.call("sub", {x, s_.call("mean", {x}, attrs_of({{"axes", std::vector<int64_t>{pick(3)}}})).index >= 0
                                      ? s_.call("mean", {x})
                                      : x});
      case 7:
        return s_.call("maximum", {x, s_.cast(tensor(depth - 1), elem)});
      default:
        return s_.call("where", {s_.call("lt", {x, small(elem)}), x, s_.cast(tensor(depth - 1), elem)});
    }
  }

 private:
  int64_t pick(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  ExprId small(Elem elem) {
    return s_.number(elem, is_float(elem) ? 0.37 * double(pick(20)) + 0.1 : double(pick(20) + 1));
  }
  ExprId flag() { return s_.fixed(Value::scalar(Scalar::of_bool(pick(2) == 1))); }
  ExprId leaf() {
    Elem elem = pick(2) ? Elem::U8 : Elem::F32;
    Value v = random_value(elem, {5, 19, 3}, random_);
    return pick(2) ? s_.fixed(std::move(v)) : s_.field(std::move(v), {Dim::of(5), Dim::named("w"), Dim::of(3)});
  }
  Sample1& s_;
  std::mt19937_64& random_;
};

TEST(Jit, RandomExpressionsEqualTheReference) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Sample1 s;
    ExprId root = RandomExpression(s, random).tensor(2 + static_cast<int>(seed % 4));
    expect_same(s, root, {5, 19, 3});
    expect_same(s, to_chw(s, root), {3, 5, 19});
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace zephon
