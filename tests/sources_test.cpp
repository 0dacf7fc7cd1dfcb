// The sources on hostile input: what a file may hold must never end in anything but a row, or a failure that says why.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "ops/all_ops.h"
#include "runtime/reference/reference.h"
#include "tests/folder_test.h"

namespace zephon {
namespace {

class SourcesTest : public FolderTest {
 protected:
  // csv(name, columns=...) with its implicit assignments, as the front end makes it.
  Graph csv(const std::string& name, std::vector<Field> columns, bool header = true, int64_t max_line_bytes = 1 << 20) {
    Graph graph;
    Node source;
    source.op = all_ops().find("csv");
    source.attrs.set("path", name);
    source.attrs.set("columns", Schema{columns});
    source.attrs.set("header", header);
    source.attrs.set("max_line_bytes", max_line_bytes);
    std::string error;
    source.op->infer_stream(source, {}, source.type, error);
    Node assign;
    assign.op = all_ops().find("assign");
    assign.type = source.type;
    const Type row = Type::scalar(Elem::Bytes);
    const ExprId field = graph.add(Expr{field_op(), {}, name_attr("$row"), row, 0, nullptr, {}});
    for (size_t i = 0; i < columns.size(); ++i) {
      Attrs attrs;
      attrs.set("index", static_cast<int64_t>(i));
      attrs.set("name", columns[i].name);
      attrs.set("type", columns[i].type.elem);
      attrs.set("count", static_cast<int64_t>(columns.size()));
      attrs.set("part", std::string("value"));
      attrs.set("max_line_bytes", max_line_bytes);
      const ExprId expr = graph.add(Expr{all_ops().find("csv_field"), {field}, attrs, columns[i].type, 0, nullptr, {}});
      assign.assigns.push_back({columns[i].name, expr});
      assign.type.fields.push_back(columns[i]);
    }
    assign.inputs = {graph.add(std::move(source))};
    graph.set_output(graph.add(std::move(assign)));
    return graph;
  }

  // One line a row: its fields, or the failure of the first that failed.
  std::vector<std::string> rows(const Graph& graph) {
    std::vector<std::string> out;
    Failure failure;
    auto run = ReferenceRun::open(graph, {.base_dir = folder_}, failure);
    if (!run) return {failure.code + " " + failure.message};
    while (std::optional<Sample> sample = run->next_sample()) {
      std::string line;
      for (const Field& f : graph.node(graph.output()).type.fields) {
        if (f.name == "$row") continue;
        const Value& value = sample->find(f.name)->force();
        check_kernel(graph, f.name, *sample, value);
        if (value.any_failed()) {
          line = value.failure()->code + " " + value.failure()->message;
          break;
        }
        const Scalar s = value.at(0);
        line += (line.empty() ? "" : "|") + (is_string(s.elem)  ? s.s
                                             : is_float(s.elem) ? fmt::format("{}", s.f)
                                                                : std::to_string(s.i));
      }
      out.push_back(line);
    }
    EXPECT_FALSE(run->failure());
    return out;
  }

  // The kernel of csv_field says the same as its definition.
  static void check_kernel(const Graph& graph, const std::string& name, const Sample& sample, const Value& expected) {
    for (const Assign& a : graph.node(graph.output()).assigns) {
      if (a.field != name) continue;
      const Expr& expr = graph.expr(a.expr);
      const std::string row = sample.find("$row")->force().at(0).s;
      StringRef text{row.data(), row.size()};
      TensorRef input, output;
      input.data = &text;
      input.elem = Elem::Bytes;
      output.elem = expr.type.elem;
      std::vector<std::unique_ptr<char[]>> memory;
      NativeCall call;
      call.expr = &expr;
      call.inputs = {&input, 1};
      call.output = &output;
      call.context = &memory;
      call.allocate = [](void* context, size_t bytes) -> void* {
        auto* blocks = static_cast<std::vector<std::unique_ptr<char[]>>*>(context);
        blocks->push_back(std::make_unique<char[]>(bytes + 1));
        return blocks->back().get();
      };
      const bool ok = expr.op->kernel.native(call);
      EXPECT_EQ(ok, !expected.any_failed()) << row.substr(0, 80);
      if (ok && !expected.any_failed()) {
        EXPECT_EQ(to_value(output), expected) << row.substr(0, 80);
      }
    }
  }

  Graph files(const std::string& glob) {
    Graph graph;
    Node source;
    source.op = all_ops().find("files");
    source.attrs.set("glob", glob);
    std::string error;
    source.op->infer_stream(source, {}, source.type, error);
    graph.set_output(graph.add(std::move(source)));
    return graph;
  }
  std::vector<std::string> paths(const std::string& glob) {
    const Graph graph = files(glob);
    Failure failure;
    auto run = ReferenceRun::open(graph, {.base_dir = folder_}, failure);
    if (!run) return {failure.code + " " + failure.message};
    std::vector<std::string> out;
    while (auto record = run->next()) out.push_back(record->fields[0].second.at(0).s.substr(folder_.size() + 1));
    return out;
  }
  // What read_file makes of a path, by definition.
  Value content(const std::string& path) {
    Graph graph;
    const Type type = Type::scalar(Elem::Path);
    const ExprId field = graph.add(Expr{field_op(), {}, name_attr("path"), type, 0, nullptr, {}});
    const ExprId read =
        graph.add(Expr{all_ops().find("read_file"), {field}, {}, Type::scalar(Elem::Bytes), 0, nullptr, {}});
    DataConstants constants(graph, folder_);
    EpochContext epoch;
    SampleEvaluator evaluator(
        graph, constants, [&](const std::string&) { return Value::scalar(Scalar::of_string(Elem::Path, path)); }, 0,
        epoch);
    return evaluator.evaluate(read);
  }

  static Attrs name_attr(const std::string& name) {
    Attrs attrs;
    attrs.set("name", name);
    return attrs;
  }
  static const OpDef* field_op() {
    static const OpDef op = {.name = "field", .cls = OpClass::Leaf, .signature = "name: string -> T"};
    return &op;
  }
};

const Field kId{"id", Type::scalar(Elem::I32)};
const Field kName{"name", Type::scalar(Elem::Str)};
const Field kScore{"score", Type::scalar(Elem::F64)};
using Lines = std::vector<std::string>;

TEST_F(SourcesTest, CsvPlain) {
  write("t.csv", "id,name,score\n1,ann,0.5\n2,bob,-1e3\n");
  EXPECT_EQ(rows(csv("t.csv", {kId, kName, kScore})), (Lines{"1|ann|0.5", "2|bob|-1000"}));
}

TEST_F(SourcesTest, CsvByteOrderMarkAndCarriageReturns) {
  write("t.csv", "\xef\xbb\xbfid,name\r\n1,ann\r\n2,\"b\r\nb\"\r\n3,last");
  EXPECT_EQ(rows(csv("t.csv", {kId, kName})), (Lines{"1|ann", "2|b\r\nb", "3|last"}));
}

TEST_F(SourcesTest, CsvQuotes) {
  write("t.csv", "1,\"a,b\"\n2,\"say \"\"hi\"\"\"\n3,\"\"\n4,a\"b\n5,\"a\"b\n6,\"\"\"\"\n");
  EXPECT_EQ(rows(csv("t.csv", {kId, kName}, false)),
            (Lines{"1|a,b", "2|say \"hi\"", "3|", "R0403 field 2 has a quote inside, and does not begin with one",
                   "R0403 field 2 goes on behind its closing quote", "6|\""}));
}

TEST_F(SourcesTest, CsvAQuoteThatNeverClosesCostsItsOwnLine) {
  write("t.csv", "1,ann\n2,\"bob\n3,cid\n4,dan\n");
  EXPECT_EQ(rows(csv("t.csv", {kId, kName}, false)),
            (Lines{"1|ann", "R0403 the quote of field 2 never closes", "3|cid", "4|dan"}));
}

TEST_F(SourcesTest, CsvRaggedAndEmptyLines) {
  write("t.csv", "id,name\n1\n2,b,c\n\n3,d\n");
  EXPECT_EQ(
      rows(csv("t.csv", {kId, kName})),
      (Lines{"R0403 the row has 1 fields, the program declares 2", "R0403 the row has 3 fields, the program declares 2",
             "R0403 a blank line, where the program declares 2 fields", "3|d"}));
}

TEST_F(SourcesTest, CsvBlankLinesAtTheEndAreNoRows) {
  for (const char* end : {"\n", "\n\n\n", "\r\n\r\n", "\n\r\n"}) {
    write("t.csv", std::string("1,a\n2,b") + end);
    EXPECT_EQ(rows(csv("t.csv", {kId, kName}, false)), (Lines{"1|a", "2|b"}));
    write("t.csv", std::string("a\n\nb") + end);
    EXPECT_EQ(rows(csv("t.csv", {kName}, false)), (Lines{"a", "", "b"}));
  }
  write("t.csv", "a\nb");
  EXPECT_EQ(rows(csv("t.csv", {kName}, false)), (Lines{"a", "b"}));
}

TEST_F(SourcesTest, CsvNumbersTooSmallRoundAndTooLargeFail) {
  const Field kHalf{"half", Type::scalar(Elem::F32)};
  write("t.csv", "1e-400\n-1e-400\n3e-324\n1e400\n");
  EXPECT_EQ(rows(csv("t.csv", {kScore}, false)),
            (Lines{"0", "-0", "5e-324", "R0404 column `score` is `1e400`, not `f64`"}));
  write("t.csv", "1e-50\n-1e-50\n1e-45\n1e50\n");
  EXPECT_EQ(rows(csv("t.csv", {kHalf}, false)).back(), "R0404 column `half` is `1e50`, not `f32`");
  EXPECT_EQ(rows(csv("t.csv", {kHalf}, false))[1], "-0");
}

TEST_F(SourcesTest, CsvTextInANumberColumn) {
  write("t.csv", "id,score\nx,1\n1,nan\n1,NaN\n1,-inf\n3000000000,1\n 1,1\n1,\n1,1.5.2\n1.5,1\n");
  EXPECT_EQ(rows(csv("t.csv", {kId, kScore})),
            (Lines{"R0404 column `id` is `x`, not `i32`", "1|nan", "1|nan", "1|-inf",
                   "R0404 column `id` is `3000000000`, not `i32`", "R0404 column `id` is ` 1`, not `i32`",
                   "R0404 column `score` is empty, not `f64`; if it may be empty, declare its type with a `?`",
                   "R0404 column `score` is `1.5.2`, not `f64`", "R0404 column `id` is `1.5`, not `i32`"}));
}

TEST_F(SourcesTest, CsvInvalidUtf8IsAFailureOfStrAndNotOfBytes) {
  write("t.csv", std::string_view("name\na\xff\0z\n\xc3\xa4\n", 13));
  EXPECT_EQ(rows(csv("t.csv", {kName})), (Lines{std::string("R0404 column `name` is not UTF-8: `a??z`"), "\xc3\xa4"}));
  EXPECT_EQ(rows(csv("t.csv", {{"name", Type::scalar(Elem::Bytes)}}))[0], std::string("a\xff\0z", 4));
}

TEST_F(SourcesTest, CsvALineOfTenMegabytes) {
  const std::string big(10'000'000, 'x');
  write("t.csv", "1,a\n2," + big + "\n3,b\n4,\"" + big + "\"\n5,\"" + big + "\n6,c\n");
  EXPECT_EQ(rows(csv("t.csv", {kId, kName}, false)),
            (Lines{"1|a", "R0403 the row is longer than 1048576 bytes (max_line_bytes)", "3|b",
                   "R0403 the row is longer than 1048576 bytes (max_line_bytes)",
                   "R0403 the row is longer than 1048576 bytes (max_line_bytes)", "6|c"}));
  const Lines all = rows(csv("t.csv", {kId, kName}, false, 20'000'000));
  ASSERT_GE(all.size(), 4u);
  EXPECT_EQ(all[1].size(), big.size() + 2);
}

TEST_F(SourcesTest, CsvHeaders) {
  write("t.csv", "id,nom\n1,a\n");
  EXPECT_NE(rows(csv("t.csv", {kId, kName}))[0].find("is `nom`, the program declares `name`"), std::string::npos);
  EXPECT_NE(rows(csv("t.csv", {kId}))[0].find("has 2 columns, the program declares 1"), std::string::npos);
  write("empty.csv", "");
  EXPECT_NE(rows(csv("empty.csv", {kId}))[0].find("R0402"), std::string::npos);
  EXPECT_TRUE(rows(csv("empty.csv", {kId}, false)).empty());
  write("bom.csv", "\xef\xbb\xbf");
  EXPECT_TRUE(rows(csv("bom.csv", {kId}, false)).empty());
  write("only.csv", "id\n");
  EXPECT_TRUE(rows(csv("only.csv", {kId})).empty());
}

TEST_F(SourcesTest, CsvThatCannotBeRead) {
  EXPECT_NE(rows(csv("none.csv", {kId}))[0].find("R0401 cannot read"), std::string::npos);
  EXPECT_NE(rows(csv(".", {kId}))[0].find("is a directory"), std::string::npos);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(rows(csv("pipe", {kId}))[0].find("not a regular file"), std::string::npos);
  EXPECT_NE(rows(csv(std::string(10'000, 'x'), {kId}))[0].find("file name too long"), std::string::npos);
}

// Rows come out the same in any order of reading, beyond the point where the index is thinned out.
TEST_F(SourcesTest, CsvRandomAccessThroughABoundedIndex) {
  std::string text;
  constexpr int kRows = 2'200'000;
  for (int i = 0; i < kRows; ++i) text += std::to_string(i % 1000) + "\n";
  write("t.csv", text);
  const Graph graph = csv("t.csv", {kId}, false);
  Failure failure;
  auto sources = open_sources(graph, {folder_}, failure);
  ASSERT_TRUE(sources);
  const NodeId node = graph.node(graph.output()).inputs[0];
  const Source& source = sources->at(node);
  ASSERT_EQ(source.size(), uint64_t{kRows});
  for (int i = 0; i < 3000; ++i) {
    const uint64_t position = permute_index(7, kRows, static_cast<uint64_t>(i)) ^ (i % 3 == 0 ? 1u : 0u);
    if (position >= kRows) continue;
    char text_memory[64];
    StringRef place;
    NativeCall allocator;
    allocator.context = text_memory;
    allocator.allocate = [](void* context, size_t) { return context; };
    TensorRef column;
    column.data = &place;
    source.read(position, {&column, 1}, allocator);
    EXPECT_EQ(place.view(), std::to_string(position % 1000));
  }
}

TEST_F(SourcesTest, FilesAreSortedByBytesAndPatternsMatchWithinNames) {
  for (const char* folder : {"b", "b-c", "B", ".hidden", "b/deep", "empty"})
    std::filesystem::create_directory(folder_ + "/" + folder);
  for (const char* file : {"b/2.jpg", "b/10.jpg", "b/.x.jpg", "b-c/1.jpg", "B/1.jpg", "b/deep/1.jpg", ".hidden/1.jpg",
                           "b/1.png", "b/[1].jpg", "\xc3\xa9.jpg"})
    write(file, "x");
  EXPECT_EQ(paths("*/*.jpg"), (Lines{"B/1.jpg", "b-c/1.jpg", "b/10.jpg", "b/2.jpg", "b/[1].jpg"}));
  EXPECT_EQ(paths("**/*.jpg"),
            (Lines{"B/1.jpg", "b-c/1.jpg", "b/10.jpg", "b/2.jpg", "b/[1].jpg", "b/deep/1.jpg", "\xc3\xa9.jpg"}));
  EXPECT_EQ(paths("b/[0-9].jpg"), (Lines{"b/2.jpg"}));
  EXPECT_EQ(paths("b/[!0-9]*.jpg"), (Lines{"b/[1].jpg"}));
  EXPECT_EQ(paths("b/?.*"), (Lines{"b/1.png", "b/2.jpg"}));
  EXPECT_EQ(paths("b/1.png"), (Lines{"b/1.png"}));
  EXPECT_EQ(paths("\xc3\xa9.jpg"), (Lines{"\xc3\xa9.jpg"}));
  EXPECT_NE(paths("b/*.gif")[0].find("R0400 no file matches"), std::string::npos);
  EXPECT_NE(paths("nowhere/*.gif")[0].find("R0400 no file matches"), std::string::npos);
  EXPECT_NE(paths(std::string(5000, 'y') + "/*")[0].find("file name too long"), std::string::npos);
}

TEST_F(SourcesTest, FilesThatCannotBeRead) {
  write("empty.jpg", "");
  EXPECT_EQ(content(folder_ + "/empty.jpg").at(0).s, "");
  EXPECT_EQ(content(folder_ + "/none.jpg").failure()->code, "R0401");
  EXPECT_NE(content(folder_).failure()->message.find("is a directory"), std::string::npos);
  EXPECT_NE(content(std::string(5000, 'y')).failure()->message.find("file name too long"), std::string::npos);
  EXPECT_LT(content(std::string(5000, 'y')).failure()->message.size(), 300u);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(content(folder_ + "/pipe").failure()->message.find("not a regular file"), std::string::npos);
  if (geteuid() != 0) {  // root may read everything
    write("secret.jpg", "x");
    ASSERT_EQ(chmod((folder_ + "/secret.jpg").c_str(), 0), 0);
    EXPECT_NE(content(folder_ + "/secret.jpg").failure()->message.find("permission denied"), std::string::npos);
  }
}

TEST_F(SourcesTest, FilesWithLongAndForeignNames) {
  std::string deep;
  for (int i = 0; i < 10; ++i) {
    deep += (i ? "/" : "") + std::string(200, static_cast<char>('a' + i));
    std::filesystem::create_directory(folder_ + "/" + deep);
  }
  write(deep + "/\xd1\x84\xd0\xbe\xd1\x82\xd0\xbe \xff.jpg", "pixels");
  const Lines found = paths("**/*.jpg");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(content(folder_ + "/" + found[0]).at(0).s, "pixels");
}

TEST_F(SourcesTest, FingerprintsSeeChanges) {
  write("a.jpg", "x");
  auto fingerprint = [&] {
    const Graph graph = files("*.jpg");
    Failure failure;
    return open_sources(graph, {folder_}, failure)->fingerprint();
  };
  const std::string before = fingerprint();
  EXPECT_EQ(fingerprint(), before);
  write("a.jpg", "xy");
  EXPECT_NE(fingerprint(), before);
}

}  // namespace
}  // namespace zephon
