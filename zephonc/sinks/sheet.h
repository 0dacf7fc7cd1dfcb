#pragma once
// Pictures for people: one PNG per picture (`show --png`), or a contact sheet of what a run delivered (`--sheet`).
// A picture is u8 [h, w], [h, w, 1] or [h, w, 3], or a float [1, h, w] or [3, h, w], which is scaled from its own
// minimum and maximum to 0 .. 255.

#include <memory>
#include <string>
#include <vector>

#include "zephonc/sinks/record.h"

namespace zephon {

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  ///< height * width * 3
};

/// The pictures of a field: one per member of a batch; empty where it holds none.
std::vector<Picture> pictures_of(const DeliveredField& field, bool batched, size_t limit = SIZE_MAX);
std::optional<Failure> write_png(const Picture& picture, const std::string& path);

/// The first pictures of the run, in order, in a grid of at most 8 x 8; nothing is written where there was none.
std::unique_ptr<Writer> make_sheet_writer(const std::string& path);

}  // namespace zephon
