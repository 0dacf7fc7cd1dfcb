// What programs mean, case by case: laziness, false beats failure, policies, the order of failures, draws.
#include "runtime/reference/reference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/frontend.h"
#include "ops/all_ops.h"
#include "tests/folder_test.h"

namespace zephon {
namespace {

class ReferenceTest : public FolderTest {
 protected:
  struct Ran {
    std::vector<std::string> lines;  // one a record: `field=value ...`, members joined by ` ; `
    std::string failure;             // "code id: message", or empty
    std::map<std::string, uint64_t> errors;
    std::vector<SampleId> ids;
    std::string quarantined;  // a line for each sample
  };

  static std::string value_text(const Value& value, int64_t at) {
    const Scalar s = value.at(at);
    if (is_string(s.elem)) return s.s;
    return is_float(s.elem) ? fmt::format("{}", s.f) : std::to_string(s.i);
  }

  Ran run(const std::string& text, uint64_t epochs = 1, uint64_t seed = 0) {
    SourceMap sources;
    Diagnostics diags;
    Result<Program> program = compile(sources, sources.add("test.zpl", "zpl 1\n" + text + "\n"),
                                      {{"seed", std::to_string(seed)}}, all_ops(), diags);
    if (!program) {
      ADD_FAILURE() << render(diags, sources);
      return {};
    }
    Ran ran;
    Failure failure;
    auto reference =
        ReferenceRun::open(program->graph, {.seed = program->seed, .epochs = epochs, .base_dir = folder_}, failure);
    if (!reference) {
      ran.failure = failure.code + ": " + failure.message;
      return ran;
    }
    reference->on_rejected([&](const Rejected& rejected) {
      if (rejected.policy == "quarantine") ran.quarantined += quarantine_line(reference->sources(), rejected.failure);
    });
    while (const auto record = reference->next()) {
      std::string line;
      for (size_t m = 0; m < record->ids.size(); ++m) {
        if (m > 0) line += " ;";
        for (const auto& [name, value] : record->fields) {
          const int64_t elements = value.size() / (record->is_batch ? static_cast<int64_t>(record->ids.size()) : 1);
          line += (line.empty() ? "" : " ") + name + "=";
          for (int64_t i = 0; i < elements; ++i)
            line += (i ? "," : "") + value_text(value, static_cast<int64_t>(m) * elements + i);
        }
      }
      ran.lines.push_back(line);
      ran.ids.insert(ran.ids.end(), record->ids.begin(), record->ids.end());
    }
    if (const auto& f = reference->failure())
      ran.failure = f->failure.code + " " + to_string(f->id) + ": " + f->failure.message;
    ran.errors = reference->errors();
    return ran;
  }
};

using Lines = std::vector<std::string>;

TEST_F(ReferenceTest, AFailureThatNobodyNeedsIsNone) {
  EXPECT_EQ(run("range(3) | bad = 10 // index | x = index + 1 | select x").lines, (Lines{"x=1", "x=2", "x=3"}));
  EXPECT_EQ(run("range(3) | bad = 10 // index | bad = index").lines,
            (Lines{"index=0 bad=0", "index=1 bad=1", "index=2 bad=2"}));
  EXPECT_EQ(run("range(2) | x = where(index == 0, 7, 10 // index)").lines, (Lines{"index=0 x=7", "index=1 x=10"}));
  EXPECT_EQ(run("range(2) | x = stack(10 // index, index * 0 + 7) | y = x[1] | select y").lines, (Lines{"y=7", "y=7"}));
}

TEST_F(ReferenceTest, AFailureEndsTheRunInItsTurn) {
  const Ran ran = run("range(5) | x = 10 // (index - 2)");
  EXPECT_EQ(ran.lines, (Lines{"index=0 x=-5", "index=1 x=-10"}));
  EXPECT_EQ(ran.failure.substr(0, 32), "R0421 0/0/0/2: division by zero:");
  EXPECT_EQ(run("range(5) | x = 10 // (index - 4) | take(4)").failure, "");
  EXPECT_EQ(run("range(5) | x = 10 // (index - 1) | batch(2)").lines.size(), 0u);
  EXPECT_EQ(run("range(5) | x = 10 // (index - 2) | batch(2)").lines.size(), 1u);
  EXPECT_EQ(run("range(5) | x = 10 // (index - 2) | batch(2) | unbatch()").lines.size(), 2u);
}

TEST_F(ReferenceTest, FalseBeatsFailure) {
  const Lines both{"index=0", "index=2"};
  EXPECT_EQ(run("range(3) | filter index != 1 | filter 10 // (index - 1) != 0").lines, both);
  EXPECT_EQ(run("range(3) | filter 10 // (index - 1) != 0 | filter index != 1").lines, both);
  EXPECT_EQ(run("range(3) | filter 10 // (index - 1) != 0 and index != 1").lines, both);
  // take counts, so the verdict of what stands above it is final there.
  const Ran ran = run("range(3) | filter 10 // (index - 1) != 0 | take(3) | filter index != 1");
  EXPECT_EQ(ran.lines, (Lines{"index=0"}));
  EXPECT_EQ(ran.failure.substr(0, 13), "R0421 0/0/0/1");
  // Repeats and shuffles do not count.
  EXPECT_EQ(run("range(3) | filter 10 // (index - 1) != 0 | repeat(2) | filter index != 1").lines.size(), 4u);
  EXPECT_EQ(run("range(3) | filter 10 // (index - 1) != 0 | shuffle() | filter index != 1").lines.size(), 2u);
}

TEST_F(ReferenceTest, PoliciesOnFailures) {
  const std::string bad = "range(4) | x = 10 // (index - 1)";
  Ran ran = run(bad + " | on_error(skip)");
  EXPECT_EQ(ran.lines, (Lines{"index=0 x=-10", "index=2 x=10", "index=3 x=5"}));
  EXPECT_EQ(ran.failure, "");
  EXPECT_EQ(ran.errors["skip"], 1u);

  ran = run(bad + " | on_error(mask)");
  EXPECT_EQ(ran.lines,
            (Lines{"index=0 x=-10 valid=1", "index=1 x=0 valid=0", "index=2 x=10 valid=1", "index=3 x=5 valid=1"}));

  ran = run(bad + " | on_error(fail)");
  EXPECT_EQ(ran.lines.size(), 1u);
  EXPECT_EQ(ran.failure.substr(0, 5), "R0421");

  // What on_error does not need below it does not guard; what stands below it neither.
  EXPECT_EQ(run(bad + " | on_error(skip) | drop x").lines.size(), 4u);
  EXPECT_EQ(run("range(4) | on_error(skip) | x = 10 // (index - 1)").lines.size(), 1u);
  // A filter that fails is handled too.
  EXPECT_EQ(run("range(4) | filter 10 // (index - 1) != 77 | on_error(skip)").lines.size(), 3u);
}

TEST_F(ReferenceTest, TooManyErrors) {
  const Ran ran = run("range(9) | x = 10 // (index % 2) | on_error(skip, max_errors=2)");
  EXPECT_EQ(ran.lines, (Lines{"index=1 x=10", "index=3 x=10"}));
  EXPECT_EQ(ran.failure.substr(0, 13), "R0411 0/0/0/4");
  EXPECT_EQ(ran.errors.at("skip"), 2u);
}

TEST_F(ReferenceTest, QuarantineTellsOfEach) {
  std::ofstream(folder_ + "/t.csv") << "id,name\n1,a\nx,b\n3,\"c\"\"\"\n";
  const Ran ran = run("csv(\"t.csv\", columns={id: i64, name: str}) | on_error(quarantine, file=\"bad.jsonl\")");
  EXPECT_EQ(ran.lines, (Lines{"id=1 name=a", "id=3 name=c\""}));
  EXPECT_EQ(ran.quarantined, "{\"id\": \"0/0/0/1\", \"sample\": \"" + folder_ +
                                 "/t.csv, row 2\", \"epoch\": 0, \"code\": \"R0404\", \"message\": "
                                 "\"column `id` is `x`, not `i64`\"}\n");
}

TEST_F(ReferenceTest, AMemberOfAnotherShapeFails) {
  const std::string photos = std::string(ZEPHON_SOURCE_DIR) + "/examples/data/photos";
  const std::string decode = "files(\"" + photos + "/*/*.jpg\") | image = bytes.decode_image() | select image | ";
  const Ran ran = run(decode + "batch(8)");
  EXPECT_TRUE(ran.lines.empty());
  EXPECT_EQ(ran.failure.substr(0, 5), "R0410");
  EXPECT_NE(ran.failure.find("in the first sample of its batch, 0/0/0/0"), std::string::npos) << ran.failure;
  EXPECT_EQ(run(decode + "image = image.crop(box(0, 0, 4, 4)) | batch(8) | take(1)").failure, "");
}

TEST_F(ReferenceTest, DrawsDependOnSeedEpochSampleAndPlaceOnly) {
  const auto draws = [&](const std::string& text, uint64_t epochs = 1, uint64_t seed = 0) {
    return run(text, epochs, seed).lines;
  };
  const Lines plain = draws("range(4) | x = randint(0, 1000000)");
  EXPECT_EQ(draws("range(4) | y = index + 1 | x = randint(0, 1000000) | drop y"), plain);
  EXPECT_EQ(draws("range(9) | take(4) | x = randint(0, 1000000)"), plain);
  EXPECT_NE(draws("range(4) | x = randint(0, 1000000)", 1, 1), plain);
  EXPECT_NE(draws("range(4) | y = randint(0, 1000000) | x = y | drop y"), plain);

  const Lines epochs = draws("range(4) | x = randint(0, 1000000)", 2);
  EXPECT_EQ(Lines(epochs.begin(), epochs.begin() + 4), plain);
  EXPECT_NE(Lines(epochs.begin() + 4, epochs.end()), plain);
  const Lines passes = draws("range(4) | x = randint(0, 1000000) | repeat(2)");
  EXPECT_NE(Lines(passes.begin(), passes.begin() + 4), Lines(passes.begin() + 4, passes.end()));

  // After batch each member draws with its own identity; an argument of a function is a value, drawn once.
  EXPECT_EQ(draws("range(4) | batch(4) | x = randint(0, 1000000) | unbatch()"), plain);
  EXPECT_EQ(draws("fn twice(x: i64) = x - x\nrange(2) | x = twice(randint(0, 1000000))"),
            (Lines{"index=0 x=0", "index=1 x=0"}));
  for (const std::string& line : draws("range(2) | x = randint(0, 1000000) - randint(0, 1000000)"))
    EXPECT_EQ(line.find(" x=0"), std::string::npos);
}

TEST_F(ReferenceTest, BatchesStackTheirMembers) {
  const Ran ran = run("range(5) | x = stack(index, index * index) | batch(2)");
  EXPECT_EQ(ran.lines, (Lines{"index=0 x=0,0 ; index=1 x=1,1", "index=2 x=2,4 ; index=3 x=3,9", "index=4 x=4,16"}));
  EXPECT_EQ(run("range(5) | batch(2, drop_remainder=true) | y = index * 2 | drop index").lines,
            (Lines{"y=0 ; y=2", "y=4 ; y=6"}));
}

TEST_F(ReferenceTest, DataConstantsAreSortedFolderNames) {
  for (const char* name : {"b", "a", "c"}) {
    std::filesystem::create_directory(folder_ + "/" + name);
    std::ofstream(folder_ + "/" + name + "/1.txt") << name;
  }
  const Ran ran =
      run("let classes = dirs(\"\")\nfiles(\"*/*.txt\") | label = classes.index_of(path.parent.name) | select label");
  EXPECT_EQ(ran.lines, (Lines{"label=0", "label=1", "label=2"}));
}

TEST_F(ReferenceTest, OneSampleCanBeEvaluatedAlone) {
  SourceMap sources;
  Diagnostics diags;
  Result<Program> program = compile(sources, sources.add("test.zpl", "zpl 1\nrange(9) | x = 12 // index | y = x + 1\n"),
                                    {}, all_ops(), diags);
  ASSERT_TRUE(program) << render(diags, sources);
  const Node& last = program->graph.node(program->graph.output());
  const DataConstants constants(program->graph, "");
  const EpochContext epoch;
  const auto y = [&](Value x) {
    SampleEvaluator evaluator(
        program->graph, constants, [&](const std::string&) { return x; }, 0, epoch);
    return evaluator.evaluate(last.assigns[0].expr);
  };
  EXPECT_EQ(y(Value::scalar(Scalar::of_int(Elem::I64, 5))).at(0).i, 6);
  EXPECT_EQ(y(Value::failed({"R0421", "12 // 0", {}})).failure()->message, "12 // 0");
}

}  // namespace
}  // namespace zephon
