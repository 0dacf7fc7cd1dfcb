#include "graph/padding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/signature.h"

namespace zephon {
namespace {

const Attr* own_padding(const Node& node, const std::string& field) {
  for (const Parameter& p : signature_of(*node.op).parameters)
    if (p.name == field) return nullptr;  // a parameter, not the field of that name
  for (const auto& [name, value] : node.attrs)
    if (name == field) return &value;
  return nullptr;
}

// Calls f(first element in the small tensor, first element in the large one, elements) for each run of the last
// dimension.
template <class F>
void for_each_run(std::span<const int64_t> small, std::span<const int64_t> large, F&& f) {
  if (small.empty()) return f(0, 0, 1);
  const int64_t run = small.back();
  int64_t runs = 1;
  for (size_t d = 0; d + 1 < small.size(); ++d) runs *= small[d];
  if (run == 0) return;
  std::vector<int64_t> index(small.size() - 1);
  for (int64_t r = 0; r < runs; ++r) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at = at * large[d] + index[d];
    f(r * run, at * large.back(), run);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < small[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

Scalar padding_of(const Node& node, const std::string& field, Elem elem) {
  const Attr* own = own_padding(node, field);
  if (is_string(elem))
    return Scalar::of_string(elem, own && std::holds_alternative<std::string>(*own) ? std::get<std::string>(*own) : "");
  // Companions (what is missing) of padded elements: nothing is.
  double value = is_companion(field) ? 0 : node.attrs.number("padding");
  if (own) {
    if (const auto* n = std::get_if<int64_t>(own)) {
      if (!is_float(elem)) return Scalar{elem, *n, 0, {}};
      value = static_cast<double>(*n);
    } else if (const auto* x = std::get_if<double>(own)) {
      value = *x;
    } else if (const auto* b = std::get_if<bool>(own)) {
      value = *b;
    }
  }
  if (is_float(elem)) return Scalar::of_float(elem, round_to(elem, value));
  return Scalar{elem, static_cast<int64_t>(value), 0, {}};
}

std::string padding_problem(const Node& node, const Field& field) {
  const Attr* own = own_padding(node, field.name);
  const bool text = own && std::holds_alternative<std::string>(*own);
  if (is_string(field.type.elem))
    return own && !text
               ? fmt::format("the padding of `{}` is a string, for it is `{}`", field.name, to_string(field.type))
               : "";
  if (field.type.has_static_shape() && !own) return "";
  if (text)
    return fmt::format("the padding of `{}` cannot be a string, for it is `{}`", field.name, to_string(field.type));
  if (is_float(field.type.elem) || is_companion(field.name)) return "";
  double value = node.attrs.number("padding");
  if (own && std::holds_alternative<int64_t>(*own)) value = static_cast<double>(std::get<int64_t>(*own));
  if (own && std::holds_alternative<double>(*own)) value = std::get<double>(*own);
  if (own && std::holds_alternative<bool>(*own)) value = std::get<bool>(*own);
  const bool boolean = field.type.elem == Elem::Bool;
  const bool is_signed = field.type.elem == Elem::I8 || field.type.elem == Elem::I16 || field.type.elem == Elem::I32 ||
                         field.type.elem == Elem::I64;
  const double bits = boolean ? 1 : static_cast<double>(8 * elem_size(field.type.elem)) - is_signed;
  const double limit = std::min(std::ldexp(1.0, static_cast<int>(bits)), 9007199254740993.0);
  const bool fits = value == std::floor(value) && value < limit && value >= (is_signed ? -limit : 0);
  return fits ? "" : fmt::format("the padding {} of `{}` does not fit `{}`", value, field.name, to_string(field.type));
}

std::vector<int64_t> padded_shape(const Node& node, std::span<const std::vector<int64_t>> shapes) {
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& shape : shapes) {
    if (out.size() < shape.size()) out.resize(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) out[d] = std::max(out[d], shape[d]);
  }
  if (!out.empty() && node.attrs.has("length")) out[0] = node.attrs.integer("length");
  return out;
}

std::string longer_than(const std::string& field, std::span<const int64_t> own, std::span<const int64_t> shape) {
  if (own.empty() || own[0] <= shape[0]) return "";
  return fmt::format("`{}` has shape [{}], and is longer than length={}", field, fmt::join(own, ", "), shape[0]);
}

Value padded(const Value& value, const std::vector<int64_t>& shape, const Scalar& padding) {
  if (value.shape() == shape) return value;
  Value out(value.elem(), shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set(i, padding);
  for_each_run(value.shape(), shape, [&](int64_t from, int64_t to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (value.element_failed(from + i))
        out.fail_element(to + i, *value.failure());
      else
        out.set(to + i, value.at(from + i));
    }
  });
  return out;
}

void pad_into(const TensorRef& from, std::span<const int64_t> shape, const void* padding, void* to) {
  const size_t size = elem_size(from.elem);
  const std::span<const int64_t> small(from.shape, static_cast<size_t>(from.rank));
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  auto* bytes = static_cast<char*>(to);
  if (!std::ranges::equal(small, shape))
    for (int64_t i = 0; i < count; ++i) std::memcpy(bytes + static_cast<size_t>(i) * size, padding, size);
  if (from.data == nullptr) return;
  for_each_run(small, shape, [&](int64_t at, int64_t place, int64_t run) {
    std::memcpy(bytes + static_cast<size_t>(place) * size,
                static_cast<const char*>(from.data) + static_cast<size_t>(at) * size, static_cast<size_t>(run) * size);
  });
}

}  // namespace zephon
