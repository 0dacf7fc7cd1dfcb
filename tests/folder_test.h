#pragma once
// A test with a folder of its own, and programs that read what it writes there.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace zephon {

class FolderTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  /// The path of the file.
  std::string write(const std::string& name, std::string_view content);
  /// What the reference interpreter delivers of `field`: the elements of each record, with spaces between them; the
  /// failure that ends the run (`code message`), last. `program` has no header.
  std::vector<std::string> delivered(const std::string& program, const std::string& field);

  std::string folder_;
};

}  // namespace zephon
