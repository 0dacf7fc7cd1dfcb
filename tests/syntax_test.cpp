// Text -> syntax tree, both forms: what is read, what is refused and where, and that no input breaks the reader.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "frontend/parse_yaml.h"
#include "frontend/parse_zpl.h"

namespace zephon {
namespace {

// The tree as text without places: equal texts, equal programs.
std::string dump(const ast::Expr& e);
std::string dump(const ast::Type& t) {
  std::string out = t.name;
  if (t.kind == ast::Type::Kind::Enum) {
    out = "enum";
    for (const ast::Name& v : t.values) out += " " + v.text;
  }
  if (t.tensor) out += "[]";
  for (const ast::Expr& d : t.dims) out += " " + dump(d);
  for (const ast::SchemaField& f : t.fields) out += " " + f.name.text + ":" + dump(f.type);
  return "<" + out + ">";
}
std::string dump(const ast::Expr& e) {
  using Kind = ast::Expr::Kind;
  std::string out;
  switch (e.kind) {
    case Kind::Absent:
      return "_";
    case Kind::Number:
    case Kind::Bool:
    case Kind::Name:
      return e.text;
    case Kind::String:
      out = "\"";
      for (size_t i = 0; i < e.pieces.size(); ++i)
        out += e.pieces[i] + (i < e.operands.size() ? "{" + dump(e.operands[i]) + "}" : "");
      return out + "\"";
    case Kind::Schema:
      for (const ast::SchemaField& f : e.fields) out += " " + f.name.text + ":" + dump(f.type);
      return "(schema" + out + ")";
    case Kind::Call:
      out = (e.method ? "." : "") + e.text;
      break;
    case Kind::Member:
      out = "member " + e.text;
      break;
    case Kind::Index:
      out = "index";
      break;
    case Kind::Slice:
      out = "slice";
      break;
    case Kind::Unary:
    case Kind::Binary:
      out = e.text;
      break;
    case Kind::List:
      out = "list";
      break;
  }
  for (size_t i = 0; i < e.operands.size(); ++i)
    out += " " + (i < e.names.size() && !e.names[i].text.empty() ? e.names[i].text + "=" : "") + dump(e.operands[i]);
  return "(" + out + ")";
}
std::string dump(const std::vector<ast::Step>& steps) {
  using Kind = ast::Step::Kind;
  std::string out;
  for (const ast::Step& s : steps) {
    out += " | ";
    if (s.kind == Kind::Assign) out += s.name.text + " = " + dump(s.expr);
    if (s.kind == Kind::Filter) out += "filter " + dump(s.expr);
    if (s.kind == Kind::Call) out += dump(s.expr);
    if (s.kind == Kind::Select || s.kind == Kind::Drop) {
      out += s.name.text;
      for (const ast::Name& f : s.fields) out += " " + f.text;
    }
    if (s.kind == Kind::If) out += "if " + dump(s.expr) + " {" + dump(s.then) + " } else {" + dump(s.otherwise) + " }";
  }
  return out;
}
std::string dump(const ast::Pipe& p) { return dump(p.source) + dump(p.steps); }
std::string dump(const ast::Declarations& d) {
  std::string out;
  for (const ast::Let& l : d.lets) out += "let " + l.name.text + " = " + dump(l.value) + "\n";
  for (const ast::Function& f : d.functions) {
    out += "fn " + f.name.text;
    for (const ast::Parameter& p : f.parameters) out += " " + p.name.text + (p.type ? ":" + dump(*p.type) : "");
    out += " = " + dump(f.body) + "\n";
  }
  for (const ast::Stream& s : d.streams) out += "stream " + s.name.text + " = " + dump(s.pipe) + "\n";
  return out;
}
std::string dump(const ast::File& f) {
  std::string out = dump(f.declarations);
  for (const ast::Pipeline& p : f.pipelines) {
    out += "pipeline " + p.name.text;
    for (const ast::Parameter& q : p.parameters)
      out += " " + q.name.text + ":" + (q.type ? dump(*q.type) : "") +
             (q.default_value ? "=" + dump(*q.default_value) : "");
    out += (p.contract ? " -> " + dump(*p.contract) : "") + "\n" + dump(p.declarations) + dump(p.pipe) + "\n";
  }
  return out;
}

struct Parsed {
  std::string tree;    // empty where it failed
  std::string errors;  // rendered
  size_t count = 0;
};
Parsed parse(const std::string& text, bool yaml = false) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(yaml ? "t.yaml" : "t.zpl", text);
  Result<ast::File> result = yaml ? parse_yaml(sources, file, diags) : parse_zpl(sources, file, diags);
  EXPECT_EQ(result.ok(), !diags.has_errors());
  return {result.ok() ? dump(*result) : "", render(diags, sources), diags.sorted().size()};
}
std::string zpl(const std::string& text) {
  Parsed p = parse(text);
  EXPECT_EQ(p.errors, "");
  return p.tree;
}
std::string yaml(const std::string& text) {
  Parsed p = parse(text, true);
  EXPECT_EQ(p.errors, "");
  return p.tree;
}
// The first line of what is said, with its place.
std::string said(const std::string& text, bool is_yaml = false) {
  std::string e = parse(text, is_yaml).errors;
  size_t line = e.find('\n'), place = e.find("--> ");
  return place == e.npos ? e.substr(0, line)
                         : e.substr(0, line) + " @" + e.substr(place + 4, e.find('\n', place) - place - 4);
}

TEST(Syntax, ReadsThePipelineOfTheDesign) {
  EXPECT_EQ(zpl(R"(zpl 1
pipeline imagenet(root: path, size: int = 224, mode: enum(train, eval) = train)
    -> {image: f32[64, 3, size, size], label: i64[64]} {   # optional contract
  let classes = dirs(root)
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | if mode == train { shuffle() }
  | image = bytes.decode_image(mode="rgb")
                 .normalize(mean=[0.485, -1])
  | select image, label
  | batch(64, drop_remainder=true)
})"),
            "pipeline imagenet root:<path> size:<int>=224 mode:<enum train eval>=train -> "
            "< image:<f32[] 64 3 size size> label:<i64[] 64>>\n"
            "let classes = (dirs root)\n"
            "(files \"{root}/*/*.jpg\") | label = (.index_of classes (member name (member parent path)))"
            " | if (== mode train) { | (shuffle) } else { }"
            " | image = (.normalize (.decode_image bytes mode=\"rgb\") mean=(list 0.485 (- 1)))"
            " | select image label | (batch 64 drop_remainder=true)\n");
}

TEST(Syntax, Precedence) {
  auto expr = [](const std::string& text) {
    std::string all = zpl("range(1) | x = " + text);
    return all.substr(all.find(" = ") + 3, all.size() - all.find(" = ") - 4);
  };
  EXPECT_EQ(expr("1 + 2 * 3 - 4"), "(- (+ 1 (* 2 3)) 4)");
  EXPECT_EQ(expr("not a == b and c or d"), "(or (and (not (== a b)) c) d)");
  EXPECT_EQ(expr("-x.f(1)[2] // y % 3"), "(% (// (- (index (.f x 1) 2)) y) 3)");
  EXPECT_EQ(expr("x[1, 2:5, :, ::2, a:]"), "(index x 1 (slice 2 5 _) (slice _ _ _) (slice _ _ 2) (slice a _ _))");
  EXPECT_EQ(expr("(1 + 2) * 3"), "(* (+ 1 2) 3)");
  EXPECT_EQ(expr("50_000_000 + 0.485E-3 + 1e+5"), "(+ (+ 50000000 0.485e-3) 1e+5)");
  EXPECT_EQ(expr("f({a: f32, b: str[2]})"), "(f (schema a:<f32> b:<str[] 2>))");
  EXPECT_EQ(expr("x.filter.select(1)"), "(.select (member filter x) 1)");
}

TEST(Syntax, Strings) {
  EXPECT_EQ(zpl(R"(files("a\t\"\\\{\}\x41\u{e9}{x + 1}z{y}"))"),
            "pipeline \n(files \"a\t\"\\{}A\xC3\xA9{(+ x 1)}z{y}\")\n");
  EXPECT_EQ(zpl(R"(files(r"a\t{x}"))"), "pipeline \n(files \"a\\t{x}\")\n");
  EXPECT_EQ(said("files(\"\xC3\xA9 {x + }\")"),
            "error[E0100]: expected an expression, found the end of the text @t.zpl:1:15");
  EXPECT_EQ(said(R"(files("a\q"))"), "error[E0104]: `\\q` is not an escape @t.zpl:1:9");
  EXPECT_EQ(said(R"(files("a{x"))"), "error[E0104]: the hole `{` is not closed @t.zpl:1:9");
  EXPECT_EQ(said(R"(files("a}"))"), "error[E0104]: `}` closes no hole @t.zpl:1:9");
  EXPECT_EQ(said(R"(files("a{}"))"), "error[E0104]: the hole is empty @t.zpl:1:9");
  EXPECT_EQ(said("files(\"abc\n)"), "error[E0104]: the string is not closed @t.zpl:1:7");
  EXPECT_EQ(said("files('abc')"), "error[E0104]: a string stands between double quotes @t.zpl:1:7");
}

TEST(Syntax, ErrorsInWords) {
  EXPECT_EQ(said("range(1) | | batch(8)"), "error[E0100]: expected a pipeline step, found `|` @t.zpl:1:12");
  EXPECT_EQ(said("range(1) | }"), "error[E0100]: expected a pipeline step, found `}` @t.zpl:1:12");
  EXPECT_EQ(said("range(1) | x = "), "error[E0100]: expected an expression, found the end of the file @t.zpl:1:16");
  EXPECT_EQ(said("range(1 | batch(2)"), "error[E0100]: expected `,` or `)`, found `|` @t.zpl:1:9");
  EXPECT_EQ(said("range(1) | x = a < b < c"), "error[E0100]: comparisons do not chain @t.zpl:1:22");
  EXPECT_EQ(said("range(1) | x = f(a,,b)"), "error[E0100]: nothing stands between two commas @t.zpl:1:20");
  EXPECT_EQ(said("range(1) | x = f(1 = 2)"), "error[E0100]: an argument is named by a plain name @t.zpl:1:18");
  EXPECT_EQ(said("range(1) | x = a && b"), "error[E0100]: `&&` is not an operator of ZPL @t.zpl:1:18");
  EXPECT_EQ(said("range(1) | x = 3px"), "error[E0105]: `3px` is not a number @t.zpl:1:16");
  EXPECT_EQ(said("range(1) | x = 1__0"), "error[E0105]: `1__0` is not a number @t.zpl:1:16");
  EXPECT_EQ(said("range(1) | batch"), "error[E0100]: `batch` has no parentheses @t.zpl:1:12");
  EXPECT_EQ(said("zpl 2 range(1)"), "error[E0106]: this compiler knows version 1 of the language, not 2 @t.zpl:1:5");
  EXPECT_EQ(said("pipeline p() { range(1) }"), "error[E0106]: the version of the language is not stated @t.zpl:1:1");
  EXPECT_EQ(said("zpl 1 pipeline p(x: set<int>) { range(1) }"), "error[E0203]: no type is called `set<T>` @t.zpl:1:21");
  EXPECT_EQ(said("import \"a.zpl\" is a range(1)"), "error[E0100]: expected `as`, found `is` @t.zpl:1:16");
  EXPECT_EQ(said("import \"{a}.zpl\" as a range(1)"), "error[E0104]: the path of an import has no holes @t.zpl:1:8");
  EXPECT_EQ(said("range(1) | x = \xE2\x80\x9C"
                 "a\xE2\x80\x9D"),
            "error[E0101]: `\xE2\x80\x9C` cannot stand outside strings and comments @t.zpl:1:16");
  EXPECT_GE(parse("zpl 1\npipeline p(size int = 3) {\n  range(1)\n  | | batch(8\n  | filter x = 3\n}\n").count, 3u)
      << "several per run";
}

TEST(Syntax, GuardsOfText) {
  EXPECT_EQ(said(std::string("range(\0)", 8)), "error[E0101]: a NUL byte cannot stand in a program @t.zpl:1:7");
  EXPECT_EQ(said("range(1) # \xFF"), "error[E0101]: the byte 0xff is not UTF-8 @t.zpl:1:12");
  EXPECT_EQ(said("\xFF\xFEr\0"), "error[E0101]: the file is UTF-16, a program is UTF-8 @t.zpl:1:1");
  EXPECT_EQ(said(std::string((16u << 20) + 1, '\n')).substr(0, 12), "error[E0103]");
  EXPECT_EQ(zpl("\xEF\xBB\xBFrange(1)\r\n  | batch(2)\r\n"), zpl("range(1) | batch(2)")) << "byte order mark, CRLF";
  EXPECT_EQ(said("\xEF\xBB\xBFrange(1) |"),
            "error[E0100]: expected a pipeline step, found the end of the file @t.zpl:1:12");
}

TEST(Syntax, DeepNestingIsRefused) {
  for (const char* bracket : {"(", "[", "f(", "{a:f32["}) {
    std::string text = "range(1) | x = ";
    for (int i = 0; i < 10'000; ++i) text += bracket;
    EXPECT_EQ(said(text).substr(0, 12), "error[E0102]") << bracket;
  }
  auto repeated = [](const std::string& piece, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += piece;
    return text;
  };
  EXPECT_EQ(said("range(1) | x = " + repeated("1 + ", 10'000) + "1").substr(0, 12), "error[E0102]");
  EXPECT_EQ(said("range(1) | x = " + repeated("- ", 10'000) + "1").substr(0, 12), "error[E0102]");
  EXPECT_EQ(said("range(1) | x = " + repeated("not ", 10'000) + "a").substr(0, 12), "error[E0102]");
  EXPECT_EQ(said("range(1) | x = a" + repeated(".f()", 10'000)).substr(0, 12), "error[E0102]");
  EXPECT_EQ(said("range(1) | if a { x = 1 }" + repeated(" else if a { x = 1 }", 10'000)).substr(0, 12), "error[E0102]");
  EXPECT_EQ(parse("range(1) | x = " + repeated("(", 190) + "1" + repeated(")", 190)).errors, "");
  EXPECT_EQ(parse("range(1) | x = " + repeated("1 + ", 900) + "1").errors, "");
}

TEST(Syntax, RandomBytesAreRefusedBriefly) {
  std::mt19937 random(7);
  std::string bytes(1'000'000, 0), letters = bytes;
  const std::string alphabet = "abc xyz 019 (){}[] ,.:|=<>+-*/%\"#\n filter let fn if else stream";
  for (char& c : bytes) c = static_cast<char>(random());
  for (char& c : letters) c = alphabet[random() % alphabet.size()];
  for (bool is_yaml : {false, true})
    for (const std::string& text : {bytes, letters}) {
      Parsed p = parse(text, is_yaml);
      EXPECT_EQ(p.tree, "");
      EXPECT_GE(p.count, 1u);
      EXPECT_LE(p.count, 21u);
      EXPECT_LT(p.errors.size(), 30'000u);
    }
  // Short ones reach more of the parser.
  for (int i = 0; i < 2'000; ++i) {
    std::string text;
    for (size_t n = random() % 60; n > 0; --n) text += alphabet[random() % alphabet.size()];
    parse("range(1) | " + text);
    parse("zpl: 1\nsteps:\n  - range: 1\n  - " + text, true);
  }
}

TEST(SyntaxYaml, SameTreeAsZpl) {
  EXPECT_EQ(yaml(R"text(zpl: 1
pipeline: imagenet
params: {root: path, size: {type: int, default: 224}, mode: {type: "enum(train, eval)", default: train
}
}
returns: {image: "f32[64, 3, size, size]"}
let: {classes: dirs(root)}
functions:
  rms: {args: {x: "f64[n]"}, value: (x * x).mean().sqrt()}
streams:
  web: [{csv: {path: web.csv, columns: {lang: str}}}, {filter: lang == "en"}]
steps:
  - files: "{root}/*/*.jpg"
  - set: {label: classes.index_of(path.parent.name)}
  - shuffle: {}
  - take: 5
  - shard: [4, 1]
  - if: mode == train
    then: [{repeat: 2}]
    else:
      - drop: label
  - filter: label != 3
  - set:
      image: [bytes.decode_image(mode="rgb"), "random_resized_crop(size, size)", random_flip(), f(1).to_chw()]
      other: image
  - select: [image, label]
  - prefetch()
  - batch: {batch_size: 64, drop_remainder: true}
)text"),
            zpl(R"text(zpl 1
pipeline imagenet(root: path, size: int = 224, mode: enum(train, eval) = train) -> {image: f32[64, 3, size, size]} {
  let classes = dirs(root)
  fn rms(x: f64[n]) = (x * x).mean().sqrt()
  stream web = csv(path=web.csv, columns={lang: str}) | filter lang == "en"
  files("{root}/*/*.jpg")
  | label = classes.index_of(path.parent.name)
  | shuffle() | take(5) | shard(4, 1)
  | if mode == train { repeat(2) } else { drop label }
  | filter label != 3
  | image = bytes.decode_image(mode="rgb").random_resized_crop(size, size).random_flip().f(1).to_chw()
  | other = image
  | select image, label | prefetch()
  | batch(batch_size=64, drop_remainder=true)
})text"));
  EXPECT_EQ(yaml("zpl: 1\nstreams: {a: [{range: 3}]}\nsteps: [a, take(2)]"),
            "stream a = (range 3)\npipeline \na | (take 2)\n");
}

TEST(SyntaxYaml, PlacesOfExpressions) {
  const std::string head = "zpl: 1\nsteps:\n  - range: 3\n  - set:\n      x: ";
  EXPECT_EQ(said(head + "1 + * 2\n", true), "error[E0100]: expected an expression, found `*` @t.yaml:5:14");
  EXPECT_EQ(said(head + "\"a\\x41 + * 2\"\n", true), "error[E0100]: expected an expression, found `*` @t.yaml:5:19");
  EXPECT_EQ(said(head + "'f(''a'') + * 2'\n", true),
            "error[E0104]: a string stands between double quotes @t.yaml:5:13");
  EXPECT_EQ(said(head + ">\n        1 +\n        * 2\n", true),
            "error[E0100]: expected an expression, found `*` @t.yaml:7:9");
  EXPECT_EQ(said(head + "1 +\n        * 2\n", true), "error[E0100]: expected an expression, found `*` @t.yaml:6:9");
  EXPECT_EQ(said("\xEF\xBB\xBFzpl: 1\r\nsteps:\r\n  - range: 3\r\n  - filter: 1 + * 2\r\n", true),
            "error[E0100]: expected an expression, found `*` @t.yaml:4:17");
  EXPECT_EQ(said("zpl: 1\nsteps:\n  - files: \"{root/*.jpg\"\n", true),
            "error[E0104]: the hole `{` is not closed @t.yaml:3:13");
}

TEST(SyntaxYaml, Refuses) {
  const std::string head = "zpl: 1\nsteps:\n  - range: 3\n";
  EXPECT_EQ(said(head + "  - take: 3\n    take: 4\n", true),
            "error[E0151]: `take` stands twice in one mapping @t.yaml:5:5");
  EXPECT_EQ(said(head + "  - take: 3\n    skip: 4\n", true), "error[E0155]: a step has one key @t.yaml:5:5");
  EXPECT_EQ(said(head + "step: []\n", true), "error[E0152]: `step` has no meaning here @t.yaml:4:1");
  EXPECT_EQ(said(head + "\t- take: 3\n", true), "error[E0150]: a tab stands in the indentation @t.yaml:4:1");
  EXPECT_EQ(said(head + "  - filter: {x} > 3\n", true),
            "error[E0154]: YAML reads `{` as part of a mapping @t.yaml:4:19");
  EXPECT_EQ(said(head + "  - filter: {x: 3}\n", true),
            "error[E0154]: YAML reads this as a mapping, an expression is needed @t.yaml:4:13");
  EXPECT_EQ(said(head + "  - filter: x: 3\n", true), "error[E0154]: YAML reads `: ` as part of a mapping @t.yaml:4:14");
  EXPECT_EQ(said("zpl: 1\nsteps:\n  - files: {root}/*.jpg\n", true).substr(0, 12), "error[E0154]");
  EXPECT_EQ(said("zpl: 1\nsteps:\n  - files: {root}\n", true).substr(0, 12), "error[E0154]");
  EXPECT_EQ(said(head + "  - filter: \"x > 3\n", true), "error[E0150]: the quoted text is not closed @t.yaml:4:13");
  EXPECT_EQ(said(head + "---\nzpl: 1\n", true).substr(0, 55),
            "error[E0150]: the file has more than one document @t.ya");
  EXPECT_EQ(said(head + "  - filter: !!int 3\n", true), "error[E0150]: a tag has no meaning here @t.yaml:4:13");
  EXPECT_EQ(said("zpl: 1\nsteps: &a\n  - range: *a\n", true),
            "error[E0153]: the alias stands inside the node that it names @t.yaml:3:12");
  EXPECT_EQ(said("zpl: 1\nsteps: *a\n", true).substr(0, 12), "error[E0153]");
  std::string bomb = "zpl: 1\na0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) bomb += fmt::format("{}*a{}", k ? "," : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_EQ(said(bomb, true).substr(0, 75),
            "error[E0153]: the file has more than 100000 nodes once aliases are replaced");
  EXPECT_EQ(said("zpl: 1\nsteps: " + std::string(10'000, '['), true).substr(0, 12), "error[E0102]");
  std::string deep = "zpl: 1\nsteps:\n";
  for (int i = 0; i < 10'000; ++i) deep += std::string(static_cast<size_t>(i) / 100, ' ') + "- ";
  EXPECT_NE(said(deep, true), "");
  EXPECT_EQ(said(head + "  - set: {y: " + std::string(10'000, '(') + "}\n", true).substr(0, 12), "error[E0102]");
  EXPECT_EQ(said("", true), "error[E0155]: the file is empty @t.yaml:1:1");
  EXPECT_EQ(said("pipeline: x\nsteps: [{range: 3}]\n", true),
            "error[E0106]: the version of the language is not stated @t.yaml:1:1");
  EXPECT_EQ(said("zpl: 1\nlet: {filter: 3}\nsteps: [{range: 3}]\n", true),
            "error[E0155]: `filter` is not a name @t.yaml:2:7");
  EXPECT_EQ(said("zpl: 1\nsteps: {range: 3}\n", true),
            "error[E0155]: a pipeline is a list: a source, then steps @t.yaml:2:8");
}

TEST(SyntaxYaml, ScalarsAreTextOfZpl) {
  EXPECT_EQ(yaml("zpl: 1\nsteps:\n  - range: 3\n  - set: {a: no, b: 'yes', d: true, e: 1.50}\n"),
            "pipeline \n(range 3) | a = no | b = yes | d = true | e = 1.50\n");
}

TEST(Syntax, EveryExampleOfTheLanguagePageParses) {
  std::ifstream in(ZEPHON_SOURCE_DIR "/grammar/README.md");
  std::string line, block, kind;
  int blocks = 0;
  while (std::getline(in, line)) {
    if (!line.starts_with("```")) {
      if (!kind.empty()) block += line + "\n";
      continue;
    }
    if (kind.empty()) {
      kind = line.substr(3);
      block.clear();
    } else {
      EXPECT_EQ(parse(block, kind == "yaml").errors, "") << block;
      ++blocks;
      kind.clear();
    }
  }
  EXPECT_GE(blocks, 6);
}

}  // namespace
}  // namespace zephon
