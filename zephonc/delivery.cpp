#include "zephonc/delivery.h"

#include <algorithm>

#include "zephonc/sinks/folder.h"
#include "zephonc/sinks/manifest.h"
#include "zephonc/sinks/sheet.h"

namespace zephon {

std::optional<Failure> Delivery::open(const Options& options, const std::string& manifest_head) {
  Failure failure;
  auto add = [&](std::unique_ptr<Writer> writer) {
    if (writer != nullptr) writers_.push_back(std::move(writer));
    return failure.code.empty();
  };
  if (options.digest) digest_ = std::make_unique<RunDigest>();
  if (!options.out.empty() && !add(make_folder_writer(options.out, options.format, failure))) return failure;
  if (!options.manifest.empty()) {
    wants_members_ = true;
    if (!add(make_manifest_writer(options.manifest, manifest_head, failure))) return failure;
  }
  // After the folder: the sheet may lie in it.
  if (!options.sheet.empty()) {
    wants_members_ = true;
    writers_.push_back(make_sheet_writer(options.sheet));
  }
  return std::nullopt;
}

std::optional<Failure> Delivery::deliver(DeliveredRecord& record) {
  std::sort(record.fields.begin(), record.fields.end(),
            [](const DeliveredField& a, const DeliveredField& b) { return a.name < b.name; });
  scratch_.resize(record.fields.size());
  for (size_t i = 0; i < record.fields.size(); ++i) make_nans_canonical(record.fields[i], scratch_[i]);
  if (digest_) digest_->add(digest_of(record));
  for (auto& writer : writers_) {
    if (auto failure = writer->write(record)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Delivery::mark(OutputMark& mark) {
  for (auto& writer : writers_) {
    if (auto failure = writer->mark(mark)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Delivery::close() {
  for (auto& writer : writers_) {
    if (auto failure = writer->close()) return failure;
  }
  return std::nullopt;
}

}  // namespace zephon
