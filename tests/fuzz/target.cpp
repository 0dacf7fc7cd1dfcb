// One libFuzzer target; FUZZ_TARGET says what takes the text: "zpl" and "yaml" the parsers, "check" everything up to
// the typed graph, in the form that the text looks like. `TARGET --seeds FOLDER` writes what to begin with.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tests/fuzz/programs.h"

extern "C" {
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);  // libFuzzer's own
}

namespace {

constexpr std::string_view kTarget = FUZZ_TARGET;

const std::vector<zephon::Seed>& seeds() {
  static const std::vector<zephon::Seed> all = [] {
    std::vector<zephon::Seed> out;
    for (zephon::Seed& seed : zephon::fuzz_seeds()) {
      const bool yaml = seed.form == zephon::Form::Yaml;
      if (kTarget == "check" || yaml == (kTarget == "yaml")) out.push_back(std::move(seed));
    }
    return out;
  }();
  return all;
}

}  // namespace

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 3 || std::string_view((*argv)[1]) != "--seeds") return 0;
  const std::filesystem::path folder = (*argv)[2];
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < seeds().size(); ++i) std::ofstream(folder / std::to_string(i)) << seeds()[i].text;
  std::exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string bad;
  if (kTarget == "check") {
    bad = zephon::trouble_of_checker(text, zephon::looks_like_yaml(text) ? zephon::Form::Yaml : zephon::Form::Zpl);
  } else {
    bad = zephon::trouble_of_parser(text, kTarget == "yaml" ? zephon::Form::Yaml : zephon::Form::Zpl);
  }
  if (!bad.empty()) {
    std::fprintf(stderr, "%s\n--- program\n%s\n", bad.c_str(), text.c_str());
    std::abort();
  }
  return 0;
}

// Bytes alone seldom give a program that parses: every other time, tokens.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937_64 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string changed = zephon::mutate_tokens(text, random, seeds()[random() % seeds().size()].text);
  const size_t length = std::min(changed.size(), max_size);
  std::copy_n(changed.begin(), length, data);
  return length;
}
