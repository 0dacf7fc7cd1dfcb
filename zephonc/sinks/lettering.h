#pragma once
// Words in pictures.

#include <cstdint>
#include <string_view>

#include "zephonc/sinks/sheet.h"

namespace zephon {

inline constexpr int64_t kGlyphHeight = 10, kGlyphWidth = 6;  ///< pixels, with the space between lines and letters

/// How many letters the text has; those outside of ASCII are drawn as `?`.
int64_t letters_of(std::string_view text);
/// Draws the text in light gray, its upper left corner at (top, left); what lies outside of the picture is left out.
void draw_text(Picture& picture, int64_t top, int64_t left, std::string_view text);

}  // namespace zephon
