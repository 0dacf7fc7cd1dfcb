// table table_column key_position lookup find: side tables, constants of the data set.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/content_file.h"
#include "ops/csv_row.h"
#include "ops/file_io.h"
#include "ops/tensor_op.h"

namespace zephon {
namespace {

// ---- reading

struct Row {
  std::vector<std::string> fields;
  int64_t line = 0;  // of the file, from 1
};

// All rows of the file, the header first; false with `error`.
bool read_rows(const std::string& path, std::vector<Row>& rows, std::string& code, std::string& error) {
  ContentReader content;
  if (const int number = content.open(path)) {
    const Failure failure = cannot_read(path, number, {});
    code = failure.code;
    error = failure.message;
    return false;
  }
  std::string row;
  CsvState state = CsvState::FieldBegin;
  int64_t line = 1, begin = 1;
  auto finish = [&] {
    if (state != CsvState::Quoted && row.ends_with('\r')) row.pop_back();
    auto fields = split_row(row, error);
    if (!fields) {
      code = "R0403";
      error = fmt::format("`{}`, line {}: {}", shown_file(path), begin, error);
      return false;
    }
    rows.push_back({*std::move(fields), begin});
    row.clear();
    state = CsvState::FieldBegin;
    return true;
  };
  bool mark = true;
  for (std::string_view piece; !(piece = content.peek()).empty(); content.skip(piece.size())) {
    size_t at = 0;
    if (mark && piece.starts_with("\xef\xbb\xbf")) at = 3;
    mark = false;
    for (; at < piece.size(); ++at) {
      const char c = piece[at];
      line += c == '\n';
      if (c == '\n' && state != CsvState::Quoted) {
        if (!finish()) return false;
        begin = line;
        continue;
      }
      row.push_back(c);
      state = next_state(state, c);
    }
  }
  if (!content.error().empty()) {
    code = "R0406";
    error = fmt::format("`{}` {}", shown_file(path), content.error());
    return false;
  }
  return row.empty() || finish();
}

Value define_column(DefineCall& call) {
  const Attrs& attrs = call.expr().attrs;
  const std::string path = resolve_path(call.base_dir(), attrs.text("path"));
  const std::vector<Field>& columns = attrs.get<Schema>("schema").columns;
  auto fail = [&](const char* code, std::string message) {
    return Value::failed(call.failure(code, std::move(message)));
  };
  std::vector<Row> rows;
  std::string code, error;
  if (!read_rows(path, rows, code, error)) return fail(code.c_str(), error);
  if (rows.empty())
    return fail("R0402",
                fmt::format("`{}` is empty, and should begin with the names of its columns", shown_file(path)));
  // Columns of the file that the schema leaves out are not looked at; their order is the file's.
  const Row& header = rows[0];
  auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(header.fields.begin(), header.fields.end(), name) - header.fields.begin());
  };
  for (const Field& column : columns)
    if (place(column.name) == header.fields.size())
      return fail("R0402", fmt::format("`{}` has no column `{}`{}", shown_file(path), column.name, [&] {
                    std::string near = did_you_mean(column.name, header.fields);
                    return near.empty() ? near : ": " + near;
                  }()));
  auto type_of = [&](const std::string& name) {
    return std::find_if(columns.begin(), columns.end(), [&](const Field& f) { return f.name == name; })->type.elem;
  };
  auto read = [&](const Row& row, const std::string& name) -> std::optional<Scalar> {
    auto scalar = parse_element(type_of(name), row.fields[place(name)], error);
    if (!scalar) error = fmt::format("`{}`, line {}: column `{}` {}", shown_file(path), row.line, name, error);
    return scalar;
  };
  const std::string &key = attrs.text("key"), &wanted = attrs.text("column");
  struct Entry {
    Scalar key;
    size_t row;
  };
  std::vector<Entry> entries;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].fields.size() != header.fields.size())
      return fail("R0403", fmt::format("`{}`, line {}: {} fields, and the header has {}", shown_file(path),
                                       rows[i].line, rows[i].fields.size(), header.fields.size()));
    auto scalar = read(rows[i], key);
    if (!scalar) return fail("R0404", error);
    entries.push_back({*std::move(scalar), i});
  }
  std::ranges::stable_sort(
      entries, [](const Entry& a, const Entry& b) { return std::tie(a.key.s, a.key.i) < std::tie(b.key.s, b.key.i); });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].key.s == entries[i - 1].key.s && entries[i].key.i == entries[i - 1].key.i)
      return fail("R0407", fmt::format("`{}` has the key `{}` in line {} and again in line {}", shown_file(path),
                                       shown_path(rows[entries[i].row].fields[place(key)]),
                                       rows[entries[i - 1].row].line, rows[entries[i].row].line));
  Value out(type_of(wanted), {static_cast<int64_t>(entries.size())});
  for (size_t i = 0; i < entries.size(); ++i) {
    auto scalar = read(rows[entries[i].row], wanted);
    if (!scalar) return fail("R0404", error);
    out.set(static_cast<int64_t>(i), *scalar);
  }
  return out;
}

void infer_column(InferCall& call) {
  const std::vector<Field>& columns = call.attrs.get<Schema>("schema").columns;
  bool key = false;
  for (const Field& column : columns) {
    if (!column.type.is_scalar() || column.name.find_first_of(".?[") != std::string::npos)
      call.error = fmt::format("column `{}` of a table must be a scalar that is never missing; a `str` may be empty",
                               column.name.substr(0, column.name.find_first_of(".?[")));
    if (column.name == call.attrs.text("column")) call.result = Type::tensor(column.type.elem, {Dim::unknown()});
    if (column.name != call.attrs.text("key")) continue;
    key = true;
    if (!is_string(column.type.elem) && !is_integer(column.type.elem))
      call.error = fmt::format("the key of a table is a string or an integer, not `{}`", to_string(column.type));
  }
  if (!key && call.error.empty()) {
    std::vector<std::string> names;
    for (const Field& column : columns) names.push_back(column.name);
    const std::string near = did_you_mean(call.attrs.text("key"), names);
    call.error = fmt::format("the schema declares no column `{}`, which is the key{}", call.attrs.text("key"),
                             near.empty() ? "" : ": " + near);
  }
}

// ---- finding

// Keys are sorted: by bytes, or by value.
template <class Less>
int64_t position(int64_t count, Less&& less_than_key) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (less_than_key(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Value define_position(DefineCall& call) {
  const Value &keys = call.arg(0), &key = call.arg(1);
  if (keys.any_failed()) return forward(keys);
  if (key.any_failed()) return forward(key);
  const Scalar wanted = key.at(0);
  const bool text = is_string(keys.elem());
  const int64_t at = position(keys.size(), [&](int64_t i) {
    return text ? keys.string_items()[static_cast<size_t>(i)] < wanted.s : keys.at(i).i < wanted.i;
  });
  if (at < keys.size() && (text ? keys.string_items()[static_cast<size_t>(at)] == wanted.s : keys.at(at).i == wanted.i))
    return Value::scalar(Scalar::of_int(Elem::I64, at));
  const Attrs& attrs = call.expr().attrs;
  if (!attrs.flag("strict")) return Value::scalar(Scalar::of_int(Elem::I64, -1));
  std::string near;
  if (text && keys.size() <= 10000) near = did_you_mean(wanted.s, keys.string_items());
  return Value::failed(
      call.failure(kNotFound, fmt::format("`{}` is none of the {} keys of the table `{}`{}",
                                          text ? shown_path(wanted.s) : std::to_string(wanted.i), keys.size(),
                                          attrs.text("table"), near.empty() ? "" : ": " + near)));
}

template <class T>
int64_t find_number(const TensorRef& keys, T wanted) {
  const T* items = static_cast<const T*>(keys.data);
  const int64_t at = position(keys.size(), [&](int64_t i) { return items[i] < wanted; });
  return at < keys.size() && items[at] == wanted ? at : -1;
}

int64_t find_key(const TensorRef& keys, const TensorRef& key) {
  auto number = [&](auto zero) { return find_number(keys, *static_cast<const decltype(zero)*>(key.data)); };
  switch (keys.elem) {
    case Elem::U8:
      return number(uint8_t{});
    case Elem::I8:
      return number(int8_t{});
    case Elem::U16:
      return number(uint16_t{});
    case Elem::I16:
      return number(int16_t{});
    case Elem::I32:
      return number(int32_t{});
    case Elem::I64:
      return number(int64_t{});
    default:
      break;
  }
  const std::string_view wanted = text_of(key);
  const int64_t at = position(keys.size(), [&](int64_t i) { return text_of(keys, i) < wanted; });
  return at < keys.size() && text_of(keys, at) == wanted ? at : -1;
}

bool run_position(NativeCall& call) {
  if (!is_string(call.inputs[0].elem) && !is_integer(call.inputs[0].elem)) return false;
  const int64_t at = find_key(call.inputs[0], call.inputs[1]);
  if ((at < 0 && call.expr->attrs.flag("strict")) || !place_output(call, {})) return false;
  *static_cast<int64_t*>(call.output->data) = at;
  return true;
}

}  // namespace

ZEPHON_OP_DEF(TableColumn) = {
    .name = "table_column",
    .cls = OpClass::Leaf,
    .signature = "path: string, schema: schema, key: column, column: column -> T[?]",
    .summary = "One column of a table, its rows sorted by the column `key`: a constant of the data set.",
    .prose = "What `table` gives for each column. Every row is checked when the run begins.",
    .example =
        "range(2) | n = len(table(\"examples/data/wine_classes.csv\", schema={class: i64, cultivar: str}, "
        "key=class).cultivar)",
    .effects = {.can_fail = true, .reads_files = true},
    .define = {.tensor = define_column},
    .infer = infer_column,
};

ZEPHON_OP_DEF(Table) = {
    .name = "table",
    .cls = OpClass::Composite,
    .signature = "path: string, schema: schema, key: column -> T",
    .summary = "A side table, such as labels.csv: a constant of the data set, for `lookup` and `get`.",
    .prose =
        "The file is a table as `csv` reads it, with a header; columns that the schema leaves out are not looked at. "
        "It is read once, whole, when the run begins; where a row is broken or a key stands twice (the message names both "
        "lines), every sample that looks something up fails. Its content is part of the fingerprint that states carry. `labels.id` is the column "
        "`id`, in order of the keys.",
    .example =
        "let wines = table(\"examples/data/wine_classes.csv\", schema={class: i64, cultivar: str}, key=class)\n"
        "range(3) | cultivar = wines.lookup(index).cultivar",
    .implicit_column = "table_column",
    .effects = {.reads_files = true},
    .gives_record = true,
};

ZEPHON_OP_DEF(Lookup) = {
    .name = "lookup",
    .cls = OpClass::Composite,
    .signature = "table: T, key: S -> T",
    .summary = "The row of a table that has this key, as a record: `labels.lookup(x).id`.",
    .prose = "A key that is not there fails the sample; the message names the key, the table and near keys. See `get`.",
    .example =
        "let wines = table(\"examples/data/wine_classes.csv\", schema={class: i64, cultivar: str}, key=class)\n"
        "range(3) | cultivar = lookup(wines, index).cultivar",
    .expansion = "member[keys.key_position(key, table)]",
    .gives_record = true,
};

ZEPHON_OP_DEF(Get) = {
    .name = "get",
    .cls = OpClass::Composite,
    .signature = "table: T, key: S -> T",
    .summary = "As `lookup`, and the fields are missing where the key is not there: `default(labels.get(x).id, -1)`.",
    .prose = "The fields are optional: only `default` and `is_missing` take them.",
    .example =
        "let wines = table(\"examples/data/wine_classes.csv\", schema={class: i64, cultivar: str}, key=class)\n"
        "range(5) | cultivar = default(wines.get(index).cultivar, \"none\")",
    .expansion = "member[keys.key_position(key, table, false)]",
    .expansion_whole = "keys.key_position(key, table, false) < 0",
    .gives_record = true,
};

ZEPHON_OP_DEF(KeyPosition) = {
    .name = "key_position",
    .cls = OpClass::Opaque,
    .signature = "keys: T[n], key: T, table: string = \"\", strict: bool = true -> i64",
    .summary = "The position of `key` in rising `keys`, strings by their bytes.",
    .prose = "What `lookup` finds rows by. Fails where the key is not there; with `strict=false` it is -1 then.",
    .example = "range(3) | at = [10, 20, 30].key_position(index * 10 + 10)",
    .effects = {.can_fail = true},
    .cost = {.ns_per_call = 60, .ns_per_element = 0},
    .define = {.tensor = define_position},
    .kernel = {.native = run_position},
};

}  // namespace zephon
