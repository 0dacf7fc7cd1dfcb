// optimizer/README.md says which rules are left out, and shows programs that they would change: "`one` is not `other`".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

/// What the reference interpreter delivers and rejects, as text.
std::string delivered(const std::string& text, std::string& errors) {
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("example.zpl", std::regex_replace(text, std::regex("; *"), "\n"));
  Result<Program> program = compile(sources, file, {}, all_ops(), diags);
  if (!program) {
    errors = text + "\n" + render(diags, sources);
    return {};
  }
  Failure failure;
  const std::unique_ptr<ReferenceRun> run = ReferenceRun::open(program->graph, {}, failure);
  if (!run) {
    errors = text + "\n" + failure.message;
    return {};
  }
  std::string out;
  while (std::optional<ReferenceRecord> record = run->next()) {
    for (const SampleId& id : record->ids) out += to_string(id) + " ";
    for (const auto& [name, value] : record->fields) {
      out += name + "=";
      for (uint8_t byte : value.bytes()) out += fmt::format("{:02x}", byte);
      out += " ";
    }
    out += "\n";
  }
  return out + (run->failure() ? run->failure()->failure.message : "");
}

TEST(RulesLeftOut, WouldChangeWhatIsDelivered) {
  std::stringstream page;
  page << std::ifstream(ZEPHON_SOURCE_DIR "/optimizer/README.md").rdbuf();
  const std::string text = std::regex_replace(page.str(), std::regex("\n +"), " ");
  const std::regex pair("`([^`\n]+)` is not `([^`\n]+)`");
  int pairs = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), pair), end; it != end; ++it, ++pairs) {
    std::string errors;
    const std::string one = delivered((*it)[1], errors), other = delivered((*it)[2], errors);
    EXPECT_EQ(errors, "");
    EXPECT_NE(one, other) << it->str();
  }
  EXPECT_GE(pairs, 15);
}

}  // namespace
}  // namespace zephon
