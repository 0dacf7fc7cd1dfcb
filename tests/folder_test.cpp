#include "tests/folder_test.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"

namespace zephon {

void FolderTest::SetUp() {
  std::string pattern = testing::TempDir() + "zephon_test_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}
void FolderTest::TearDown() { std::filesystem::remove_all(folder_); }

std::string FolderTest::write(const std::string& name, std::string_view content) {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::vector<std::string> FolderTest::delivered(const std::string& text, const std::string& field) {
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("t.zpl", "zpl 1\n" + text + "\n"), {}, all_ops(), diags);
  EXPECT_TRUE(program) << render(diags, sources);
  if (!program) return {};
  Failure failure;
  auto reference = ReferenceRun::open(program->graph, {.base_dir = folder_}, failure);
  if (!reference) return {failure.code + " " + failure.message};
  std::vector<std::string> out;
  while (auto record = reference->next()) {
    for (const auto& [name, value] : record->fields) {
      if (name != field) continue;
      std::string& row = out.emplace_back();
      for (int64_t i = 0; i < value.size(); ++i) {
        const Scalar s = value.at(i);
        row += (i ? " " : "") + (is_string(s.elem)  ? s.s
                                 : is_float(s.elem) ? fmt::format("{}", s.f)
                                                    : std::to_string(s.i));
      }
    }
  }
  if (const auto& failed = reference->failure()) out.push_back(failed->failure.code + " " + failed->failure.message);
  return out;
}

}  // namespace zephon
