#pragma once
// The ends of integer types.

#include <cstdint>

#include "graph/types.h"

namespace zephon {

/// Of bool, u8 and the signed types; of others those of i64, from 0.
inline int64_t least_of(Elem elem) {
  switch (elem) {
    case Elem::I8:
      return INT8_MIN;
    case Elem::I16:
      return INT16_MIN;
    case Elem::I32:
      return INT32_MIN;
    case Elem::I64:
      return INT64_MIN;
    default:
      return 0;
  }
}

inline int64_t greatest_of(Elem elem) {
  switch (elem) {
    case Elem::Bool:
      return 1;
    case Elem::U8:
      return UINT8_MAX;
    case Elem::U16:
      return UINT16_MAX;
    case Elem::I8:
      return INT8_MAX;
    case Elem::I16:
      return INT16_MAX;
    case Elem::I32:
      return INT32_MAX;
    default:
      return INT64_MAX;
  }
}

}  // namespace zephon
