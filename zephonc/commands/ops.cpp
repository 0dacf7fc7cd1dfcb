// zephonc ops [NAME]: the operators, from their declarations. `--markdown` prints ops/OPS.md, which a test compares.

#include <fmt/format.h>

#include "graph/op_def.h"
#include "graph/signature.h"
#include "ops/all_ops.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"

namespace zephon {
namespace {

std::string_view class_name(OpClass cls) {
  switch (cls) {
    case OpClass::Leaf:
      return "leaf";
    case OpClass::Pointwise:
      return "pointwise";
    case OpClass::View:
      return "view";
    case OpClass::Resample:
      return "resample";
    case OpClass::Reduce:
      return "reduce";
    case OpClass::Draw:
      return "draw";
    case OpClass::Opaque:
      return "opaque";
    case OpClass::Source:
      return "source";
    case OpClass::OneToOne:
      return "one to one";
    case OpClass::Subset:
      return "subset";
    case OpClass::OneToMany:
      return "one to many";
    case OpClass::ManyToOne:
      return "many to one";
    case OpClass::Reorder:
      return "reorder";
    case OpClass::Repeat:
      return "repeat";
    case OpClass::Merge:
      return "merge";
    case OpClass::Policy:
      return "policy";
    case OpClass::Hint:
      return "hint";
    case OpClass::Composite:
      return "composite";
  }
  return "";
}

bool is_dataset(const OpDef& op) {
  if (op.cls == OpClass::Composite) return op.signature.starts_with("stream");
  return !is_tensor_class(op.cls);
}

std::string properties(const OpDef& op) {
  std::string out(class_name(op.cls));
  auto add = [&](bool has, std::string_view text) {
    if (has) out += fmt::format(", {}", text);
  };
  add(op.effects.can_fail, "can fail");
  add(op.effects.random, "random");
  add(op.effects.reads_files, "reads files");
  add(op.algebra.counts_arrivals, "counts arrivals (ends a filter region)");
  add(op.algebra.needs_domain, "needs a domain known without the data");
  add(is_dataset(op) && !op.algebra.keeps_order, "changes the order");
  add(op.algebra.keeps_rows, "keeps what is made above it");
  add(op.algebra.merge != nullptr, "merges with its like");
  add(op.promotes, "promotes its arguments");
  return out;
}

std::string page(const OpDef& op) {
  std::string out =
      fmt::format("### `{}`\n\n{}\n\n```\n{}({})\n```\n\n", op.name, op.summary, op.name, written_signature(op));
  if (!op.prose.empty()) out += fmt::format("{}\n\n", op.prose);
  if (!op.implicit.empty()) out += fmt::format("Also assigns `{}`.\n\n", op.implicit);
  if (!op.expansion.empty()) out += fmt::format("Short for:\n\n```\n{}\n```\n\n", op.expansion);
  if (!op.example.empty()) out += fmt::format("Example:\n\n```\n{}\n```\n\n", op.example);
  return out + fmt::format("Class: {}.\n", properties(op));
}

bool is_named(const OpDef& op) { return !op.summary.empty() && op.cls != OpClass::Leaf; }

template <class Visit>
void by_level(Visit&& visit) {
  for (bool dataset : {true, false}) {
    visit(dataset, nullptr);
    for (const OpDef* op : all_ops().all()) {
      if (is_named(*op) && is_dataset(*op) == dataset) visit(dataset, op);
    }
  }
}

std::string markdown() {
  std::string out =
      "# Operators\n\nGenerated from the declarations in this folder by `zephonc ops --markdown`; a test compares "
      "it.\n";
  by_level([&](bool dataset, const OpDef* op) {
    if (op != nullptr) {
      out += "\n" + page(*op);
    } else {
      out += dataset ? "\n## Steps: operators on streams\n" : "\n## Expressions: operators on the fields of a sample\n";
    }
  });
  return out;
}

std::string list() {
  std::string out;
  by_level([&](bool dataset, const OpDef* op) {
    if (op != nullptr) {
      out += fmt::format("  {:<20} {}\n", op->name, op->summary);
    } else {
      out += dataset ? "steps\n" : "\nexpressions\n";
    }
  });
  return out + "\n`zephonc ops NAME` tells more.\n";
}

}  // namespace

int command_ops(const Options& options) {
  if (options.markdown) return print(markdown());
  if (options.name.empty()) return print(list());
  if (const OpDef* op = all_ops().find(options.name)) return print(page(*op));
  std::vector<std::string> names;
  for (const OpDef* op : all_ops().all()) names.emplace_back(op->name);
  std::string hint = did_you_mean(options.name, names);
  say(fmt::format("zephonc: no operator `{}`{}", options.name, hint.empty() ? "" : "; " + hint));
  return kExitUsage;
}

}  // namespace zephon
