// Tests inside a program -> programs: the source of what is tested becomes the samples of `input`, and what is expected
// becomes programs of one sample. Places stay those of the file, so that messages point into the test.
#include <algorithm>

#include "frontend/compiler.h"

namespace zephon {
namespace {

using ast::Expr;

Expr named(const std::string& name, const Span& span) {
  Expr e;
  e.kind = Expr::Kind::Name;
  e.text = name;
  e.span = e.text_span = span;
  return e;
}
Expr number(size_t value, const Span& span) {
  Expr e = named(std::to_string(value), span);
  e.kind = Expr::Kind::Number;
  return e;
}
Expr call(const std::string& name, std::vector<Expr> operands, const Span& span) {
  Expr e = named(name, span);
  e.kind = Expr::Kind::Call;
  e.names.resize(operands.size());
  for (const Expr& operand : operands) e.depth = std::max(e.depth, operand.depth + 1);
  e.operands = std::move(operands);
  return e;
}
ast::Step assign(const ast::Name& field, Expr value) {
  ast::Step step;
  step.kind = ast::Step::Kind::Assign;
  step.name = field;
  step.span = value.span;
  step.expr = std::move(value);
  return step;
}
ast::Step drop(std::vector<ast::Name> fields, const Span& span) {
  ast::Step step;
  step.kind = ast::Step::Kind::Drop;
  step.name = {"drop", span};
  step.span = span;
  step.fields = std::move(fields);
  return step;
}

ast::Step given(const ast::Name& field, std::vector<Expr> values, const std::shared_ptr<const StreamType>& types,
                bool partial) {
  ast::Step step;
  step.kind = ast::Step::Kind::Assign;
  step.name = field;
  step.span = values[0].span;
  step.given = std::make_shared<ast::GivenSamples>(ast::GivenSamples{std::move(values), types, partial});
  return step;
}

// One sample after the other: `range(n) | field = [first, second][index] | drop index`. `partial`: as of GivenSamples.
ast::Pipe samples(const ast::TestEntry& input, const std::shared_ptr<const StreamType>& types, bool partial) {
  ast::Pipe pipe;
  pipe.span = input.span;
  pipe.source = call("range", {number(input.samples.size(), input.span)}, input.span);
  std::vector<ast::Name> fields;
  for (const ast::TestSample& sample : input.samples)
    for (const ast::TestField& f : sample.fields)
      if (std::none_of(fields.begin(), fields.end(), [&](const ast::Name& n) { return n.text == f.name.text; }))
        fields.push_back(f.name);
  for (const Field& field : types->fields) {
    const std::string top = field.name.substr(0, field.name.find('.'));
    const Field* missing = types->find(missing_field(field.name));
    if (!partial && missing != nullptr && missing->type.is_scalar() &&
        std::none_of(fields.begin(), fields.end(), [&](const ast::Name& n) { return n.text == top; }))
      fields.push_back({top, input.span});
  }
  // The number of the sample must outlive a field that is called `index`.
  std::stable_partition(fields.begin(), fields.end(), [](const ast::Name& n) { return n.text != "index"; });
  for (const ast::Name& name : fields) {
    std::vector<Expr> values;
    for (const ast::TestSample& sample : input.samples) {
      Expr absent;
      absent.span = absent.text_span = sample.span;
      values.push_back(absent);
      for (const ast::TestField& f : sample.fields)
        if (f.name.text == name.text) values.back() = f.value;
    }
    if (!fields_of(*types, name.text).empty()) {
      pipe.steps.push_back(given(name, std::move(values), types, partial));
      continue;
    }
    Expr value;
    if (input.samples.size() == 1) {
      value = std::move(values[0]);
    } else {
      Expr list;
      list.kind = Expr::Kind::List;
      list.span = list.text_span = name.span;
      for (const Expr& item : values) list.depth = std::max(list.depth, item.depth + 1);
      list.operands = std::move(values);
      value.kind = Expr::Kind::Index;
      value.span = value.text_span = name.span;
      value.depth = list.depth + 1;
      value.operands.push_back(std::move(list));
      value.operands.push_back(named("index", name.span));
    }
    pipe.steps.push_back(assign(name, std::move(value)));
  }
  if (std::none_of(fields.begin(), fields.end(), [](const ast::Name& n) { return n.text == "index"; }))
    pipe.steps.push_back(drop({{"index", input.span}}, input.span));
  return pipe;
}

// How deep lists stand in lists.
size_t list_depth(const Expr& e) {
  return e.kind != Expr::Kind::List ? 0 : 1 + (e.operands.empty() ? 0 : list_depth(e.operands[0]));
}

void append_elements(const Expr& e, std::vector<Span>& out) {
  if (e.kind != Expr::Kind::List) return out.push_back(e.span);
  for (const Expr& item : e.operands) append_elements(item, out);
}

// `expect: [2, 4]`: the value of the only field in one record, or, where the list is deeper by one than such a value,
// in one record after the other.
Result<std::vector<ast::TestSample>> samples_of_values(const Expr& values, const StreamType& type, Diagnostics& diags) {
  std::vector<std::string> names;
  size_t depth = type.batch ? 1 : 0;
  for (const Field& field : type.fields) {
    if (field.name.starts_with('$')) continue;
    if (field.name.find('#') != field.name.npos) ++depth;
    if (is_companion(field.name)) continue;
    names.push_back(field.name);
    depth += field.type.shape.size();
  }
  if (names.size() != 1) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "`" : ", `") + name + "`";
    return diags.report(Kind::BadTest, "the values are of no field, and {} are delivered: {}", names.size(), all)
        .primary(values.span)
        .hint("name the fields, for example `expect: {{{}: ...}}`", names.empty() ? "x" : names[0])
        .emit();
  }
  std::vector<ast::TestSample> out;
  auto add = [&](const Expr& value) { out.push_back({value.span, {{{names[0], value.span}, value}}}); };
  if (list_depth(values) == depth + 1)
    for (const Expr& value : values.operands) add(value);
  else
    add(values);
  return out;
}

// Every sample of a list gives the same fields; those of the source are looked at with their types.
std::optional<Reported> check_fields(const ast::TestEntry& entry, const StreamType& types, Diagnostics& diags) {
  for (const ast::TestSample& sample : entry.samples) {
    const ast::TestSample& first = entry.samples[0];
    for (const ast::TestField& f : first.fields)
      if (fields_of(types, f.name.text).empty() &&
          std::none_of(sample.fields.begin(), sample.fields.end(),
                       [&](const ast::TestField& g) { return g.name.text == f.name.text; }))
        return diags.report(Kind::BadTest, "the sample gives no `{}`", f.name.text)
            .primary(sample.span)
            .secondary(f.name.span, "the first one does")
            .emit();
    for (const ast::TestField& f : sample.fields)
      if (fields_of(types, f.name.text).empty() &&
          std::none_of(first.fields.begin(), first.fields.end(),
                       [&](const ast::TestField& g) { return g.name.text == f.name.text; }))
        return diags.report(Kind::BadTest, "the first sample gives no `{}`", f.name.text)
            .primary(f.name.span)
            .secondary(first.span, "the first sample")
            .emit();
  }
  return std::nullopt;
}

// What was found in the pipeline because the input lacks a field of the source is said of the input.
std::optional<Reported> check_given(const ast::TestEntry& input, const StreamType& source, const Diagnostics& found,
                                    const SourceMap& sources, Diagnostics& diags) {
  for (const Diagnostic& d : found.sorted()) {
    if (info(d.kind).severity == Severity::Lint || !d.primary.span.valid()) continue;
    std::string name(sources.text(d.primary.span));
    // Of a record whose other fields are given, the message is about the last part of the name.
    for (const Field& field : source.fields)
      if (!name.empty() && field.name.ends_with("." + name)) name = field.name;
    const auto& given = input.samples[0].fields;
    if (source.find(name) == nullptr || std::any_of(given.begin(), given.end(), [&](const ast::TestField& f) {
          const std::string top = f.name.text;
          if (name != top && !name.starts_with(top + ".")) return false;
          return name == top || is_given(project_given(f.value, std::string_view(name).substr(top.size() + 1)));
        }))
      continue;
    const bool read = source.find(name)->type == Type::scalar(Elem::Bytes) && source.find("path") != nullptr;
    return diags.report(Kind::BadTest, "the test gives no field `{}`, which the pipeline takes from its source", name)
        .primary(input.samples[0].span)
        .secondary(d.primary.span, "needed here")
        .hint("add `{}: {}` to the input", name, read ? "read_file(path)" : "...")
        .emit();
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> test_names(const SourceMap& sources, FileId file, Diagnostics& diags) {
  Result<ast::File> tree = parse_file(sources, file, diags);
  if (!tree) return tree.reported();
  std::vector<std::string> names;
  for (const ast::Test& test : tree->tests) names.push_back(test.name);
  return names;
}

Result<TestPrograms> compile_test(SourceMap& sources, FileId file, size_t index, const OpTable& ops, Diagnostics& diags,
                                  const CompileOptions& options) {
  Result<ast::File> parsed = parse_file(sources, file, diags);
  if (!parsed) return parsed.reported();
  const ast::File& tree = *parsed;
  const ast::Test& test = tree.tests.at(index);
  TestPrograms out;
  out.name = test.name;
  out.span = test.name_span;

  // What is under test: a pipeline, or a stream as one.
  const ast::Pipeline* pipeline = nullptr;
  const ast::Stream* stream = nullptr;
  std::vector<std::string> names;
  for (const ast::Pipeline& p : tree.pipelines) {
    names.push_back(p.name.text);
    if (test.of ? p.name.text == test.of->text : tree.pipelines.size() == 1) pipeline = &p;
  }
  for (const ast::Stream& s : tree.declarations.streams) {
    names.push_back(s.name.text);
    if (test.of && s.name.text == test.of->text) stream = &s;
  }
  const ast::TestEntry *input = test.find("input"), *expect = test.find("expect"), *fails = test.find("fails"),
                       *given = test.find("params");
  if (test.of && pipeline == nullptr && stream == nullptr)
    return diags.report(Kind::BadTest, "no pipeline or stream is called `{}`", test.of->text)
        .primary(test.of->span)
        .hint_text(did_you_mean(test.of->text, names))
        .emit();
  if (input != nullptr && pipeline == nullptr && stream == nullptr)
    return diags.report(Kind::BadTest, "the test does not say what it tests")
        .primary(test.name_span)
        .hint("write `test {} of NAME {{`", test.literal)
        .emit();

  // Parameters: texts, as the command line would give them; a default is replaced, so that any constant will do.
  ast::File base = tree;
  base.tests.clear();
  base.pipelines.clear();
  ast::Pipeline body;
  if (pipeline != nullptr) body = *pipeline;
  if (stream != nullptr) body.pipe = stream->pipe;
  body.contract.reset();
  body.name = {"test", test.name_span};
  if (given != nullptr)
    for (const ast::TestField& f : given->samples[0].fields) {
      auto p = std::find_if(body.parameters.begin(), body.parameters.end(),
                            [&](const ast::Parameter& q) { return q.name.text == f.name.text; });
      if (p == body.parameters.end())
        return diags.report(Kind::BadParameter, "the pipeline has no parameter `{}`", f.name.text)
            .primary(f.name.span)
            .emit();
      p->default_value = f.value;
    }
  // Lints are for `check`: a test leaves much unused.
  auto compile_into = [&](ast::Pipeline one, Diagnostics& found) -> Result<Program> {
    ast::File whole = base;
    whole.pipelines.push_back(std::move(one));
    static const std::map<std::string, std::string> kNone;
    CompileOptions how = options;
    how.pipeline.clear();
    return Compiler(sources, ops, kNone, found, how).run(std::move(whole));
  };
  auto keep = [&](const Diagnostics& found) {
    for (const Diagnostic& d : found.sorted())
      if (info(d.kind).severity != Severity::Lint) diags.add(d);
  };
  auto compiled = [&](ast::Pipeline one) -> Result<Program> {
    Diagnostics found;
    Result<Program> program = compile_into(std::move(one), found);
    keep(found);
    return program;
  };

  if (input != nullptr) {
    // The types of the source that `input` stands for.
    ast::Pipeline source = body;
    source.pipe.steps.clear();
    Result<Program> real = compiled(source);
    if (!real) return real.reported();
    const auto types = std::make_shared<const StreamType>(real->graph.node(real->graph.output()).type);
    if (std::optional<Reported> bad = check_fields(*input, *types, diags)) return *bad;
    ast::Pipeline fed = body;
    ast::Pipe head = samples(*input, types, false);
    head.steps.insert(head.steps.end(), body.pipe.steps.begin(), body.pipe.steps.end());
    fed.pipe = std::move(head);
    Diagnostics found;
    Result<Program> actual = compile_into(std::move(fed), found);
    if (!actual) {
      // What is wrong in the input itself comes alone: what the pipeline lacks then follows from it.
      bool own = false;
      for (const Diagnostic& d : found.sorted()) {
        const Span& at = d.primary.span;
        if (info(d.kind).severity == Severity::Lint || !at.valid() || at.file != file || at.begin < input->span.begin ||
            at.end > input->span.end)
          continue;
        diags.add(d);
        own = true;
      }
      if (own) return actual.reported();
      if (std::optional<Reported> missing = check_given(*input, *types, found, sources, diags)) return *missing;
    }
    keep(found);
    if (!actual) return actual.reported();
    out.actual = *std::move(actual);
  }
  if (expect != nullptr) {
    out.expects = true;
    out.expect_span = expect->span;
    const auto shared = std::make_shared<const StreamType>(out.actual->graph.node(out.actual->graph.output()).type);
    const StreamType& types = *shared;
    std::vector<ast::TestSample> wanted = expect->samples;
    if (expect->values) {
      Result<std::vector<ast::TestSample>> named = samples_of_values(*expect->values, types, diags);
      if (!named) return named.reported();
      wanted = *std::move(named);
    }
    for (const ast::TestSample& sample : wanted) {
      ast::TestEntry one;
      one.span = sample.span;
      one.samples.push_back(sample);
      for (const ast::TestField& f : sample.fields)
        if (fields_of(types, f.name.text).empty()) {
          std::vector<std::string> fields;
          for (const Field& field : types.fields)
            if (!is_companion(field.name)) fields.push_back(field.name.substr(0, field.name.find('.')));
          return diags.report(Kind::BadTest, "`{}` is not delivered", f.name.text)
              .primary(f.name.span)
              .hint_text(did_you_mean(f.name.text, fields))
              .emit();
        }
      ast::Pipeline constant = body;
      constant.pipe = samples(one, shared, true);
      Result<Program> program = compiled(std::move(constant));
      if (!program) return program.reported();
      ExpectedRecord& record = out.expected.emplace_back(ExpectedRecord{*std::move(program), sample.span, {}});
      for (const ast::TestField& f : sample.fields) {
        for (const std::string& leaf : fields_of(types, f.name.text)) {
          if (is_companion(leaf)) continue;
          const ast::Expr value =
              project_given(f.value, std::string_view(leaf).substr(std::min(leaf.size(), f.name.text.size() + 1)));
          ExpectedRecord::Place& place = record.places[leaf];
          place.value = value.span;
          append_elements(value, place.elements);
        }
      }
    }
  }
  for (const ast::TestEntry& entry : test.entries) {
    if (entry.key.text != "check") continue;
    ast::Pipeline condition = body;
    condition.pipe = {};
    condition.pipe.span = entry.span;
    condition.pipe.source = call("range", {number(1, entry.span)}, entry.span);
    condition.pipe.steps.push_back(assign({"check", entry.key.span}, *entry.expr));
    condition.pipe.steps.push_back(drop({{"index", entry.span}}, entry.span));
    Result<Program> program = compiled(std::move(condition));
    if (!program) return program.reported();
    const Field* field = program->graph.node(program->graph.output()).type.find("check");
    if (field == nullptr || field->type != Type::scalar(Elem::Bool))
      return diags
          .report(Kind::WrongType, "`check` needs `bool`, found `{}`", field == nullptr ? "?" : to_string(field->type))
          .primary(entry.expr->span)
          .emit();
    out.checks.emplace_back(*std::move(program), entry.expr->span);
  }
  if (fails != nullptr) out.fails = fails->expr->pieces[0];
  return out;
}

}  // namespace zephon
