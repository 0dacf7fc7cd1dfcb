// The reference interpreter against the independent model, on random programs: order, identities, values, draws,
// failures.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "runtime/reference/reference.h"
#include "tests/folder_test.h"
#include "tests/random_programs.h"

namespace zephon {
namespace {

class ModelTest : public FolderTest {};

// What differs first, or the empty string.
std::string difference(const RandomProgram& random, const std::string& folder, size_t& records) {
  SourceMap sources;
  Diagnostics diags;
  const FileId file = sources.add("random.zpl", random.text);
  Result<Program> program =
      compile(sources, file, {{"seed", std::to_string(random.description.seed)}}, all_ops(), diags);
  if (!program) return render(diags, sources);
  Failure failure;
  auto run = ReferenceRun::open(
      program->graph, {.seed = program->seed, .epochs = random.description.epochs, .base_dir = folder}, failure);
  if (!run) return failure.message;

  const model::Outcome expected = model::run(random.description);
  for (size_t r = 0;; ++r) {
    const auto record = run->next();
    if (!record) {
      if (r != expected.records.size()) return fmt::format("{} records, the model has {}", r, expected.records.size());
      break;
    }
    ++records;
    if (r == expected.records.size()) return fmt::format("more than the {} records of the model", r);
    const std::vector<model::Member>& members = expected.records[r];
    if (record->ids.size() != members.size())
      return fmt::format("record {} has {} members, in the model {}", r, record->ids.size(), members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      const SampleId id{members[m].id};
      if (record->ids[m] != id)
        return fmt::format("record {} member {} is {}, in the model {}", r, m, to_string(record->ids[m]),
                           to_string(id));
      size_t fields = 0;
      for (const auto& [name, value] : members[m].fields) fields += value.optional ? 2 : 1;
      if (record->fields.size() != fields) return fmt::format("record {} has other fields", r);
      for (const auto& [name, value] : record->fields) {
        const bool marks = name.ends_with('?');
        const auto it = members[m].fields.find(marks ? name.substr(0, name.size() - 1) : name);
        if (it == members[m].fields.end()) return fmt::format("field {} is not in the model", name);
        if (it->second.is_list && !marks) {
          std::vector<int64_t> items;
          const int64_t count = value.size() / (record->is_batch ? static_cast<int64_t>(members.size()) : 1);
          for (int64_t i = 0; i < count; ++i) items.push_back(value.at(static_cast<int64_t>(m) * count + i).i);
          if (items != it->second.items)
            return fmt::format("record {} sample {}: {} is [{}], in the model [{}]", r, to_string(id), name,
                               fmt::join(items, ", "), fmt::join(it->second.items, ", "));
          continue;
        }
        const Scalar s = value.at(static_cast<int64_t>(m));
        if (marks) {
          if ((s.i != 0) != it->second.missing)
            return fmt::format("record {} sample {}: {} is {}, in the model {}", r, to_string(id), name, s.i,
                               it->second.missing);
          continue;
        }
        if (s.i != it->second.i || s.f != it->second.f)
          return fmt::format("record {} sample {}: {} is {} {}, in the model {} {}", r, to_string(id), name, s.i, s.f,
                             it->second.i, it->second.f);
      }
    }
  }
  const std::string ours = run->failure() ? to_string(run->failure()->id) : "none";
  const std::string theirs = expected.failed ? to_string(SampleId{*expected.failed}) : "none";
  if (ours != theirs) {
    return fmt::format("failure of {} ({}), in the model of {}", ours,
                       run->failure() ? run->failure()->failure.message : "", theirs);
  }
  return {};
}

// ZEPHON_PROGRAMS=20000 tests more of them.
TEST_F(ModelTest, FiveHundredRandomProgramsAgree) {
  const char* wanted = std::getenv("ZEPHON_PROGRAMS");
  const uint64_t programs = wanted ? std::strtoull(wanted, nullptr, 10) : 500;
  size_t records = 0, failed = 0, empty = 0;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    const RandomProgram random = random_program(seed, folder_);
    const size_t before = records;
    const std::string what = difference(random, folder_, records);
    ASSERT_EQ(what, "") << "program " << seed << ", seed=" << random.description.seed
                        << ", epochs=" << random.description.epochs << ":\n"
                        << random.text;
    failed += model::run(random.description).failed.has_value();
    empty += records == before;
  }
  // The programs are worth something: most deliver, a good part fail.
  EXPECT_GT(records, 8 * programs);
  EXPECT_GT(failed, programs / 8);
  EXPECT_LT(empty, programs / 2);
}

// The generator is part of the record of what was tested.
TEST_F(ModelTest, TheSameSeedMakesTheSameProgram) {
  EXPECT_EQ(random_program(7, folder_).text, random_program(7, folder_).text);
  EXPECT_NE(random_program(7, folder_).text, random_program(8, folder_).text);
}

}  // namespace
}  // namespace zephon
