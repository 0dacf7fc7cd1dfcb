#include <fmt/format.h>

#include "ops/stream_op.h"

namespace zephon {
namespace {

struct Bounds {
  int64_t begin = 0, end = 0;
  explicit Bounds(const Attrs& attrs) : begin(attrs.integer("begin")), end(begin) {
    if (attrs.has("end")) {
      end = attrs.integer("end");
    } else {
      begin = 0;  // range(n)
    }
  }
};

class RangeSource final : public Source {
 public:
  explicit RangeSource(Bounds bounds) : bounds_(bounds) {}
  uint64_t size() const override {
    return bounds_.end > bounds_.begin ? static_cast<uint64_t>(bounds_.end) - static_cast<uint64_t>(bounds_.begin) : 0;
  }
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    TensorRef& index = columns[0];
    if (!index.data) index.data = allocator.alloc(sizeof(int64_t));
    index.rank = 0;
    index.elem = Elem::I64;
    *static_cast<int64_t*>(index.data) = value(position);
  }
  bool read_range(uint64_t begin, uint64_t count, std::span<TensorRef> columns) const override {
    auto* out = static_cast<int64_t*>(columns[0].data);
    for (uint64_t i = 0; i < count; ++i) out[i] = value(begin + i);
    return true;
  }
  std::string describe(uint64_t position) const override { return fmt::format("index {}", value(position)); }
  std::string fingerprint() const override { return fmt::format("range {} {}", bounds_.begin, bounds_.end); }

 private:
  int64_t value(uint64_t position) const {
    return static_cast<int64_t>(static_cast<uint64_t>(bounds_.begin) + position);
  }

  Bounds bounds_;
};

std::unique_ptr<Source> open(const Node& node, const OpenContext&, Failure&) {
  return std::make_unique<RangeSource>(Bounds(node.attrs));
}

bool bounds(const Attrs& attrs, std::string_view field, int64_t& least, int64_t& greatest) {
  const Bounds of(attrs);
  if (field != "index" || of.end <= of.begin) return false;
  least = of.begin;
  greatest = of.end - 1;
  return true;
}

void infer(const Node&, std::span<const StreamType>, StreamType& out, std::string&) {
  out = {};
  out.fields = {{"index", Type::scalar(Elem::I64)}};
}

}  // namespace

ZEPHON_OP_DEF(Range) = {
    .name = "range",
    .cls = OpClass::Source,
    .signature = "begin: int = 0, end: int? -> stream",
    .summary = "Counts: one sample for each whole number, in field `index`.",
    .prose = "`range(n)` counts from 0 to n - 1, `range(a, b)` from a to b - 1.",
    .example = "range(5)",
    .kernel = {.open = open},
    .infer_stream = infer,
    .bounds = bounds,
};

}  // namespace zephon
