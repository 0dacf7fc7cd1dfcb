#include "zephonc/sinks/record.h"

#include <cstring>

namespace zephon {
namespace {

/// Bits: the word of the element; a NaN is what lies above `infinity` once the sign is cleared.
template <class Bits>
void fix(DeliveredField& field, std::vector<uint8_t>& scratch, Bits infinity, Bits canonical) {
  constexpr Bits kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  const size_t count = static_cast<size_t>(field.count());
  const Bits* in = static_cast<const Bits*>(field.data);
  size_t others = 0;
  for (size_t i = 0; i < count; ++i) others += ((in[i] & kMagnitude) > infinity) & (in[i] != canonical);
  if (others == 0) return;
  scratch.resize(count * sizeof(Bits));
  Bits* out = reinterpret_cast<Bits*>(scratch.data());
  for (size_t i = 0; i < count; ++i) out[i] = (in[i] & kMagnitude) > infinity ? canonical : in[i];
  field.data = out;
}

}  // namespace

void make_nans_canonical(DeliveredField& field, std::vector<uint8_t>& scratch) {
  switch (field.elem) {
    case Elem::F16:
      return fix<uint16_t>(field, scratch, 0x7c00, 0x7e00);
    case Elem::BF16:
      return fix<uint16_t>(field, scratch, 0x7f80, 0x7fc0);
    case Elem::F32:
      return fix<uint32_t>(field, scratch, 0x7f800000, 0x7fc00000);
    case Elem::F64:
      return fix<uint64_t>(field, scratch, 0x7ff0000000000000, 0x7ff8000000000000);
    default:
      return;
  }
}

}  // namespace zephon
