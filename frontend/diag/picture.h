#pragma once
// The caret picture of a place that is no diagnostic: why a rule fired there, what stands there.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/diag/diagnostic.h"

namespace zephon {

/// `headline`, the lines of `label` with its markers, then `notes` as word and text ("was", "x + 0"). Ends in a
/// newline. Of a place that is "no place": headline and notes.
std::string picture(std::string_view headline, const Label& label,
                    const std::vector<std::pair<std::string, std::string>>& notes, const SourceMap& sources,
                    const RenderOptions& options = {});

}  // namespace zephon
