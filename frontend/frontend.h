// The front end: text -> typed graph. Everything behind this header is the front end's own.
//
//   SourceMap sources;  Diagnostics diags;
//   FileId file = sources.add("photos.zpl", text);
//   Result<Program> program = compile(sources, file, {{"root", "photos"}}, OpTable(all_ops()), diags);
//   if (!program) { print(render(diags, sources)); return 1; }
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/diag/diagnostic.h"
#include "graph/graph.h"
#include "graph/op_def.h"
#include "graph/types.h"

namespace zephon {

namespace ast {
struct File;
}
struct Facts;

// A parameter of the pipeline with the value that this compilation used.
struct ProgramParameter {
  std::string name;
  std::string type;    // as written: "int", "enum(train, eval)"
  std::string value;   // as text, in the form that the command line takes
  bool given = false;  // on the command line, not by default
  Span origin;
  // Of an enum or a bool that chooses steps (a static `if`, the part of a `split`): the values that it could have
  // instead.
  std::vector<std::string> others;
};

// A constant of the program, or of the data set (then `value` is the expression that gives it).
struct ProgramLet {
  std::string name;
  std::string type;
  std::string value;
  Span origin;
};

// One step as written, in the order of the text of each stream; what `zephonc check` prints.
struct ProgramStep {
  NodeId node;
  std::string stream;  // "" for the pipeline's own
  Span origin;
};

struct Program {
  std::string name;   // empty for a bare pipeline
  Graph graph;        // typed, verified, as written: no rewriting
  uint64_t seed = 0;  // the reserved parameter
  std::vector<ProgramParameter> parameters;
  std::vector<ProgramLet> lets;
  std::vector<ProgramStep> steps;
  std::vector<std::string> imports;  // paths of the files that were imported, sorted
  std::vector<Field> contract;  // as declared; empty without one. The batch dimension stands first where there is one
};

// What a program is compiled with, beside its parameters.
struct CompileOptions {
  std::string pipeline;  // of a file with several
  // Reads an imported file: its text, or nothing and why in `error`. `path` begins at the folder of the program's name
  // in the SourceMap. Reads from disk where it is not set.
  std::function<std::optional<std::string>(const std::string& path, std::string& error)> read;
  // For editors: what is learned on the way goes here (frontend/facts.h), a parameter without a value takes a stand-in,
  // and a file without a pipeline is looked at for what it declares.
  Facts* facts = nullptr;
};

// Reads ZPL, or the YAML form where the name of the file ends in .yaml or .yml. `params` are texts from the command
// line. Reports several errors per run, no follow-on errors, and lints; the result is a program only where there is no
// error. Texts of composite operators are added to `sources`.
Result<Program> compile(SourceMap& sources, FileId file, const std::map<std::string, std::string>& params,
                        const OpTable& ops, Diagnostics& diags, const CompileOptions& options = {});
// The same of a file that has been read (parse_zpl.h, parse_yaml.h).
Result<Program> compile(SourceMap& sources, ast::File tree, const std::map<std::string, std::string>& params,
                        const OpTable& ops, Diagnostics& diags, const CompileOptions& options = {});

// What a test expects of one record: a program of one sample with the fields that the test names, and where they stand.
struct ExpectedRecord {
  struct Place {
    Span value;
    std::vector<Span> elements;  // of a list literal, in row-major order; else empty
  };
  Program program;
  Span span;
  std::map<std::string, Place> places;  // by field
};

// A test of the program, as programs to run: what is delivered for its input, what is expected, what must be true.
struct TestPrograms {
  std::string name;
  Span span;
  std::optional<Program> actual;                 // fed with the samples of `input`
  bool expects = false;                          // `expected` is what must be delivered
  Span expect_span;                              // all of it
  std::vector<ExpectedRecord> expected;
  std::vector<std::pair<Program, Span>> checks;  // of one sample each, with the field `check`
  std::optional<std::string> fails;              // a part of the message with which `actual` must fail
};
// The names of the tests in the file, in order.
Result<std::vector<std::string>> test_names(const SourceMap& sources, FileId file, Diagnostics& diags);
// The test at this place of the file, from 0.
Result<TestPrograms> compile_test(SourceMap& sources, FileId file, size_t index, const OpTable& ops, Diagnostics& diags,
                                  const CompileOptions& options = {});

// The names of the pipelines in the file, in its order; one empty name for a pipeline without a name.
Result<std::vector<std::string>> pipeline_names(const SourceMap& sources, FileId file, Diagnostics& diags);

// What a person may set on the command line, without compiling: names, and the choices of enums. Empty where the program
// does not parse.
struct DeclaredParameter {
  std::string name;
  std::vector<std::string> choices;
};
std::vector<DeclaredParameter> declared_parameters(SourceMap& sources, FileId file);

}  // namespace zephon
