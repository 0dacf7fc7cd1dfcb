// ZPL text -> syntax tree. The only door to ANTLR.
#pragma once

#include <string_view>
#include <vector>

#include "frontend/ast.h"
#include "frontend/diag/diagnostic.h"

namespace zephon {

// A piece of ZPL text inside a file, and where its bytes stand there. In the YAML form the text of a quoted scalar
// differs from its source (escapes, folded lines): then `offsets` holds the place of every byte, and one more for the
// end.
struct TextPiece {
  FileId file;
  std::string_view text;
  uint32_t begin = 0;  // of the first byte, where `offsets` is empty
  std::vector<uint32_t> offsets;
  std::vector<ast::Comment>* comments = nullptr;  // where comments in the text go

  uint32_t place(size_t byte) const { return offsets.empty() ? begin + static_cast<uint32_t>(byte) : offsets[byte]; }
  // Bytes [from, to) of the text. The end is one past the last byte, wherever the next one stands.
  Span span(size_t from, size_t to) const;
  // Bytes [from, to) as a piece of their own, whose comments go nowhere.
  TextPiece part(size_t from, size_t to) const;
};

// A whole file. Several errors are reported per run. At most 16 MB.
Result<ast::File> parse_zpl(const SourceMap& sources, FileId file, Diagnostics& diags);

Result<ast::Expr> parse_expression(const TextPiece& piece, Diagnostics& diags);
Result<ast::Type> parse_type(const TextPiece& piece, Diagnostics& diags);
Result<ast::Step> parse_step(const TextPiece& piece, Diagnostics& diags);
// A source, or the name of a stream.
Result<ast::Expr> parse_source(const TextPiece& piece, Diagnostics& diags);
// The inside of a string: escapes and holes.
Result<ast::Expr> parse_string_body(const TextPiece& piece, Diagnostics& diags);

// Reports what no test can say: unknown entries, samples where a condition is needed ...
std::optional<Reported> check_test(const ast::Test& test, Diagnostics& diags);

// A value of a sample in a test: the fields of each record in it become values (ast::Type::Kind::Value), which are
// literals, constants, lists and records. Reports what is none.
std::optional<Reported> make_test_value(ast::Expr& value, Diagnostics& diags);

// Whether the text may stand as a name: letters, digits, `_`, and no word of the language.
bool is_name(std::string_view text);

// Size, NUL and UTF-8: what every text must pass before a parser sees it. A byte order mark is accepted; `body_begin`
// is the first byte after it.
Result<uint32_t> check_text(const SourceMap& sources, FileId file, Diagnostics& diags);

}  // namespace zephon
