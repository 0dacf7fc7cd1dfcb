#pragma once
#include <optional>
#include <string>

#include "graph/value.h"

namespace zephon {

/// The whole file; nothing and `failure` (R0401) where it cannot be read.
std::optional<std::string> read_whole_file(const std::string& path, Failure& failure);

}  // namespace zephon
