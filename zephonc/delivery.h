#pragma once
// From what a runtime delivers to the writers that were asked for on the command line.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zephonc/command_line.h"
#include "zephonc/sinks/digest.h"
#include "zephonc/sinks/record.h"

namespace zephon {

class Delivery {
 public:
  /// Opens what `options` asks for. `manifest_head`: text of a JSON object.
  std::optional<Failure> open(const Options& options, const std::string& manifest_head);
  /// Whether anybody looks at the records; at the identities of their members.
  bool wants_records() const { return digest_ || !writers_.empty(); }
  bool wants_members() const { return wants_members_; }
  /// Sorts the fields, makes NaNs canonical, hands the record to every writer.
  std::optional<Failure> deliver(DeliveredRecord& record);
  /// How far the output is, for a state that a killed run leaves.
  std::optional<Failure> mark(OutputMark& mark);
  /// Publishes everything. Without it nothing is left that looks whole.
  std::optional<Failure> close();
  /// Of the records delivered so far, in hex; empty where nobody asked.
  std::string digest() const { return digest_ ? hex(digest_->value()) : ""; }

 private:
  std::vector<std::unique_ptr<Writer>> writers_;  ///< in the order in which they publish
  std::unique_ptr<RunDigest> digest_;
  bool wants_members_ = false;
  std::vector<std::vector<uint8_t>> scratch_;
};

}  // namespace zephon
