#pragma once
// Object file -> image.

#include <string>
#include <string_view>

#include "runtime/kernels/code_image.h"

namespace zephon {

/// Lays out what `run` and `scratch` of an ELF object need, in image.bytes, with the offsets of both. False with
/// `error` where that would not be position independent (our bug).
bool link_image(std::string_view object, CodeImage& image, std::string& error);

}  // namespace zephon
