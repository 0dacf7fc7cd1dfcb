// The inside of the front end: names, types and lowering share one walk over the syntax tree, so that every expression
// is typed in the scope where it stands and enters the graph at once. Split by subject:
//   resolve.cpp  declarations, parameters, constants, functions
//   fold.cpp     values known before the run
//   check.cpp    expressions: operators by signature, promotion, literals, draws
//   given.cpp    the values of a test's samples
//   lower.cpp    sources, steps, streams, contract
//   lint.cpp     what is right by the rules, and likely not meant
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/ast.h"
#include "frontend/diag/diagnostic.h"
#include "frontend/facts.h"
#include "frontend/frontend.h"
#include "frontend/rational.h"
#include "graph/op_def.h"
#include "graph/signature.h"

namespace zephon {

// A value known before the run: a literal, a parameter, what is computed of those.
struct StaticValue {
  enum class Kind : uint8_t { Number, Bool, String, Enum, List, Elem, Schema };
  Kind kind = Kind::Number;
  Rational number;
  bool flag = false;
  std::string text;                  // String, Enum
  Elem elem = Elem::Str;             // String: Str or Path; Elem
  std::string folder;                // String: of the imported file that wrote it; paths in it start there
  std::vector<std::string> choices;  // Enum
  std::vector<StaticValue> items;
  Schema schema;

  static StaticValue of(Rational number);
  static StaticValue of(bool flag);
  static StaticValue of(std::string text, Elem elem = Elem::Str);
  bool is_number() const { return kind == Kind::Number; }
  bool is_string() const { return kind == Kind::String; }
};
// As a person would write it.
std::string to_string(const StaticValue& value);
// "a number", "a string" ...
std::string_view kind_words(const StaticValue& value);
StaticValue from_attr(const Attr& attr);

// What an integer type holds.
struct IntegerLimits {
  int64_t least, most;
};
IntegerLimits limits_of(Elem elem);

// What an expression is: nothing (an error was reported), a static value, an expression of the graph, or a record of
// such. A value that may be missing, and a list of lists, are expressions with companions (graph/leaf_path.h).
struct Operand {
  enum class Kind : uint8_t { Poison, Static, Dynamic, Record };
  Kind kind = Kind::Poison;
  StaticValue value;
  ExprId expr;
  ExprId missing;               // valid: bool, of the whole value or of each element
  std::vector<ExprId> lengths;  // of a list of lists: i64[n], the outermost lists first
  struct Member;                // not a pair: its traits would look into an Operand that is not complete
  std::vector<Member> members;
  Span span;         // what is written
  Span origin;       // of a field: where it got its type
  std::string name;  // of a field

  bool is_static() const { return kind == Kind::Static; }
  bool is_poison() const { return kind == Kind::Poison; }
  bool is_record() const { return kind == Kind::Record; }
};
struct Operand::Member {
  std::string name;
  Operand value;
};

// A leaf of a declared type: a field with its companions.
struct DeclaredLeaf {
  std::string path;  // graph/leaf_path.h; relative to what is declared
  Type type;         // of the value: lists as one first dimension that varies
  Type element;      // without lists
  int missing_rank = -1;
  size_t levels = 0;  // lists around the first dimension
};

// The scope in which an expression stands.
struct Frame {
  const std::map<std::string, Operand>* arguments = nullptr;  // inside a function
  const StreamType* fields = nullptr;                         // none inside functions and constants
  const std::map<std::string, Span>* origins = nullptr;       // of fields
  uint64_t path = 0;   // of draws: stream, field, ordinal of the assignment, calls
  uint64_t calls = 0;  // of functions and composite operators so far in this body
  uint64_t draws = 0;
  bool constant = false;  // a constant may not draw
  Span here;              // inside a composite operator all places are that of the call
};

class Compiler {
 public:
  Compiler(SourceMap& sources, const OpTable& ops, const std::map<std::string, std::string>& params, Diagnostics& diags,
           const CompileOptions& options)
      : sources_(sources), ops_(ops), params_(params), diags_(diags), options_(options) {
    for (const OpDef* op : ops.all())
      if (!op->surface.empty()) surfaces_.push_back(op);
  }

  Result<Program> run(ast::File file);

 private:
  // ---- resolve.cpp
  struct ParameterEntry {
    const ast::Parameter* syntax;
    std::optional<Operand> value;
    bool open = false, used = false;
    bool chooses = false;  // steps: what stands in them was not looked at where it has another value
  };
  struct Module;
  struct LetEntry {
    const ast::Let* syntax;
    Module* home;
    std::optional<Operand> value;
    bool open = false, used = false;
  };
  struct FunctionEntry {
    const ast::Function* syntax;
    Module* home;
    bool open = false, used = false;
  };
  struct ImportEntry {
    const ast::Import* syntax;
    Module* module;
    bool used = false;
  };
  struct StreamEntry;
  // While it lives, errors say in which operator of the program they are: what it expands to was written by us.
  class Expanding {
   public:
    Expanding(Compiler& compiler, const OpDef& op, std::string_view text)
        : compiler_(compiler), outermost_(compiler.expanded_ == nullptr) {
      if (!outermost_) return;
      compiler.expanded_ = &op;
      compiler.expansion_ = text;
    }
    ~Expanding() {
      if (outermost_) compiler_.expanded_ = nullptr;
    }
    Expanding(const Expanding&) = delete;
    Expanding& operator=(const Expanding&) = delete;

   private:
    Compiler& compiler_;
    bool outermost_;
  };
  // While it lives, names are those of `module`.
  class Inside {
   public:
    Inside(Compiler& compiler, Module* module) : compiler_(compiler), before_(compiler.module_) {
      compiler.module_ = module;
    }
    ~Inside() { compiler_.module_ = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Compiler& compiler_;
    Module* before_;
  };

  const ast::Pipeline* choose_pipeline(const ast::File& file);
  Result<Program> check_declarations();
  void import_files(Module& module);
  Module* load_module(const ast::Import& import, const Module& from);
  void declare(Module& module, const ast::Declarations& declarations);
  void declare_parameters(const ast::Pipeline& pipeline);
  bool claim(Module& module, const ast::Name& name, std::string_view what);
  // The import that `e` names: a plain name that is neither an argument nor a field.
  ImportEntry* find_import(const ast::Expr& e, const Frame* frame);
  // `name` of an import, where `entries` are of one kind. Says what is wrong where there is none.
  template <class Entry>
  Entry* find_imported(ImportEntry& import, std::map<std::string, Entry> Module::*entries, const ast::Name& name,
                       std::string_view what);
  Operand imported_constant(ImportEntry& import, const ast::Name& name);
  FunctionEntry* imported_function(ImportEntry& import, const ast::Name& name);
  StreamEntry* imported_stream(ImportEntry& import, const ast::Name& name);
  Operand parameter(ParameterEntry& entry);
  std::optional<StaticValue> parameter_value(const ast::Parameter& parameter, const std::string& text);
  std::optional<StaticValue> parameter_value(const ast::Parameter& parameter, const Operand& value);
  Operand let(LetEntry& entry);
  // A field, argument, parameter or constant; nullopt without a message where there is none.
  std::optional<Operand> find_name(const std::string& name, const Span& span, Frame& frame);
  // A field with its companions, or the record of the fields whose names begin with `path.`.
  std::optional<Operand> find_field(const std::string& path, const Span& span, const Frame& frame);
  std::vector<std::string> visible_names(const Frame& frame) const;

  // ---- fold.cpp
  // `x`, as a static value where it is an expression of constants alone, such as `maximum(3, 4)`.
  Operand known(Operand x);
  Operand fold_unary(const ast::Expr& e, const Operand& x, Frame& frame);
  std::optional<Operand> fold_lists(const ast::Expr& e, const Operand& a, const Operand& b, Frame& frame);
  std::optional<Operand> fold_index(const Operand& x, const ast::Expr& e, Frame& frame);
  std::optional<Operand> fold_binary(const ast::Expr& e, const Operand& a, const Operand& b, Frame& frame);
  std::optional<Attr> static_attr(const OpDef& op, const Parameter& parameter, const ast::Expr& e, Frame& frame);
  std::optional<Attr> to_attr(const OpDef& op, const Parameter& parameter, const StaticValue& value, const Span& span);
  std::optional<Schema> schema(const ast::Expr& e, Frame& frame);

  // ---- check.cpp
  Operand evaluate(const ast::Expr& e, Frame& frame);
  Operand evaluate_form(const ast::Expr& e, Frame& frame);
  Operand name(const ast::Expr& e, Frame& frame);
  Operand string(const ast::Expr& e, Frame& frame);
  Operand call(const ast::Expr& e, Frame& frame);
  Operand call_function(FunctionEntry& function, const ast::Expr& e, Frame& frame);
  Operand call_operator(const OpDef& op, const ast::Expr& e, Frame& frame);
  Operand expand(const OpDef& op, const std::vector<Operand>& args, const Attrs& attrs, const ast::Expr& e,
                 Frame& frame, const std::optional<uint64_t>& key);
  // Nothing where no argument is a list of lists.
  std::optional<Operand> expand_lists(const OpDef& op, const std::vector<Operand>& args, const Attrs& attrs,
                                      const ast::Expr& e, Frame& frame, const std::optional<uint64_t>& key);
  Operand choose_now(const OpDef& op, std::vector<Operand> args, const ast::Expr& e, Frame& frame);
  Operand table(const OpDef& op, const Attrs& attrs, const ast::Expr& e, Frame& frame);
  Operand row_of(const OpDef& op, const std::vector<Operand>& args, const ast::Expr& e, Frame& frame);
  Operand cast(Elem to, const ast::Expr& e, Frame& frame);
  Operand binary(const ast::Expr& e, Frame& frame);
  Operand index(const ast::Expr& e, Frame& frame);
  Operand index_of(Operand x, const ast::Expr& e, Frame& frame);
  Operand index_lists(const Operand& x, const ast::Expr& e, Frame& frame);
  // The record that `e` is, if it is one (poison after an error); nullopt, and nothing was evaluated, where it is not.
  std::optional<Operand> record(const ast::Expr& e, Frame& frame);
  // False after an error: an argument may be missing, is a record, or is a list of lists that the operator cannot take.
  bool admit(const OpDef& op, std::vector<Operand>& args, const Attrs& attrs, const ast::Expr& e, Frame& frame,
             std::vector<ExprId>& lengths);
  Operand constant(Value value, const Span& span) {
    return dynamic(add_constant(program_.graph, ops_, std::move(value), span), span);
  }
  Operand list(const ast::Expr& e, Frame& frame);
  // Types and adds `op` of arguments that stand in the order of its dynamic parameters.
  Operand apply(const OpDef& op, std::vector<Operand> args, Attrs attrs, const ast::Expr& e, Frame& frame,
                std::optional<uint64_t> key = std::nullopt);
  // Gives every argument an expression: literals take the type that they meet, small integers are promoted.
  bool meet(const OpDef& op, std::vector<Operand>& args, const ast::Expr& e, Frame& frame);
  void refuse_static_argument(const OpDef& op, const std::string& text, const ast::Expr& e, Frame& frame);
  void refuse_arguments(const OpDef& op, const std::vector<Operand>& args, const std::string& error, int bad,
                        const ast::Expr& e, Frame& frame);
  Operand dynamic(ExprId expr, const Span& span) const;
  Operand add_cast(Operand x, Elem to, Frame& frame);
  std::optional<Operand> materialize(const Operand& x, Elem elem, Frame& frame);
  std::optional<Scalar> to_scalar(const StaticValue& value, Elem elem, const Span& span);
  // Which arguments of `e` belong to which parameter; variadic parameters take the rest. Reports what does not fit.
  struct Matched {
    std::vector<std::vector<const ast::Expr*>> of_parameter;
    std::map<std::string, const ast::Expr*> extra;  // names that `extra_names` allowed
  };
  std::optional<Matched> match(const OpDef& op, const ast::Expr& e, const std::set<std::string>& extra_names,
                               Frame& frame);
  // The operator that people call `name`, at the level asked for.
  const OpDef* find_operator(const std::string& name, const ast::Expr& call, bool tensor) const;
  const OpDef& core(std::string_view name) const;
  const Type& type_of(const Operand& x) const { return program_.graph.expr(x.expr).type; }
  std::string type_text(const Operand& x) const;
  Span place(const Span& span, const Frame& frame) const { return frame.here.valid() ? frame.here : span; }
  std::optional<Type> declared_type(const ast::Type& type, Frame& frame, std::map<std::string, Dim>& symbols);
  // Any declared type as its leaves, appended to `leaves`; false after an error.
  bool declared_leaves(const ast::Type& type, const std::string& path, Frame& frame,
                       std::map<std::string, Dim>& symbols, std::vector<DeclaredLeaf>& leaves);
  // Where a dimension that a declared type names has its size from.
  struct NamedSize {
    Dim dim;
    ExprId of;  // the tensor
    size_t dimension = 0;
    std::string owner;  // what messages call the tensor
  };
  // Fits a value to a declared type of several leaves or with companions; false after an error. Sizes that are known
  // only while running are checked there: the value goes through an operator that fails where they differ.
  bool fit(Operand& value, const std::vector<DeclaredLeaf>& leaves, const std::string& what, const ast::Type& declared,
           std::map<std::string, NamedSize>& sizes, Frame& frame);
  void rename_symbols(Type& type, const std::vector<ExprId>& args, const Expr& expr);

  // ---- given.cpp
  class GivenValues;

  // ---- lower.cpp
  // A stream while its steps are lowered.
  struct Flow {
    NodeId node;
    std::string stream;
    std::map<std::string, Span> origins;          // of fields
    std::map<std::string, uint64_t> assignments;  // of fields, so far
    Span batch;                                   // the step that batched
    Span data;                                    // the step from which the number of samples depends on data
    Span pipe;
    bool broken = false;  // an error was reported in a step: what follows is not trusted to name its cause
  };
  struct StreamEntry {
    const ast::Stream* syntax;
    Module* home;
    std::optional<Flow> flow;
    bool open = false, used = false, failed = false;
  };
  // A file: the program, or one that it imports. Names of one file never meet those of another.
  struct Module {
    std::string path;    // of the file, normal, as the SourceMap knows it
    std::string folder;  // of the file, from that of the program: "" or "lib/"
    std::string prefix;  // of its streams: "" or "aug."
    ast::File file;
    std::map<std::string, Span> claimed;  // every declared name
    std::map<std::string, LetEntry> lets;
    std::map<std::string, FunctionEntry> functions;
    std::map<std::string, StreamEntry> streams;
    std::map<std::string, ImportEntry> imports;
  };
  // "a" or "aug.a".
  StreamEntry* find_stream(const std::string& name);
  std::vector<std::string> stream_names() const;
  std::optional<Flow> lower_pipe(const ast::Pipe& pipe, const std::string& stream);
  std::optional<Flow> lower_source(const ast::Expr& source, const std::string& stream);
  std::optional<Flow> lower_merge(const OpDef& op, const ast::Expr& source, const std::string& stream);
  std::optional<Flow> use_stream(StreamEntry& entry, const Span& span);
  void add_implicit(Flow& flow, const OpDef& op, const Span& span);
  void lower_step(const ast::Step& step, Flow& flow);
  void lower_step_form(const ast::Step& step, Flow& flow);
  void lower_assign(const ast::Step& step, Flow& flow);
  void lower_given(const ast::Step& step, Flow& flow);
  void assign_fields(const std::string& field, const Operand& value, const Span& span, const Span& expr_span,
                     Flow& flow);
  void lower_filter(const ast::Step& step, Flow& flow);
  void lower_fields(const ast::Step& step, Flow& flow);
  void lower_call(const ast::Step& step, Flow& flow);
  bool spread_padding(const OpDef& op, ast::Expr& call, const Flow& flow);
  std::optional<Operand> argument(const OpDef& op, const Parameter& parameter, const ast::Expr& e, Frame& frame);
  void lower_split(const OpDef& op, const ast::Step& step, Flow& flow);
  void lower_if(const ast::Step& step, Flow& flow);
  // The parameters that `e` reads, itself or through constants and functions, choose steps.
  void note_choice(const ast::Expr& e, std::set<const ast::Expr*>& seen);
  // Infers the type, adds the node and makes it the end of the flow. False where the operator refuses.
  bool add_node(Node node, Flow& flow, const Span& span, const Span& name_span);
  void drop_hidden(Flow& flow);
  Frame frame_of(const Flow& flow, std::string_view field, uint64_t ordinal) const;
  const StreamType& type_of(const Flow& flow) const { return program_.graph.node(flow.node).type; }
  // `declared`: where its types are kept, if anywhere. What is only known while running becomes a check of each sample.
  void check_contract(const ast::Type& contract, Flow& flow, std::vector<Field>* declared);
  void find_needed();

  // ---- lint.cpp
  void lint_names() const;  // before what nothing uses is looked at
  void check_caches() const;  // of the finished graph
  void lint_steps();        // the same
  void lint_buffer(const Node& batch);
  void lint_shuffle(const Node& shuffle);
  void lint_fields(const Node& assign);
  void lint_values(const Node& node);
  void lint_shapes(const Node& batch);
  void lint_filter(const Node& filter);
  bool reads_parameters(const ast::Expr& e) const;

  // ---- facts, where they are wanted; nothing of what stands inside a composite operator
  void note_value(const Span& span, const Operand& value);
  void note_use(const Span& span, const Span& declared) {
    if (options_.facts != nullptr && declared.valid()) options_.facts->uses.push_back({span, declared});
  }
  void note_operator(const Span& span, const OpDef& op) {
    if (options_.facts != nullptr) options_.facts->operators.push_back({span, &op});
  }

  // ---- lower.cpp
  void unknown_operator(const std::string& name, const Span& span, bool tensor);

  template <class... Args>
  DiagnosticBuilder error(Kind kind, fmt::format_string<Args...> text, Args&&... args) {
    if (expanded_ == nullptr) return diags_.report(kind, text, std::forward<Args>(args)...);
    std::string_view called = expanded_->surface.empty() ? expanded_->name : expanded_->surface;
    return diags_.report(kind, "in `{}`: {}", called, fmt::format(text, std::forward<Args>(args)...))
        .note("`{}` is declared as `{}`, and is `{}`", called, expanded_->signature, expansion_);
  }

  SourceMap& sources_;
  const OpTable& ops_;
  std::vector<const OpDef*> surfaces_;  // operators whose word is not their name
  const std::map<std::string, std::string>& params_;
  Diagnostics& diags_;
  const CompileOptions& options_;
  Program program_;
  const ast::Pipeline* pipeline_ = nullptr;
  std::map<std::string, ParameterEntry> parameters_;
  std::map<std::string, std::unique_ptr<Module>> modules_;  // by path
  std::vector<std::pair<std::string, Span>> loading_;       // paths of files that are being read, and who imports them
  Module* root_ = nullptr;
  Module* module_ = nullptr;                     // whose names are meant now
  std::map<const char*, ast::Expr> expansions_;  // by the text's place
  std::map<std::string, Type> renamed_;          // results whose symbols were renamed, by operator and arguments
  std::map<std::string, int> symbol_counts_;
  std::set<int32_t> chosen_filters_;  // steps whose predicate reads parameters or constants: another run may differ
  const OpDef* expanded_ = nullptr;   // the composite operator of the program whose text is evaluated
  std::string_view expansion_;        // this text
  int32_t next_step_ = 0;
  int call_depth_ = 0;
};

// In a test: the value of a field that may be missing, and is.
inline constexpr std::string_view kMissingWord = "missing";
// What a value of a test gives for one leaf of a record, `path` below the field; Absent where it gives nothing.
ast::Expr project_given(const ast::Expr& value, std::string_view path);
bool is_given(const ast::Expr& value);

// The tree of a file, in the form that its name says.
Result<ast::File> parse_file(const SourceMap& sources, FileId file, Diagnostics& diags);

}  // namespace zephon
