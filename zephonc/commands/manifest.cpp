// zephonc manifest compose A B ...: the manifests of all ranks of a run, or of a run and its continuation, joined to
// the manifest of the whole, whose digest is that of one run that delivered it all. What does not belong together, is
// missing, or was delivered twice is refused.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/session.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

using Json = nlohmann::ordered_json;

/// What all parts must agree in.
constexpr std::array kShared = {"zephon", "versions",   "program_fingerprint", "params", "seed",
                                "epochs", "world_size", "relaxations",         "files"};

std::optional<RecordDigest> parse_digest(const std::string& text) {
  RecordDigest out;
  if (text.size() != 2 * out.size() || text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return out;
}

class Compose {
 public:
  explicit Compose(const Options& options) : options_(options) {}

  int operator()() {
    for (const std::string& path : options_.files) {
      Failure failure;
      auto text = read_whole_file(path, failure);
      if (!text) return show_problem(failure);
      Json part = Json::parse(*text, nullptr, false);
      try {
        if (!add(path, part)) return refuse();
      } catch (const Json::exception&) {
        problem_ = fmt::format("`{}` is no manifest: write one with `zephonc run --manifest`", path);
        return refuse();
      }
    }
    if (!is_whole()) return refuse();
    RunDigest digest;
    for (const auto& [place, record] : records_) digest.add(*parse_digest(record.at("digest").get<std::string>()));
    if (!options_.out.empty()) {
      if (auto failure = write(hex(digest.value()))) return show_problem(*failure);
    }
    say(fmt::format("{} records of {} manifests, {} of {} ranks", records_.size(), options_.files.size(), ranks_.size(),
                    world_size_));
    return print(hex(digest.value()) + "\n");
  }

 private:
  bool add(const std::string& path, const Json& part) {
    auto wrong = [&](const std::string& what) {
      problem_ = fmt::format("`{}`: {}", path, what);
      return false;
    };
    if (head_.is_null()) {
      head_ = part;
      head_.erase("records");
      world_size_ = part.at("world_size").get<uint64_t>();
    }
    for (const char* key : kShared) {
      if (part.at(key) != head_.at(key))
        return wrong(
            fmt::format("`{}` is another than in `{}`: these are no parts of one run", key, options_.files[0]));
    }
    const auto rank = part.at("rank").get<uint64_t>();
    ranks_.insert(rank);
    RunDigest own;
    for (const Json& record : part.at("records")) {
      const auto epoch = record.at("epoch").get<uint64_t>(), ordinal = record.at("ordinal").get<uint64_t>();
      auto digest = parse_digest(record.at("digest").get<std::string>());
      if (!digest) return wrong("a digest is broken");
      own.add(*digest);
      if (ordinal % world_size_ != rank) return wrong(fmt::format("record {} is not of rank {}", ordinal, rank));
      auto [old, fresh] = records_.emplace(std::pair{epoch, ordinal}, record);
      if (!fresh) return wrong(fmt::format("record {} of epoch {} was delivered twice", ordinal, epoch));
    }
    if (hex(own.value()) != part.at("digest").get<std::string>())
      return wrong("the digest is not that of its records: the file was changed");
    return true;
  }

  /// Every record of every epoch, from the first on. What a rank did not deliver shows where others went on.
  bool is_whole() {
    if (ranks_.size() != world_size_) {
      for (uint64_t rank = 0; rank < world_size_; ++rank) {
        if (!ranks_.contains(rank))
          problem_ = fmt::format("the manifest of rank {} of {} is missing", rank, world_size_);
      }
      return false;
    }
    std::map<uint64_t, uint64_t> next;
    for (const auto& [place, record] : records_) {
      uint64_t& expected = next[place.first];
      if (place.second != expected) {
        problem_ = fmt::format("record {} of epoch {} is missing", expected, place.first);
        return false;
      }
      ++expected;
    }
    for (const auto& [epoch, count] : next) {
      if (count % world_size_ != 0) {
        problem_ = fmt::format("the last round of epoch {} is not complete", epoch);
        return false;
      }
    }
    return true;
  }

  std::optional<Failure> write(const std::string& digest) {
    head_["rank"] = 0;
    head_["world_size"] = 1;
    head_["record_count"] = records_.size();
    head_["digest"] = digest;
    StagedFile file;
    if (auto failure = file.open(options_.out)) return failure;
    std::string head = head_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (auto failure = file.write(head.substr(0, head.size() - 1) + ", \"records\": [\n")) return failure;
    size_t written = 0;
    for (const auto& [place, record] : records_) {
      std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (auto failure = file.write(line + (++written == records_.size() ? "\n" : ",\n"))) return failure;
    }
    if (auto failure = file.write("]}\n")) return failure;
    return file.commit();
  }

  int refuse() const { return show_problem({"R0509", problem_, {}}); }

  const Options& options_;
  Json head_;
  uint64_t world_size_ = 1;
  std::set<uint64_t> ranks_;
  std::map<std::pair<uint64_t, uint64_t>, Json> records_;
  std::string problem_;
};

}  // namespace

int command_manifest(const Options& options) { return Compose(options)(); }

}  // namespace zephon
