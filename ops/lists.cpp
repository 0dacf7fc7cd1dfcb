// list_at lists_between list_sums: lists of lists, which lie as their elements one after the other and the lengths of
// the lists (graph/leaf_path.h). The front end writes these for `x[i]` and `x[a:b]`.
#include <fmt/format.h>

#include <cstring>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// Rows [begin, end) of x.
struct Rows {
  int64_t begin = 0, end = 0;
};

// The rows of lists [first, last) of `lengths`; false where they do not lie in x.
bool rows_of(std::span<const int64_t> lengths, int64_t first, int64_t last, int64_t have, Rows& rows) {
  for (int64_t i = 0; i < last; ++i) {
    if (i == first) rows.begin = rows.end;
    rows.end += lengths[static_cast<size_t>(i)];
  }
  if (first == last) rows.begin = rows.end;
  return rows.begin >= 0 && rows.begin <= rows.end && rows.end <= have;
}

// Which lists `expr` asks for, or false with a message.
bool lists_of(const Expr& expr, int64_t count, int64_t at, int64_t& first, int64_t& last, std::string& message) {
  if (expr.op->name == "list_at") {
    first = at < 0 ? at + count : at;
    last = first + 1;
    if (at >= count || at < -count) message = fmt::format("index {} in a list of {} lists", at, count);
    return message.empty();
  }
  first = expr.attrs.integer("begin");
  last = expr.attrs.integer("end");
  if (first < 0) first += count;
  if (last == INT64_MAX) last = count;
  if (last < 0) last += count;
  if (first < 0 || last < first || last > count)
    message = fmt::format("a slice reaches beyond a list of {} lists", count);
  return message.empty();
}

std::span<const int64_t> numbers(const void* data, int64_t count) {
  return {static_cast<const int64_t*>(data), static_cast<size_t>(count)};
}

Value define_part(DefineCall& call) {
  for (size_t i = 0; i < call.arg_count(); ++i)
    if (call.arg(i).any_failed()) return forward(call.arg(i));
  const Value &x = call.arg(0), &lengths = call.arg(1);
  const int64_t at = call.arg_count() > 2 ? call.arg(2).at(0).i : 0;
  std::string message;
  int64_t first = 0, last = 0;
  Rows rows;
  if (!lists_of(call.expr(), lengths.size(), at, first, last, message))
    return Value::failed(call.failure(kOutsideTensor, message));
  if (!rows_of(numbers(lengths.bytes().data(), lengths.size()), first, last, x.shape()[0], rows))
    return Value::failed(call.failure(kOutsideTensor, "the lengths of the lists do not agree with what they hold"));
  std::vector<int64_t> shape = x.shape();
  const int64_t row = x.shape()[0] == 0 ? 0 : x.size() / x.shape()[0];
  shape[0] = rows.end - rows.begin;
  Value out(x.elem(), shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, x.at(rows.begin * row + i));
  return out;
}

bool run_part(NativeCall& call) {
  const TensorRef &x = call.inputs[0], &lengths = call.inputs[1];
  const int64_t at = call.inputs.size() > 2 ? *static_cast<const int64_t*>(call.inputs[2].data) : 0;
  std::string message;
  int64_t first = 0, last = 0;
  Rows rows;
  if (!lists_of(*call.expr, lengths.size(), at, first, last, message) ||
      !rows_of(numbers(lengths.data, lengths.size()), first, last, x.shape[0], rows))
    return false;
  Shape shape(x.shape, x.shape + x.rank);
  shape[0] = 1;
  const size_t row_bytes = static_cast<size_t>(count_of(shape)) * elem_size(x.elem);
  shape[0] = rows.end - rows.begin;
  if (!place_output(call, shape)) return false;
  if (call.output->byte_size() > 0)
    std::memcpy(call.output->data, static_cast<const char*>(x.data) + static_cast<size_t>(rows.begin) * row_bytes,
                call.output->byte_size());
  return true;
}

void infer_part(InferCall& call) {
  call.result = call.args[0];
  call.result.box.clear();
  call.result.shape[0] = varying_dim();
}

// Sums of the lengths of the lists that each list holds.
bool sums(std::span<const int64_t> x, std::span<const int64_t> lengths, std::vector<int64_t>& out) {
  size_t at = 0;
  for (int64_t length : lengths) {
    int64_t sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (at == x.size()) return false;
      sum += x[at++];
    }
    out.push_back(sum);
  }
  return true;
}

Value define_sums(DefineCall& call) {
  const Value &x = call.arg(0), &lengths = call.arg(1);
  if (x.any_failed()) return forward(x);
  if (lengths.any_failed()) return forward(lengths);
  std::vector<int64_t> out;
  if (!sums(numbers(x.bytes().data(), x.size()), numbers(lengths.bytes().data(), lengths.size()), out))
    return Value::failed(call.failure(kOutsideTensor, "the lengths of the lists do not agree with what they hold"));
  Value value(Elem::I64, {static_cast<int64_t>(out.size())});
  if (!out.empty()) std::memcpy(value.mutable_bytes().data(), out.data(), out.size() * sizeof(int64_t));
  return value;
}

bool run_sums(NativeCall& call) {
  thread_local std::vector<int64_t> out;
  out.clear();
  const TensorRef &x = call.inputs[0], &lengths = call.inputs[1];
  if (!sums(numbers(x.data, x.size()), numbers(lengths.data, lengths.size()), out)) return false;
  const int64_t shape[] = {static_cast<int64_t>(out.size())};
  if (!place_output(call, shape)) return false;
  if (!out.empty()) std::memcpy(call.output->data, out.data(), out.size() * sizeof(int64_t));
  return true;
}

}  // namespace

ZEPHON_OP_DEF(ListAt) = {
    .name = "list_at",
    .cls = OpClass::Opaque,
    .signature = "x: T[n, ...s], lengths: i64[m], at: i64 -> T[?, ...s]",
    .summary = "List `at` of lists of lengths `lengths`, whose elements are x, one list after the other.",
    .prose = "What `x[i]` of a list of lists is. A negative index counts from the end; one outside fails.",
    .example = "range(2) | x = [1, 2, 3].list_at([1, 2], index)",
    .effects = {.can_fail = true},
    .define = {.tensor = define_part},
    .kernel = {.native = run_part},
    .infer = infer_part,
};

ZEPHON_OP_DEF(ListsBetween) = {
    .name = "lists_between",
    .cls = OpClass::Opaque,
    .signature = "x: T[n, ...s], lengths: i64[m], begin: int, end: int -> T[?, ...s]",
    .summary = "The elements of lists `begin` up to `end`, of lists of lengths `lengths` whose elements are x.",
    .prose =
        "What `x[a:b]` of a list of lists holds. Negative ends count from the end; a range that leaves the lists "
        "fails.",
    .example = "range(2) | x = [1, 2, 3].list_at([1, 2], 1)",
    .effects = {.can_fail = true},
    .define = {.tensor = define_part},
    .kernel = {.native = run_part},
    .infer = infer_part,
};

ZEPHON_OP_DEF(ListSums) = {
    .name = "list_sums",
    .cls = OpClass::Opaque,
    .signature = "x: i64[n], lengths: i64[m] -> i64[m]",
    .summary = "The sum of each list, of lists of lengths `lengths` whose elements are x.",
    .prose = "Of lists of lists of lists it tells how many elements each of the outermost holds.",
    .example = "range(2) | x = [1, 2, 3].list_sums([1, 2])",
    .effects = {.can_fail = true},
    .define = {.tensor = define_sums},
    .kernel = {.native = run_sums},
};

}  // namespace zephon
