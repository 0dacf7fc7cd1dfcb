#include "zephonc/machine_limits.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace zephon {
namespace {

/// The whole of a small file of /proc or /sys; empty where it cannot be read.
std::string slurp(const std::string& path) {
  std::string out;
  if (FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) out.append(buffer, n);
    std::fclose(file);
  }
  return out;
}

/// Calls visit with each cgroup v2 folder from ours to the root: every one of them limits.
template <class Visit>
void for_each_cgroup(Visit&& visit) {
  std::string listed = slurp("/proc/self/cgroup");
  size_t at = listed.find("0::");
  if (at == std::string::npos) return;
  std::string group = listed.substr(at + 3, listed.find('\n', at) - at - 3);
  while (true) {
    visit("/sys/fs/cgroup" + (group == "/" ? "" : group) + "/");
    if (group.empty() || group == "/") return;
    group.resize(std::max<size_t>(group.rfind('/'), 0));
  }
}

size_t status_kib(const char* key) {
  std::string status = slurp("/proc/self/status");
  size_t at = status.find(key);
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + std::strlen(key), nullptr, 10) * 1024;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  double cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  for_each_cgroup([&](const std::string& folder) {
    std::string text = slurp(folder + "cpu.max");  // "QUOTA PERIOD" or "max PERIOD", microseconds
    double quota = 0, period = 0;
    if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0)
      cores = std::min(cores, quota / period);
  });
  return std::max(1, static_cast<int>(std::ceil(cores)));
}

size_t usable_memory() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto limit = [&](const std::string& path) {
    std::string text = slurp(path);
    char* end = nullptr;
    size_t value = std::strtoull(text.c_str(), &end, 10);
    if (end != text.c_str() && value > 0) bytes = std::min(bytes, value);
  };
  for_each_cgroup([&](const std::string& folder) { limit(folder + "memory.max"); });
  limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return bytes;
}

size_t resident_bytes() { return status_kib("VmRSS:"); }
size_t peak_resident_bytes() { return status_kib("VmHWM:"); }

double cpu_seconds_used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double seconds_since_start() {
  // Field 22 of /proc/self/stat, counted after the name in parentheses: ticks after boot.
  std::string stat = slurp("/proc/self/stat");
  size_t at = stat.rfind(')');
  for (int field = 2; at != std::string::npos && field < 22; ++field) at = stat.find(' ', at + 1);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  double started =
      at == std::string::npos ? 0 : std::strtod(stat.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started;
}

}  // namespace zephon
