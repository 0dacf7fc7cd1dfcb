// zephonc stats FILE: what the values of a field are like: mean, deviation, range, histogram, classes; for people, and
// as `let` constants for the program that normalises by them.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/all_ops.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/sinks/staged.h"
#include "zephonc/statistics.h"
#include "zephonc/steps.h"
#include "zephonc/tool_run.h"

namespace zephon {
namespace {

/// What a field's values are like, and how often there is none.
struct Collected {
  explicit Collected(Type type) : values(std::move(type)) {}
  FieldStatistics values;
  uint64_t missing = 0;
};

class Collector : public Sink {
 public:
  Collector(std::map<std::string, Collected>& fields, RunWatch& watch) : fields_(fields), watch_(watch) {}
  bool deliver(const RunRecord& record) override {
    watch_.delivered(static_cast<uint64_t>(record.members));
    for (const RunRecord::Field& field : record.fields) {
      if (is_companion(*field.name)) continue;
      Collected& collected = fields_.try_emplace(*field.name, *field.type).first->second;
      const RunRecord::Field* missing = nullptr;
      for (const RunRecord::Field& other : record.fields)
        if (*other.name == missing_field(*field.name)) missing = &other;
      if (missing == nullptr) {
        collected.values.add(field.value);
      } else {
        add_present(field.value, missing->value, collected);
      }
    }
    return true;
  }

 private:
  /// A value may be missing as a whole, or in some of its elements; what stands in its place is not counted.
  void add_present(const TensorRef& value, const TensorRef& missing, Collected& to) {
    const auto* absent = static_cast<const uint8_t*>(missing.data);
    const int64_t count = missing.size();
    int64_t gone = 0;
    for (int64_t i = 0; i < count; ++i) gone += absent[i] != 0;
    to.missing += static_cast<uint64_t>(gone);
    if (gone == 0) return to.values.add(value);
    if (gone == count || value.size() != count) return;
    const size_t size = elem_size(value.elem);
    present_.clear();
    for (int64_t i = 0; i < count; ++i)
      if (!absent[i]) {
        const auto* from = static_cast<const std::byte*>(value.data) + static_cast<size_t>(i) * size;
        present_.insert(present_.end(), from, from + size);
      }
    TensorRef rest;
    rest.elem = value.elem;
    rest.rank = 1;
    rest.shape[0] = count - gone;
    rest.data = present_.data();
    to.values.add(rest);
  }

  std::map<std::string, Collected>& fields_;
  RunWatch& watch_;
  std::vector<std::byte> present_;
};

/// A number as a program takes it: the shortest that reads back.
std::string literal(double x) { return fmt::format("{}", x == 0 ? 0.0 : x); }

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '{' || c == '}') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return items.size() == 1 ? out : "[" + out + "]";
}

/// The largest value of pictures in unsigned integers, which `normalize` counts as 1; 0 of other fields.
double picture_range(const Type& type) {
  if (type.rank() != 3) return 0;
  return type.elem == Elem::U8 ? 255 : type.elem == Elem::U16 ? 65535 : 0;
}

/// The batch size of what is delivered; 1 of samples.
int64_t members_of_a_record(const Graph& graph) {
  for (const Node* node = &graph.node(graph.output()); node->type.batch && !node->inputs.empty();
       node = &graph.node(node->inputs[0])) {
    if (node->attrs.has("batch_size")) return node->attrs.integer("batch_size");
  }
  return 1;
}

class Stats {
 public:
  explicit Stats(Session& session) : session_(session), options_(session.options()) {}

  int operator()() {
    Graph graph = session_.graph();
    if (!options_.at.empty()) {
      std::string error;
      std::optional<NodeId> node = find_step(session_, options_.at, error);
      if (!node) {
        say("zephonc: " + error);
        return kExitUsage;
      }
      graph.set_output(*node);
    }
    if (auto code = narrow(graph)) return *code;
    Failure failure;
    auto sources = open_sources(graph, {session_.base_dir()}, failure);
    if (sources == nullptr) {
      session_.show_failure(failure);
      return kExitRun;
    }
    RunOptions how;
    // Records of the program are batches; here they are taken apart.
    const auto members = static_cast<uint64_t>(members_of_a_record(graph));
    if (options_.take && *options_.take < UINT64_MAX / members) how.take = *options_.take * members;
    ToolRun run(session_, how.take.value_or(0));
    Collector collector(fields_, run.watch());
    RunResult result;
    if (auto code = run(sample_by_sample(graph), how, collector, result)) return *code;
    if (int code = run.end(result, *sources); code != kExitOk) return code;
    uint64_t failed = 0;
    for (const RunResult::Errors& errors : result.errors) failed += errors.count;
    if (failed > 0)
      say(fmt::format("note: {} samples failed and are not counted; `zephonc scan {}` lists them", failed,
                      options_.file));
    samples_ = result.samples;
    if (!options_.out.empty()) {
      if (auto problem = write_file_atomically(options_.out, constants())) return show_problem(*problem);
    }
    return print(table());
  }

 private:
  /// Delivers the fields that are asked for, and never the hidden ones.
  std::optional<int> narrow(Graph& graph) const {
    const StreamType type = graph.node(graph.output()).type;
    std::vector<std::string> names, known;
    for (const Field& field : type.fields) {
      if (field.name.starts_with('$')) continue;
      known.push_back(field.name);
      if (options_.field.empty() || options_.field == field.name) names.push_back(field.name);
    }
    if (names.empty()) {
      std::string hint = did_you_mean(options_.field, known);
      say(fmt::format("zephonc: no field is called `{}` there{}", options_.field, hint.empty() ? "" : "; " + hint));
      return kExitUsage;
    }
    if (names.size() == type.fields.size()) return std::nullopt;
    Node select;
    select.op = OpTable(all_ops()).find("select");
    select.inputs = {graph.output()};
    select.type = type;
    select.type.fields.erase_if(
        [&](const Field& f) { return std::find(names.begin(), names.end(), f.name) == names.end(); });
    select.attrs.set("fields", names);
    select.step = graph.node(graph.output()).step;
    graph.set_output(graph.add(std::move(select)));
    return std::nullopt;
  }

  static void row(std::string& out, const std::string& name, const Moments& m) {
    out += fmt::format("  {:<14} mean {:<12.6g} deviation {:<12.6g} min {:<12.6g} max {:.6g}\n", name,
                       static_cast<double>(m.mean), m.deviation(), static_cast<double>(m.least),
                       static_cast<double>(m.most));
  }

  static void bars(std::string& out, const std::vector<std::pair<std::string, uint64_t>>& rows) {
    constexpr uint64_t kWidth = 40;
    uint64_t most = 1;
    size_t width = 0;
    for (const auto& [name, count] : rows) {
      most = std::max(most, count);
      width = std::max(width, name.size());
    }
    for (const auto& [name, count] : rows) {
      out += fmt::format("  {:>{}}  {:<12} {}\n", name, width, human_count(static_cast<double>(count)),
                         std::string(static_cast<size_t>((count * kWidth + most - 1) / most), '#'));
    }
  }

  std::string table() const {
    std::string out;
    for (const auto& [name, collected] : fields_) {
      const FieldStatistics& field = collected.values;
      out += fmt::format("{}{}: {}, {} samples\n", out.empty() ? "" : "\n", name, to_string(field.type()),
                         human_count(static_cast<double>(field.samples())));
      const Moments all = field.all();
      const bool by_channel = field.axis() != FieldStatistics::Axis::None && field.channels().size() > 1;
      if (all.count > 0) row(out, by_channel ? "all" : "", all);
      for (size_t c = 0; by_channel && c < field.channels().size(); ++c)
        row(out, fmt::format("{} axis, {}", field.axis() == FieldStatistics::Axis::Last ? "last" : "first", c),
            field.channels()[c]);
      if (collected.missing > 0) out += fmt::format("  {} missing, not counted\n", collected.missing);
      if (field.odd() > 0) out += fmt::format("  {} NaN or infinite, not counted\n", field.odd());
      std::vector<std::pair<std::string, uint64_t>> rows;
      for (const auto& [value, count] : field.numbers()) rows.emplace_back(std::to_string(value), count);
      for (const auto& [value, count] : field.texts()) {
        std::string text;
        append_json_string(text, value);
        rows.emplace_back(text.size() > 60 ? text.substr(0, 57) + "..." : text, count);
      }
      constexpr size_t kShown = 40;
      if (!rows.empty() && rows.size() <= kShown) {
        out += fmt::format("  {} values\n", rows.size());
        bars(out, rows);
        continue;
      }
      if (field.too_many()) out += fmt::format("  more than {} values\n", FieldStatistics::kMostClasses);
      if (rows.size() > kShown) out += fmt::format("  {} values\n", rows.size());
      rows.clear();
      for (const Histogram::Bin& bin : field.histogram().bins())
        rows.emplace_back(fmt::format("{:.6g} .. {:.6g}", bin.begin, bin.end), bin.count);
      bars(out, rows);
    }
    return out;
  }

  std::string constants() const {
    std::string out =
        fmt::format("# Statistics of {} samples of {}{}, by zephonc {}. Deviations divide by the count.\n", samples_,
                    options_.file, options_.at.empty() ? "" : " after step " + options_.at, ZEPHON_VERSION);
    for (const auto& [field_name, collected] : fields_) {
      const FieldStatistics& field = collected.values;
      std::string name = field_name;  // a member of a record: a name has no dots
      std::replace(name.begin(), name.end(), '.', '_');
      auto let = [&](const char* what, const std::string& value) {
        out += fmt::format("let {}_{} = {}\n", name, what, value);
      };
      const double most_of_type = picture_range(field.type());
      const double unit = most_of_type > 0 ? most_of_type : 1;
      if (most_of_type > 0)
        out +=
            fmt::format("# `{}` is {}: divided by {}, as `normalize` takes it.\n", name, to_string(field.type()), unit);
      std::vector<std::string> mean, deviation, least, most;
      for (const Moments& m : field.channels()) {
        if (m.count == 0) continue;
        mean.push_back(literal(static_cast<double>(m.mean) / unit));
        deviation.push_back(literal(m.deviation() / unit));
        auto bound = [&](long double x) {
          const bool whole = is_integer(field.type().elem) && most_of_type == 0;
          return whole ? std::to_string(static_cast<int64_t>(x)) : literal(static_cast<double>(x / unit));
        };
        least.push_back(bound(m.least));
        most.push_back(bound(m.most));
      }
      if (!mean.empty()) {
        let("mean", list(mean));
        let("std", list(deviation));
        let("min", list(least));
        let("max", list(most));
      }
      std::vector<std::string> values, counts;
      for (const auto& [value, count] : field.numbers()) values.push_back(std::to_string(value));
      for (const auto& [value, count] : field.texts()) {
        if (!find_invalid_utf8(value)) values.push_back(literal(value));
      }
      for (const auto& [value, count] : field.numbers()) counts.push_back(std::to_string(count));
      for (const auto& [value, count] : field.texts()) {
        if (!find_invalid_utf8(value)) counts.push_back(std::to_string(count));
      }
      if (values.empty()) continue;
      auto brackets = [](const std::string& text) { return text.starts_with('[') ? text : "[" + text + "]"; };
      let("values", brackets(list(values)));
      let("counts", brackets(list(counts)));
    }
    return out;
  }

  Session& session_;
  const Options& options_;
  std::map<std::string, Collected> fields_;
  uint64_t samples_ = 0;
};

}  // namespace

int command_stats(const Options& options) {
  Session session(options);
  if (auto code = session.load()) return *code;
  return Stats(session)();
}

}  // namespace zephon
