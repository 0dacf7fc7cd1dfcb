#include "graph/types.h"

#include <array>

namespace zephon {
namespace {

struct ElemInfo {
  std::string_view name;
  size_t size;
};
constexpr std::array kElems = {
#define ZEPHON_X(id, name, size) ElemInfo{name, size},
    ZEPHON_ELEM_TYPES(ZEPHON_X)
#undef ZEPHON_X
};

}  // namespace

std::string_view elem_name(Elem elem) { return kElems[static_cast<size_t>(elem)].name; }
size_t elem_size(Elem elem) { return kElems[static_cast<size_t>(elem)].size; }

std::optional<Elem> elem_from_name(std::string_view name) {
  for (size_t i = 0; i < kElems.size(); ++i)
    if (kElems[i].name == name) return static_cast<Elem>(i);
  return std::nullopt;
}

std::string to_string(const Dim& dim) {
  if (dim.is_static()) return std::to_string(dim.extent);
  return dim.symbol.empty() ? "?" : dim.symbol;
}

namespace {
std::string dims_text(const std::vector<Dim>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + to_string(dims[i]);
  return text + "]";
}
}  // namespace

std::string to_string(const Type& type) {
  if (type.poison) return "?";
  if (!type.box.empty()) return "box" + dims_text(type.box);
  std::string text(elem_name(type.elem));
  if (!type.shape.empty()) text += dims_text(type.shape);
  return text;
}

std::string to_string(const StreamType& type) {
  std::string text = "{";
  for (size_t i = 0; i < type.fields.size(); ++i) {
    Type shown = type.fields[i].type;
    std::string name = type.fields[i].name;
    if (type.batch) {
      Dim size = type.batch->drop_remainder ? Dim::of(type.batch->size) : Dim::named("<=" + std::to_string(type.batch->size));
      if (!shown.box.empty()) shown = Type::tensor(shown.elem, shown.shape);
      shown.shape.insert(shown.shape.begin(), size);
    }
    text += (i ? ", " : "") + name + ": " + to_string(shown);
  }
  return text + "}";
}

}  // namespace zephon
