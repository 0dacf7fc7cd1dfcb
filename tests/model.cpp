#include "tests/model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "graph/identity.h"
#include "graph/philox.h"

namespace zephon::model {
namespace {

using Words = std::vector<uint64_t>;

uint64_t below(uint64_t word, uint64_t count) {  // floor(word * count / 2^64), by halves
  const uint64_t high = word >> 32, low = word & 0xffffffff;
  const uint64_t a = high * (count >> 32), b = high * (count & 0xffffffff), c = low * (count >> 32),
                 d = low * (count & 0xffffffff);
  const uint64_t middle = (b & 0xffffffff) + (c & 0xffffffff) + (d >> 32);
  return a + (b >> 32) + (c >> 32) + (middle >> 32);
}

// ---- the published bijection ---------------------------------------------------------------------------------------

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t permuted(uint64_t key, uint64_t n, uint64_t index) {
  unsigned half = 2;  // bits of a half: the least, from 2, whose square domain holds n
  while (half < 32 && (uint64_t{1} << (2 * half)) < n) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 1; round <= 4; ++round) {
      const uint64_t f = scramble(key + 0x9e3779b97f4a7c15u * round + scramble(right)) & mask;
      std::tie(left, right) = std::make_pair(right, left ^ f);
    }
    index = (left << half) | right;
  } while (index >= n);
  return index;
}

// ---- expressions ---------------------------------------------------------------------------------------------------

struct DrawPlace {
  std::string stream, field;
  uint64_t ordinal = 0;  // of the assignment to that field in the stream
};

struct Env {
  const std::map<std::string, Scalar>* fields;
  uint64_t seed, epoch;
  uint64_t identity;
  const DrawPlace* place;
};

uint64_t draw_id(const DrawPlace& place, uint64_t order) {
  const uint64_t path[] = {stream_hash(place.stream), stream_hash(place.field), place.ordinal};
  const uint64_t words[] = {hash_words(path), order};
  return hash_words(words);
}

Scalar integer(int64_t v) {
  Scalar out;
  out.i = v;
  return out;
}
Scalar real(double v) {
  Scalar out;
  out.f = v;
  return out;
}
Scalar failed() {
  Scalar out;
  out.failed = true;
  return out;
}

Scalar eval(const Expr& e, const Env& env) {
  std::vector<Scalar> a;
  for (const Expr& arg : e.args) a.push_back(eval(arg, env));
  switch (e.op) {
    case Op::Field:
      return env.fields->at(e.field);
    case Op::Int:
      return integer(e.i);
    case Op::Float:
      return real(static_cast<double>(static_cast<float>(e.f)));
    case Op::And:
    case Op::Or: {
      const int64_t deciding = e.op == Op::Or;
      for (const Scalar& x : a)
        if (!x.failed && x.i == deciding) return integer(deciding);
      return a[0].failed || a[1].failed ? failed() : integer(!deciding);
    }
    case Op::Where:
      return a[0].failed ? failed() : a[0].i ? a[1] : a[2];
    case Op::IsMissing:
    case Op::Default:
    case Op::DefaultList: {
      Scalar x = env.fields->at(e.field);
      if (x.missing_failed) return failed();
      if (e.op == Op::IsMissing) return integer(x.missing);
      if (x.missing && e.op == Op::Default) return a[0];
      if (x.missing) x.items.clear();  // it may have been padded
      x.optional = x.missing = false;
      return x;
    }
    case Op::Len:
    case Op::At: {
      const Scalar& x = env.fields->at(e.field);
      const auto count = static_cast<int64_t>(x.items.size());
      if (x.failed || (e.op == Op::At && a[0].failed)) return failed();
      if (e.op == Op::Len) return integer(count);
      const int64_t at = a[0].i < 0 ? a[0].i + count : a[0].i;
      return at < 0 || at >= count ? failed() : integer(x.items[static_cast<size_t>(at)]);
    }
    default:
      break;
  }
  for (const Scalar& x : a)
    if (x.failed) return failed();
  int64_t out = 0;
  switch (e.op) {
    case Op::Add:
      return __builtin_add_overflow(a[0].i, a[1].i, &out) ? failed() : integer(out);
    case Op::Sub:
      return __builtin_sub_overflow(a[0].i, a[1].i, &out) ? failed() : integer(out);
    case Op::Mul:
      return __builtin_mul_overflow(a[0].i, a[1].i, &out) ? failed() : integer(out);
    case Op::FloorDiv:
    case Op::Mod: {
      const int64_t x = a[0].i, y = a[1].i;
      if (y == 0) return failed();
      if (y == -1) {
        if (e.op == Op::Mod) return integer(0);
        return __builtin_sub_overflow(int64_t{0}, x, &out) ? failed() : integer(out);
      }
      // The remainder that has the divisor's sign.
      int64_t remainder = x % y;
      if (remainder != 0 && (remainder < 0) != (y < 0)) remainder += y;
      return integer(e.op == Op::Mod ? remainder : (x - remainder) / y);
    }
    case Op::FloatAdd:
      return real(static_cast<double>(static_cast<float>(a[0].f) + static_cast<float>(a[1].f)));
    case Op::FloatMul:
      return real(static_cast<double>(static_cast<float>(a[0].f) * static_cast<float>(a[1].f)));
    case Op::Lt:
      return integer(a[0].i < a[1].i);
    case Op::Le:
      return integer(a[0].i <= a[1].i);
    case Op::Eq:
      return integer(a[0].i == a[1].i);
    case Op::Ne:
      return integer(a[0].i != a[1].i);
    case Op::FloatLt:
      return integer(a[0].f < a[1].f);
    case Op::Not:
      return integer(!a[0].i);
    default:
      break;
  }
  // A draw: block 0 of the stream that key and identity choose.
  const uint64_t key_words[] = {env.seed, env.epoch, draw_id(*env.place, e.order)};
  PlainNumbers n;
  const uint64_t word = philox(n, hash_words(key_words), env.identity, uint64_t{0}).first;
  const double unit = static_cast<double>(word >> 11) * 0x1p-53;
  switch (e.op) {
    case Op::Randint:
      return integer(e.low +
                     static_cast<int64_t>(below(word, static_cast<uint64_t>(e.high) - static_cast<uint64_t>(e.low))));
    case Op::Coin:
      return integer(unit < e.f);
    default: {
      const auto low = static_cast<double>(e.low), high = static_cast<double>(e.high);
      double x = low + unit * (high - low);
      x = static_cast<double>(static_cast<float>(x < high ? x : low));
      return real(x < high ? x : static_cast<double>(static_cast<float>(low)));
    }
  }
}

// Whether a value is missing is a field of its own to what guards fields.
std::string missing_name(const std::string& field) { return field + "?"; }
std::string record_of(const std::string& field) { return field.substr(0, field.find_first_of(".?")); }

void add_reads(const Expr& e, std::set<std::string>& fields) {
  if (e.op == Op::Field || e.op == Op::Default || e.op == Op::DefaultList || e.op == Op::Len || e.op == Op::At)
    fields.insert(e.field);
  if (e.op == Op::IsMissing || e.op == Op::Default || e.op == Op::DefaultList) fields.insert(missing_name(e.field));
  for (const Expr& arg : e.args) add_reads(arg, fields);
}

// ---- streams as lists ----------------------------------------------------------------------------------------------

// A sample or a batch; or the point where the run ends (max_errors).
struct Item {
  Words id;
  std::map<std::string, Scalar> fields;
  std::vector<Item> members;
  bool verdict_failed = false;  // a filter failed on it, none said false
  bool settled = false;         // and none may any more
  bool ends_run = false;
};

// A domain, whose positions exist before the data is read (items[i] is empty where a filter dropped position i), or a
// list.
struct Flow {
  enum class Domain { Indexed, Holes, Data } domain = Domain::Indexed;
  std::vector<std::optional<Item>> items;
  bool is_list() const { return domain == Domain::Data; }
};

class Runner {
 public:
  Runner(const Program& program, uint64_t epoch) : program_(program), epoch_(epoch) { find_needed(); }
  Flow run() { return pipe(program_.main, program_.main.steps.size(), {}); }

 private:
  // ---- which fields an on_error guards: assigned above, and needed below as the program is written

  void find_needed() {
    std::set<std::string> delivered = fields_after(program_.main, program_.main.steps.size());
    needs(program_.main, delivered);
    std::set<size_t> used(program_.main.arms.begin(), program_.main.arms.end());  // what nobody uses needs nothing
    for (size_t i = program_.streams.size(); i-- > 0;) {
      if (!used.contains(i)) continue;
      needs(program_.streams[i], needed_of_stream_[i]);
      used.insert(program_.streams[i].arms.begin(), program_.streams[i].arms.end());
    }
  }
  std::set<std::string> fields_after(const Pipe& pipe, size_t count) const {
    std::set<std::string> fields;
    switch (pipe.source) {
      case Pipe::Source::Range:
        fields = {"index"};
        break;
      case Pipe::Source::Table:
        fields = {pipe.columns.begin(), pipe.columns.end()};
        break;
      case Pipe::Source::Json:
        fields = {"p", "p?", "r.q", "t", "o", "o?"};
        break;
      default:
        for (size_t index : pipe.arms) {  // but for zip all have the same
          const Pipe& arm = program_.streams[index];
          fields.merge(fields_after(arm, arm.steps.size()));
        }
    }
    for (size_t i = 0; i < count; ++i) {
      const Step& step = pipe.steps[i];
      if (step.kind == StepKind::Assign) {
        const bool optional = step.expr.op == Op::Field && fields.contains(missing_name(step.expr.field));
        fields.insert(step.field);
        fields.erase(missing_name(step.field));
        if (optional) fields.insert(missing_name(step.field));
      }
      if (step.kind == StepKind::Select || step.kind == StepKind::Drop) {
        const std::set<std::string> named(step.fields.begin(), step.fields.end());
        std::erase_if(fields, [&](const std::string& f) {
          return named.contains(record_of(f)) == (step.kind == StepKind::Drop);
        });
      }
      if (step.kind == StepKind::OnError && step.policy == "mask") fields.insert("valid");
    }
    return fields;
  }
  void needs(const Pipe& pipe, std::set<std::string> needed) {
    for (size_t i = pipe.steps.size(); i-- > 0;) {
      const Step& step = pipe.steps[i];
      switch (step.kind) {
        case StepKind::Assign: {
          const bool value = needed.erase(step.field), missing = needed.erase(missing_name(step.field));
          if (step.expr.op != Op::Field) {
            if (value) add_reads(step.expr, needed);
            break;
          }
          if (value) needed.insert(step.expr.field);
          if (missing) needed.insert(missing_name(step.expr.field));
          break;
        }
        case StepKind::Filter:
        case StepKind::Assert:
        case StepKind::Bucket:
          add_reads(step.expr, needed);
          break;
        case StepKind::OnError: {
          if (step.policy == "mask") needed.erase("valid");
          const std::set<std::string> have = fields_after(pipe, i);
          std::set<std::string>& guarded = guarded_[&step];
          for (const std::string& f : needed)
            if (have.contains(f)) guarded.insert(f);
          break;
        }
        default:
          break;
      }
    }
    if (pipe.source == Pipe::Source::Join) needed.insert(pipe.key);
    for (size_t index : pipe.arms) {
      const Pipe& arm = program_.streams[index];
      for (const std::string& field : fields_after(arm, arm.steps.size()))
        if (needed.contains(field)) needed_of_stream_[index].insert(field);
    }
  }

  // ---- running

  // The stream after the first `count` steps of a pipe, within the passes of the repeats below.
  Flow pipe(const Pipe& p, size_t count, const Words& passes) {
    if (count == 0) return source(p, passes);
    const Step& step = p.steps[count - 1];
    if (step.kind == StepKind::Repeat) {
      Flow out;
      for (uint64_t pass = 0; pass < step.count; ++pass) {
        Words inner = passes;
        inner.push_back(pass);
        Flow one = pipe(p, count - 1, inner);
        out.domain = one.domain;
        if (step.endless && one.items.empty()) break;
        out.items.insert(out.items.end(), one.items.begin(), one.items.end());
      }
      if (step.count == 0) out.domain = pipe(p, count - 1, passes).domain;
      return out;
    }
    Flow in = pipe(p, count - 1, passes);
    switch (step.kind) {
      case StepKind::Assign:
        return assign(p, count - 1, std::move(in));
      case StepKind::Filter:
      case StepKind::Assert:
        return filter(step, std::move(in));
      case StepKind::Select:
      case StepKind::Drop:
        return select(step, std::move(in));
      case StepKind::Take:
      case StepKind::Skip:
      case StepKind::Shard:
        return subset(step, std::move(in));
      case StepKind::Shuffle:
        return shuffle(step, std::move(in), passes);
      case StepKind::Window:
        return window(step, std::move(in), passes);
      case StepKind::Batch:
      case StepKind::Padded:
        return batch(step, std::move(in));
      case StepKind::Bucket:
        return bucket(step, std::move(in));
      case StepKind::Unbatch:
        return unbatch(std::move(in));
      case StepKind::OnError:
        return on_error(step, std::move(in));
      case StepKind::Prefetch:
      case StepKind::Cache:
      case StepKind::Repeat:
        break;
    }
    return in;
  }

  Flow source(const Pipe& p, const Words& passes) {
    Flow out;
    auto add = [&](uint64_t position) -> Item& {
      Item item;
      item.id = {stream_hash(p.stream), 0, 0, position};
      item.id.insert(item.id.end(), passes.begin(), passes.end());
      out.items.emplace_back(std::move(item));
      return *out.items.back();
    };
    switch (p.source) {
      case Pipe::Source::Range:
        for (int64_t i = p.begin; i < p.end; ++i) add(static_cast<uint64_t>(i - p.begin)).fields["index"] = integer(i);
        return out;
      case Pipe::Source::Table:
        for (size_t r = 0; r < p.rows.size(); ++r) {
          Item& item = add(r);
          for (size_t c = 0; c < p.columns.size(); ++c)
            item.fields[p.columns[c]] = p.rows[r][c] ? integer(*p.rows[r][c]) : failed();
        }
        return out;
      case Pipe::Source::Json:
        for (size_t row : in_turn(p)) add(out.items.size()).fields = p.objects[row];
        return out;
      case Pipe::Source::Join:
        return join(p, passes);
      case Pipe::Source::Concatenate: {
        for (size_t arm = 0; arm < p.arms.size(); ++arm) {
          Flow flow = stream(p.arms[arm], passes);
          out.domain = std::max(out.domain, flow.domain);
          for (auto& item : flow.items) {
            if (item) append(*item, arm);
            out.items.push_back(std::move(item));
          }
        }
        if (out.is_list()) close_holes(out);
        return out;
      }
      case Pipe::Source::Mix:
        return mix(p, passes);
      case Pipe::Source::Interleave:
        return interleave(p, passes);
      case Pipe::Source::Zip: {
        out = stream(p.arms[0], passes);
        for (size_t k = 1; k < p.arms.size(); ++k) {
          Flow other = stream(p.arms[k], passes);
          for (size_t i = 0; i < out.items.size(); ++i) {
            Item &item = *out.items[i], &pair = *other.items.at(i);
            item.id.insert(item.id.end(), pair.id.begin(), pair.id.end());
            item.fields.merge(pair.fields);
          }
        }
        return out;
      }
      case Pipe::Source::Stream:
        return stream(p.arms[0], passes);
    }
    return out;
  }
  Flow stream(size_t index, const Words& passes) {
    const Pipe& p = program_.streams[index];
    return pipe(p, p.steps.size(), passes);
  }

  static void append(Item& item, uint64_t word) {
    if (item.ends_run) return;
    if (item.members.empty()) item.id.push_back(word);
    for (Item& member : item.members) member.id.push_back(word);
  }
  static void close_holes(Flow& flow) {
    std::erase_if(flow.items, [](const auto& item) { return !item; });
    flow.domain = Flow::Domain::Data;
  }
  // What an operator that counts arrivals sees: a list whose verdicts are final.
  static void end_region(Flow& flow) {
    close_holes(flow);
    for (auto& item : flow.items)
      if (item->verdict_failed) item->settled = true;
  }
  Words key_words(const Words& passes, uint64_t seed, bool each_epoch) const {
    Words words = {program_.seed, seed};
    if (each_epoch) {
      words.push_back(epoch_);
      words.insert(words.end(), passes.begin(), passes.end());
    }
    return words;
  }

  // The objects of all files in the order in which they come: `cycle` files at a time give `block` each in turn.
  static std::vector<size_t> in_turn(const Pipe& p) {
    std::deque<std::vector<size_t>> files;  // what is left of those that have not begun
    size_t row = 0;
    for (size_t count : p.files) {
      std::vector<size_t> rows;
      for (size_t i = 0; i < count; ++i) rows.push_back(row++);
      files.push_back(std::move(rows));
    }
    const size_t cycle = std::max<size_t>(p.cycle, 1), block = p.cycle ? p.block : row + 1;
    std::vector<std::vector<size_t>> open(cycle);
    for (auto& file : open)
      if (!files.empty()) file = std::exchange(files.front(), {}), files.pop_front();
    std::vector<size_t> order;
    while (order.size() < row)
      for (auto& file : open)
        for (size_t given = 0; given < block;) {
          if (file.empty()) {
            if (files.empty()) break;
            file = std::exchange(files.front(), {});
            files.pop_front();
            given = 0;
            continue;
          }
          order.push_back(file.front());
          file.erase(file.begin());
          ++given;
        }
    return order;
  }

  // For each sample of the first arm the others are read until its partner is there; `buffer` may wait in each.
  Flow join(const Pipe& p, const Words& passes) {
    std::vector<Flow> arms;
    for (size_t arm : p.arms) {
      arms.push_back(stream(arm, passes));
      end_region(arms.back());
    }
    std::vector<size_t> next(arms.size());
    std::vector<std::vector<Item>> waiting(arms.size());
    Flow out{Flow::Domain::Data, {}};
    std::set<std::string> fields;
    for (size_t index : p.arms) {
      const Pipe& arm = program_.streams[index];
      fields.merge(fields_after(arm, arm.steps.size()));
    }
    auto fail = [&](Item item) {
      for (const std::string& field : fields)
        if (!item.fields.contains(field)) item.fields[field] = failed();
      item.verdict_failed = item.settled = true;
      out.items.emplace_back(std::move(item));
    };
    // The next sample of an arm that has a key; the others come out as they are. Nothing where it has ended; `over`
    // where the run has.
    bool over = false;
    auto read = [&](size_t arm) -> std::optional<Item> {
      if (next[arm] == arms[arm].items.size()) return std::nullopt;
      Item item = *arms[arm].items[next[arm]++];
      if (item.ends_run) {
        over = true;
        out.items.emplace_back(std::move(item));
        return std::nullopt;
      }
      if (!item.verdict_failed && !item.fields.at(p.key).failed) return item;
      fail(std::move(item));
      return Item{};
    };
    auto partner = [&](size_t arm, int64_t key) {
      return std::find_if(waiting[arm].begin(), waiting[arm].end(),
                          [&](const Item& item) { return item.fields.at(p.key).i == key; });
    };
    while (next[0] < arms[0].items.size()) {
      std::optional<Item> first = read(0);
      if (over) return out;
      if (first->id.empty()) continue;
      const int64_t key = first->fields.at(p.key).i;
      bool good = true;
      for (size_t arm = 1; arm < arms.size() && good; ++arm) {
        while (good && partner(arm, key) == waiting[arm].end()) {
          good = waiting[arm].size() < p.buffer && next[arm] < arms[arm].items.size();
          if (!good) break;
          std::optional<Item> other = read(arm);
          if (over) return out;
          if (other->id.empty()) continue;
          if (partner(arm, other->fields.at(p.key).i) != waiting[arm].end())
            fail(*std::move(other));
          else
            waiting[arm].push_back(*std::move(other));
        }
      }
      if (!good) {
        fail(*std::move(first));
        continue;
      }
      for (size_t arm = 1; arm < arms.size(); ++arm) {
        auto at = partner(arm, key);
        first->id.insert(first->id.end(), at->id.begin(), at->id.end());
        first->fields.merge(at->fields);
        waiting[arm].erase(at);
      }
      out.items.emplace_back(*std::move(first));
    }
    for (size_t arm = 1; arm < arms.size(); ++arm) {
      for (Item& item : waiting[arm]) fail(std::move(item));
      while (next[arm] < arms[arm].items.size()) {
        std::optional<Item> other = read(arm);
        if (over) return out;
        if (!other->id.empty()) fail(*std::move(other));
      }
    }
    return out;
  }

  Flow interleave(const Pipe& p, const Words& passes) {
    std::vector<Flow> arms;
    for (size_t arm : p.arms) {
      arms.push_back(stream(arm, passes));
      end_region(arms.back());
    }
    std::vector<size_t> at(arms.size());
    std::vector<std::optional<size_t>> places;  // which stream stands in each
    size_t begun = 0;
    while (begun < arms.size() && (p.cycle == 0 || begun < p.cycle)) places.push_back(begun++);
    Flow out{Flow::Domain::Data, {}};
    size_t place = 0, given = 0;
    while (std::any_of(places.begin(), places.end(), [](const auto& arm) { return arm.has_value(); })) {
      if (!places[place] || given == p.block) {
        place = (place + 1) % places.size();
        given = 0;
        continue;
      }
      const size_t arm = *places[place];
      if (at[arm] == arms[arm].items.size()) {
        places[place].reset();
        if (begun < arms.size()) places[place] = begun++;
        given = 0;
        continue;
      }
      Item item = *arms[arm].items[at[arm]++];
      append(item, arm);
      out.items.push_back(item);
      if (item.ends_run) return out;
      if (!item.verdict_failed) ++given;
    }
    return out;
  }

  Flow mix(const Pipe& p, const Words& passes) {
    const uint64_t key = hash_words(key_words(passes, p.seed, true));
    std::vector<Flow> arms;
    for (size_t arm : p.arms) {
      arms.push_back(stream(arm, passes));
      end_region(arms.back());
    }
    std::vector<size_t> at(arms.size());
    std::vector<bool> ended(arms.size());
    Flow out{Flow::Domain::Data, {}};
    for (uint64_t ordinal = 0;;) {
      auto choose = [&](bool alive_only) {
        uint64_t total = 0;
        for (size_t i = 0; i < arms.size(); ++i) total += alive_only && ended[i] ? 0 : p.weights[i];
        const uint64_t words[] = {key, ordinal};
        uint64_t point = below(hash_words(words), total);
        for (size_t i = 0;; ++i) {
          const uint64_t weight = alive_only && ended[i] ? 0 : p.weights[i];
          if (point < weight) return i;
          point -= weight;
        }
      };
      size_t arm = choose(false);
      if (ended[arm]) {
        if (std::all_of(ended.begin(), ended.end(), [](bool e) { return e; })) return out;
        arm = choose(true);
      }
      if (at[arm] == arms[arm].items.size()) {
        if (p.stop_at_first) return out;
        ended[arm] = true;
        continue;
      }
      Item item = *arms[arm].items[at[arm]++];
      append(item, arm);
      out.items.push_back(item);
      if (item.ends_run) return out;
      if (!item.verdict_failed) ++ordinal;
    }
  }

  template <class F>
  static void each_member(Item& item, F&& f) {
    if (item.members.empty()) f(item);
    for (Item& member : item.members) f(member);
  }

  Flow assign(const Pipe& p, size_t index, Flow flow) {
    const Step& step = p.steps[index];
    DrawPlace place{p.stream, step.field, 0};
    for (size_t i = 0; i < index; ++i)
      place.ordinal += p.steps[i].kind == StepKind::Assign && p.steps[i].field == step.field;
    for (auto& item : flow.items) {
      if (!item || item->ends_run) continue;
      each_member(*item, [&](Item& sample) {
        const Env env{&sample.fields, program_.seed, epoch_, hash_words(sample.id), &place};
        const Scalar value = eval(step.expr, env);
        sample.fields[step.field] = value;
      });
    }
    return flow;
  }

  Flow filter(const Step& step, Flow flow) {
    std::vector<std::optional<Item>> kept;
    for (auto& item : flow.items) {
      if (item && !item->ends_run && !item->settled) {
        const Scalar value = eval(step.expr, {&item->fields, 0, 0, 0, nullptr});
        if (value.failed || (step.kind == StepKind::Assert && !value.i)) {
          item->verdict_failed = true;
        } else if (!value.i) {
          item.reset();
        }
      }
      if (item || !flow.is_list()) kept.push_back(std::move(item));
    }
    flow.items = std::move(kept);
    flow.domain = std::max(flow.domain, Flow::Domain::Holes);
    return flow;
  }

  // Lists of the members of a batch grow to the longest one, or all to one length.
  static void pad(const Step& step, Item& batch) {
    std::map<std::string, size_t> lengths;
    for (const Item& member : batch.members)
      for (const auto& [name, value] : member.fields)
        if (value.is_list && !value.failed) lengths[name] = std::max(lengths[name], value.items.size());
    for (Item& member : batch.members) {
      for (auto& [name, value] : member.fields) {
        if (!value.is_list || value.failed) continue;
        const size_t length = step.length ? step.length : lengths[name];
        value.failed = value.items.size() > length;
        auto own = step.padding.find(name);
        value.items.resize(length, own == step.padding.end() ? 0 : own->second);
      }
    }
  }

  Flow select(const Step& step, Flow flow) {
    const std::set<std::string> named(step.fields.begin(), step.fields.end());
    for (auto& item : flow.items) {
      if (!item) continue;
      each_member(*item, [&](Item& sample) {
        std::erase_if(sample.fields, [&](const auto& field) {
          return named.contains(record_of(field.first)) == (step.kind == StepKind::Drop);
        });
      });
    }
    return flow;
  }

  Flow subset(const Step& step, Flow in) {
    Flow out{in.domain == Flow::Domain::Indexed ? Flow::Domain::Indexed : Flow::Domain::Data, {}};
    end_region(in);
    uint64_t arrived = 0;
    for (auto& item : in.items) {
      if (step.kind == StepKind::Take && arrived == step.count) break;
      bool keep = true;
      if (!item->verdict_failed && !item->ends_run) {
        if (step.kind == StepKind::Skip) keep = arrived >= step.count;
        if (step.kind == StepKind::Shard) keep = arrived % step.count == step.index;
        ++arrived;
      }
      if (keep) out.items.push_back(item);
      if (item->ends_run) break;
    }
    return out;
  }

  Flow shuffle(const Step& step, Flow in, const Words& passes) {
    const uint64_t key = hash_words(key_words(passes, step.seed, step.flag));
    Flow out{in.domain, {}};
    for (uint64_t i = 0; i < in.items.size(); ++i) out.items.push_back(in.items[permuted(key, in.items.size(), i)]);
    return out;
  }

  Flow window(const Step& step, Flow in, const Words& passes) {
    const uint64_t key = hash_words(key_words(passes, step.seed, step.flag));
    end_region(in);
    Flow out{Flow::Domain::Data, {}};
    std::vector<Item> held;
    uint64_t emitted = 0;
    auto release = [&] {
      const uint64_t words[] = {key, emitted++};
      const uint64_t i = below(hash_words(words), held.size());
      out.items.emplace_back(held[i]);
      held[i] = held.back();
      held.pop_back();
    };
    for (auto& item : in.items) {
      if (item->ends_run || item->verdict_failed) {
        out.items.push_back(item);
        if (item->ends_run) return out;
        continue;
      }
      held.push_back(*item);
      if (held.size() == step.count) release();
    }
    while (!held.empty()) release();
    return out;
  }

  Flow batch(const Step& step, Flow in) {
    end_region(in);
    Flow out{Flow::Domain::Data, {}};
    Item batch;
    for (auto& item : in.items) {
      if (item->ends_run || item->verdict_failed) {
        out.items.push_back(item);
        if (item->ends_run) return out;
        continue;
      }
      batch.members.push_back(*item);
      if (batch.members.size() == step.count) out.items.emplace_back(std::exchange(batch, {}));
    }
    if (!batch.members.empty() && !step.flag) out.items.emplace_back(batch);
    for (auto& item : out.items) pad(step, *item);
    return out;
  }

  Flow bucket(const Step& step, Flow in) {
    end_region(in);
    Flow out{Flow::Domain::Data, {}};
    std::vector<Item> buckets(step.sizes.size());
    for (auto& item : in.items) {
      Scalar length;
      if (!item->ends_run && !item->verdict_failed) length = eval(step.expr, {&item->fields, 0, 0, 0, nullptr});
      if (length.failed) item->verdict_failed = item->settled = true;
      if (item->ends_run || item->verdict_failed) {
        out.items.push_back(item);
        if (item->ends_run) return out;
        continue;
      }
      size_t b = 0;
      while (b < step.bounds.size() && step.bounds[b] <= length.i) ++b;
      buckets[b].members.push_back(*item);
      if (buckets[b].members.size() == step.sizes[b]) out.items.emplace_back(std::exchange(buckets[b], {}));
    }
    for (Item& rest : buckets)
      if (!rest.members.empty() && !step.flag) out.items.emplace_back(rest);
    for (auto& item : out.items) pad(step, *item);
    return out;
  }

  Flow unbatch(Flow in) {
    end_region(in);
    Flow out{Flow::Domain::Data, {}};
    for (auto& item : in.items) {
      if (item->members.empty()) {
        out.items.push_back(item);
        continue;
      }
      for (size_t child = 0; child < item->members.size(); ++child) {
        out.items.emplace_back(item->members[child]);
        append(*out.items.back(), child);
      }
    }
    return out;
  }

  Flow on_error(const Step& step, Flow in) {
    end_region(in);
    Flow out{Flow::Domain::Data, {}};
    uint64_t errors = 0;
    for (auto& item : in.items) {
      if (item->ends_run) {
        out.items.push_back(item);
        break;
      }
      bool bad = item->verdict_failed;
      for (const std::string& field : guarded_[&step]) {
        const Scalar& value = item->fields.at(field.ends_with('?') ? field.substr(0, field.size() - 1) : field);
        bad = bad || (field.ends_with('?') ? value.missing_failed : value.failed);
      }
      if (step.policy == "mask") item->fields["valid"] = integer(!bad);
      if (bad && step.policy == "fail") item->verdict_failed = item->settled = true;
      if (bad && step.policy != "fail") {
        if (step.max_errors && ++errors > *step.max_errors) {
          Item end;
          end.id = item->id;
          end.ends_run = true;
          out.items.emplace_back(end);
          break;
        }
        if (step.policy != "mask") continue;
        item->verdict_failed = item->settled = false;
        for (const std::string& field : guarded_[&step]) {
          const bool marks = field.ends_with('?');
          Scalar& value = item->fields.at(marks ? field.substr(0, field.size() - 1) : field);
          if (marks && value.missing_failed) value.missing_failed = value.missing = false;
          if (marks || !value.failed || value.is_list) continue;  // a list has no length that zeros could have
          value.failed = false;
          value.i = 0;
          value.f = 0;
        }
      }
      out.items.push_back(item);
    }
    return out;
  }

  const Program& program_;
  uint64_t epoch_;
  std::map<const Step*, std::set<std::string>> guarded_;
  std::map<size_t, std::set<std::string>> needed_of_stream_;
};

}  // namespace

Outcome run(const Program& program) {
  Outcome outcome;
  for (uint64_t epoch = 0; epoch < program.epochs; ++epoch) {
    for (const auto& item : Runner(program, epoch).run().items) {
      if (!item) continue;
      if (item->ends_run || item->verdict_failed) {
        outcome.failed = item->id;
        return outcome;
      }
      std::vector<Member> record;
      for (const Item& sample : item->members.empty() ? std::vector<Item>{*item} : item->members) {
        for (const auto& [name, value] : sample.fields) {
          if (!value.failed && !value.missing_failed) continue;
          outcome.failed = sample.id;
          return outcome;
        }
        record.push_back({sample.id, sample.fields});
      }
      outcome.records.push_back(std::move(record));
    }
  }
  return outcome;
}

}  // namespace zephon::model
