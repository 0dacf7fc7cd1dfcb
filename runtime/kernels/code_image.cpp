#include "runtime/kernels/code_image.h"

#include <cmath>
#include <cstring>

extern "C" {
// Of libgcc: half precision conversion on processors without it.
_Float16 __truncsfhf2(float);   // NOLINT
_Float16 __truncdfhf2(double);  // NOLINT
float __extendhfsf2(_Float16);  // NOLINT
}

namespace zephon {
namespace {

class Writer {
 public:
  void word(uint32_t value) { out_.append(reinterpret_cast<const char*>(&value), 4); }
  void bytes(const void* data, size_t size) {
    word(static_cast<uint32_t>(size));
    out_.append(static_cast<const char*>(data), size);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  uint32_t word() {
    uint32_t value = 0;
    if (text_.size() < 4) {
      good_ = false;
      return 0;
    }
    std::memcpy(&value, text_.data(), 4);
    text_.remove_prefix(4);
    return value;
  }
  std::string_view bytes() {
    uint32_t size = word();
    if (size > text_.size()) {
      good_ = false;
      return {};
    }
    std::string_view out = text_.substr(0, size);
    text_.remove_prefix(size);
    return out;
  }
  std::vector<int32_t> numbers() {
    std::vector<int32_t> out;
    for (uint32_t n = word(); n > 0 && good_; --n) out.push_back(static_cast<int32_t>(word()));
    return out;
  }
  bool good() const { return good_; }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
  bool good_ = true;
};

}  // namespace

std::string CodeImage::serialize() const {
  Writer out;
  out.bytes(bytes.data(), bytes.size());
  out.word(run_offset);
  out.word(scratch_offset);
  out.word(static_cast<uint32_t>(imports.size()));
  for (const Import& import : imports) {
    out.bytes(import.name.data(), import.name.size());
    out.word(import.slot);
  }
  for (const std::vector<int32_t>* list : {&shape_exprs, &resample_exprs}) {
    out.word(static_cast<uint32_t>(list->size()));
    for (int32_t value : *list) out.word(static_cast<uint32_t>(value));
  }
  return out.take();
}

bool CodeImage::parse(std::string_view text, CodeImage& image) {
  Reader in(text);
  std::string_view code = in.bytes();
  image.bytes.assign(code.begin(), code.end());
  image.run_offset = in.word();
  image.scratch_offset = in.word();
  image.imports.clear();
  for (uint32_t n = in.word(); n > 0 && in.good(); --n) {
    std::string name(in.bytes());
    image.imports.push_back({std::move(name), in.word()});
  }
  image.shape_exprs = in.numbers();
  image.resample_exprs = in.numbers();
  return in.good() && in.at_end() && image.run_offset < image.bytes.size();
}

void* import_address(std::string_view name) {
  struct Entry {
    std::string_view name;
    void* address;
  };
  // clang-format off
  const Entry entries[] = {
      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memmove", reinterpret_cast<void*>(&std::memmove)},
      {"memset", reinterpret_cast<void*>(&std::memset)},
      {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(&::fma))},
      {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(&::fmaf))},
      {"floor", reinterpret_cast<void*>(static_cast<double (*)(double)>(&::floor))},
      {"floorf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&::floorf))},
      {"ceil", reinterpret_cast<void*>(static_cast<double (*)(double)>(&::ceil))},
      {"ceilf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&::ceilf))},
      {"trunc", reinterpret_cast<void*>(static_cast<double (*)(double)>(&::trunc))},
      {"truncf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&::truncf))},
      // To nearest even: the rounding mode is never changed.
      {"roundeven", reinterpret_cast<void*>(static_cast<double (*)(double)>(&::rint))},
      {"roundevenf", reinterpret_cast<void*>(static_cast<float (*)(float)>(&::rintf))},
      {"__truncsfhf2", reinterpret_cast<void*>(&__truncsfhf2)},
      {"__truncdfhf2", reinterpret_cast<void*>(&__truncdfhf2)},
      {"__extendhfsf2", reinterpret_cast<void*>(&__extendhfsf2)},
  };
  // clang-format on
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.address;
  return nullptr;
}

}  // namespace zephon
