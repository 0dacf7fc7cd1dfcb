// An expression is made for a type that is wanted: from a field that has it, a literal, or an operator whose result can
// be it, whose arguments are then wanted in turn. What signatures do not say (shapes that depend on arguments, texts
// that mean something) stands in `special`.
#include "tests/wide_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/signature.h"
#include "ops/all_ops.h"
#include "tests/random.h"

namespace zephon {
namespace {

using Text = std::optional<std::string>;
using Dims = std::vector<int64_t>;  // -1: not known before the run

struct Kind {
  std::string elem;
  Dims dims;
  bool optional = false;
  std::string role = {};  // jpeg, file, lists, box: what else is known of the value
  bool operator==(const Kind&) const = default;
  bool open() const { return std::ranges::find(dims, -1) != dims.end(); }
};

const std::vector<std::string> kIntegers = {"u8", "i8", "u16", "i16", "i32", "i64"};
const std::vector<std::string> kFloats = {"f16", "bf16", "f32", "f64"};
const std::vector<std::string> kStrings = {"str", "bytes", "path"};

bool among(const std::vector<std::string>& list, const std::string& s) {
  return std::ranges::find(list, s) != list.end();
}
bool is_variable(const std::string& elem) { return elem.size() == 1; }
bool in_class(const std::string& variable, const std::string& elem) {
  const bool integer = among(kIntegers, elem), real = among(kFloats, elem);
  switch (variable[0]) {
    case 'N':
      return integer || real;
    case 'F':
      return real;
    case 'I':
      return integer;
    case 'S':
      return among(kStrings, elem);
    default:
      return true;
  }
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed ^ 0x77696465) {
    const auto ops = all_ops().all();
    star_ = ops[seed % ops.size()];
  }

  WideProgram run() {
    WideProgram out;
    out.star = std::string(star_->name);
    out.epochs = random_.chance(25) ? 2 : 1;
    out.params = {{"seed", std::to_string(random_.in(0, 3))}};
    named_ = random_.chance(25);
    if (named_ && random_.chance(50)) out.params["mode"] = "right";
    mode_ = out.params.contains("mode") ? "right" : "left";
    int64_t streams = random_.chance(45) ? 0 : random_.in(1, 2);
    if (star_->cls == OpClass::Merge) streams = 2;
    const int64_t at = random_.in(0, streams);  // where the star stands
    if (star_->cls == OpClass::Merge || star_->cls == OpClass::OneToMany) star_wanted_ = true;
    std::string body;
    for (int64_t i = 0; i < streams; ++i) {
      star_wanted_ |= i == at;
      body += fmt::format("stream s{} = {}\n", i, pipe(fmt::format("s{}", i)));
    }
    star_wanted_ |= !star_done_;
    in_main_ = true;
    std::string main = pipe("");
    for (const std::string& extra : extra_) body += extra;
    out.text = "zpl 1\n";
    if (body.find("classes") != body.npos || main.find("classes") != main.npos)
      out.text += "let classes = dirs(\"photos\")\n";
    if (body.find("labels") != body.npos || main.find("labels") != main.npos)
      out.text += "let labels = table(\"labels.csv\", schema={k: i64, name: str, w: f32}, key=k)\n";
    if (body.find("few") != body.npos || main.find("few") != main.npos) out.text += "let few = 3\n";
    if (body.find("twice(") != body.npos || main.find("twice(") != main.npos) out.text += "fn twice(x) = x + x\n";
    if (body.find("jitter(") != body.npos || main.find("jitter(") != main.npos)
      out.text += "fn jitter(x) = x * uniform(0.5, 1.5)\n";
    out.text += body;
    out.text += named_ ? fmt::format("pipeline p(mode: enum(left, right) = left, n: int = 4) {{\n{}}}\n", main) : main;
    return out;
  }

 private:
  enum class Domain { Indexed, Holes, Data };
  struct State {
    std::map<std::string, Kind> fields;
    Domain domain = Domain::Indexed;
    bool batched = false, drawn = false;
    int64_t most = 0;  // samples, at most
  };
  static constexpr int64_t kMost = 60;

  bool is_star(std::string_view name) const { return star_wanted_ && !star_done_ && star_->name == name; }
  bool star(std::string_view name) {
    if (!is_star(name)) return false;
    star_done_ = true;
    return true;
  }

  // ---- streams

  std::string pipe(const std::string& name) {
    State s;
    state_ = &s;
    std::string out = source(name);
    const int64_t steps = random_.in(1, name.empty() ? 6 : 4);
    const int64_t place = random_.in(0, steps - 1);  // of the star
    for (int64_t i = 0; i < steps; ++i) {
      if (star_wanted_ && !star_done_ && i == place) star_step(out);
      step(out);
    }
    if (!name.empty()) {  // the arms of a merge have the same fields
      if (s.batched) add(out, "unbatch()");
      s.batched = false;
      assign(out, "v", {"i64", {}});
      assign(out, "t", {"str", {}});
      assign(out, "x", {"f32", {2}});
      add(out, "select v, t, x");
      s.fields = {{"v", {"i64", {}}}, {"t", {"str", {}}}, {"x", {"f32", {2}}}};
      arms_.push_back(s);
      return out;
    }
    if (!s.batched && random_.chance(55))
      add(out, fmt::format("on_error({})", random_.of<std::string>({"skip", "skip", "quarantine", "mask", "fail"})));
    if (s.drawn && !s.batched && random_.chance(30)) batch(out);
    return out + "\n";
  }

  void add(std::string& out, const std::string& text) { out += "\n  | " + text; }
  State& state() { return *state_; }

  std::string source(const std::string& name) {
    State& s = state();
    const bool merges = name.empty() && !arms_.empty();
    if (merges && (star_->cls == OpClass::Merge || random_.chance(80))) return merge();
    if (!arms_.empty() && random_.chance(30)) {  // a second reader of a stream
      s = arms_[0];
      return "s0";
    }
    const auto rows = [&](int64_t count, std::map<std::string, Kind> fields, std::string text) {
      s.most = count;
      s.fields = std::move(fields);
      return text;
    };
    std::string turns;
    if (random_.chance(30))
      turns = fmt::format(", cycle_length={}, block_length={}", random_.in(1, 3), random_.in(1, 2));
    std::vector<std::string> all = {"range", "csv", "jsonl", "npy", "npz", "raw", "records", "text_lines", "files"};
    std::string kind = random_.of(all);
    if (star_wanted_ && !star_done_) {
      const std::string wanted(star_->name);
      if (among(all, wanted)) kind = wanted;
      if (wanted.starts_with("decode_image") || wanted == "read_file" || wanted == "dirs" || wanted == "parent")
        kind = "files";
      if (wanted == "stem" || wanted == "name") kind = "files";
      if (wanted.starts_with("jsonl") || wanted.starts_with("list") || wanted == "default" || wanted == "is_missing")
        kind = "jsonl";
      if (wanted == "resize_source") kind = "files";
      if (wanted == "csv_field") kind = "csv";
      if (wanted == "array_row") kind = random_.of<std::string>({"npy", "raw"});
      if (wanted == "line_text") kind = "text_lines";
      if (wanted == kind) star_done_ = true;
    }
    if (kind == "csv")
      return rows(10, {{"p", {"i64", {}}}, {"q", {"f32", {}}}, {"s", {"str", {}}}, {"o", {"i64", {}, true}}},
                  "csv(\"table.csv\", columns={p: i64, q: f32, s: str, o: i64?})");
    if (kind == "jsonl")
      return rows(9,
                  {{"p", {"i64", {}, true}},
                   {"r.q", {"i64", {}}},
                   {"r.u", {"str", {}, true}},
                   {"t", {"i64", {-1}}},
                   {"w", {"f32", {2}}},
                   {"ll", {"f32", {-1}, false, "lists"}},
                   {"tags", {"str", {-1}, true}}},
                  "jsonl(\"lines_*.jsonl\", schema={p: i64?, r: {q: i64, u: str?}, t: list<i64>, w: f32[2], "
                  "ll: list<list<f32>>, tags: list<str>?}" +
                      turns + ")");
    if (kind == "npy") {
      if (random_.chance(50))
        return rows(5, {{"path", {"path", {}}}, {"index", {"i64", {}}}, {"image", {"u8", {5, 6, 3}}}},
                    "npy(\"image_*.npy\", columns={image: u8[5, 6, 3]}" + turns + ")");
      return rows(5, {{"path", {"path", {}}}, {"index", {"i64", {}}}, {"image", {"u8", {-1, -1, 3}}}},
                  "npy(\"image_*.npy\", columns={image: u8[h, w, 3]}" + turns + ")");
    }
    if (kind == "npz")
      return rows(6, {{"path", {"path", {}}}, {"index", {"i64", {}}}, {"x", {"f32", {4}}}, {"y", {"i64", {}}}},
                  "npz(\"set.npz\", columns={x: f32[4], y: i64}" + turns + ")");
    if (kind == "raw")
      return rows(8, {{"path", {"path", {}}}, {"index", {"i64", {}}}, {"label", {"u8", {}}}, {"v", {"i16", {3}}}},
                  "raw(\"*.bin\", columns={label: u8, v: i16[3]}" + turns + ")");
    if (kind == "records")
      return rows(8, {{"index", {"i64", {}}}, {"bytes", {"bytes", {}, false, "seven"}}},
                  fmt::format("records(\"a.bin\", size=7, step={}, offset={})", random_.in(3, 9), random_.in(0, 2)));
    if (kind == "text_lines")
      return rows(9, {{"path", {"path", {}}}, {"line", {"i64", {}}}, {"text", {"str", {}}}},
                  "text_lines(\"text_*.txt\"" + turns + ")");
    if (kind == "files")
      return rows(5, {{"path", {"path", {}, false, "file"}}, {"bytes", {"bytes", {}, false, "jpeg"}}},
                  "files(\"photos/*/*.jpg\")");
    const int64_t begin = random_.in(-3, 5), count = random_.chance(8) ? 0 : random_.in(1, 12);
    return rows(count, {{"index", {"i64", {}}}}, fmt::format("range({}, {})", begin, begin + count));
  }

  std::string merge() {
    State& s = state();
    std::string kind = random_.of<std::string>({"mix", "concatenate", "interleave", "zip", "zip key", ""});
    if (star_->cls == OpClass::Merge) {
      star_done_ = true;
      kind = star_->name == "zip" ? random_.of<std::string>({"zip", "zip key"}) : std::string(star_->name);
    }
    const auto arm = static_cast<size_t>(random_.in(0, static_cast<int64_t>(arms_.size()) - 1));
    for (const State& a : arms_) s.drawn |= a.drawn;
    s.fields = arms_[arm].fields;
    if (kind == "zip" && arms_[arm].domain != Domain::Indexed) kind = "zip key";
    s.domain = kind.empty() || kind == "zip" ? arms_[arm].domain : Domain::Data;
    s.most = arms_[arm].most;
    if (kind.empty()) return fmt::format("s{}", arm);
    if (kind.starts_with("zip")) {
      const bool key = kind == "zip key";
      extra_.push_back(fmt::format("stream z = s{}\n  | a = v * 3\n  | {}\n", arm, key ? "select a, v" : "select a"));
      s.fields["a"] = {"i64", {}};
      if (key)
        extra_.back().insert(extra_.back().find("\n  | a"), random_.chance(50) ? "\n  | shuffle(buffer_size=3)" : "");
      return key ? fmt::format("zip(s{}, z, key=v, buffer_size={})", arm, random_.in(1, 9))
                 : fmt::format("zip(s{}, z)", arm);
    }
    std::string names;
    Domain widest = Domain::Indexed;
    for (size_t i = 0; i < arms_.size(); ++i) {
      names += fmt::format("{}s{}{}", i ? ", " : "", i, kind == "mix" ? fmt::format("={}", random_.in(1, 4)) : "");
      widest = std::max(widest, arms_[i].domain);
      if (i != arm) s.most += arms_[i].most;
    }
    if (kind == "concatenate") {
      s.domain = widest;
      return fmt::format("concatenate({})", names);
    }
    if (kind == "mix")
      return fmt::format("mix({}, stop={}, seed={})", names, random_.of<std::string>({"first", "all"}),
                         random_.in(0, 2));
    return fmt::format("interleave({}, block_length={})", names, random_.in(1, 3));
  }

  // ---- steps

  void step(std::string& out) {
    State& s = state();
    switch (random_.in(0, 21)) {
      case 10:
        return stream_step(out, "take");
      case 11:
        return stream_step(out, "skip");
      case 12:
        return stream_step(out, "shard");
      case 13:
        return stream_step(out, "shuffle");
      case 14:
        return stream_step(out, "shuffle_window");
      case 15:
        return stream_step(out, "repeat");
      case 16:
        return s.batched ? stream_step(out, "unbatch") : batch(out);
      case 17:
        return stream_step(out, "on_error");
      case 18:
        return stream_step(out, random_.of<std::string>({"select", "drop"}));
      case 19:
        return stream_step(out, random_.of<std::string>({"cache", "prefetch", "split"}));
      case 20:
        return static_if(out);
      case 7:
      case 8:
      case 9:
        return stream_step(out, random_.chance(25) ? "assert" : "filter");
      default:
        return assign(out, random_.of<std::string>({"a", "b", "c", "d", "y"}), some_kind());
    }
  }

  void star_step(std::string& out) {
    if (!is_tensor_class(star_->cls) && star_->cls != OpClass::Composite) {
      stream_step(out, std::string(star_->name));
      star_done_ = true;
      return;
    }
    if (star_->name == "assert" || star_->name == "split") {
      stream_step(out, std::string(star_->name));
      star_done_ = true;
      return;
    }
    for (int tries = 0; tries < 20; ++tries) {
      const Kind wanted = result_of(*star_);
      drawing_ = true;
      Text text = call(*star_, wanted, 1);
      drawing_ = false;
      if (!text) continue;
      star_done_ = true;
      put(out, wanted.role == "box" ? "box" : random_.of<std::string>({"a", "b", "c"}), wanted, *text);
      return;
    }
  }

  void stream_step(std::string& out, const std::string& name) {
    State& s = state();
    const auto counts = [&] {
      if (s.domain != Domain::Indexed) s.domain = Domain::Data;
    };
    const auto reshuffle = [&] {
      return fmt::format("seed={}, reshuffle_each_epoch={}", random_.in(0, 2), random_.chance(70));
    };
    if (name == "take" || name == "skip") {
      const int64_t n = name == "take" ? random_.in(0, 9) : random_.in(0, 3);
      counts();
      if (name == "take") s.most = std::min(s.most, n);
      return add(out, fmt::format("{}({})", name, n));
    }
    if (name == "shard") {
      counts();
      const int64_t n = random_.in(1, 3);
      return add(out, fmt::format("shard({}, {})", n, random_.in(0, n - 1)));
    }
    if (name == "shuffle" && s.domain != Domain::Data) return add(out, fmt::format("shuffle({})", reshuffle()));
    if (name == "shuffle" || name == "shuffle_window") {
      s.domain = Domain::Data;
      return add(out, fmt::format("shuffle(buffer_size={}, {})", random_.in(1, 6), reshuffle()));
    }
    if (name == "repeat") {
      const int64_t n = random_.in(0, 3);
      if (s.most * n > kMost) return;
      s.most *= n;
      return add(out, fmt::format("repeat({})", n));
    }
    if (name == "batch" || name == "padded_batch" || name == "bucket_by_length") return batch(out, name);
    if (name == "unbatch") {
      if (!s.batched) batch(out);
      if (!s.batched) return;
      s.batched = false;
      return add(out, "unbatch()");
    }
    if (name == "on_error") {
      if (s.batched || s.fields.contains("valid")) return;
      const auto policy = random_.of<std::string>({"fail", "skip", "skip", "mask", "quarantine"});
      s.domain = Domain::Data;
      if (policy == "mask") s.fields["valid"] = {"bool", {}};
      return add(
          out,
          fmt::format("on_error({}{})", policy,
                      policy != "fail" && random_.chance(20) ? fmt::format(", max_errors={}", random_.in(0, 5)) : ""));
    }
    if (name == "select" || name == "drop") {
      std::vector<std::string> some;
      std::set<std::string> tops;
      for (const auto& [field, kind] : s.fields) tops.insert(field.substr(0, field.find('.')));
      for (const std::string& top : tops)
        if (random_.chance(60)) some.push_back(top);
      if (some.empty() || some.size() == tops.size()) return;
      std::erase_if(s.fields, [&](const auto& f) {
        return among(some, f.first.substr(0, f.first.find('.'))) == (name == "drop");
      });
      return add(out, fmt::format("{} {}", name, fmt::join(some, ", ")));
    }
    if (name == "cache") {
      if (!s.drawn) add(out, "cache()");
      return;
    }
    if (name == "prefetch") return add(out, fmt::format("prefetch({})", random_.in(1, 4)));
    if (name == "split") {
      Text by = s.batched ? std::nullopt : make({random_.chance(50) ? "i64" : "str", {}}, 1, false);
      if (!by) return;
      s.domain = std::max(s.domain, Domain::Holes);
      return add(out, fmt::format("split({}, by={}, one=0.6, two=0.4)", random_.of<std::string>({"one", "two"}), *by));
    }
    if (name == "assign") return assign(out, "a", some_kind());
    if (s.batched) return;
    Text condition = make({"bool", {}}, 2);  // filter, assert
    if (!condition) return;
    // What most samples fail leaves nothing to compare.
    if (Text some = random_.chance(50) ? make({"i64", {}}, 1) : std::nullopt)
      condition = fmt::format("{} % 5 != {} or {}", parenthesised(*some), random_.in(0, 4), parenthesised(*condition));
    s.domain = std::max(s.domain, Domain::Holes);
    if (name == "assert") {
      Text message = make({"str", {}}, 1);
      return add(out, fmt::format("assert({}, {})", *condition, message ? *message : "\"not so\""));
    }
    add(out, "filter " + *condition);
  }

  void batch(std::string& out, std::string name = {}) {
    State& s = state();
    if (s.batched) return;
    std::erase_if(s.fields, [&](const auto& f) {
      if (f.second.role != "lists") return false;
      add(out, "drop " + f.first);
      return true;
    });
    if (s.fields.empty()) return;
    const bool open = std::ranges::any_of(s.fields, [](const auto& f) { return f.second.open(); });
    if (name.empty()) name = random_.of<std::string>({"batch", "batch", "padded_batch", "bucket_by_length"});
    const bool lists =
        std::ranges::any_of(s.fields, [](const auto& f) { return f.second.open() && f.second.dims.size() == 1; });
    if (name == "batch" && (lists || (open && random_.chance(70)))) name = "padded_batch";
    const std::string rest = random_.chance(30) ? ", drop_remainder=true" : "";
    if (name == "bucket_by_length") {
      Text length = make({"i64", {}}, 1);
      if (!length) return;
      add(out, fmt::format("bucket_by_length({}, boundaries=[{}], batch_sizes=[{}, {}]{})", *length, random_.in(0, 5),
                           random_.in(1, 4), random_.in(1, 4), rest));
    } else {
      add(out, fmt::format("{}({}{})", name, random_.in(1, 5), rest));
    }
    s.batched = true;
    s.domain = Domain::Data;
  }

  void static_if(std::string& out) {
    const bool by_mode = named_ && in_main_;  // parameters of the pipeline are known in its own steps only
    std::string taken, other = "take(2)";
    State before = state();
    assign(taken, random_.of<std::string>({"a", "b"}), some_kind());
    if (taken.empty()) {
      state() = before;
      return;
    }
    taken = taken.substr(taken.find("| ") + 2);
    if (by_mode && mode_ == "left")
      add(out, fmt::format("if mode == left {{ {} }} else {{ {} }}", taken, other));
    else if (by_mode)
      add(out, fmt::format("if mode == left {{ {} }} else {{ {} }}", other, taken));
    else
      add(out, fmt::format("if few == 3 {{ {} }} else {{ {} }}", taken, other));
  }
  // ---- assignments

  Kind some_kind() {
    static const std::vector<Kind> all = {
        {"i64", {}},   {"i64", {}},     {"bool", {}},    {"f32", {}},       {"f64", {}},
        {"str", {}},   {"str", {}},     {"u8", {}},      {"i32", {}},       {"f16", {}},
        {"i64", {3}},  {"f32", {2, 3}}, {"f32", {4}},    {"u8", {4, 5, 3}}, {"f32", {3, 4, 3}},
        {"bool", {3}}, {"str", {2}},    {"i32", {2, 2}}, {"f64", {3}},      {"bf16", {2}},
        {"i16", {}},   {"bytes", {}},   {"path", {}},    {"u16", {2}},      {"i8", {2}}};
    if (random_.chance(25)) {  // as something that is there: open dimensions
      std::vector<Kind> open;
      for (const auto& [name, kind] : state().fields)
        if (kind.open() && kind.role.empty() && !kind.optional) open.push_back(kind);
      if (!open.empty()) return random_.of(open);
    }
    return random_.of(all);
  }

  void assign(std::string& out, const std::string& field, const Kind& kind) {
    Text text = make(kind, 3, true);
    if (text) put(out, field, kind, *text);
  }

  void put(std::string& out, const std::string& field, const Kind& kind, const std::string& text) {
    add(out, fmt::format("{} = {}", field, text));
    state().fields[field] = kind;
  }

  // ---- expressions

  static std::string parenthesised(const std::string& text) {
    const bool word = std::ranges::all_of(
        text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
    return word ? text : "(" + text + ")";
  }

  Text make(const Kind& wanted, int depth, bool drawing) {
    const bool before = std::exchange(drawing_, drawing);
    Text out = make(wanted, depth);
    drawing_ = before;
    return out;
  }

  Text make(const Kind& wanted, int depth) {
    if (!wanted.role.empty() && wanted.role != "box") return field(wanted);
    if (wanted.optional) return field(wanted);
    if (depth <= 0 || random_.chance(20)) return leaf(wanted);
    static const std::vector<const OpDef*> ops = [] {
      std::vector<const OpDef*> all;
      for (const OpDef* op : all_ops().all())
        if (is_tensor_class(op->cls) || op->cls == OpClass::Composite) all.push_back(op);
      return all;
    }();
    for (int tries = 0; tries < 25; ++tries)
      if (Text text = call(*random_.of(ops), wanted, depth)) return text;
    return leaf(wanted);
  }

  Text field(const Kind& wanted) {
    std::vector<std::string> names;
    for (const auto& [name, kind] : state().fields)
      if (kind.elem == wanted.elem && kind.dims == wanted.dims && kind.optional == wanted.optional &&
          (wanted.role.empty() ? kind.role != "lists" && kind.role != "box" : kind.role == wanted.role))
        names.push_back(name);
    if (names.empty()) return std::nullopt;
    return random_.of(names);
  }

  Text leaf(const Kind& wanted) {
    if (random_.chance(85))
      if (Text text = field(wanted)) return text;
    if (wanted.role == "box") return std::nullopt;
    if (wanted.open()) return field(wanted);
    if (drawing_ && wanted.dims.size() < 3 && random_.chance(10))
      if (Text text = draw(wanted)) return text;
    if (random_.chance(75))
      if (Text text = of_sample(wanted)) return text;
    return literal(wanted);
  }

  /// Made of a whole number that the sample has, rather than the same for all of them.
  Text of_sample(const Kind& wanted) {
    const Text n = field({"i64", {}});
    if (!n) return std::nullopt;
    const Kind numbers{"i64", wanted.dims};
    if (wanted.elem == "bool") return fmt::format("{} < {}", literal(numbers), *n);
    if (wanted.elem == "i64") return wanted.dims.empty() ? *n : fmt::format("{} + {}", literal(numbers), *n);
    if (among(kStrings, wanted.elem)) {
      if (!wanted.dims.empty()) return std::nullopt;
      const std::string text = fmt::format("\"{}{{{}}}\"", random_.of<std::string>({"", "a", "x/", "B 1"}), *n);
      return wanted.elem == "str" ? text : fmt::format("{}({})", wanted.elem, text);
    }
    // What a narrow type cannot hold fails, seldom.
    const std::string small = among(kIntegers, wanted.elem) && random_.chance(95) ? fmt::format("{} % 50", *n) : *n;
    return wanted.dims.empty() ? fmt::format("{}({})", wanted.elem, small)
                               : fmt::format("{}({} + {})", wanted.elem, literal(numbers), small);
  }

  std::string literal(const Kind& wanted) {
    std::string out;
    std::function<void(size_t)> items = [&](size_t d) {
      if (d == wanted.dims.size()) {
        if (wanted.elem == "bool")
          out += random_.chance(50) ? "true" : "false";
        else if (among(kIntegers, wanted.elem))
          out += std::to_string(random_.in(0, 7));
        else if (among(kFloats, wanted.elem))
          out += fmt::format("{}", 0.25 * static_cast<double>(random_.in(-9, 9)));
        else
          out += random_.of<std::string>({"\"a\"", "\"b 12\"", "\"x/y.jpg\"", "\"\"", "\"Ab-7\""});
        return;
      }
      out += "[";
      for (int64_t i = 0; i < wanted.dims[d]; ++i) {
        if (i) out += ", ";
        items(d + 1);
      }
      out += "]";
    };
    items(0);
    if (wanted.elem == "bool" || wanted.elem == "str") return out;
    if (wanted.elem == "i64" && !out.starts_with("-")) return out;
    return fmt::format("{}({})", wanted.elem, out);
  }

  Text draw(const Kind& wanted) {
    if (!drawing_ || wanted.open()) return std::nullopt;
    const std::string shape = wanted.dims.empty() ? "" : fmt::format(", shape=[{}]", fmt::join(wanted.dims, ", "));
    state().drawn = true;
    if (wanted.elem == "bool") return fmt::format("coin(0.4{})", shape);
    if (wanted.elem == "i64") return fmt::format("randint(-2, 6{})", shape);
    if (among(kFloats, wanted.elem))
      return fmt::format("{}(-1, 2{}, type={})", random_.of<std::string>({"uniform", "normal"}), shape, wanted.elem);
    return std::nullopt;
  }

  Kind some_dims(const std::string& elem, size_t rank) {
    Kind out{elem, {}};
    for (size_t i = 0; i < rank; ++i) out.dims.push_back(random_.in(1, 4));
    return out;
  }

  std::string some_elem(const std::string& variable) {
    static const std::vector<std::string> all = {"i64", "i64", "f32", "f32", "u8",  "i32",  "f64",   "bool", "str",
                                                 "str", "i16", "u16", "i8",  "f16", "bf16", "bytes", "path"};
    while (true) {
      const std::string& elem = random_.of(all);
      if (in_class(variable, elem) && (variable != "T" || elem != "path")) return elem;
    }
  }

  /// A type that the operator can have as its result.
  Kind result_of(const OpDef& op) {
    if (op.name == "list_at" || op.name == "lists_between") return {"f32", {-1}};
    if (op.name.starts_with("decode_image"))
      return op.name == "decode_image_region" ? Kind{"u8", {2, 3, 3}} : Kind{"u8", {-1, -1, 3}};
    if (op.name == "random_crop_box" || op.name == "box")
      return {"i64", {random_.in(1, 3), random_.in(1, 3)}, false, "box"};
    if (op.name == "random_resized_crop_box") return {"i64", {-1, -1}, false, "box"};
    if (op.name == "resize" || op.name == "random_resized_crop")
      return {random_.of<std::string>({"u8", "f32"}), {random_.in(1, 4), random_.in(1, 4), 3}};
    if (op.name == "check_shape" || op.name == "list_sums" || op.name == "dirs" || op.name == "data_const" ||
        op.name == "index_of")
      return {"i64", {}};
    if (op.name == "table" || op.name == "lookup" || op.name == "get" || op.name == "table_column")
      return {random_.of<std::string>({"str", "f32"}), {}};
    if (op.name == "default") return {"i64", {}};
    if (op.name == "byte_table") return {"f32", {300}};
    if (op.name == "resize_region" || op.name == "resize_source") return {"u8", {2, 3, 3}};
    if (op.name == "decode_image_shape") return {"i64", {}};
    const TypePattern& pattern = signature_of(op).result;
    Kind out{is_variable(pattern.elem) ? some_elem(pattern.elem) : pattern.elem, {}};
    if (op.promotes && among(kIntegers, out.elem) && out.elem != "i64") out.elem = "i32";
    for (const DimPattern& d : pattern.shape) {
      if (d.kind == DimPattern::Kind::Pack)
        for (int64_t i = random_.in(0, 2); i > 0; --i) out.dims.push_back(random_.in(1, 4));
      else
        out.dims.push_back(d.kind == DimPattern::Kind::Any      ? -1
                           : d.kind == DimPattern::Kind::Extent ? d.extent
                                                                : random_.in(1, 4));
    }
    if (op.name == "stack") out.dims = {2};
    if (op.name == "transpose" && out.dims.size() < 2) out.dims = {2, 3};
    if (op.name == "reshape" && out.dims.empty()) out.dims = {4};
    if (op.name == "slice" && out.dims.empty()) out.dims = {2};
    if (op.name == "captures" || op.name == "find_all" || op.name == "split_text") out.dims = {-1};
    if (op.name == "windows") out.dims = {-1, 2};
    return out;
  }

  /// The operator with `wanted` as its result, or nothing.
  Text call(const OpDef& op, const Kind& wanted, int depth) {
    if (op.effects.random && !drawing_) return std::nullopt;
    bool known = false;
    Text text = special(std::string(op.name), wanted, depth, known);
    if (!known) text = wanted.role.empty() ? by_signature(op, wanted, depth) : std::nullopt;
    if (text && op.effects.random) state().drawn = true;
    return text;
  }

  /// A picture of which a part of this kind can be cut: larger, or of unknown size.
  Kind larger(const Kind& part) {
    std::vector<Kind> there;
    for (const auto& [name, kind] : state().fields)
      if (kind.elem == part.elem && kind.dims.size() == part.dims.size() && kind.role.empty() && !kind.optional &&
          std::equal(kind.dims.begin() + 2, kind.dims.end(), part.dims.begin() + 2) &&
          (kind.dims[0] < 0 || kind.dims[0] >= part.dims[0]) && (kind.dims[1] < 0 || kind.dims[1] >= part.dims[1]))
        there.push_back(kind);
    if (!there.empty() && random_.chance(70)) return random_.of(there);
    Kind out = part;
    out.dims[0] += random_.in(0, 2);
    out.dims[1] += random_.in(0, 2);
    return out;
  }

  Text special(const std::string& op, const Kind& t, int depth, bool& known) {
    known = true;
    const int below = depth - 1;
    const size_t rank = t.dims.size();
    auto one = [&](const Kind& kind) { return make(kind, below); };
    auto i64 = [&] { return one({"i64", {}}); };
    auto is = [&](const char* elem, const Dims& dims = {}) {
      return t.elem == elem && t.dims == dims && t.role.empty();
    };
    // "{}" stands for the argument.
    auto with = [&](const Kind& kind, const std::string& before, const std::string& after) -> Text {
      Text x = one(kind);
      if (!x) return std::nullopt;
      return before + (before.empty() ? parenthesised(*x) : *x) + after;
    };
    if (t.role == "box") {
      const bool open = t.dims[0] < 0;
      if (op == "box" && !open) {
        Text top = i64();
        return top ? Text(fmt::format("box({} % 2, {}, {}, {})", parenthesised(*top), random_.in(0, 1), t.dims[0],
                                      t.dims[1]))
                   : top;
      }
      const Kind picture = larger({"u8", {open ? 2 : t.dims[0], open ? 2 : t.dims[1], 3}});
      if (op == "random_crop_box" && !open)
        return with(picture, "", fmt::format(".random_crop_box({}, {})", t.dims[0], t.dims[1]));
      if (op == "random_resized_crop_box" && open) return with(picture, "", ".random_resized_crop_box()");
      return std::nullopt;
    }
    if (op == "box" || op == "random_crop_box" || op == "random_resized_crop_box") return std::nullopt;
    if (op == "field" || op == "const") return leaf(t);
    if (op == "uniform" || op == "normal") return among(kFloats, t.elem) ? draw(t) : std::nullopt;
    if (op == "coin") return t.elem == "bool" ? draw(t) : std::nullopt;
    if (op == "randint") return t.elem == "i64" ? draw(t) : std::nullopt;
    if (op == "cast") {
      if (among(kStrings, t.elem)) {
        return with({t.elem == "str" ? "path" : "str", t.dims}, t.elem + "(", ")");
      }
      if (t.elem == "bool") {
        Text x = one({random_.of<std::string>({"i64", "f32"}), t.dims});
        if (!x || x->starts_with("[") || std::isdigit(static_cast<unsigned char>((*x)[0]))) return std::nullopt;
        return fmt::format("bool({})", *x);
      }
      const std::string from = random_.of<std::string>({"bool", "u8", "i64", "f32", "i32", "f64"});
      if (from == t.elem) return std::nullopt;
      Text x = one({from, t.dims});  // literals are no values of another type
      if (!x || (from == "bool" && (x->starts_with("[") || *x == "true" || *x == "false"))) return std::nullopt;
      return fmt::format("{}({})", t.elem, *x);
    }
    if (op == "index") {
      if (rank > 3) return std::nullopt;
      Kind from = t;
      const int64_t n = random_.in(1, 4);
      from.dims.insert(from.dims.begin(), n);
      Text at = random_.chance(40) && depth > 1 ? i64() : std::nullopt;
      const std::string place =
          at ? fmt::format("{} % {}", parenthesised(*at), n) : std::to_string(random_.in(-n, n - 1));
      if (rank == 1 && random_.chance(40)) {
        from.dims = {t.dims[0], n};
        return with(from, "", fmt::format("[:, {}]", place));
      }
      if (rank == 0 && random_.chance(30) && !t.open()) {  // of a list
        from.dims = {-1};
        if (Text list = field(from)) return fmt::format("{}[{}]", *list, random_.in(-1, 1));
        from.dims = {n};
      }
      return with(from, "", fmt::format("[{}]", place));
    }
    if (op == "slice") {
      if (rank == 0 || t.dims[0] < 1) return std::nullopt;
      Kind from = t;
      const int64_t begin = random_.in(0, 2), step = random_.chance(30) ? 2 : 1;
      from.dims[0] = begin + (t.dims[0] - 1) * step + 1 + random_.in(0, step - 1);
      return with(from, "", step > 1 ? fmt::format("[{}::{}]", begin, step) : fmt::format("[{}:]", begin));
    }
    if (op == "reshape") {
      if (rank == 0 || t.open()) return std::nullopt;
      int64_t count = 1;
      for (int64_t d : t.dims) count *= d;
      Kind from{t.elem, {count}};
      if (rank == 1 && count % 2 == 0) from.dims = {2, count / 2};
      std::vector<std::string> shape;
      for (int64_t d : t.dims) shape.push_back(std::to_string(d));
      if (random_.chance(30)) shape[0] = "-1";
      return with(from, "", fmt::format(".reshape([{}])", fmt::join(shape, ", ")));
    }
    if (op == "stack") {
      if (rank == 0 || t.dims[0] < 1 || t.dims[0] > 3) return std::nullopt;
      if (among(kIntegers, t.elem) && t.elem != "i64" && t.elem != "i32") return std::nullopt;
      std::vector<std::string> items;
      for (int64_t i = 0; i < t.dims[0]; ++i) {
        Text x = one({t.elem, {t.dims.begin() + 1, t.dims.end()}});
        if (!x) return std::nullopt;
        items.push_back(*x);
      }
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    if (op == "choose") {
      Text c = one({"bool", {}}), a = one(t), b = one(t);
      return c && a && b ? Text(fmt::format("choose({}, {}, {})", *c, *a, *b)) : std::nullopt;
    }
    if (op == "mod" || op == "floor_div") {
      if (!in_class("N", t.elem) || (among(kIntegers, t.elem) && t.elem != "i64" && t.elem != "i32"))
        return std::nullopt;
      Text a = one(t);
      Text b = random_.chance(30) ? field({t.elem, {}}) : Text(fmt::format("{}({})", t.elem, random_.in(1, 5)));
      if (!a || !b) return std::nullopt;
      return fmt::format("{} {} {}", parenthesised(*a), op == "mod" ? "%" : "//", *b);
    }
    if (op == "transpose") {
      if (rank < 2 || rank > 3) return std::nullopt;
      std::vector<size_t> order =
          rank == 2 ? std::vector<size_t>{1, 0} : random_.of<std::vector<size_t>>({{2, 0, 1}, {1, 0, 2}, {1, 2, 0}});
      Kind from = t;
      for (size_t i = 0; i < rank; ++i) from.dims[order[i]] = t.dims[i];
      return with(from, "", fmt::format(".transpose([{}])", fmt::join(order, ", ")));
    }
    if (op == "sum" || op == "mean" || op == "min" || op == "max" || op == "any" || op == "all") {
      const bool of_bool = op == "any" || op == "all";
      if (of_bool ? t.elem != "bool" : !in_class("N", t.elem)) return std::nullopt;
      Kind from = t;
      if (op == "sum" && t.elem == "i32") from.elem = random_.of<std::string>({"i32", "u8", "i16"});
      if (op == "sum" && among(kIntegers, t.elem) && t.elem != "i32" && t.elem != "i64") return std::nullopt;
      if (op == "mean" && among(kIntegers, t.elem)) return std::nullopt;
      if (op == "mean" && t.elem == "f64") from.elem = random_.of<std::string>({"f64", "i64", "u8"});
      if (rank == 0 && random_.chance(75)) {
        std::vector<Kind> there;
        for (const auto& [name, kind] : state().fields)
          if (kind.elem == from.elem && !kind.dims.empty() && !kind.optional && kind.role != "box")
            there.push_back(kind);
        from = !there.empty() && random_.chance(60) ? random_.of(there)
                                                    : some_dims(from.elem, static_cast<size_t>(random_.in(1, 3)));
        return with(from, "", "." + op + "()");
      }
      if (rank > 2 || t.open()) return std::nullopt;
      const int64_t axis = random_.in(0, static_cast<int64_t>(rank));
      from.dims.insert(from.dims.begin() + axis, random_.in(1, 4));
      return with(from, "", fmt::format(".{}(axes=[{}])", op, axis));
    }
    if (op == "flip") {
      if (rank < 2) return std::nullopt;
      std::string how = random_.of<std::string>({"", "direction=vertical"});
      if (random_.chance(50)) {
        Text turn = one({"bool", {}});
        if (turn) how = *turn + (how.empty() ? "" : ", ") + how;
      }
      return with(t, "", fmt::format(".flip({})", how));
    }
    if (op == "random_flip") return rank < 2 ? std::nullopt : with(t, "", ".random_flip()");
    if (op == "crop") {
      if (rank < 2 || t.open()) return std::nullopt;
      const Kind from = larger(t);
      Text picture = one(from);
      Text box = one({"i64", {t.dims[0], t.dims[1]}, false, "box"});
      if (!box)
        box = fmt::format("box({}, {}, {}, {})", from.dims[0] < 0 ? 0 : random_.in(0, from.dims[0] - t.dims[0]),
                          from.dims[1] < 0 ? 0 : random_.in(0, from.dims[1] - t.dims[1]), t.dims[0], t.dims[1]);
      return picture ? Text(fmt::format("{}.crop({})", parenthesised(*picture), *box)) : picture;
    }
    if (op == "center_crop" || op == "random_crop") {
      if (rank < 2 || t.open() || (op == "random_crop" && !drawing_)) return std::nullopt;
      if (op == "random_crop") state().drawn = true;
      return with(larger(t), "", fmt::format(".{}({}, {})", op, t.dims[0], t.dims[1]));
    }
    if (op == "resize" || op == "random_resized_crop") {
      if (rank != 3 || t.open() || (t.elem != "u8" && t.elem != "f32") || (op != "resize" && !drawing_))
        return std::nullopt;
      if (op != "resize") state().drawn = true;
      Kind from = t;
      from.dims[0] = from.dims[1] = 1;
      return with(larger(from), "", fmt::format(".{}({}, {})", op, t.dims[0], t.dims[1]));
    }
    if (op == "normalize") {
      if (rank != 3 || t.elem != "f32" || t.dims[2] < 1) return std::nullopt;
      const std::vector<double> list(static_cast<size_t>(t.dims[2]), 0.5);
      return with({random_.of<std::string>({"u8", "f32"}), t.dims}, "",
                  fmt::format(".normalize(mean=[{0}], std=[{0}])", fmt::join(list, ", ")));
    }
    if (op == "to_chw")
      return rank == 3 ? with({t.elem, {t.dims[1], t.dims[2], t.dims[0]}}, "", ".to_chw()") : std::nullopt;
    if (op == "resize_region" || op == "resize_source" || op == "byte_table") {
      // What the optimizer makes: of what is written like this.
      if (op == "byte_table")
        return t.elem == "f32" && !t.open() ? with({"u8", t.dims}, "(((f32(", ") / 255).sqrt() * 2).exp())")
                                            : std::nullopt;
      if (rank != 3 || t.open() || t.elem != "u8") return std::nullopt;
      if (op == "resize_source")
        return t.dims[2] == 3 ? with({"bytes", {}, false, "jpeg"}, "",
                                     fmt::format(".decode_image().resize({}, {}).center_crop({}, {})", t.dims[0] + 4,
                                                 t.dims[1] + 3, t.dims[0], t.dims[1]))
                              : std::nullopt;
      Kind from = t;
      from.dims[0] = from.dims[1] = 1;
      return with(
          larger(from), "",
          fmt::format(".resize({}, {}).center_crop({}, {})", t.dims[0] + 2, t.dims[1] + 1, t.dims[0], t.dims[1]));
    }
    if (op == "decode_image" || op == "decode_image_shape") {
      if (t.elem != "u8" || rank != 3 || t.dims[0] != -1) {
        // of all of them something that does not depend on the size
        if (is("i64"))
          return with({"bytes", {}, false, "jpeg"}, "",
                      fmt::format(".{}().{}()", op, random_.of<std::string>({"height", "width"})));
        return std::nullopt;
      }
      if (t.dims[2] != 3) return std::nullopt;
      return with({"bytes", {}, false, "jpeg"}, "",
                  fmt::format(".{}({})", op, op == "decode_image" && random_.chance(20) ? "check=\"whole\"" : ""));
    }
    if (op == "decode_image_region") {
      if (t.elem != "u8" || rank != 3 || t.open() || t.dims[2] != 3) return std::nullopt;
      return with({"bytes", {}, false, "jpeg"}, "",
                  fmt::format(".decode_image_region(box({}, {}, {}, {}))", random_.in(0, 9), random_.in(0, 9),
                              t.dims[0], t.dims[1]));
    }
    if (op == "read_file") return is("bytes") ? with({"path", {}, false, "file"}, "read_file(", ")") : std::nullopt;
    if (op == "decode_raw") {
      if (rank != 1) return std::nullopt;
      if (t.elem == "u8" && t.dims[0] == 7) return with({"bytes", {}, false, "seven"}, "", ".decode_raw(u8, 7)");
      if (t.elem == "u8" && t.dims[0] == 4) return with({"i64", {}}, "bytes((", ").format(\"04d\")).decode_raw(u8, 4)");
      if (t.elem == "i16" && t.dims[0] == 2)
        return with({"i64", {}}, "bytes((", ").format(\"04d\")).decode_raw(i16, 2)");
      return among(kIntegers, t.elem) && t.dims[0] > 0
                 ? Text(fmt::format("bytes(\"abcdefgh\").decode_raw({}, {})", t.elem, t.dims[0]))
                 : std::nullopt;
    }
    if (op == "default") {
      Text x = field({t.elem, t.dims, true});
      Text value = one({t.elem, t.dims.empty() || t.open() ? Dims{} : t.dims});
      if (t.open()) value = "[]";
      return x && value ? Text(fmt::format("default({}, {})", *x, *value)) : std::nullopt;
    }
    if (op == "is_missing") {
      if (!is("bool")) return std::nullopt;
      std::vector<std::string> names;
      for (const auto& [name, kind] : state().fields)
        if (kind.optional) names.push_back(name);
      return names.empty() ? std::nullopt : Text(fmt::format("is_missing({})", random_.of(names)));
    }
    if (op == "list_at" || op == "lists_between") {
      if (t.elem != "f32") return std::nullopt;
      Text lists = field({"f32", {-1}, false, "lists"});
      if (is("f32", {-1}) && lists && op == "list_at") return fmt::format("{}[{}]", *lists, random_.in(-1, 0));
      if (is("f32") && lists && op == "lists_between") return fmt::format("{}[{}:].sum()", *lists, random_.in(0, 1));
      if (is("f32") && op == "list_at")
        return with({"f32", {3}}, "", fmt::format(".list_at([1, 2], {}).sum()", random_.in(0, 1)));
      if (is("f32", {-1}) && op == "lists_between")
        return with({"f32", {3}}, "", ".lists_between([1, 2], begin=0, end=1)");
      return std::nullopt;
    }
    if (op == "list_sums")
      return is("i64") ? with({"i64", {3}}, "", fmt::format(".list_sums([1, 2])[{}]", random_.in(0, 1))) : std::nullopt;
    if (op == "check_shape") {
      if (!is("i64")) return std::nullopt;
      Text x = one({"i64", {2}}), n = i64();
      if (!x || !n) return std::nullopt;
      return fmt::format(
          "{}.check_shape(false, 2 + ({}) // 5, dims=[0], names=[\"n\"], promise=\"x is promised as i64[n]\").sum()",
          parenthesised(*x), *n);
    }
    if (op == "dirs" || op == "data_const")
      return is("i64") ? with({"path", {}, false, "file"}, "classes.index_of(", ".parent.name)") : std::nullopt;
    if (op == "index_of") {
      if (!is("i64")) return std::nullopt;
      return with({"i64", {}}, "[1, 0, 2].index_of((", ") % 3)");
    }
    if (op == "key_position") {
      if (!is("i64")) return std::nullopt;
      return with({"i64", {}}, "[1, 4, 9].key_position(", random_.chance(50) ? ", strict=false)" : ")");
    }
    if (op == "table" || op == "lookup" || op == "get" || op == "table_column") {
      if (op == "table_column" && is("i64")) return Text("len(labels.k)");
      if (!is("str") && !is("f32")) return std::nullopt;
      const char* column = t.elem == "str" ? "name" : "w";
      if (op == "get")
        return with({"i64", {}}, "default(labels.get(",
                    fmt::format(").{}, {})", column, t.elem == "str" ? "\"none\"" : "0.5"));
      return with({"i64", {}}, "labels.lookup((", fmt::format(") % 6).{}", column));
    }
    if (op == "parse_int")
      return is("i64") ? (random_.chance(70) ? with({"i64", {}}, "(", ").to_str().parse_int()")
                                             : with({"str", {}}, "", ".parse_int()"))
                       : std::nullopt;
    if (op == "parse_float") return is("f64") ? with({"f32", {}}, "(", ").to_str().parse_float()") : std::nullopt;
    if (op == "parse_time")
      return is("i64") ? with({"i64", {}}, "(", " * 1000000007).format_time().parse_time()") : std::nullopt;
    if (op == "split_text")
      return is("str", {-1}) ? with({"str", {}}, "",
                                    random_.of<std::string>({".split()", ".split(\"/\")", ".split(\"1\", limit=1)"}))
                             : std::nullopt;
    if (op == "one_hot") {
      if (t.elem != "f32" || rank == 0 || t.dims.back() < 1) return std::nullopt;
      return with({random_.of<std::string>({"i64", "i32"}), {t.dims.begin(), t.dims.end() - 1}}, "",
                  fmt::format(".one_hot({})", t.dims.back()));
    }
    if (op == "div") {
      if (!among(kFloats, t.elem)) return std::nullopt;
      const std::string elem = t.elem == "f64" && random_.chance(50) ? "i64" : t.elem;
      Text a = one({elem, t.dims}), b = one({elem, {}});
      return a && b ? Text(fmt::format("{} / {}", parenthesised(*a), parenthesised(*b))) : std::nullopt;
    }
    if (op == "concat") {
      if (!is("str")) return std::nullopt;
      Text a = one({random_.of<std::string>({"i64", "str", "f32"}), {}});
      if (!a || a->find('"') != a->npos) return std::nullopt;
      return fmt::format("\"{}{{{}}}!\"", random_.of<std::string>({"", "n ", "1/"}), *a);
    }
    if (op == "check")
      return is("bool") ? with({"i64", {}}, "check((", fmt::format(") % 7 != {}, \"seven\")", random_.in(0, 6)))
                        : std::nullopt;
    if (op == "windows") {
      if (rank != 2 || t.dims[0] != -1 || t.dims[1] < 1) return std::nullopt;
      return with({t.elem, {t.dims[1] + random_.in(0, 4)}}, "",
                  fmt::format(".windows({}, step={})", t.dims[1], random_.in(1, 3)));
    }
    if (op == "len" || op == "extent") {
      if (!is("i64")) return std::nullopt;
      std::vector<Kind> there;
      for (const auto& [name, kind] : state().fields)
        if (!kind.optional && kind.role.empty() && (!kind.dims.empty() || (op == "len" && kind.elem == "str")))
          there.push_back(kind);
      Kind of = !there.empty() && random_.chance(70) ? random_.of(there)
                                                     : some_dims(some_elem("T"), static_cast<size_t>(random_.in(1, 2)));
      return with(
          of, "",
          op == "len" ? ".len()" : fmt::format(".extent({})", random_.in(0, static_cast<int64_t>(of.dims.size()) - 1)));
    }
    if (op == "group" || op == "captures") {
      const std::string pattern = random_.of<std::string>({"(\\w)(\\d)?", "(?<n>[a-z0-9])", "(.)$"});
      if (!among(kStrings, t.elem) || rank != (op == "captures")) return std::nullopt;
      if (op == "captures")
        return t.dims[0] == -1 ? with({t.elem, {}}, "", fmt::format(".captures(r\"{}\")", pattern)) : std::nullopt;
      const std::string which =
          pattern.starts_with("(?") && random_.chance(50) ? "name=\"n\"" : std::to_string(random_.in(0, 1));
      return with({t.elem, {}}, "", fmt::format(".group(r\"{}\", {})", pattern, which));
    }
    if (op == "default" || op == "jsonl_field" || op == "jsonl_columns" || op == "csv_field" || op == "array_row" ||
        op == "line_text" || op == "assert" || op == "split")
      return std::nullopt;
    known = false;
    return std::nullopt;
  }

  static std::string_view sign_of(std::string_view op) {
    static const std::map<std::string_view, std::string_view> all = {
        {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"floor_div", "//"}, {"mod", "%"},   {"eq", "=="}, {"ne", "!="},
        {"lt", "<"},  {"le", "<="}, {"gt", ">"},  {"ge", ">="},        {"and", "and"}, {"or", "or"}};
    auto it = all.find(op);
    return it == all.end() ? std::string_view() : it->second;
  }

  /// By what the signature says: the result binds its variables, what is left of them is chosen freely.
  Text by_signature(const OpDef& op, const Kind& wanted, int depth) {
    const Signature& signature = signature_of(op);
    if (signature.stream_in || signature.stream_out) return std::nullopt;
    std::map<std::string, std::string> elems;
    std::map<std::string, int64_t> sizes;
    std::map<std::string, Dims> packs;
    const TypePattern& result = signature.result;
    if (result.box || result.maybe) return std::nullopt;
    if (is_variable(result.elem)) {
      if (!in_class(result.elem, wanted.elem)) return std::nullopt;
      if (op.promotes && among(kIntegers, wanted.elem) && wanted.elem != "i64" && wanted.elem != "i32")
        return std::nullopt;
      elems[result.elem] = wanted.elem;
    } else if (result.elem != wanted.elem) {
      return std::nullopt;
    }
    if (!bind(result.shape, wanted.dims, sizes, packs)) return std::nullopt;
    std::vector<std::string> args;
    bool named = false, open_given = false;
    for (const Parameter& p : signature.parameters) {
      if (p.static_kind != StaticKind::None) {
        if ((p.default_value || p.optional) && random_.chance(60) && !sizes.contains(p.name)) {
          named = true;
          continue;
        }
        Text value = static_value(p, sizes);
        if (!value && (p.default_value || p.optional)) {
          named = true;
          continue;
        }
        if (!value) return std::nullopt;
        args.push_back(named ? fmt::format("{}={}", p.name, *value) : *value);
        continue;
      }
      const int64_t count = p.variadic ? random_.in(1, 3) : 1;
      for (int64_t i = 0; i < count; ++i) {
        std::optional<Kind> kind = argument(op, p.pattern, elems, sizes, packs, open_given);
        if (!kind) return std::nullopt;
        open_given |= kind->open();
        Text value = make(*kind, depth - 1);
        if (!value) return std::nullopt;
        args.push_back(*value);
      }
    }
    const std::string_view sign = sign_of(op.name);
    if (!sign.empty() && args.size() == 2)
      return fmt::format("{} {} {}", parenthesised(args[0]), sign, parenthesised(args[1]));
    if (op.name == "neg") return "-" + parenthesised(args[0]);
    if (op.name == "not") return "not " + parenthesised(args[0]);
    const std::string_view word = op.surface.empty() ? op.name : op.surface;
    if (random_.chance(50) && !args.empty() && signature.parameters[0].static_kind == StaticKind::None) {
      const std::string receiver = parenthesised(args[0]);
      args.erase(args.begin());
      return fmt::format("{}.{}({})", receiver, word, fmt::join(args, ", "));
    }
    return fmt::format("{}({})", word, fmt::join(args, ", "));
  }

  static bool bind(const std::vector<DimPattern>& pattern, const Dims& dims, std::map<std::string, int64_t>& sizes,
                   std::map<std::string, Dims>& packs) {
    const bool packed =
        std::ranges::any_of(pattern, [](const DimPattern& d) { return d.kind == DimPattern::Kind::Pack; });
    if (packed ? dims.size() + 1 < pattern.size() : dims.size() != pattern.size()) return false;
    const size_t extra = dims.size() + 1 - pattern.size();  // length of the pack
    size_t at = 0;
    for (const DimPattern& d : pattern) {
      if (d.kind == DimPattern::Kind::Pack) {
        packs[d.symbol] =
            Dims(dims.begin() + static_cast<ptrdiff_t>(at), dims.begin() + static_cast<ptrdiff_t>(at + extra));
        at += extra;
        continue;
      }
      const int64_t size = dims[at++];
      if (d.kind == DimPattern::Kind::Extent && d.extent != size) return false;
      if (d.kind == DimPattern::Kind::Any && size != -1) return false;
      if (d.kind == DimPattern::Kind::Symbol && !sizes.emplace(d.symbol, size).second && sizes[d.symbol] != size)
        return false;
    }
    return true;
  }

  std::optional<Kind> argument(const OpDef& op, const TypePattern& pattern, std::map<std::string, std::string>& elems,
                               std::map<std::string, int64_t>& sizes, std::map<std::string, Dims>& packs,
                               bool open_given) {
    if (pattern.maybe) return std::nullopt;
    Kind out;
    if (pattern.box) {
      out = {"i64", {}, false, "box"};
      for (const DimPattern& d : pattern.shape)
        out.dims.push_back(sizes.emplace(d.symbol, random_.in(1, 3)).first->second);
      return out;
    }
    const bool free = is_variable(pattern.elem) && !elems.contains(pattern.elem);
    if (free && random_.chance(60)) {  // something that is there
      std::vector<Kind> there;
      for (const auto& [name, kind] : state().fields) {
        auto s = sizes;
        auto p = packs;
        if (!kind.optional && kind.role.empty() && in_class(pattern.elem, kind.elem) &&
            bind(pattern.shape, kind.dims, s, p) &&
            std::ranges::all_of(packs, [&](const auto& pack) { return p.at(pack.first) == pack.second; }))
          there.push_back(kind);
      }
      if (!there.empty()) {
        out = random_.of(there);
        elems[pattern.elem] = out.elem;
        bind(pattern.shape, out.dims, sizes, packs);
        return out;
      }
    }
    out.elem = !is_variable(pattern.elem) ? pattern.elem
               : free                     ? elems[pattern.elem] = some_elem(pattern.elem)
                                          : elems[pattern.elem];
    if (op.promotes && out.elem == "i32" && random_.chance(60))
      out.elem = random_.of<std::string>({"u8", "i16", "i8", "u16"});
    for (const DimPattern& d : pattern.shape) {
      if (d.kind == DimPattern::Kind::Pack) {
        auto [it, fresh] = packs.try_emplace(d.symbol);
        if (fresh)
          for (int64_t i = random_.chance(50) ? 0 : random_.in(1, 2); i > 0; --i)
            it->second.push_back(random_.in(1, 4));
        const bool open = std::ranges::find(it->second, -1) != it->second.end();
        // The others are broadcast, sometimes; of two open shapes nobody knows whether they agree.
        if ((open && open_given) || (op.cls == OpClass::Pointwise && random_.chance(15) && !fresh && open_given))
          continue;
        out.dims.insert(out.dims.end(), it->second.begin(), it->second.end());
      } else {
        out.dims.push_back(d.kind == DimPattern::Kind::Extent ? d.extent
                           : d.kind == DimPattern::Kind::Any  ? 2
                                                             : sizes.emplace(d.symbol, random_.in(1, 4)).first->second);
      }
    }
    return out;
  }

  Text static_value(const Parameter& p, const std::map<std::string, int64_t>& sizes) {
    if (auto it = sizes.find(p.name); it != sizes.end())
      return it->second < 0 ? std::nullopt : Text(std::to_string(it->second));
    if (p.name == "pattern") return random_.of<std::string>({"r\"\\d+\"", "r\"(\\w)(\\d)?\"", "r\"[ab]\"", "r\"^.\""});
    if (p.name == "replacement") return random_.of<std::string>({"\"<$0>\"", "\"\"", "\"x\""});
    if (p.name == "spec") return random_.of<std::string>({"\"\"", "\">6\"", "\"<3\""});
    switch (p.static_kind) {
      case StaticKind::Int:
        return std::to_string(std::max<int64_t>(p.at_least.value_or(0), random_.in(0, 3)));
      case StaticKind::Number:
        return random_.of<std::string>({"0.5", "1", "2.25"});
      case StaticKind::Bool:
        return random_.chance(50) ? "true" : "false";
      case StaticKind::String:
        return random_.of<std::string>({"\"a\"", "\", \"", "\"1\""});
      case StaticKind::Enum:
        return random_.of(p.choices);
      default:
        return std::nullopt;  // the operator needs an entry in `special`
    }
  }

  Random random_;
  const OpDef* star_;
  bool star_wanted_ = false, star_done_ = false;
  bool named_ = false;
  bool in_main_ = false;
  std::string mode_;
  bool drawing_ = false;
  State* state_ = nullptr;
  std::vector<State> arms_;
  std::vector<std::string> extra_;  // streams made on the way
};

}  // namespace

WideProgram wide_program(uint64_t seed) { return Generator(seed).run(); }

}  // namespace zephon
