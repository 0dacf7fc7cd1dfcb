#pragma once
// What the definitions of dataset operators share: the plumbing of pull streams, and rules of stream types. Nothing
// here is used by kernels.

#include <memory>
#include <string>
#include <utility>

#include "graph/op_def.h"

namespace zephon {

using StreamPtr = std::unique_ptr<SampleStream>;

/// The end, a failure, or a sample on which a filter failed: none of these is an arrival to count.
inline bool is_no_arrival(const SampleStream::Item& item) { return !item.sample || item.sample->verdict; }

/// A stream over one input that only renumbers: next() is what the input gives, domain and at() too. Operators override
/// what they change.
class InputStream : public SampleStream {
 public:
  explicit InputStream(StreamPtr input) : input_(std::move(input)) {}
  Item next() override { return input_->next(); }
  uint64_t domain_size() override { return input_->domain_size(); }
  Item at(uint64_t index) override { return input_->at(index); }

 protected:
  StreamPtr input_;
};

/// Applies `f` to the sample, or to each member of a batch.
template <class F>
void for_each_member(Sample& sample, F&& f) {
  if (sample.members.empty()) {
    f(sample);
  } else {
    for (Sample& member : sample.members) f(member);
  }
}

/// Appends a word to the identity of a sample, or of each member of a batch.
void append_identity(Sample& sample, uint64_t word);

/// The definition of a hint: what its input gives.
std::unique_ptr<SampleStream> define_same(StreamContext& context);

/// The stream type rules: same as the input; same, with a domain that depends on data; merge of arms with equal fields.
void infer_same(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error);
void infer_counted(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error);
/// False with `error` set where the arms differ in fields or batching; dimensions that differ become unknown.
bool merge_arms(const Node& node, std::span<const StreamType> inputs, StreamType& out, std::string& error);
/// False with `error` set after batch.
bool reject_batches(const Node& node, const StreamType& input, std::string& error);

}  // namespace zephon
