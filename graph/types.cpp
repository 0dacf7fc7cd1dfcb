#include "graph/types.h"

#include <algorithm>
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

std::string declared_text(Type shown, int missing_rank, size_t levels) {
  std::string text;
  if (missing_rank > 0 && !shown.shape.empty()) {  // elements may be missing
    text = to_string(Type::scalar(shown.elem)) + "?" + dims_text(shown.shape);
  } else {
    text = to_string(shown);
  }
  for (size_t i = 0; i < levels; ++i) text = "list<" + text + ">";
  return missing_rank == 0 ? text + "?" : text;
}

namespace {
size_t levels_of(const StreamType& type, const Field& field) {
  size_t levels = 0;
  while (type.find(lengths_field(field.name, levels + 1))) ++levels;
  return levels;
}
int missing_rank_of(const StreamType& type, const Field& field) {
  const Field* missing = type.find(missing_field(field.name));
  return missing ? static_cast<int>(missing->type.rank()) : -1;
}
}  // namespace

std::string field_type_text(const StreamType& type, const Field& field) {
  if (!type.fields.has_companions()) return to_string(field.type);
  return declared_text(field.type, missing_rank_of(type, field), levels_of(type, field));
}

std::optional<size_t> FieldList::index(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  // What was assigned last is asked for most; names that people number differ in their last letter.
  for (size_t b = blocks_.size(); b-- > 0;) {
    const std::vector<Field>& fields = blocks_[b]->fields;
    for (size_t i = fields.size(); i-- > 0;) {
      const std::string& known = fields[i].name;
      if (known.size() == name.size() && known.back() == name.back() && known == name) return b * kBlock + i;
    }
  }
  return std::nullopt;
}

bool FieldList::has_companions() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& block) { return block->companions; });
}

FieldList::Block& FieldList::own(size_t block) {
  std::shared_ptr<Block>& owned = blocks_[block];
  if (owned.use_count() > 1) {
    auto copy = std::make_shared<Block>();
    copy->fields.reserve(kBlock);
    copy->fields = owned->fields;
    copy->companions = owned->companions;
    owned = std::move(copy);
  }
  return *owned;
}

void FieldList::push_back(Field field) {
  if (size_ % kBlock == 0) blocks_.push_back(std::make_shared<Block>());
  Block& last = own(size_ / kBlock);
  last.companions = last.companions || is_companion(field.name);
  last.fields.push_back(std::move(field));
  ++size_;
}

void FieldList::set_type(size_t i, Type type) { own(i / kBlock).fields[i % kBlock].type = std::move(type); }

bool operator==(const FieldList& a, const FieldList& b) {
  return a.size_ == b.size_ &&
         std::equal(a.blocks_.begin(), a.blocks_.end(), b.blocks_.begin(),
                    [](const auto& x, const auto& y) { return x == y || x->fields == y->fields; });
}

std::vector<std::string> fields_of(const StreamType& type, std::string_view name) {
  std::vector<std::string> found;
  for (const Field& field : type.fields) {
    if (field.name.size() < name.size() || (!name.empty() && field.name[name.size() - 1] != name.back()) ||
        !field.name.starts_with(name))
      continue;
    const std::string_view rest = std::string_view(field.name).substr(name.size());
    if (rest.empty() || rest[0] == '.' || rest[0] == '?' || rest[0] == '#') found.push_back(field.name);
  }
  return found;
}

std::string to_string(const StreamType& type) {
  std::string text = "{";
  const bool companions = type.fields.has_companions();
  for (const Field& field : type.fields) {
    if (companions && is_companion(field.name)) continue;
    Type shown = field.type;
    if (type.batch) {
      Dim size =
          type.batch->drop_remainder ? Dim::of(type.batch->size) : Dim::named("<=" + std::to_string(type.batch->size));
      if (!shown.box.empty()) shown = Type::tensor(shown.elem, shown.shape);
      shown.shape.insert(shown.shape.begin(), size);
    }
    text +=
        (text.size() > 1 ? ", " : "") + field.name + ": " +
        (companions ? declared_text(shown, missing_rank_of(type, field), levels_of(type, field)) : to_string(shown));
  }
  return text + "}";
}

}  // namespace zephon
