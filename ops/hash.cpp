// hash, and the step `split` that is made of it.
#include <xxhash.h>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// The bytes that are hashed: of a scalar its bytes. Of a tensor the number of dimensions, each extent, then the
// elements, each text with its length before it. All numbers u64, little-endian.
class Canonical {
 public:
  explicit Canonical(std::span<const int64_t> shape) : scalar_(shape.empty()) {
    if (scalar_) return;
    word(shape.size());
    for (const int64_t extent : shape) word(static_cast<uint64_t>(extent));
  }
  void text(std::string_view bytes) {
    if (!scalar_) word(bytes.size());
    out_.append(bytes);
  }
  void numbers(Elem elem, const void* data, int64_t count) {
    const size_t begin = out_.size();
    out_.append(static_cast<const char*>(data), static_cast<size_t>(count) * elem_size(elem));
    make_nans_canonical(elem, out_.data() + begin, count);
  }
  int64_t hash(int64_t seed) const {
    return static_cast<int64_t>(XXH3_64bits_withSeed(out_.data(), out_.size(), static_cast<uint64_t>(seed)));
  }

 private:
  void word(uint64_t w) { out_.append(reinterpret_cast<const char*>(&w), sizeof(w)); }
  bool scalar_;
  std::string out_;
};

Value define_hash(DefineCall& call) {
  const Value& x = call.arg(0);
  if (x.any_failed()) return forward(x);
  Canonical bytes(x.shape());
  if (is_string(x.elem())) {
    for (int64_t i = 0; i < x.size(); ++i) bytes.text(x.at(i).s);
  } else {
    bytes.numbers(x.elem(), x.bytes().data(), x.size());
  }
  return Value::scalar(Scalar::of_int(Elem::I64, bytes.hash(call.expr().attrs.integer("seed"))));
}

bool run_hash(NativeCall& call) {
  const TensorRef& x = call.inputs[0];
  const int64_t seed = call.expr->attrs.integer("seed");
  if (!place_output(call, {})) return false;
  auto& out = *static_cast<int64_t*>(call.output->data);
  if (x.rank == 0 && is_string(x.elem)) {
    const std::string_view text = text_of(x);
    out = static_cast<int64_t>(XXH3_64bits_withSeed(text.data(), text.size(), static_cast<uint64_t>(seed)));
    return true;
  }
  Canonical bytes(shape_of(x));
  if (is_string(x.elem)) {
    for (int64_t i = 0, n = x.size(); i < n; ++i) bytes.text(text_of(x, i));
  } else {
    bytes.numbers(x.elem, x.data, x.size());
  }
  out = bytes.hash(seed);
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Hash) = {
    .name = "hash",
    .cls = OpClass::Opaque,
    .signature = "x: T[...s], seed: int = 0 -> i64",
    .summary = "A number that depends on the value alone: XXH3-64, the same on every machine and in every version.",
    .prose =
        "Of a scalar text, path or bytes: the hash of its bytes (what `xxhash.xxh3_64_intdigest` gives, read as "
        "signed). Of a "
        "scalar number: of its little-endian bytes. Of a tensor: of the number of dimensions and the extents as u64, "
        "then the elements, each text with its length before it. All NaNs are one; -0.0 and 0.0 differ, and so do "
        "types.",
    .example = "range(4) | bucket = \"sample {index}\".hash() % 10",
    .cost = {.ns_per_call = 20, .ns_per_element = 0.1, .ns_per_input_byte = 0.05},
    .define = {.tensor = define_hash},
    .kernel = {.native = run_hash},
};

ZEPHON_OP_DEF(SplitStream) = {
    .name = "split",
    .cls = OpClass::Composite,
    .signature = "stream, part: string, by: T, seed: int = 0 -> stream",
    .summary =
        "Keeps one part of the samples: `split(train, by=\"{path.parent.name}/{path.name}\", train=0.9, val=0.1)`.",
    .prose =
        "The shares follow by name, and their sum is 1. A sample belongs to the part in whose share of the hashes of "
        "`by` "
        "its own falls, shares taken in the order in which they are written: so membership depends on `by`, `seed` and "
        "the shares before and at its own alone, and samples with one value of `by` (a patient, a folder) stay "
        "together. Of a file take the part of its path that moves with the data, such as "
        "`\"{path.parent.name}/{path.name}\"`: "
        "the hash of the whole path is another where the folder lies elsewhere (W0308). Shares are exact: 1/3 is a "
        "third. It is a filter: it keeps order, and `shuffle()` works below it.",
    .example =
        "files(\"examples/data/photos/*/*.jpg\") | split(val, by=\"{path.parent.name}/{path.name}\", "
        "train=0.5, val=0.5)",
    .expansion = "filter part_first <= hash(by, seed) and hash(by, seed) <= part_last",
};

}  // namespace zephon
