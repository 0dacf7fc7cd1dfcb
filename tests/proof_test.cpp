// Random programs over every operator: the optimised plan delivers what the reference interpreter does, bytes and
// failures; so does the plan without a random part of the rules and with random costs. A program that shows a
// difference is made small before it is printed.
//
//   ZEPHON_RANDOM=10000   that many programs, instead of a few hundred
//   ZEPHON_PROGRAM=17     that one
//                         What ends the process (B0900) stands in zephon_proof_*/running.zpl of the folder for
//                         temporary files.
//   ZEPHON_JIT=1          kernels compiled for each n-th program (default 8); the reference evaluator runs those of the
//   rest
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "ops/all_ops.h"
#include "runtime/kernels/kernel_compiler.h"
#include "tests/any_program.h"
#include "tests/subject.h"
#include "zephonc/shrink.h"

namespace zephon {
namespace {

constexpr uint64_t kPrograms = 600;
constexpr uint64_t kParts = 6;  // as many test cases, so that they run side by side
constexpr uint64_t kCompiled = 8;

/// A way to optimise, from a seed: some rules are missing, and nothing costs what it did.
struct Way {
  std::string name;
  OptimizeOptions options;
};

/// Another machine, other operators, other data: every number of the cost model between 1/16 and 16 times what it was
/// (sizes more), and each filter keeps some share of its rows.
void perturb(Machine& machine, std::mt19937_64& random) {
  const auto factor = [&](int most) { return std::exp2(static_cast<double>(random() % (2 * most + 1)) - most); };
  for (double Machine::*field :
       {&Machine::ns_per_kernel_call, &Machine::ns_per_row_and_step, &Machine::bytes_per_ns, &Machine::default_extent,
        &Machine::default_text_bytes, &Machine::default_record_bytes, &Machine::default_blob_bytes})
    machine.*field *= factor(12);
  auto factors = std::make_shared<std::map<const OpDef*, double>>();
  for (const OpDef* op : all_ops().all()) (*factors)[op] = factor(4);
  machine.factor = [factors](const OpDef& op) { return factors->at(&op); };
  DataFacts facts;
  constexpr double kKept[] = {0, 0.001, 0.3, 0.9, 1};
  for (int32_t step = 0; step < 40; ++step) {
    facts.filters[{step, {}}] = {kKept[random() % 5], 1000};
    for (int32_t part = 0; part < 3; ++part)
      if (random() % 2) facts.filters[{step, {part}}] = {kKept[random() % 5], 1000};
  }
  use_data(machine, std::move(facts), all_ops());
}

std::vector<Way> ways(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Way> all;
  all.push_back({"as planned", {}});
  for (int i = 0; i < 2; ++i) {
    Way some{"without", {}};
    for (const RuleEntry& entry : all_rules()) {
      if (random() % 3 != 0) continue;
      some.options.disabled.emplace(entry.rule->name);
      some.name += " " + std::string(entry.rule->name);
    }
    constexpr int64_t kChunks[] = {0, 1, 7};
    some.options.plan.chunk = kChunks[random() % 3];
    perturb(some.options.plan.machine, random);
    all.push_back(std::move(some));
    Way costs{"with other costs", {}};
    perturb(costs.options.plan.machine, random);
    all.push_back(std::move(costs));
  }
  return all;
}

/// How the plan of a way differs from the program as written, or "".
std::string difference(const Subject& subject, const Outcome& expected, const Way& way, KernelCompiler* compiler) {
  RunOptions how = subject.options();
  how.threads = 1;
  return difference(expected, subject.planned(way.options, how, compiler));
}

class Proof : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "zephon_proof_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    write_wide_data(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The smallest program found that differs in the same way.
  std::string smaller(const AnyProgram& program, const Way& way, KernelCompiler* compiler) const {
    const auto differs = [&](const std::string& text) {
      const Subject subject(text, program.params, folder_, program.epochs);
      return subject.good() ? difference(subject, subject.reference(), way, compiler) : "";
    };
    const std::string text = shrink(program.text, [&](const std::string& t) { return !differs(t).empty(); }).text;
    return text + differs(text);
  }

  void check(const AnyProgram& program, KernelCompiler* compiler, uint64_t& refused) {
    std::ofstream(folder_ + "/running.zpl") << "# program " << program.number << "\n" << program.text;
    const Subject subject(program.text, program.params, folder_, program.epochs);
    if (!subject.good()) {
      ++refused;
      return;
    }
    const Outcome expected = subject.reference();
    for (const Way& way : ways(program.number)) {
      const std::string found = difference(subject, expected, way, compiler);
      if (found.empty()) continue;
      ADD_FAILURE() << fmt::format(
          "program {}, {}: {}\n{}\nas small as it gets:\n{}\nagain: ZEPHON_PROGRAM={} ZEPHON_JIT=1 "
          "build/release/tests/zephon_tests --gtest_filter='*Proof.OfRandomPrograms*'",
          program.number, way.name, found, program.text, smaller(program, way, compiler), program.number);
      return;
    }
  }

  std::string folder_;
};

TEST_P(Proof, OfRandomPrograms) {
  const uint64_t count = number_from("ZEPHON_RANDOM", kPrograms), each = number_from("ZEPHON_JIT", kCompiled);
  KernelOptions options = KernelOptions::from_environment();
  options.use_cache = false;
  std::unique_ptr<KernelCompiler> compiler;
  uint64_t refused = 0, checked = 0;
  const uint64_t only = number_from("ZEPHON_PROGRAM", UINT64_MAX);
  for (uint64_t n = GetParam(); n < count || n == only; n += kParts) {
    if (only != UINT64_MAX && n != only) continue;
    if (checked++ % 256 == 0) compiler = make_kernel_compiler(options);  // it keeps all that it has compiled
    check(any_program(n, folder_), each && n / 2 % each == 0 ? compiler.get() : nullptr, refused);
    if (HasFailure()) break;
  }
  EXPECT_LE(refused * 12, checked + 12) << "the checker refuses too much of what the generator makes";
}

INSTANTIATE_TEST_SUITE_P(Part, Proof, testing::Range<uint64_t>(0, kParts));

TEST_F(Proof, CoversEveryOperator) {
  const auto ops = all_ops().all();
  std::map<std::string, int> seen;
  std::map<std::string, std::pair<int, std::string>> refusals;  // by the first line of the first error
  uint64_t refused = 0;
  const uint64_t count = 4 * ops.size();
  for (uint64_t seed = 0; seed < count; ++seed) {
    const WideProgram program = wide_program(seed);
    const Subject subject(program.text, program.params, folder_, program.epochs);
    if (!subject.good()) {
      ++refused;
      const std::string errors = subject.errors();
      const size_t begin = std::min(errors.find("error["), errors.size());
      auto& [times, example] = refusals[errors.substr(begin, 12) + " by " + program.star];
      if (++times == 1) example = fmt::format("seed {}\n{}{}", seed, program.text, errors.substr(begin));
      continue;
    }
    const OptimizeResult optimized = subject.optimized({}, 1);
    for (const Graph* graph : {&subject.graph(), &optimized.graph}) {
      for (NodeId id : graph->topological()) {
        const Node& node = graph->node(id);
        ++seen[std::string(node.op->name)];
        std::vector<ExprId> roots;
        for (const Assign& a : node.assigns) roots.push_back(a.expr);
        if (node.predicate.valid()) roots.push_back(node.predicate);
        for (ExprId root : roots)
          for (ExprId expr : graph->topological(root)) ++seen[std::string(graph->expr(expr).op->name)];
      }
    }
    for (const OpDef* op : ops) {  // composites are gone when the graph is there
      const std::string word(op->surface.empty() ? op->name : op->surface);
      if (op->cls == OpClass::Composite && program.text.find(word + "(") != std::string::npos)
        ++seen[std::string(op->name)];
    }
  }
  std::vector<std::string_view> missing;
  for (const OpDef* op : ops)  // data_const: a place in the vocabulary that the front end never makes use of
    if (op->name != "data_const" && !seen.contains(std::string(op->name))) missing.push_back(op->name);
  EXPECT_TRUE(missing.empty()) << fmt::format("never generated: {}", fmt::join(missing, ", "));
  std::string why;
  for (const auto& [code, known] : refusals) why += fmt::format("{} times {}: {}\n", known.first, code, known.second);
  EXPECT_LE(refused * 20, count) << refused << " of " << count << " refused by the checker\n" << why;
  std::cout << refused << " of " << count << " programs refused by the checker\n";
}

}  // namespace
}  // namespace zephon
