#pragma once
// Seeded random programs: as ZPL text, and as the description that the model runs.

#include <cstdint>
#include <string>

#include "tests/model.h"

namespace zephon {

struct RandomProgram {
  uint64_t seed = 0;  ///< of the generator
  model::Program description;
  std::string text;  ///< ZPL; the parameter `seed` is description.seed
};

/// The same program for the same seed, on any machine. Tables are written into `folder`, which relative paths start
/// from.
RandomProgram random_program(uint64_t seed, const std::string& folder);

/// ZPL text of a description.
std::string to_zpl(const model::Program& program);

}  // namespace zephon
