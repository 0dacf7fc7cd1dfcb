// The sources of arrays: npy, npz, raw.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "graph/identity.h"
#include "ops/array_file.h"
#include "ops/files_in_turn.h"
#include "ops/row_source.h"
#include "ops/stream_op.h"

namespace zephon {
namespace {

// A file without a name, that goes away with us; read by its path under /proc.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    std::string pattern = fmt::format("{}/zephon_XXXXXX", folder && *folder ? folder : "/tmp");
    fd_ = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (fd_ >= 0) ::unlink(pattern.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  /// 0, or an errno.
  int write(const char* data, size_t size) {
    if (fd_ < 0) return EACCES;
    while (size > 0) {
      const ssize_t n = ::write(fd_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      data += n;
      size -= static_cast<size_t>(n);
    }
    return 0;
  }

 private:
  int fd_ = -1;
};

// Content of a deflated entry; what is wrong, or "".
std::string inflate_entry(const InputFile& file, const ZipEntry& entry, TemporaryFile& to) {
  constexpr size_t kBlock = 64 << 10;
  std::string in(kBlock, '\0'), out(kBlock, '\0');
  z_stream z = {};
  if (inflateInit2(&z, -15) != Z_OK) return "no memory";
  uint64_t read = 0, made = 0;
  uLong crc = crc32(0, nullptr, 0);
  int result = Z_OK;
  std::string error;
  while (result == Z_OK && error.empty()) {
    if (z.avail_in == 0) {
      const auto want = static_cast<size_t>(std::min<uint64_t>(kBlock, entry.stored - read));
      const int64_t n = want ? file.read_at(entry.data + read, in.data(), want) : 0;
      if (n <= 0) error = "it is cut off";
      read += n > 0 ? static_cast<uint64_t>(n) : 0;
      z.next_in = reinterpret_cast<Bytef*>(in.data());
      z.avail_in = n > 0 ? static_cast<uInt>(n) : 0;
    }
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = kBlock;
    if (error.empty()) result = inflate(&z, Z_NO_FLUSH);
    const size_t n = kBlock - z.avail_out;
    made += n;
    if (made > entry.size) error = "it is longer than its table of contents says";
    crc = crc32(crc, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(n));
    if (error.empty())
      if (const int e = to.write(out.data(), n)) error = fmt::format("a temporary file: {}", error_words(e));
    if (result == Z_BUF_ERROR && z.avail_in == 0) result = Z_OK;
  }
  if (error.empty() && (result != Z_STREAM_END || made != entry.size || crc != entry.crc)) error = "it is damaged";
  inflateEnd(&z);
  return error;
}

class ArraySource final : public Source {
 public:
  explicit ArraySource(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  bool open(const Node& node, Failure& failure) {
    const Schema& schema = node.attrs.get<Schema>("columns");
    for (const Field& field : node.type.fields) {
      has_path_ = has_path_ || field.name == "path";
      has_index_ = has_index_ || field.name == "index";
    }
    for (const std::string& path : paths_) {
      InputFile file;
      if (const int error = file.open(path)) {
        failure = cannot_read(path, error, node.origin);
        return false;
      }
      File& opened = files_.emplace_back();
      opened.first = rows_;
      std::vector<ArrayPlace> places;
      std::string error;
      if (node.op->name == "npy") {
        error = read_npy_header(file, 0, file.size(), places.emplace_back());
        if (error.empty()) error = check(schema.columns[0], places[0]);
      } else if (node.op->name == "npz") {
        error = open_npz(file, path, schema, places, opened);
      } else {
        error = open_raw(file, node, schema, places);
      }
      if (!error.empty()) {
        failure = {"R0402", fmt::format("`{}` {}", shown_file(path), error), node.origin};
        return false;
      }
      if (opened.pieces.empty()) {
        for (const ArrayPlace& place : places) opened.pieces.push_back(place);
        opened.packed = pack_file(file.status(), path, opened.pieces);
      }
      rows_ += places[0].rows;
    }
    return true;
  }

  uint64_t size() const override { return rows_; }
  void read(uint64_t position, std::span<TensorRef> columns, const NativeCall& allocator) const override {
    const size_t f = file_of(position);
    const File& file = files_[f];
    const uint64_t row = position - file.first;
    auto* bytes = static_cast<char*>(allocator.alloc(file.packed.size()));
    std::memcpy(bytes, file.packed.data(), file.packed.size());
    std::memcpy(bytes, &row, sizeof(row));
    auto put = [&](size_t c, Elem elem, auto value) {
      TensorRef& column = columns[c];
      if (!column.data) column.data = allocator.alloc(sizeof(value));
      column.rank = 0;
      column.elem = elem;
      *static_cast<decltype(value)*>(column.data) = value;
    };
    put(0, Elem::Bytes, StringRef{bytes, file.packed.size()});
    size_t next = 1;
    if (has_path_) put(next++, Elem::Path, StringRef{paths_[f].data(), paths_[f].size()});
    if (has_index_) put(next++, Elem::I64, static_cast<int64_t>(row));
  }
  std::string describe(uint64_t position) const override {
    const size_t f = file_of(position);
    return fmt::format("{}, row {}", shown_file(paths_[f]), position - files_[f].first);
  }
  std::string fingerprint() const override {
    std::vector<uint64_t> words;
    for (const std::string& path : paths_) words.push_back(file_fingerprint(path));
    return fmt::format("arrays {} {:016x}", rows_, hash_words(words));
  }
  std::vector<std::string> files() const override { return paths_; }
  std::vector<uint64_t> row_counts() const {
    std::vector<uint64_t> counts;
    for (size_t i = 0; i < files_.size(); ++i)
      counts.push_back((i + 1 < files_.size() ? files_[i + 1].first : rows_) - files_[i].first);
    return counts;
  }

 private:
  struct File {
    uint64_t first = 0;
    std::vector<ArrayPlace> pieces;
    std::string packed;  // what `$row` holds, but for the row
    std::unique_ptr<TemporaryFile> inflated;
  };

  size_t file_of(uint64_t position) const {
    auto behind = std::upper_bound(files_.begin(), files_.end(), position,
                                   [](uint64_t p, const File& file) { return p < file.first; });
    return static_cast<size_t>(behind - files_.begin()) - 1;
  }

  static std::string check(const Field& column, const ArrayPlace& place) {
    if (place_fits(place, column.type)) return {};
    return fmt::format("has rows of `{}`, the program declares `{}: {}`", place_type(place), column.name,
                       to_string(column.type));
  }

  static std::string open_npz(const InputFile& file, const std::string& path, const Schema& schema,
                              std::vector<ArrayPlace>& places, File& opened) {
    std::vector<ZipEntry> entries;
    if (std::string error = list_zip(file, entries); !error.empty()) return error;
    // The arrays asked for that are deflated go into one temporary file, one behind the other. A file has either form
    // for all of its arrays: what is stored is copied too then.
    std::vector<const ZipEntry*> wanted;
    bool deflated = false;
    for (const Field& column : schema.columns) {
      auto entry = std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& e) {
        return e.name == column.name + ".npy" || e.name == column.name;
      });
      if (entry == entries.end()) {
        std::string names;
        for (const ZipEntry& e : entries)
          if (names.size() < 200)
            names += fmt::format("{}`{}`", names.empty() ? "" : ", ",
                                 shown_path(e.name.ends_with(".npy") ? e.name.substr(0, e.name.size() - 4) : e.name));
        return fmt::format("has no array `{}`; it has {}", column.name, names.empty() ? "none" : names);
      }
      wanted.push_back(&*entry);
      deflated = deflated || entry->deflated;
    }
    if (deflated) opened.inflated = std::make_unique<TemporaryFile>();
    uint64_t at = 0;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const ZipEntry* entry : wanted) {
      if (!deflated) {
        ranges.emplace_back(entry->data, entry->data + entry->size);
        continue;
      }
      std::string error =
          entry->deflated ? inflate_entry(file, *entry, *opened.inflated) : copy(file, *entry, *opened.inflated);
      if (!error.empty()) return fmt::format("cannot be read in `{}`: {}", shown_path(entry->name), error);
      ranges.emplace_back(at, at + entry->size);
      at += entry->size;
    }
    InputFile temporary;
    if (deflated)
      if (const int error = temporary.open(opened.inflated->path()))
        return fmt::format("cannot be read: a temporary file: {}", error_words(error));
    const InputFile& source = deflated ? temporary : file;
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::string error = read_npy_header(source, ranges[i].first, ranges[i].second, places.emplace_back());
      if (!error.empty()) return fmt::format("has an array `{}` that {}", schema.columns[i].name, error);
      if (error = check(schema.columns[i], places[i]); !error.empty()) return error;
      if (places[i].rows != places[0].rows)
        return fmt::format("has {} rows in `{}` and {} in `{}`", places[0].rows, schema.columns[0].name, places[i].rows,
                           schema.columns[i].name);
    }
    opened.pieces = places;
    opened.packed = pack_file(source.status(), deflated ? opened.inflated->path() : path, places, deflated ? path : "");
    return {};
  }

  static std::string copy(const InputFile& file, const ZipEntry& entry, TemporaryFile& to) {
    std::string block(64 << 10, '\0');
    for (uint64_t done = 0; done < entry.size;) {
      const int64_t n = file.read_at(entry.data + done, block.data(),
                                     static_cast<size_t>(std::min<uint64_t>(block.size(), entry.size - done)));
      if (n <= 0) return "it is cut off";
      if (const int e = to.write(block.data(), static_cast<size_t>(n))) return error_words(e);
      done += static_cast<uint64_t>(n);
    }
    return {};
  }

  static std::string open_raw(const InputFile& file, const Node& node, const Schema& schema,
                              std::vector<ArrayPlace>& places) {
    const auto offset = static_cast<uint64_t>(node.attrs.integer("offset"));
    uint64_t record = 0;
    for (const Field& column : schema.columns) {
      ArrayPlace& place = places.emplace_back();
      place.elem = column.type.elem;
      place.item = static_cast<uint32_t>(elem_size(place.elem));
      for (const uint32_t bytes : {4U, 8U})
        if (std::ranges::count(node.attrs.get<std::vector<std::string>>(bytes == 4 ? "u32" : "u64"), column.name) > 0)
          read_unsigned(place, bytes);
      place.rank = static_cast<uint8_t>(column.type.rank());
      for (size_t d = 0; d < column.type.rank(); ++d) place.shape[d] = column.type.shape[d].extent;
      place.swap = node.attrs.text("byte_order") == "big";
      place.begin = offset + record;
      record += static_cast<uint64_t>(column.type.element_count()) * place.item;
    }
    const uint64_t bytes = file.size() > offset ? file.size() - offset : 0;
    if (bytes % record != 0)
      return fmt::format("has {} bytes{}, which is no multiple of the {} bytes of a record", bytes,
                         offset ? fmt::format(" behind byte {}", offset) : "", record);
    for (ArrayPlace& place : places) {
      place.stride = record;
      place.rows = bytes / record;
    }
    return {};
  }

  std::vector<std::string> paths_;
  std::vector<File> files_;
  uint64_t rows_ = 0;
  bool has_path_ = false, has_index_ = false;
};

std::unique_ptr<Source> open(const Node& node, const OpenContext& context, Failure& failure) {
  std::vector<std::string> paths = matching_files(node, context, node.attrs.text("glob"), failure);
  if (paths.empty()) return nullptr;
  auto source = std::make_unique<ArraySource>(std::move(paths));
  if (!source->open(node, failure)) return nullptr;
  const std::vector<uint64_t> rows = source->row_counts();
  return files_in_turn(std::move(source), rows, node);
}

void infer(const Node& node, std::span<const StreamType>, StreamType& out, std::string& error) {
  const std::vector<Field>& columns = node.attrs.get<Schema>("columns").columns;
  out = {};
  out.fields = {{"$row", Type::scalar(Elem::Bytes)}};
  auto declared = [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(), [&](const Field& c) { return c.name == name; });
  };
  if (!declared("path")) out.fields.push_back({"path", Type::scalar(Elem::Path)});
  if (!declared("index")) out.fields.push_back({"index", Type::scalar(Elem::I64)});
  if (columns.empty()) error = fmt::format("`{}` needs a column", node.op->name);
  for (const Field& column : columns)
    if (column.name.find_first_of("?[].") != std::string::npos)
      error =
          fmt::format("`{}`: an array of a file has numbers or texts of one shape, no lists, records or missing values",
                      column.name.substr(0, column.name.find_first_of("?[].")));
  if (node.op->name == "npy" && columns.size() > 1)
    error = "a .npy file holds one array: declare one column, such as `{image: u8[28, 28]}`";
  if (error.empty()) error = files_in_turn_problem(node);
  if (node.op->name != "raw") return;
  std::vector<std::string> stored = node.attrs.get<std::vector<std::string>>("u32");
  const auto& u64 = node.attrs.get<std::vector<std::string>>("u64");
  stored.insert(stored.end(), u64.begin(), u64.end());
  for (const std::string& name : stored) {
    const auto at = std::find_if(columns.begin(), columns.end(), [&](const Field& c) { return c.name == name; });
    if (at == columns.end())
      error = fmt::format("no column is called `{}`", name);
    else if (at->type.elem != Elem::I64)
      error = fmt::format("`{}` lies in the file without a sign, and is declared as `{}`: declare it as `i64`", name,
                          elem_name(at->type.elem));
    else if (std::ranges::count(stored, name) > 1)
      error = fmt::format("`{}` stands twice in `u32` and `u64`", name);
  }
  for (const Field& column : columns) {
    constexpr int64_t kLargest = int64_t{1} << 40;
    if (is_string(column.type.elem))
      error = fmt::format("`{}` is no number: a record of a raw file has numbers of fixed size", column.name);
    else if (!column.type.has_static_shape())
      error = fmt::format("`{}` has a size that is not known: a record of a raw file has numbers of fixed size",
                          column.name);
    int64_t count = 1;
    for (const Dim& d : column.type.shape)
      if (error.empty() && (__builtin_mul_overflow(count, d.extent, &count) || count > kLargest || count < 1))
        error = fmt::format("`{}` has from 1 to 2^40 elements", column.name);
  }
}

}  // namespace

ZEPHON_OP_DEF(Npy) = {
    .name = "npy",
    .cls = OpClass::Source,
    .signature = "glob: string, columns: schema, cycle_length: int? >= 1, block_length: int = 1 >= 1 -> stream",
    .summary = "One sample for each row (first axis) of the arrays in the .npy files that match.",
    .prose =
        "`columns` names the field and declares the rows: `npy(\"x/*.npy\", columns={image: u8[28, 28]})`; a name in "
        "place of "
        "an extent stands for any. Fields `path` and `index` (row in the file, from 0) say where a row is from. Every "
        "header is compared with the declaration before the run. A row is read by its offset, where it is needed: "
        "`shuffle()` costs no memory. `cycle_length` and `block_length` are those of `text_lines`. Versions 1 to 3, "
        "both byte orders, both array orders (of Fortran's each element "
        "is "
        "read by itself: slow), numbers, `bool`, `S` (as `bytes` or `str`) and `U`; uint32 and uint64 are declared as "
        "`i64`, and a number above the largest fails its sample; no objects, records, complex numbers, times.",
    .example = "npy(\"examples/data/ecg.npy\", columns={signal: i16[720]}) | take(2)",
    .implicit_column = "array_row",
    .kernel = {.open = open},
    .infer_stream = infer,
};

ZEPHON_OP_DEF(Npz) = {
    .name = "npz",
    .cls = OpClass::Source,
    .signature = "glob: string, columns: schema, cycle_length: int? >= 1, block_length: int = 1 >= 1 -> stream",
    .summary = "One sample for each row (first axis) of the named arrays in the .npz files that match.",
    .prose =
        "The names of the columns are those of the arrays: `npz(\"set.npz\", columns={x: f32[3], y: i64})`; of one "
        "file all "
        "have the same number of rows. The rest is as for `npy`. Arrays written by `savez_compressed` are "
        "unpacked into a temporary file (in $TMPDIR) when the run begins.",
    .example = "npz(\"examples/data/ecg.npz\", columns={signal: i16[720], second: i64}) | take(2)",
    .implicit_column = "array_row",
    .kernel = {.open = open},
    .infer_stream = infer,
};

ZEPHON_OP_DEF(Raw) = {
    .name = "raw",
    .cls = OpClass::Source,
    .signature =
        "glob: string, columns: schema, offset: int = 0 >= 0, byte_order: enum(little, big) = little, u32: strings = "
        "[], "
        "u64: strings = [], "
        "cycle_length: int? >= 1, block_length: int = 1 >= 1 -> stream",
    .summary =
        "One sample for each record of the binary files that match: numbers of fixed size, one behind the other.",
    .prose =
        "`columns` declares a record in the order of its bytes, without gaps: CIFAR-10 is `raw(\"*.bin\", "
        "columns={label: u8, "
        "image: u8[3, 32, 32]})`. Columns named in `u32` and `u64` lie in the file as such numbers, are declared as "
        "`i64`, "
        "and fail where one is above the largest: `columns={id: i64}, u32=\"id\"`. Each file has a whole number of "
        "records behind byte `offset`. Fields `path` and "
        "`index` (record in the file, from 0) say where a record is from. `cycle_length` and `block_length` are those "
        "of `text_lines`.",
    .example = "raw(\"examples/data/ecg.i16\", columns={signal: i16[720]})",
    .implicit_column = "array_row",
    .kernel = {.open = open},
    .infer_stream = infer,
};

}  // namespace zephon
