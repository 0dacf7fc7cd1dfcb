#include "runtime/flow/state.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace zephon {
namespace {

constexpr uint64_t kVersion = 2;

// "step:word,word:id,id;" for each operator.
std::string operators_text(const std::vector<OperatorState>& operators) {
  std::string out;
  for (const OperatorState& op : operators) {
    out += fmt::format("{}:{}:", op.step, fmt::join(op.words, ","));
    for (size_t i = 0; i < op.rows.size(); ++i) out += (i ? "," : "") + to_string(op.rows[i]);
    out += ';';
  }
  return out;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == at) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

bool read_number(const std::string& text, uint64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_operators(const std::string& text, std::vector<OperatorState>& out) {
  for (const std::string& one : split(text, ';')) {
    if (one.empty()) continue;
    std::vector<std::string> parts = split(one, ':');
    OperatorState& op = out.emplace_back();
    uint64_t step = 0;
    if (parts.size() != 3 || !read_number(parts[0], step) || step > INT32_MAX) return false;
    op.step = static_cast<int32_t>(step);
    for (const std::string& word : split(parts[1], ',')) {
      if (word.empty()) continue;
      if (!read_number(word, op.words.emplace_back())) return false;
    }
    for (const std::string& id : split(parts[2], ',')) {
      if (id.empty()) continue;
      if (!parse_id(id, op.rows.emplace_back())) return false;
    }
  }
  return true;
}

}  // namespace

std::string mismatch(const State& from, const State& now) {
  if (from.program != now.program) return "the state was saved by another program, or with other parameters";
  if (from.files != now.files) return "the files have changed since the state was saved";
  if (from.seed != now.seed) return fmt::format("the state was saved with seed {}, not {}", from.seed, now.seed);
  if (from.world_size != now.world_size || from.rank != now.rank)
    return fmt::format("the state is that of rank {} of {}, not of rank {} of {}", from.rank, from.world_size, now.rank,
                       now.world_size);
  return {};
}

std::string to_json(const State& s) {
  return fmt::format(
      "{{\"zephon_state\": {}, \"program\": \"{}\", \"files\": \"{}\", \"seed\": {}, \"epoch\": {}, \"records\": {}, "
      "\"rejected\": {}, \"delivered\": {}, \"world_size\": {}, \"rank\": {}, \"steps\": \"{}\", \"position\": {}, "
      "\"records_there\": {}, \"rejected_there\": {}, \"operators\": \"{}\"}}\n",
      kVersion, s.program, s.files, s.seed, s.epoch, s.records, s.rejected, s.delivered, s.world_size, s.rank, s.steps,
      s.mark.position, s.mark.records, s.mark.rejected, operators_text(s.mark.operators));
}

std::optional<State> parse_state(const std::string& text, std::string& error) {
  // Flat: one object of numbers and of strings without escapes.
  std::map<std::string, std::string> values;
  size_t at = 0;
  auto space = [&] {
    while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) ++at;
  };
  auto take = [&](char c) {
    space();
    return at < text.size() && text[at] == c && ++at;
  };
  auto quoted = [&](std::string& out) {
    if (!take('"')) return false;
    size_t end = text.find('"', at);
    if (end == std::string::npos) return false;
    out = text.substr(at, end - at);
    at = end + 1;
    return out.find('\\') == std::string::npos;
  };
  auto parse = [&] {
    if (!take('{')) return false;
    do {
      std::string key, value;
      if (!quoted(key) || !take(':')) return false;
      space();
      if (at < text.size() && text[at] == '"') {
        if (!quoted(value)) return false;
      } else {
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') value += text[at++];
        if (value.empty()) return false;
      }
      if (!values.emplace(key, value).second) return false;
    } while (take(','));
    if (!take('}')) return false;
    space();
    return at == text.size();
  };
  if (!parse()) {
    error = "this is not a state that `--save-state` wrote";
    return std::nullopt;
  }
  bool complete = true;
  auto number = [&](const char* key) {
    uint64_t out = 0;
    auto found = values.find(key);
    if (found == values.end()) {
      complete = false;
      return out;
    }
    complete = complete && read_number(found->second, out);
    return out;
  };
  if (number("zephon_state") != kVersion) {
    error = "the state was written by another version of zephonc";
    return std::nullopt;
  }
  State s;
  s.program = values["program"];
  s.files = values["files"];
  s.seed = number("seed");
  s.epoch = number("epoch");
  s.records = number("records");
  s.rejected = number("rejected");
  s.delivered = number("delivered");
  s.world_size = number("world_size");
  s.rank = number("rank");
  s.steps = values["steps"];
  s.mark.position = number("position");
  s.mark.records = number("records_there");
  s.mark.rejected = number("rejected_there");
  complete = complete && read_operators(values["operators"], s.mark.operators);
  if (!complete) {
    error = "the state is incomplete";
    return std::nullopt;
  }
  return s;
}

}  // namespace zephon
