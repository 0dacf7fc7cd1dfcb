// Results whose shape is known, of arguments whose shape is not: what does not fit fails, in every kind of kernel, and
// reads no memory that is not the argument's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/kernels/kernel_compiler.h"
#include "tests/subject.h"

namespace zephon {
namespace {

// decode_image_shape has a shape, and elements that nobody may read.
TEST(OpenShapes, WhatHasNoElementsFailsWhereTheyAreRead) {
  const std::string photos = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = bytes.decode_image_shape()";
  auto compiler = make_kernel_compiler();
  for (const char* rest :
       {" | on_error(skip)", " | y = x[0, 0, 0] | select y | on_error(skip)", " | y = x.height() | select y",
        " | y = x.crop(box(0, 0, 2, 2)) | select y | on_error(skip)"}) {
    const Subject subject(photos + rest, {}, ZEPHON_SOURCE_DIR, 1);
    ASSERT_TRUE(subject.good()) << subject.errors();
    const Outcome expected = subject.reference();
    EXPECT_EQ(expected.records.size(), std::string_view(rest).find("height") == std::string_view::npos ? 0u : 2u);
    EXPECT_EQ(difference(expected, subject.planned({}, subject.options(), compiler.get())), "") << rest;
  }
}

TEST(OpenShapes, ThatDoNotFitFail) {
  std::string folder = testing::TempDir() + "zephon_open_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/t.jsonl") << "{\"t\": [1, 2], \"s\": [\"a\", \"b\"]}\n{\"t\": [5], \"s\": [\"c\"]}\n"
                                        "{\"t\": [1, 2, 3], \"s\": [\"d\", \"e\", \"f\"]}\n{\"t\": [], \"s\": []}\n";
  KernelOptions options = KernelOptions::from_environment();
  options.use_cache = false;
  auto compiler = make_kernel_compiler(options);
  const std::pair<const char*, size_t> cases[] = {
      // expression, samples of four that have it
      {"[1, 2] + t", 2},         {"(([1, 2] + t) * 2).sum()", 2}, {"where(t > 1, [1, 2], 0)", 2},
      {"([[1, 2]] + t)[0]", 2},  {"[1, 2].clamp(t, t)", 2},       {"t.reshape([2])", 1},
      {"t.reshape([2, 1])", 1},  {"t.reshape([2])[1]", 1},        {"[\"\", \"b\"] <= s", 2},
      {"s.reshape([1, 2])", 1},  {"f32(t) / f32([1, 2])", 2},     {"(s == [\"a\", \"b\"]).all()", 2},
      {"t.reshape([-1, 1])", 4},
  };
  for (const auto& [text, good] : cases) {
    const Subject subject(std::string("jsonl(\"t.jsonl\", schema={t: list<i64>, s: list<str>}) | a = ") + text +
                              " | select a | on_error(skip)\n",
                          {}, folder, 1);
    ASSERT_TRUE(subject.good()) << subject.errors();
    const Outcome expected = subject.reference();
    EXPECT_EQ(expected.records.size(), good) << text;
    for (const bool no_optimize : {false, true})
      for (KernelCompiler* kernels :
           {static_cast<KernelCompiler*>(compiler.get()), static_cast<KernelCompiler*>(nullptr)}) {
        OptimizeOptions how;
        how.no_optimize = no_optimize;
        EXPECT_EQ(difference(expected, subject.planned(how, subject.options(), kernels)), "")
            << text << (kernels ? " compiled" : "") << (no_optimize ? " as written" : "");
      }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zephon
