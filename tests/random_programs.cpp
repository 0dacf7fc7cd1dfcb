#include "tests/random_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "tests/random.h"

namespace zephon {
namespace {

using model::Expr;
using model::Op;
using model::Pipe;
using model::Program;
using model::Step;
using model::StepKind;

// ---- text ----------------------------------------------------------------------------------------------------------

std::string text(const Expr& e) {
  auto binary = [&](std::string_view sign) {
    return fmt::format("({} {} {})", text(e.args[0]), sign, text(e.args[1]));
  };
  switch (e.op) {
    case Op::Field:
      return e.field;
    case Op::Int:
      return e.i < 0 ? fmt::format("({})", e.i) : std::to_string(e.i);
    case Op::Float:
      return fmt::format("{}", e.f);
    case Op::Add:
    case Op::FloatAdd:
      return binary("+");
    case Op::Sub:
      return binary("-");
    case Op::Mul:
    case Op::FloatMul:
      return binary("*");
    case Op::FloorDiv:
      return binary("//");
    case Op::Mod:
      return binary("%");
    case Op::Lt:
    case Op::FloatLt:
      return binary("<");
    case Op::Le:
      return binary("<=");
    case Op::Eq:
      return binary("==");
    case Op::Ne:
      return binary("!=");
    case Op::And:
      return binary("and");
    case Op::Or:
      return binary("or");
    case Op::Not:
      return fmt::format("(not {})", text(e.args[0]));
    case Op::Where:
      return fmt::format("where({}, {}, {})", text(e.args[0]), text(e.args[1]), text(e.args[2]));
    case Op::Uniform:
      return fmt::format("uniform({}, {})", e.low, e.high);
    case Op::Coin:
      return fmt::format("coin({})", e.f);
    case Op::Randint:
      return fmt::format("randint({}, {})", e.low, e.high);
    case Op::IsMissing:
      return fmt::format("is_missing({})", e.field);
    case Op::Default:
      return fmt::format("default({}, {})", e.field, text(e.args[0]));
    case Op::DefaultList:
      return fmt::format("default({}, [])", e.field);
    case Op::Len:
      return fmt::format("len({})", e.field);
    case Op::At:
      return fmt::format("{}[{}]", e.field, text(e.args[0]));
  }
  return {};
}

// As `padding={t: -1}`, or by the field's own name.
std::string padding_text(const Step& s) {
  std::string all;
  for (const auto& [field, value] : s.padding) all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", field, value);
  if (s.padding.size() == 1 && s.count % 2 == 1)
    return fmt::format(", {}={}", s.padding.begin()->first, s.padding.begin()->second);
  return all.empty() ? "" : fmt::format(", padding={{{}}}", all);
}

std::string text(const Step& s) {
  const std::string seeding = fmt::format("seed={}, reshuffle_each_epoch={}", s.seed, s.flag);
  switch (s.kind) {
    case StepKind::Assign:
      return fmt::format("{} = {}", s.field, text(s.expr));
    case StepKind::Filter:
      return fmt::format("filter {}", text(s.expr));
    case StepKind::Select:
      return fmt::format("select {}", fmt::join(s.fields, ", "));
    case StepKind::Drop:
      return fmt::format("drop {}", fmt::join(s.fields, ", "));
    case StepKind::Take:
      return fmt::format("take({})", s.count);
    case StepKind::Skip:
      return fmt::format("skip({})", s.count);
    case StepKind::Shard:
      return fmt::format("shard({}, {})", s.count, s.index);
    case StepKind::Shuffle:
      return fmt::format("shuffle({})", seeding);
    case StepKind::Window:
      return fmt::format("shuffle(buffer_size={}, {})", s.count, seeding);
    case StepKind::Repeat:
      return s.endless ? "repeat()" : fmt::format("repeat({})", s.count);
    case StepKind::Batch:
      return fmt::format("batch({}, drop_remainder={})", s.count, s.flag);
    case StepKind::Padded:
      return fmt::format("padded_batch({}{}{}, drop_remainder={})", s.count, padding_text(s),
                         s.length ? fmt::format(", length={}", s.length) : "", s.flag);
    case StepKind::Bucket:
      return fmt::format("bucket_by_length({}, boundaries=[{}], batch_sizes=[{}]{}, drop_remainder={})", text(s.expr),
                         fmt::join(s.bounds, ", "), fmt::join(s.sizes, ", "), padding_text(s), s.flag);
    case StepKind::Assert:
      return fmt::format("assert({}, \"not so\")", text(s.expr));
    case StepKind::Unbatch:
      return "unbatch()";
    case StepKind::OnError:
      return s.max_errors ? fmt::format("on_error({}, max_errors={})", s.policy, *s.max_errors)
                          : fmt::format("on_error({})", s.policy);
    case StepKind::Cache:
      return "cache()";
    case StepKind::Prefetch:
      return fmt::format("prefetch({})", s.count);
  }
  return {};
}

std::string text(const Program& program, const Pipe& pipe) {
  std::string out;
  switch (pipe.source) {
    case Pipe::Source::Range:
      out = fmt::format("range({}, {})", pipe.begin, pipe.end);
      break;
    case Pipe::Source::Table: {
      std::string columns;
      for (const std::string& c : pipe.columns) columns += (columns.empty() ? "" : ", ") + c + ": i64";
      out = fmt::format("csv(\"{}\", columns={{{}}})", pipe.file, columns);
      break;
    }
    case Pipe::Source::Json:
      out = fmt::format("jsonl(\"{}\", schema={{p: i64?, r: {{q: i64}}, t: list<i64>, o: list<i64>?}}{})", pipe.file,
                        pipe.cycle ? fmt::format(", cycle_length={}, block_length={}", pipe.cycle, pipe.block) : "");
      break;
    case Pipe::Source::Join:
      out = fmt::format("zip({}, {}, key={}, buffer_size={})", program.streams[pipe.arms[0]].stream,
                        program.streams[pipe.arms[1]].stream, pipe.key, pipe.buffer);
      break;
    case Pipe::Source::Stream:
      out = program.streams[pipe.arms[0]].stream;
      break;
    case Pipe::Source::Interleave:
      for (size_t arm : pipe.arms) out += program.streams[arm].stream + ", ";
      if (pipe.cycle > 0) out += fmt::format("cycle_length={}, ", pipe.cycle);
      out = fmt::format("interleave({}block_length={})", out, pipe.block);
      break;
    case Pipe::Source::Zip:
      out = fmt::format("zip({}, {})", program.streams[pipe.arms[0]].stream, program.streams[pipe.arms[1]].stream);
      break;
    case Pipe::Source::Concatenate:
    case Pipe::Source::Mix: {
      const bool mix = pipe.source == Pipe::Source::Mix;
      for (size_t i = 0; i < pipe.arms.size(); ++i) {
        out += (i ? ", " : "") + program.streams[pipe.arms[i]].stream;
        if (mix) out += fmt::format("={}", pipe.weights[i]);
      }
      out = mix ? fmt::format("mix({}, stop={}, seed={})", out, pipe.stop_at_first ? "first" : "all", pipe.seed)
                : fmt::format("concatenate({})", out);
    }
  }
  for (const Step& step : pipe.steps) out += "\n  | " + text(step);
  return out + "\n";
}

// ---- generation ----------------------------------------------------------------------------------------------------

enum class Type { Int, Bool, Float, OptInt, List, OptList };

class Generator {
 public:
  Generator(uint64_t seed, const std::string& folder) : random_(seed), seed_(seed), folder_(folder) {}

  RandomProgram run() {
    program_.seed = static_cast<uint64_t>(random_.in(0, 3));
    program_.epochs = random_.chance(30) ? 2 : 1;
    const auto streams = static_cast<size_t>(random_.chance(50) ? 0 : random_.in(1, 3));
    for (size_t i = 0; i < streams; ++i) program_.streams.push_back(pipe(fmt::format("s{}", i), true));
    program_.main = pipe("", false);
    return {seed_, program_, to_zpl(program_)};
  }

 private:
  // What is known of the stream while its steps are made.
  struct State {
    std::map<std::string, Type> fields;
    enum class Domain { Indexed, Holes, Data } domain = Domain::Indexed;
    bool batched = false;
    int64_t most = 0;    // samples, at most
    bool fixed = false;  // a list may have a length that its type knows
  };
  static constexpr int64_t kMost = 300;

  Pipe pipe(const std::string& name, bool is_arm) {
    Pipe p;
    p.stream = name;
    State s;
    source(p, s);
    const int64_t steps = random_.in(1, is_arm ? 5 : 8);
    for (int64_t i = 0; i < steps; ++i) step(p, s);
    if (is_arm) {  // the arms of a merge have the same fields
      if (s.batched) add(p, s, {.kind = StepKind::Unbatch});
      assign(p, s, "v", Type::Int);
      assign(p, s, "w", Type::Int);
      add(p, s, {.kind = StepKind::Select, .fields = {"v", "w"}});
    }
    sizes_.push_back(s);
    return p;
  }

  // A stream together with one that is the same under other names: so they have one length.
  bool zip(Pipe& p, State& s) {
    const auto arm = static_cast<size_t>(random_.in(0, static_cast<int64_t>(program_.streams.size()) - 1));
    if (renamed_.contains(arm) || sizes_[arm].domain != State::Domain::Indexed) return false;
    Pipe other;
    other.stream = fmt::format("z{}", program_.streams.size());
    other.source = Pipe::Source::Stream;
    other.arms = {arm};
    for (const auto& [to, from] : {std::pair{"a", "v"}, std::pair{"b", "w"}}) {
      model::Expr read{.op = model::Op::Field};
      read.field = from;
      other.steps.push_back({.kind = StepKind::Assign, .field = to, .expr = read});
    }
    other.steps.push_back({.kind = StepKind::Select, .fields = {"a", "b"}});
    p.source = Pipe::Source::Zip;
    p.arms = {arm, program_.streams.size()};
    s = sizes_[arm];
    s.fields = {{"v", Type::Int}, {"w", Type::Int}, {"a", Type::Int}, {"b", Type::Int}};
    renamed_.insert(program_.streams.size());
    program_.streams.push_back(std::move(other));
    sizes_.push_back(s);
    return true;
  }

  // A stream, together with what is made of it or of another one, paired by a key that both have.
  bool join(Pipe& p, State& s) {
    auto some = [&] { return static_cast<size_t>(random_.in(0, static_cast<int64_t>(program_.streams.size()) - 1)); };
    const size_t arm = some(), from = random_.chance(70) ? arm : some();
    if (renamed_.contains(arm) || renamed_.contains(from)) return false;
    Pipe other;
    other.stream = fmt::format("z{}", program_.streams.size());
    other.source = Pipe::Source::Stream;
    other.arms = {from};
    if (random_.chance(60))
      other.steps.push_back({.kind = StepKind::Window, .count = static_cast<uint64_t>(random_.in(1, 9))});
    if (random_.chance(30))
      other.steps.push_back({.kind = StepKind::Skip, .count = static_cast<uint64_t>(random_.in(1, 3))});
    Expr read{.op = Op::Field};
    read.field = "w";
    other.steps.push_back({.kind = StepKind::Assign, .field = "b", .expr = read});
    other.steps.push_back({.kind = StepKind::Select, .fields = {"b", "v"}});
    p.source = Pipe::Source::Join;
    p.arms = {arm, program_.streams.size()};
    p.key = "v";
    p.buffer = static_cast<size_t>(random_.in(1, 20));
    s.domain = State::Domain::Data;
    s.most = sizes_[arm].most + sizes_[from].most;
    s.fields = {{"v", Type::Int}, {"w", Type::Int}, {"b", Type::Int}};
    renamed_.insert(program_.streams.size());
    sizes_.push_back(s);
    program_.streams.push_back(std::move(other));
    // Keys of random programs seldom agree.
    if (random_.chance(85)) add(p, s, {.kind = StepKind::OnError, .policy = random_.chance(80) ? "skip" : "mask"});
    return true;
  }

  // Lines of JSON in one or several files: a value that may be missing, one in a record, lists.
  void json(Pipe& p, State& s, int64_t rows) {
    p.source = Pipe::Source::Json;
    p.file = fmt::format("json_{}_{}_*.jsonl", seed_, p.stream);
    if (random_.chance(50)) {
      p.cycle = static_cast<size_t>(random_.in(1, 3));
      p.block = static_cast<size_t>(random_.in(1, 3));
    }
    const int64_t files = random_.in(1, 3);
    const int bad = random_.chance(60) ? 0 : 6;
    auto items = [&] {
      std::vector<int64_t> out(static_cast<size_t>(random_.in(0, 4)));
      for (int64_t& item : out) item = random_.in(-9, 9);
      return out;
    };
    for (int64_t f = 0; f < files; ++f) {
      const int64_t count = f + 1 == files ? rows : random_.in(0, rows);
      rows -= count;
      p.files.push_back(static_cast<size_t>(count));
      std::string content;
      for (int64_t r = 0; r < count; ++r) {
        model::Scalar value, list;
        list.is_list = true;
        auto failed = [](model::Scalar x) {
          x.failed = true;
          return x;
        };
        auto missing = [](model::Scalar x, bool is, bool fails) {
          x.optional = true;
          x.missing = is;
          x.missing_failed = fails;
          return x;
        };
        if (random_.chance(bad / 2)) {  // no JSON: all of it fails
          content += "{\"p\": 1,\n";
          p.objects.push_back({{"p", missing(failed(value), false, true)},
                               {"r.q", failed(value)},
                               {"t", failed(list)},
                               {"o", missing(failed(list), false, true)}});
          continue;
        }
        std::map<std::string, model::Scalar> object;
        std::string line;
        auto entry = [&](std::string_view key, const std::string& text) {
          line += fmt::format("{}\"{}\": {}", line.empty() ? "" : ", ", key, text);
        };
        const int64_t kind = random_.in(0, 9);
        value.i = kind < 6 ? random_.in(-9, 9) : 0;
        object["p"] = missing(value, kind >= 6, false);
        if (kind < 8) entry("p", kind < 6 ? std::to_string(value.i) : "null");
        if (random_.chance(bad)) {
          object["r.q"] = failed({});
          entry("r", random_.chance(50) ? "{}" : "{\"q\": \"x\"}");
        } else {
          value.i = random_.in(-9, 9);
          object["r.q"] = value;
          entry("r", fmt::format("{{\"q\": {}}}", value.i));
        }
        list.items = items();
        object["t"] = list;
        if (random_.chance(bad)) {
          list.items.clear();
          object["t"] = failed(list);
          entry("t", "7");
        } else {
          entry("t", fmt::format("[{}]", fmt::join(list.items, ", ")));
        }
        list.items.clear();
        if (random_.chance(30)) {
          object["o"] = missing(list, true, false);
        } else {
          list.items = items();
          object["o"] = missing(list, false, false);
          entry("o", fmt::format("[{}]", fmt::join(list.items, ", ")));
        }
        content += "{" + line + "}\n";
        p.objects.push_back(std::move(object));
      }
      std::ofstream(fmt::format("{}/json_{}_{}_{}.jsonl", folder_, seed_, p.stream, f), std::ios::binary) << content;
    }
    s.fields = {{"p", Type::OptInt}, {"t", Type::List}, {"o", Type::OptList}};
    Expr read{.op = Op::Field};
    read.field = "r.q";
    add(p, s, {.kind = StepKind::Assign, .field = "q", .expr = read});
    s.fields["q"] = Type::Int;
    p.steps.push_back({.kind = StepKind::Drop, .fields = {"r"}});
  }

  void source(Pipe& p, State& s) {
    const size_t streams = program_.streams.size();
    if (streams > 0 && random_.chance(15) && zip(p, s)) return;
    if (streams > 0 && random_.chance(20) && join(p, s)) return;
    if (streams > 0 && random_.chance(p.stream.empty() ? 90 : 25)) {
      const int64_t kind = random_.in(0, 6);
      p.source = kind == 0  ? Pipe::Source::Stream
                 : kind < 3 ? Pipe::Source::Mix
                 : kind < 5 ? Pipe::Source::Concatenate
                            : Pipe::Source::Interleave;
      const int64_t arms = kind == 0 ? 1 : random_.in(1, 3);
      const bool by_data = p.source == Pipe::Source::Mix || p.source == Pipe::Source::Interleave;
      s.domain = by_data ? State::Domain::Data : State::Domain::Indexed;
      p.cycle = static_cast<size_t>(random_.in(0, 2));
      p.block = static_cast<size_t>(random_.in(1, 3));
      for (int64_t i = 0; i < arms; ++i) {
        auto arm = static_cast<size_t>(random_.in(0, static_cast<int64_t>(streams) - 1));
        while (renamed_.contains(arm)) --arm;  // before it stands the one that it renames
        // mix(a=1, b=2) names each stream once.
        if (p.source == Pipe::Source::Mix && std::find(p.arms.begin(), p.arms.end(), arm) != p.arms.end()) continue;
        p.arms.push_back(arm);
        p.weights.push_back(static_cast<uint64_t>(random_.in(1, 5)));
        s.most += sizes_[arm].most;
        s.domain = std::max(s.domain, sizes_[arm].domain);
      }
      p.stop_at_first = random_.chance(50);
      p.seed = static_cast<uint64_t>(random_.in(0, 2));
      s.fields = {{"v", Type::Int}, {"w", Type::Int}};
      return;
    }
    const int64_t rows = random_.chance(10) ? 0 : random_.in(1, 40);
    s.most = rows;
    if (random_.chance(30)) return json(p, s, rows);
    if (random_.chance(65)) {
      p.source = Pipe::Source::Range;
      p.begin = random_.in(-5, 10);
      p.end = p.begin + rows;
      s.fields = {{"index", Type::Int}};
      return;
    }
    p.source = Pipe::Source::Table;
    p.columns = {"p", "q"};
    p.file = fmt::format("table_{}_{}.csv", seed_, p.stream);
    const int bad = random_.chance(50) ? 0 : 10;
    std::string content = "p,q\n";
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<model::Cell> cells(2);
      if (bad > 0 && random_.chance(3)) {  // too few fields: both columns fail
        content += "7\n";
      } else {
        for (model::Cell& cell : cells)
          if (!random_.chance(bad)) cell = random_.in(-9, 9);
        content += fmt::format("{},{}\n", cells[0] ? std::to_string(*cells[0]) : "none",
                               cells[1] ? std::to_string(*cells[1]) : "");
      }
      p.rows.push_back(std::move(cells));
    }
    std::ofstream(folder_ + "/" + p.file, std::ios::binary) << content;
    s.fields = {{"p", Type::Int}, {"q", Type::Int}};
  }

  void add(Pipe& p, State& s, Step step) {
    switch (step.kind) {
      case StepKind::Select: {
        std::map<std::string, Type> kept;
        for (const std::string& f : step.fields) kept[f] = s.fields.at(f);
        s.fields = std::move(kept);
        break;
      }
      case StepKind::Drop:
        for (const std::string& f : step.fields) s.fields.erase(f);
        break;
      case StepKind::Filter:
      case StepKind::Assert:
        s.domain = std::max(s.domain, State::Domain::Holes);
        break;
      case StepKind::Take:
        s.most = std::min(s.most, static_cast<int64_t>(step.count));
        [[fallthrough]];
      case StepKind::Skip:
      case StepKind::Shard:
        if (s.domain != State::Domain::Indexed) s.domain = State::Domain::Data;
        break;
      case StepKind::Repeat:
        s.most *= static_cast<int64_t>(step.count);
        break;
      case StepKind::Batch:
      case StepKind::Padded:
      case StepKind::Bucket:
      case StepKind::Unbatch:
        s.batched = step.kind != StepKind::Unbatch;
        [[fallthrough]];
      case StepKind::Window:
        s.domain = State::Domain::Data;
        break;
      case StepKind::OnError:
        s.domain = State::Domain::Data;
        if (step.policy == "mask") s.fields["valid"] = Type::Bool;
        break;
      default:
        break;
    }
    p.steps.push_back(std::move(step));
  }

  void step(Pipe& p, State& s) {
    const auto small = [&](int64_t low, int64_t high) { return static_cast<uint64_t>(random_.in(low, high)); };
    switch (random_.in(0, 19)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return assign(p, s, random_.of<std::string>({"a", "b", "c", "v", "x"}),
                      random_.chance(70)   ? Type::Int
                      : random_.chance(50) ? Type::Bool
                                           : Type::Float);
      case 5:
      case 6:
      case 7: {
        if (s.batched) return;
        draws_ = nullptr;
        std::optional<Expr> e = boolean(s, 2);
        if (!e) return;
        const StepKind kind = random_.chance(20) ? StepKind::Assert : StepKind::Filter;
        // What most samples fail leaves nothing to compare: often it speaks of some of them only.
        std::optional<Expr> some = integer(s, 1, true);
        if (some && random_.chance(kind == StepKind::Assert ? 80 : 40))
          e = Expr{.op = Op::Or,
                   .args = {Expr{.op = Op::Ne,
                                 .args = {Expr{.op = Op::Mod, .args = {*some, Expr{.op = Op::Int, .i = 7}}},
                                          Expr{.op = Op::Int, .i = random_.in(0, 6)}}},
                            *e}};
        return add(p, s, {.kind = kind, .expr = std::move(*e)});
      }
      case 8:
        return add(p, s, {.kind = StepKind::Take, .count = small(0, 30)});
      case 9:
        return add(p, s, {.kind = StepKind::Skip, .count = small(0, 8)});
      case 10: {
        const uint64_t shards = small(1, 3);
        return add(p, s,
                   {.kind = StepKind::Shard, .count = shards, .index = small(0, static_cast<int64_t>(shards) - 1)});
      }
      case 11:
        if (s.domain == State::Domain::Data) return;
        return add(p, s, {.kind = StepKind::Shuffle, .seed = small(0, 3), .flag = random_.chance(70)});
      case 12:
        return add(p, s,
                   {.kind = StepKind::Window, .count = small(1, 12), .seed = small(0, 3), .flag = random_.chance(70)});
      case 13: {
        if (random_.chance(30) && s.domain == State::Domain::Indexed) {
          const uint64_t n = small(0, 25);
          add(p, s, {.kind = StepKind::Repeat, .count = n, .endless = true});  // n passes are enough for n samples
          return add(p, s, {.kind = StepKind::Take, .count = n});
        }
        const uint64_t count = random_.chance(8) ? 0 : small(1, 3);
        if (s.most * static_cast<int64_t>(count) > kMost) return;
        return add(p, s, {.kind = StepKind::Repeat, .count = count});
      }
      case 14:
      case 15:
        if (s.batched) return add(p, s, {.kind = StepKind::Unbatch});
        if (random_.chance(40)) {
          draws_ = nullptr;
          std::optional<Expr> length = integer(s, 1, true);
          if (!length) return;
          Step step{.kind = StepKind::Bucket, .expr = std::move(*length), .flag = random_.chance(30)};
          for (int64_t bound = random_.in(-3, 3); random_.chance(60); bound += random_.in(1, 6))
            step.bounds.push_back(bound);
          for (size_t i = 0; i <= step.bounds.size(); ++i) step.sizes.push_back(small(1, 5));
          if (!s.fixed) pad(step, s);
          return add(p, s, std::move(step));
        }
        if (has_lists(s) || random_.chance(10)) {
          Step step{.kind = StepKind::Padded, .count = small(1, 7), .flag = random_.chance(30)};
          const bool open = !s.fixed;  // what is never padded takes no padding
          if (random_.chance(25) && !s.fixed) {
            step.length = small(1, 6);
            s.fixed = true;
          }
          if (open) pad(step, s);
          return add(p, s, std::move(step));
        }
        return add(p, s, {.kind = StepKind::Batch, .count = small(1, 7), .flag = random_.chance(30)});
      case 16:
      case 17: {
        if (s.batched) return;
        Step step{.kind = StepKind::OnError,
                  .policy = random_.of<std::string>({"fail", "skip", "skip", "mask", "quarantine"})};
        // Of a list masked values have a length only where its type knows it.
        if (step.policy == "mask" && (s.fields.contains("valid") || s.fixed)) return;
        if (random_.chance(30) && step.policy != "fail") step.max_errors = small(0, 4);
        return add(p, s, std::move(step));
      }
      case 18: {
        std::vector<std::string> some;
        for (const auto& [name, type] : s.fields)
          if (random_.chance(50)) some.push_back(name);
        if (some.empty() || some.size() == s.fields.size()) return;
        return add(p, s, {.kind = random_.chance(50) ? StepKind::Select : StepKind::Drop, .fields = some});
      }
      default:
        if (!drawn_ && random_.chance(70)) return add(p, s, {.kind = StepKind::Cache});
        return add(p, s, {.kind = StepKind::Prefetch, .count = small(1, 4)});
    }
  }

  static bool has_lists(const State& s) {
    return std::ranges::any_of(s.fields,
                               [](const auto& f) { return f.second == Type::List || f.second == Type::OptList; });
  }
  void pad(Step& step, const State& s) {
    for (const auto& [name, type] : s.fields)
      if ((type == Type::List || type == Type::OptList) && random_.chance(40)) step.padding[name] = random_.in(-3, 3);
  }

  void assign(Pipe& p, State& s, const std::string& field, Type type) {
    uint64_t draws = 0;
    // What may be missing, and lists, are copied, or become what is never missing.
    if (type == Type::Int && field != "w" && !(field == "v" && !p.stream.empty()) && random_.chance(20)) {
      for (const Type kind : {Type::OptInt, Type::List, Type::OptList}) {
        std::optional<Expr> copy = random_.chance(50) ? this->field(s, kind) : std::nullopt;
        if (!copy) continue;
        const bool defaulted = kind == Type::OptList && random_.chance(50);
        if (defaulted) copy->op = Op::DefaultList;
        s.fields[field] = defaulted ? Type::List : kind;
        p.steps.push_back({.kind = StepKind::Assign, .field = field, .expr = std::move(*copy)});
        return;
      }
    }
    draws_ = &draws;
    std::optional<Expr> e = type == Type::Int ? integer(s, 2, true) : type == Type::Bool ? boolean(s, 2) : real(s, 1);
    draws_ = nullptr;
    if (!e) e = Expr{.op = Op::Randint, .low = -3, .high = 9};
    s.fields[field] = e->op == Op::Randint ? Type::Int : type;
    p.steps.push_back({.kind = StepKind::Assign, .field = field, .expr = std::move(*e)});
  }

  std::optional<Expr> field(const State& s, Type type) {
    std::vector<std::string> names;
    for (const auto& [name, t] : s.fields)
      if (t == type) names.push_back(name);
    if (names.empty()) return std::nullopt;
    return Expr{.op = Op::Field, .field = random_.of(names)};
  }
  // Draws are numbered in the order of evaluation: arguments left to right.
  std::optional<Expr> draw(Op op) {
    if (!draws_) return std::nullopt;
    drawn_ = true;
    Expr e{.op = op, .order = (*draws_)++};
    e.low = random_.in(-9, 5);
    e.high = e.low + random_.in(1, 12);
    if (op == Op::Coin) e.f = 0.125 * static_cast<double>(random_.in(0, 8));
    return e;
  }
  // `dynamic`: not a literal alone, for what is known before the run is not checked as data is.
  std::optional<Expr> integer(const State& s, int depth, bool dynamic) {
    if (!dynamic && random_.chance(40)) return Expr{.op = Op::Int, .i = random_.in(-4, 9)};
    if (depth == 0 || random_.chance(25)) {
      if (random_.chance(25))
        if (auto e = draw(Op::Randint)) return e;
      if (auto e = field(s, Type::Int)) return e;
      return draw(Op::Randint);
    }
    if (random_.chance(25))
      if (auto e = of_json(s, depth)) return e;
    if (random_.chance(15)) {
      auto c = boolean(s, depth - 1);
      if (!c) return std::nullopt;
      auto a = integer(s, depth - 1, true);
      if (!a) return std::nullopt;
      auto b = integer(s, depth - 1, false);
      if (!b) return std::nullopt;
      return Expr{.op = Op::Where, .args = {*c, *a, *b}};
    }
    const Op op = random_.of<Op>({Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Mul, Op::FloorDiv, Op::Mod});
    auto a = integer(s, depth - 1, true);
    if (!a) return std::nullopt;
    const bool divides = op == Op::FloorDiv || op == Op::Mod;
    // Division mostly by a constant, sometimes by what may be zero; a large factor makes some products overflow.
    std::optional<Expr> b;
    if (divides && random_.chance(75)) {
      b = Expr{.op = Op::Int, .i = random_.of<int64_t>({-3, -1, 2, 3, 7})};
    } else if (op == Op::Mul && random_.chance(6)) {
      b = Expr{.op = Op::Int, .i = int64_t{1} << 60};
    } else {
      b = integer(s, depth - 1, divides);
    }
    if (!b) return std::nullopt;
    return Expr{.op = op, .args = {*a, *b}};
  }
  // A whole number of what may be missing, or of a list.
  std::optional<Expr> of_json(const State& s, int depth) {
    if (random_.chance(50)) {
      auto e = field(s, Type::OptInt);
      if (!e) return std::nullopt;
      auto other = integer(s, depth - 1, false);
      if (!other) return std::nullopt;
      e->op = Op::Default;
      e->args = {*other};
      return e;
    }
    auto e = field(s, Type::List);
    if (!e) return std::nullopt;
    e->op = random_.chance(50) ? Op::Len : Op::At;
    if (e->op == Op::Len) return e;
    auto at = random_.chance(60) ? Expr{.op = Op::Int, .i = random_.in(-1, 0)} : integer(s, depth - 1, true);
    if (!at) return std::nullopt;
    e->args = {*at};
    return e;
  }
  std::optional<Expr> boolean(const State& s, int depth) {
    if (random_.chance(15)) {
      if (auto e = field(s, random_.chance(50) ? Type::OptInt : Type::OptList)) {
        e->op = Op::IsMissing;
        return e;
      }
    }
    if (random_.chance(15))
      if (auto e = field(s, Type::Bool)) return e;
    if (random_.chance(15))
      if (auto e = draw(Op::Coin)) return e;
    if (random_.chance(20))
      if (auto a = field(s, Type::Float))
        return Expr{.op = Op::FloatLt,
                    .args = {*a, Expr{.op = Op::Float, .f = 0.5 + static_cast<double>(random_.in(-9, 9))}}};
    if (depth > 0 && random_.chance(30)) {
      auto a = boolean(s, depth - 1);
      if (!a) return std::nullopt;
      if (random_.chance(30)) return Expr{.op = Op::Not, .args = {*a}};
      auto b = boolean(s, depth - 1);
      if (!b) return std::nullopt;
      return Expr{.op = random_.chance(50) ? Op::And : Op::Or, .args = {*a, *b}};
    }
    auto a = integer(s, depth > 0 ? depth - 1 : 0, true);
    if (!a) return std::nullopt;
    auto b = integer(s, 0, false);
    if (!b) return std::nullopt;
    return Expr{.op = random_.of<Op>({Op::Lt, Op::Le, Op::Ne, Op::Ne, Op::Eq}), .args = {*a, *b}};
  }
  std::optional<Expr> real(const State& s, int depth) {
    if (depth > 0 && random_.chance(60)) {
      auto a = real(s, depth - 1);
      if (!a) return std::nullopt;
      auto b = random_.chance(50) ? real(s, depth - 1)
                                  : Expr{.op = Op::Float, .f = 0.1 * static_cast<double>(random_.in(1, 40))};
      if (!b) return std::nullopt;
      return Expr{.op = random_.chance(50) ? Op::FloatAdd : Op::FloatMul, .args = {*a, *b}};
    }
    if (random_.chance(50))
      if (auto e = field(s, Type::Float)) return e;
    return draw(Op::Uniform);
  }

  Random random_;
  uint64_t seed_;
  const std::string& folder_;
  Program program_;
  std::vector<State> sizes_;   // of each stream made
  std::set<size_t> renamed_;   // streams with other fields than the rest
  bool drawn_ = false;         // by any step so far: no cache may stand below
  uint64_t* draws_ = nullptr;  // draws so far in the assignment being made; null where none may stand
};

}  // namespace

std::string to_zpl(const Program& program) {
  std::string out = "zpl 1\n";
  for (const Pipe& p : program.streams) out += fmt::format("stream {} = {}", p.stream, text(program, p));
  return out + text(program, program.main);
}

RandomProgram random_program(uint64_t seed, const std::string& folder) { return Generator(seed, folder).run(); }

}  // namespace zephon
