#pragma once
// Arrays in files, row by row: what stands where in .npy, .npz and raw files. A row is found by its offset; nothing but
// the row is read.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "ops/file_io.h"

namespace zephon {

/// Where the rows of one column lie in a file. A plain struct: the source hands it on as bytes.
struct ArrayPlace {
  uint64_t begin = 0;   ///< of row 0
  uint64_t stride = 0;  ///< bytes from row to row; Fortran order: of one element
  uint64_t rows = 0;
  uint32_t item = 0;     ///< bytes of one element in the file
  uint8_t rank = 0;      ///< of a row
  Elem elem = Elem::U8;  ///< of an element; Bytes: `item` bytes padded with zeros; Str: `item` / 4 code points (UTF-32)
  bool swap = false;     ///< big-endian
  bool is_unsigned = false;  ///< of 4 or 8 bytes, without a type here: read as i64
  bool fortran = false;  ///< element e of row r lies at begin + (r + rows * e') * stride, e' in Fortran order
  int64_t shape[kMaxRank] = {};
};

/// Reads the header of a .npy file (versions 1 to 3) that begins at `offset`; `end` is where the array must end at the
/// latest. Returns what is wrong, to follow "`path` ", or "".
std::string read_npy_header(const InputFile& file, uint64_t offset, uint64_t end, ArrayPlace& place);

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint64_t data = 0;    ///< offset of its bytes in the file
  uint64_t stored = 0;  ///< bytes in the file
  uint64_t size = 0;    ///< bytes of content
  uint32_t crc = 0;
};
/// Lists the entries of a zip archive, zip64 too. Returns what is wrong, or "".
std::string list_zip(const InputFile& file, std::vector<ZipEntry>& entries);

/// Elements of 4 or 8 bytes without a sign.
void read_unsigned(ArrayPlace& place, uint32_t bytes);

/// Whether the rows of `place` may be read as `type`: the same elements, rank, and extents where they are known.
bool place_fits(const ArrayPlace& place, const Type& type);
/// "f32[28, 28]".
std::string place_type(const ArrayPlace& place);

/// What a source hands on for a row: its number, and the file's pieces. Bytes of `$row`.
struct ArrayRow {
  uint64_t row = 0;
  int64_t file_size = 0, seconds = 0, nanoseconds = 0;  ///< of the file, when it was opened
};
/// `path` is opened; messages say `shown`, where that is another name.
std::string pack_file(const struct stat& status, const std::string& path, const std::vector<ArrayPlace>& places,
                      const std::string& shown = {});

}  // namespace zephon
