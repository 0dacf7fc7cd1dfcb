#include "runtime/reference/sample_evaluator.h"

#include <fmt/format.h>

#include <optional>

#include "graph/signature.h"

namespace zephon {
namespace {

Failure failure_of(const Expr& expr, std::string code, std::string message) {
  return {std::move(code), std::move(message), expr.origin.empty() ? Span{} : expr.origin.front()};
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

using Shape = std::vector<int64_t>;

// NumPy: aligned at the last dimension; 1 stretches. False where they do not fit.
bool broadcast(Shape& into, const Shape& shape) {
  if (shape.size() > into.size()) into.insert(into.begin(), shape.size() - into.size(), 1);
  const size_t shift = into.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t& extent = into[i + shift];
    if (shape[i] == 1 || shape[i] == extent) continue;
    if (extent != 1) return false;
    extent = shape[i];
  }
  return true;
}

bool fits(const Shape& shape, const Type& type) {
  if (shape.size() != type.rank()) return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (type.shape[i].is_static() && type.shape[i].extent != shape[i]) return false;
  return true;
}

// Steps an index through a shape in C order.
void advance(Shape& index, const Shape& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return;
    index[d] = 0;
  }
}

int64_t flat_index(const Shape& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

// Element of an argument that output element `index` meets.
int64_t broadcast_index(const Shape& index, const Shape& shape) {
  const size_t shift = index.size() - shape.size();
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + (shape[d] == 1 ? 0 : index[d + shift]);
  return flat;
}

// What runtime_shape() reads: values as they lie in memory.
class Refs {
 public:
  explicit Refs(const std::vector<const Value*>& values) : strings_(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) {
      const Value& v = *values[i];
      TensorRef ref;
      ref.elem = v.elem();
      ref.rank = static_cast<int32_t>(v.rank());
      std::copy(v.shape().begin(), v.shape().end(), ref.shape);
      if (is_string(v.elem())) {
        for (const std::string& s : v.string_items()) strings_[i].push_back({s.data(), s.size()});
        ref.data = strings_[i].data();
      } else {
        ref.data = const_cast<uint8_t*>(v.bytes().data());
      }
      refs_.push_back(ref);
    }
  }
  std::span<const TensorRef> get() const { return refs_; }

 private:
  std::vector<std::vector<StringRef>> strings_;
  std::vector<TensorRef> refs_;
};

}  // namespace

class SampleEvaluator::Call final : public DefineCall {
 public:
  Call(SampleEvaluator& evaluator, const Expr& expr) : evaluator_(evaluator), expr_(expr) {}
  const Expr& expr() const override { return expr_; }
  const Value& arg(size_t i) override { return evaluator_.evaluate(expr_.args[i]); }
  size_t arg_count() const override { return expr_.args.size(); }
  uint64_t identity() const override { return evaluator_.identity_; }
  uint64_t draw_key() const override {
    return zephon::draw_key(evaluator_.epoch_.seed, evaluator_.epoch_.epoch, expr_.draw_id);
  }
  std::string_view base_dir() const override { return evaluator_.constants_.base_dir(); }

 private:
  SampleEvaluator& evaluator_;
  const Expr& expr_;
};

const Value& DataConstants::get(ExprId id) const {
  std::lock_guard lock(mutex_);
  if (auto it = values_.find(id); it != values_.end()) return it->second;
  const Expr& expr = graph_->expr(id);
  if (!expr.op->define.tensor) return get(expr.args.at(0));  // data_const
  // A definition of its own sees no sample: no fields, and no draws.
  class Constant final : public DefineCall {
   public:
    Constant(const DataConstants& constants, const Expr& e) : constants_(constants), expr_(e) {}
    const Expr& expr() const override { return expr_; }
    const Value& arg(size_t i) override { return constants_.get(expr_.args[i]); }
    size_t arg_count() const override { return expr_.args.size(); }
    uint64_t identity() const override { return 0; }
    uint64_t draw_key() const override { return 0; }
    std::string_view base_dir() const override { return constants_.base_dir(); }

   private:
    const DataConstants& constants_;
    const Expr& expr_;
  } call(*this, expr);
  return values_.emplace(id, expr.op->define.tensor(call)).first->second;
}

const Value& SampleEvaluator::evaluate(ExprId id) {
  if (is_data_constant(graph_.expr(id))) return constants_.get(id);
  auto it = values_.find(id);
  if (it == values_.end()) it = values_.emplace(id, compute(id)).first;
  return it->second;
}

Value SampleEvaluator::compute(ExprId id) {
  const Expr& expr = graph_.expr(id);
  if (expr.constant) return *expr.constant;
  if (expr.op->name == "field") return fields_(expr.attrs.text("name"));
  const Define& define = expr.op->define;
  if (define.scalar) return pointwise(expr);
  if (define.view) return view(expr);
  ZEPHON_CHECK(define.tensor, "operator `{}` has no definition", expr.op->name);
  Call call(*this, expr);
  Value value = define.tensor(call);
  if (value.whole_failed()) return value;
  ZEPHON_CHECK(value.elem() == expr.type.elem, "`{}` gave {}, declared {}", expr.op->name, elem_name(value.elem()),
               to_string(expr.type));
  if (!fits(value.shape(), expr.type)) {
    return Value::failed(failure_of(expr, "R0412",
                                    fmt::format("`{}` gives shape {} here, declared `{}`", expr.op->name,
                                                shape_text(value.shape()), to_string(expr.type))));
  }
  return value;
}

Value SampleEvaluator::pointwise(const Expr& expr) {
  std::vector<const Value*> args;
  const Failure* whole = nullptr;
  Shape shape;
  bool good = true;
  for (ExprId arg : expr.args) {
    args.push_back(&evaluate(arg));
    if (args.back()->whole_failed()) {
      if (!whole) whole = args.back()->failure();
    } else {
      good = good && broadcast(shape, args.back()->shape());
    }
  }
  if (whole && !expr.op->define.lazy) return Value::failed(*whole);
  // What failed as a whole has no shape, but the declared type may: a definition that does not need it then has a
  // value.
  if (good && whole && !fits(shape, expr.type)) {
    if (!expr.type.has_static_shape()) return Value::failed(*whole);
    Shape declared;
    for (const Dim& d : expr.type.shape) declared.push_back(d.extent);
    good = broadcast(shape, declared);
  }
  if (!good || !fits(shape, expr.type)) {
    std::string shapes;
    for (const Value* arg : args)
      if (!arg->whole_failed()) shapes += (shapes.empty() ? "" : " and ") + shape_text(arg->shape());
    return Value::failed(
        failure_of(expr, "R0412",
                   fmt::format("`{}` of shapes {} does not fit `{}`", expr.op->name, shapes, to_string(expr.type))));
  }

  Value out(expr.type.elem, shape);
  const int64_t size = out.size();
  Shape index(shape.size());
  std::vector<ScalarArg> scalars(args.size());
  int64_t wholly = 0;  // elements that are the failure of an argument as a whole
  for (int64_t flat = 0; flat < size; ++flat, advance(index, shape)) {
    const Failure* failed = nullptr;
    for (size_t i = 0; i < args.size(); ++i) {
      const Value& arg = *args[i];
      scalars[i].failure = nullptr;
      if (arg.whole_failed()) {
        scalars[i].failure = arg.failure();
      } else {
        const int64_t at = broadcast_index(index, arg.shape());
        if (arg.element_failed(at)) {
          scalars[i].failure = arg.failure();
        } else {
          scalars[i].value = arg.at(at);
        }
      }
      if (!failed) failed = scalars[i].failure;
    }
    if (failed && !expr.op->define.lazy) {
      out.fail_element(flat, *failed);
      continue;
    }
    const ScalarResult result = expr.op->define.scalar(expr, scalars);
    if (result.ok) {
      out.set(flat, result.value);
    } else {
      out.fail_element(flat, result.forwarded ? *result.forwarded : failure_of(expr, result.code, result.message));
      wholly += whole && result.forwarded == whole;
    }
  }
  // Nothing of it but that failure was chosen: then it is what was chosen.
  if (size > 0 && wholly == size) return Value::failed(*whole);
  return out;
}

Value SampleEvaluator::view(const Expr& expr) {
  std::vector<const Value*> args;
  for (ExprId arg : expr.args) {
    args.push_back(&evaluate(arg));
    // Where argument 0 has failed elements they may be cut away; indices and boxes must be whole.
    if (args.size() == 1 ? args.back()->whole_failed() : args.back()->any_failed())
      return Value::failed(*args.back()->failure());
  }
  const Value& in = *args[0];
  TensorRef out_ref;
  if (!runtime_shape(expr, Refs(args).get(), out_ref)) {
    std::string shapes;
    for (const Value* arg : args) shapes += (shapes.empty() ? "" : ", ") + shape_text(arg->shape());
    return Value::failed(
        failure_of(expr, "R0412", fmt::format("`{}` cannot be applied to shapes {}", expr.op->name, shapes)));
  }
  const Shape shape(out_ref.shape, out_ref.shape + out_ref.rank);
  Value out(expr.type.elem, shape);
  const int64_t size = out.size();
  Shape index(shape.size()), from(in.shape().size());
  for (int64_t flat = 0; flat < size; ++flat, advance(index, shape)) {
    std::string message;
    if (expr.op->define.view(expr, index, args, from, message) == ViewResult::Failed) {
      out.fail_element(flat, failure_of(expr, "R0413", message));
      continue;
    }
    const int64_t at = flat_index(from, in.shape());
    if (in.element_failed(at)) {
      out.fail_element(flat, *in.failure());
    } else {
      out.set(flat, in.at(at));
    }
  }
  return out;
}

}  // namespace zephon
