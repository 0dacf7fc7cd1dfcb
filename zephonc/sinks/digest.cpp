#include "zephonc/sinks/digest.h"

#include <fmt/format.h>
#include <xxhash.h>
// After xxhash.h: picks the widest vector form that the machine has; the value does not depend on it.
#include <xxh_x86dispatch.h>

#include <bit>
#include <fstream>
#include <vector>

namespace zephon {
static_assert(std::endian::native == std::endian::little);
namespace {

class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~Hasher() { XXH3_freeState(state_); }
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void bytes(const void* data, size_t size) {
    if (size != 0) XXH3_128bits_update(state_, data, size);
  }
  void number(uint64_t value) { bytes(&value, sizeof(value)); }
  void text(std::string_view value) {
    number(value.size());
    bytes(value.data(), value.size());
  }
  void field(const DeliveredField& field) {
    text(field.name);
    text(elem_name(field.elem));
    number(field.shape.size());
    for (int64_t extent : field.shape) number(static_cast<uint64_t>(extent));
    if (!is_string(field.elem)) return bytes(field.data, field.byte_size());
    for (int64_t i = 0; i < field.count(); ++i) text(field.strings()[i].view());
  }
  RecordDigest value() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_));
    RecordDigest out;
    std::copy(std::begin(canonical.digest), std::end(canonical.digest), out.begin());
    return out;
  }

 private:
  XXH3_state_t* state_;
};

}  // namespace

struct RunDigest::State {
  Hasher hasher;
};

RunDigest::RunDigest() : state_(std::make_unique<State>()) {}
RunDigest::~RunDigest() = default;
void RunDigest::add(const RecordDigest& digest) { state_->hasher.bytes(digest.data(), digest.size()); }
RecordDigest RunDigest::value() const { return state_->hasher.value(); }

RecordDigest digest_of(const DeliveredRecord& record) {
  Hasher hasher;
  hasher.number(record.fields.size());
  for (const DeliveredField& field : record.fields) hasher.field(field);
  return hasher.value();
}

RecordDigest digest_of(const DeliveredField& field) {
  Hasher hasher;
  hasher.field(field);
  return hasher.value();
}

std::string hex(const RecordDigest& digest) {
  std::string out;
  for (uint8_t byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

std::string hex_digest(std::string_view bytes) {
  Hasher hasher;
  hasher.bytes(bytes.data(), bytes.size());
  return hex(hasher.value());
}

std::optional<std::string> file_digest(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Hasher hasher;
  std::vector<char> piece(1 << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    hasher.bytes(piece.data(), static_cast<size_t>(in.gcount()));
  if (!in.eof()) return std::nullopt;
  return hex(hasher.value());
}

}  // namespace zephon
