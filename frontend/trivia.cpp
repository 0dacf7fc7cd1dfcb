// A tree of parts with places, then every comment to the part that it stands at.
#include "frontend/trivia.h"

#include <algorithm>
#include <set>
#include <utility>

namespace zephon {

using ast::Expr;

int precedence(const Expr& e) {
  if (e.kind == Expr::Kind::Unary) return e.text == "not" ? 3 : 7;
  if (e.kind != Expr::Kind::Binary) return 9;
  if (e.text == "or") return 1;
  if (e.text == "and") return 2;
  if (e.text == "+" || e.text == "-") return 5;
  if (e.text == "*" || e.text == "/" || e.text == "//" || e.text == "%") return 6;
  return 4;
}

namespace {
bool is_suffix(const Expr& e) {
  return e.kind == Expr::Kind::Member || e.kind == Expr::Kind::Index || (e.kind == Expr::Kind::Call && e.method);
}
bool is_call(const Expr& e) { return e.kind == Expr::Kind::Call && e.method; }
// The node that `e` is a suffix of, where that is part of the same chain.
const Expr* inner_of(const Expr& e) {
  const Expr& inner = e.operands[0];
  return inner.group || precedence(inner) < 9 ? nullptr : &inner;
}
}  // namespace

std::vector<const Expr*> chain_links(const Expr& e) {
  // From the outside: a link ends where the next call begins.
  std::vector<const Expr*> links;
  const Expr* end = &e;
  for (const Expr* at = &e; at != nullptr && is_suffix(*at); at = inner_of(*at)) {
    if (!is_call(*at)) continue;
    links.push_back(end);
    end = &at->operands[0];
  }
  std::reverse(links.begin(), links.end());
  return links;
}

const Expr& chain_base(const Expr& e) {
  const Expr* base = &e;
  for (const Expr* at = &e; at != nullptr && is_suffix(*at); at = inner_of(*at))
    if (is_call(*at)) base = &at->operands[0];
  return *base;
}

SignChain sign_chain(const Expr& e) {
  SignChain chain;
  const Expr* at = &e;
  int level = precedence(e);
  while (true) {
    chain.nodes.push_back(at);
    chain.operands.push_back(&at->operands[1]);
    const Expr& left = at->operands[0];
    if (left.group || left.kind != Expr::Kind::Binary || precedence(left) != level || level == 4) {
      chain.operands.push_back(&left);
      break;
    }
    at = &left;
  }
  std::reverse(chain.nodes.begin(), chain.nodes.end());
  std::reverse(chain.operands.begin(), chain.operands.end());
  return chain;
}

namespace {
void add(std::vector<Statement>& out, const ast::Declarations& d) {
  using Kind = Statement::Kind;
  for (const ast::Import& x : d.imports) out.push_back({Kind::Import, &x, x.span.begin});
  for (const ast::Let& x : d.lets) out.push_back({Kind::Let, &x, x.span.begin});
  for (const ast::Function& x : d.functions) out.push_back({Kind::Function, &x, x.span.begin});
  for (const ast::Stream& x : d.streams) out.push_back({Kind::Stream, &x, x.span.begin});
}
void sort(std::vector<Statement>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Statement& a, const Statement& b) { return a.begin < b.begin; });
}
bool is_bare(const ast::Pipeline& p) { return p.name.text.empty() && p.parameters.empty() && !p.contract; }
}  // namespace

std::vector<Statement> statements_of(const ast::File& file) {
  std::vector<Statement> all;
  add(all, file.declarations);
  for (const ast::Pipeline& p : file.pipelines) {
    if (is_bare(p)) add(all, p.declarations);
    all.push_back({is_bare(p) ? Statement::Kind::Bare : Statement::Kind::Pipeline, &p,
                   is_bare(p) ? p.pipe.span.begin : p.span.begin});
  }
  for (const ast::Test& t : file.tests) all.push_back({Statement::Kind::Test, &t, t.span.begin});
  sort(all);
  // A bare pipeline stands below every declaration; only tests may follow.
  auto bare = std::find_if(all.begin(), all.end(), [](const Statement& s) { return s.kind == Statement::Kind::Bare; });
  if (bare != all.end()) {
    auto late =
        std::stable_partition(bare + 1, all.end(), [](const Statement& s) { return s.kind != Statement::Kind::Test; });
    std::rotate(bare, bare + 1, late);
  }
  return all;
}

std::vector<Statement> statements_of(const ast::Pipeline& pipeline) {
  std::vector<Statement> all;
  add(all, pipeline.declarations);
  sort(all);
  return all;
}

class TriviaBuilder {
 public:
  TriviaBuilder(TriviaMap& map, const ast::File& file, std::string_view text, bool indented)
      : map_(map), file_(file), text_(text), indented_(indented) {}

  void build() {
    open(&file_, 0, static_cast<uint32_t>(text_.size()) + 1, true);
    if (file_.header.valid()) leaf(&file_.header, file_.header);
    for (const Statement& s : statements_of(file_)) statement(s);
    close();
    for (TriviaMap::Item& item : map_.items_)
      std::stable_sort(item.children.begin(), item.children.end(),
                       [&](int a, int b) { return at(a).begin < at(b).begin; });
    for (const ast::Comment& comment : file_.comments) attach(comment);
    for (TriviaMap::Item& item : map_.items_) item.trivia.blank = blank_above(item);
  }

 private:
  TriviaMap::Item& at(int i) { return map_.items_[static_cast<size_t>(i)]; }

  void open(const void* key, uint32_t begin, uint32_t end, bool block) {
    int id = static_cast<int>(map_.items_.size()), parent = stack_.empty() ? -1 : stack_.back();
    if (indented_ && parent >= 0) end = without_comments(begin, end);
    map_.items_.push_back({key, begin, std::max(begin, end), block, parent, {}, {}});
    map_.by_key_[key] = id;
    if (parent >= 0) at(parent).children.push_back(id);
    stack_.push_back(id);
  }
  void close() { stack_.pop_back(); }
  // Where the last word before `end` ends: a literal of YAML, and what ends with one, spans the comments behind its
  // text.
  uint32_t without_comments(uint32_t begin, uint32_t end) const {
    const std::vector<ast::Comment>& all = file_.comments;
    auto after = std::lower_bound(all.begin(), all.end(), end,
                                  [](const ast::Comment& c, uint32_t limit) { return c.span.begin < limit; });
    auto trim = [&](uint32_t from) {
      while (end > from && std::string_view(" \t\r\n").find(text_[end - 1]) != std::string_view::npos) --end;
      return end;
    };
    while (after != all.begin() && (--after)->span.begin >= begin) {
      if (trim(std::min(after->span.end, end)) > after->span.end) break;
      end = after->span.begin;
    }
    return trim(begin);
  }
  void leaf(const void* key, const Span& span) {
    open(key, span.begin, span.end, false);
    close();
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::Import:
        return leaf(s.node, static_cast<const ast::Import*>(s.node)->span);
      case Statement::Kind::Let: {
        const auto& let = *static_cast<const ast::Let*>(s.node);
        open(&let, let.span.begin, let.span.end, false);
        expr(let.value);
        return close();
      }
      case Statement::Kind::Function: {
        const auto& f = *static_cast<const ast::Function*>(s.node);
        open(&f, f.span.begin, f.span.end, false);
        parameters(f.parameters);
        expr(f.body);
        return close();
      }
      case Statement::Kind::Stream: {
        const auto& stream = *static_cast<const ast::Stream*>(s.node);
        open(&stream, stream.span.begin, stream.span.end, true);
        if (stream.contract) type(*stream.contract);
        pipe(stream.pipe);
        return close();
      }
      case Statement::Kind::Pipeline: {
        const auto& p = *static_cast<const ast::Pipeline*>(s.node);
        on_lines_.insert(&p);
        open(&p, p.span.begin, p.span.end, true);
        bool braces = text_.substr(std::min<size_t>(p.block.begin, text_.size())).starts_with("{") && !indented_;
        open(&p.block, p.span.begin, braces ? p.block.begin + 1 : p.name.span.end, false);
        if (braces) parameters(p.parameters), contract(p);
        close();
        if (!braces) parameters(p.parameters), contract(p);
        for (const Statement& inner : statements_of(p)) statement(inner);
        pipe(p.pipe);
        return close();
      }
      case Statement::Kind::Test: {
        const auto& t = *static_cast<const ast::Test*>(s.node);
        on_lines_.insert(&t);
        open(&t, t.span.begin, t.span.end, true);
        open(&t.literal, t.span.begin, indented_ ? t.name_span.end : t.block.begin + 1, false);
        close();
        for (const ast::TestEntry& entry : t.entries) {
          open(&entry, entry.span.begin, entry.span.end, entry.list);
          for (const ast::TestSample& sample : entry.samples) {
            samples_.insert(&sample);
            open(&sample, sample.span.begin, sample.span.end, true);
            for (const ast::TestField& field : sample.fields) {
              open(&field, field.name.span.begin, field.value.span.end, false);
              expr(field.value);
              close();
            }
            close();
          }
          if (entry.values) expr(*entry.values);
          if (entry.expr) expr(*entry.expr);
          close();
        }
        return close();
      }
      case Statement::Kind::Bare:
        return pipe(static_cast<const ast::Pipeline*>(s.node)->pipe);
    }
  }
  void contract(const ast::Pipeline& p) {
    if (p.contract) type(*p.contract);
  }

  void parameters(const std::vector<ast::Parameter>& list) {
    for (const ast::Parameter& p : list) {
      uint32_t end = p.default_value ? p.default_value->span.end : p.type ? p.type->span.end : p.name.span.end;
      open(&p, p.name.span.begin, end, false);
      if (p.type) type(*p.type);
      if (p.default_value) expr(*p.default_value);
      close();
    }
  }

  void type(const ast::Type& t) {
    if (t.kind == ast::Type::Kind::Value) return parts(t.dims[0]);
    schema(t.fields);
  }
  void schema(const std::vector<ast::SchemaField>& fields) {
    for (const ast::SchemaField& f : fields) {
      if (f.name.text.empty()) {  // batch<...>
        type(f.type);
        continue;
      }
      open(&f, f.name.span.begin, f.type.span.end, false);
      type(f.type);
      close();
    }
  }

  void pipe(const ast::Pipe& p) {
    open(&p.source, p.source.span.begin, p.source.span.end, false);
    parts(p.source);
    close();
    for (const ast::Step& s : p.steps) step(s);
  }

  void step(const ast::Step& s) {
    open(&s, s.span.begin, s.span.end, false);
    if (s.kind == ast::Step::Kind::If) {
      open(&s.name, s.span.begin, indented_ ? s.expr.span.end : s.then_block.begin + 1, false);
      expr(s.expr);
      close();
      open(&s.then, s.then_block.begin, s.then_block.end, true);
      for (const ast::Step& inner : s.then) step(inner);
      close();
      if (s.else_block.valid()) {
        open(&s.otherwise, s.else_block.begin, s.else_block.end, true);
        for (const ast::Step& inner : s.otherwise) step(inner);
        close();
      }
    } else if (s.kind == ast::Step::Kind::Call) {
      parts(s.expr);
    } else if (s.kind == ast::Step::Kind::Assign || s.kind == ast::Step::Kind::Filter) {
      expr(s.expr);
    }
    close();
  }

  // The parts of an expression that may stand on lines of their own.
  void expr(const Expr& e) { parts(e); }
  void item(const Expr& e) {
    open(&e, e.span.begin, e.span.end, false);
    parts(e);
    close();
  }
  void suffix_parts(const Expr& e, const Expr* stop) {
    if (&e == stop) return;
    if (is_suffix(e)) {
      if (const Expr* inner = inner_of(e); inner != nullptr && inner != stop) suffix_parts(*inner, stop);
      for (size_t i = 1; i < e.operands.size(); ++i) item(e.operands[i]);
    } else {
      parts(e);
    }
  }
  void parts(const Expr& e) {
    std::vector<const Expr*> links = chain_links(e);
    if (links.size() >= 2) {
      const Expr& base = chain_base(e);
      const Expr* before = &base;
      open(&base, base.span.begin, base.span.end, false);
      parts(base);
      close();
      for (const Expr* link : links) {
        // From the name of the call.
        const Expr* call = link;
        while (!is_call(*call)) call = &call->operands[0];
        open(link_key(link), call->text_span.begin, link->span.end, false);
        suffix_parts(*link, before);
        close();
        before = link;
      }
      return;
    }
    if (e.kind == Expr::Kind::Binary) {
      for (const Expr* operand : sign_chain(e).operands) item(*operand);
      return;
    }
    schema(e.fields);
    bool listed = e.kind == Expr::Kind::Call || e.kind == Expr::Kind::List;
    for (size_t i = 0; i < e.operands.size(); ++i) {
      if (e.kind == Expr::Kind::String) break;
      if (listed && !(e.method && i == 0))
        item(e.operands[i]);
      else
        parts(e.operands[i]);
    }
  }
  // The outermost link is the whole expression, which may be a part already (an argument): known by its text.
  static const void* link_key(const Expr* link) { return &link->text; }

  uint32_t line_begin(uint32_t at) const {
    size_t end = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    return end == std::string_view::npos ? 0 : static_cast<uint32_t>(end + 1);
  }
  std::string_view line_at(uint32_t begin) const {
    std::string_view rest = text_.substr(std::min<size_t>(begin, text_.size()));
    rest = rest.substr(0, rest.find('\n'));
    while (!rest.empty() && (rest.back() == '\r' || rest.back() == ' ' || rest.back() == '\t')) rest.remove_suffix(1);
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    return rest;
  }
  uint32_t column(uint32_t at) const {
    uint32_t i = line_begin(at), n = 0;
    while (i < text_.size() && text_[i] == ' ') ++i, ++n;
    return n;
  }

  // Whether only the comments of this place stand between an empty line and `item`.
  bool blank_above(const TriviaMap::Item& item) {
    uint32_t begin = line_begin(item.begin);
    // Something else stands before it on its line.
    std::string_view before = text_.substr(begin, item.begin - begin);
    // In YAML an assignment stands behind `set:`.
    if (size_t set = before.find("set:"); indented_ && set != before.npos) before = before.substr(0, set);
    if (before.find_first_not_of(indented_ ? " \t|-'\"" : " \t|") != before.npos) return false;
    while (begin > 0) {
      uint32_t above = line_begin(begin - 1);
      std::string_view line = line_at(above);
      // Above what it begins with, the line is the outer one's.
      if (line.empty()) return item.parent <= 0 || at(item.parent).begin < begin;
      bool comment = line.starts_with("#");
      // In YAML a key on a line of its own opens what follows, and so does a literal.
      bool key = indented_ && (line.ends_with(":") || line.ends_with("|-")) && column(above) < column(item.begin);
      if (!comment && !key) return false;
      begin = above;
    }
    return false;
  }

  bool inside(const TriviaMap::Item& item, uint32_t place) {
    if (item.begin < place && place < item.end) return true;
    if (!indented_ || !holds_block(item) || item.children.empty() || item.end > place) return false;
    // Between braces a sample ends.
    const void* parts[] = {item.key, item.block ? nullptr : at(item.children.back()).key};
    for (const void* part : parts)
      if (samples_.contains(part) && text_[at(map_.by_key_.at(part)).begin] == '{') return false;
    // Below it, and as far in as its parts, with nothing but comments between.
    uint32_t least = column(at_child(item));
    for (uint32_t begin = next_line(item.end); begin < line_begin(place); begin = next_line(begin)) {
      std::string_view line = line_at(begin);
      if (!line.empty() && (!line.starts_with("#") || column(begin) < least)) return false;
    }
    return least > 0 && column(place) >= least;
  }
  uint32_t next_line(uint32_t at) const {
    size_t end = text_.find('\n', at);
    return static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end + 1);
  }
  uint32_t at_child(const TriviaMap::Item& item) { return at(item.children.back()).begin; }

  void attach(const ast::Comment& comment) {
    uint32_t place = comment.span.begin;
    std::string words = comment.text.substr(0, comment.text.find_last_not_of(" \t\r") + 1);
    uint32_t begin = line_begin(place);
    bool alone = text_.substr(begin, place - begin).find_first_not_of(" \t") == std::string_view::npos;
    if (!alone) {
      int best = -1;
      for (int i : ending_between(begin, place)) {
        const TriviaMap::Item& item = at(i);
        if (is_branch(item)) continue;
        // In YAML a block ends with its last part, which the comment belongs to.
        bool inner = item.begin < begin || (samples_.contains(item.key) && text_[item.begin] != '{');
        if (indented_ && inner && holds_block(item)) continue;
        if (best < 0 || item.end > at(best).end || (item.end == at(best).end && item.begin < at(best).begin)) best = i;
      }
      if (best >= 0) {
        behind(best).push_back(std::move(words));
        return;
      }
    }
    int holder = 0;
    for (bool found = true; found;) {
      found = false;
      for (int child : at(holder).children) {
        if (!inside(at(child), place)) continue;
        holder = child;
        found = true;
        break;
      }
    }
    // The first part below it, here or inside of parts that hold nothing else.
    int next = -1;
    for (int child : at(holder).children)
      if (at(child).begin >= place) {
        next = child;
        break;
      }
    if (next >= 0) {
      // A list's branch has nothing to print comments above of: its first part has.
      while (is_branch(at(next)) && !at(next).children.empty()) next = at(next).children[0];
      if (is_branch(at(next)))
        at(next).trivia.tail.push_back(std::move(words));
      else
        at(next).trivia.leading.push_back(std::move(words));
      return;
    }
    if (at(holder).block) {
      at(holder).trivia.tail.push_back(std::move(words));
      return;
    }
    // Inside of what cannot be broken there: above the whole.
    while (!at(at(holder).parent).block) holder = at(holder).parent;
    at(holder).trivia.leading.push_back(std::move(words));
  }
  // The parts that end behind `begin` and not behind `end`, in their order.
  std::vector<int> ending_between(uint32_t begin, uint32_t end) {
    if (by_end_.size() + 1 != map_.items_.size()) {
      by_end_.clear();
      for (int i = 1; i < static_cast<int>(map_.items_.size()); ++i) by_end_.push_back(i);
      std::sort(by_end_.begin(), by_end_.end(), [this](int a, int b) { return at(a).end < at(b).end; });
    }
    auto above = [this](uint32_t limit, int item) { return limit < at(item).end; };
    auto first = std::upper_bound(by_end_.begin(), by_end_.end(), begin, above);
    std::vector<int> found(first, std::upper_bound(first, by_end_.end(), end, above));
    std::sort(found.begin(), found.end());
    return found;
  }
  // Blocks, and what ends with one.
  bool holds_block(const TriviaMap::Item& item) {
    return item.block || (!item.children.empty() && at(item.children.back()).block);
  }
  // Where a comment behind `item` goes. The YAML form has no brace to stand behind: it goes above the brace, and where
  // all is on one line, to the last step.
  std::vector<std::string>& behind(int item) {
    bool lines = text_.substr(at(item).begin, at(item).end - at(item).begin).find('\n') != std::string_view::npos;
    while (!indented_ && !samples_.contains(at(item).key) && holds_block(at(item)) && text_[at(item).end - 1] == '}') {
      int last = at(item).block ? item : at(item).children.back();
      // `else if` has no block of its own.
      while (is_branch(at(last)) && at(last).children.size() == 1 && holds_block(at(at(last).children[0])))
        last = at(at(last).children[0]).children.back();
      if (lines || on_lines_.contains(at(item).key)) return at(last).trivia.tail;
      if (!is_branch(at(last)) || at(last).children.empty()) break;
      item = at(last).children.back();
    }
    return at(item).trivia.trailing;
  }
  bool is_branch(const TriviaMap::Item& item) const { return branches().contains(item.key); }
  const std::map<const void*, bool>& branches() const {
    if (branches_.empty()) {
      branches_[nullptr] = true;
      for (const ast::Pipeline& p : file_.pipelines) {
        find_branches(p.pipe.steps);
        for (const ast::Stream& s : p.declarations.streams) find_branches(s.pipe.steps);
      }
      for (const ast::Stream& s : file_.declarations.streams) find_branches(s.pipe.steps);
    }
    return branches_;
  }
  void find_branches(const std::vector<ast::Step>& steps) const {
    for (const ast::Step& s : steps) {
      if (s.kind != ast::Step::Kind::If) continue;
      branches_[&s.then] = branches_[&s.otherwise] = true;
      find_branches(s.then);
      find_branches(s.otherwise);
    }
  }

  TriviaMap& map_;
  const ast::File& file_;
  std::string_view text_;
  bool indented_;
  std::vector<int> stack_;
  std::set<const void*> samples_;
  std::set<const void*> on_lines_;  // blocks that are laid out on several lines, however short
  std::vector<int> by_end_;  // the items but the first, by their ends
  mutable std::map<const void*, bool> branches_;
};

TriviaMap::TriviaMap(const ast::File& file, std::string_view text, bool indented) {
  TriviaBuilder(*this, file, text, indented).build();
}

Trivia TriviaMap::take(const void* part) {
  auto it = by_key_.find(part);
  if (it == by_key_.end()) return {};
  Trivia& trivia = items_[static_cast<size_t>(it->second)].trivia;
  Trivia out = std::exchange(trivia, {});
  trivia.tail = std::move(out.tail);
  out.tail.clear();
  return out;
}

const Trivia& TriviaMap::peek(const void* part) const {
  static const Trivia kNone;
  auto it = by_key_.find(part);
  return it == by_key_.end() ? kNone : items_[static_cast<size_t>(it->second)].trivia;
}

bool TriviaMap::take_blank(const void* part) {
  auto it = by_key_.find(part);
  return it != by_key_.end() && std::exchange(items_[static_cast<size_t>(it->second)].trivia.blank, false);
}

std::vector<std::string> TriviaMap::take_tail(const void* part) {
  auto it = by_key_.find(part);
  if (it == by_key_.end()) return {};
  return std::exchange(items_[static_cast<size_t>(it->second)].trivia.tail, {});
}

bool TriviaMap::has(const void* part) const {
  const Trivia& t = peek(part);
  return !t.leading.empty() || !t.trailing.empty() || !t.tail.empty();
}

bool TriviaMap::has_inside(const void* part) const {
  auto it = by_key_.find(part);
  if (it == by_key_.end()) return false;
  for (int child : items_[static_cast<size_t>(it->second)].children) {
    const void* key = items_[static_cast<size_t>(child)].key;
    if (has(key) || has_inside(key)) return true;
  }
  return false;
}

void TriviaMap::gather(int item, std::vector<std::string>& into) {
  for (int child : items_[static_cast<size_t>(item)].children) {
    Trivia& t = items_[static_cast<size_t>(child)].trivia;
    into.insert(into.end(), t.leading.begin(), t.leading.end());
    gather(child, into);
    into.insert(into.end(), t.trailing.begin(), t.trailing.end());
    into.insert(into.end(), t.tail.begin(), t.tail.end());
    t.leading.clear(), t.trailing.clear(), t.tail.clear();
  }
}

std::vector<std::string> TriviaMap::take_inside(const void* part) {
  std::vector<std::string> out;
  if (auto it = by_key_.find(part); it != by_key_.end()) gather(it->second, out);
  return out;
}

}  // namespace zephon
