#pragma once
// Seeded random programs over all operators: made from their signatures, so that a new operator is in them by itself.
// Unlike those of tests/random_programs.h they have no model beside them; the reference interpreter says what they
// mean.

#include <cstdint>
#include <map>
#include <string>

namespace zephon {

struct WideProgram {
  std::string text;  ///< ZPL; may be refused by the checker, a few in a hundred are
  std::map<std::string, std::string> params;
  uint64_t epochs = 1;
  std::string star;  ///< the operator that the program was made for
};

/// The same program for the same seed, on any machine. Its files are those of write_wide_data().
WideProgram wide_program(uint64_t seed);

/// Small files of all kinds, some of their samples broken.
void write_wide_data(const std::string& folder);

}  // namespace zephon
