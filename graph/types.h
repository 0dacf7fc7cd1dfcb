#pragma once
// Element types, symbolic shapes, and the type of a stream of samples.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zephon {

/// The element types of the language. `Str` is UTF-8, `Path` and `Bytes` are arbitrary bytes.
#define ZEPHON_ELEM_TYPES(X)                                                                              \
  X(Bool, "bool", 1) X(U8, "u8", 1) X(U16, "u16", 2) X(I8, "i8", 1) X(I16, "i16", 2) X(I32, "i32", 4)     \
  X(I64, "i64", 8) X(F16, "f16", 2) X(BF16, "bf16", 2) X(F32, "f32", 4) X(F64, "f64", 8)                  \
  X(Str, "str", 16) X(Bytes, "bytes", 16) X(Path, "path", 16)

enum class Elem : uint8_t {
#define ZEPHON_X(id, name, size) id,
  ZEPHON_ELEM_TYPES(ZEPHON_X)
#undef ZEPHON_X
};

/// Name as written in programs ("f32"), bytes per element in memory (16 for string kinds: a StringRef).
std::string_view elem_name(Elem elem);
size_t elem_size(Elem elem);
std::optional<Elem> elem_from_name(std::string_view name);
constexpr bool is_string(Elem e) { return e >= Elem::Str; }
constexpr bool is_float(Elem e) { return e >= Elem::F16 && e <= Elem::F64; }
constexpr bool is_integer(Elem e) { return e >= Elem::U8 && e <= Elem::I64; }
constexpr bool is_numeric(Elem e) { return is_integer(e) || is_float(e); }

/// One dimension: an exact extent, or a symbol, or unknown (no extent, empty symbol).
struct Dim {
  int64_t extent = -1;
  std::string symbol;
  static Dim of(int64_t extent) { return {extent, {}}; }
  static Dim named(std::string symbol) { return {-1, std::move(symbol)}; }
  static Dim unknown() { return {}; }
  bool is_static() const { return extent >= 0; }
  bool operator==(const Dim&) const = default;
};

inline constexpr int kMaxRank = 8;

/// The type of one value: element type and shape (rank 0 is a scalar). A box is an i64[4] tensor
/// (top, left, height, width) that also knows the dimensions of what it cuts out.
struct Type {
  Elem elem = Elem::F32;
  std::vector<Dim> shape;
  std::vector<Dim> box;  ///< empty, or {height, width}: this i64[4] is a box
  bool poison = false;   ///< an error was reported where this came from; report nothing more

  static Type scalar(Elem elem) { return {elem, {}, {}, false}; }
  static Type tensor(Elem elem, std::vector<Dim> shape) { return {elem, std::move(shape), {}, false}; }
  static Type poisoned() { return {Elem::F32, {}, {}, true}; }
  size_t rank() const { return shape.size(); }
  bool is_scalar() const { return shape.empty(); }
  bool has_static_shape() const {
    for (const Dim& d : shape)
      if (!d.is_static()) return false;
    return true;
  }
  /// Number of elements; only where has_static_shape().
  int64_t element_count() const {
    int64_t n = 1;
    for (const Dim& d : shape) n *= d.extent;
    return n;
  }
  bool operator==(const Type&) const = default;
};

/// "f32[3, h, 224]", "str", "box[224, 224]"; an unknown dimension prints as `?`.
std::string to_string(const Type& type);
std::string to_string(const Dim& dim);

/// A dimension that differs from sample to sample: that of a declared list. Prints as `?`.
inline Dim varying_dim() { return Dim::named("?"); }
inline bool is_varying(const Dim& dim) { return dim.symbol == "?"; }

/// Companion fields: see graph/leaf_path.h.
inline bool is_companion(std::string_view name) { return name.ends_with('?') || name.find('#') != name.npos; }
inline std::string missing_field(std::string_view name) { return std::string(name) + "?"; }
inline std::string lengths_field(std::string_view name, size_t level) {
  return std::string(name) + "#" + std::to_string(level);
}

struct Field {
  std::string name;
  Type type;  ///< of one member, also after batch
  bool operator==(const Field&) const = default;
};

/// The fields of a stream, in order. Copies share all blocks but those that differ: a program of n steps holds n lists,
/// each hardly different from the one before.
class FieldList {
 public:
  static constexpr size_t kBlock = 16;  ///< fields that are shared as one

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Field;
    using difference_type = std::ptrdiff_t;
    using pointer = const Field*;
    using reference = const Field&;
    const_iterator() = default;
    const_iterator(const FieldList* list, size_t at) : list_(list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &(*list_)[at_]; }
    const_iterator& operator++() {
      ++at_;
      return *this;
    }
    const_iterator operator++(int) { return {list_, at_++}; }
    bool operator==(const const_iterator&) const = default;

   private:
    const FieldList* list_ = nullptr;
    size_t at_ = 0;
  };

  FieldList() = default;
  FieldList(std::vector<Field> fields) {
    for (Field& field : fields) push_back(std::move(field));
  }
  FieldList(std::initializer_list<Field> fields) {
    for (const Field& field : fields) push_back(field);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Field& operator[](size_t i) const { return blocks_[i / kBlock]->fields[i % kBlock]; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }
  std::vector<Field> to_vector() const { return {begin(), end()}; }
  /// The place of the field of that name.
  std::optional<size_t> index(std::string_view name) const;
  const Field* find(std::string_view name) const {
    const std::optional<size_t> at = index(name);
    return at ? &(*this)[*at] : nullptr;
  }
  /// The same, for who knows where it probably stands.
  const Field* find(std::string_view name, size_t near) const {
    return near < size_ && (*this)[near].name == name ? &(*this)[near] : find(name);
  }
  bool has_companions() const;
  /// Whether field i stands in a block that the other list has at the same place; then all fields of the block do.
  bool shares_block(const FieldList& other, size_t i) const {
    return i / kBlock < other.blocks_.size() && blocks_[i / kBlock] == other.blocks_[i / kBlock];
  }

  /// All blocks are the other's.
  bool shares(const FieldList& other) const { return blocks_ == other.blocks_; }

  void push_back(Field field);
  void set_type(size_t i, Type type);
  void clear() { *this = FieldList(); }
  template <class Predicate>
  void erase_if(Predicate&& gone);

  friend bool operator==(const FieldList& a, const FieldList& b);

 private:
  struct Block {
    std::vector<Field> fields;
    bool companions = false;
  };
  Block& own(size_t block);

  std::vector<std::shared_ptr<Block>> blocks_;  // all full, except the last one
  size_t size_ = 0;
};

template <class Predicate>
void FieldList::erase_if(Predicate&& gone) {
  FieldList kept;
  for (const std::shared_ptr<Block>& block : blocks_) {
    std::vector<const Field*> rest;
    for (const Field& field : block->fields)
      if (!gone(field)) rest.push_back(&field);
    if (rest.size() == block->fields.size() && kept.size_ % kBlock == 0) {
      kept.blocks_.push_back(block);
      kept.size_ += rest.size();
    } else {
      for (const Field* field : rest) kept.push_back(*field);
    }
  }
  *this = std::move(kept);
}

/// What is known of the order and number of a stream's samples.
enum class Domain : uint8_t {
  Indexed,  ///< sample i exists for every i < size, and can be asked for by i
  Holes,    ///< as Indexed, but filters have left holes: i may turn out to be dropped
  Data,     ///< number and order depend on the data: only sequential
};

struct BatchShape {
  int64_t size = 0;
  bool drop_remainder = false;
  bool operator==(const BatchShape&) const = default;
};

struct StreamType {
  FieldList fields;                 ///< in order of first assignment
  std::optional<BatchShape> batch;  ///< set after `batch`
  Domain domain = Domain::Indexed;
  bool endless = false;             ///< below a repeat() without count, and not cut by a take
  const Field* find(std::string_view name) const { return fields.find(name); }
  bool operator==(const StreamType&) const = default;
};
std::string to_string(const StreamType& type);
/// The type of a field as declared: its own together with what its companions say ("str?", "list<i64[?]>"), of one member.
std::string field_type_text(const StreamType& type, const Field& field);
/// The same from its parts: missing_rank -1 none, 0 the whole value, 1 its elements; `levels`: lists around the first dimension.
std::string declared_text(Type type, int missing_rank, size_t levels);
/// The fields that `name` stands for, companions too: itself, or all leaves of the record. Empty where there is none.
std::vector<std::string> fields_of(const StreamType& type, std::string_view name);

}  // namespace zephon
