// How long optimizing and planning take as programs grow. A library of timed loops would repeat each until it is sure;
// here each program is compiled some times, and the least and the median are told.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "optimizer/optimizer.h"

namespace {

using namespace zephon;

/// Steps as people write them, ten by ten: assignments that read the last, filters, counting steps, shuffles.
std::string steps(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string x = i % 10 == 0 ? "index" : fmt::format("x{}", i / 10);
    switch (i % 10) {
      case 3:
      case 6:
        text += fmt::format(" | filter ({} + {}) % {} != 1", x, i, i + 2);
        break;
      case 7:
        text += fmt::format(" | filter index % {} != 3", i + 2);
        break;
      case 8:
        text += fmt::format(" | shuffle(buffer_size={})", i + 1);
        break;
      default:
        text += fmt::format(" | x{} = ({} * {} + {}) % 1000", i / 10, x, i + 2, i);
    }
  }
  return text;
}

std::string filters(int count) {
  std::string text = "range(1000)";
  for (int i = 0; i < count; ++i) text += fmt::format(" | filter (index * {} + {}) % {} != 1", i, i + 2, i + 3);
  return text;
}

std::string streams(int count) {
  std::string text, merged;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("stream s{} = range(1000){}\n", i, steps(9));
    merged += fmt::format("{}s{}", i ? ", " : "", i);
  }
  return text + "concatenate(" + merged + ") | batch(8)";
}

/// One value through `count` assignments, each of another field or, with `same`, of one.
std::string assigns(int count, bool same) {
  std::string text = "range(1000) | x0 = index";
  for (int i = 1; i < count; ++i)
    text += same ? fmt::format(" | x0 = x0 + {}", i) : fmt::format(" | x{} = x{} + {}", i, i - 1, i);
  return text;
}

/// One assignment whose expression has `count` operations, no two of them equal.
std::string expression(int count) {
  std::string text = "range(1000)\n| x = index";
  for (int i = 1; i <= count; ++i) text += fmt::format(fmt::runtime(i % 10 ? " + {}" : "\n    + index % {}"), i);
  return text;
}

/// Pictures and their statistics: two streams of views, resamplings and arithmetic, mixed and batched.
std::string pictures(int count) {
  std::string text;
  for (const char* name : {"a", "b"}) {
    text += fmt::format(
        "stream {} = files(\"examples/data/photos/*/*.jpg\")\n| p = bytes.decode_image().resize(64, 64)\n", name);
    for (int i = 0; i < count / 2; ++i) {
      const std::string at = i % 10 == 0 ? "p" : fmt::format("q{}", i / 10);
      const std::string to = fmt::format("q{}", i / 10);
      switch (i % 10) {
        case 1:
          text += fmt::format("| {} = {}.flip()\n", to, at);
          break;
        case 3:
          text += fmt::format("| {} = {}.center_crop(24, 24)\n", to, at);
          break;
        case 5:
          text += fmt::format("| {} = {}.resize({}, 32)\n", to, at, 30 + i % 7);
          break;
        case 7:
          text += fmt::format("| filter {}.mean() > {}\n", at, i % 9);
          break;
        default:
          text += fmt::format("| {} = f32({}) * 0.5 + {}\n", to, at, i);
      }
    }
  }
  return text + "mix(a=1, b=1) | batch(8)";
}

constexpr double kMostMs = 3000;  // of one program
std::string wanted;

/// Of this thread: what else the machine does is not counted.
double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

void measure(const std::string& name, const std::string& text) {
  if (name.find(wanted) == std::string::npos) return;
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("bench.zpl", text), {}, all_ops(), diags);
  if (!program) {
    std::fprintf(stderr, "%s%s\n", text.c_str(), render(diags, sources).c_str());
    std::exit(1);
  }
  std::vector<double> times;
  SearchReport search;
  for (double spent = 0; times.size() < 7 && spent < kMostMs; spent += times.back()) {
    const double start = processor_ms();
    const OptimizeResult result = optimize(program->graph, {}, all_ops());
    times.push_back(processor_ms() - start);
    search = result.trace.search;
  }
  std::ranges::sort(times);
  fmt::print("{:<22} {:>9.2f} {:>9.2f} {:>8} {:>8} {:>8}  {}\n", name, times[0], times[times.size() / 2], search.groups,
             search.members, search.pairs, search.bounded ? "met" : "");
  std::fflush(stdout);
}

}  // namespace

/// Argument: a part of the names of the programs to measure.
int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  fmt::print("{:<22} {:>9} {:>9} {:>8} {:>8} {:>8}  {}\n", "program", "least ms", "median ms", "groups", "members",
             "pairs", "bound");
  constexpr int kSizes[] = {10, 30, 100, 300, 1000, 3000};
  for (int n : kSizes) measure(fmt::format("{} steps", n), "range(1000)" + steps(n));
  for (int n : kSizes) measure(fmt::format("{} assigns", n), assigns(n, false));
  for (int n : kSizes) measure(fmt::format("{} assigns of one", n), assigns(n, true));
  for (int n : {2, 4, 6, 8, 10, 12, 30, 100, 300, 1000, 3000}) measure(fmt::format("{} filters", n), filters(n));
  for (int n : kSizes) measure(fmt::format("{} of pictures", n), pictures(n));
  for (int n : {10, 30, 100, 300, 990}) measure(fmt::format("{} in an expression", n), expression(n));
  for (int n : {10, 30, 100, 300}) measure(fmt::format("{} streams of 9 steps", n), streams(n));
}
