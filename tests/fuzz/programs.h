#pragma once
// What the fuzzers share: programs to begin with, mutations, and what must hold for any text at all.

#include <random>
#include <string>
#include <vector>

#include "frontend/print.h"

namespace zephon {

struct Seed {
  std::string text;
  Form form;
};

/// The examples, the golden programs and what fuzzers found once (tests/data/fuzz); in an order that is the same
/// everywhere.
std::vector<Seed> fuzz_seeds();

/// What libFuzzer kept of a target (tests/fuzz/corpus).
std::vector<std::string> kept_inputs(const std::string& target);
/// The form in which the checker's target takes a text.
bool looks_like_yaml(const std::string& text);

/// A few bytes of `text` changed, lost, doubled, or taken from `other`.
std::string mutate_bytes(std::string text, std::mt19937_64& random, const std::string& other);
/// The same with tokens: words of the language and names of operators among them.
std::string mutate_tokens(const std::string& text, std::mt19937_64& random, const std::string& other);

/// An empty string, or what is wrong with how the parser takes `text`: a message without a place, a bug of ours, or a
/// program that is another one after it is printed.
std::string trouble_of_parser(const std::string& text, Form form);
/// The same for everything up to the typed graph.
std::string trouble_of_checker(const std::string& text, Form form);

}  // namespace zephon
