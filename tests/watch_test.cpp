// What the watcher of a run says by itself.
#include "zephonc/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace zephon {
namespace {

std::string said_in(double seconds, double quiet, bool delivers) {
  testing::internal::CaptureStderr();
  {
    WatchOptions options;
    options.quiet_seconds = quiet;
    options.status = [] { return std::string("filter: 12 rows in, 0 out"); };
    RunWatch watch(options);
    watch.start();
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::duration<double>(seconds)) {
      if (delivers) watch.delivered(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Watch, SilenceIsBroken) {
  const std::string said = said_in(0.9, 0.2, false);
  const size_t first = said.find("nothing was delivered for");
  ASSERT_NE(first, said.npos) << said;
  EXPECT_NE(said.find("filter: 12 rows in, 0 out"), said.npos) << said;
  EXPECT_NE(said.find("--stall-timeout"), said.npos) << said;
  EXPECT_EQ(said.find("nothing was delivered for", first + 1), said.npos) << "said twice: " << said;
}

TEST(Watch, RunsThatDeliverAreLeftAlone) { EXPECT_EQ(said_in(0.7, 0.2, true), ""); }

TEST(Watch, ShortSilencesAreLeftAlone) { EXPECT_EQ(said_in(0.4, 30, false), ""); }

}  // namespace
}  // namespace zephon
