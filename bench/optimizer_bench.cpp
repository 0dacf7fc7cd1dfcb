// How long optimizing and planning take as programs grow. A library of timed loops would repeat each until it is sure;
// here each program is compiled some times, and the least and the median are told.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
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

std::string wanted;

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
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const OptimizeResult result = optimize(program->graph, {}, all_ops());
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
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
  for (int n : {10, 30, 100, 300, 1000, 3000}) measure(fmt::format("{} steps", n), "range(1000)" + steps(n));
  for (int n : {2, 4, 6, 8, 10, 12}) measure(fmt::format("{} filters", n), filters(n));
  for (int n : {10, 30, 100, 300}) measure(fmt::format("{} streams of 9 steps", n), streams(n));
}
