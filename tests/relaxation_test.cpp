// Relaxed plans: what the kernels make is what the relaxed graph means, to the bit, as for exact plans.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "ops/jpeg_codec.h"
#include "zephonc/verification.h"

namespace zephon {
namespace {

TEST(Relaxation, LeastScale) {
  EXPECT_EQ(least_eighths({0, 0, 800, 800}, 100, 100), 1);
  EXPECT_EQ(least_eighths({0, 0, 799, 800}, 100, 100), 2);
  EXPECT_EQ(least_eighths({0, 0, 400, 800}, 100, 100), 2);
  EXPECT_EQ(least_eighths({0, 0, 400, 200}, 100, 100), 4);
  EXPECT_EQ(least_eighths({0, 0, 400, 199}, 100, 100), 8);
  EXPECT_EQ(least_eighths({0, 0, 50, 50}, 100, 100), 8);
  // What is left of a box is at least as large as what is wanted.
  for (int64_t top = 0; top < 40; ++top) {
    for (int64_t height = 1; height < 120; ++height) {
      const int eighths = least_eighths({top, 3, height, height}, 13, 13);
      const JpegRegion scaled = scaled_region({top, 3, height, height}, eighths);
      if (eighths < 8) {
        EXPECT_GE(scaled.height, 13) << top << " " << height;
      }
      EXPECT_LE(scaled.top * 8, top * eighths);
      EXPECT_GE((scaled.top + scaled.height) * 8, (top + height) * eighths);
    }
  }
}

struct Relaxed {
  OptimizeResult result;
  Program program;
};

Relaxed relaxed(const std::string& text, std::set<std::string, std::less<>> relaxations) {
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags);
  EXPECT_TRUE(program.ok()) << render(diags, sources);
  OptimizeOptions how;
  how.relaxed = std::move(relaxations);
  how.verify = true;
  how.plan.seed = program->seed;
  how.plan.base_dir = ZEPHON_SOURCE_DIR;
  OptimizeResult result = optimize(program->graph, how, all_ops());
  EXPECT_TRUE(result.trace.problems.empty());
  return {std::move(result), *std::move(program)};
}

Comparison compared(const Graph& graph, const Relaxed& r, bool measured) {
  Failure failure;
  auto sources = open_sources(graph, {ZEPHON_SOURCE_DIR}, failure);
  EXPECT_NE(sources, nullptr) << failure.message;
  VerifyOptions options;
  options.seed = r.program.seed;
  options.base_dir = ZEPHON_SOURCE_DIR;
  options.take = 40;
  options.threads = 2;
  options.relaxed = measured;
  return compare(graph, r.result.plan, options, sources);
}

constexpr const char* kPrograms[] = {
    R"(files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().resize(40, 24) | select image)",
    R"(files("examples/data/photos/*/*.jpg") | image = bytes.decode_image(mode="gray").random_resized_crop(24, 24) | select image)",
    R"(files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().random_crop(64, 64).resize(16, 16) | select image | batch(4))",
    R"(files("examples/data/photos/*/*.jpg") | image = bytes.decode_image().crop(box(0, 0, 5000, 64)).resize(16, 16) | on_error(mask) | select image)",
};

TEST(Relaxation, KernelsDoWhatTheRelaxedGraphMeans) {
  for (const char* text : kPrograms) {
    for (const std::set<std::string, std::less<>>& on :
         {std::set<std::string, std::less<>>{"fast-dct"}, {"decode-scale"}, {"decode-scale", "fast-dct"}}) {
      const Relaxed r = relaxed(text, on);
      EXPECT_EQ(r.result.trace.fired("use_fast_dct"), on.contains("fast-dct")) << text;
      EXPECT_EQ(r.result.trace.fired("scale_while_decoding"), on.contains("decode-scale")) << text;
      const Comparison exact = compared(r.result.graph, r, false);
      EXPECT_EQ(exact.problem, "") << text;
      EXPECT_GT(exact.records, 0u);
    }
  }
}

TEST(Relaxation, ResizesOfPartsDoWhatTheRelaxedGraphMeans) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"crop-before-resize",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().resize(40, 36).center_crop(24, 28) | select image)"},
      {"crop-before-resize",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().normalize([0.5], [0.2]).resize(40, 36).random_flip().random_crop(24, 28) | select image | batch(4))"},
      // At the rim, and larger than it was.
      {"crop-before-resize",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().resize(3, 3).crop(box(2, 2, 1, 1)) | select image)"},
      {"crop-before-resize",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().resize(700, 8).crop(box(699, 0, 1, 8)) | select image)"},
      {"fuse-resizes",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().resize(64, 64).random_resized_crop(24, 24) | select image)"},
      {"fuse-resizes",
       R"(files("examples/data/photos/*/*.jpg") | take(4) | image = bytes.decode_image().resize(90, 64).resize(24, 20) | on_error(mask) | select image)"},
  };
  for (const auto& [name, text] : kCases) {
    for (const bool scaled : {false, true}) {
      std::set<std::string, std::less<>> on = {name};
      if (scaled) on.insert("decode-scale");
      const Relaxed r = relaxed(text, on);
      EXPECT_TRUE(
          r.result.trace.fired(std::string_view(name) == "fuse-resizes" ? "fuse_resizes" : "crop_before_resize"))
          << text;
      const Comparison exact = compared(r.result.graph, r, false);
      EXPECT_EQ(exact.problem, "") << text;
      EXPECT_GT(exact.records, 0u);
      const Comparison far = compared(r.program.graph, r, true);
      EXPECT_EQ(far.problem, "") << text;
      for (const auto& [field, difference] : far.differences) EXPECT_LT(difference.mean(), 12) << text;
    }
  }
}

TEST(Relaxation, IsMeasured) {
  const Relaxed r = relaxed(kPrograms[0], {"decode-scale"});
  const Comparison far = compared(r.program.graph, r, true);
  EXPECT_EQ(far.problem, "");
  EXPECT_FALSE(far.equal());
  const FieldDifference& image = far.differences.at("image");
  EXPECT_GT(image.largest, 0);
  EXPECT_LT(image.mean(), 4);
  EXPECT_NE(image.at.find("sample "), std::string::npos);
  EXPECT_EQ(image.elements, static_cast<int64_t>(far.records) * 40 * 24 * 3);
  // Without leave, the first difference is a fault.
  EXPECT_NE(compared(r.program.graph, r, false).problem.find("field `image`"), std::string::npos);
}

TEST(Relaxation, HiddenParametersAreNoArguments) {
  for (const char* text : {R"(files("*.jpg") | image = bytes.decode_image("rgb", 100, "needed", "fast"))",
                           R"(files("*.jpg") | image = bytes.decode_image(dct="fast"))",
                           R"(files("*.jpg") | image = bytes.decode_image($dct="fast"))"}) {
    SourceMap sources;
    Diagnostics diags;
    EXPECT_FALSE(compile(sources, sources.add("t.zpl", text), {}, all_ops(), diags).ok());
    const std::string shown = render(diags, sources);
    EXPECT_EQ(shown.find("$height"), std::string::npos) << shown;
  }
}

}  // namespace
}  // namespace zephon
