// Operators that no rule has heard of: they declare a class and properties, and are optimised by them. Their names are
// made up, so that nothing but what they declare can be what the rules ask for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "ops/stream_op.h"
#include "optimizer/optimizer.h"
#include "runtime/flow/runner.h"
#include "runtime/kernels/kernel_compiler.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

// ---- tensor operators
// ------------------------------------------------------------------------------------------------

constexpr OpDef kSoften = {
    .name = "made_soften",
    .cls = OpClass::Pointwise,
    .signature = "x: f32[...s] -> f32[...s]",
    .summary = "Half of it.",
    .define = {.scalar =
                   [](const Expr&, std::span<const ScalarArg> args) {
                     return ScalarResult::of(Scalar::of_float(Elem::F32, args[0].value.f * 0.5));
                   }},
    .kernel = {.pointwise =
                   [](KernelBuilder& b, const Expr&, std::span<const KVal> args) {
                     return b.mul(args[0], b.constant(Scalar::of_float(Elem::F32, 0.5)));
                   }},
};

// True where all three are; false where one is, whatever the others.
constexpr OpDef kAll = {
    .name = "made_all",
    .cls = OpClass::Pointwise,
    .signature = "a: bool[...s], b: bool[...s], c: bool[...s] -> bool[...s]",
    .summary = "True where all are.",
    .define = {.scalar =
                   [](const Expr&, std::span<const ScalarArg> args) {
                     for (const ScalarArg& a : args)
                       if (!a.failure && a.value.i == 0) return ScalarResult::of(Scalar::of_bool(false));
                     for (const ScalarArg& a : args)
                       if (a.failure) return ScalarResult::forward(a.failure);
                     return ScalarResult::of(Scalar::of_bool(true));
                   },
               .lazy = true},
    .kernel = {.pointwise = [](KernelBuilder& b, const Expr&,
                               std::span<const KVal> args) { return b.bit_and(b.bit_and(args[0], args[1]), args[2]); }},
    .conjunction = true,
};

ViewResult corner(const Expr&, std::span<const int64_t> out, std::span<const Value* const> args, std::span<int64_t> in,
                  std::string& message) {
  if (out[0] >= args[0]->shape()[0] || out[1] >= args[0]->shape()[1]) {
    message = "the corner lies outside";
    return ViewResult::Failed;
  }
  std::copy(out.begin(), out.end(), in.begin());
  return ViewResult::Element;
}

void build_corner(IndexBuilder& b, const Expr&, std::span<const KVal> out, std::span<KVal> in) {
  for (int d = 0; d < 2; ++d) b.fail_if(b.compare(Compare::Ge, out[static_cast<size_t>(d)], b.extent(0, d)));
  std::copy(out.begin(), out.end(), in.begin());
}

constexpr OpDef kCorner = {
    .name = "made_corner",
    .cls = OpClass::View,
    .signature = "x: T[h, w, c], n: int >= 1 -> T[n, n, c]",
    .summary = "The upper left of it.",
    .effects = {.can_fail = true},
    .define = {.view = corner},
    .kernel = {.view = build_corner},
};

// A picture made of the number of its bytes.
Scalar pixel(size_t size, int64_t y, int64_t x, int64_t c) {
  return Scalar::of_int(Elem::U8, (static_cast<int64_t>(size) + 7 * y + 3 * x + c) % 256);
}
constexpr int64_t kHeight = 6, kWidth = 5;

Value whole_picture(DefineCall& call) {
  const Value& bytes = call.arg(0);
  if (bytes.any_failed()) return Value::failed(*bytes.failure());
  Value out(Elem::U8, {kHeight, kWidth, 3});
  for (int64_t i = 0; i < out.size(); ++i)
    out.set(i, pixel(bytes.string_items()[0].size(), i / 3 / kWidth, i / 3 % kWidth, i % 3));
  return out;
}

Value part_of_picture(DefineCall& call) {
  const Value &bytes = call.arg(0), &box = call.arg(1);
  if (bytes.any_failed()) return Value::failed(*bytes.failure());
  if (box.any_failed()) return Value::failed(*box.failure());
  const int64_t top = box.at(0).i, left = box.at(1).i, height = box.at(2).i, width = box.at(3).i;
  if (top < 0 || left < 0 || top + height > kHeight || left + width > kWidth)
    return Value::failed(call.failure("R0413", fmt::format("a box of {} x {} at ({}, {}) leaves the picture of {} x {}",
                                                           height, width, top, left, kHeight, kWidth)));
  Value out(Elem::U8, {height, width, 3});
  for (int64_t i = 0; i < out.size(); ++i)
    out.set(i, pixel(bytes.string_items()[0].size(), top + i / 3 / width, left + i / 3 % width, i % 3));
  return out;
}

constexpr OpDef kDecodePart = {
    .name = "made_decode_part",
    .cls = OpClass::Opaque,
    .signature = "bytes: bytes, box: box[h, w] -> u8[h, w, 3]",
    .summary = "A part of a picture.",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 1000, .ns_per_element = 1, .ns_per_input_byte = 0},
    .define = {.tensor = part_of_picture},
};

constexpr OpDef kDecode = {
    .name = "made_decode",
    .cls = OpClass::Opaque,
    .signature = "bytes: bytes -> u8[?, ?, 3]",
    .summary = "A picture.",
    .cost = {.ns_per_call = 1000, .ns_per_element = 1, .ns_per_input_byte = 0},
    .define = {.tensor = whole_picture},
    .region_form = &kDecodePart,
};

// ---- dataset operators
// -----------------------------------------------------------------------------------------------

constexpr OpDef kTouch = {
    .name = "made_touch",
    .cls = OpClass::OneToOne,
    .signature = "stream -> stream",
    .summary = "The same.",
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

constexpr OpDef kHold = {
    .name = "made_hold",
    .cls = OpClass::Hint,
    .signature = "stream -> stream",
    .summary = "Hints at nothing.",
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

constexpr OpDef kKeep = {
    .name = "made_keep",
    .cls = OpClass::Hint,
    .signature = "stream -> stream",
    .summary = "Hints that it is wanted again.",
    .algebra = {.keeps_rows = true},
    .define = {.stream = define_same},
    .infer_stream = infer_same,
};

// The first n, in blocks: every operator that counts looks like this.
uint64_t count_of(const Node& node) { return static_cast<uint64_t>(node.attrs.integer("n")); }

class FirstStream final : public InputStream {
 public:
  explicit FirstStream(StreamContext& context) : InputStream(context.open_input(0)), left_(count_of(context.node())) {}
  Item next() override {
    if (left_ == 0) return {};
    Item item = input_->next();
    if (!is_no_arrival(item)) --left_;
    return item;
  }

 private:
  uint64_t left_;
};

class FirstRows final : public RowOp {
 public:
  explicit FirstRows(const Node& node) : left_(count_of(node)) {}
  void push(Row row, RowSink& sink) override {
    if (left_ == 0) return;
    --left_;
    sink.emit(row);
  }
  bool done() const override { return left_ == 0; }
  void save(RowState& state) const override { state.words = {left_}; }
  void load(const RowState& state) override { left_ = state.words.at(0); }

 private:
  uint64_t left_;
};

constexpr OpDef kFirst = {
    .name = "made_first",
    .cls = OpClass::Subset,
    .signature = "stream, n: int >= 0 -> stream",
    .summary = "The first of them.",
    .algebra = {.counts_arrivals = true,
                .merge = [](const Node& outer, const Node& inner) -> std::optional<MergedStep> {
                  if (inner.op != outer.op) return std::nullopt;
                  return MergedStep{outer.op, count_of(outer) < count_of(inner) ? outer.attrs : inner.attrs};
                }},
    .define = {.stream = [](StreamContext& context) -> std::unique_ptr<SampleStream> {
      return std::make_unique<FirstStream>(context);
    }},
    .kernel = {.row_op = [](const Node& node, const EpochContext&) -> std::unique_ptr<RowOp> {
      return std::make_unique<FirstRows>(node);
    }},
    .infer_stream = infer_counted,
};

// The whole domain from its end.
class BackwardStream final : public InputStream {
 public:
  explicit BackwardStream(StreamContext& context) : InputStream(context.open_input(0)) {}
  Item next() override {
    while (index_ < domain_size())
      if (Item item = at(index_++); item.sample || item.failure) return item;
    return {};
  }
  Item at(uint64_t index) override { return input_->at(domain_size() - 1 - index); }

 private:
  uint64_t index_ = 0;
};

constexpr IndexMap kBackwardMap = {
    .output_size = [](const Node&, uint64_t size) { return size; },
    .input_index = [](const Node&, const EpochContext&, uint64_t size, uint64_t index) { return size - 1 - index; },
};

constexpr OpDef kBackward = {
    .name = "made_backward",
    .cls = OpClass::Reorder,
    .signature = "stream -> stream",
    .summary = "From the end.",
    .algebra = {.needs_domain = true, .keeps_order = false},
    .define = {.stream = [](StreamContext& context) -> std::unique_ptr<SampleStream> {
      return std::make_unique<BackwardStream>(context);
    }},
    .kernel = {.index_map = &kBackwardMap},
    .infer_stream = infer_same,
};

// One stream after the other, from the last.
class LastFirstStream final : public SampleStream {
 public:
  explicit LastFirstStream(StreamContext& context) {
    for (size_t i = 0; i < context.node().inputs.size(); ++i) arms_.push_back(context.open_input(i));
  }
  Item next() override {
    for (; !arms_.empty(); arms_.pop_back()) {
      Item item = arms_.back()->next();
      if (item.sample) append_identity(*item.sample, arms_.size() - 1);
      if (item.sample || item.failure) return item;
    }
    return {};
  }

 private:
  std::vector<StreamPtr> arms_;
};

class LastFirstRows final : public RowOp {
 public:
  explicit LastFirstRows(const Node& node) : left_(node.inputs.size()) {}
  int wanted_input() const override { return static_cast<int>(left_ ? left_ - 1 : 0); }
  void push(Row row, RowSink& sink) override {
    sink.append_identity(static_cast<uint64_t>(row.input));
    sink.emit(row);
  }
  void end_of_input(int, RowSink&) override {
    if (left_) --left_;
  }
  bool done() const override { return left_ == 0; }
  void save(RowState& state) const override { state.words = {left_}; }
  void load(const RowState& state) override { left_ = state.words.at(0); }

 private:
  uint64_t left_;
};

constexpr OpDef kLastFirst = {
    .name = "made_last_first",
    .cls = OpClass::Merge,
    .signature = "stream -> stream",
    .summary = "Goes through its streams from the last.",
    .define = {.stream = [](StreamContext& context) -> std::unique_ptr<SampleStream> {
      return std::make_unique<LastFirstStream>(context);
    }},
    .kernel = {.row_op = [](const Node& node, const EpochContext&) -> std::unique_ptr<RowOp> {
      return std::make_unique<LastFirstRows>(node);
    }},
    .infer_stream =
        [](const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error) {
          if (merge_arms(node, inputs, out, error)) out.domain = Domain::Data;
        },
};

const OpTable& ops_and_made_up() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> ops(all_ops().all().begin(), all_ops().all().end());
    for (const OpDef* op :
         {&kSoften, &kAll, &kCorner, &kDecode, &kDecodePart, &kTouch, &kHold, &kKeep, &kFirst, &kBackward, &kLastFirst})
      ops.push_back(op);
    std::ranges::sort(ops, {}, &OpDef::name);
    return ops;
  }();
  static const OpTable table(all);
  return table;
}

// ---- what is delivered ---------------------------------------------------------------------------------------------

constexpr uint64_t kEpochs = 2;

std::string text_of(const std::string& ids, std::vector<std::pair<std::string, Value>> fields) {
  std::ranges::sort(fields, {}, [](const auto& field) { return field.first; });
  std::string out = ids;
  for (const auto& [name, value] : fields) {
    out += fmt::format("{}[{}]=", name, fmt::join(value.shape(), ","));
    for (uint8_t byte : value.bytes()) out += fmt::format("{:02x}", byte);
    for (const std::string& s : value.string_items()) out += s;
    out += " ";
  }
  return out + "\n";
}
std::string text_of(const std::optional<RunFailure>& failure) {
  return failure ? failure->failure.code + ": " + failure->failure.message : "";
}

std::string of_reference(const Graph& graph) {
  ReferenceOptions options;
  options.base_dir = ZEPHON_SOURCE_DIR;
  options.epochs = kEpochs;
  Failure failure;
  const std::unique_ptr<ReferenceRun> run = ReferenceRun::open(graph, options, failure);
  if (!run) return "cannot open: " + failure.message;
  std::string out;
  while (std::optional<ReferenceRecord> record = run->next()) {
    std::string ids;
    for (const SampleId& id : record->ids) ids += to_string(id) + " ";
    out += text_of(ids, record->fields);
  }
  return out + text_of(run->failure());
}

class TextSink : public Sink {
 public:
  bool deliver(const RunRecord& record) override {
    std::string ids;
    std::vector<std::pair<std::string, Value>> fields;
    for (int64_t m = 0; m < record.members; ++m) ids += to_string(record.member_id(m)) + " ";
    for (const RunRecord::Field& field : record.fields) fields.emplace_back(*field.name, to_value(field.value));
    text += text_of(ids, std::move(fields));
    return true;
  }
  std::string text;
};

std::string of_plan(const Plan& plan) {
  static const std::unique_ptr<KernelCompiler> compiler = make_kernel_compiler();
  TextSink sink;
  RunOptions how;
  how.epochs = kEpochs;
  how.threads = 2;
  Runner runner(
      plan, how, [] { return compiler.get(); }, sink);
  const RunResult result = runner.run();
  return sink.text + text_of(result.failure);
}

struct Case {
  const char* name;
  std::vector<std::string_view> fires;
  const char* program;
  std::vector<std::string_view> shows;  ///< of what becomes of it, output first
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MadeUpOperators : public testing::TestWithParam<Case> {};

TEST_P(MadeUpOperators, AreOptimisedByWhatTheyDeclare) {
  const Case& c = GetParam();
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("made_up.zpl", c.program);
  Result<Program> program = compile(sources, file, {}, ops_and_made_up(), diags);
  ASSERT_TRUE(program) << render(diags, sources);

  OptimizeOptions options;
  options.verify = true;
  options.plan.base_dir = ZEPHON_SOURCE_DIR;
  const OptimizeResult result = optimize(program->graph, options, ops_and_made_up());
  EXPECT_TRUE(result.trace.problems.empty()) << result.trace.problems.front();
  for (std::string_view rule : c.fires) EXPECT_TRUE(result.trace.fired(rule)) << rule;
  const std::string text = to_text(result.graph);
  size_t at = 0;
  for (std::string_view part : c.shows) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in\n" << text;
    at += part.size();
  }

  const std::string expected = of_reference(program->graph);
  EXPECT_FALSE(expected.empty() || expected.starts_with("cannot open")) << expected;
  EXPECT_EQ(of_reference(result.graph), expected);
  EXPECT_EQ(of_plan(result.plan), expected);
  options.no_optimize = true;
  EXPECT_EQ(of_plan(optimize(program->graph, options, ops_and_made_up()).plan), expected);
}

const Case kCases[] = {
    {"ViewPastPointwise",
     {"push_view_below_pointwise"},
     R"(files("examples/data/photos/*/*.jpg") | take(3) | x = made_corner(made_soften(f32(bytes.made_decode())), 2) | select x)",
     {"f32(path.read_file().made_decode().made_corner(n=2)).made_soften()"}},
    {"CropIntoDecoder",
     {"push_view_below_pointwise", "push_crop_into_decode"},
     R"(files("examples/data/photos/*/*.jpg") | take(3) | x = made_soften(f32(bytes.made_decode())).crop(box(1, 2, 3, 3)) | select x)",
     {"f32(path.read_file().made_decode_part([1, 2, 3, 3])).made_soften()"}},
    {"CropOutsideOfDecoder",
     {"push_crop_into_decode"},
     R"(files("examples/data/photos/*/*.jpg") | take(3) | x = bytes.made_decode().crop(box(4, 2, 3, 3)) | select x)",
     {"path.read_file().made_decode_part([4, 2, 3, 3])"}},
    {"Conjunction",
     {"split_conjunctions", "order_filters", "push_filter_below_assign"},
     R"(range(40) | x = index * 3 | filter made_all(([1, 2, 3] + x).sum() > 20, index != 9, 12 // (index - 15) != 1))",
     {"x = index * 3", "filter ([1, 2, 3] + index * 3).sum() > 20", "filter 12 // (index - 15) != 1",
      "filter index != 9", "range(40)"}},
    {"FilterPastOneToOne",
     {"push_filter_below_assign"},
     R"(range(20) | x = index * 3 | made_touch() | filter x % 7 != 0)",
     {"made_touch()", "x = index * 3", "filter index * 3 % 7 != 0", "range(20)"}},
    {"CountingPastOneToOne",
     {"push_subset_below_assign", "merge_neighbours"},
     R"(range(20) | filter index != 3 | made_first(9) | x = index * 3 | made_touch() | made_first(6))",
     {"made_touch()", "x = index * 3", "made_first(6)", "filter index != 3"}},
    {"HintInNobodysWay",
     {"push_step_below_hint", "push_filter_below_assign"},
     R"(range(20) | x = index * 3 | made_hold() | filter x % 7 != 0 | y = x + 1)",
     {"made_hold()", "x = index * 3", "filter index * 3 % 7 != 0", "range(20)"}},
    {"KeptWork",
     {"push_assign_below_draw", "push_step_below_cache"},
     R"(range(20) | x = index * 3 | made_keep() | r = randint(0, 9) | y = ([1, 2, 3] + x).sum() | filter y != 12 | made_first(12))",
     {"r = randint(", "made_keep()", "filter", "range(20)"}},
    {"FilterPastReorder",
     {"push_filter_below_shuffle", "push_shuffle_below_assign"},
     R"(range(20) | x = index * 3 | made_backward() | filter index % 7 != 0)",
     {"x = index * 3", "made_backward()", "filter index % 7 != 0", "range(20)"}},
    {"FilterIntoStreams",
     {"push_filter_below_merge", "push_filter_below_assign"},
     R"(stream a = range(6) | x = index * 3
stream b = range(6, 9) | x = index * index
made_last_first(a, b) | filter 12 // (x - 6) != 1)",
     {"made_last_first()", "x = index * 3", "filter", "range(6)", "x = index * index", "filter", "range(6, 9)"}},
};

std::string name_of(const testing::TestParamInfo<Case>& c) { return c.param.name; }

INSTANTIATE_TEST_SUITE_P(All, MadeUpOperators, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace zephon
