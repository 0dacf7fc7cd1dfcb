// What `npy`, `npz` and `raw` assign to their fields: one row of an array, read when it is needed.
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "ops/array_file.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

// A row as the source handed it on. Only what `place_fits` said yes to comes here.
struct Request {
  ArrayRow row;
  ArrayPlace place;
  std::string_view path, shown;  // what is opened, and what messages say
};

Request request_of(std::string_view bytes, int64_t index) {
  Request out;
  std::memcpy(&out.row, bytes.data(), sizeof(out.row));
  uint64_t count = 0;
  std::memcpy(&count, bytes.data() + sizeof(out.row), sizeof(count));
  const size_t begin = sizeof(out.row) + sizeof(count);
  std::memcpy(&out.place, bytes.data() + begin + static_cast<size_t>(index) * sizeof(ArrayPlace), sizeof(ArrayPlace));
  out.path = out.shown = bytes.substr(begin + count * sizeof(ArrayPlace));
  if (const size_t end = out.path.find('\0'); end != out.path.npos) {
    out.shown = out.path.substr(end + 1);
    out.path = out.path.substr(0, end);
  }
  return out;
}

bool is_unchanged(const InputFile& file, const ArrayRow& row) {
  return !file.changed() && file.status().st_size == row.file_size && file.status().st_mtim.tv_sec == row.seconds &&
         file.status().st_mtim.tv_nsec == row.nanoseconds;
}

// What is asked of a row: all of it, or elements `first` up to ... of its first dimension.
struct Part {
  int64_t first = 0;
  Shape shape;
};

Part part_of(const ArrayPlace& place, const Attrs& attrs) {
  Part part{0, {place.shape, place.shape + place.rank}};
  if (const int64_t end = attrs.integer("$end"); end > 0) {
    part.first = attrs.integer("$begin");
    part.shape[0] = end - part.first;
  }
  return part;
}

// Bytes of the part in C order, as they stand in the file otherwise.
bool read_part(const InputFile& file, const Request& request, const Part& part, char* to) {
  const ArrayPlace& p = request.place;
  const Shape shape(p.shape, p.shape + p.rank);
  const int64_t count = count_of(part.shape);
  if (!p.fortran) {
    const auto bytes = static_cast<size_t>(count) * p.item;
    uint64_t begin = p.begin + request.row.row * p.stride;
    if (part.first > 0)
      begin += static_cast<uint64_t>(part.first * count_of({shape.begin() + 1, shape.end()})) * p.item;
    return file.read_at(begin, to, bytes) == static_cast<int64_t>(bytes);
  }
  for (int64_t flat = 0; flat < count; ++flat) {
    Shape at = index_at(part.shape, flat);
    if (!at.empty()) at[0] += part.first;
    uint64_t element = 0;
    for (size_t d = shape.size(); d-- > 0;)
      element = element * static_cast<uint64_t>(shape[d]) + static_cast<uint64_t>(at[d]);
    const uint64_t offset = p.begin + (request.row.row + p.rows * element) * p.stride;
    if (file.read_at(offset, to + static_cast<size_t>(flat) * p.item, p.item) != p.item) return false;
  }
  return true;
}

template <class U>
void swap_bytes(char* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    U x;
    std::memcpy(&x, data + static_cast<size_t>(i) * sizeof(U), sizeof(U));
    if constexpr (sizeof(U) == 2) x = __builtin_bswap16(x);
    if constexpr (sizeof(U) == 4) x = __builtin_bswap32(x);
    if constexpr (sizeof(U) == 8) x = __builtin_bswap64(x);
    std::memcpy(data + static_cast<size_t>(i) * sizeof(U), &x, sizeof(U));
  }
}

// Bytes of the file to elements, in place: byte order, canonical NaNs, bool as 0 and 1.
void to_elements(const ArrayPlace& p, char* data, int64_t count) {
  if (p.swap && p.item == 2) swap_bytes<uint16_t>(data, count);
  if (p.swap && p.item == 4) swap_bytes<uint32_t>(data, count);
  if (p.swap && p.item == 8) swap_bytes<uint64_t>(data, count);
  if (!p.is_unsigned) make_nans_canonical(p.elem, data, count);
  if (p.elem == Elem::Bool)
    for (int64_t i = 0; i < count; ++i) data[i] = data[i] != 0;
}

// Numbers without a sign as i64; false where one is above the largest.
bool widen(const ArrayPlace& p, const char* from, int64_t count, int64_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    uint64_t x = 0;
    std::memcpy(&x, from + static_cast<size_t>(i) * p.item, p.item);
    if (x > INT64_MAX) return false;
    to[i] = static_cast<int64_t>(x);
  }
  return true;
}

// A text of fixed width, without the zeros behind it; false where it is no text.
bool to_text(const ArrayPlace& p, Elem elem, const char* data, std::string& out) {
  if (p.elem == Elem::Bytes) {
    std::string_view text(data, p.item);
    text = text.substr(0, text.find_last_not_of('\0') + 1);  // npos + 1 is 0
    out = text;
    return elem != Elem::Str || !find_invalid_utf8(out);
  }
  out.clear();
  std::string padded;
  for (uint32_t i = 0; i < p.item; i += 4) {
    uint32_t c = 0;
    std::memcpy(&c, data + i, 4);
    if (p.swap) c = __builtin_bswap32(c);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
    utf8proc_uint8_t bytes[4];
    const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
    padded.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
    if (c != 0) {
      out += padded;
      padded.clear();
    }
  }
  return true;
}

Value define(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return forward(argument);
  const std::string bytes = argument.at(0).s;
  const Request request = request_of(bytes, call.expr().attrs.integer("index"));
  InputFile file;
  if (const int error = file.open(std::string(request.path))) {
    const Failure failure = cannot_read(request.shown, error, {});
    return Value::failed(call.failure(failure.code, failure.message));
  }
  const ArrayPlace& p = request.place;
  const Elem elem = call.expr().type.elem;
  const Part part = part_of(p, call.expr().attrs);
  Value value(elem, part.shape);
  std::string content(static_cast<size_t>(value.size()) * p.item, '\0');
  if (!is_unchanged(file, request.row) || !read_part(file, request, part, content.data()))
    return Value::failed(
        call.failure("R0406", fmt::format("`{}` has changed since the run began", shown_path(request.shown))));
  if (!is_string(elem)) {
    to_elements(p, content.data(), value.size());
    if (!p.is_unsigned) {
      std::copy(content.begin(), content.end(), value.mutable_bytes().begin());
      return value;
    }
    std::vector<int64_t> numbers(static_cast<size_t>(value.size()));
    if (!widen(p, content.data(), value.size(), numbers.data()))
      return Value::failed(call.failure(
          kBadArithmetic, fmt::format("a number in `{}` is above the largest `i64`", shown_path(request.shown))));
    if (!numbers.empty()) std::memcpy(value.mutable_bytes().data(), numbers.data(), value.bytes().size());
    return value;
  }
  for (int64_t i = 0; i < value.size(); ++i)
    if (!to_text(p, elem, content.data() + static_cast<size_t>(i) * p.item,
                 value.mutable_string_items()[static_cast<size_t>(i)]))
      return Value::failed(call.failure(kBadText, fmt::format("a text in `{}` is not {}", shown_path(request.shown),
                                                              p.elem == Elem::Str ? "Unicode" : "UTF-8")));
  return value;
}

// Files that this thread has read from, the last used first.
const InputFile* open_file(const Request& request) {
  constexpr size_t kMost = 8;
  struct Entry {
    std::string path;
    std::unique_ptr<InputFile> file;
  };
  thread_local std::vector<Entry> open;
  auto at = std::find_if(open.begin(), open.end(), [&](const Entry& e) { return e.path == request.path; });
  if (at != open.end() && !is_unchanged(*at->file, request.row)) {
    open.erase(at);
    at = open.end();
  }
  if (at == open.end()) {
    Entry entry{std::string(request.path), std::make_unique<InputFile>()};
    if (entry.file->open(entry.path) != 0 || !is_unchanged(*entry.file, request.row)) return nullptr;
    if (open.size() == kMost) open.pop_back();
    at = open.insert(open.begin(), std::move(entry));
  } else if (at != open.begin()) {
    std::rotate(open.begin(), at, at + 1);
    at = open.begin();
  }
  return at->file.get();
}

bool run(NativeCall& call) {
  const Request request = request_of(text_of(call.inputs[0]), call.expr->attrs.integer("index"));
  const ArrayPlace& p = request.place;
  const InputFile* file = open_file(request);
  if (!file) return false;
  call.output->elem = call.expr->type.elem;
  const Part part = part_of(p, call.expr->attrs);
  if (!place_output(call, part.shape)) return false;
  TensorRef& out = *call.output;
  if (!is_string(out.elem) && !p.is_unsigned) {
    if (!read_part(*file, request, part, static_cast<char*>(out.data))) return false;
    to_elements(p, static_cast<char*>(out.data), out.size());
    return true;
  }
  std::string content(static_cast<size_t>(out.size()) * p.item, '\0'), text;
  if (!read_part(*file, request, part, content.data())) return false;
  if (p.is_unsigned) {
    to_elements(p, content.data(), out.size());
    return widen(p, content.data(), out.size(), static_cast<int64_t*>(out.data));
  }
  for (int64_t i = 0; i < out.size(); ++i) {
    if (!to_text(p, out.elem, content.data() + static_cast<size_t>(i) * p.item, text)) return false;
    static_cast<StringRef*>(out.data)[i] = store_string(call, text);
  }
  return true;
}

void infer(InferCall& call) {
  call.result = call.attrs.get<Schema>("column").columns[0].type;
  for (Dim& d : call.result.shape)
    if (!d.is_static() && d.symbol.empty()) d = Dim::unknown();
  if (const int64_t end = call.attrs.integer("$end"); end > 0)
    call.result.shape[0] = Dim::of(end - call.attrs.integer("$begin"));
}

}  // namespace

ZEPHON_OP_DEF(ArrayRowOp) = {
    .name = "array_row",
    .cls = OpClass::Opaque,
    .signature = "row: bytes, index: int >= 0, column: schema, $begin: int = 0, $end: int = 0 -> T",
    .summary = "One row of an array in a file.",
    .prose =
        "What `npy`, `npz` and `raw` assign to their fields: the row is read where its field is needed. Fails where "
        "the file "
        "has changed since the run began, where a text is not UTF-8, and where a u64 is above the largest i64.",
    .example = "raw(\"examples/data/ecg.i16\", columns={signal: i16[720]})",
    .effects = {.can_fail = true, .reads_files = true},
    .cost = {.ns_per_call = 1500, .ns_per_element = 0.2},
    .define = {.tensor = define},
    .kernel = {.native = run},
    .infer = infer,
};

}  // namespace zephon
