#pragma once
// What the machine and its control group give this process, and what it has used.

#include <cstddef>

namespace zephon {

/// Cores that we may use: affinity and the CPU quota of the cgroup, rounded up; at least 1.
int usable_cores();
/// Bytes: the least of the physical memory and the limits of the cgroup (v2, v1).
size_t usable_memory();
size_t resident_bytes();
size_t peak_resident_bytes();
/// Of all threads, user and system.
double cpu_seconds_used();
/// Of the wall clock, since the process was started.
double seconds_since_start();

}  // namespace zephon
