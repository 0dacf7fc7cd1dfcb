#include "zephonc/sinks/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "zephonc/sinks/json_text.h"
#include "zephonc/sinks/staged.h"

namespace zephon {
namespace {

constexpr size_t kTarEnd = 1024;  // zeros behind the last member

/// NumPy's name of an element type; bf16 as ml_dtypes stores it.
std::string_view npy_descr(Elem elem) {
  switch (elem) {
    case Elem::Bool:
      return "|b1";
    case Elem::U8:
      return "|u1";
    case Elem::I8:
      return "|i1";
    case Elem::U16:
      return "<u2";
    case Elem::I16:
      return "<i2";
    case Elem::I32:
      return "<i4";
    case Elem::I64:
      return "<i8";
    case Elem::F16:
      return "<f2";
    case Elem::BF16:
      return "<V2";
    case Elem::F32:
      return "<f4";
    case Elem::F64:
      return "<f8";
    default:
      return "";
  }
}

/// Header of the .npy format 1.0 (numpy.lib.format), padded to 64 bytes.
std::string npy_header(const DeliveredField& field) {
  std::string shape = fmt::format("{}", fmt::join(field.shape, ", "));
  if (field.shape.size() == 1) shape += ",";
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", npy_descr(field.elem), shape);
  size_t size = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.append(size - 10 - dict.size() - 1, ' ');
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

/// Name and content of the member that holds a field; numeric content is header + elements.
struct Member {
  std::string name, head;
  const void* data = nullptr;
  size_t size = 0;
};

std::string key_of(const DeliveredRecord& record) {
  std::string ordinal = fmt::format("{:08}", record.ordinal);
  return record.epoch == 0 ? ordinal : fmt::format("{}-{}", record.epoch, ordinal);
}

Member member_of(const DeliveredRecord& record, const DeliveredField& field) {
  Member out;
  out.name = fmt::format("{}.{}.{}", key_of(record), field.name, is_string(field.elem) ? "json" : "npy");
  if (is_string(field.elem)) {
    append_json(out.head, field);
    out.head += '\n';
  } else {
    out.head = npy_header(field);
    out.data = field.data;
    out.size = field.byte_size();
  }
  return out;
}

class NpyWriter : public Writer {
 public:
  explicit NpyWriter(StagedFolder& folder) : folder_(folder) {}
  std::optional<Failure> write(const DeliveredRecord& record) override {
    for (const DeliveredField& field : record.fields) {
      Member member = member_of(record, field);
      FileWriter file;
      if (auto failure = file.open(folder_.file(member.name), folder_.shown(member.name))) return failure;
      if (auto failure = file.write(member.head)) return failure;
      if (auto failure = file.write(member.data, member.size)) return failure;
      if (auto failure = file.close(false)) return failure;
    }
    return std::nullopt;
  }
  std::optional<Failure> close() override { return std::nullopt; }

 private:
  StagedFolder& folder_;
};

/// POSIX ustar; sizes beyond 8 GiB in the base-256 form that every reader knows.
class TarWriter : public Writer {
 public:
  explicit TarWriter(StagedFolder& folder) : path_(folder.file("records.tar")), shown_(folder.shown("records.tar")) {}
  std::optional<Failure> write(const DeliveredRecord& record) override {
    if (auto failure = open()) return failure;
    for (const DeliveredField& field : record.fields) {
      Member member = member_of(record, field);
      size_t size = member.head.size() + member.size;
      if (auto failure = file_.write(header(member.name, size))) return failure;
      if (auto failure = file_.write(member.head)) return failure;
      if (auto failure = file_.write(member.data, member.size)) return failure;
      if (auto failure = file_.write(std::string((512 - size % 512) % 512, '\0'))) return failure;
    }
    return std::nullopt;
  }
  std::optional<Failure> close() override {
    if (auto failure = open()) return failure;
    if (auto failure = file_.write(std::string(kTarEnd, '\0'))) return failure;
    return file_.close(true);
  }
  std::optional<Failure> mark(OutputMark& mark) override { return file_.mark(mark.bytes); }

 private:
  std::optional<Failure> open() { return file_.is_open() ? std::nullopt : file_.open(path_, shown_); }

  static std::string header(const std::string& name, uint64_t size) {
    std::string block(512, '\0');
    auto put = [&](size_t at, std::string_view text) { block.replace(at, text.size(), text); };
    put(0, std::string_view(name).substr(0, 100));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    if (size < (uint64_t{1} << 33)) {
      put(124, fmt::format("{:011o}", size));
    } else {
      block[124] = static_cast<char>(0x80);
      for (int i = 0; i < 8; ++i) block[static_cast<size_t>(135 - i)] = static_cast<char>(size >> (8 * i));
    }
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (char c : block) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    return block;
  }

  std::string path_, shown_;
  FileWriter file_;
};

class JsonlWriter : public Writer {
 public:
  explicit JsonlWriter(StagedFolder& folder)
      : path_(folder.file("records.jsonl")), shown_(folder.shown("records.jsonl")) {}
  std::optional<Failure> write(const DeliveredRecord& record) override {
    if (auto failure = open()) return failure;
    line_ = "{";
    // In byte order the leaves of a record follow each other, and companions their field.
    std::vector<std::string> open;  // records around the field before
    bool first = true;
    for (size_t i = 0; i < record.fields.size(); ++i) {
      const DeliveredField& field = record.fields[i];
      if (is_companion(field.name)) continue;
      std::vector<std::string> path;
      std::string_view rest = field.name;
      for (size_t dot; (dot = rest.find('.')) != rest.npos; rest.remove_prefix(dot + 1))
        path.emplace_back(rest.substr(0, dot));
      size_t common = 0;
      while (common < path.size() && common < open.size() && path[common] == open[common]) ++common;
      line_.append(open.size() - common, '}');
      if (!first) line_ += ", ";
      for (size_t k = common; k < path.size(); ++k) {
        append_json_string(line_, path[k]);
        line_ += ": {";
      }
      open = std::move(path);
      first = false;
      append_json_string(line_, rest);
      line_ += ": ";
      const DeliveredField* missing = nullptr;
      std::vector<const DeliveredField*> lengths;
      for (const DeliveredField& other : record.fields) {
        if (other.name == missing_field(field.name)) missing = &other;
        if (other.name == lengths_field(field.name, lengths.size() + 1)) lengths.push_back(&other);
      }
      append_json(line_, field, missing, lengths);
    }
    line_.append(open.size(), '}');
    line_ += "}\n";
    return file_.write(line_);
  }
  std::optional<Failure> close() override {
    if (auto failure = open()) return failure;
    return file_.close(true);
  }
  std::optional<Failure> mark(OutputMark& mark) override { return file_.mark(mark.bytes); }

 private:
  std::optional<Failure> open() { return file_.is_open() ? std::nullopt : file_.open(path_, shown_); }
  std::string path_, shown_, line_;
  FileWriter file_;
};

class FolderWriter : public Writer {
 public:
  std::optional<Failure> open(const std::string& path, const std::string& format) {
    if (auto failure = folder_.open(path)) return failure;
    if (format == "npy") writer_ = std::make_unique<NpyWriter>(folder_);
    if (format == "tar") writer_ = std::make_unique<TarWriter>(folder_);
    if (format == "jsonl") writer_ = std::make_unique<JsonlWriter>(folder_);
    return std::nullopt;
  }
  std::optional<Failure> write(const DeliveredRecord& record) override {
    ++mark_.records;
    mark_.epoch = record.epoch;
    mark_.ordinal = record.ordinal;
    return writer_->write(record);
  }
  std::optional<Failure> mark(OutputMark& mark) override {
    if (auto failure = writer_->mark(mark_)) return failure;
    mark = mark_;
    mark.folder = folder_.path();
    mark.partial = folder_.temporary();
    return std::nullopt;
  }
  std::optional<Failure> close() override {
    if (auto failure = writer_->close()) return failure;
    return folder_.commit();
  }

 private:
  StagedFolder folder_;
  std::unique_ptr<Writer> writer_;
  OutputMark mark_;
};

/// "7" or "1-7" of "1-00000007.x.npy": the epoch and the ordinal of the record that the file belongs to.
std::optional<std::pair<uint64_t, uint64_t>> record_of(std::string_view name) {
  name = name.substr(0, name.find('.'));
  const size_t dash = name.find('-');
  auto number = [](std::string_view digits) -> std::optional<uint64_t> {
    uint64_t n = 0;
    const auto [rest, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return bad == std::errc() && rest == digits.data() + digits.size() ? std::optional(n) : std::nullopt;
  };
  const std::optional<uint64_t> epoch = dash == name.npos ? 0 : number(name.substr(0, dash));
  const std::optional<uint64_t> ordinal = number(dash == name.npos ? name : name.substr(dash + 1));
  if (!epoch || !ordinal) return std::nullopt;
  return std::pair(*epoch, *ordinal);
}

}  // namespace

std::optional<Failure> keep_marked(const OutputMark& mark, bool& kept) {
  namespace fs = std::filesystem;
  kept = false;
  const int lock = ::open(mark.partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::error_code error;
  if (lock < 0 || mark.records == 0) {
    if (lock >= 0) ::close(lock);
    if (mark.records == 0 || fs::exists(mark.folder, error)) return std::nullopt;
    return Failure{
        "R0507",
        fmt::format("the {} records before the state are gone: `{}`, which the run that was killed had left, is "
                    "not there; run anew without --resume",
                    mark.records, mark.partial),
        {}};
  }
  const bool alive = flock(lock, LOCK_EX | LOCK_NB) != 0;
  ::close(lock);
  if (alive) return Failure{"R0507", fmt::format("the run that writes `{}` is still at work", mark.folder), {}};
  for (const char* name : {"records.tar", "records.jsonl"}) {
    const std::string path = mark.partial + "/" + name;
    if (!fs::exists(path, error)) continue;
    const bool tar = std::string_view(name).ends_with(".tar");
    fs::resize_file(path, mark.bytes,
                    error);  // what stands behind the mark, and for tar the end of the archive, as zeros
    if (!error && tar) fs::resize_file(path, mark.bytes + kTarEnd, error);
    if (error) return write_failure(path, error.value());
  }
  std::vector<fs::path> later;
  for (fs::directory_iterator it(mark.partial, error), end; !error && it != end; it.increment(error))
    if (const auto record = record_of(it->path().filename().string());
        record && *record > std::pair(mark.epoch, mark.ordinal))
      later.push_back(it->path());
  for (const fs::path& file : later) fs::remove(file, error);
  if (!error && rename(mark.partial.c_str(), mark.folder.c_str()) != 0) error = {errno, std::generic_category()};
  if (error) return write_failure(mark.folder, error.value());
  kept = true;
  return std::nullopt;
}

std::unique_ptr<Writer> make_folder_writer(const std::string& folder, const std::string& format, Failure& failure) {
  auto writer = std::make_unique<FolderWriter>();
  if (auto problem = writer->open(folder, format)) {
    failure = *problem;
    return nullptr;
  }
  return writer;
}

}  // namespace zephon
