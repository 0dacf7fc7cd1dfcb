// Paths and strings by their bytes: parent name stem contains starts_with ends_with replace concat to_str index_of.
#include <fmt/format.h>

#include <algorithm>

#include "ops/tensor_op.h"

namespace zephon {
namespace {

// ---- paths: bytes, parts between slashes ---------------------------------------------------------------------------

std::string_view without_trailing_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string_view name_of(std::string_view path) {
  path = without_trailing_slashes(path);
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view parent_of(std::string_view path) {
  path = without_trailing_slashes(path);
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : without_trailing_slashes(path.substr(0, slash));
}

std::string_view stem_of(std::string_view path) {
  std::string_view name = name_of(path);
  size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

// A part of a string that stays where it is: no copy.
using Part = std::string_view (*)(std::string_view);

template <Part kPart>
ScalarResult define_part(const Expr& expr, std::span<const ScalarArg> args) {
  std::string part(kPart(args[0].value.s));
  if (expr.type.elem == Elem::Str && find_invalid_utf8(part)) {
    return ScalarResult::fail(kBadText, "the name of the file is not UTF-8");
  }
  return ScalarResult::of(Scalar::of_string(expr.type.elem, std::move(part)));
}

template <Part kPart>
bool run_part(NativeCall& call) {
  const TensorRef& in = call.inputs[0];
  if (!place_output(call, shape_of(in))) return false;
  for (int64_t i = 0; i < in.size(); ++i) {
    std::string_view part = kPart(text_of(in, i));
    if (call.output->elem == Elem::Str && find_invalid_utf8(part)) return false;
    static_cast<StringRef*>(call.output->data)[i] = {part.data(), part.size()};
  }
  return true;
}

// ---- strings -------------------------------------------------------------------------------------------------------

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool starts_with(std::string_view text, std::string_view part) { return text.starts_with(part); }
bool ends_with(std::string_view text, std::string_view part) { return text.ends_with(part); }

template <bool (*kTest)(std::string_view, std::string_view)>
ScalarResult define_test(const Expr&, std::span<const ScalarArg> args) {
  return ScalarResult::of(Scalar::of_bool(kTest(args[0].value.s, args[1].value.s)));
}

// Scalars only: elements of string tensors are left to the definition.
bool scalars(const NativeCall& call) {
  return std::ranges::all_of(call.inputs, [](const TensorRef& x) { return x.rank == 0; });
}

template <bool (*kTest)(std::string_view, std::string_view)>
bool run_test(NativeCall& call) {
  if (!scalars(call) || !place_output(call, {})) return false;
  *static_cast<uint8_t*>(call.output->data) = kTest(text_of(call.inputs[0]), text_of(call.inputs[1]));
  return true;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  while (!from.empty()) {
    size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

ScalarResult define_replace(const Expr& expr, std::span<const ScalarArg> args) {
  return ScalarResult::of(
      Scalar::of_string(expr.type.elem, replaced(args[0].value.s, args[1].value.s, args[2].value.s)));
}

ScalarResult define_concat(const Expr& expr, std::span<const ScalarArg> args) {
  std::string out;
  for (const ScalarArg& a : args) out += a.value.s;
  return ScalarResult::of(Scalar::of_string(expr.type.elem, std::move(out)));
}

bool put(NativeCall& call, std::string_view text) {
  if (!place_output(call, {})) return false;
  *static_cast<StringRef*>(call.output->data) = store_string(call, text);
  return true;
}

bool run_replace(NativeCall& call) {
  return scalars(call) &&
         put(call, replaced(text_of(call.inputs[0]), text_of(call.inputs[1]), text_of(call.inputs[2])));
}

bool run_concat(NativeCall& call) {
  if (!scalars(call)) return false;
  std::string out;
  for (const TensorRef& part : call.inputs) out += part.rank == 0 ? text_of(part) : std::string_view();
  return put(call, out);
}

// ---- formatting ----------------------------------------------------------------------------------------------------

std::string shown(const Scalar& x) {
  if (x.elem == Elem::Bool) return x.i != 0 ? "true" : "false";
  if (is_string(x.elem)) return x.s;
  if (!is_float(x.elem)) return std::to_string(x.i);
  // The shortest decimal that reads back as the same number of its type.
  return x.elem == Elem::F64 ? fmt::format("{}", x.f) : fmt::format("{}", static_cast<float>(x.f));
}

ScalarResult define_to_str(const Expr&, std::span<const ScalarArg> args) {
  std::string text = shown(args[0].value);
  if (find_invalid_utf8(text)) return ScalarResult::fail(kBadText, "the bytes are not UTF-8");
  return ScalarResult::of(Scalar::of_string(Elem::Str, std::move(text)));
}

bool run_to_str(NativeCall& call) {
  if (!scalars(call)) return false;
  if (is_string(call.inputs[0].elem)) {
    std::string_view text = text_of(call.inputs[0]);
    return !find_invalid_utf8(text) && put(call, text);
  }
  return put(call, shown(to_value(call.inputs[0]).at(0)));
}

// ---- index_of ------------------------------------------------------------------------------------------------------

Value define_index_of(DefineCall& call) {
  const Value &items = call.arg(0), &item = call.arg(1);
  if (items.any_failed()) return forward(items);
  if (item.any_failed()) return forward(item);
  Scalar wanted = item.at(0);
  for (int64_t i = 0; i < items.size(); ++i) {
    Scalar x = items.at(i);
    bool equal = is_string(x.elem) ? x.s == wanted.s : is_float(x.elem) ? x.f == wanted.f : x.i == wanted.i;
    if (equal) return Value::scalar(Scalar::of_int(Elem::I64, i));
  }
  return Value::failed(
      call.failure(kNotFound, fmt::format("`{}` is not among the {} items", shown(wanted), items.size())));
}

template <class T>
int64_t find(const TensorRef& items, const TensorRef& item) {
  const T *begin = static_cast<const T*>(items.data), *end = begin + items.size();
  const T* at = std::find(begin, end, *static_cast<const T*>(item.data));
  return at == end ? -1 : at - begin;
}

bool run_index_of(NativeCall& call) {
  const TensorRef &items = call.inputs[0], &item = call.inputs[1];
  int64_t at = -1;
  switch (items.elem) {
    case Elem::Bool:
    case Elem::U8:
      at = find<uint8_t>(items, item);
      break;
    case Elem::I8:
      at = find<int8_t>(items, item);
      break;
    case Elem::U16:
      at = find<uint16_t>(items, item);
      break;
    case Elem::I16:
      at = find<int16_t>(items, item);
      break;
    case Elem::I32:
      at = find<int32_t>(items, item);
      break;
    case Elem::I64:
      at = find<int64_t>(items, item);
      break;
    case Elem::F32:
      at = find<float>(items, item);
      break;
    case Elem::F64:
      at = find<double>(items, item);
      break;
    case Elem::F16:
    case Elem::BF16:
      return false;
    case Elem::Str:
    case Elem::Bytes:
    case Elem::Path: {
      std::string_view wanted = text_of(item);
      for (int64_t i = 0, n = items.size(); i < n && at < 0; ++i)
        if (text_of(items, i) == wanted) at = i;
    }
  }
  if (at < 0 || !place_output(call, {})) return false;
  *static_cast<int64_t*>(call.output->data) = at;
  return true;
}

}  // namespace

ZEPHON_OP_DEF(Parent) = {
    .name = "parent",
    .cls = OpClass::Pointwise,
    .signature = "path: path[...s] -> path[...s]",
    .summary = "The folder of a path: what stands before its last slash.",
    .prose = "`.` where there is no slash; `/` for what lies in the root.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.parent.name",
    .define = {.scalar = define_part<parent_of>},
    .kernel = {.native = run_part<parent_of>},
};

ZEPHON_OP_DEF(Name) = {
    .name = "name",
    .cls = OpClass::Pointwise,
    .signature = "path: path[...s] -> str[...s]",
    .summary = "The last part of a path.",
    .prose = "Fails where it is not UTF-8.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.name",
    .effects = {.can_fail = true},
    .define = {.scalar = define_part<name_of>},
    .kernel = {.native = run_part<name_of>},
};

ZEPHON_OP_DEF(Stem) = {
    .name = "stem",
    .cls = OpClass::Pointwise,
    .signature = "path: path[...s] -> str[...s]",
    .summary = "The last part of a path without its extension.",
    .prose = "The extension begins at the last dot, unless the name begins with it. Fails where the name is not UTF-8.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.stem",
    .effects = {.can_fail = true},
    .define = {.scalar = define_part<stem_of>},
    .kernel = {.native = run_part<stem_of>},
};

ZEPHON_OP_DEF(Contains) = {
    .name = "contains",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], part: S[...s] -> bool[...s]",
    .summary = "True where `part` occurs in the text, by bytes.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.name.contains(\"1\")",
    .define = {.scalar = define_test<contains>},
    .kernel = {.native = run_test<contains>},
};

ZEPHON_OP_DEF(StartsWith) = {
    .name = "starts_with",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], part: S[...s] -> bool[...s]",
    .summary = "True where the text begins with `part`, by bytes.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.name.starts_with(\"n\")",
    .define = {.scalar = define_test<starts_with>},
    .kernel = {.native = run_test<starts_with>},
};

ZEPHON_OP_DEF(EndsWith) = {
    .name = "ends_with",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], part: S[...s] -> bool[...s]",
    .summary = "True where the text ends with `part`, by bytes.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.name.ends_with(\".jpg\")",
    .define = {.scalar = define_test<ends_with>},
    .kernel = {.native = run_test<ends_with>},
};

ZEPHON_OP_DEF(Replace) = {
    .name = "replace",
    .cls = OpClass::Pointwise,
    .signature = "text: S[...s], from: S[...s], to: S[...s] -> S[...s]",
    .summary =
        "The text with every `from` replaced by `to`, from left to right, by bytes; an empty `from` changes nothing.",
    .example = "files(\"examples/data/photos/*/*.jpg\") | take(2) | x = path.name.replace(\".jpg\", \".png\")",
    .cost = {.ns_per_call = 80},
    .define = {.scalar = define_replace},
    .kernel = {.native = run_replace},
};

ZEPHON_OP_DEF(Concat) = {
    .name = "concat",
    .cls = OpClass::Pointwise,
    .signature = "parts: S[...s]... -> S[...s]",
    .summary = "The parts one after another; what the holes of a string become.",
    .example = "range(2) | x = \"sample {index}\"",
    .cost = {.ns_per_call = 60},
    .define = {.scalar = define_concat},
    .kernel = {.native = run_concat},
};

ZEPHON_OP_DEF(ToStr) = {
    .name = "to_str",
    .cls = OpClass::Pointwise,
    .signature = "x: T[...s] -> str[...s]",
    .summary = "A value as text.",
    .prose = "Floats as the shortest decimal that reads back as the same number; bytes and paths must be UTF-8.",
    .example = "range(2) | x = (index / 2).to_str()",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 80},
    .define = {.scalar = define_to_str},
    .kernel = {.native = run_to_str},
};

ZEPHON_OP_DEF(IndexOf) = {
    .name = "index_of",
    .cls = OpClass::Opaque,
    .signature = "items: T[n], item: T -> i64",
    .summary = "The place of the first item that is equal.",
    .prose = "Fails where there is none.",
    .example = "range(2) | x = [1, 0].index_of(index)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 300, .ns_per_element = 0},
    .define = {.tensor = define_index_of},
    .kernel = {.native = run_index_of},
    .promotes = true,
};

}  // namespace zephon
