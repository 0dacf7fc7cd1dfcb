// What the guards are for. Each guard of each rule is taken out, and the program that it holds back (the rule's own
// `keeps` example), then random programs, go through the optimizer: what a guard of exactness held back must show, as
// another result, a graph that does not verify, a crash, or a rule that goes on for ever; without a guard of cost the
// result stays as it is.
//
// Each attempt runs in a child process, so that a crash is a result like any other: optimizer and reference interpreter
// only, which start no threads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "optimizer/rules/document.h"
#include "runtime/kernels/kernel_compiler.h"
#include "tests/any_program.h"
#include "tests/subject.h"

namespace zephon {
namespace {

constexpr uint64_t kPrograms = 300;  ///< or ZEPHON_RANDOM, for what random programs find by themselves
constexpr int kSeconds = 3;          ///< of CPU, after which something goes on for ever

struct Mutant {
  const Rule* rule;
  size_t guard;
  const Guard& removed() const { return rule->guards[guard]; }
  std::string name() const { return fmt::format("{}, without \"{}\"", rule->name, removed().name); }
};

/// Of exact rules, those with a predicate: what a physical rule requires the planner asks itself.
std::vector<Mutant> all_mutants() {
  std::vector<Mutant> all;
  for (const RuleEntry& entry : all_rules())
    for (size_t g = 0; g < entry.rule->guards.size(); ++g)
      if (entry.rule->guards[g].holds && entry.rule->relaxation.empty()) all.push_back({entry.rule, g});
  return all;
}

/// The rules, one of them with a guard that always holds.
class Mutated {
 public:
  explicit Mutated(const Mutant& mutant)
      : guards_(mutant.rule->guards.begin(), mutant.rule->guards.end()),
        rule_(*mutant.rule),
        entries_(all_rules().begin(), all_rules().end()) {
    guards_[mutant.guard].holds = [](Rewriter&, const Match&) { return true; };
    rule_.guards = guards_;
    for (RuleEntry& entry : entries_)
      if (entry.rule == mutant.rule) entry.rule = &rule_;
    options_.rules = entries_;
  }
  const OptimizeOptions& options() const { return options_; }

 private:
  std::vector<Guard> guards_;
  Rule rule_;
  std::vector<RuleEntry> entries_;
  OptimizeOptions options_;
};

enum Verdict : int { kSame = 40, kDiffers = 41, kInvalid = 42, kCrashed = 43, kEndless = 44 };

std::string_view text(Verdict verdict) {
  constexpr std::string_view kTexts[] = {"the same", "another result", "an invalid graph", "a crash", "no end"};
  return kTexts[verdict - kSame];
}

/// Of the mutated rules on a program of which `expected` is what the reference interpreter delivers.
Verdict verdict(const Subject& subject, const Outcome& expected, const Mutant& mutant) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGXCPU, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, SIG_DFL);
    const rlimit seconds{kSeconds, kSeconds}, none{0, 0};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    if (!std::freopen("/dev/null", "w", stderr)) _exit(kCrashed);
    const Mutated mutated(mutant);
    const Outcome found = subject.rewritten(mutated.options());
    if (found.failure.starts_with("our bug")) _exit(kInvalid);
    _exit(difference(expected, found).empty() ? kSame : kDiffers);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL ? kEndless : kCrashed;
  const int code = WEXITSTATUS(status);
  return code >= kSame && code <= kEndless ? static_cast<Verdict>(code) : kCrashed;
}

bool refuses(const OptimizeResult& result, const Mutant& mutant) {
  return std::ranges::any_of(result.trace.refused, [&](const Refusal& refusal) {
    return refusal.rule == mutant.rule && refusal.guard == mutant.removed().name;
  });
}

class Mutants : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "zephon_mutants_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    write_wide_data(folder_);
    std::string header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 3), }";
    header.resize(117, ' ');
    std::ofstream(folder_ + "/unsigned.npy", std::ios::binary)
        << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << "\n"
        << std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 24);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// What is found by the examples that a guard holds back; kSame where nothing shows.
  static Verdict by_example(const Mutant& mutant) {
    for (const RuleExample& example : examples_of(*mutant.rule)) {
      if (example.fires || example.expected != mutant.removed().name) continue;
      const Subject subject(example.program, {}, ZEPHON_SOURCE_DIR, 1, 40);
      if (!subject.good()) ADD_FAILURE() << subject.errors();
      const Verdict found = verdict(subject, subject.reference(), mutant);
      if (found != kSame) return found;
    }
    return kSame;
  }

  std::string folder_;
};

/// Over the files of write_wide_data(): what random programs would need luck for.
constexpr std::string_view kTargeted[] = {
    // A broken picture, of which a good part is wanted.
    "files(\"photos/*/*.jpg\") | x = bytes.decode_image(check=\"whole\").crop(box(0, 0, 2, 2)) | select x | "
    "on_error(skip)",
    "files(\"photos/*/*.jpg\") | x = bytes.decode_image(check=\"whole\").resize(8, 8).crop(box(0, 0, 2, 2)) | select x "
    "| "
    "on_error(skip)",
    // A draw with nothing but constants below it.
    "range(9) | x = [[1, 2], [3, 4]].random_crop(1, 1)",
    // The message names the box.
    "npy(\"image_*.npy\", columns={image: u8[h, w, 3]}) | x = image.crop(box(0, 0, 2, 2)).crop(box(index, 0, 2, 2))",
    "files(\"photos/dog/d*.jpg\") | x = bytes.decode_image().flip().crop(box(0, 1, 12, 12)) | select x",
    // What is cut out of a box lies outside of the picture: the message names the box.
    "range(4) | x = [[index, 1, 2, 3], [2, 3, 4, 5]].crop(box(0, index, 2, 3)).crop(box(0, 2, 1, 1)) | select x | "
    "on_error(skip)",
    // -1 cannot be cast, and is not the greatest.
    "range(2) | x = u16(i16([[index - 1, 5]])).max() | select x | on_error(skip)",
    // The first pixel of the whole that is no number of 7 bits speaks for the box.
    "files(\"photos/*/*.jpg\") | x = f32(i8(bytes.decode_image())).resize(4, 4).crop(box(2, 2, 2, 2)) | select x | "
    "on_error(skip)",
    // A number that is too large, where nobody asks for it.
    "npy(\"unsigned.npy\", columns={x: i64[3]}) | y = x[0:2] | select y | on_error(skip)",
    // The message names the first of several elements that fail.
    "range(2, 6) | x = (i32([[[1], [2]], [[3], [4]]]) * i32(index * 600_000_000)).crop(box(1, 1, 1, 1)) | select x",
    // One channel for all three: its extents are not the picture's.
    "npy(\"image_*.npy\", columns={image: u8[h, w, 3]}) | x = (f32(image) + uniform(0, 1, shape=[5, 6, 1]))"
    ".crop(box(1, 0, 2, 2)) | select x | on_error(skip)",
    // A broken line, which is not chosen.
    "jsonl(\"lines_*.jsonl\", schema={r: {q: i64}}) | n = where(false, [[0]] + r.q, 0).height() | select n | "
    "on_error(skip)",
    "range(9) | x = index * 3 | batch(4) | x = index > 7",
};

TEST_F(Mutants, AreCaught) {
  const std::vector<Mutant> all = all_mutants();
  std::vector<Verdict> examples;
  for (const Mutant& mutant : all) examples.push_back(by_example(mutant));
  std::vector<std::string> random(all.size());
  std::vector<bool> targeted(all.size());
  auto compiler = make_kernel_compiler();
  const uint64_t count = number_from("ZEPHON_RANDOM", kPrograms);
  for (uint64_t n = 0; n < count + std::size(kTargeted); ++n) {
    AnyProgram program;
    if (n < count)
      program = any_program(n, folder_);
    else
      program.text = kTargeted[n - count];
    const Subject subject(program.text, program.params, folder_, program.epochs);
    if (!subject.good()) continue;
    const OptimizeResult plain = subject.optimized({}, 1);
    std::optional<Outcome> expected;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!random[i].empty() || all[i].removed().cost || !refuses(plain, all[i])) continue;
      if (!expected) expected = subject.reference();
      Verdict found = verdict(subject, *expected, all[i]);
      // The optimizer has come through: its plan may be run here.
      if (found == kSame && n >= count &&
          !difference(*expected, subject.planned(Mutated(all[i]).options(), subject.options(), compiler.get())).empty())
        found = kDiffers;
      if (found == kSame) continue;
      random[i] = fmt::format("{} of {}", text(found), n < count ? fmt::format("random program {}", n) : program.text);
      targeted[i] = n >= count;
    }
  }
  size_t by_random = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    by_random += !random[i].empty() && !targeted[i];
    const std::string report =
        fmt::format("{}: by its example {}; {}", all[i].name(), text(examples[i]), random[i].empty() ? "-" : random[i]);
    std::cout << (all[i].removed().cost ? "(cost) " : "") << report << "\n";
    if (all[i].removed().cost)
      EXPECT_TRUE(examples[i] == kSame || examples[i] == kEndless) << report << ": the guard is not one of cost alone";
    else
      EXPECT_TRUE(examples[i] != kSame || !random[i].empty()) << report << ": superfluous, or a guard of cost";
  }
  EXPECT_GE(by_random, 10u) << "random programs find too little";
}

/// What the rule does where range analysis says of nothing that it may fail.
ExprId drop_every_check(Rewriter& rewriter, const Match& m) {
  Graph& graph = rewriter.graph();
  return graph.rewrite(m.expr, [&](ExprId id) {
    const Expr& e = graph.expr(id);
    if (e.op->cls != OpClass::Pointwise || !e.op->effects.can_fail || e.attrs.has(kTotal)) return id;
    Expr total = e;
    total.attrs.set(kTotal, true);
    return graph.add(std::move(total));
  });
}

// Its exactness is no guard's: checks are dropped one by one, inside. And it shows in compiled kernels only.
TEST_F(Mutants, ADroppedOverflowCheckIsSeen) {
  Rule rule = rules::DropOverflowChecks;
  rule.guards = {};
  rule.apply_expr = drop_every_check;
  std::vector<RuleEntry> entries(all_rules().begin(), all_rules().end());
  for (RuleEntry& entry : entries)
    if (entry.rule == &rules::DropOverflowChecks) entry.rule = &rule;
  OptimizeOptions options;
  options.rules = entries;
  auto compiler = make_kernel_compiler();
  for (const std::string text : {"range(4) | x = (index + 9_223_372_036_854_775_805) * 3 | on_error(skip)",
                                 "range(4) | x = 12 // (index - 2) | on_error(skip)",
                                 "range(4) | x = -(index - 9_223_372_036_854_775_807 - 1) | on_error(skip)",
                                 "range(4) | x = [[index, 7]] % [[index - 3], [2]] | on_error(skip)"}) {
    const Subject subject(text, {}, folder_, 1);
    ASSERT_TRUE(subject.good()) << subject.errors();
    const Outcome expected = subject.reference();
    EXPECT_EQ(difference(expected, subject.planned({}, subject.options(), compiler.get())), "") << text;
    EXPECT_NE(difference(expected, subject.planned(options, subject.options(), compiler.get())), "") << text;
  }
}

}  // namespace
}  // namespace zephon
