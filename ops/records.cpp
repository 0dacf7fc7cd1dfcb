#include <fmt/format.h>

#include "ops/file_io.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

class RecordsSource final : public Source {
 public:
  RecordsSource(const Node& node, std::string path)
      : path_(std::move(path)),
        size_(static_cast<uint64_t>(node.attrs.integer("size"))),
        step_(node.attrs.has("step") ? static_cast<uint64_t>(node.attrs.integer("step")) : size_),
        offset_(static_cast<uint64_t>(node.attrs.integer("offset"))) {}

  bool open(const Node& node, Failure& failure) {
    if (const int error = file_.open(path_)) {
      failure = cannot_read(path_, error, node.origin);
      return false;
    }
    const uint64_t bytes = file_.size();
    if (bytes >= offset_ + size_) count_ = (bytes - offset_ - size_) / step_ + 1;
    return true;
  }

  uint64_t size() const override { return count_; }
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    auto* content = static_cast<char*>(allocator.alloc(size_));
    // Bytes that are gone since the file was opened are missing here, and fail in whoever decodes them.
    const int64_t n = file_.read_at(offset_ + position * step_, content, size_);
    put(columns[0], Elem::I64, allocator, static_cast<int64_t>(position));
    put(columns[1], Elem::Bytes, allocator, StringRef{content, n > 0 ? static_cast<size_t>(n) : 0});
  }
  std::string describe(uint64_t position) const override {
    return fmt::format("{}, record {}", shown_file(path_), position);
  }
  std::string fingerprint() const override {
    return fmt::format("records {} {:016x}", count_, file_fingerprint(path_));
  }
  std::vector<std::string> files() const override { return {path_}; }

 private:
  template <class T>
  static void put(TensorRef& column, Elem elem, const NativeCall& allocator, T value) {
    if (!column.data) column.data = allocator.alloc(sizeof(T));
    column.rank = 0;
    column.elem = elem;
    *static_cast<T*>(column.data) = value;
  }

  std::string path_;
  uint64_t size_, step_, offset_;
  uint64_t count_ = 0;
  InputFile file_;
};

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  auto source = std::make_unique<RecordsSource>(node, resolve_path(context.base_dir, node.attrs.text("path")));
  if (!source->open(node, failure)) return nullptr;
  return source;
}

void infer(const Node&, std::span<const StreamType>, StreamType& out, std::string&) {
  out = {};
  out.fields = {{"index", Type::scalar(Elem::I64)}, {"bytes", Type::scalar(Elem::Bytes)}};
}

}  // namespace

ZEPHON_OP_DEF(Records) = {
    .name = "records",
    .cls = OpClass::Source,
    .signature = "path: string, size: int >= 1, step: int? >= 1, offset: int = 0 >= 0 -> stream",
    .summary = "Pieces of a binary file, `size` bytes each, in fields `index` and `bytes`.",
    .prose =
        "The first piece begins at byte `offset`, the next ones `step` bytes further each; without `step` they follow "
        "each other without gap. A smaller step gives windows that overlap. What is too short at the end is left out.",
    .example = "records(\"examples/data/ecg.i16\", size=1440, step=720)",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
