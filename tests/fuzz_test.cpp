// Mutated programs, bytes and tokens, in both forms: no crash, no hang, and every message has a place. What still
// parses is printed and read again. ZEPHON_FUZZ=N mutates N programs (`./dev fuzz`: 20,000).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/fuzz/programs.h"

namespace zephon {
namespace {

std::string trouble(const std::string& text, Form form) {
  std::string bad = trouble_of_parser(text, form);
  return bad.empty() ? trouble_of_checker(text, form) : bad;
}

TEST(Fuzz, MutatedPrograms) {
  const char* wanted = std::getenv("ZEPHON_FUZZ");
  const size_t count = wanted != nullptr ? std::stoul(wanted) : 3000;
  std::vector<Seed> all = fuzz_seeds();
  ASSERT_GT(all.size(), 50u);
  // The same programs on every machine, in whatever order a folder lists its files.
  std::sort(all.begin(), all.end(), [](const Seed& a, const Seed& b) { return a.text < b.text; });
  for (const Seed& seed : all) EXPECT_EQ(trouble(seed.text, seed.form), "") << seed.text;
  std::mt19937_64 random(20261129);
  int faults = 0;
  for (size_t i = 0; i < count && faults < 5; ++i) {
    const Seed& seed = all[random() % all.size()];
    const std::string& other = all[random() % all.size()].text;
    std::string text = i % 2 == 0 ? mutate_bytes(seed.text, random, other) : mutate_tokens(seed.text, random, other);
    auto begin = std::chrono::steady_clock::now();
    std::string bad = trouble(text, seed.form);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (bad.empty() && seconds.count() > 5) bad = "it takes " + std::to_string(seconds.count()) + " s";
    if (bad.empty()) continue;
    ++faults;
    ADD_FAILURE() << "program " << i << " (" << (seed.form == Form::Yaml ? "yaml" : "zpl") << "): " << bad
                  << "\n--- program\n"
                  << text;
  }
}

// What libFuzzer found worth keeping: no crash under gcc either, and no trouble.
TEST(Fuzz, KeptInputs) {
  for (const char* target : {"zpl", "yaml", "check"}) {
    std::vector<std::string> kept = kept_inputs(target);
    EXPECT_FALSE(kept.empty()) << target;
    for (const std::string& text : kept) {
      const bool yaml = target == std::string_view("yaml") || looks_like_yaml(text);
      EXPECT_EQ(trouble(text, yaml ? Form::Yaml : Form::Zpl), "") << target << "\n--- program\n" << text;
    }
  }
}

}  // namespace
}  // namespace zephon
