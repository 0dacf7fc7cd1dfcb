#include "optimizer/engine/trace.h"

#include <algorithm>

#include "optimizer/engine/rule.h"

namespace zephon {

bool Trace::fired(std::string_view rule) const {
  return std::any_of(applied.begin(), applied.end(), [&](const Application& a) { return a.rule->name == rule; });
}

bool Door::enabled(const Rule& rule) const { return !disabled_.contains(rule.name) && !disabled_.contains("all"); }

void Door::applied(Application application) {
  if (!records_) return;
  kept_bytes_ += application.what.size() + application.before.size() + application.after.size();
  trace_.applied.push_back(std::move(application));
}

void Door::refused(Refusal refusal) {
  if (!records_) return;
  const Span& at = refusal.place;
  if (known_.emplace(refusal.rule, at.file.value, at.begin, refusal.step, refusal.guard).second)
    trace_.refused.push_back(std::move(refusal));
}

}  // namespace zephon
