// Where comments and empty lines belong: each is given to the part of the tree that it stands at.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast.h"

namespace zephon {

struct Trivia {
  bool blank = false;                 // an empty line stands above
  std::vector<std::string> leading;   // comments on lines of their own, above
  std::vector<std::string> trailing;  // at the end of its last line
  std::vector<std::string> tail;      // inside, below its last part
};

// Parts are known by their addresses in the tree. Parts: the file (&file, &file.header), each declaration, pipeline
// (header: &pipeline.block), test (header: &test.literal), entry, sample, step (branches: &step.then, &step.otherwise;
// header: &step.name), source, parameter, field of a schema, argument, link of a chain, operand of a sign.
class TriviaMap {
 public:
  // `indented`: what belongs together is told by columns (YAML).
  TriviaMap(const ast::File& file, std::string_view text, bool indented);

  // What stands at `part`, without its tail; asked for once.
  Trivia take(const void* part);
  bool has(const void* part) const;
  const Trivia& peek(const void* part) const;
  bool blank(const void* part) const { return peek(part).blank; }
  bool take_blank(const void* part);
  std::vector<std::string> take_tail(const void* part);
  // Whether anything that was not taken stands at parts inside of `part`.
  bool has_inside(const void* part) const;
  // Comments that nobody took, at parts inside of `part`, in order.
  std::vector<std::string> take_inside(const void* part);

 private:
  struct Item {
    const void* key;
    uint32_t begin, end;
    bool block;  // prints comments below its last part
    int parent;
    std::vector<int> children;
    Trivia trivia;
  };
  friend class TriviaBuilder;
  void gather(int item, std::vector<std::string>& into);
  std::vector<Item> items_;
  std::map<const void*, int> by_key_;
};

// A chain `a.b.f(1)[0].g()`: what it begins with, and its links; each link ends with the node given.
std::vector<const ast::Expr*> chain_links(const ast::Expr& e);
const ast::Expr& chain_base(const ast::Expr& e);
// The operands of one sign, or of signs that bind alike: `a + b - c`. `nodes[i]` is the node above operands i and i
// + 1.
struct SignChain {
  std::vector<const ast::Expr*> operands, nodes;
};
SignChain sign_chain(const ast::Expr& e);
int precedence(const ast::Expr& e);

// Everything declared, in the order of the text.
struct Statement {
  enum class Kind : uint8_t { Import, Let, Function, Stream, Pipeline, Test, Bare };
  Kind kind;
  const void* node;
  uint32_t begin;
};
std::vector<Statement> statements_of(const ast::File& file);
std::vector<Statement> statements_of(const ast::Pipeline& pipeline);

}  // namespace zephon
