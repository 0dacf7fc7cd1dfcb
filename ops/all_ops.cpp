#include "ops/all_ops.h"

#include <algorithm>

namespace zephon {
namespace ops {
#define ZEPHON_OP(Name) extern const OpDef Name;
#include "ops/all_ops.def"
#undef ZEPHON_OP
}  // namespace ops

const OpTable& all_ops() {
  static constexpr const OpDef* kOps[] = {
#define ZEPHON_OP(Name) &ops::Name,
#include "ops/all_ops.def"
#undef ZEPHON_OP
  };
  static const OpTable table = [] {
    auto by_name = [](const OpDef* a, const OpDef* b) { return a->name < b->name; };
    ZEPHON_CHECK(std::is_sorted(std::begin(kOps), std::end(kOps), by_name), "ops/all_ops.def is out of order");
    return OpTable(kOps);
  }();
  return table;
}

}  // namespace zephon
