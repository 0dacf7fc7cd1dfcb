// zephonc explain CODE: the long text of a diagnostic.

#include <fmt/format.h>

#include "frontend/diag/diagnostic.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"

namespace zephon {

int command_explain(const Options& options) {
  const KindInfo* kind = find_kind(options.name);
  if (kind == nullptr) {
    std::vector<std::string> codes;
    for (const KindInfo& known : all_kinds()) codes.emplace_back(known.code);
    std::string hint = did_you_mean(options.name, codes);
    say(fmt::format("zephonc: no diagnostic has the code `{}`{}", options.name, hint.empty() ? "" : "; " + hint));
    return kExitUsage;
  }
  std::string_view text = explain_text(kind->kind);
  if (text.empty()) return print(fmt::format("{} ({}) has no long text yet\n", kind->code, kind->name));
  return print(fmt::format("{}{}", text, text.ends_with('\n') ? "" : "\n"));
}

}  // namespace zephon
