// What a test gives for a field in each of its samples -> an assignment. A value is written as a tree of lists and
// records, with `missing` where there is none; the declared type of the field says how it is carried
// (graph/leaf_path.h).
#include <algorithm>
#include <functional>

#include "frontend/compiler.h"

namespace zephon {
namespace {

using Form = ast::Expr::Kind;

bool is_absent(const ast::Expr& e) {
  if (e.kind == Form::List && !e.operands.empty()) return std::all_of(e.operands.begin(), e.operands.end(), is_absent);
  return e.kind == Form::Absent;
}
bool says_missing(const ast::Expr& e) { return e.kind == Form::Name && e.text == kMissingWord; }

// The first part of a list that is no value by itself; `word`: `missing` means that there is none.
const ast::Expr* find_no_value(const ast::Expr& e, bool word) {
  if (e.kind == Form::Schema || e.kind == Form::Absent || (word && says_missing(e))) return &e;
  if (e.kind == Form::List)
    for (const ast::Expr& item : e.operands)
      if (const ast::Expr* found = find_no_value(item, word)) return found;
  return nullptr;
}

bool has_empty_list(const ast::Expr& e) {
  if (e.kind != Form::List) return false;
  return e.operands.empty() || std::any_of(e.operands.begin(), e.operands.end(), has_empty_list);
}

ast::Expr call_of(const std::string& name, const Span& span) {
  ast::Expr e;
  e.kind = Form::Call;
  e.text = name;
  e.span = e.text_span = span;
  return e;
}

// What carries one leaf: the type of the value (after `batch` with the members in front), the dimensions of what says
// which of it is missing (-1: nothing is), and how many lists stand around the first dimension.
struct Leaf {
  std::string name;
  Type type;
  int missing_rank = -1;
  size_t levels = 0;
};

std::vector<Leaf> leaves_of(const StreamType& types, const std::string& name) {
  std::vector<Leaf> leaves;
  for (const std::string& field : fields_of(types, name)) {
    if (is_companion(field)) continue;
    Leaf leaf{field, types.find(field)->type};
    const Field* missing = types.find(missing_field(field));
    if (missing != nullptr) leaf.missing_rank = static_cast<int>(missing->type.rank());
    while (types.find(lengths_field(field, leaf.levels + 1)) != nullptr) ++leaf.levels;
    if (types.batch) {
      leaf.type.box.clear();
      leaf.type.shape.insert(leaf.type.shape.begin(), Dim::unknown());
      if (missing != nullptr) ++leaf.missing_rank;
    }
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

}  // namespace

ast::Expr project_given(const ast::Expr& value, std::string_view path) {
  if (path.empty() || says_missing(value)) return value;
  ast::Expr out;
  out.span = out.text_span = value.span;
  if (value.kind == Form::List) {
    out = value;
    for (ast::Expr& item : out.operands) item = project_given(item, path);
  } else if (value.kind == Form::Schema) {
    const std::string_view key = path.substr(0, path.find('.'));
    for (const ast::SchemaField& field : value.fields)
      if (field.name.text == key)
        return project_given(field.type.dims[0], path.substr(std::min(path.size(), key.size() + 1)));
  }
  return out;
}

bool is_given(const ast::Expr& value) { return !is_absent(value); }

// Builds the values of one leaf.
class Compiler::GivenValues {
 public:
  /// `exact`: the value has the dimensions of the type; what is expected may have others, and differs then.
  GivenValues(Compiler& compiler, Frame& frame, bool exact) : compiler_(compiler), frame_(frame), exact_(exact) {}

  std::optional<Operand> value(const ast::Expr& e, const Leaf& leaf) {
    if (leaf.missing_rank == 0) {
      const bool gone = is_absent(e) || says_missing(e);
      Leaf present = leaf;
      present.missing_rank = -1;
      std::optional<Operand> out = gone ? zeros(leaf.type, 0, e.span) : value(e, present);
      if (!out) return out;
      if (gone)
        for (size_t level = 0; level < leaf.levels; ++level)
          out->lengths.push_back(compiler_.constant(Value(Elem::I64, {0}), e.span).expr);
      out->missing = compiler_.constant(Value::scalar(Scalar::of_bool(gone)), e.span).expr;
      return out;
    }
    if (leaf.levels == 0 && leaf.missing_rank < 0 && !has_empty_list(e)) return plain(e, leaf);
    Built built;
    if (leaf.levels > 0) {
      if (!flatten(e, leaf, 0, built)) return std::nullopt;
      std::optional<Operand> out = stacked(std::move(built.items), leaf.type, 1, e.span);
      if (!out) return out;
      for (size_t level = 0; level < leaf.levels; ++level) {
        const std::vector<int64_t>& lengths = built.lengths[level + 1];
        Value value(Elem::I64, {static_cast<int64_t>(lengths.size())});
        for (size_t i = 0; i < lengths.size(); ++i)
          value.set(static_cast<int64_t>(i), Scalar::of_int(Elem::I64, lengths[i]));
        out->lengths.push_back(compiler_.constant(std::move(value), e.span).expr);
      }
      if (leaf.missing_rank > 0) out->missing = marks(built.marks, {static_cast<int64_t>(built.marks.size())}, e.span);
      return out;
    }
    const size_t depth = leaf.missing_rank > 0 ? static_cast<size_t>(leaf.missing_rank) : leaf.type.rank();
    std::optional<Operand> out = rectangle(e, leaf, 0, depth, built);
    if (out && leaf.missing_rank > 0) {
      std::vector<int64_t> shape;
      for (const std::vector<int64_t>& lengths : built.lengths) shape.push_back(lengths.empty() ? 0 : lengths[0]);
      shape.resize(depth, 0);
      out->missing = marks(built.marks, shape, e.span);
    }
    return out;
  }

 private:
  struct Built {
    std::vector<Operand> items;
    std::vector<bool> marks;
    std::vector<std::vector<int64_t>> lengths;  // of the lists of each depth
  };

  // One expression, of the type of the leaf behind `depth` dimensions.
  std::optional<Operand> plain(const ast::Expr& e, const Leaf& leaf, size_t depth = 0) {
    const bool word = !compiler_.module_->claimed.contains(std::string(kMissingWord));
    if (const ast::Expr* none = find_no_value(e, word))
      return wrong(*none, leaf,
                   none->kind == Form::Schema   ? "a record"
                   : none->kind == Form::Absent ? "nothing"
                                                : "`missing`");
    ast::Expr typed = call_of(std::string(elem_name(leaf.type.elem)), e.span);
    typed.operands.push_back(e);
    typed.names.resize(1);
    typed.depth = e.depth + 1;
    Operand out = compiler_.evaluate(typed, frame_);
    if (out.is_poison()) return std::nullopt;
    std::optional<Operand> value = compiler_.materialize(out, leaf.type.elem, frame_);
    if (!value) return value;
    const std::vector<Dim>& found = compiler_.type_of(*value).shape;
    bool fits =
        !exact_ || (value->lengths.empty() && !value->missing.valid() && found.size() + depth == leaf.type.rank());
    for (size_t d = 0; exact_ && fits && d < found.size(); ++d) {
      const Dim& wanted = leaf.type.shape[d + depth];
      fits = !wanted.is_static() || !found[d].is_static() || wanted.extent == found[d].extent;
    }
    return fits ? value : wrong(e, leaf, "`" + compiler_.type_text(*value) + "`");
  }
  // An element behind `depth` dimensions.
  std::optional<Operand> item(const ast::Expr& e, const Leaf& leaf, size_t depth, Built& built) {
    const bool gone = leaf.missing_rank > 0 && (is_absent(e) || says_missing(e));
    built.marks.push_back(gone);
    return gone ? zeros(leaf.type, depth, e.span) : plain(e, leaf, depth);
  }
  const std::vector<ast::Expr>* list(const ast::Expr& e, const Leaf& leaf, size_t depth, Built& built) {
    if (e.kind != Form::List) {
      wrong(e, leaf, e.kind == Form::Schema ? "a record" : "no list");
      return nullptr;
    }
    if (built.lengths.size() <= depth) built.lengths.resize(depth + 1);
    built.lengths[depth].push_back(static_cast<int64_t>(e.operands.size()));
    return &e.operands;
  }
  bool flatten(const ast::Expr& e, const Leaf& leaf, size_t depth, Built& built) {
    built.lengths.resize(std::max(built.lengths.size(), leaf.levels + 1));
    if (depth == leaf.levels + 1) {
      std::optional<Operand> one = item(e, leaf, 1, built);
      if (one) built.items.push_back(*std::move(one));
      return one.has_value();
    }
    const std::vector<ast::Expr>* inner = list(e, leaf, depth, built);
    return inner != nullptr && std::all_of(inner->begin(), inner->end(), [&](const ast::Expr& part) {
             return flatten(part, leaf, depth + 1, built);
           });
  }
  std::optional<Operand> rectangle(const ast::Expr& e, const Leaf& leaf, size_t at, size_t depth, Built& built) {
    if (at == depth) return item(e, leaf, depth, built);
    const std::vector<ast::Expr>* inner = list(e, leaf, at, built);
    if (inner == nullptr) return std::nullopt;
    std::vector<Operand> parts;
    for (const ast::Expr& part : *inner) {
      std::optional<Operand> one = rectangle(part, leaf, at + 1, depth, built);
      if (!one) return std::nullopt;
      parts.push_back(*std::move(one));
    }
    return stacked(std::move(parts), leaf.type, at + 1, e.span);
  }

  // Elements behind `depth` dimensions, one after the other in a dimension in front.
  std::optional<Operand> stacked(std::vector<Operand> items, const Type& type, size_t depth, const Span& span) {
    if (items.empty()) return zeros(type, depth - 1, span);
    Operand out = compiler_.apply(compiler_.core("stack"), std::move(items), {}, call_of("stack", span), frame_);
    if (out.is_poison()) return std::nullopt;
    return out;
  }
  // What stands behind `depth` dimensions of the type, with nothing where the extent is open.
  std::optional<Operand> zeros(const Type& type, size_t depth, const Span& span) {
    std::vector<int64_t> shape;
    for (size_t d = depth; d < type.rank(); ++d) shape.push_back(std::max<int64_t>(type.shape[d].extent, 0));
    return compiler_.constant(Value(type.elem, shape), span);
  }
  ExprId marks(const std::vector<bool>& flags, std::vector<int64_t> shape, const Span& span) {
    Value value(Elem::Bool, std::move(shape));
    for (size_t i = 0; i < flags.size() && static_cast<int64_t>(i) < value.size(); ++i)
      value.set(static_cast<int64_t>(i), Scalar::of_bool(flags[i]));
    return compiler_.constant(std::move(value), span).expr;
  }
  std::optional<Operand> wrong(const ast::Expr& e, const Leaf& leaf, std::string_view found) {
    compiler_
        .error(Kind::BadTest, "`{}` is `{}`, found {}", leaf.name,
               declared_text(leaf.type, leaf.missing_rank, leaf.levels), found)
        .primary(e.span)
        .emit();
    return std::nullopt;
  }

  Compiler& compiler_;
  Frame& frame_;
  bool exact_;
};

void Compiler::lower_given(const ast::Step& step, Flow& flow) {
  const std::string& name = step.name.text;
  const ast::GivenSamples& given = *step.given;
  Frame frame = frame_of(flow, name, flow.assignments[name]++);
  flow.broken = true;  // until all is well
  GivenValues values(*this, frame, !given.partial);
  std::vector<Leaf> leaves = leaves_of(*given.types, name);

  // Fields of records that there are none.
  std::vector<std::string> names;
  for (const Leaf& leaf : leaves) names.push_back(leaf.name);
  const std::function<bool(const ast::Expr&, const std::string&)> known = [&](const ast::Expr& e,
                                                                              const std::string& path) {
    bool good = true;
    if (e.kind == Form::List)
      for (const ast::Expr& item : e.operands) good = known(item, path) && good;
    if (e.kind != Form::Schema) return good;
    if (std::find(names.begin(), names.end(), path) != names.end()) {
      error(Kind::BadTest, "`{}` is no record", path).primary(e.span).emit();
      return false;
    }
    std::vector<std::string> keys;
    for (const std::string& leaf : names)
      if (leaf.starts_with(path + "."))
        keys.push_back(leaf.substr(path.size() + 1, leaf.find('.', path.size() + 1) - path.size() - 1));
    for (const ast::SchemaField& field : e.fields) {
      if (std::find(keys.begin(), keys.end(), field.name.text) != keys.end()) {
        good = known(field.type.dims[0], path + "." + field.name.text) && good;
        continue;
      }
      error(Kind::BadTest, "`{}` has no field `{}`", path, field.name.text)
          .primary(field.name.span)
          .hint_text(did_you_mean(field.name.text, keys))
          .emit();
      good = false;
    }
    return good;
  };
  for (const ast::Expr& sample : given.samples)
    if (!known(sample, name)) return;

  // The samples in turn: a tree of choices by the number of the sample.
  const Operand index =
      dynamic(add_field(program_.graph, ops_, "index", type_of(flow).find("index")->type, step.span), step.span);
  const std::function<Operand(const std::vector<Operand>&, size_t, size_t)> choice = [&](const std::vector<Operand>& of,
                                                                                         size_t begin, size_t end) {
    if (end - begin == 1) return of[begin];
    const size_t middle = (begin + end) / 2;
    const Operand first = choice(of, begin, middle), second = choice(of, middle, end);
    if (first.is_poison() || second.is_poison()) return Operand{};
    const Operand limit = constant(Value::scalar(Scalar::of_int(Elem::I64, static_cast<int64_t>(middle))), step.span);
    const ast::Expr written = call_of("choose", step.span);
    const Operand below = apply(core("lt"), {index, limit}, {}, written, frame);
    return apply(core("choose"), {below, first, second}, {}, written, frame);
  };

  Operand record;
  record.kind = Operand::Kind::Record;
  record.span = step.span;
  bool any = false;
  for (const Leaf& leaf : leaves) {
    const std::string_view path = std::string_view(leaf.name).substr(std::min(leaf.name.size(), name.size() + 1));
    std::vector<ast::Expr> samples;
    const ast::Expr *present = nullptr, *absent = nullptr;
    for (const ast::Expr& sample : given.samples) {
      if (!path.empty() && sample.kind != Form::Schema && sample.kind != Form::List && sample.kind != Form::Absent &&
          !says_missing(sample)) {
        error(Kind::BadTest, "`{}` is a record", name)
            .primary(sample.span)
            .hint("for example `{{{}: ...}}`", path)
            .emit();
        return;
      }
      samples.push_back(project_given(sample, path));
      // Of a list with elements that may be missing the list itself must be there; in what is expected, one of them.
      const bool none =
          leaf.missing_rank > 0 && !given.partial ? samples.back().kind == Form::Absent : is_absent(samples.back());
      (none ? absent : present) = &sample;
    }
    if (present == nullptr && (given.partial || leaf.missing_rank != 0)) continue;
    if (absent != nullptr && present != nullptr && leaf.missing_rank != 0) {
      error(Kind::BadTest, "the sample gives no `{}`", leaf.name)
          .primary(absent->span)
          .secondary(present->span, "this one does")
          .emit();
      return;
    }
    std::vector<Operand> parts;
    for (const ast::Expr& sample : samples) {
      std::optional<Operand> value = values.value(sample, leaf);
      if (!value) return;
      parts.push_back(*std::move(value));
    }
    auto combined = [&](const auto& part) {
      std::vector<Operand> of;
      for (const Operand& operand : parts) of.push_back(dynamic(part(operand), step.span));
      return choice(of, 0, of.size());
    };
    Operand value = combined([](const Operand& x) { return x.expr; });
    if (value.is_poison()) return;
    if (leaf.missing_rank >= 0) value.missing = combined([](const Operand& x) { return x.missing; }).expr;
    for (size_t level = 0; level < leaf.levels; ++level)
      value.lengths.push_back(combined([&](const Operand& x) { return x.lengths[level]; }).expr);
    any = true;
    if (path.empty()) {
      record = std::move(value);
      break;
    }
    Operand* at = &record;
    for (std::string_view rest = path; !rest.empty();) {
      const std::string key(rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(rest.size(), key.size() + 1));
      auto member =
          std::find_if(at->members.begin(), at->members.end(), [&](const Operand::Member& m) { return m.name == key; });
      if (member == at->members.end()) {
        at->members.push_back({key, {}});
        member = at->members.end() - 1;
        member->value.kind = Operand::Kind::Record;
      }
      at = &member->value;
    }
    *at = std::move(value);
  }
  flow.broken = false;
  if (any) assign_fields(name, record, step.span, step.span, flow);
}

}  // namespace zephon
