#include "ops/text_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/file_io.h"

namespace zephon {
namespace {

TextArg argument(const Scalar& x) { return {x.elem, x.i, x.f, x.s}; }

TextArg argument(const TensorRef& x, int64_t flat) {
  TextArg out{.elem = x.elem};
  if (is_string(x.elem)) {
    out.text = text_of(x, flat);
    return out;
  }
  TensorRef one = x;
  one.rank = 0;
  one.data = static_cast<std::byte*>(x.data) + static_cast<size_t>(flat) * elem_size(x.elem);
  const Scalar s = to_value(one).at(0);
  out.i = s.i;
  out.f = s.f;
  return out;
}

}  // namespace

ScalarResult define_text_function(TextFunction function, const Expr& expr, std::span<const ScalarArg> args) {
  std::vector<TextArg> texts;
  for (const ScalarArg& arg : args) texts.push_back(argument(arg.value));
  TextResult result = function(expr, texts);
  if (result.code) return ScalarResult::fail(result.code, std::move(result.message));
  const Elem elem = expr.type.elem;
  if (is_string(elem)) return ScalarResult::of(Scalar::of_string(elem, std::move(result.text)));
  if (is_float(elem)) return ScalarResult::of(Scalar::of_float(elem, result.f));
  return ScalarResult::of(Scalar::of_int(elem, result.i));
}

bool run_text_function(TextFunction function, NativeCall& call) {
  const TensorRef* shape = &call.inputs[0];
  for (const TensorRef& input : call.inputs)
    if (input.rank > shape->rank) shape = &input;
  for (const TensorRef& input : call.inputs)
    if (input.rank != 0 && !std::ranges::equal(shape_of(input), shape_of(*shape))) return false;
  if (!place_output(call, shape_of(*shape))) return false;
  TensorRef& out = *call.output;
  std::array<TextArg, 8> texts;
  if (call.inputs.size() > texts.size()) return false;
  for (int64_t i = 0, n = out.size(); i < n; ++i) {
    for (size_t a = 0; a < call.inputs.size(); ++a) texts[a] = argument(call.inputs[a], call.inputs[a].rank ? i : 0);
    TextResult result = function(*call.expr, std::span(texts.data(), call.inputs.size()));
    if (result.code) return false;
    if (is_string(out.elem)) {
      static_cast<StringRef*>(out.data)[i] = store_string(call, result.text);
    } else if (out.elem == Elem::F64) {
      static_cast<double*>(out.data)[i] = result.f;
    } else if (out.elem == Elem::I64) {
      static_cast<int64_t*>(out.data)[i] = result.i;
    } else if (out.elem == Elem::Bool) {
      static_cast<uint8_t*>(out.data)[i] = result.i != 0;
    } else {
      return false;
    }
  }
  return true;
}

Value define_parts_function(PartsFunction function, DefineCall& call) {
  std::vector<Scalar> scalars;
  std::vector<TextArg> texts;
  for (size_t i = 0; i < call.arg_count(); ++i) {
    if (call.arg(i).any_failed()) return forward(call.arg(i));
    scalars.push_back(call.arg(i).at(0));
  }
  for (const Scalar& s : scalars) texts.push_back(argument(s));
  TextParts result = function(call.expr(), texts);
  if (result.code) return Value::failed(call.failure(result.code, std::move(result.message)));
  return Value::strings(call.expr().type.elem, std::move(result.parts));
}

bool run_parts_function(PartsFunction function, NativeCall& call) {
  std::array<TextArg, 8> texts;
  for (size_t a = 0; a < call.inputs.size(); ++a) texts[a] = argument(call.inputs[a], 0);
  TextParts result = function(*call.expr, std::span(texts.data(), call.inputs.size()));
  const int64_t count[] = {static_cast<int64_t>(result.parts.size())};
  if (result.code || !place_output(call, count)) return false;
  for (size_t i = 0; i < result.parts.size(); ++i)
    static_cast<StringRef*>(call.output->data)[i] = store_string(call, result.parts[i]);
  return true;
}

std::string shown_text(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return shown_path(text);
  return shown_path(text.substr(0, kMost)) + "...";
}

int64_t code_points(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace zephon
