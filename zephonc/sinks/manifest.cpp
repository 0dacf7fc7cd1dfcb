#include "zephonc/sinks/manifest.h"

#include <fmt/format.h>

#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/json_text.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

class ManifestWriter : public Writer {
 public:
  std::optional<Failure> open(const std::string& path, const std::string& head) {
    if (auto failure = file_.open(path)) return failure;
    return file_.write(head.substr(0, head.rfind('}')) + ", \"records\": [\n");
  }
  std::optional<Failure> write(const DeliveredRecord& record) override {
    RecordDigest digest = digest_of(record);
    run_.add(digest);
    line_ = count_++ == 0 ? "" : ",\n";
    line_ += fmt::format("{{\"epoch\": {}, \"ordinal\": {}, \"digest\": \"{}\", \"ids\": [", record.epoch,
                         record.ordinal, hex(digest));
    for (size_t i = 0; i < record.members.size(); ++i) {
      if (i > 0) line_ += ", ";
      append_json_string(line_, to_string(record.members[i]));
    }
    line_ += "]}";
    return file_.write(line_);
  }
  std::optional<Failure> close() override {
    std::string tail = fmt::format("\n], \"record_count\": {}, \"digest\": \"{}\"}}\n", count_, hex(run_.value()));
    if (auto failure = file_.write(tail)) return failure;
    return file_.commit();
  }

 private:
  StagedFile file_;
  RunDigest run_;
  std::string line_;
  uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Writer> make_manifest_writer(const std::string& path, const std::string& head, Failure& failure) {
  auto writer = std::make_unique<ManifestWriter>();
  if (auto problem = writer->open(path, head)) {
    failure = *problem;
    return nullptr;
  }
  return writer;
}

}  // namespace zephon
