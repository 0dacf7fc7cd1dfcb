#pragma once
// What an editor asks about a place. The text may be newer than what is known of it: `at` counts in `now`.

#include <nlohmann/json.hpp>

#include "zephonc/lsp/analysis.h"

namespace zephon::lsp {

nlohmann::json range_of(const Text& text, size_t begin, size_t end);

/// What a file is called in answers.
using UriOf = std::function<std::string(const std::string& path)>;

/// All that was found, in the form of textDocument/publishDiagnostics.
nlohmann::json diagnostics_of(const Analysis& analysis, const UriOf& uri_of);
/// Hover, or null.
nlohmann::json hover(const Analysis& known, const Text& now, size_t at);
/// What the messages about the place mean, at length, in Markdown; empty where there is none.
std::string explanations(const Analysis& latest, const Text& now, size_t at);
/// Location, or null.
nlohmann::json definition(const Analysis& known, const Text& now, size_t at, const UriOf& uri_of);
/// What could stand there, by the text before it.
nlohmann::json completion(const Analysis& known, const Text& now, size_t at);
nlohmann::json symbols(const Analysis& known);

}  // namespace zephon::lsp
