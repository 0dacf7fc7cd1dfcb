// optimizer/README.md says which rules are left out, and shows programs that they would change: "`one` is not `other`".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string_view>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"

namespace zephon {
namespace {

/// `text` with `to` in place of each `from` and the spaces behind it.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    const size_t end = text.find_first_not_of(' ', at + from.size());
    text.replace(at, std::min(end, text.size()) - at, to);
  }
  return text;
}

/// What the reference interpreter delivers and rejects, as text.
std::string delivered(const std::string& text, std::string& errors) {
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("example.zpl", replaced(text, ";", "\n"));
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
  const std::string text = replaced(page.str(), "\n ", " ");
  constexpr std::string_view kIsNot = "` is not `";
  int pairs = 0;
  for (size_t middle = 0; (middle = text.find(kIsNot, middle)) != std::string::npos; middle += kIsNot.size()) {
    const size_t begin = text.rfind('`', middle - 1) + 1, second = middle + kIsNot.size();
    const std::string a = text.substr(begin, middle - begin), b = text.substr(second, text.find('`', second) - second);
    if ((a + b).find('\n') != std::string::npos) continue;
    std::string errors;
    const std::string one = delivered(a, errors), other = delivered(b, errors);
    EXPECT_EQ(errors, "");
    EXPECT_NE(one, other) << a << " and " << b;
    ++pairs;
  }
  EXPECT_GE(pairs, 15);
}

}  // namespace
}  // namespace zephon
