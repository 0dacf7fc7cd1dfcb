#pragma once
// Static (compile-time) arguments of an operator, after parameters and lets have been folded.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/types.h"

namespace zephon {

/// A declared table: column names and types in file order (`columns={a: f32, name: str}`).
struct Schema {
  std::vector<Field> columns;
  bool operator==(const Schema&) const = default;
};

using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Schema, Elem>;

/// Ordered by name, so that printing and hashing are deterministic. Every declared static parameter is present
/// (defaults are filled in by the front end), except optional ones without a value.
class Attrs {
 public:
  bool has(std::string_view name) const { return map_.find(name) != map_.end(); }
  template <class T>
  const T& get(std::string_view name) const { return std::get<T>(map_.find(name)->second); }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  double number(std::string_view name) const { return get<double>(name); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  void set(std::string name, Attr value) { map_.insert_or_assign(std::move(name), std::move(value)); }
  auto begin() const { return map_.begin(); }
  auto end() const { return map_.end(); }
  bool empty() const { return map_.empty(); }
  bool operator==(const Attrs&) const = default;

 private:
  std::map<std::string, Attr, std::less<>> map_;
};
std::string to_string(const Attr& attr);

}  // namespace zephon
