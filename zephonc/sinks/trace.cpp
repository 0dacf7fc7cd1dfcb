#include "zephonc/sinks/trace.h"

#include <fmt/format.h>

#include "zephonc/sinks/json_text.h"

namespace zephon {

std::optional<Failure> TraceFile::open(const std::string& path) {
  if (auto failure = file_.open(path)) return failure;
  // The comma after the last event is spared by an event that names the process.
  return file_.write(
      "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"zephonc\"}}");
}

void TraceFile::add(const std::string& name, int64_t begin_ns, int64_t end_ns, int64_t rows) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  if (zero_ns_ == 0) zero_ns_ = begin_ns;
  int thread = threads_.emplace(std::this_thread::get_id(), static_cast<int>(threads_.size()) + 1).first->second;
  line_ = ",\n{\"name\": ";
  append_json_string(line_, name);
  line_ += fmt::format(
      ", \"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}, \"args\": {{\"rows\": {}}}}}", thread,
      static_cast<double>(begin_ns - zero_ns_) * 1e-3, static_cast<double>(end_ns - begin_ns) * 1e-3, rows);
  failure_ = file_.write(line_);
}

std::optional<Failure> TraceFile::close() {
  if (failure_) return failure_;
  if (auto failure = file_.write("\n]}\n")) return failure;
  return file_.commit();
}

}  // namespace zephon
