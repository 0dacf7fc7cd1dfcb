#pragma once
// Fields as JSON text, written straight into a line: a record can be large, and no tree of it is ever built.

#include <span>
#include <string>
#include <string_view>

#include "zephonc/sinks/record.h"

namespace zephon {

/// Quoted; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
/// Nested arrays; floats in their shortest form that reads back, NaN and infinities as strings, `bytes` in base64.
void append_json(std::string& out, const DeliveredField& field);
/// The same with its companions (graph/leaf_path.h): null where `missing` says so (null pointer: nowhere), lists of lists as they were.
void append_json(std::string& out, const DeliveredField& field, const DeliveredField* missing,
                 std::span<const DeliveredField* const> lengths);

}  // namespace zephon
