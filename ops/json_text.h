#pragma once
// JSON as the source `jsonl` reads it: one object a line, split once into the texts of the declared keys, each of which
// is read only where its field is needed. simdjson parses; here stand the rules of records, lists and missing values
// (graph/leaf_path.h).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/leaf_path.h"
#include "graph/types.h"

namespace zephon {

/// Splits `line`, which must be one JSON object: texts[i] is what stands at the keys of paths[i] before its first list,
/// a view into `line`. Empty where it is null or absent, or a parent is, and may be; kLacking where it may not;
/// kNoObject where a parent is something else. False with `error` where the line is no JSON, is not UTF-8, holds a
/// number beyond 64 bits, or a declared key twice.
bool split_json_line(std::string_view line, const std::vector<std::string>& paths, std::vector<std::string_view>& texts,
                     std::string& error);
inline constexpr std::string_view kNoObject = "!";
inline constexpr std::string_view kLacking = "?";

/// What one leaf holds. `elements` one after the other: numbers in `data`, strings in `strings`.
struct JsonLeaf {
  std::vector<uint8_t> data;
  std::vector<std::string> strings;
  std::vector<uint8_t> missing;               ///< one per element of the lists
  std::vector<std::vector<int64_t>> lengths;  ///< per depth of the lists
  std::vector<int64_t> shape;                 ///< of one element
  int64_t elements = 0;                       ///< 1 without lists
  bool absent = false;                        ///< the whole value is missing; the rest is as of an empty list or zeros
};
/// Reads the text that split_json_line() found for `path`. `shape`: of one element, -1 where any extent is allowed.
/// False with `error`, which names the key.
bool read_json_leaf(std::string_view text, const std::string& path, Elem elem, const std::vector<int64_t>& shape,
                    JsonLeaf& leaf, std::string& error);
/// A scalar without lists, without a copy where the string has no escapes (`storage` holds it otherwise).
struct JsonScalar {
  int64_t i = 0;
  double f = 0;
  std::string_view s;
};
bool read_json_scalar(std::string_view text, Elem elem, JsonScalar& out, std::string& storage, std::string& error);

}  // namespace zephon
