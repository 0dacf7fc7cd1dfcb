// Pipelines: sources, steps, streams, the contract. One node per step as written.
#include <algorithm>

#include "frontend/compiler.h"
#include "frontend/parse_zpl.h"
#include "graph/identity.h"
#include "graph/leaf_path.h"

namespace zephon {

Frame Compiler::frame_of(const Flow& flow, std::string_view field, uint64_t ordinal) const {
  Frame frame;
  frame.fields = &type_of(flow);
  frame.origins = &flow.origins;
  uint64_t words[] = {stream_hash(flow.stream), stream_hash(field), ordinal};
  frame.path = hash_words(words);
  return frame;
}

bool Compiler::add_node(Node node, Flow& flow, const Span& span, const Span& name_span) {
  std::vector<StreamType> inputs;
  for (NodeId input : node.inputs) inputs.push_back(program_.graph.node(input).type);
  const OpDef& op = *node.op;
  std::string_view called = op.surface.empty() ? op.name : op.surface;
  if (!op.algebra.on_batches && !inputs.empty() && inputs[0].batch) {
    error(Kind::Refused, "`{}` works on samples, and must stand before `batch` (or after `unbatch`)", called)
        .primary(name_span)
        .secondary(flow.batch, "batches begin here")
        .emit();
    return false;
  }
  if (op.algebra.needs_domain && !inputs.empty() && inputs[0].domain == Domain::Data) {
    error(Kind::NoShuffleDomain, "`{}()` needs to know the number of samples before the run", called)
        .primary(span)
        .secondary(flow.data, "from here on it depends on the data")
        .hint("shuffle above that step, or within a window: `{}(buffer_size=1000)`", called)
        .emit();
    return false;
  }
  std::string text;
  StreamType type = inputs.empty() ? StreamType{} : inputs[0];
  if (op.infer_stream != nullptr) op.infer_stream(node, inputs, type, text);
  if (!text.empty()) {
    error(Kind::Refused, "{}", text).primary(span).emit();
    return false;
  }
  if (type.batch && (inputs.empty() || !inputs[0].batch)) flow.batch = span;
  if (type.domain == Domain::Data && (inputs.empty() || inputs[0].domain != Domain::Data)) flow.data = span;
  for (const Field& field : type.fields) flow.origins.emplace(field.name, span);
  node.type = std::move(type);
  node.stream = flow.stream;
  node.step = next_step_++;
  node.origin = span;
  flow.node = program_.graph.add(std::move(node));
  program_.steps.push_back({flow.node, flow.stream, span});
  return true;
}

std::optional<Compiler::Flow> Compiler::lower_pipe(const ast::Pipe& pipe, const std::string& stream) {
  std::optional<Flow> flow = lower_source(pipe.source, stream);
  if (!flow) return std::nullopt;
  flow->pipe = pipe.span;
  if (options_.facts != nullptr) options_.facts->steps.push_back({pipe.source.span, pipe.span, type_of(*flow)});
  for (const ast::Step& step : pipe.steps) lower_step(step, *flow);
  drop_hidden(*flow);
  return flow;
}

// Fields whose names begin with `$` carry what implicit assignments read; they are delivered to nobody.
void Compiler::drop_hidden(Flow& flow) {
  std::vector<std::string> hidden;
  for (const Field& field : type_of(flow).fields)
    if (field.name.starts_with('$')) hidden.push_back(field.name);
  if (hidden.empty()) return;
  Node node;
  node.op = &core("drop");
  node.inputs = {flow.node};
  node.type = type_of(flow);
  node.type.fields.erase_if([](const Field& f) { return f.name.starts_with('$'); });
  node.attrs.set("fields", std::move(hidden));
  node.stream = flow.stream;
  node.step = next_step_++;
  node.origin = program_.graph.node(flow.node).origin;
  flow.node = program_.graph.add(std::move(node));
}

std::optional<Compiler::Flow> Compiler::use_stream(StreamEntry& entry, const Span& span) {
  entry.used = true;
  note_use(span, entry.syntax->name.span);
  if (entry.failed) return std::nullopt;
  if (entry.flow) return entry.flow;
  if (entry.open) {
    error(Kind::Recursion, "the stream `{}` uses itself", entry.syntax->name.text)
        .primary(span)
        .secondary(entry.syntax->name.span, "declared here")
        .emit();
    return std::nullopt;
  }
  entry.open = true;
  Inside inside(*this, entry.home);
  entry.flow = lower_pipe(entry.syntax->pipe, entry.home->prefix + entry.syntax->name.text);
  entry.open = false;
  if (entry.flow && entry.syntax->contract && !entry.flow->broken)
    check_contract(*entry.syntax->contract, *entry.flow, nullptr);
  entry.failed = !entry.flow;
  return entry.flow;
}

std::optional<Compiler::Flow> Compiler::lower_source(const ast::Expr& source, const std::string& stream) {
  StreamEntry* entry = nullptr;
  if (source.kind == ast::Expr::Kind::Member) {
    ImportEntry* import = find_import(source.operands[0], nullptr);
    if (import == nullptr) {
      std::vector<std::string> aliases;
      for (const auto& [alias, known] : module_->imports) aliases.push_back(alias);
      error(Kind::UnknownName, "no import is called `{}`", source.operands[0].text)
          .primary(source.operands[0].span)
          .hint_text(did_you_mean(source.operands[0].text, aliases))
          .emit();
      return std::nullopt;
    }
    entry = imported_stream(*import, {source.text, source.text_span});
    if (entry == nullptr) return std::nullopt;
  } else {
    entry = find_stream(source.text);
  }
  if (entry != nullptr) {
    if (source.kind == ast::Expr::Kind::Call)
      error(Kind::NotAStep, "`{}` is a stream, and takes no arguments", source.text)
          .primary(source.span)
          .secondary(entry->syntax->name.span, "declared here")
          .emit();
    std::optional<Flow> flow = use_stream(*entry, source.text_span);
    if (!flow) return std::nullopt;
    flow->stream = stream;
    flow->assignments.clear();
    return flow;
  }
  const OpDef* op = find_operator(source.text, source, false);
  if (op == nullptr) {
    unknown_operator(source.text, source.text_span, false);
    return std::nullopt;
  }
  if (source.kind == ast::Expr::Kind::Name) {
    error(Kind::SyntaxError, "`{}` has no parentheses", source.text)
        .primary(source.text_span)
        .hint("a source is `{}(...)`", source.text)
        .emit();
    return std::nullopt;
  }
  note_operator(source.text_span, *op);
  if (op->cls == OpClass::Merge) return lower_merge(*op, source, stream);
  if (op->cls != OpClass::Source) {
    error(Kind::NotAStep, "`{}` needs a stream to work on, and nothing stands before it", source.text)
        .primary(source.text_span)
        .hint("a pipeline begins with a source: `files(\"cats/*.jpg\")`, `range(10)`, or the name of a stream")
        .emit();
    return std::nullopt;
  }
  Frame frame;
  frame.constant = true;
  std::optional<Matched> matched = match(*op, source, {"parallelism", "buffer"}, frame);
  if (!matched) return std::nullopt;
  Node node;
  node.op = op;
  const std::vector<Parameter>& parameters = signature_of(*op).parameters;
  bool good = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!matched->of_parameter[i].empty()) {
      std::optional<Attr> value = static_attr(*op, parameters[i], *matched->of_parameter[i][0], frame);
      if (value)
        node.attrs.set(parameters[i].name, *std::move(value));
      else
        good = false;
    } else if (parameters[i].default_value) {
      node.attrs.set(parameters[i].name, *parameters[i].default_value);
    }
  }
  if (!good) return std::nullopt;
  Flow flow;
  flow.stream = stream;
  if (!add_node(std::move(node), flow, source.span, source.text_span)) return std::nullopt;
  add_implicit(flow, *op, source.span);
  return flow;
}

// What a source assigns by itself: `bytes = read_file(path)`, the columns of a table.
void Compiler::add_implicit(Flow& flow, const OpDef& op, const Span& span) {
  const Node& source = program_.graph.node(flow.node);
  Node node;
  node.op = &core("assign");
  node.inputs = {flow.node};
  node.type = source.type;
  auto add = [&](const std::string& field, const Operand& value) {
    node.assigns.push_back({field, value.expr});
    node.type.fields.push_back({field, type_of(value)});
    flow.origins.emplace(field, span);
  };
  if (!op.implicit.empty()) {
    FileId file = sources_.add(fmt::format("<{}>", op.name), std::string(op.implicit));
    Result<ast::Step> step = parse_step({file, sources_.text(file), 0, {}}, diags_);
    ZEPHON_CHECK(step.ok() && step->kind == ast::Step::Kind::Assign, "the implicit assignment of `{}`", op.name);
    Frame frame = frame_of(flow, step->name.text, 0);
    frame.here = span;
    // Its own arguments, and its hidden fields without the `$`.
    std::map<std::string, Operand> arguments;
    for (const auto& [name, value] : source.attrs) {
      Operand& operand = arguments[name];
      operand.kind = Operand::Kind::Static;
      operand.value = from_attr(value);
    }
    for (const Field& field : source.type.fields)
      if (field.name.starts_with('$')) arguments.emplace(field.name.substr(1), *find_name(field.name, span, frame));
    frame.arguments = &arguments;
    Operand value = evaluate(step->expr, frame);
    ZEPHON_CHECK(value.kind == Operand::Kind::Dynamic, "the implicit assignment of `{}`", op.name);
    add(step->name.text, value);
  }
  if (!op.implicit_column.empty()) {
    const OpDef& column_op = core(op.implicit_column);
    std::vector<Field> columns;
    for (const auto& [name, value] : source.attrs)
      if (const auto* schema = std::get_if<Schema>(&value)) columns = schema->columns;
    std::vector<std::string> keys;
    for (const Field& column : columns) keys.push_back(column.name);
    Frame frame = frame_of(flow, "$row", 0);
    frame.here = span;
    std::optional<Operand> row = find_name("$row", span, frame);
    ZEPHON_CHECK(row && row->kind == Operand::Kind::Dynamic, "`{}` has no `$row`", op.name);
    ast::Expr written;
    written.kind = ast::Expr::Kind::Call;
    written.span = written.text_span = span;
    // The static parameters of `of` that the source or the column says.
    auto shared = [&](const OpDef& of, const std::map<std::string, Attr>& own) {
      Attrs attrs;
      for (const Parameter& p : signature_of(of).parameters) {
        if (p.static_kind == StaticKind::None) continue;
        if (auto it = own.find(p.name); it != own.end()) {
          attrs.set(p.name, it->second);
        } else if (source.attrs.has(p.name)) {
          for (const auto& [name, value] : source.attrs)
            if (name == p.name) attrs.set(p.name, value);
        } else if (p.default_value) {
          attrs.set(p.name, *p.default_value);
        }
      }
      return attrs;
    };
    if (!op.implicit_columns.empty()) {
      const OpDef& split = core(op.implicit_columns);
      Operand value = apply(split, {*row}, shared(split, {{"keys", keys}}), written, frame);
      if (value.kind != Operand::Kind::Dynamic) return;
      add("$columns", value);
      row = dynamic(add_field(program_.graph, ops_, "$columns", type_of(value), span), span);
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const LeafPath path = LeafPath::parse(columns[i].name);
      std::vector<int64_t> shape;
      for (const Dim& dim : columns[i].type.shape) shape.push_back(dim.extent);
      auto part = [&](std::string name, std::string_view what, int64_t level) {
        std::map<std::string, Attr> own = {
            {"index", static_cast<int64_t>(i)}, {"name", columns[i].name},
            {"type", columns[i].type.elem},     {"shape", shape},
            {"column", Schema{{columns[i]}}},   {"count", static_cast<int64_t>(columns.size())},
            {"part", std::string(what)},        {"level", level}};
        Operand value = apply(column_op, {*row}, shared(column_op, own), written, frame);
        if (value.kind == Operand::Kind::Dynamic) add(name, value);
      };
      const std::string field = path.field();
      part(field, "value", 0);
      if (path.missing_depth() >= 0) part(missing_field(field), "missing", 0);
      for (int level = 1; level < path.lists(); ++level)
        part(lengths_field(field, static_cast<size_t>(level)), "lengths", level);
    }
  }
  if (node.assigns.empty()) return;
  node.stream = flow.stream;
  node.step = source.step;
  node.origin = span;
  flow.node = program_.graph.add(std::move(node));
  program_.steps.back().node = flow.node;
}

// mix(web=7, code=3), concatenate(a, b): arguments that name streams are inputs, with their weights where the operator
// takes weights; the others are its parameters.
constexpr int64_t kJoinBuffer = 1000;  // samples that wait for their partners, where nothing is said
std::optional<Compiler::Flow> Compiler::lower_merge(const OpDef& op, const ast::Expr& source,
                                                    const std::string& stream) {
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  auto is_parameter = [&](const std::string& name) {
    return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == name; });
  };
  bool weighted = is_parameter("weights");
  Frame frame;
  frame.constant = true;
  ast::Expr rest = source;
  rest.operands.clear();
  rest.names.clear();
  Node node;
  node.op = &op;
  std::vector<int64_t> weights;
  std::vector<std::string> names = stream_names();
  Flow flow;
  flow.stream = stream;
  bool good = true;
  for (size_t i = 0; i < source.operands.size(); ++i) {
    const ast::Expr& operand = source.operands[i];
    const ast::Name& label = source.names[i];
    bool by_label = !label.text.empty();
    if (by_label && is_parameter(label.text)) {
      rest.operands.push_back(operand);
      rest.names.push_back(label);
      continue;
    }
    bool imported = operand.kind == ast::Expr::Kind::Member && operand.operands[0].kind == ast::Expr::Kind::Name;
    bool named = by_label || imported || operand.kind == ast::Expr::Kind::Name;
    const std::string name = by_label   ? label.text
                             : imported ? operand.operands[0].text + "." + operand.text
                                        : operand.text;
    Span at = by_label ? label.span : operand.span;
    StreamEntry* entry = named ? find_stream(name) : nullptr;
    if (entry == nullptr) {
      if (named)
        error(Kind::UnknownName, "no stream is called `{}`", name)
            .primary(at)
            .hint_text(did_you_mean(name, names))
            .emit();
      else
        error(Kind::WrongType, "`{}` takes the names of streams", op.name)
            .primary(at)
            .hint("declare it above: `stream a = ...`")
            .emit();
      good = false;
      continue;
    }
    if (by_label && !weighted) {
      error(Kind::UnknownArgument, "`{}` takes its streams without `=`", op.name).primary(at).emit();
      good = false;
    }
    if (by_label && weighted) {
      Parameter one{.name = name, .static_kind = StaticKind::Int, .at_least = 1};
      std::optional<Attr> weight = static_attr(op, one, operand, frame);
      if (weight)
        weights.push_back(std::get<int64_t>(*weight));
      else
        good = false;
    } else if (weighted) {
      weights.push_back(1);
    }
    std::optional<Flow> input = use_stream(*entry, at);
    if (!input) {
      good = false;
      continue;
    }
    flow.broken = flow.broken || input->broken;
    node.inputs.push_back(input->node);
    node.input_names.push_back(name);
    flow.origins.insert(input->origins.begin(), input->origins.end());
  }
  if (good && node.inputs.empty()) {
    error(Kind::MissingArgument, "`{}` needs streams", op.name)
        .primary(source.span)
        .hint("for example `{}({})`", op.name, weighted ? "a=7, b=3" : "a, b")
        .emit();
    good = false;
  }
  bool own_weights =
      std::any_of(rest.names.begin(), rest.names.end(), [](const ast::Name& n) { return n.text == "weights"; });
  for (const Parameter& p : parameters) {
    auto at = std::find_if(rest.names.begin(), rest.names.end(), [&](const ast::Name& n) { return n.text == p.name; });
    if (at != rest.names.end()) {
      std::optional<Attr> value =
          static_attr(op, p, rest.operands[static_cast<size_t>(at - rest.names.begin())], frame);
      if (value)
        node.attrs.set(p.name, *std::move(value));
      else
        good = false;
    } else if (p.name == "weights" && !own_weights) {
      node.attrs.set(p.name, weights);
    } else if (p.default_value) {
      node.attrs.set(p.name, *p.default_value);
    }
  }
  if (good && own_weights && node.attrs.get<std::vector<int64_t>>("weights").size() != node.inputs.size()) {
    error(Kind::Refused, "`{}` has {} streams and {} weights", op.name, node.inputs.size(),
          node.attrs.get<std::vector<int64_t>>("weights").size())
        .primary(source.span)
        .emit();
    good = false;
  }
  if (!good || flow.broken) return std::nullopt;
  if (node.attrs.has("key")) {
    // The field by which its streams are joined. Whether all have it is the operator's to say.
    const std::string& key = node.attrs.text("key");
    if (!node.attrs.has("buffer_size")) node.attrs.set("buffer_size", kJoinBuffer);
    if (const Field* field = program_.graph.node(node.inputs[0]).type.find(key))
      node.predicate = add_field(program_.graph, ops_, key, field->type, source.span);
  }
  if (!add_node(std::move(node), flow, source.span, source.text_span)) return std::nullopt;
  return flow;
}

// ---- steps

void Compiler::lower_step(const ast::Step& step, Flow& flow) {
  lower_step_form(step, flow);
  if (options_.facts != nullptr) options_.facts->steps.push_back({step.span, flow.pipe, type_of(flow)});
}

void Compiler::lower_step_form(const ast::Step& step, Flow& flow) {
  switch (step.kind) {
    case ast::Step::Kind::Assign:
      return step.given ? lower_given(step, flow) : lower_assign(step, flow);
    case ast::Step::Kind::Filter:
      return lower_filter(step, flow);
    case ast::Step::Kind::Select:
    case ast::Step::Kind::Drop:
      return lower_fields(step, flow);
    case ast::Step::Kind::If:
      return lower_if(step, flow);
    case ast::Step::Kind::Call:
      return lower_call(step, flow);
  }
}

void Compiler::lower_assign(const ast::Step& step, Flow& flow) {
  const std::string& field = step.name.text;
  bool is_parameter = module_ == root_ && parameters_.contains(field), is_import = module_->imports.contains(field);
  if (auto it = module_->claimed.find(field);
      it != module_->claimed.end() && (is_parameter || is_import || module_->lets.contains(field))) {
    error(Kind::DuplicateName, "`{}` is {} and cannot be a field too", field,
          is_parameter ? "a parameter"
          : is_import  ? "an import"
                       : "a constant")
        .primary(step.name.span)
        .secondary(it->second, "declared here")
        .emit();
    flow.broken = true;
  }
  Frame frame = frame_of(flow, field, flow.assignments[field]++);
  Operand value = evaluate(step.expr, frame);
  if (value.is_static()) {
    StaticValue::Kind kind = value.value.kind;
    if (kind == StaticValue::Kind::Elem || kind == StaticValue::Kind::Schema) {
      error(Kind::WrongType, "a field cannot be {}", kind_words(value.value)).primary(value.span).emit();
      value = {};
    } else {
      // A literal that meets nothing: whole numbers are i64, others f64.
      Attrs none;
      bool whole = true;
      auto all_whole = [&](const auto& self, const StaticValue& v) -> void {
        if (v.is_number()) whole = whole && v.number.is_integer();
        for (const StaticValue& item : v.items) self(self, item);
      };
      all_whole(all_whole, value.value);
      const StaticValue* leaf = &value.value;
      while (leaf->kind == StaticValue::Kind::List && !leaf->items.empty()) leaf = &leaf->items[0];
      Elem elem = leaf->is_number()                       ? (whole ? Elem::I64 : Elem::F64)
                  : leaf->kind == StaticValue::Kind::Bool ? Elem::Bool
                  : leaf->kind == StaticValue::Kind::List ? Elem::F64
                  : leaf->is_string()                     ? leaf->elem
                                                          : Elem::Str;
      value = materialize(value, elem, frame).value_or(Operand{});
    }
  }
  note_value(step.name.span, value);
  assign_fields(field, value, step.span, step.expr.span, flow);
}

// A value, its companions, or the leaves of a record; what stood under the name before is gone.
void Compiler::assign_fields(const std::string& field, const Operand& value, const Span& span, const Span& expr_span,
                             Flow& flow) {
  std::vector<Assign> assigns;
  auto flatten = [&](const auto& self, const std::string& name, const Operand& x) -> void {
    for (const auto& [member_name, member] : x.members) self(self, name + "." + member_name, member);
    if (x.kind != Operand::Kind::Dynamic) return;
    assigns.push_back({name, x.expr});
    if (x.missing.valid()) assigns.push_back({missing_field(name), x.missing});
    for (size_t i = 0; i < x.lengths.size(); ++i) assigns.push_back({lengths_field(name, i + 1), x.lengths[i]});
  };
  flatten(flatten, field, value);
  Graph& graph = program_.graph;
  auto new_node = [&](std::string_view op) {
    Node node;
    node.op = &core(op);
    node.inputs = {flow.node};
    node.type = type_of(flow);
    node.stream = flow.stream;
    node.step = next_step_;
    node.origin = span;
    return node;
  };
  auto add = [&](Node node) { flow.node = graph.add(std::move(node)); };
  auto set_type = [](StreamType& stream, const std::string& name, const Type& type) {
    if (std::optional<size_t> old = stream.fields.index(name))
      stream.fields.set_type(*old, type);
    else
      stream.fields.push_back({name, type});
  };
  // Assignments of one step run in order, and all of them mean the fields as they were before.
  auto reads = [&](ExprId root, const std::string& name) {
    for (ExprId id : graph.topological(root))
      if (graph.expr(id).op->name == "field" && graph.expr(id).attrs.text("name") == name) return true;
    return false;
  };
  bool aside = false;
  for (size_t i = 0; i < assigns.size(); ++i)
    for (size_t k = i + 1; k < assigns.size(); ++k) aside = aside || reads(assigns[k].expr, assigns[i].field);
  std::vector<std::string> gone;
  if (aside) {
    Node node = new_node("assign");
    for (size_t i = 0; i < assigns.size(); ++i) {
      std::string name = "$new" + std::to_string(i);
      const Type type = graph.expr(assigns[i].expr).type;
      node.assigns.push_back({name, assigns[i].expr});
      set_type(node.type, name, type);
      assigns[i].expr = add_field(graph, ops_, name, type, expr_span);
      gone.push_back(name);
    }
    add(std::move(node));
  }
  for (const std::string& name : fields_of(type_of(flow), field))
    if (std::none_of(assigns.begin(), assigns.end(), [&](const Assign& a) { return a.field == name; }))
      gone.push_back(name);
  if (assigns.empty()) {  // an error was reported
    flow.broken = true;
    std::erase(gone, field);
  }
  Node node = new_node("assign");
  if (assigns.empty()) set_type(node.type, field, Type::poisoned());
  for (const Assign& assign : assigns) {
    set_type(node.type, assign.field, graph.expr(assign.expr).type);
    flow.origins[assign.field] = expr_span;
  }
  flow.origins[field] = expr_span;
  node.assigns = std::move(assigns);
  add(std::move(node));
  if (!gone.empty()) {
    Node drop = new_node("drop");
    drop.type.fields.erase_if(
        [&](const Field& f) { return std::find(gone.begin(), gone.end(), f.name) != gone.end(); });
    drop.attrs.set("fields", std::move(gone));
    add(std::move(drop));
  }
  ++next_step_;
  program_.steps.push_back({flow.node, flow.stream, span});
}

void Compiler::lower_filter(const ast::Step& step, Flow& flow) {
  note_operator(step.name.span, core("filter"));
  Frame frame = frame_of(flow, "filter", flow.assignments["filter"]++);
  Operand predicate = evaluate(step.expr, frame);
  if (predicate.is_static() && predicate.value.kind == StaticValue::Kind::Bool)
    predicate = materialize(predicate, Elem::Bool, frame).value_or(Operand{});
  bool fits = predicate.kind == Operand::Kind::Dynamic && type_of(predicate) == Type::scalar(Elem::Bool) &&
              !predicate.missing.valid();
  if (!fits) {
    flow.broken = true;
    if (predicate.is_poison()) return;
    bool dynamic = !predicate.is_static();
    bool bools = predicate.kind == Operand::Kind::Dynamic && type_of(predicate).elem == Elem::Bool;
    std::string written(sources_.text(predicate.span));
    error(Kind::WrongType, "`filter` needs `bool`, found {}",
          dynamic ? "`" + type_text(predicate) + "`" : type_text(predicate))
        .primary(predicate.span, "this is {}", dynamic ? "`" + type_text(predicate) + "`" : type_text(predicate))
        .secondary(predicate.origin, "`{}` becomes `{}` here", predicate.name, type_text(predicate))
        .hint_text(predicate.missing.valid() ? fmt::format("say what stands for it: `default({}, false)`",
                                                           written.size() <= 20 ? written : "x")
                   : bools ? fmt::format("`{0}.all()` or `{0}.any()`", written.size() <= 20 ? written : "x")
                   : predicate.kind == Operand::Kind::Dynamic && is_numeric(type_of(predicate).elem)
                       ? fmt::format("compare it, for example `{} > 0.5`", written.size() <= 20 ? written : "x")
                       : "")
        .emit();
    return;
  }
  Node node;
  node.op = &core("filter");
  node.inputs = {flow.node};
  node.predicate = predicate.expr;
  if (reads_parameters(step.expr)) chosen_filters_.insert(next_step_);
  if (!add_node(std::move(node), flow, step.span, step.name.span)) flow.broken = true;
}

void Compiler::lower_fields(const ast::Step& step, Flow& flow) {
  note_operator(step.name.span, core(step.kind == ast::Step::Kind::Select ? "select" : "drop"));
  std::vector<std::string> names, fields;
  for (const Field& f : type_of(flow).fields)
    if (std::string name = f.name.substr(0, f.name.find_first_of(".?#"));
        !name.starts_with('$') && (names.empty() || names.back() != name))
      names.push_back(name);
  bool good = true;
  for (const ast::Name& field : step.fields) {
    if (std::find(names.begin(), names.end(), field.text) == names.end()) {
      error(Kind::UnknownName, "no field is called `{}` here", field.text)
          .primary(field.span)
          .hint_text(did_you_mean(field.text, names))
          .emit();
      good = false;
    } else if (std::find(fields.begin(), fields.end(), fields_of(type_of(flow), field.text)[0]) != fields.end()) {
      error(Kind::DuplicateName, "`{}` stands twice in this list", field.text).primary(field.span).emit();
      good = false;
    } else {
      if (auto it = flow.origins.find(field.text); it != flow.origins.end()) note_use(field.span, it->second);
      for (std::string& name : fields_of(type_of(flow), field.text)) fields.push_back(std::move(name));
    }
  }
  if (!good) {
    // The fields that do exist are still there; the contract is not judged.
    flow.broken = true;
    if (step.kind == ast::Step::Kind::Select) return;
  }
  Node node;
  node.op = &core(step.kind == ast::Step::Kind::Select ? "select" : "drop");
  node.inputs = {flow.node};
  node.attrs.set("fields", std::move(fields));
  if (!add_node(std::move(node), flow, step.span, step.name.span)) flow.broken = true;
}

void Compiler::lower_if(const ast::Step& step, Flow& flow) {
  Frame frame = frame_of(flow, "if", 0);
  Operand condition = known(evaluate(step.expr, frame));
  if (condition.is_static() && condition.value.kind == StaticValue::Kind::Bool) {
    std::set<const ast::Expr*> seen;
    note_choice(step.expr, seen);
    for (const ast::Step& s : condition.value.flag ? step.then : step.otherwise) lower_step(s, flow);
    return;
  }
  flow.broken = true;
  if (condition.is_poison()) return;
  if (condition.is_static())
    error(Kind::WrongType, "`if` needs `bool`, found {}", kind_words(condition.value)).primary(condition.span).emit();
  else
    error(Kind::NotConstant, "`if` chooses steps before the run")
        .primary(condition.span, "this is `{}`, known only while running", type_text(condition))
        .secondary(condition.origin, "`{}` is assigned here", condition.name)
        .hint("to choose a value for each sample, write `x = where(condition, a, b)`")
        .emit();
}

void Compiler::note_choice(const ast::Expr& e, std::set<const ast::Expr*>& seen) {
  if (!seen.insert(&e).second) return;
  auto follow = [&](Module* home, const ast::Expr& body) {
    Inside inside(*this, home);
    note_choice(body, seen);
  };
  if (e.kind == ast::Expr::Kind::Name) {
    if (auto it = parameters_.find(e.text); it != parameters_.end() && module_ == root_)
      it->second.chooses = true;
    else if (auto let = module_->lets.find(e.text); let != module_->lets.end())
      follow(let->second.home, let->second.syntax->value);
  } else if (e.kind == ast::Expr::Kind::Call) {
    if (auto it = module_->functions.find(e.text); it != module_->functions.end())
      follow(it->second.home, it->second.syntax->body);
  }
  for (const ast::Expr& operand : e.operands) note_choice(operand, seen);
}

// `padded_batch(8, padding={tokens: -1})` is `padded_batch(8, tokens=-1)`.
bool Compiler::spread_padding(const OpDef& op, ast::Expr& call, const Flow& flow) {
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (call.names[i].text != "padding" || call.operands[i].kind != ast::Expr::Kind::Schema) continue;
    const ast::Expr values = call.operands[i];
    call.operands.erase(call.operands.begin() + static_cast<std::ptrdiff_t>(i));
    call.names.erase(call.names.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<std::string> names;
    for (const Field& field : type_of(flow).fields)
      if (!is_companion(field.name) && !field.name.starts_with('$')) names.push_back(field.name);
    for (const ast::SchemaField& field : values.fields) {
      if (std::find(names.begin(), names.end(), field.name.text) == names.end()) {
        error(Kind::UnknownName, "no field is called `{}` here", field.name.text)
            .primary(field.name.span)
            .hint_text(did_you_mean(field.name.text, names))
            .emit();
        return false;
      }
      const std::vector<Parameter>& parameters = signature_of(op).parameters;
      if (std::any_of(parameters.begin(), parameters.end(),
                      [&](const Parameter& p) { return p.name == field.name.text; })) {
        error(Kind::Refused, "`{}` is an argument of `{}` too, and the field cannot have a padding of its own",
              field.name.text, op.name)
            .primary(field.name.span)
            .hint("assign it to another name above: `x = {}`", field.name.text)
            .emit();
        return false;
      }
      ast::Expr value;
      if (field.type.kind == ast::Type::Kind::Value) {
        value = field.type.dims[0];
      } else if (field.type.kind == ast::Type::Kind::Named && !field.type.tensor && !field.type.optional) {
        value.kind = ast::Expr::Kind::Name;  // a parameter or a constant
        value.text = field.type.name;
        value.span = value.text_span = field.type.span;
      } else {
        error(Kind::WrongType, "the padding of `{}` is a value, such as `-1`", field.name.text)
            .primary(field.type.span)
            .emit();
        return false;
      }
      call.operands.push_back(std::move(value));
      call.names.push_back(field.name);
    }
    return true;
  }
  return true;
}

void Compiler::lower_call(const ast::Step& step, Flow& flow) {
  ast::Expr e = step.expr;
  const OpDef* op = find_operator(e.text, e, false);
  if (op == nullptr) {
    flow.broken = true;
    return unknown_operator(e.text, e.text_span, false);
  }
  note_operator(e.text_span, *op);
  if (op->cls == OpClass::Source || op->cls == OpClass::Merge) {
    error(Kind::NotAStep, "`{}` begins a pipeline", e.text)
        .primary(e.text_span)
        .hint("declare it as a stream of its own: `stream a = {}(...)`", e.text)
        .emit();
    flow.broken = true;
    return;
  }
  if (op->cls == OpClass::Composite && signature_of(*op).parameters[0].name == "part")
    return lower_split(*op, step, flow);
  Frame frame = frame_of(flow, e.text, flow.assignments[e.text]++);
  std::set<std::string> knobs = {"parallelism", "buffer"}, extra = knobs;
  if (op->algebra.pads) {
    for (const Field& field : type_of(flow).fields)
      if (!is_companion(field.name)) extra.insert(field.name);
    if (!spread_padding(*op, e, flow)) {
      flow.broken = true;
      return;
    }
  }
  std::optional<Matched> matched = match(*op, e, extra, frame);
  if (!matched) {
    flow.broken = true;
    return;
  }
  Node node;
  node.op = op;
  const std::vector<Parameter>& parameters = signature_of(*op).parameters;
  bool good = true;
  std::map<std::string, Operand> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (p.static_kind == StaticKind::None) {
      std::optional<Operand> value = argument(*op, p, *matched->of_parameter[i][0], frame);
      if (value)
        arguments.emplace(p.name, *std::move(value));
      else
        good = false;
    } else if (!matched->of_parameter[i].empty()) {
      std::optional<Attr> value = static_attr(*op, p, *matched->of_parameter[i][0], frame);
      if (value)
        node.attrs.set(p.name, *std::move(value));
      else
        good = false;
    } else if (p.default_value) {
      node.attrs.set(p.name, *p.default_value);
    }
  }
  for (const auto& [name, value] : matched->extra) {
    Parameter knob{.name = name, .static_kind = StaticKind::Int, .at_least = 1};
    if (!knobs.contains(name)) {  // the padding of a field
      const Field& field = *type_of(flow).find(name);
      const Type& type = field.type;
      if (type.has_static_shape() && !type.poison) {
        const bool may_miss = type_of(flow).find(missing_field(name)) != nullptr;
        error(Kind::Refused, "`{}` is `{}`: nothing of it is ever padded", name, field_type_text(type_of(flow), field))
            .primary(value->span, "the padding of `{}`", name)
            .note("only a dimension that the type leaves open grows to the largest of the batch")
            .hint_text(
                may_miss
                    ? fmt::format("for what stands where it is missing, write `{0} = default({0}, ...)` above", name)
                    : fmt::format("leave it out, or assign `{}` a list of another length in each sample", name))
            .emit();
        good = false;
        continue;
      }
      knob.at_least.reset();
      if (is_string(type.elem)) knob.static_kind = StaticKind::String;
      if (is_float(type.elem)) knob.static_kind = StaticKind::Number;
      if (type.elem == Elem::Bool) knob.static_kind = StaticKind::Bool;
    }
    std::optional<Attr> attr = static_attr(*op, knob, *value, frame);
    if (attr)
      node.attrs.set(name, *std::move(attr));
    else
      good = false;
  }
  if (!good) {
    flow.broken = true;
    return;
  }
  if (op->cls == OpClass::Composite) {
    FileId file = sources_.add(fmt::format("<{}>", op->name), std::string(op->expansion));
    Result<ast::Step> filter = parse_step({file, sources_.text(file), 0, {}}, diags_);
    ZEPHON_CHECK(filter.ok() && filter->kind == ast::Step::Kind::Filter, "the expansion of `{}`", op->name);
    Frame inner = frame_of(flow, e.text, flow.assignments[e.text]++);
    inner.fields = nullptr;
    inner.arguments = &arguments;
    inner.here = step.span;
    Expanding expanding(*this, *op, op->expansion);
    Operand predicate = evaluate(filter->expr, inner);
    node.op = &core("filter");
    node.predicate = predicate.expr;
    if (predicate.kind != Operand::Kind::Dynamic) {
      flow.broken = true;
      return;
    }
  } else if (!arguments.empty()) {
    const Operand& key = arguments.begin()->second;
    Node assign;
    assign.op = &core("assign");
    assign.inputs = {flow.node};
    assign.type = type_of(flow);
    assign.type.fields.erase_if([](const Field& f) { return f.name == "$key"; });
    assign.type.fields.push_back({"$key", type_of(key)});
    assign.assigns = {{"$key", key.expr}};
    assign.stream = flow.stream;
    assign.step = next_step_;
    assign.origin = step.span;
    node.predicate = add_field(program_.graph, ops_, "$key", type_of(key), key.span);
    flow.node = program_.graph.add(std::move(assign));
  }
  node.inputs = {flow.node};
  if (!add_node(std::move(node), flow, step.span, e.text_span)) flow.broken = true;
}

// The value of a dynamic parameter of a dataset operator: a scalar of its type.
std::optional<Operand> Compiler::argument(const OpDef& op, const Parameter& parameter, const ast::Expr& e,
                                          Frame& frame) {
  Operand value = evaluate(e, frame);
  if (value.is_poison()) return std::nullopt;
  const Elem wanted = elem_from_name(parameter.pattern.elem).value_or(Elem::I64);
  if (value.is_static()) return materialize(value, wanted, frame);
  if (value.kind == Operand::Kind::Dynamic && value.lengths.empty() && !value.missing.valid() &&
      type_of(value).is_scalar()) {
    if (type_of(value).elem == wanted) return value;
    if (is_integer(wanted) && is_integer(type_of(value).elem)) return add_cast(value, wanted, frame);
    if (wanted == Elem::Str && type_of(value).elem != Elem::Bytes) return apply(core("to_str"), {value}, {}, e, frame);
  }
  error(Kind::WrongType, "`{}` of `{}` needs `{}`, found `{}`", parameter.name, op.name, elem_name(wanted),
        type_text(value))
      .primary(place(e.span, frame), "this is `{}`", type_text(value))
      .secondary(value.origin, "`{}` becomes `{}` here", value.name, type_text(value))
      .hint_text(value.kind == Operand::Kind::Dynamic && value.missing.valid()
                     ? "`default(x, ...)` says what stands for a missing value"
                 : wanted == Elem::Bool && value.kind == Operand::Kind::Dynamic && is_numeric(type_of(value).elem)
                     ? "compare it, for example `x > 0`"
                     : "")
      .emit();
  return std::nullopt;
}

// `split(part, by=x, train=0.9, val=0.1)`: what is named and no parameter is a share. The operator's expansion is a
// filter on the part's range of hashes: hash h lies at (h + 2^63) / 2^64 of the whole.
void Compiler::lower_split(const OpDef& op, const ast::Step& step, Flow& flow) {
  const ast::Expr& e = step.expr;
  Frame frame = frame_of(flow, e.text, flow.assignments[e.text]++);
  flow.broken = true;  // until all is good
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  std::vector<size_t> shares;
  std::set<std::string> names;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const std::string& name = e.names[i].text;
    if (name.empty() || std::any_of(parameters.begin(), parameters.end(),
                                    [&](const Parameter& parameter) { return parameter.name == name; }))
      continue;
    if (!names.insert(name).second) {
      error(Kind::DuplicateName, "the share `{}` is given twice", name).primary(e.names[i].span).emit();
      return;
    }
    shares.push_back(i);
  }
  std::optional<Matched> matched = match(op, e, names, frame);
  if (!matched) return;
  if (shares.empty()) {
    error(Kind::MissingArgument, "`{}` needs shares", op.name)
        .primary(e.text_span)
        .hint("for example `{}(train, by=\"{{path.parent.name}}/{{path.name}}\", train=0.9, val=0.1)`", op.name)
        .emit();
    return;
  }
  // Which part: the name of a share, or a text or choice known before the run.
  const ast::Expr& chosen = *matched->of_parameter[0][0];
  std::string part = chosen.text;
  std::vector<std::string> choices;  // of the parameter that says which part
  Frame probe = frame;
  if (chosen.kind != ast::Expr::Kind::Name || find_name(chosen.text, chosen.span, probe)) {
    Operand value = evaluate(chosen, frame);
    if (value.is_poison()) return;
    if (!value.is_static() || !(value.value.is_string() || value.value.kind == StaticValue::Kind::Enum)) {
      error(value.is_static() ? Kind::WrongType : Kind::NotConstant, "the part is chosen before the run, by its name")
          .primary(chosen.span, "this is {}", type_text(value))
          .emit();
      return;
    }
    part = value.value.text;
    choices = value.value.choices;
    std::set<const ast::Expr*> seen;
    note_choice(chosen, seen);
  }
  Rational sum(0), first(0), last(0);
  for (size_t i : shares) {
    Operand value = known(evaluate(e.operands[i], frame));
    if (value.is_poison()) return;
    if (!value.is_static() || !value.value.is_number() || value.value.number <= Rational(0)) {
      error(value.is_static() ? Kind::WrongType : Kind::NotConstant,
            "a share is a number above 0 that is known before the run")
          .primary(e.operands[i].span, "this is {}", type_text(value))
          .emit();
      return;
    }
    if (e.names[i].text == part) first = sum;
    sum = sum + value.value.number;
    if (e.names[i].text == part) last = sum;
  }
  if (sum != Rational(1)) {
    error(Kind::Refused, "the shares of `{}` are {} together, not 1", op.name, sum.to_string())
        .primary(join(e.names[shares.front()].span, e.operands[shares.back()].span))
        .hint("shares are exact: write thirds as `1/3`")
        .emit();
    return;
  }
  if (!names.contains(part)) {
    // What is chosen by a parameter is declared elsewhere: the share that is none of its choices is misspelt.
    std::vector<std::string> strays;
    for (const std::string& name : names)
      if (!choices.empty() && std::find(choices.begin(), choices.end(), name) == choices.end()) strays.push_back(name);
    if (strays = near_names(part, strays); !strays.empty()) {
      auto written = std::find_if(shares.begin(), shares.end(), [&](size_t i) { return e.names[i].text == strays[0]; });
      error(Kind::UnknownName, "the share `{}` is none of the choices of `{}`", strays[0], chosen.text)
          .primary(e.names[*written].span)
          .secondary(chosen.span, "this is `{}`", part)
          .hint_text(did_you_mean(strays[0], choices))
          .emit();
      return;
    }
    std::string all;
    for (size_t i : shares) all += (all.empty() ? "`" : ", `") + e.names[i].text + "`";
    std::string hint = choices.empty() ? did_you_mean(part, std::vector<std::string>(names.begin(), names.end())) : "";
    error(Kind::UnknownName, "no share is called `{}`", part)
        .primary(chosen.span)
        .hint_text(hint.empty() ? "the shares are " + all : hint)
        .emit();
    return;
  }
  // The hashes h with first <= (h + 2^63) / 2^64 < last.
  const Rational whole(BigInt(1) << 64, BigInt(1)), half(BigInt(1) << 63, BigInt(1));
  auto least = [&](const Rational& at) { return -(-(at * whole)).floor() - half; };
  const Rational low = least(first), high = least(last) - Rational(1);
  if (low > high) {
    error(Kind::Refused, "the share `{}` is too small for any sample", part).primary(e.text_span).emit();
    return;
  }
  std::map<std::string, Operand> arguments;
  auto number = [&](const std::string& name, const Rational& value) {
    Operand& operand = arguments[name];
    operand.kind = Operand::Kind::Static;
    operand.value = StaticValue::of(value);
    operand.span = e.span;
  };
  number("part_first", low);
  number("part_last", high);
  number("seed", Rational(0));
  for (size_t i = 1; i < parameters.size(); ++i) {
    if (matched->of_parameter[i].empty()) continue;
    const ast::Expr& operand = *matched->of_parameter[i][0];
    if (parameters[i].static_kind == StaticKind::None) {
      arguments[parameters[i].name] = evaluate(operand, frame);
      if (arguments[parameters[i].name].is_poison()) return;
    } else {
      std::optional<Attr> value = static_attr(op, parameters[i], operand, frame);
      if (!value) return;
      number(parameters[i].name, Rational(std::get<int64_t>(*value)));
    }
  }
  FileId file = sources_.add(fmt::format("<{}>", op.name), std::string(op.expansion));
  Result<ast::Step> filter = parse_step({file, sources_.text(file), 0, {}}, diags_);
  ZEPHON_CHECK(filter.ok() && filter->kind == ast::Step::Kind::Filter, "the expansion of `{}`", op.name);
  Frame inner;
  inner.arguments = &arguments;
  inner.path = frame.path;
  inner.here = step.span;
  Expanding expanding(*this, op, op.expansion);
  // The first share has no lower bound, and the last no upper one.
  const ast::Expr& both = filter->expr;
  ZEPHON_CHECK(both.kind == ast::Expr::Kind::Binary && both.text == "and", "the expansion of `{}`", op.name);
  const bool first_share = first == Rational(0), last_share = last == Rational(1);
  Operand predicate =
      first_share == last_share ? evaluate(both, inner) : evaluate(both.operands[first_share ? 1 : 0], inner);
  if (predicate.kind != Operand::Kind::Dynamic) return;
  Node node;
  node.op = &core("filter");
  node.inputs = {flow.node};
  node.predicate = predicate.expr;
  if (add_node(std::move(node), flow, step.span, e.text_span)) flow.broken = false;
}

// ---- what is delivered

// A dimension that a contract names, where it has met it first; a size known before the run where one is.
struct NamedDim {
  Dim dim;
  std::string field;
  size_t place = 0;       // of the dimension in a member
  bool of_batch = false;  // the number of members
  bool optional = false;  // the field may be missing
};

void Compiler::check_contract(const ast::Type& contract, Flow& flow, std::vector<Field>* declared) {
  const StreamType delivered = type_of(flow);
  ast::Type record = contract;
  if (record.kind == ast::Type::Kind::Batch && record.fields[0].type.kind == ast::Type::Kind::Record)
    record = record.fields[0].type;
  if (record.kind != ast::Type::Kind::Record) {
    error(Kind::WrongType, "a contract names fields: `{{image: f32[3, h, w], label: i64}}`")
        .primary(contract.span)
        .emit();
    return;
  }
  Span last = program_.steps.back().origin;
  Frame frame;
  std::map<std::string, Dim> symbols;
  std::map<std::string, NamedDim> bound;
  bool good = true;
  std::vector<std::string> names;
  for (const Field& field : delivered.fields)
    if (!is_companion(field.name)) names.push_back(field.name);
  struct Promise {
    std::string name;
    Type type;
    int missing_rank;
    size_t levels;
    const ast::SchemaField* syntax;
  };
  std::vector<Promise> promises;
  for (const ast::SchemaField& promised : record.fields) {
    std::vector<DeclaredLeaf> leaves;
    if (!declared_leaves(promised.type, promised.name.text, frame, symbols, leaves)) good = false;
    for (DeclaredLeaf& leaf : leaves)
      promises.push_back({LeafPath::parse(leaf.path).field(), leaf.type, leaf.missing_rank, leaf.levels, &promised});
  }
  // Of a batch each shape begins with the number of members.
  const size_t front = contract.kind == ast::Type::Kind::Record && delivered.batch ? 1 : 0;
  for (const Promise& promise : promises) {
    const ast::SchemaField& promised = *promise.syntax;
    const Type* type = &promise.type;
    if (declared != nullptr) declared->push_back({promise.name, *type});
    const Field* field = delivered.find(promise.name);
    if (field == nullptr) {
      error(Kind::ContractBroken, "the contract promises `{}`, which is not delivered", promise.name)
          .primary(promised.name.span)
          .secondary(last, "the last step delivers {}", to_string(delivered))
          .hint_text(did_you_mean(promise.name, names))
          .emit();
      good = false;
      continue;
    }
    Type found = field->type;
    std::string note;
    if (front > 0) {
      // Without drop_remainder the last batch may be smaller.
      Dim size = delivered.batch->drop_remainder ? Dim::of(delivered.batch->size)
                                                 : Dim::named(fmt::format("<={}", delivered.batch->size));
      found.box.clear();
      found.shape.insert(found.shape.begin(), size);
      if (!type->shape.empty() && type->shape[0] == Dim::of(delivered.batch->size) && !delivered.batch->drop_remainder)
        note =
            fmt::format("the last batch may be smaller: write `batch({}, drop_remainder=true)`", delivered.batch->size);
    }
    const Field* missing = delivered.find(missing_field(promise.name));
    const int missing_rank = missing ? static_cast<int>(missing->type.rank()) : -1;
    size_t levels = 0;
    while (delivered.find(lengths_field(promise.name, levels + 1))) ++levels;
    const bool same = missing_rank == promise.missing_rank && levels == promise.levels;
    if (missing_rank >= 0 && promise.missing_rank < 0)
      note = "promise it as optional, or say what stands for a missing value: `default(x, ...)`";
    bool fits = same && found.elem == type->elem && found.rank() == type->rank();
    for (size_t d = 0; fits && d < found.rank(); ++d) {
      const Dim &wanted = type->shape[d], &have = found.shape[d];
      const bool of_batch = d < front;
      if (is_varying(wanted)) continue;
      if (wanted.symbol.empty()) {
        fits = have.is_static() ? wanted == have : !of_batch;
        continue;
      }
      auto [it, first] = bound.emplace(
          wanted.symbol, NamedDim{have, promise.name, d - (of_batch ? 0 : front), of_batch, missing_rank == 0});
      NamedDim& known = it->second;
      if (first || (known.dim == have && have != Dim::unknown() && !is_varying(have))) continue;
      if (known.of_batch != of_batch && !(known.dim.is_static() && have.is_static())) {
        // The number of members is nothing that a sample could be compared with, unless it is known before the run.
        fits = known.of_batch ? known.dim.is_static() : have.is_static();
        if (!fits) note = "the size of a batch is known for all batches only with `drop_remainder=true`";
      } else if (known.dim.is_static() && have.is_static()) {
        fits = false;
        note = fmt::format("`{}` is {} in `{}`", wanted.symbol, known.dim.extent, known.field);
      } else if ((known.optional || missing_rank == 0) && !known.dim.is_static() && !have.is_static()) {
        fits = false;
        note = fmt::format("a value that may be missing has no size to compare: give `{}` a name of its own",
                           wanted.symbol);
      }
      if (fits && have.is_static()) known = {have, promise.name, d - (of_batch ? 0 : front), of_batch, false};
    }
    if (fits) continue;
    auto origin = flow.origins.find(promise.name);
    error(Kind::ContractBroken, "the contract promises `{}` as `{}`, and `{}` is delivered", promise.name,
          declared_text(*type, promise.missing_rank, promise.levels), declared_text(found, missing_rank, levels))
        .primary(promised.type.span, "promised here")
        .secondary(origin == flow.origins.end() ? last : origin->second, "`{}` becomes `{}` here", promise.name,
                   field_type_text(delivered, *field))
        .hint_text(std::move(note))
        .emit();
    good = false;
  }
  if (!good) return;
  for (const Field& field : delivered.fields) {
    if (is_companion(field.name) ||
        std::any_of(promises.begin(), promises.end(), [&](const Promise& p) { return p.name == field.name; }))
      continue;
    std::string all;
    for (const ast::SchemaField& f : record.fields) all += (all.empty() ? "" : ", ") + f.name.text;
    error(Kind::ContractBroken, "`{}` is delivered, and the contract does not promise it", field.name)
        .primary(contract.span)
        .secondary(last, "the last step delivers {}", to_string(delivered))
        .hint("add `select {}`", all)
        .emit();
    return;
  }
  // What is left is checked for each sample: the field goes through an operator that fails where the size is another.
  Graph& graph = program_.graph;
  Node node;
  node.op = &core("assign");
  node.inputs = {flow.node};
  node.type = delivered;
  for (const Promise& promise : promises) {
    const size_t place = *node.type.fields.index(promise.name);
    const Field field = node.type.fields[place];
    const Span& span = promise.syntax->type.span;
    auto read = [&](const std::string& name) {
      return dynamic(add_field(graph, ops_, name, delivered.find(name)->type, span), span);
    };
    ast::Expr written;
    written.kind = ast::Expr::Kind::Call;
    written.span = written.text_span = span;
    const Field* missing = delivered.find(missing_field(promise.name));
    std::vector<Operand> args = {read(promise.name), missing && missing->type.is_scalar()
                                                         ? read(missing->name)
                                                         : constant(Value::scalar(Scalar::of_bool(false)), span)};
    std::vector<int64_t> dims;
    std::vector<std::string> owners;
    for (size_t d = 0; d < field.type.rank(); ++d) {
      Dim wanted = promise.type.shape[d + front];
      if (is_varying(wanted)) continue;
      std::string owner;
      Operand size;
      if (!wanted.symbol.empty()) {
        const NamedDim& named = bound.at(wanted.symbol);
        if (named.dim == field.type.shape[d] && !(named.dim == Dim::unknown()) && !is_varying(named.dim)) continue;
        if (named.field == promise.name && named.place == d && !named.of_batch) continue;
        owner = fmt::format("`{}` of `{}`", wanted.symbol, named.field);
        if (!named.dim.is_static()) {
          Attrs attrs;
          attrs.set("dimension", static_cast<int64_t>(named.place));
          size = apply(core("extent"), {read(named.field)}, std::move(attrs), written, frame);
        }
        wanted = named.dim;
      }
      if (wanted == field.type.shape[d] && wanted.is_static()) continue;
      if (wanted.is_static()) size = constant(Value::scalar(Scalar::of_int(Elem::I64, wanted.extent)), span);
      dims.push_back(static_cast<int64_t>(d));
      owners.push_back(std::move(owner));
      args.push_back(std::move(size));
    }
    if (dims.empty()) continue;
    Type shown = promise.type;
    if (front > 0) shown.shape.erase(shown.shape.begin());
    Attrs attrs;
    attrs.set("dims", std::move(dims));
    attrs.set("names", std::move(owners));
    attrs.set("promise", fmt::format("the contract promises `{}` as `{}`", promise.name,
                                     declared_text(shown, promise.missing_rank, promise.levels)));
    const Operand checked = apply(core("check_shape"), std::move(args), std::move(attrs), written, frame);
    if (checked.is_poison()) return;
    node.assigns.push_back({promise.name, checked.expr});
    node.type.fields.set_type(place, type_of(checked));
  }
  if (node.assigns.empty()) return;
  node.stream = flow.stream;
  node.step = graph.node(flow.node).step;
  node.origin = contract.span;
  flow.node = graph.add(std::move(node));
  program_.steps.back().node = flow.node;
}

// on_error acts on what is assigned above it and statically needed below it: a walk against the stream.
void Compiler::find_needed() {
  Graph& graph = program_.graph;
  std::vector<NodeId> order = graph.topological();
  auto is_policy = [&](NodeId id) { return graph.node(id).op->cls == OpClass::Policy; };
  if (std::none_of(order.begin(), order.end(), is_policy)) return;
  std::map<NodeId, std::set<std::string>> needed;    // of what each node delivers
  std::map<NodeId, std::set<std::string>> assigned;  // at or above each node, of fields that still exist
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    std::set<std::string>& set = assigned[id];
    for (NodeId input : node.inputs) set.insert(assigned[input].begin(), assigned[input].end());
    for (const Assign& assign : node.assigns) set.insert(assign.field);
  }
  for (const Field& field : graph.node(graph.output()).type.fields) needed[graph.output()].insert(field.name);
  auto read = [&](ExprId root, std::set<std::string>& into) {
    for (ExprId id : graph.topological(root))
      if (graph.expr(id).op->name == "field") into.insert(graph.expr(id).attrs.text("name"));
  };
  for (size_t i = order.size(); i-- > 0;) {
    Node& node = graph.node(order[i]);
    std::set<std::string> fields = needed[order[i]];
    if (is_policy(order[i])) {
      node.needed.clear();
      for (const std::string& field : fields)
        if (assigned[order[i]].contains(field)) node.needed.push_back(field);
    }
    for (size_t a = node.assigns.size(); a-- > 0;)
      if (fields.erase(node.assigns[a].field) > 0) read(node.assigns[a].expr, fields);
    if (node.predicate.valid()) read(node.predicate, fields);
    for (NodeId input : node.inputs) {
      const StreamType& type = graph.node(input).type;
      for (const std::string& field : fields)
        if (type.find(field) != nullptr) needed[input].insert(field);
    }
  }
}

// What is kept must be the same in every epoch.
void Compiler::check_caches() const {
  const Graph& graph = program_.graph;
  std::map<NodeId, ExprId> draws;  // nodes that a draw stands in or above, and the first such draw
  for (NodeId id : graph.topological()) {
    const Node& node = graph.node(id);
    ExprId draw;
    for (NodeId input : node.inputs)
      if (auto it = draws.find(input); it != draws.end() && !draw.valid()) draw = it->second;
    std::vector<ExprId> roots;
    for (const Assign& a : node.assigns) roots.push_back(a.expr);
    if (node.predicate.valid()) roots.push_back(node.predicate);
    for (ExprId root : roots) {
      if (draw.valid()) break;
      for (ExprId part : graph.topological(root))
        if (graph.expr(part).draw_id != 0 && !draw.valid()) draw = part;
    }
    if (!draw.valid()) continue;
    draws[id] = draw;
    if (!node.op->algebra.keeps_rows) continue;
    const std::vector<Span>& places = graph.expr(draw).origin;
    diags_.report(Kind::CacheBelowDraw, "`{}` would keep what is drawn above it", node.op->name)
        .primary(node.origin, "would give the same in every epoch")
        .secondary(places.empty() ? Span{} : places.front(), "drawn anew for each sample and epoch")
        .hint("put `{}` above the first step that draws", node.op->name)
        .emit();
  }
}

}  // namespace zephon
