// The YAML form -> the syntax tree, in two passes.
//
// 1. yaml-cpp's events -> a tree of nodes that know their places (Loader). What yaml-cpp lets through is refused here:
//    duplicate keys, cyclic or exploding aliases, depth, tags, a second document, quotes that are not closed.
// 2. Nodes -> syntax tree (Reader). Every scalar is ZPL text, parsed by parse_zpl with its bytes mapped back into this
// file.
#include "frontend/parse_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "frontend/parse_zpl.h"

namespace zephon {
namespace {

constexpr size_t kMaxLevels = 64;
constexpr size_t kMaxNodes = 100'000;

struct YamlNode {
  enum class Kind : uint8_t { Null, Scalar, Sequence, Map };
  enum class Style : uint8_t { Plain, Quoted, Block };
  Kind kind = Kind::Null;
  Style style = Style::Plain;  // of a scalar
  bool flow = false;           // a collection in brackets
  bool complete = false;       // an alias to an incomplete node is a cycle
  Span span;
  size_t size = 1;  // nodes below, aliases replaced
  std::string text;
  std::vector<uint32_t> offsets;                 // of each byte of `text` in the file, and of the end
  std::vector<std::shared_ptr<YamlNode>> items;  // of a map: key, value, key, value ...

  bool is_null() const { return kind == Kind::Null; }
  // The first key, to point at the whole.
  Span key_span() const { return items.empty() ? span : items[0]->span; }
  size_t entry_count() const { return items.size() / 2; }
  const YamlNode& key(size_t i) const { return *items[2 * i]; }
  const YamlNode& value(size_t i) const { return *items[2 * i + 1]; }
  const YamlNode* find(std::string_view name) const {
    for (size_t i = 0; i < entry_count(); ++i)
      if (key(i).text == name) return &value(i);
    return nullptr;
  }
};
using YamlPtr = std::shared_ptr<YamlNode>;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

struct Stop {
  Reported reported;
};

class Loader : public YAML::EventHandler {
 public:
  Loader(const SourceMap& sources, FileId file, uint32_t body_begin, Diagnostics& diags)
      : raw_(sources.text(file)), file_(file), body_begin_(body_begin), diags_(diags) {}

  YamlPtr root;
  std::vector<Span> scalars;  // in the order of the text; comments stand outside of them

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root != nullptr)
      throw Stop{diags_.report(Kind::YamlSyntax, "the file has more than one document")
                     .primary(point(place(mark)), "a second one begins here")
                     .emit()};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = std::make_shared<YamlNode>();
    node->span = point(place(mark));
    node->complete = true;
    remember(anchor, node);
    attach(node);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlPtr target = anchors_[anchor];
    Span here = word(place(mark));
    if (!target->complete)
      throw Stop{diags_.report(Kind::YamlAlias, "the alias stands inside the node that it names")
                     .primary(here, "this would repeat without end")
                     .secondary(point(target->span.begin), "the node begins here")
                     .emit()};
    alias_ = here;
    attach(target);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    auto node = std::make_shared<YamlNode>();
    node->kind = YamlNode::Kind::Scalar;
    node->complete = true;
    node->text = value;
    locate(*node, skip_properties(place(mark)));
    scalars.push_back(node->span);
    remember(anchor, node);
    attach(node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, YamlNode::Kind::Sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, YamlNode::Kind::Map);
  }
  void OnMapEnd() override { close(); }

 private:
  uint32_t place(const YAML::Mark& mark) const {
    size_t at = mark.pos < 0 ? 0 : static_cast<size_t>(mark.pos);
    return static_cast<uint32_t>(std::min(body_begin_ + at, raw_.size()));
  }
  Span point(uint32_t at) const { return {file_, at, std::min(at + 1, static_cast<uint32_t>(raw_.size()))}; }
  Span word(uint32_t at) const {
    uint32_t end = at;
    while (end < raw_.size() && !is_space(raw_[end]) &&
           std::string_view(",]}").find(raw_[end]) == std::string_view::npos)
      ++end;
    return {file_, at, end};
  }
  // An anchor stands before its node.
  uint32_t skip_properties(uint32_t at) const {
    while (at < raw_.size() && (raw_[at] == '&' || raw_[at] == '!')) {
      while (at < raw_.size() && !is_space(raw_[at])) ++at;
      while (at < raw_.size() && is_space(raw_[at])) ++at;
    }
    return at;
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Stop{diags_.report(Kind::YamlSyntax, "a tag has no meaning here")
                     .primary(word(place(mark)))
                     .hint("every scalar is ZPL text; a string there stands in double quotes")
                     .emit()};
  }
  void remember(YAML::anchor_t anchor, const YamlPtr& node) {
    if (anchor != 0) anchors_[anchor] = node;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style,
            YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->flow = style == YAML::EmitterStyle::Flow;
    node->span = point(skip_properties(place(mark)));
    if (stack_.size() >= kMaxLevels)
      throw Stop{diags_.report(Kind::TooDeep, "the file is nested more than {} levels deep", kMaxLevels)
                     .primary(node->span)
                     .emit()};
    remember(anchor, node);
    stack_.push_back(node);
  }
  void close() {
    YamlPtr node = stack_.back();
    stack_.pop_back();
    node->complete = true;
    if (!node->items.empty()) node->span.end = std::max(node->span.end, node->items.back()->span.end);
    attach(node);
  }

  void attach(const YamlPtr& node) {
    if (stack_.empty()) {
      root = node;
      return;
    }
    YamlNode& parent = *stack_.back();
    if (parent.kind == YamlNode::Kind::Map && parent.items.size() % 2 == 0) check_key(parent, *node);
    parent.items.push_back(node);
    parent.size += node->size;
    if (parent.size > kMaxNodes)
      throw Stop{diags_.report(Kind::YamlAlias, "the file has more than {} nodes once aliases are replaced", kMaxNodes)
                     .primary(alias_ ? *alias_ : node->span)
                     .emit()};
    alias_.reset();
  }

  void check_key(const YamlNode& map, const YamlNode& key) {
    if (key.kind == YamlNode::Kind::Map && key.flow)
      throw Stop{diags_.report(Kind::YamlNeedsQuotes, "YAML reads `{{` as the beginning of a mapping")
                     .primary(key.span)
                     .hint("write the expression between quotes")
                     .emit()};
    if (key.kind != YamlNode::Kind::Scalar)
      throw Stop{diags_.report(Kind::YamlShape, "a key must be a name").primary(key.span).emit()};
    for (size_t i = 0; i < map.items.size(); i += 2)
      if (map.items[i]->text == key.text)
        throw Stop{diags_.report(Kind::YamlDuplicateKey, "`{}` stands twice in one mapping", key.text)
                       .primary(key.span)
                       .secondary(map.items[i]->span, "the first")
                       .emit()};
  }

  // Style, span and the place of every byte: walks the source beside the value that yaml-cpp made of it.
  void locate(YamlNode& node, uint32_t at) {
    char first = at < raw_.size() ? raw_[at] : '\0';
    node.style = first == '"' || first == '\''  ? YamlNode::Style::Quoted
                 : first == '|' || first == '>' ? YamlNode::Style::Block
                                                : YamlNode::Style::Plain;
    uint32_t p = at;
    if (node.style == YamlNode::Style::Quoted) ++p;
    if (node.style == YamlNode::Style::Block)
      while (p < raw_.size() && (p == at || raw_[p - 1] != '\n')) ++p;
    node.offsets.reserve(node.text.size() + 1);
    for (size_t i = 0; i < node.text.size();) {
      char c = node.text[i];
      char r = p < raw_.size() ? raw_[p] : '\0';
      if (first == '"' && r == '\\') {
        char e = p + 1 < raw_.size() ? raw_[p + 1] : '\0';
        if (e == '\n' || e == '\r') {  // a line that goes on
          ++p;
          while (p < raw_.size() && is_space(raw_[p])) ++p;
          continue;
        }
        auto lead = static_cast<unsigned char>(c);
        size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        for (size_t k = 0; k < bytes && i < node.text.size(); ++k, ++i) node.offsets.push_back(p);
        p += e == 'x' ? 4 : e == 'u' ? 6 : e == 'U' ? 10 : 2;
      } else if (first == '\'' && r == '\'' && c == '\'') {
        node.offsets.push_back(p);
        p += 2;
        ++i;
      } else if (c == ' ' || c == '\n') {
        // A folded line: the whole run of space in the source stands for the run in the value.
        size_t run = p;
        while (run < raw_.size() && is_space(raw_[run])) ++run;
        bool folded = raw_.substr(std::min<size_t>(p, raw_.size()), run - p).find('\n') != std::string_view::npos;
        node.offsets.push_back(p);
        ++i;
        if (!folded)
          ++p;
        else if (i < node.text.size() && node.text[i] != ' ' && node.text[i] != '\n')
          p = static_cast<uint32_t>(run);
      } else {
        while (p < raw_.size() && raw_[p] != c && is_space(raw_[p])) ++p;
        node.offsets.push_back(std::min(p, static_cast<uint32_t>(raw_.size())));
        ++p;
        ++i;
      }
      p = std::min(p, static_cast<uint32_t>(raw_.size()));
    }
    uint32_t end = node.offsets.empty() ? p : std::min(node.offsets.back() + 1, static_cast<uint32_t>(raw_.size()));
    node.offsets.push_back(end);
    node.span = {file_, at, std::max(end, at)};
    if (node.style != YamlNode::Style::Quoted) return;
    // yaml-cpp takes the end of the file for a closing quote.
    for (p = std::max(p, at + 1); p < raw_.size() && raw_[p] != first; ++p)
      if (first == '"' && raw_[p] == '\\') ++p;
    if (p >= raw_.size())
      throw Stop{
          diags_.report(Kind::YamlSyntax, "the quoted text is not closed").primary(point(at), "opens here").emit()};
    node.span.end = p + 1;
  }

  std::string_view raw_;
  FileId file_;
  uint32_t body_begin_;
  Diagnostics& diags_;
  std::vector<YamlPtr> stack_;
  std::map<YAML::anchor_t, YamlPtr> anchors_;
  std::optional<Span> alias_;  // of the node that is being attached
};

class Reader {
 public:
  Reader(FileId file, Diagnostics& diags) : file_(file), diags_(diags) {}
  std::optional<Reported> failed;

  std::vector<ast::Comment> comments;  // inside of scalars

  ast::File file(const YamlNode& root) {
    ast::File out;
    out.file = file_;
    if (root.kind != YamlNode::Kind::Map) {
      shape(root.span, "a pipeline is a mapping with the keys `zpl` and `steps`");
      return out;
    }
    version(root);
    for (size_t i = 0; i < root.entry_count(); ++i)
      if (root.key(i).text == "zpl") out.header = join(root.key(i).span, root.value(i).span);
    auto has = [&](std::string_view key) { return root.find(key) != nullptr; };
    bool alone = has("pipeline") || has("params") || has("returns") || has("steps");
    bool declares = has("import") || has("declare") || has("let") || has("functions") || has("streams") ||
                    has("pipelines") || has("tests");
    if (alone || (!declares && root.entry_count() > 1)) {
      // One pipeline, whose declarations stand beside it.
      refuse_unknown(root, {"zpl", "import", "declare", "pipeline", "params", "returns", "let", "functions", "streams",
                            "steps", "tests"});
      ast::Pipeline pipeline;
      if (const YamlNode* node = root.find("pipeline")) pipeline.name = name(*node);
      bool named = has("pipeline");
      pipeline_body(root, pipeline);
      pipeline.span = {};
      for (size_t i = 0; i < root.entry_count(); ++i) {
        const std::string& key = root.key(i).text;
        bool outside = key == "import" || key == "tests";
        if (outside || !named)
          section(root.key(i), root.value(i), out.declarations, &out);
        else
          section(root.key(i), root.value(i), pipeline.declarations, nullptr);
        // The pipeline is what does not stand outside of it.
        if (outside || key == "zpl") continue;
        Span entry = join(root.key(i).span, root.value(i).span);
        pipeline.span = pipeline.block = pipeline.span.valid() ? join(pipeline.span, entry) : entry;
      }
      out.pipelines.push_back(std::move(pipeline));
    } else {
      refuse_unknown(root, {"zpl", "import", "declare", "let", "functions", "streams", "pipelines", "tests"});
      for (size_t i = 0; i < root.entry_count(); ++i) section(root.key(i), root.value(i), out.declarations, &out);
    }
    return out;
  }

 private:
  using Kinds = YamlNode::Kind;

  void shape(Span at, std::string_view message) {
    failed = diags_.report(Kind::YamlShape, "{}", message).primary(at).emit();
  }

  void pipeline_body(const YamlNode& node, ast::Pipeline& pipeline) {
    pipeline.span = pipeline.block = node.span;
    if (const YamlNode* n = node.find("params")) parameters(*n, pipeline.parameters);
    if (const YamlNode* n = node.find("returns")) pipeline.contract = record_or_type(*n);
    if (const YamlNode* n = node.find("steps"))
      pipe(*n, *n, pipeline.pipe);
    else
      failed = diags_.report(Kind::YamlShape, "the pipeline has no `steps`").primary(node.key_span()).emit();
  }

  // A key that declares. `file`: where imports, pipelines and tests go; null inside a pipeline.
  void section(const YamlNode& key, const YamlNode& node, ast::Declarations& into, ast::File* file) {
    const std::string& what = key.text;
    if (what == "declare") {
      if (node.kind != Kinds::Sequence)
        return shape(key.span, "`declare` is a list of `let`, `functions`, `streams` ...");
      for (const YamlPtr& item : node.items) {
        if (item->kind != Kinds::Map || item->entry_count() != 1)
          return shape(item->span, "an entry of `declare` has one key");
        std::vector<std::string> known = {"let", "functions", "streams"};
        if (file != nullptr) known.insert(known.end(), {"import", "pipelines", "tests"});
        refuse_unknown(*item, known);
        section(item->key(0), item->value(0), into, file);
      }
    } else if (what == "let") {
      for_entries(node, "`let` is a mapping: name to expression",
                  [&](const YamlNode& name_node, const YamlNode& value) {
                    ast::Name declared = name(name_node);
                    if (auto e = expression(value, name_node))
                      into.lets.push_back({declared, join(name_node.span, value.span), *std::move(e)});
                  });
    } else if (what == "functions") {
      for_entries(node, "`functions` is a mapping: name to `{args: ..., value: ...}`",
                  [&](const YamlNode& name_node, const YamlNode& value) { function(name_node, value, into); });
    } else if (what == "streams") {
      for_entries(node, "`streams` is a mapping: name to a list of steps",
                  [&](const YamlNode& name_node, const YamlNode& value) { stream(name_node, value, into); });
    } else if (file != nullptr && what == "import") {
      for_entries(node, "`import` is a mapping: name to path", [&](const YamlNode& name_node, const YamlNode& value) {
        if (value.kind != Kinds::Scalar) return shape(name_node.span, "an import needs the path of a file");
        std::optional<ast::Expr> path = keep(parse_string_body(piece(value), diags_));
        if (!path) return;
        if (!path->operands.empty()) return shape(value.span, "the path of an import has no holes");
        into.imports.push_back({name(name_node), join(name_node.span, value.span), *std::move(path)});
      });
    } else if (file != nullptr && what == "pipelines") {
      for_entries(node, "`pipelines` is a mapping: name to `{params: ..., steps: ...}`",
                  [&](const YamlNode& name_node, const YamlNode& value) {
                    ast::Pipeline pipeline;
                    pipeline.name = name(name_node);
                    if (value.kind != Kinds::Map)
                      return shape(name_node.span, fmt::format("the pipeline `{}` has no `steps`", name_node.text));
                    refuse_unknown(value, {"params", "returns", "declare", "let", "functions", "streams", "steps"});
                    pipeline_body(value, pipeline);
                    pipeline.span = join(name_node.span, value.span);
                    for (size_t i = 0; i < value.entry_count(); ++i)
                      section(value.key(i), value.value(i), pipeline.declarations, nullptr);
                    file->pipelines.push_back(std::move(pipeline));
                  });
    } else if (file != nullptr && what == "tests") {
      for_entries(node, "`tests` is a mapping: name to entries",
                  [&](const YamlNode& name_node, const YamlNode& value) { test(name_node, value, *file); });
    }
  }

  void stream(const YamlNode& key, const YamlNode& value, ast::Declarations& into) {
    ast::Stream stream;
    stream.name = name(key);
    stream.span = join(key.span, value.span);
    const YamlNode* steps = &value;
    if (value.kind == Kinds::Map) {
      refuse_unknown(value, {"returns", "steps"});
      if (const YamlNode* contract = value.find("returns")) stream.contract = record_or_type(*contract);
      steps = value.find("steps");
      if (steps == nullptr) return shape(key.span, fmt::format("the stream `{}` has no `steps`", key.text));
    }
    if (pipe(*steps, key, stream.pipe)) into.streams.push_back(std::move(stream));
  }

  void test(const YamlNode& key, const YamlNode& value, ast::File& file) {
    ast::Test test;
    test.span = join(key.span, value.span);
    test.block = value.span;
    test.name_span = key.span;
    std::optional<ast::Expr> named = keep(parse_string_body(piece(key), diags_));
    if (!named) return;
    if (!named->operands.empty()) return shape(key.span, "the name of a test has no holes");
    test.name = named->pieces[0];
    test.literal = named->literal;
    auto entry = [&](const YamlNode& entry_key, const YamlNode& node) {
      if (entry_key.text == "of") {
        if (test.of) shape(entry_key.span, "`of` stands twice in one test");
        test.of = name(node);
        return;
      }
      ast::TestEntry out;
      out.key = {entry_key.text, entry_key.span};
      out.span = join(entry_key.span, node.span);
      if (entry_key.text == "check") {
        out.expr = expression(node, entry_key);
      } else if (entry_key.text == "fails") {
        if (node.kind != Kinds::Scalar) return shape(entry_key.span, "`fails` needs a text");
        out.expr = keep(parse_string_body(piece(node), diags_));
      } else if ((node.kind == Kinds::Sequence && !node.items.empty() && node.items[0]->kind != Kinds::Map) ||
                 (node.kind == Kinds::Scalar && node.style != YamlNode::Style::Quoted)) {
        out.values = argument(node, entry_key);
        if (out.values && out.values->kind != ast::Expr::Kind::List)
          return shape(node.span, "a sample is a mapping: field to value");
      } else {
        out.list = node.kind == Kinds::Sequence;
        for (const YamlNode* sample_node : sample_nodes(node)) {
          ast::TestSample sample;
          sample.span = sample_node->span;
          for_entries(*sample_node, "a sample is a mapping: field to value",
                      [&](const YamlNode& field, const YamlNode& field_value) {
                        std::optional<ast::Expr> e = test_value(field_value, field);
                        if (!e) return;
                        if (std::optional<Reported> bad = make_test_value(*e, diags_)) failed = bad;
                        sample.fields.push_back({name(field), *std::move(e)});
                      });
          out.samples.push_back(std::move(sample));
        }
      }
      test.entries.push_back(std::move(out));
    };
    if (value.kind == Kinds::Sequence) {
      for (const YamlPtr& item : value.items) {
        if (item->kind != Kinds::Map || item->entry_count() != 1)
          return shape(item->span, "an entry of a test has one key");
        entry(item->key(0), item->value(0));
      }
    } else {
      for_entries(value, "a test is a mapping: `input`, `expect` ...", entry);
    }
    if (failed) return;
    if (std::optional<Reported> bad = check_test(test, diags_)) failed = bad;
    file.tests.push_back(std::move(test));
  }
  static std::vector<const YamlNode*> sample_nodes(const YamlNode& node) {
    if (node.kind != Kinds::Sequence) return {&node};
    std::vector<const YamlNode*> nodes;
    for (const YamlPtr& item : node.items) nodes.push_back(item.get());
    return nodes;
  }

  template <class F>
  void for_entries(const YamlNode& node, std::string_view otherwise, F&& each) {
    if (node.is_null()) return;
    if (node.kind != Kinds::Map) return shape(node.span, otherwise);
    for (size_t i = 0; i < node.entry_count(); ++i) each(node.key(i), node.value(i));
  }

  void refuse_unknown(const YamlNode& map, std::vector<std::string> known) {
    for (size_t i = 0; i < map.entry_count(); ++i) {
      const YamlNode& key = map.key(i);
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      std::string hint = did_you_mean(key.text, known);
      auto builder = diags_.report(Kind::YamlUnknownKey, "`{}` has no meaning here", key.text).primary(key.span);
      if (hint.empty()) {
        std::string all;
        for (const std::string& k : known) all += (all.empty() ? "`" : ", `") + k + "`";
        failed = std::move(builder).note("the keys are {}", all).emit();
      } else {
        failed = std::move(builder).hint_text(hint).emit();
      }
    }
  }

  void version(const YamlNode& root) {
    const YamlNode* node = root.find("zpl");
    if (node == nullptr)
      failed = diags_.report(Kind::WrongVersion, "the version of the language is not stated")
                   .primary(root.key_span())
                   .hint("open the file with `zpl: 1`")
                   .emit();
    else if (node->text != "1")
      failed = diags_.report(Kind::WrongVersion, "this compiler knows version 1 of the language, not {}", node->text)
                   .primary(node->span)
                   .emit();
  }

  ast::Name name(const YamlNode& node) {
    if (node.kind != Kinds::Scalar || !is_name(node.text))
      failed = diags_.report(Kind::YamlShape, "`{}` is not a name", node.text)
                   .primary(node.span)
                   .hint("names consist of letters, digits and `_`, and are no words of the language")
                   .emit();
    return {node.text, node.span};
  }

  TextPiece piece(const YamlNode& node) { return {file_, node.text, node.span.begin, node.offsets, &comments}; }

  template <class T>
  std::optional<T> keep(Result<T> result) {
    if (result) return *std::move(result);
    failed = result.reported();
    return std::nullopt;
  }

  void needs_quotes(const YamlNode& node) {
    failed = diags_.report(Kind::YamlNeedsQuotes, "YAML reads this as a mapping, an expression is needed")
                 .primary(node.span)
                 .hint("write the expression between quotes: `\"...\"`")
                 .emit();
  }

  std::optional<ast::Type> type(const YamlNode& node, const YamlNode& owner) {
    if (node.kind == Kinds::Map) {
      needs_quotes(node);
      return std::nullopt;
    }
    if (node.kind != Kinds::Scalar) {
      shape(owner.span, fmt::format("`{}` needs a type", owner.text));
      return std::nullopt;
    }
    return keep(parse_type(piece(node), diags_));
  }

  std::optional<ast::Type> record_or_type(const YamlNode& node) {
    if (node.kind != Kinds::Map) return type(node, node);
    ast::Type record;
    record.kind = ast::Type::Kind::Record;
    record.span = node.span;
    for (size_t i = 0; i < node.entry_count(); ++i)
      if (auto t = type(node.value(i), node.key(i))) record.fields.push_back({name(node.key(i)), *std::move(t)});
    return record;
  }

  void parameters(const YamlNode& node, std::vector<ast::Parameter>& into) {
    for_entries(node, "parameters are a mapping: name to type", [&](const YamlNode& key, const YamlNode& value) {
      ast::Parameter parameter;
      parameter.name = name(key);
      if (value.is_null()) {
        // As in `fn f(x) = ...`: any type.
      } else if (value.kind == Kinds::Map) {
        refuse_unknown(value, {"type", "default"});
        if (const YamlNode* t = value.find("type")) parameter.type = type(*t, key);
        if (const YamlNode* d = value.find("default")) parameter.default_value = argument(*d, key);
      } else {
        parameter.type = type(value, key);
      }
      into.push_back(std::move(parameter));
    });
  }

  void function(const YamlNode& key, const YamlNode& value, ast::Declarations& into) {
    ast::Function function;
    function.name = name(key);
    function.span = join(key.span, value.span);
    if (value.kind != Kinds::Map) return shape(key.span, fmt::format("`{}` needs `args` and `value`", key.text));
    refuse_unknown(value, {"args", "value"});
    if (const YamlNode* args = value.find("args")) {
      if (args->kind == Kinds::Sequence)
        for (const YamlPtr& arg : args->items) function.parameters.push_back({name(*arg), std::nullopt, std::nullopt});
      else
        parameters(*args, function.parameters);
    }
    const YamlNode* body = value.find("value");
    if (body == nullptr) return shape(key.span, fmt::format("the function `{}` has no `value`", key.text));
    if (auto e = expression(*body, key)) {
      function.body = *std::move(e);
      into.functions.push_back(std::move(function));
    }
  }

  // Where an expression stands, quotes belong to YAML. A sequence is a chain of calls.
  std::optional<ast::Expr> expression(const YamlNode& node, const YamlNode& owner) {
    switch (node.kind) {
      case Kinds::Scalar:
        return keep(parse_expression(piece(node), diags_));
      case Kinds::Sequence:
        return chain(node);
      case Kinds::Map:
        needs_quotes(node);
        return std::nullopt;
      case Kinds::Null:
        break;
    }
    shape(owner.span, fmt::format("`{}` needs an expression", owner.text));
    return std::nullopt;
  }

  std::optional<ast::Expr> chain(const YamlNode& node) {
    std::optional<ast::Expr> left;
    for (const YamlPtr& item : node.items) {
      if (item->kind != Kinds::Scalar) {
        if (item->kind == Kinds::Map)
          needs_quotes(*item);
        else
          shape(item->span, "a link of a chain is an expression");
        return std::nullopt;
      }
      std::optional<ast::Expr> link = keep(parse_expression(piece(*item), diags_));
      if (!link) return std::nullopt;
      if (left) {
        // The value so far becomes the first argument of the innermost call: `f(2).g()` is `x.f(2).g()`.
        ast::Expr* call = &*link;
        while ((call->kind == ast::Expr::Kind::Call && call->method) || call->kind == ast::Expr::Kind::Member ||
               call->kind == ast::Expr::Kind::Index)
          call = &call->operands[0];
        if (call->kind != ast::Expr::Kind::Call) {
          failed = diags_.report(Kind::YamlShape, "a link of a chain is a call")
                       .primary(link->span)
                       .hint("write `{}()`", call->kind == ast::Expr::Kind::Name ? call->text : "f")
                       .emit();
          return std::nullopt;
        }
        link->depth += left->depth;
        if (link->depth > ast::kMaxDepth) {
          failed = diags_.report(Kind::TooDeep, "the chain has more than {} links", ast::kMaxDepth)
                       .primary(link->span)
                       .emit();
          return std::nullopt;
        }
        call->method = true;
        call->operands.insert(call->operands.begin(), *std::move(left));
        call->names.insert(call->names.begin(), ast::Name{});
      }
      left = std::move(link);
    }
    if (!left) shape(node.span, "a chain has at least one link");
    return left;
  }

  // A type or, in its place, a literal as ZPL writes it: `-1`, `true`, `'"a text"'`.
  std::optional<ast::Type> type_or_literal(const YamlNode& node, const YamlNode& owner) {
    const std::string_view text = node.kind == Kinds::Scalar ? std::string_view(node.text) : std::string_view();
    if (!text.starts_with("r\"") && text != "true" && text != "false" &&
        (text.empty() || std::string_view("-\"0123456789").find(text[0]) == std::string_view::npos))
      return type(node, owner);
    std::optional<ast::Expr> value = keep(parse_expression(piece(node), diags_));
    if (!value) return std::nullopt;
    ast::Type literal;
    literal.kind = ast::Type::Kind::Value;
    literal.span = node.span;
    literal.dims.push_back(*std::move(value));
    return literal;
  }

  // As an argument, and a mapping is a record of such.
  std::optional<ast::Expr> test_value(const YamlNode& node, const YamlNode& owner) {
    if (node.kind != Kinds::Sequence && node.kind != Kinds::Map) return argument(node, owner);
    ast::Expr e;
    e.span = e.text_span = node.span;
    e.kind = node.kind == Kinds::Map ? ast::Expr::Kind::Schema : ast::Expr::Kind::List;
    for (const YamlPtr& item : node.items) {
      std::optional<ast::Expr> operand = test_value(*item, owner);
      if (!operand) return std::nullopt;
      e.depth = std::max(e.depth, operand->depth + 1);
      e.operands.push_back(*std::move(operand));
    }
    for (size_t i = 0; node.kind == Kinds::Map && i < node.entry_count(); ++i) {
      if (node.value(i).is_null()) {
        needs_quotes(node);
        return std::nullopt;
      }
      std::optional<ast::Expr> value = test_value(node.value(i), node.key(i));
      if (!value) return std::nullopt;
      ast::Type held;
      held.kind = ast::Type::Kind::Value;
      held.span = value->span;
      held.dims.push_back(*std::move(value));
      e.fields.push_back({name(node.key(i)), std::move(held)});
    }
    return e;
  }

  // Where an argument of a step stands, quoted text is a string, as in ZPL; a sequence is a list; a mapping is a
  // schema, or names fields with their values.
  std::optional<ast::Expr> argument(const YamlNode& node, const YamlNode& owner) {
    ast::Expr e;
    e.span = e.text_span = node.span;
    switch (node.kind) {
      case Kinds::Null:
        shape(owner.span, fmt::format("`{}` needs a value", owner.text));
        return std::nullopt;
      case Kinds::Scalar:
        return keep(node.style == YamlNode::Style::Quoted ? parse_string_body(piece(node), diags_)
                                                          : parse_expression(piece(node), diags_));
      case Kinds::Sequence:
        e.kind = ast::Expr::Kind::List;
        for (const YamlPtr& item : node.items) {
          std::optional<ast::Expr> operand = argument(*item, owner);
          if (!operand) return std::nullopt;
          e.depth = std::max(e.depth, operand->depth + 1);
          e.operands.push_back(*std::move(operand));
        }
        return e;
      case Kinds::Map:
        e.kind = ast::Expr::Kind::Schema;
        for (size_t i = 0; i < node.entry_count(); ++i) {
          if (node.value(i).is_null()) {
            needs_quotes(node);
            return std::nullopt;
          }
          std::optional<ast::Type> t = type_or_literal(node.value(i), node.key(i));
          if (!t) return std::nullopt;
          e.fields.push_back({name(node.key(i)), *std::move(t)});
        }
        return e;
    }
    return std::nullopt;
  }

  // `op: value`, `op: [values]`, `op: {name: value}`.
  std::optional<ast::Expr> call(const YamlNode& key, const YamlNode& value) {
    ast::Expr e;
    e.kind = ast::Expr::Kind::Call;
    e.text = key.text;
    e.text_span = key.span;
    e.span = value.is_null() ? key.span : join(key.span, value.span);
    name(key);
    auto add = [&](const YamlNode& node, const YamlNode& owner, ast::Name label) {
      std::optional<ast::Expr> operand = argument(node, owner);
      if (!operand) return;
      e.depth = std::max(e.depth, operand->depth + 1);
      e.operands.push_back(*std::move(operand));
      e.names.push_back(std::move(label));
    };
    switch (value.kind) {
      case Kinds::Null:
        break;
      case Kinds::Scalar:
        add(value, key, {});
        break;
      case Kinds::Sequence:
        for (const YamlPtr& item : value.items) add(*item, key, {});
        break;
      case Kinds::Map:
        for (size_t i = 0; i < value.entry_count(); ++i) {
          // `files: {root}` is a mapping to YAML, with a key that has no value.
          if (value.flow && value.value(i).is_null()) {
            needs_quotes(value);
            return std::nullopt;
          }
          add(value.value(i), value.key(i), name(value.key(i)));
        }
        break;
    }
    return e;
  }

  bool pipe(const YamlNode& node, const YamlNode& owner, ast::Pipe& into) {
    if (node.kind != Kinds::Sequence || node.items.empty()) {
      shape(owner.span, "a pipeline is a list: a source, then steps");
      return false;
    }
    into.span = node.span;
    const YamlNode& first = *node.items[0];
    if (first.kind == Kinds::Scalar) {
      if (std::optional<ast::Expr> e = keep(parse_source(piece(first), diags_))) into.source = *std::move(e);
    } else if (first.kind == Kinds::Map && first.entry_count() == 1) {
      if (std::optional<ast::Expr> e = call(first.key(0), first.value(0))) into.source = *std::move(e);
    } else {
      shape(first.span, "a pipeline begins with a source, or with the name of a stream");
    }
    for (size_t i = 1; i < node.items.size(); ++i) step(*node.items[i], into.steps);
    return true;
  }

  void steps(const YamlNode& node, const YamlNode& owner, std::vector<ast::Step>& into) {
    if (node.is_null()) return;
    if (node.kind != Kinds::Sequence) return shape(owner.span, fmt::format("`{}` needs a list of steps", owner.text));
    for (const YamlPtr& item : node.items) step(*item, into);
  }

  void names(const YamlNode& node, const YamlNode& owner, std::vector<ast::Name>& into) {
    if (node.kind == Kinds::Scalar) {
      into.push_back(name(node));
    } else if (node.kind == Kinds::Sequence && !node.items.empty()) {
      for (const YamlPtr& item : node.items) into.push_back(name(*item));
    } else {
      shape(owner.span, fmt::format("`{}` needs a list of fields", owner.text));
    }
  }

  void step(const YamlNode& node, std::vector<ast::Step>& into) {
    if (node.kind == Kinds::Scalar) {
      if (std::optional<ast::Step> s = keep(parse_step(piece(node), diags_))) into.push_back(*std::move(s));
      return;
    }
    if (node.kind != Kinds::Map || node.items.empty()) return shape(node.span, "a step is `operator: arguments`");
    const YamlNode& key = node.key(0);
    const YamlNode& value = node.value(0);
    ast::Step out;
    out.name = {key.text, key.span};
    out.span = value.is_null() ? key.span : join(key.span, value.span);
    if (const YamlNode* condition = node.find("if")) {
      refuse_unknown(node, {"if", "then", "else"});
      out.kind = ast::Step::Kind::If;
      if (std::optional<ast::Expr> e = expression(*condition, key)) out.expr = *std::move(e);
      const YamlNode* then = node.find("then");
      if (then == nullptr) return shape(key.span, "`if` needs `then`");
      steps(*then, key, out.then);
      out.then_block = then->span;
      out.span = join(key.span, node.span);
      if (const YamlNode* otherwise = node.find("else")) {
        steps(*otherwise, key, out.otherwise);
        out.else_block = otherwise->span;
      }
      into.push_back(std::move(out));
      return;
    }
    if (node.entry_count() > 1) {
      failed = diags_.report(Kind::YamlShape, "a step has one key")
                   .primary(node.key(1).span, "a second one")
                   .secondary(key.span, "the step")
                   .hint("begin the next step with `- `")
                   .emit();
      return;
    }
    if (key.text == "set") {
      for_entries(value, "`set` is a mapping: field to expression", [&](const YamlNode& field, const YamlNode& body) {
        ast::Step assign;
        assign.kind = ast::Step::Kind::Assign;
        assign.name = name(field);
        assign.span = join(field.span, body.span);
        if (std::optional<ast::Expr> e = expression(body, field)) {
          assign.expr = *std::move(e);
          assign.span = join(field.span, assign.expr.span);
          into.push_back(std::move(assign));
        }
      });
      return;
    }
    if (key.text == "filter") {
      out.kind = ast::Step::Kind::Filter;
      std::optional<ast::Expr> e = expression(value, key);
      if (!e) return;
      out.expr = *std::move(e);
    } else if (key.text == "select" || key.text == "drop") {
      out.kind = key.text == "select" ? ast::Step::Kind::Select : ast::Step::Kind::Drop;
      names(value, key, out.fields);
    } else {
      std::optional<ast::Expr> e = call(key, value);
      if (!e) return;
      out.expr = *std::move(e);
    }
    into.push_back(std::move(out));
  }

  FileId file_;
  Diagnostics& diags_;
};

// What stands between `#` and the end of a line, outside of scalars.
void find_comments(std::string_view text, FileId file, uint32_t begin, std::vector<Span> scalars,
                   std::vector<ast::Comment>& into) {
  std::sort(scalars.begin(), scalars.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  size_t next = 0;
  for (uint32_t i = begin; i < text.size(); ++i) {
    while (next < scalars.size() && scalars[next].end <= i) ++next;
    if (next < scalars.size() && scalars[next].begin <= i) {
      bool block = text[scalars[next].begin] == '|' || text[scalars[next].begin] == '>';
      size_t header = block ? text.find('\n', scalars[next].begin) : 0;
      if (!block || i > header) {
        i = std::max(scalars[next].end, i + 1) - 1;
        continue;
      }
    }
    if (text[i] != '#' || (i > begin && !is_space(text[i - 1]))) continue;
    size_t end = std::min(text.find_first_of("\r\n", i), text.size());
    into.push_back({{file, i, static_cast<uint32_t>(end)}, std::string(text.substr(i, end - i))});
    i = static_cast<uint32_t>(end);
  }
}

// A tab before the first letter of a line. YAML forbids it; yaml-cpp says so in some places only.
std::optional<Reported> refuse_tabs(std::string_view text, FileId file, Diagnostics& diags) {
  std::optional<Reported> reported;
  for (size_t at = 0; at < text.size();) {
    size_t i = at, tab = std::string_view::npos;
    for (; i < text.size() && (text[i] == ' ' || text[i] == '\t'); ++i)
      if (text[i] == '\t' && tab == std::string_view::npos) tab = i;
    bool content = i < text.size() && text[i] != '\n' && text[i] != '\r' && text[i] != '#';
    if (tab != std::string_view::npos && content) {
      auto place = static_cast<uint32_t>(tab);
      reported = diags.report(Kind::YamlSyntax, "a tab stands in the indentation")
                     .primary({file, place, place + 1})
                     .hint("indent with spaces")
                     .emit();
      break;
    }
    at = text.find('\n', i);
    at = at == std::string_view::npos ? text.size() : at + 1;
  }
  return reported;
}

// yaml-cpp's complaints in our words.
Reported translate(const YAML::ParserException& error, const SourceMap& sources, FileId file, uint32_t body_begin,
                   Diagnostics& diags) {
  std::string_view text = sources.text(file);
  auto at = static_cast<uint32_t>(
      std::min<size_t>(body_begin + static_cast<size_t>(std::max(error.mark.pos, 0)), text.size()));
  Span place{file, at, std::min(at + 1, static_cast<uint32_t>(text.size()))};
  auto is = [&](const char* message) { return error.msg == message; };
  if (is(YAML::ErrorMsg::UNKNOWN_ANCHOR))
    return diags.report(Kind::YamlAlias, "the alias names no anchor above it").primary(place).emit();
  // The usual cause of a broken line is an expression that YAML reads as something else.
  std::string_view line = sources.line_text(file, sources.position(file, at).line);
  size_t body = line.find_first_not_of(" -");
  size_t colon = line.find(": ");
  bool brace = body != std::string_view::npos && line.find('{', body) != std::string_view::npos;
  bool colons = colon != std::string_view::npos && line.find(": ", colon + 2) != std::string_view::npos;
  if (is(YAML::ErrorMsg::MAP_VALUE) || (brace && !is(YAML::ErrorMsg::END_OF_MAP_FLOW)) || colons)
    return diags.report(Kind::YamlNeedsQuotes, "YAML reads {} as part of a mapping", brace ? "`{`" : "`: `")
        .primary(place, "and cannot go on here")
        .hint("write an expression that contains `{{` or `: ` between quotes")
        .emit();
  std::string_view words = is(YAML::ErrorMsg::END_OF_MAP_FLOW)   ? "a `{` is not closed"
                           : is(YAML::ErrorMsg::END_OF_SEQ_FLOW) ? "a `[` is not closed"
                           : is(YAML::ErrorMsg::END_OF_MAP) ? "the keys of this mapping do not stand below each other"
                           : is(YAML::ErrorMsg::END_OF_SEQ) ? "the entries of this list do not stand below each other"
                           : is(YAML::ErrorMsg::FLOW_END)   ? "this bracket closes nothing"
                                                            : "this is not YAML";
  auto builder = diags.report(Kind::YamlSyntax, "{}", words).primary(place);
  if (words == "this is not YAML") return std::move(builder).note("the YAML reader says: {}", error.msg).emit();
  return std::move(builder).emit();
}

}  // namespace

Result<ast::File> parse_yaml(const SourceMap& sources, FileId file, Diagnostics& diags) {
  Result<uint32_t> begin = check_text(sources, file, diags);
  if (!begin) return begin.reported();
  if (std::optional<Reported> tab = refuse_tabs(sources.text(file), file, diags)) return *tab;
  Loader loader(sources, file, *begin, diags);
  try {
    std::istringstream stream{std::string(sources.text(file).substr(*begin))};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(loader)) {
    }
  } catch (const Stop& stop) {
    return stop.reported;
  } catch (const YAML::ParserException& error) {
    return translate(error, sources, file, *begin, diags);
  }
  if (loader.root == nullptr || loader.root->is_null())
    return diags.report(Kind::YamlShape, "the file is empty").primary({file, *begin, *begin}).emit();
  Reader reader(file, diags);
  ast::File tree = reader.file(*loader.root);
  if (reader.failed) return *reader.failed;
  tree.comments = std::move(reader.comments);
  find_comments(sources.text(file), file, *begin, std::move(loader.scalars), tree.comments);
  std::sort(tree.comments.begin(), tree.comments.end(),
            [](const ast::Comment& a, const ast::Comment& b) { return a.span.begin < b.span.begin; });
  return tree;
}

}  // namespace zephon
