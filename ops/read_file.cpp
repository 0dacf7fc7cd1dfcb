#include <cerrno>
#include <fstream>
#include <iterator>

#include "graph/op_def.h"
#include "ops/file_io.h"

namespace zephon {
namespace {

Value define(DefineCall& call) {
  const Value& argument = call.arg(0);
  if (argument.any_failed()) return Value::failed(*argument.failure());
  const std::string path = argument.at(0).s;
  InputFile file;
  if (const int error = file.open(path)) {
    Failure failure = cannot_read(path, error, {});
    return Value::failed(call.failure(failure.code, failure.message));
  }
  std::string content(file.size(), '\0');
  const int64_t n = file.read_at(0, content.data(), content.size());
  if (n < 0) {
    Failure failure = cannot_read(path, static_cast<int>(-n), {});
    return Value::failed(call.failure(failure.code, failure.message));
  }
  content.resize(static_cast<size_t>(n));
  return Value::scalar(Scalar::of_string(Elem::Bytes, std::move(content)));
}

bool run(NativeCall& call) {
  const auto* path = static_cast<const StringRef*>(call.inputs[0].data);
  InputFile file;
  if (file.open(std::string(path->view())) != 0) return false;
  auto* content = static_cast<char*>(call.alloc(file.size() + 1));
  const int64_t n = file.read_at(0, content, file.size());
  if (n < 0) return false;
  if (!call.output->data) call.output->data = call.alloc(sizeof(StringRef));
  call.output->rank = 0;
  *static_cast<StringRef*>(call.output->data) = {content, static_cast<size_t>(n)};
  return true;
}

}  // namespace

ZEPHON_OP_DEF(ReadFile) = {
    .name = "read_file",
    .cls = OpClass::Opaque,
    .signature = "path: path -> bytes",
    .summary = "The content of a file.",
    .prose = "Fails where the file cannot be opened or read, and for folders, devices and pipes.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | size = read_file(path).byte_length()",
    .effects = {.can_fail = true, .reads_files = true},
    .cost = {.ns_per_call = 15000, .ns_per_element = 0},
    .define = {.tensor = define},
    .kernel = {.native = run},
};

}  // namespace zephon
