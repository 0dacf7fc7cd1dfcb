#pragma once
// The random programs of both generators under one number: even ones have a model beside them
// (tests/random_programs.h), odd ones are made of all operators (tests/wide_programs.h).

#include <cstdlib>
#include <map>
#include <string>

#include "tests/random_programs.h"
#include "tests/wide_programs.h"

namespace zephon {

struct AnyProgram {
  uint64_t number = 0;
  std::string text;
  std::map<std::string, std::string> params;
  uint64_t epochs = 1;
};

/// `folder` holds the data of write_wide_data(); tables of the program are written there.
inline AnyProgram any_program(uint64_t number, const std::string& folder) {
  if (number % 2 == 0) {
    RandomProgram narrow = random_program(number / 2, folder);
    return {number, narrow.text, {{"seed", std::to_string(narrow.description.seed)}}, narrow.description.epochs};
  }
  WideProgram wide = wide_program(number / 2);
  return {number, wide.text, wide.params, wide.epochs};
}

/// The environment variable as a number, or `otherwise`.
inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace zephon
